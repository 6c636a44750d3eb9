"""Segment masses and inertias of a measured person, from motion capture and force plates.

    Y(q, v, a) pi = sum over the feet of J^T w      six equations per frame, for the full body

These equations do not contain muscle forces. The maximum a posteriori estimate, with anthropometric tables as the
prior, is to

    minimise  sum of ((Y pi - J^T w) / noise)^2 / (2 s) + sum over segments of d(P, P0) / spread^2
    d(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4       (Lee, Wensing and Park 2020)

over positive definite pseudo-inertias P of all segments. For P = L (1 + E) L^T near P0 = L L^T, d is half the sum of
squares of E to second order, so masses, moments and inertias have the relative standard deviation ``spread``. Residuals
are correlated in time: s consecutive frames count as one, where s is the sum of their autocorrelation.

See Venture, Ayusawa and Nakamura (2008) and Ayusawa, Venture and Nakamura (2014).
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
CHUNK = 200  # number of frames computed together
EDGE_TIME = 1 / CUTOFF  # time (s) at both ends of a recording in which accelerations are inaccurate
ITERATIONS = 6  # number of iterations of noise and estimate
CAVEAT = (
    "Confidence intervals cover random noise only, not systematic errors: acceleration noise makes segments with few "
    "markers appear lighter and their neighbours heavier, most of all the upper arms; skin moves relative to bones."
)
SYMMETRY_TOLERANCE = 1e-3  # relative difference between symmetric left and right segments
UNITS = np.array(parameter_basis())


@dataclass(frozen=True, eq=False)
class Segments:
    """Identified segments: ``parameters`` (p,) of the ``body``, with the ``covariance`` (k, k) of the ``columns``.

    ``prior`` is the body with table masses. ``before`` and ``after`` are the RMS residual force (N) and moment (N m,
    about the pelvis) with the prior and with the estimate, over the held-out frames, or over the used frames if there
    are none. ``frames`` are the numbers of used and held-out frames. ``noise`` (6,) contains the residuals of the used
    frames, and ``correlation`` is the number of consecutive frames that count as one.
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
        """Names of the segments, which are the links with a mass."""
        return tuple(link.name for link in tree_of(self.prior).links if link.mass > 0)

    def mass(self, *names: str) -> tuple[float, float]:
        """Return the total mass (kg) of one or more segments, and its standard deviation (kg)."""
        links = [link.name for link in tree_of(self.body).links]
        for name in names:
            known_name(name, self.names, WHERE, "segment")
        at = np.array([10 * links.index(name) for name in names], dtype=int)
        selected = np.isin(self.columns, at)
        return float(self.parameters[at].sum()), float(
            np.sqrt(max(self.covariance[np.ix_(selected, selected)].sum(), 0.0))
        )

    @property
    def masses(self) -> dict[str, tuple[float, float, float]]:
        """For each segment: the table mass, the identified mass and the standard deviation of the latter (kg)."""
        table_masses = {link.name: float(link.mass) for link in tree_of(self.prior).links}
        return {name: (table_masses[name], *self.mass(name)) for name in self.names}

    def __str__(self) -> str:
        lines = [f"{'segment':16} tables, kg   identified, kg (95 %)"]
        for name, (table_mass, value, deviation) in self.masses.items():
            lines.append(f"{name:16} {table_mass:10.3f}   {value:.3f} ± {1.96 * deviation:.3f}")
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
    """Return the masses, centres of mass and inertias of a person's segments from motion and ground forces.

    ``gait`` is a result of ``measured_gait``, or several results for the same body. Frames in which motion and forces
    disagree (``gait.valid``), for example because a foot misses the plates, are omitted, as is 0.17 s at each end. The
    prior is the body of the gait with anthropometric masses. ``spread`` is the expected relative deviation of its
    segments from the person's. The total mass is that of the gait. With ``symmetric``, segments on both sides are
    mirror images. ``held_out`` is the fraction of the frames at the end that is used only for the residual.

    Parameters that the motion does not excite keep their prior values and standard deviations: a walk determines the
    legs and the trunk, but not the mass distribution within the trunk. The standard deviations do not include
    systematic errors due to skin motion, joint positions, and acceleration noise (which makes segments with few markers
    appear lighter and their neighbours heavier).

    Example:
        >>> identify_segments(torsor.library.human())
        Traceback (most recent call last):
        torsor.ModelError: segments: gait is <Robot 'human...; allowed: results of measured_gait
    """
    gaits = [instance_of(one, MeasuredGait, WHERE, "gait", allowed="results of measured_gait") for one in several(gait)]
    if not gaits:
        raise ModelError("no gait is given", where=WHERE, allowed="one or more results of measured_gait")
    spread, held_out = positive(spread, WHERE, "spread"), number(held_out, WHERE, "held_out", least=0.0, below=1.0)
    body = gaits[0].motion.body
    tree, mass = tree_of(body), gaits[0].mass
    used, unseen = _split([_rows(one, tree) for one in gaits], held_out)
    columns = np.array([10 * k + n for k, link in enumerate(tree.links) if link.mass > 0 for n in range(10)])
    count = sum(len(part.y) for part in used)
    if 6 * count < 2 * len(columns) // 10:
        what = f"motion and forces agree in only {count} frames"
        raise ModelError(what, where=gaits[0].source, fix="record longer, with both feet on force plates")
    alike = _alike(tree) if flag(symmetric, WHERE, "symmetric") else np.zeros((0, len(tree.inertial.values)))
    pi, gamma = tree.inertial.values, spread**-2
    unknown = np.isin(np.arange(len(pi)), columns)
    prior = Prior(pi, columns, unknown, len(tree.links))
    for _ in range(ITERATIONS):
        residuals = [part.Y @ pi[columns] - part.y for part in used]
        noise = np.sqrt(np.mean(np.concatenate(residuals) ** 2, axis=0))
        stretch = _correlation([values / noise for values in residuals])
        scale = 1 / (noise * np.sqrt(stretch))
        rows = np.concatenate([np.concatenate([part.Y, part.y[..., None]], axis=2) * scale[:, None] for part in used])
        R = np.asarray(np.linalg.qr(rows.reshape(6 * count, -1), mode="r"))  # fewer rows with the same sum of squares
        whole, beta = np.zeros((len(R), len(pi))), R[:, -1]
        whole[:, columns] = R[:, :-1]
        A, y = np.concatenate([whole, alike]), np.concatenate([beta, np.zeros(len(alike))])
        pi = nearest_physical(Estimate(A, y, np.eye(len(A))), prior, gamma, gaits[0].source, mass)
    covariance = _covariance(A[:, columns], pi[columns], gamma, mass)
    shown = unseen or used
    before, after = (_residual(tree, shown, values[columns]) for values in (tree.inertial.values, pi))
    frames = (count, sum(len(part.y) for part in unseen))
    return Segments(body, _with(body, pi), pi, columns, covariance, before, after, frames, noise, stretch)


