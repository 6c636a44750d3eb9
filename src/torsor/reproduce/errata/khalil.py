"""Misprints of Khalil 2010: the description of robots, and the models of trees, loops and parallel robots."""

from dataclasses import replace
from functools import cache, partial

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.mechanism import Loop
from torsor.reproduce.equations import khalil
from torsor.reproduce.equations import khalil as recursive
from torsor.reproduce.equations.form import Form
from torsor.reproduce.errata.erratum import Decision, Erratum, decide, error, words
from torsor.reproduce.samples import tree

# Misprints of Khalil 2010: parallel robots, elastic joints, and a base that moves.
ELASTIC = np.array([0.0, 100.0, 0.0, 50.0, 0.0, 0.0])  # stiffness of the tree's joints
BENT = np.array([0.0, 0.1, 0.0, -0.2, 0.0, 0.0])  # and their deflections


def _legs() -> Decision:
    """Compare the rates of the legs' drives with those that are given: (62)."""
    robot = library.three_rrr().to(device="casadi")
    J_p, legs = robot.jacobian(robot.home), robot.leg_velocities(robot.home, np.eye(3)).T  # J_i^-1 J_vi
    drives = legs[[robot.coordinate_names.index(name) for name in robot.driven_names]]
    return decide(np.eye(3), drives @ J_p, drives @ np.linalg.inv(J_p))


def elastic_case() -> tuple[Array, Array]:
    """Return accelerations and forces of the tree with two elastic joints, by the hybrid dynamics of the library."""
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
    """Return the base's acceleration minus gravity (classical, in base axes) and the joints' forces, by the library."""
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


def _pose(last: float) -> Decision:
    R, P = khalil.placements(tree().data, tree().state[0])[0]

    def pose(last: float) -> Array:
        return np.block([[R, P[:, None]], [np.zeros((1, 3)), np.full((1, 1), last)]])

    point = np.array([0.1, 0.2, 0.3, 1.0])
    return decide([*(R @ point[:3] + P), 1.0], pose(1.0) @ point, pose(last) @ point)


def _cut_links() -> Decision:
    """Ask whether the links that a cut joint of the five-bar connects, counted from 1, are in the printed range."""
    robot = library.five_bar()
    loop, n = robot.loops[0], len(robot.links)
    assert isinstance(loop, Loop)
    ends = [robot.place(frame).link + 1 for frame in (loop.a, loop.b)]
    return words(all(each <= n for each in ends), all(each < n for each in ends))


def _solved() -> Decision:
    data, robot, (q, v, a), fe, me, *_ = tree()
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    A, H = khalil.direct_model(data, q, v, fe, me)
    found = np.linalg.solve(A, Gamma - H)
    return decide(a, found, -found)


def _axis_of_three() -> Decision:
    """Ask whether a twist and the joint's axis have as many components."""
    step = recursive.Pass(tree().data, *tree().state[:2], tree().wrenches)
    return words(step.a[0].shape == step.gamma[0].shape == (6,), np.zeros(3).shape == step.gamma[0].shape)


def _axis_of_seven() -> Decision:
    printed = np.array([0, 0, 0, 0, 0, 0, 1])  # (16) with sigma = 0
    axis = recursive.Pass(tree().data, *tree().state[:2], tree().wrenches).a[0]
    return words(axis.shape == (6,), printed.shape == (6,))


def _forces(place: str) -> Decision:
    data, robot, state, fe, me, *_ = tree()
    corrected, printed = (khalil.inverse_dynamics(data, *state, fe, me, form).Gamma for form in (Form(), Form([place])))
    return decide(robot.inverse_dynamics(*state, external=tree().external), corrected, printed)


def _direct(place: str) -> Decision:
    data, robot, (q, v, a), *_ = tree()
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    corrected, printed = (
        recursive.direct_dynamics(data, q, v, Gamma, tree().wrenches, form=form).qdd for form in (Form(), Form([place]))
    )
    return decide(robot.forward_dynamics(q, v, Gamma, external=tree().external), corrected, printed)


def _equilibrium(sign: float, is_transposed: bool) -> Decision:
    """Compare J Vd of the last inner link with its wrenches: (32), (51), (25)."""
    data, _, (q, v, a), fe, me, *_ = tree()
    _, f, m = khalil.inverse_dynamics(data, q, v, a, fe, me)
    step = recursive.Pass(data, q, v, tree().wrenches)
    reactions = np.hstack([f, m])
    j = int(data.antecedent[-1])
    Vd, twist, chain = recursive.gravity_twist(data), np.zeros(6), [j]
    while data.antecedent[chain[0]] >= 0:
        chain.insert(0, int(data.antecedent[chain[0]]))
    for k in chain:
        Vd = step.T[k] @ Vd + step.gamma[k] + step.a[k] * a[k]  # (14)
    children = [k for k, i in enumerate(data.antecedent) if i == j]
    right = sum((step.T[k].T @ reactions[k] for k in children), twist)
    other = right if is_transposed else sum((step.T[k] @ reactions[k] for k in children), twist)
    own = reactions[j] + step.beta[j]
    return decide(step.J[j] @ Vd, own - right, own + sign * other)


