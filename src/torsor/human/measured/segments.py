"""The segments of a measured person: masses and inertias from motion capture and force plates.

    Y(q, v, a) pi = sum over the feet of J^T w      six equations for each frame: those of the whole body

The muscles do not enter. The estimate is the most probable one, with tables of anthropometry as prior,

    minimise  sum of ((Y pi - J^T w) / noise)^2 / (2 s) + sum over segments of d(P, P0) / spread^2
    d(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4       (Lee, Wensing and Park 2020)

over positive definite pseudo-inertias P of all segments. With P = L (1 + E) L^T near P0 = L L^T, d is half the sum of
squares of E to second order: masses, moments and inertias have the relative deviation ``spread``, all others open.
Residuals are correlated in time: s frames in a row count as one, s being the sum of their autocorrelation.

Venture, Ayusawa and Nakamura 2008; Ayusawa, Venture and Nakamura 2014.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import flag, instance_of, known_name, number, positive, several
from torsor.base.errors import ModelError
from torsor.dynamics import parameter_basis
from torsor.human.measured.gait import MeasuredGait
from torsor.human.measured.inverse_dynamics import CUTOFF, residual_wrench
from torsor.human.measured.skeleton import Skeleton, tree_of
from torsor.human.recordings.recording import runs
from torsor.identification.bases import environment_forces, free_coordinates
from torsor.identification.physical import EXACT, Estimate, Prior, nearest_physical
from torsor.robot.robot import Robot

WHERE = "segments"
CHUNK = 200  # frames at a time
EDGE = 1 / CUTOFF  # s at both ends of a recording, where accelerations are poor
ITERATIONS = 6  # of noise and estimate
CAVEAT = (
    "Intervals are those of random noise. They do not know of errors that repeat: noise of accelerations makes "
    "segments with few markers look lighter and their neighbours heavier, upper arms most of all; skin moves on bones."
)
ALIKE = 1e-3  # relative difference of left and right, where they are symmetric
UNITS = np.array(parameter_basis())


@dataclass(frozen=True, eq=False)
class Segments:
    """Identified segments: ``parameters`` (p,) of the ``body``, with the ``covariance`` (k, k) of those in ``columns``.

    ``prior`` is the body with the masses of tables. ``before`` and ``after`` are the RMS of the residual force (N) and
    moment (N m, about the pelvis) with the prior and with the estimate, of ``frames`` (used, held out): of those held
    out, or of those used if none are. ``noise`` (6,) are the residuals of the frames that were used, and
    ``correlation`` is the number of frames in a row that count as one.
    """

    prior: Robot | Skeleton
    body: Robot | Skeleton
    parameters: Array
    columns: Array
    covariance: Array
    before: tuple[float, float]
    after: tuple[float, float]
    frames: tuple[int, int]
    noise: Array
    correlation: float

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the segments: the links with a mass."""
        return tuple(link.name for link in tree_of(self.prior).links if link.mass > 0)

    def mass(self, *names: str) -> tuple[float, float]:
        """Return the mass (kg) of one segment, or of several together, and its standard deviation."""
        links = [link.name for link in tree_of(self.body).links]
        for name in names:
            known_name(name, self.names, WHERE, "segment")
        at = np.array([10 * links.index(name) for name in names], dtype=int)
        own = np.isin(self.columns, at)
        return float(self.parameters[at].sum()), float(np.sqrt(max(self.covariance[np.ix_(own, own)].sum(), 0.0)))

    @property
    def masses(self) -> dict[str, tuple[float, float, float]]:
        """Mass in the tables, identified mass and its standard deviation (kg) of each segment."""
        given = {link.name: float(link.mass) for link in tree_of(self.prior).links}
        return {name: (given[name], *self.mass(name)) for name in self.names}

    def __str__(self) -> str:
        lines = [f"{'segment':16} tables, kg   identified, kg (95 %)"]
        for name, (given, value, deviation) in self.masses.items():
            lines.append(f"{name:16} {given:10.3f}   {value:.3f} ± {1.96 * deviation:.3f}")
        used, unseen = self.frames
        where = f"{unseen} frames not used" if unseen else f"{used} frames used"
        before, after = (f"{force:.1f} N and {moment:.1f} N m" for force, moment in (self.before, self.after))
        lines.append(f"residual of {where}, RMS: {before} before, {after} after")
        return "\n".join([*lines, CAVEAT])