class _Rows(NamedTuple):
    """The equations of consecutive frames: ``Y`` (K, 6, k) pi = ``y`` (K, 6), at tree positions ``q`` (K, nq)."""

    q: Array
    Y: Array
    y: Array

    def part(self, frames: slice) -> "_Rows":
        return _Rows(self.q[frames], self.Y[frames], self.y[frames])


def _with(body: Robot | Skeleton, pi: Array) -> Robot | Skeleton:
    if isinstance(body, Skeleton):
        return replace(body, tree=body.tree.inertial.replaced(pi))
    return body.inertial.replaced(pi)


def _rows(gait: MeasuredGait, tree: Robot) -> list[_Rows]:
    """Return the equations for the intervals in which motion and ground forces agree."""
    dynamics, body_tree = gait.dynamics, tree_of(gait.motion.body)
    if dynamics is None or dynamics.external is None:
        fix = "pass the ground forces: measured_gait(markers, forces)"
        raise ModelError("there are no ground forces", where=gait.source, fix=fix)
    if [link.name for link in body_tree.links] != [link.name for link in tree.links]:
        what = "the body differs from the body of the first gait"
        raise ModelError(what, where=gait.source, fix="use the same scaled body for all recordings")
    base = free_coordinates(body_tree)
    if not base:
        raise ModelError(f"{body_tree.name!r} has no free base", value=body_tree.name, where=gait.source)
    body = gait.motion.body
    q, v, a = (
        body.states(dynamics.q, dynamics.v, dynamics.a)
        if isinstance(body, Skeleton)
        else (dynamics.q, dynamics.v, dynamics.a)
    )
    heavy = [10 * k + n for k, link in enumerate(tree.links) if link.mass > 0 for n in range(10)]
    stretches = []
    inside = (dynamics.times > dynamics.times[0] + EDGE_TIME) & (dynamics.times < dynamics.times[-1] - EDGE_TIME)
    for first, last in runs(np.asarray(gait.valid & inside)):
        parts = []
        for k in range(first, last + 1, CHUNK):
            some = slice(k, min(k + CHUNK, last + 1))
            Y = body_tree.inertial.regressor(q[some], v[some], a[some])[:, base][..., heavy]
            parts.append(_Rows(q[some], Y, environment_forces(body_tree, q[some], dynamics.external[some])[:, base]))
        stretches.append(_Rows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))))
    return stretches


