"""Khalil 2010, sections 6 and 7: elastic joints, and a base that moves."""

from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.reproduce.documents.drawing import tidy
from torsor.reproduce.equations import khalil
from torsor.reproduce.equations import khalil_recursive as recursive
from torsor.reproduce.errata.khalil_models import BENT, ELASTIC, elastic_case, free_base
from torsor.reproduce.item import Item, Kind, Outcome, claim, only, same
from torsor.reproduce.samples import tree
from torsor.robot.robot import Robot


def _elastic() -> Outcome:
    data, _, (q, v, a), *_ = tree()
    weak = data._replace(Ia=np.where(ELASTIC > 0, 0.0, data.Ia))
    found = recursive.elastic_inverse(weak, q, v, a, tree().wrenches, ELASTIC, BENT)
    accelerations, forces = elastic_case()
    smooth = weak._replace(Fs=0 * data.Fs, Fv=0 * data.Fv)  # eq. 82 has no friction
    A, H = khalil.direct_model(smooth, q, v, tree().fe, tree().me)
    rigid, soft = np.flatnonzero(ELASTIC == 0), np.flatnonzero(ELASTIC)
    pull = -ELASTIC[soft] * BENT[soft]
    split = np.linalg.solve(A[np.ix_(soft, soft)], pull - A[np.ix_(soft, rigid)] @ a[rigid] - H[soft])
    Gamma = np.where(ELASTIC > 0, -ELASTIC * BENT, found.Gamma)  # eq. 69
    direct = recursive.direct_dynamics(smooth, q, v, Gamma, tree().wrenches)
    return Outcome(
        [
            same("direct model, section 6.2", direct.qdd, accelerations, 1e-10),
            same("elastic accelerations, eq. 80", found.qdd[soft], accelerations[soft]),
            same("the same by eq. 71", split, accelerations[soft], 1e-10),
            same("forces of rigid joints, eq. 82", found.Gamma[rigid], forces[rigid], unit="N m, N"),
        ]
    )


def _matrices_of_free_base() -> tuple[Array, Array]:
    """Return (A, H) of eq. 83 by the inverse model, which goes on to the base (section 7.1, first method)."""
    data, _, (q, v, _), fe, me, base, _ = tree()
    n = len(q)
    calm = data._replace(Fs=np.zeros(n), Fv=np.zeros(n))

    def model(robot: khalil.Robot, base: khalil.Base, motion: tuple[Array, Array], *loads: Array) -> Array:
        found, wrench = khalil.base_wrench(robot, base._replace(Vd=motion[1][:6]), q, motion[0], motion[1][6:], *loads)
        return np.concatenate([wrench, found.Gamma])

    still = base._replace(w=np.zeros(3))
    columns = [model(calm, still, (np.zeros(n), unit)) for unit in np.eye(6 + n)]
    return np.array(columns).T, model(data, base, (v, np.zeros(6 + n)), fe, me)


def _base_matrices() -> Outcome:
    _, _, (_, _, a), *_ = tree()
    A, H = _matrices_of_free_base()
    acceleration, forces = free_base()
    moved = -np.linalg.solve(A[:6, :6], H[:6] + A[:6, 6:] @ a)
    both = np.linalg.solve(A, np.r_[-H[:6], forces - H[6:]])
    return Outcome(
        [
            same("A is symmetric, eq. 84", A.T, A),
            same("V'_0 - g, eq. 86", moved, acceleration, 1e-10, "m/s², rad/s²"),
            same("Γ, eq. 87", A[6:, :6] @ moved + A[6:, 6:] @ a + H[6:], forces, 1e-10, "N m, N"),
            same("V'_0 - g and q'', eq. 88", both, np.r_[acceleration, a], 1e-10),
        ]
    )


def _base_inverse() -> Outcome:
    data, _, (q, v, a), fe, me, base, _ = tree()
    found = recursive.moving_base_inverse(data, q, v, a, tree().wrenches, base)
    acceleration, forces = free_base()
    left = khalil.base_wrench(data, base._replace(Vd=found.Vd_0), q, v, a, fe, me)[1]
    return Outcome(
        [
            same("V'_0 - g, eq. 97", found.Vd_0, acceleration, unit="m/s², rad/s²"),
            same("Γ, eq. 100", found.Gamma, forces, unit="N m, N"),
            claim("wrench left on the base", "0", f"{np.abs(left).max():.1e}", bool(np.abs(left).max() < 1e-10)),
        ]
    )