@cache
def five_bar() -> tuple[Array, Array, Array, Array, Array]:
    """Return the five-bar of the library at a state: forces by virtual work, of its tree, G, drives and passive joints.

    The first are the forces that Lagrange multipliers give: the tree's forces minus those of the closure.

    Example:
        >>> five_bar()[2].shape
        (4, 2)
    """
    robot = library.five_bar().to(device="casadi")
    q = robot.closed.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.33])
    v, a = np.array([0.8, -0.5]), np.array([1.5, 2.0])
    drives = [robot.coordinate_names.index(name) for name in robot.active]
    passive = [k for k in range(robot.nv) if k not in drives]
    of_tree = robot.inverse_dynamics(q, *robot.closed.accelerations(q, v, a), loops="open")
    A = robot.closed.jacobian(q)
    multipliers = np.linalg.lstsq(A[:, passive].T, of_tree[passive], rcond=None)[0]
    truth = of_tree[drives] - A[:, drives].T @ multipliers
    G = robot.closed.velocities(q, np.eye(2)).T
    return truth, of_tree, G, np.array(drives), np.array(passive)


def _projected() -> Decision:
    truth, of_tree, G, drives, passive = five_bar()
    Gp = G[passive]  # dqp/dqa
    return decide(truth, of_tree[drives] + Gp.T @ of_tree[passive], of_tree[drives] + Gp @ of_tree[passive])


def _reactions() -> Decision:
    data, robot, (q, v, a), *_ = tree()
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    found = recursive.direct_dynamics(data, q, v, Gamma, tree().wrenches)
    moments, forces = np.hsplit(robot.joint_wrenches(q, v, a, external=tree().external), 2)
    return decide(np.hstack([forces, moments]), found.f, found.Vd)


FORCES, MOVES = "forces of the library", "forward dynamics of the library"
ERRATA = [
    Erratum("khalil/eq-1", "eq. 1", "0 as the last entry of ⁱT_j", "1", partial(_pose, 0.0), "R p + P"),
    Erratum(
        "khalil/section-2.2",
        "section 2.2, links at a cut joint",
        "joint k connects links i and j < n",
        "i and j ≤ n: the last link may be one of them",
        _cut_links,
        "cut joint of the five-bar of the library",
    ),
    Erratum("khalil/eq-8", "eq. 8", "q'' = -A⁻¹ (Γ - H)", "A⁻¹ (Γ - H)", _solved, "accelerations of the inverse model"),
    Erratum(
        "khalil/eq-13",
        "eqs. 13, 14",
        "q'_j ʲa_j with the 3-vector a_j",
        "the 6-vector a_j of eq. 16",
        _axis_of_three,
        "number of components of a twist",
    ),
    Erratum(
        "khalil/eq-15",
        "eqs. 15, 101",
        "(1 - σ_j) ⁱω_i × q'_j ʲa_j",
        "(1 - σ_j) ʲω_i × q'_j ʲa_j, as in eq. 34",
        partial(_direct, "15"),
        MOVES,
    ),
    Erratum(
        "khalil/eq-16",
        "eq. 16",
        "a_j = [0 0 0 σ 0 0 1-σ]ᵀ",
        "[0 0 σ 0 0 1-σ]ᵀ",
        _axis_of_seven,
        "number of components of a twist",
    ),
    Erratum(
        "khalil/eq-18",
        "eqs. 18, 19",
        "ʲω_j = ʲR_i ⁱω_i, and (19) for ʲω'_j",
        "ʲω_i = ʲR_i ⁱω_i; ʲω_j = ʲω_i + (1 - σ_j) q'_j ʲa_j",
        partial(_forces, "18"),
        FORCES,
    ),
    Erratum(
        "khalil/eq-23",
        "text after eq. 23",
        "U_j = [ω_j] + [ω_j][ω_j]",
        "[ω'_j] + [ω_j][ω_j]; on a base that moves, U_0 is not 0",
        partial(_forces, "U"),
        FORCES,
    ),
    Erratum(
        "khalil/eq-25",
        "eq. 25",
        "Σ ᵏT_j ᵏf_k",
        "Σ ᵏT_jᵀ ᵏf_k, as in eq. 32",
        partial(_equilibrium, -1.0, False),
        "equilibrium of a link with reactions of the inverse model",
    ),
    Erratum(
        "khalil/eq-41",
        "eqs. 36 to 43, 46 to 50, 79 to 81",
        "script A_j for a_j; ⁱT_iᵀ in front of V'_i",
        "a_j; ʲT_i, transposed in (39), (40), (53) and (54) only",
        partial(_direct, "41"),
        MOVES,
    ),
    Erratum("khalil/eq-41-gamma", "eq. 41", "ⁱγ_i", "ʲγ_j", partial(_direct, "41 gamma"), MOVES),
    Erratum(
        "khalil/eq-51",
        "eq. 51",
        "J V' = f_{n-1} + Tᵀ f_n + β",
        "f_{n-1} - Tᵀ f_n + β, from which (53) and (54) follow",
        partial(_equilibrium, 1.0, True),
        "equilibrium of a link with reactions of the inverse model",
    ),
    Erratum(
        "khalil/eq-52",
        "eq. 52 and the text after eq. 54",
        "f*_{n-1}; as given by equations (41) and (43)",
        "f_{n-1}, that of eq. 51; (41) and (42)",
        _reactions,
        "joint reactions of the library",
    ),
    Erratum(
        "khalil/eq-57",
        "eq. 57",
        "Γ_c = Γ_a + (∂q'_p/∂q'_a) Γ_p",
        "Γ_a + (∂q'_p/∂q'_a)ᵀ Γ_p, which is eq. 55",
        _projected,
        "Lagrange multipliers of a five-bar",
    ),
]