def identify_segments(
    gait: MeasuredGait | Sequence[MeasuredGait],
    *,
    spread: float = 0.1,
    symmetric: bool = True,
    held_out: float = 0.25,
) -> Segments:
    """Return masses, centres of mass and inertias of the segments of a person, from motion and ground forces.

    ``gait`` is a result of ``measured_gait``, or several of the same body. Frames in which motion and forces do not
    agree at all (``gait.valid``), as where a foot is on no plate, and 0.17 s at both ends are left out. The prior is
    the body of the gait, with masses of anthropometry; ``spread`` is the relative deviation of its segments from those
    of the person. The mass of the whole body is that of the gait. ``symmetric`` makes segments of both sides mirror
    images. ``held_out`` is the last fraction of the frames, which is not used, for the residual.

    What the motion does not show stays at the prior, and standard deviations say so: a walk shows legs and trunk, but
    not how the trunk is divided. Deviations do not know of errors that repeat: skin that moves on bones, joints in
    other places, noise of accelerations, which makes segments with few markers look lighter, their neighbours heavier.

    Example:
        >>> identify_segments(torsor.library.human())
        Traceback (most recent call last):
        torsor.ModelError: segments: gait is <Robot 'human...; allowed: results of measured_gait
    """
    gaits = [instance_of(one, MeasuredGait, WHERE, "gait", allowed="results of measured_gait") for one in several(gait)]
    if not gaits:
        raise ModelError("no gait", where=WHERE, allowed="one result of measured_gait or more")
    spread, held_out = positive(spread, WHERE, "spread"), number(held_out, WHERE, "held_out", least=0.0, below=1.0)
    body = gaits[0].motion.body
    tree, mass = tree_of(body), gaits[0].mass
    used, unseen = _split([_rows(each, tree) for each in gaits], held_out)
    columns = np.array([10 * k + n for k, link in enumerate(tree.links) if link.mass > 0 for n in range(10)])
    count = sum(len(each.y) for each in used)
    if 6 * count < 2 * len(columns) // 10:
        found = f"{count} frames in which motion and forces agree"
        raise ModelError(found, where=gaits[0].source, fix="record longer, with both feet on plates")
    alike = _alike(tree) if flag(symmetric, WHERE, "symmetric") else np.zeros((0, len(tree.inertial.values)))
    pi, gamma = tree.inertial.values, spread**-2
    unknown = np.isin(np.arange(len(pi)), columns)
    prior = Prior(pi, columns, unknown, len(tree.links))
    for _ in range(ITERATIONS):
        residuals = [each.Y @ pi[columns] - each.y for each in used]
        noise = np.sqrt(np.mean(np.concatenate(residuals) ** 2, axis=0))
        stretch = _correlation([each / noise for each in residuals])
        scale = 1 / (noise * np.sqrt(stretch))
        rows = np.concatenate([np.concatenate([each.Y, each.y[..., None]], axis=2) * scale[:, None] for each in used])
        R = np.asarray(np.linalg.qr(rows.reshape(6 * count, -1), mode="r"))  # few rows with the same squares
        whole, beta = np.zeros((len(R), len(pi))), R[:, -1]
        whole[:, columns] = R[:, :-1]
        A, y = np.concatenate([whole, alike]), np.concatenate([beta, np.zeros(len(alike))])
        pi = nearest_physical(Estimate(A, y, np.eye(len(A))), prior, gamma, gaits[0].source, mass)
    covariance = _covariance(A[:, columns], pi[columns], gamma, mass)
    shown = unseen or used
    before, after = (_residual(tree, shown, each[columns]) for each in (tree.inertial.values, pi))
    frames = (count, sum(len(each.y) for each in unseen))
    return Segments(body, _with(body, pi), pi, columns, covariance, before, after, frames, noise, stretch)


class _Rows(NamedTuple):
    """The equations of frames in a row: ``Y`` (K, 6, k) pi = ``y`` (K, 6), at positions ``q`` (K, nq) of the tree."""

    q: Array
    Y: Array
    y: Array

    def part(self, own: slice) -> "_Rows":
        return _Rows(self.q[own], self.Y[own], self.y[own])


def _with(body: Robot | Skeleton, pi: Array) -> Robot | Skeleton:
    if isinstance(body, Skeleton):
        return replace(body, tree=body.tree.inertial.replaced(pi))
    return body.inertial.replaced(pi)


def _rows(gait: MeasuredGait, tree: Robot) -> list[_Rows]:
    """Return the equations of the stretches of frames in which motion and ground forces agree."""
    own, found = gait.dynamics, tree_of(gait.motion.body)
    if own is None or own.external is None:
        fix = "give a file of them too: measured_gait(markers, forces)"
        raise ModelError("no ground forces", where=gait.source, fix=fix)
    if [link.name for link in found.links] != [link.name for link in tree.links]:
        raise ModelError("another body than the first", where=gait.source, fix="scale all recordings alike")
    base = free_coordinates(found)
    if not base:
        raise ModelError(f"{found.name!r} has no free base", value=found.name, where=gait.source)
    body = gait.motion.body
    q, v, a = body.states(own.q, own.v, own.a) if isinstance(body, Skeleton) else (own.q, own.v, own.a)
    heavy = [10 * k + n for k, link in enumerate(tree.links) if link.mass > 0 for n in range(10)]
    stretches = []
    inside = (own.times > own.times[0] + EDGE) & (own.times < own.times[-1] - EDGE)
    for first, last in runs(np.asarray(gait.valid & inside)):
        parts = []
        for k in range(first, last + 1, CHUNK):
            some = slice(k, min(k + CHUNK, last + 1))
            Y = found.inertial.regressor(q[some], v[some], a[some])[:, base][..., heavy]
            parts.append(_Rows(q[some], Y, environment_forces(found, q[some], own.external[some])[:, base]))
        stretches.append(_Rows(*(np.concatenate(each) for each in zip(*parts, strict=True))))
    return stretches


