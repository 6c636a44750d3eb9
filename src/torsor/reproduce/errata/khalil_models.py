"""Misprints of Khalil 2010: parallel robots, elastic joints, and a base that moves."""

from dataclasses import replace
from functools import cache, partial

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.reproduce.equations import khalil
from torsor.reproduce.equations import khalil_recursive as recursive
from torsor.reproduce.equations.form import Form
from torsor.reproduce.errata.erratum import Decision, Erratum, decide, error, words
from torsor.reproduce.samples import tree

ELASTIC = np.array([0.0, 100.0, 0.0, 50.0, 0.0, 0.0])  # stiffness of the tree's joints
BENT = np.array([0.0, 0.1, 0.0, -0.2, 0.0, 0.0])  # and their deflections


def _legs() -> Decision:
    """Compare the rates of the legs' drives with those that are given: (62)."""
    robot = library.three_rrr().to(device="casadi")
    J_p, legs = robot.jacobian(robot.home), robot.leg_velocities(robot.home, np.eye(3)).T  # J_i^-1 J_vi
    drives = legs[[robot.coordinate_names.index(name) for name in robot.driven_names]]
    return decide(np.eye(3), drives @ J_p, drives @ np.linalg.inv(J_p))


def elastic_case() -> tuple[Array, Array]:
    """Return accelerations and forces of the tree with two elastic joints, by the hybrid dynamics of the library.

    Example:
        >>> [each.shape for each in elastic_case()]
        [(6,), (6,)]
    """
    _, robot, (q, v, a), *_ = tree()
    robot = robot.without_friction()
    weak = [replace(each, rotor_inertia=0.0) if K else each for each, K in zip(robot.joints, ELASTIC, strict=True)]
    springs = replace(robot, joints=tuple(weak))
    names = [name for name, K in zip(robot.joint_names, ELASTIC, strict=True) if K]
    for joint, K, bent, at in zip(robot.joint_names, ELASTIC, BENT, q, strict=True):
        if K:
            springs = springs.with_spring(joint, float(K), rest=float(at - bent))
    zero = np.zeros(robot.nv)
    return springs.hybrid_dynamics(q, v, a, zero, forced=names, external=tree().external)


def _elastic(place: str) -> Decision:
    data, _, (q, v, a), *_ = tree()
    weak = data._replace(Ia=np.where(ELASTIC > 0, 0.0, data.Ia))
    accelerations, forces = elastic_case()
    errors = []
    for form in (Form(), Form([place])):
        found = recursive.elastic_inverse(weak, q, v, a, tree().wrenches, ELASTIC, BENT, form)
        errors.append(max(error(found.qdd, accelerations), error(found.Gamma, forces)))
    return Decision(*errors)


@cache
def free_base() -> tuple[Array, Array]:
    """Return the base's acceleration minus gravity (classical, in base axes) and the joints' forces, by the library.

    Example:
        >>> [each.shape for each in free_base()]
        [(6,), (6,)]
    """
    _, _, (q, v, a), _, _, base, floating = tree()
    state = np.r_[np.zeros(6), 1.0, q], np.r_[base.w, np.zeros(3), v]
    loads = np.vstack([np.zeros((1, 6)), tree().external])
    zero = np.zeros(floating.nv)
    found, forces = floating.hybrid_dynamics(*state, np.r_[np.zeros(6), a], zero, forced=["root"], external=loads)
    moved = floating.accelerations(*state, found)[0]
    return np.r_[moved[3:] - floating.gravity, moved[:3]], forces[6:]


def _base(place: str) -> Decision:
    data, _, (q, v, a), _, _, base, _ = tree()
    acceleration, forces = free_base()
    errors = []
    for form in (Form(), Form([place])):
        found = recursive.moving_base_inverse(data, q, v, a, tree().wrenches, base, form)
        errors.append(max(error(found.Vd_0, acceleration), error(found.Gamma, forces)))
    return Decision(*errors)


def _base_direct(place: str) -> Decision:
    data, _, (q, v, a), _, _, base, _ = tree()
    _, forces = free_base()
    corrected, printed = (
        recursive.direct_dynamics(data, q, v, forces, tree().wrenches, base, form).qdd
        for form in (Form(), Form([place]))
    )
    return decide(a, corrected, printed)