def _base_direct() -> Outcome:
    data, _, (q, v, _), _, _, base, floating = tree()
    acceleration, forces = free_base()
    found = recursive.direct_dynamics(data, q, v, forces, tree().wrenches, base)
    state = np.r_[np.zeros(6), 1.0, q], np.r_[base.w, np.zeros(3), v]
    loads = np.vstack([np.zeros((1, 6)), tree().external])
    ours = floating.forward_dynamics(*state, np.r_[np.zeros(6), forces], external=loads)
    return Outcome(
        [
            same("q'', eq. 110", found.qdd, ours[6:], 1e-10),
            same("V'_0 - g, eq. 109", found.Vd_0, acceleration, 1e-10, "m/s², rad/s²"),
        ]
    )


@cache
def _swim() -> tuple[Robot, Array, Array]:
    """Return an eel that bends in a travelling wave without water, times, and its coordinates: eqs. 89 to 97."""
    eel = library.eel(links=8).to(device="casadi")
    n, step, seconds = eel.nv - 6, 0.005, 1.0
    phase = 2 * np.pi * np.arange(n) / n
    frequency = 2 * np.pi

    def wave(t: float) -> tuple[Array, Array, Array]:
        angle, ramp, slope = frequency * t - phase, 0.4 * t * t, 0.8 * t  # grows from rest
        s, c = np.sin(angle), np.cos(angle)
        v = slope * s + ramp * frequency * c
        return ramp * s, v, 0.8 * s + 2 * slope * frequency * c - ramp * frequency**2 * s

    def rate(t: float, q: Array, v: Array) -> Array:
        bend, turning, bending = wave(t)
        full_q, full_v = np.r_[q[:7], bend], np.r_[v[:6], turning]
        a, _ = eel.hybrid_dynamics(full_q, full_v, np.r_[np.zeros(6), bending], np.zeros(eel.nv), forced=["root"])
        return np.asarray(a[:6])

    q, v = np.r_[eel.neutral()[:7], wave(0.0)[0]], np.r_[np.zeros(6), wave(0.0)[1]]
    times, path = [0.0], [q]
    for k in range(round(seconds / step)):
        t = k * step
        half = v[:6] + step / 2 * rate(t, q, v)  # midpoint rule
        middle = eel.integrate(q, np.r_[step / 2 * v[:6], np.zeros(n)])
        a = rate(t + step / 2, middle, np.r_[half, v[6:]])
        moved = eel.integrate(q, np.r_[step * half, np.zeros(n)])
        bend, turning, _ = wave(t + step)
        q, v = np.r_[moved[:7], bend], np.r_[v[:6] + step * a, turning]
        times, path = [*times, t + step], [*path, q]
    return eel, np.array(times), np.array(path)


def _eel() -> Outcome:
    eel, times, path = _swim()
    centre = eel.center_of_mass(path)
    drift = float(np.abs(centre - centre[0]).max())
    turned = 2 * np.degrees(np.arcsin(np.clip(path[:, 5], -1, 1)))
    rows = [
        claim("centre of mass without water", "at rest (no external force)", f"moves by {drift:.1e} m", drift < 1e-4),
        only("head turns by at most", f"{np.abs(turned).max():.2f} degrees"),
    ]

    def draw(figure: Any) -> None:
        body, head = figure.subplots(1, 2)
        for k in np.linspace(0, len(path) - 1, 6).round().astype(int):
            poses = eel.poses(path[k])
            points = np.vstack([poses[:, :3, 3], (poses[-1] @ [0.1, 0, 0, 1])[:3]])
            body.plot(points[:, 0], points[:, 1], "o-", markersize=3, label=f"{times[k]:.1f} s")
        tidy(body, "an eel bends, its base is free (eqs. 89 to 97)", "x (m)", "y (m)")
        head.plot(times, 1e3 * path[:, 0], label="x (mm)")
        head.plot(times, 1e3 * path[:, 1], label="y (mm)")
        head.plot(times, turned, label="turn (degrees)")
        tidy(head, "motion of the head", "s")

    return Outcome(rows, draw, (10.0, 4.0))


A = Kind.ALGORITHM
BASE_ITEMS = [
    Item("khalil/elastic", "elastic joints", A, "section 6, eqs. 67 to 82", _elastic),
    Item("khalil/base-matrices", "moving base by A and H", A, "section 7.1, eqs. 83 to 88", _base_matrices),
    Item("khalil/base-inverse", "moving base, inverse", A, "section 7.2, eqs. 89 to 100", _base_inverse),
    Item("khalil/base-direct", "moving base, direct", A, "section 7.3, eqs. 101 to 112", _base_direct),
    Item("khalil/eel", "an eel that bends", A, "section 7.2, last paragraph", _eel, seconds=3),
]