def _split(gaits: list[list[_Rows]], held_out: float) -> tuple[list[_Rows], list[_Rows]]:
    """Return the frames that are used, and the last ones of all, which are not."""
    everything = [each for stretches in gaits for each in stretches]
    left = round((1 - held_out) * sum(len(each.y) for each in everything))
    used, unseen = [], []
    for each in everything:
        cut = min(max(left, 0), len(each.y))
        left -= len(each.y)
        used += [each.part(slice(0, cut))] if cut else []
        unseen += [each.part(slice(cut, len(each.y)))] if cut < len(each.y) else []
    return used, unseen


def _correlation(residuals: list[Array]) -> float:
    """Return the number of frames that count as one: 1 + 2 sum of the autocorrelation, until it is negative."""
    total, lag = sum(float(np.sum(each**2)) for each in residuals), 1
    found = 1.0
    while total > 0:
        together = sum(float(np.sum(each[lag:] * each[:-lag])) for each in residuals if len(each) > lag)
        if together <= 0:
            break
        found, lag = found + 2 * together / total, lag + 1
    return found


def _alike(tree: Robot) -> Array:
    """Return equations (r, p) that are zero if the segments of both sides are mirror images, within ``ALIKE``.

    The mirror is across the axis along which the feet are apart in the standing posture.
    """
    links = {link.name: k for k, link in enumerate(tree.links) if link.mass > 0}
    pairs = [(k, links[other]) for name, k in links.items() if (other := _left(name)) in links]
    pi, rows = tree.inertial.values, []
    places = tree.poses(tree.neutral())[:, :3, 3]
    for one, two in pairs:
        flip = np.ones(4)
        flip[int(np.argmax(np.abs(places[one] - places[two])))] = -1.0
        signs = np.sign(np.einsum("kij,i,j,kij->k", UNITS, flip, flip, UNITS))
        m = pi[10 * one]
        length = np.sqrt(np.trace(np.einsum("k,kij->ij", pi[10 * one : 10 * one + 10], UNITS)[:3, :3]) / m)
        sizes = ALIKE * m * length ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        for n in range(10):
            row = np.zeros(len(pi))
            row[10 * one + n], row[10 * two + n] = signs[n] / sizes[n], -1 / sizes[n]
            rows.append(row)
    return np.array(rows).reshape(len(rows), len(pi))


def _left(name: str) -> str:
    """Return the left segment of a right one, of ``library.human`` or of a skeleton of OpenSim; "" for others."""
    if name.startswith("right_"):
        return f"left_{name.removeprefix('right_')}"
    return f"{name.removesuffix('_r')}_l" if name.endswith("_r") else ""


def _covariance(A: Array, pi: Array, gamma: float, mass: float) -> Array:
    """Return the covariance (k, k) of the estimate: the inverse of the second derivatives of what is minimised."""
    H = A.T @ A
    total = np.zeros(len(pi))
    total[::10] = 1 / (EXACT * mass)
    H += np.outer(total, total)
    for k in range(0, len(pi), 10):
        back = np.linalg.inv(np.linalg.cholesky(np.einsum("k,kij->ij", pi[k : k + 10], UNITS)))
        B = np.einsum("ab,kbc,dc->kad", back, UNITS, back).reshape(10, 16)
        H[k : k + 10, k : k + 10] += gamma * B @ B.T
    size = np.sqrt(np.diagonal(H))
    return np.asarray(np.linalg.inv(H / np.outer(size, size)) / np.outer(size, size))


def _residual(tree: Robot, rows: list[_Rows], pi: Array) -> tuple[float, float]:
    """Return the RMS of the residual force (N) and moment (N m) of frames."""
    q = np.concatenate([each.q for each in rows])
    tau = np.concatenate([each.Y @ pi - each.y for each in rows])
    force, moment = residual_wrench(tree, q, tau)
    return float(np.sqrt(np.mean(np.sum(force**2, axis=1)))), float(np.sqrt(np.mean(np.sum(moment**2, axis=1))))