def _base_at_rest() -> Decision:
    """Compare betac_0 with what a base without acceleration needs: H_1 + A_12 qdd."""
    data, _, (q, v, a), fe, me, base, _ = tree()
    _, needed = khalil.base_wrench(data, base, q, v, a, fe, me)
    found = recursive.moving_base_inverse(data, q, v, a, tree().wrenches, base)
    return decide(found.beta_0, -needed, needed)


def _fixed_frame() -> Decision:
    """Ask which joint may be fixed (sigma = 2) so that the base is a link of its own and all joints remain."""
    floating = tree().floating
    joints, first = tree().robot.nv, tree().robot.joint_names[0]
    return words(floating.nv - 6 == joints, floating.fix(first).nv - 6 == joints)


BASE, BASE_MOVES = "hybrid dynamics of the library on a free base", "accelerations on a free base"
MODEL_ERRATA = [
    Erratum(
        "khalil/eq-62",
        "eq. 62",
        "∂q'_i/∂q'_a = J_i⁻¹ J_vi J_r",
        "J_i⁻¹ J_vi J_p, with J_p of eq. 60; no J_r is defined (J_p⁻¹ is compared)",
        _legs,
        "drives of a planar parallel robot of the library",
    ),
    Erratum(
        "khalil/eq-79",
        "eqs. 79 to 81",
        "ʲT_iᵀ in front of V'_i",
        "ʲT_i (without a transform at all is compared)",
        partial(_elastic, "79"),
        "hybrid dynamics of the library with springs",
    ),
    Erratum(
        "khalil/eq-81",
        "eq. 81",
        "V'_j for elastic joints only",
        "for every joint (V'_j = ʲT_i V'_i of rigid ones is compared)",
        partial(_elastic, "81"),
        "hybrid dynamics of the library with springs",
    ),
    Erratum(
        "khalil/section-7.1",
        "section 7.1, second method",
        "link 1 is the base: put σ_2 = 2",
        "σ_1 = 2: the frame of the base is fixed on the virtual link 0, and joint 2 still moves",
        _fixed_frame,
        "degrees of freedom of a tree on a free base",
    ),
    Erratum(
        "khalil/eq-95",
        "eq. 95",
        "Jᶜ_j = Jᶜ_j + Σ ...",
        "an assignment, which starts from J_j (from 0 is compared)",
        partial(_base, "95"),
        BASE,
    ),
    Erratum(
        "khalil/eq-96",
        "eq. 96",
        "βᶜ_j - Σ Tᵀ βᶜ_k + Tᵀ Jᶜ_k ζ_k",
        "βᶜ_j + Σ (Tᵀ βᶜ_k - Tᵀ Jᶜ_k ζ_k)",
        partial(_base, "96"),
        BASE,
    ),
    Erratum(
        "khalil/eq-97",
        "text after eq. 97",
        "comparing with (68), βᶜ_0 = H_1 + A_12 q''",
        "comparing with (86), βᶜ_0 = -(H_1 + A_12 q'')",
        _base_at_rest,
        "wrench of a base without acceleration",
    ),
    Erratum(
        "khalil/eq-98",
        "eq. 98 and the text before it",
        "ʲT_j V'_i; by equations (6) and (22)",
        "ʲT_i V'_i; by (14) and (94)",
        partial(_base, "98"),
        BASE,
    ),
    Erratum(
        "khalil/eq-105",
        "eqs. 105, 108",
        "J*_i = J_i + ..., β*_i = β_i - ...",
        "they accumulate on J*_i and β*_i over all children",
        partial(_base_direct, "105"),
        BASE_MOVES,
    ),
    Erratum(
        "khalil/eq-107",
        "eq. 107",
        "a_j = K_j γ_j + ...",
        "α_j = K_j γ_j + ... (without α_j is compared)",
        partial(_base_direct, "107"),
        BASE_MOVES,
    ),
    Erratum(
        "khalil/eq-110",
        "eqs. 110, 112",
        "ⁱV'_{j-1}; ⁱV'_j on the left",
        "ʲT_i ⁱV'_i; ʲV'_j",
        partial(_base_direct, "110"),
        BASE_MOVES,
    ),
]
