"""Scaling: lengths of segments and places of markers from a recording, by one least squares over frames and person.

    minimise  sum over frames and markers of w |x(y_k, f, m) - measured|^2 / noise^2
            + sum of |m - m_0|^2 / spread^2 + sum of (f - f_0)^2 / doubt^2 + sum of |y_k - posture|^2 / play^2

over the postures y_k of some frames, the factors f of the lengths and the places m of the markers on their links. Free
markers have no m_0. The frames are eliminated one by one (Schur complement), so that what is left has the size of the
person. All derivatives are exact.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.compiler import AnyKernel
from torsor.human.measured.fitting import Fit, kernels
from torsor.human.measured.normal_equations import moved_places

# Markers on skin move this much against the bone (m); they do so alike in each stride, so that all frames together tell
# no more than this many independent ones.
NOISE, INDEPENDENT = 0.005, 4.0
PLAY = 1.0  # rad: walking postures may be anything; this only keeps what no marker tells near zero
STILL = 0.09  # rad, 5 degrees: how well a person stands in the standing posture
MOST_STEPS, TOLERANCE, MOST_DAMPING = 60, 1e-6, 1e6


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Factors (F,) of lengths, places (M, 3) of markers on their links, postures (K, n), and residuals (K, M) in m."""

    factors: Array
    local: Array
    y: Array
    errors: Array


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known of a person before the recording.

    ``spread`` (M,) tells how well the places of the markers on their links are known (m), ``masks`` (F, links, 3) which
    lengths each factor scales, ``ends`` (F, M, 3) how far it moves the places of markers on their links, ``factors``
    (F, 2) the expected factors and how well they are known.
    """

    spread: Array
    masks: Array
    ends: Array
    factors: Array

    @property
    def firmness(self) -> Array:
        """The weights (F + 3 M,) of what is known of factors and places."""
        places = np.where(np.isfinite(self.spread), 1 / self.spread**2, 1e-6 / NOISE**2)
        return np.concatenate([self.factors[:, 1] ** -2, np.repeat(places, 3)])


def calibrate(fit: Fit, y: Array, measured: Array, weights: Array, known: Knowledge, standing: int = 0) -> Calibrated:
    """Return the person that fits frames (K, M, 3) best, from postures y (K, n).

    The last ``standing`` frames are of a person who stands in the standing posture.
    """
    count, n = y.shape
    M, F = measured.shape[1], len(known.factors)
    play = np.full((count, n), PLAY**-2)
    play[count - standing :] = STILL**-2
    play[:, _unbounded(fit)] = 0.0
    kernel, chains, firm = _derivatives(fit), _subtree_sums(fit), known.firmness
    w = np.repeat(weights, 3, axis=1) * min(1.0, INDEPENDENT / count) / NOISE**2
    expected = np.concatenate([known.factors[:, 0], fit.local.ravel()])

    def evaluate(y: Array, person: Array) -> tuple[float, Array, Array, Array]:
        offsets = fit.offsets * (1 + np.einsum("f,fli->li", person[:F] - 1, known.masks))
        places, by_y, turns = kernel(y, offsets, _on_links(person, known))
        off = (places - measured).reshape(count, 3 * M)
        cost = (w * off**2).sum() + (play * y**2).sum() + (firm * (person - expected) ** 2).sum()
        return float(cost), off, by_y.reshape(count, 3 * M, n), turns

    person, damping, each = expected.copy(), 1e-3, np.arange(n)
    cost, off, by_y, turns = evaluate(y, person)
    for _ in range(MOST_STEPS):
        by_person = _by_person(fit, turns, known, chains)
        weighed = np.swapaxes(w[..., None] * by_y, 1, 2)
        A, B = weighed @ by_y, weighed @ by_person
        A[:, each, each] = A[:, each, each] * (1 + damping) + play + 1e-6
        flat = by_person.reshape(count * 3 * M, -1)
        C = (w.reshape(-1, 1) * flat).T @ flat
        C[np.diag_indices_from(C)] += firm + damping * np.diagonal(C)
        right = (weighed @ off[..., None])[..., 0] + play * y
        rest = flat.T @ (w * off).ravel() + firm * (person - expected)
        # Frames are eliminated: y_k = -A^-1 (right_k + B_k person).
        solved = np.linalg.solve(A, np.concatenate([B, right[..., None]], axis=2))
        across = np.swapaxes(B, 1, 2) @ solved
        step = -np.linalg.solve(C - across[..., :-1].sum(axis=0), rest - across[..., -1].sum(axis=0))
        change = -solved[..., -1] - solved[..., :-1] @ step
        found = evaluate(y + change, person + step)
        if found[0] <= cost * (1 + 1e-12):
            y, person, damping = y + change, person + step, damping / 10
            cost, off, by_y, turns = found
        else:
            damping = max(10 * damping, 1e-6)
        if max(np.abs(change).max(), np.abs(step).max()) < TOLERANCE or damping > MOST_DAMPING:
            break
    errors = np.linalg.norm(off.reshape(count, M, 3), axis=2)
    return Calibrated(person[:F], _on_links(person, known), y, errors)


def _on_links(person: Array, known: Knowledge) -> Array:
    """Return the places (M, 3) of the markers on their links."""
    F = len(known.factors)
    return np.asarray(person[F:].reshape(-1, 3) + np.einsum("f,fmi->mi", person[:F] - 1, known.ends))


def _unbounded(fit: Fit) -> list[int]:
    """Return the variables without ranges: those of the whole body."""
    return np.flatnonzero(~np.isfinite(fit.lower) | ~np.isfinite(fit.upper)).tolist()


def _derivatives(fit: Fit) -> AnyKernel:
    """Return the kernel of the places (M, 3), their derivatives by y (3 M, n) and the rotations of all links."""

    def traced() -> ca.Function:
        inputs, places, turns = moved_places(fit.robot, fit.layout)
        column = ca.vertcat(*places)
        outputs = [ca.horzcat(*places).T, ca.densify(ca.jacobian(column, inputs["y"])), ca.vertcat(*turns)]
        return ca.Function("calibration", list(inputs.values()), ca.cse(outputs), list(inputs), ["x", "by_y", "R"])

    return kernels().kernel(("calibration", fit.identity), traced, quick=True)


def _subtree_sums(fit: Fit) -> Array:
    """Return whether the origin of joint l moves marker m, (M, links)."""
    parents = fit.robot.parents
    found = np.zeros((len(fit.layout.links), len(parents)))
    for m, link in enumerate(fit.layout.links):
        while link >= 0:
            found[m, link] = 1.0
            link = parents[link]
    return found


def _by_person(fit: Fit, turns: Array, known: Knowledge, chains: Array) -> Array:
    """Return the derivatives of the places (K, 3 M, F + 3 M) by factors and by places on links."""
    count, M = len(turns), len(chains)
    R = turns.reshape(count, -1, 3, 3)
    parents = np.array(fit.robot.parents)
    above = np.where((parents >= 0)[None, :, None, None], R[:, parents], np.eye(3))
    ways = np.einsum("klij,flj->kfli", above, fit.offsets * known.masks)
    own = R[:, list(fit.layout.links)]
    by_factor = np.einsum("kfli,ml->kmif", ways, chains) + np.einsum("kmij,fmj->kmif", own, known.ends)
    by_place = np.zeros((count, M, 3, M, 3))
    by_place[:, np.arange(M), :, np.arange(M), :] = np.swapaxes(own, 0, 1)
    return np.concatenate([by_factor.reshape(count, 3 * M, -1), by_place.reshape(count, 3 * M, 3 * M)], axis=2)
