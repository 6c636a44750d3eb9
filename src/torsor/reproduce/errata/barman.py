"""Misprints of Barman 2020."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.reproduce.equations import barman
from torsor.reproduce.equations.form import BARMAN, Form
from torsor.reproduce.errata.erratum import Decision, Erratum, decide, error, words
from torsor.reproduce.samples import standard

STEP = 1e-30  # of complex steps


@cache
def by_complex_steps() -> list[list[Array]]:
    """Return derivatives of tau, Fp and Tp of the sample by q, qd and qdd, from the recursion of the forces alone."""
    data, _, state, load, _ = standard()
    found: list[list[list[Array]]] = [[[] for _ in range(3)] for _ in range(3)]
    for which in range(3):
        for i in range(len(data.m)):
            moved = np.array(state, complex)
            moved[which, i] += 1j * STEP
            q, qd, qdd = moved
            for rows, value in zip(found, barman.inverse_dynamics(data, q, qd, qdd, load), strict=True):
                rows[which].append(value.imag / STEP)
    return [[np.moveaxis(np.array(each), 0, -1) for each in rows] for rows in found]


def _sensitivities(place: str) -> Decision:
    """Compare all sensitivities of forces and reactions, as printed in one place and corrected."""
    data, _, state, load, _ = standard()
    errors = []
    for form in (Form(), Form([place])):
        found = barman.sensitivities(data, *state, load, form)
        parts = zip((found.tau, found.Fp, found.Tp), by_complex_steps(), strict=True)
        errors.append(max(error(a, b) for part, rows in parts for a, b in zip(part[1:], rows, strict=True)))
    return Decision(*errors)


def _forces(place: str) -> Decision:
    data, robot, state, load, external = standard()
    corrected, printed = (barman.sensitivities(data, *state, load, form).tau.x for form in (Form(), Form([place])))
    return decide(robot.inverse_dynamics(*state, external=external), corrected, printed)


def _velocities() -> Decision:
    data, robot, (q, qd, _), *_ = standard()
    truth = np.array([robot.jacobian(q, link)[3:] for link in range(robot.nv)])
    corrected, printed = (barman.velocities(data, q, qd, form)[1] for form in (Form(), Form(["3.40"])))
    return decide(truth, corrected, printed)


def _axes() -> Decision:
    robot, (q, _, _) = standard().robot, standard().state
    axis = robot.poses(q)[2, :3, :3] @ robot.jacobian(q, 2)[:3, 2]  # about which joint 3 turns
    frames = robot.poses(q)[:, :3, 2]
    return decide(axis, frames[1], frames[0])


def _reactions() -> Decision:
    data, robot, state, load, external = standard()
    _, Fp, _ = barman.inverse_dynamics(data, *state, load)
    return decide(robot.joint_wrenches(*state, external=external)[:, 3:], Fp, -Fp)


def _control_point() -> Decision:
    """Compare the derivative of torques by a control point of one joint, and by the duration at the same t / T."""
    robot, T = library.two_link().to(device="casadi"), 0.4
    q, v, a = np.random.default_rng(7).normal(size=(3, 2))
    by_q, by_v, by_a = robot.derivatives.inverse_dynamics(q, v, a)
    h = 1e-6 * T

    def torques(T_: float) -> Array:  # q(s) with s = t / T: v is proportional to 1/T, a to 1/T^2
        return np.asarray(robot.inverse_dynamics(q, v * T / T_, a * (T / T_) ** 2))

    truth = (torques(T - 2 * h) - 8 * torques(T - h) + 8 * torques(T + h) - torques(T + 2 * h)) / (12 * h)
    return decide(truth, -by_v @ v / T - 2 * by_a @ a / T, 0 * by_q @ q)


def _numbered() -> Decision:
    return words("4.13" in BARMAN, "4.1" in BARMAN)


def _arm_and_leg() -> Decision:
    """Ask whether the constraint forbids that an arm and the opposite leg swing against each other."""

    def pendulum(angle: float) -> Array:  # y is up, z forward
        return np.array([0.0, -np.cos(angle), np.sin(angle)])

    def forbids(n: Array) -> bool:
        return bool((pendulum(0.4) @ n) * (pendulum(-0.4) @ n) < 0)

    return words(forbids(np.array([0.0, 0.0, 1.0])), forbids(np.array([0.0, 1.0, 0.0])))


BRANCHES = ("spine", "neck", "right arm", "left arm", "right leg", "left leg")
SLOPES = "complex steps of the forces (eqs. 3.2 to 3.94)"
FORCES = "forces of the library"


def _of(place: str, printed: str, corrected: str, decision: Callable[[str], Decision], truth: str) -> Erratum:
    first = place.split(",")[0]
    several = "eqs." if "," in place else "eq."
    return Erratum(f"barman/eq-{first}", f"{several} {place}", printed, corrected, partial(decision, first), truth)


ERRATA = [
    Erratum(
        "barman/chapter-2",
        "chapter II, text at Figure 2.2",
        "z of frame j-1 lies along the axis of joint j+1",
        "z of frame j lies along the axis of joint j+1",
        _axes,
        "axis of joint 3 in the library",
    ),
    Erratum(
        "barman/nomenclature",
        "nomenclature, F_jp, τ_jp, F_jd, τ_jd",
        "F_jp is the force that link j exerts on link j-1, F_jd that of link j+1 on link j",
        "with eqs. 2.1, 3.67 and 3.74, F_jp is that of link j-1 on link j, F_jd that of link j on link j+1",
        _reactions,
        "joint reactions of the library",
    ),
    _of("3.13", "prismatic: ω_{j,i'} = 0", "R_jᵀ ω_{j-1,i'} for i < j", _sensitivities, SLOPES),
    _of("3.18", "i = j: ʲω_{j-1} × R_{j,i}ᵀ e_z", "ʲω_{j-1} × R_jᵀ e_z", _sensitivities, SLOPES),
    Erratum(
        "barman/eq-3.40",
        "eq. 3.40",
        "i < j: x'_{j,i'} = R_jᵀ x'_{j-1,i'}",
        "R_jᵀ x'_{j-1,i'} + Δx'_{j,i'}",
        _velocities,
        "Jacobian of the library",
    ),
    _of("3.51", "Δx''_{j,i''} = ω_{j,i''} × Δx_j", "ω'_{j,i''} × Δx_j", _sensitivities, SLOPES),
    _of(
        "3.52",
        "prismatic, i = j: ω_j × R_jᵀ e_z + ω_j × Δx'_{j,i}",
        "ω'_j × R_jᵀ e_z + ω_j × Δx'_{j,i}",
        _sensitivities,
        SLOPES,
    ),
    _of(
        "3.56, 3.58, 3.61",
        "d'_G R_jᵀ e_z as the last term of 3.56; d'_{G,i''} in 3.58; x'_{G,i} in 3.61",
        "second derivatives: d''_G, d''_{G,i''}, x''_{G,i}",
        _forces,
        FORCES,
    ),
    _of(
        "3.67",
        "F_G = m (x''_G + ⁰Rᵀ g)",
        "m (x''_G - ⁰Rᵀ g) with the acceleration g of a falling body",
        _forces,
        FORCES,
    ),
    _of("3.76", "j = k: F^e = ⁰R_{k,i}ᵀ ⁰F^e", "⁰R_kᵀ ⁰F^e", _forces, FORCES),
    _of(
        "3.79, 3.87, 3.91",
        "F_{jp,i'} = F_{jp,i''} = τ_{jp,i'} = τ_{jp,i''} = 0",
        "an external load leaves them unchanged",
        _sensitivities,
        SLOPES,
    ),
    _of(
        "3.83",
        "τ_{jp,i} without sensitivities of the levers",
        "prismatic, i = j: + Δx_{j,i} × (F_jd + F_Gj)",
        _sensitivities,
        SLOPES,
    ),
    _of(
        "3.84, 3.85, 3.88, 3.89",
        "R_{j+1} τ^e_{(j+1)d}, the same symbol in the chains of force and moment",
        "τ^ef in 3.84 and 3.85, τ^em in 3.88 and 3.89; the sum of both in each would count twice",
        lambda _: _forces("3.84"),
        FORCES,
    ),
    _of("3.85", "j = k: Δx_j × F^e_{,i}", "(r_k + Δx_j) × F^e_{,i}", _sensitivities, SLOPES),
    Erratum(
        "barman/eq-4.14",
        "text after eq. 4.14",
        "the state variables calculated from Eq. 4.1",
        "Eq. 4.13: the numbers of chapter IV begin there",
        _numbered,
        "list of the equations",
    ),
    Erratum(
        "barman/eq-4.15",
        "eq. 4.15",
        "∂τ/∂p_i = ∂τ/∂q ∂q/∂p_i + ...; none for the duration, which is a design variable also",
        "sums over all joints; at the same t/T, ∂τ/∂T = -(∂τ/∂q' q' + 2 ∂τ/∂q'' q'') / T",
        _control_point,
        "fourth-order differences of the torques by T",
    ),
    Erratum(
        "barman/section-5.1",
        "section 5.1, branches",
        "the five physical branches are spine, neck, right arm, left arm, right leg, and left leg",
        "six; five of them end freely: neck, arms and legs",
        lambda: words(len(BRANCHES) == 6, len(BRANCHES) == 5),
        "number of the names",
    ),
    Erratum(
        "barman/eq-5.6",
        "eq. 5.6",
        "n_z is the unit vector along the vertical direction",
        "the unit vector forwards (y is up in eq. 5.4): arms and legs hang down in any case",
        _arm_and_leg,
        "an arm and a leg that swing against each other",
    ),
]
