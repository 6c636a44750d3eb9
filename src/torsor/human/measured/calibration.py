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

from torsor.arrays import Array
from torsor.compiler import AnyKernel
from torsor.human.measured.fitting import Fit, kernels
from torsor.human.measured.normal_equations import moved_places

# Markers on skin move this much against the bone (m); they do so alike in each stride, so that all frames together tell
# no more than this many independent ones.
NOISE, INDEPENDENT = 0.005, 4.0
PLAY = 1.0  # rad: walking postures may be anything; this only keeps what no marker tells near zero
STILL = 0.09  # rad, 5 degrees: how well a person stands in the standing posture
MOST_STEPS, TOLERANCE = 60, 1e-6


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Factors (F,) of lengths, places (M, 3) of markers on their links, postures (K, n), and residuals (K, M) in m."""

    factors: Array
    local: Array
    y: Array
    errors: Array


def calibrate(
    fit: Fit, y: Array, measured: Array, weights: Array, spread: Array, masks: Array, prior: Array, standing: int = 0
) -> Calibrated:
    """Return the person that fits frames (K, M, 3) best, from postures y (K, n).

    ``spread`` (M,) tells how well the places of the markers are known (m), ``masks`` (F, links, 3) which lengths each
    factor scales, ``prior`` (F, 2) the expected factors and how well they are known. The last ``standing`` frames are of a person who stands in the standing posture.
    """
    count, n = y.shape
    M, F = len(spread), len(masks)
    base, local, factors = fit.offsets, fit.local.copy(), prior[:, 0].copy()
    known = np.where(np.isfinite(spread), 1 / spread**2, 1e-6 / NOISE**2)
    play = np.full((count, n), PLAY**-2)
    play[count - standing :] = STILL**-2
    play[:, _unbounded(fit)] = 0.0
    kernel = _derivatives(fit)
    chains = _subtree_sums(fit)
    damping = 1e-3
    weights = weights * min(1.0, INDEPENDENT / count)

    def evaluate(y: Array, factors: Array, local: Array) -> tuple[float, Array, tuple[Array, ...]]:
        offsets = base * (1 + np.einsum("f,fli->li", factors - 1, masks))
        places, by_y, turns = kernel(y, offsets, local)
        off = places - measured
        cost = (weights[..., None] * off**2).sum() / NOISE**2 + (play * y**2).sum()
        cost += (known[:, None] * (local - fit.local) ** 2).sum() + (((factors - prior[:, 0]) / prior[:, 1]) ** 2).sum()
        return float(cost), off, (by_y, turns)

    cost, off, parts = evaluate(y, factors, local)
    for _ in range(MOST_STEPS):
        by_y, turns = parts
        w = np.repeat(weights, 3, axis=1) / NOISE**2
        Jy = by_y.reshape(count, 3 * M, n)
        Jc = _by_person(fit, turns, base, masks, chains)
        r = off.reshape(count, 3 * M)
        WJy = w[..., None] * Jy
        A = np.einsum("kai,kaj->kij", WJy, Jy)
        A[:, np.arange(n), np.arange(n)] = A[:, np.arange(n), np.arange(n)] * (1 + damping) + play + 1e-6
        B = np.einsum("kai,kaj->kij", WJy, Jc)
        C = np.einsum("ka,kai,kaj->ij", w, Jc, Jc)
        firm = np.concatenate([prior[:, 1] ** -2, np.repeat(known, 3)])
        gy = np.einsum("kai,ka->ki", WJy, r) + play * y
        gc = np.einsum("ka,kai,ka->i", w, Jc, r)
        gc += firm * np.concatenate([factors - prior[:, 0], (local - fit.local).ravel()])
        C[np.arange(len(gc)), np.arange(len(gc))] += firm + damping * np.diagonal(C)
        solved = np.linalg.solve(A, np.concatenate([B, gy[..., None]], axis=2))
        S = C - np.einsum("kij,kil->jl", B, solved[..., :-1])
        dc = -np.linalg.solve(S, gc - np.einsum("kij,ki->j", B, solved[..., -1]))
        dy = -solved[..., -1] - np.einsum("kij,j->ki", solved[..., :-1], dc)
        following = y + dy, factors + dc[:F], local + dc[F:].reshape(M, 3)
        found = evaluate(*following)
        if found[0] <= cost * (1 + 1e-12):
            (y, factors, local), (cost, off, parts), damping = following, found, damping / 10
        else:
            damping = max(10 * damping, 1e-6)
        if max(np.abs(dy).max(), np.abs(dc).max()) < TOLERANCE or damping > 1e6:
            break
    return Calibrated(factors, local, y, np.linalg.norm(off, axis=2))


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


def _by_person(fit: Fit, turns: Array, base: Array, masks: Array, chains: Array) -> Array:
    """Return the derivatives of the places (K, 3 M, F + 3 M) by factors and by places on links."""
    count, M = len(turns), len(chains)
    R = turns.reshape(count, -1, 3, 3)
    parents = np.array(fit.robot.parents)
    above = np.where((parents >= 0)[None, :, None, None], R[:, parents], np.eye(3))
    ways = np.einsum("klij,flj->kfli", above, base * masks)
    by_factor = np.einsum("kfli,ml->kmif", ways, chains)
    by_place = np.zeros((count, M, 3, M, 3))
    for m, link in enumerate(fit.layout.links):
        by_place[:, m, :, m, :] = R[:, link]
    return np.concatenate([by_factor.reshape(count, 3 * M, -1), by_place.reshape(count, 3 * M, 3 * M)], axis=2)
