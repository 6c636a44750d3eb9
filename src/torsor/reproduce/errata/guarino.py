"""Misprints of Guarino Lo Bianco 2009."""

from functools import partial

import numpy as np

from torsor import library
from torsor.reproduce.equations import guarino
from torsor.reproduce.equations.form import Form
from torsor.reproduce.errata.erratum import Decision, Erratum, decide, words
from torsor.reproduce.samples import modified


def _rates(place: str) -> Decision:
    data, robot, motion = modified()
    corrected, printed = (guarino.force_rates(data, *motion, form=form).tau_rate for form in (Form(), Form([place])))
    return decide(robot.force_rate(*motion)[1], corrected, printed)


def _forces() -> Decision:
    data, robot, motion = modified()
    corrected, printed = (guarino.force_rates(data, *motion, form=form).tau for form in (Form(), Form(["19"])))
    return decide(robot.inverse_dynamics(*motion[:3]), corrected, printed)


def _rotation() -> Decision:
    data, robot, (q, *_) = modified()
    R, _ = guarino.placement(data.a[0], data.alpha[0], data.theta[0] + q[0], data.d[0])
    return decide(robot.poses(q)[0, :3, :3], R, R.T)


def _inertia() -> Decision:
    data, robot, (q, *_) = modified()
    R, inertia, w = robot.poses(q)[1, :3, :3], data.I[1], np.array([0.3, -0.7, 0.5])
    energy = (R.T @ w) @ inertia @ (R.T @ w)  # in the axes of the link
    return decide(energy, w @ (R @ inertia @ R.T) @ w, w @ (R @ inertia @ R) @ w)


def _tip() -> Decision:
    data, robot, motion = modified()
    force, moment = np.random.default_rng(8).normal(size=(2, 3))
    external = np.zeros((robot.nv, 6))
    external[-1] = np.concatenate([moment, force])  # on the last link
    corrected, printed = (
        guarino.inverse_dynamics(data, *motion[:3], sign * force, sign * moment)[0] for sign in (-1, 1)
    )
    return decide(robot.inverse_dynamics(*motion[:3], external=external), corrected, printed)


def _jerk() -> Decision:
    s = np.array([0.0, 1.0])
    quintic, seventh = 60 - 360 * s + 360 * s**2, 210 * s * (1 - s) * (4 - 20 * s + 20 * s**2)
    velocity, acceleration = 30 * (s - s**2) ** 2, 60 * s - 180 * s**2 + 120 * s**3
    rests = not np.any(velocity) and not np.any(acceleration)
    return words(rests and not np.any(seventh), not np.any(quintic))


# Table II as printed: five numbers of six, of Ixx, Iyy and Izz two remain.
PRINTED = ((0.276, 0.071), (0.108, 0.100), (2.51, 2.51), (0.002, 0.001), (0.003, 0.0004), (0.013, 0.0003))


def _table() -> Decision:
    """Ask whether the inertias of the library are those printed, and whether a row has as many as the table's head."""
    moments = [np.diag(link.inertia) for link in library.stanford().links]
    is_whole = all(set(row) <= set(np.round(found, 6)) for row, found in zip(PRINTED, moments, strict=True))
    return words(is_whole and all(len(found) == 3 for found in moments), all(len(row) == 3 for row in PRINTED))


RATES = "force rates of the library"
ERRATA = [
    Erratum(
        "guarino/section-2",
        "section II, rotation matrix",
        "ⁱ_{i+1}R = ⁱ_{i+1}Rᵀ",
        "ⁱ_{i+1}R = (^{i+1}_iR)ᵀ",
        _rotation,
        "poses of the library",
    ),
    Erratum(
        "guarino/eq-32", "eq. 32", "I_i = ⁰R ⁱI_i ⁰R", "⁰_iR ⁱI_i ⁱ_0R", _inertia, "rotational energy in link axes"
    ),
    Erratum("guarino/eq-5", "eqs. 5, 26, 28", "θ'' as the last pure term", "θ'''", partial(_rates, "5"), RATES),
    Erratum(
        "guarino/eq-8",
        "eq. 8 and its derivation",
        "d'' z_0 as the first pure term; 3 d' ω × z in the derivation",
        "d''' z_0; 3 d'' ω × z + 3 d' γ × z",
        partial(_rates, "8"),
        RATES,
    ),
    Erratum(
        "guarino/eq-17",
        "eq. 17",
        "(ω × p + d' z') × R f'",
        "(ω × p + d' z) × R f, with the unit vector z of frame i+1 and f, not its rate",
        partial(_rates, "17"),
        RATES,
    ),
    Erratum(
        "guarino/eq-19",
        "eqs. 18 to 21",
        "the block of the rates τ' stands at (19), (20) and (21)",
        "(18) and (19) are τ of revolute and prismatic joints, (20) and (21) their rates",
        _forces,
        "forces of the library",
    ),
    Erratum(
        "guarino/section-3.b",
        "section III.B, loads",
        "f_{N+1}, n_{N+1} are the external efforts acting on the last link",
        "as they are added in eqs. 14 and 15, those that the last link exerts on its environment",
        _tip,
        "a load on the last link of the library's robot",
    ),
    Erratum(
        "guarino/section-5",
        "section V, trajectory",
        "a quintic with zero velocity, acceleration and jerk at both ends",
        "a quintic has zero velocity and acceleration there; a polynomial of order 7 has zero jerk also",
        _jerk,
        "polynomials with these ends",
    ),
    Erratum(
        "guarino/table-2-column",
        "Table II",
        "three moments of inertia in the head, two in each row",
        "the lost column is Izz, in row 6 Iyy: 0.255, 0.018, 0.006, 0.001, 0.003, 0.013 (from published data)",
        _table,
        "numbers of a row",
    ),
]
