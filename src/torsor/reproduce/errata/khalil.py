"""Misprints of Khalil 2010: the description of robots, and the models of trees, loops and parallel robots."""

from functools import cache, partial

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.mechanism import Loop
from torsor.reproduce.equations import khalil
from torsor.reproduce.equations import khalil_recursive as recursive
from torsor.reproduce.equations.form import Form
from torsor.reproduce.errata.erratum import Decision, Erratum, decide, words
from torsor.reproduce.samples import tree


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
    q = robot.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.33])
    v, a = np.array([0.8, -0.5]), np.array([1.5, 2.0])
    drives = [robot.coordinate_names.index(name) for name in robot.active]
    passive = [k for k in range(robot.nv) if k not in drives]
    of_tree = robot.inverse_dynamics(q, *robot.constrained_accelerations(q, v, a), loops="open")
    A = robot.closure_jacobian(q)
    multipliers = np.linalg.lstsq(A[:, passive].T, of_tree[passive], rcond=None)[0]
    truth = of_tree[drives] - A[:, drives].T @ multipliers
    G = robot.constrained_velocities(q, np.eye(2)).T
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