def _split(gaits: list[list[_Rows]], held_out: float) -> tuple[list[_Rows], list[_Rows]]:
    """Return the used frames, and the held-out frames at the end."""
    everything = [stretch for stretches in gaits for stretch in stretches]
    left = round((1 - held_out) * sum(len(stretch.y) for stretch in everything))
    used, unseen = [], []
    for stretch in everything:
        cut = min(max(left, 0), len(stretch.y))
        left -= len(stretch.y)
        used += [stretch.part(slice(0, cut))] if cut else []
        unseen += [stretch.part(slice(cut, len(stretch.y)))] if cut < len(stretch.y) else []
    return used, unseen


def _correlation(residuals: list[Array]) -> float:
    """Return the number of frames that count as one: 1 + 2 times the sum of the positive initial autocorrelations."""
    total, lag = sum(float(np.sum(values**2)) for values in residuals), 1
    length = 1.0
    while total > 0:
        together = sum(float(np.sum(values[lag:] * values[:-lag])) for values in residuals if len(values) > lag)
        if together <= 0:
            break
        length, lag = length + 2 * together / total, lag + 1
    return length


def _alike(tree: Robot) -> Array:
    """Return equations (r, p) that are zero if the segments of both sides are mirror images.

    The mirror plane is perpendicular to the line between the feet in the standing posture.
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
        sizes = SYMMETRY_TOLERANCE * m * length ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        for n in range(10):
            row = np.zeros(len(pi))
            row[10 * one + n], row[10 * two + n] = signs[n] / sizes[n], -1 / sizes[n]
            rows.append(row)
    return np.array(rows).reshape(len(rows), len(pi))


def _left(name: str) -> str:
    """Return the left segment for a right one of ``library.human`` or of an OpenSim skeleton; "" for others."""
    if name.startswith("right_"):
        return f"left_{name.removeprefix('right_')}"
    return f"{name.removesuffix('_r')}_l" if name.endswith("_r") else ""


def _covariance(A: Array, pi: Array, gamma: float, mass: float) -> Array:
    """Return the covariance (k, k) of the estimate, the inverse Hessian of the objective."""
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
    """Return the RMS residual force (N) and moment (N m) over frames."""
    q = np.concatenate([part.q for part in rows])
    tau = np.concatenate([part.Y @ pi - part.y for part in rows])
    force, moment = residual_wrench(tree, q, tau)
    return float(np.sqrt(np.mean(np.sum(force**2, axis=1)))), float(np.sqrt(np.mean(np.sum(moment**2, axis=1))))
