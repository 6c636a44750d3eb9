"""Errata of Khalil 2010: the description of robots, and the models of trees, loops and parallel robots."""

from dataclasses import replace
from functools import cache, partial

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.mechanism import Loop
from torsor.reproduce.equations import khalil
from torsor.reproduce.equations.form import Form, Matrix, Vector
from torsor.reproduce.errata.erratum import Decision, by_place, compare, decide, words
from torsor.reproduce.samples import about_origin, tree

ELASTIC = np.array([0.0, 100.0, 0.0, 50.0, 0.0, 0.0])  # stiffness of the tree's joints
BENT = np.array([0.0, 0.1, 0.0, -0.2, 0.0, 0.0])  # and their deflections
STEP = 1e-30  # of complex steps


def _legs() -> Decision:
    """Compare the rates of the leg drives with the given rates: (62)."""
    robot = library.three_rrr().to(device="casadi")
    J_p, legs = robot.jacobian(robot.home), robot.leg_velocities(robot.home, np.eye(3)).T  # J_i^-1 J_vi
    drives = legs[[robot.coordinate_names.index(name) for name in robot.driven_names]]
    return decide(np.eye(3), drives @ J_p, drives @ np.linalg.inv(J_p))


def elastic_case() -> tuple[Array, Array]:
    """Return accelerations and forces of the tree with two elastic joints, from the library's hybrid dynamics."""
    _, robot, (q, v, a), *_ = tree()
    robot = robot.without_friction()
    weak = [replace(each, rotor_inertia=0.0) if K else each for each, K in zip(robot.joints, ELASTIC, strict=True)]
    springs = replace(robot, joints=tuple(weak))
    names = [name for name, K in zip(robot.joint_names, ELASTIC, strict=True) if K]
    for joint, K, bent, at in zip(robot.joint_names, ELASTIC, BENT, q, strict=True):
        if K:
            springs = springs.with_spring(joint, float(K), rest=float(at - bent))
    return springs.hybrid_dynamics(q, v, a, np.zeros(robot.nv), forced=names, external=tree().external)


def _elastic(place: str) -> Decision:
    data, _, (q, v, a), *_ = tree()
    weak = data._replace(Ia=np.where(ELASTIC > 0, 0.0, data.Ia))

    def found(form: Form) -> tuple[Array, Array]:
        model = khalil.elastic_inverse(weak, q, v, a, tree().wrenches, ELASTIC, BENT, form)
        return model.qdd, model.Gamma

    return compare(place, elastic_case(), found)


@cache
def free_base() -> tuple[Array, Array]:
    """Return the base's acceleration minus gravity (classical, in base axes) and the joint forces, from the library."""
    _, _, (q, v, a), _, _, base, floating = tree()
    state = np.r_[np.zeros(6), 1.0, q], np.r_[base.w, np.zeros(3), v]
    loads = np.vstack([np.zeros((1, 6)), tree().external])
    zero = np.zeros(floating.nv)
    result, forces = floating.hybrid_dynamics(*state, np.r_[np.zeros(6), a], zero, forced=["root"], external=loads)
    moved = floating.accelerations(*state, result)[0]
    return np.r_[moved[3:] - floating.gravity, moved[:3]], forces[6:]


def _base(place: str) -> Decision:
    data, _, (q, v, a), _, _, base, _ = tree()

    def found(form: Form) -> tuple[Array, Array]:
        model = khalil.moving_base_inverse(data, q, v, a, tree().wrenches, base, form)
        return model.Vd_0, model.Gamma

    return compare(place, free_base(), found)


def _base_direct(place: str) -> Decision:
    data, _, (q, v, a), _, _, base, _ = tree()
    loads = free_base()[1], tree().wrenches
    return compare(place, a, lambda form: khalil.direct_dynamics(data, q, v, *loads, base, form).qdd)


def _base_at_rest(is_other: bool) -> Decision:
    """Compare betac_0 with the library's wrench on a base without acceleration: H_1 + A_12 qdd.

    In the printed form, it has the opposite sign, or belongs to other joint accelerations (``is_other``).
    """
    data, _, (q, v, a), _, _, base, floating = tree()
    state = np.r_[np.zeros(6), 1.0, q], np.r_[base.w, np.zeros(3), v]
    loads, light = np.vstack([np.zeros((1, 6)), tree().external]), floating.with_gravity(np.zeros(3))
    wrench = light.to(device="casadi").inverse_dynamics(*state, np.r_[np.zeros(6), a], external=loads)
    truth = -np.r_[wrench[3:6], wrench[:3]]

    def found(a: Array) -> Array:
        return khalil.moving_base_inverse(data, q, v, a, tree().wrenches, base).beta_0

    return decide(truth, found(a), found(0 * a) if is_other else -found(a))


def _independent() -> Decision:
    """Compare link accelerations at two angular accelerations, and at two angular velocities, of the base.

    After the term jT_0 V'_0 of (14) is subtracted, the remainder is independent of the base's acceleration.
    """
    data, _, (q, v, a), _, _, base, floating = tree()
    step, turn = khalil.Pass(data, q, v, tree().wrenches), np.array([0.3, -0.2, 0.5])
    T = list[Array]()  # jT_0
    for j, i in enumerate(data.antecedent):
        T.append(step.T[j] if i < 0 else step.T[j] @ T[i])

    def left(w: Array, wd: Array) -> Array:
        pose = np.r_[np.zeros(6), 1.0, q]
        moved = floating.accelerations(pose, np.r_[w, np.zeros(3), v], np.r_[wd, np.zeros(3), a])[1:]
        return np.asarray(np.hstack([moved[:, 3:], moved[:, :3]]) - np.array(T) @ np.r_[np.zeros(3), wd])

    still = left(base.w, np.zeros(3))
    return decide(still, left(base.w, turn), left(base.w + turn, np.zeros(3)))


def _fixed_frame() -> Decision:
    """Determine which joint may be fixed (sigma = 2) so that the base is a separate link and all joints remain."""
    floating = tree().floating
    joints, first = tree().robot.nv, tree().robot.joint_names[0]
    return words(floating.nv - 6 == joints, floating.fix(first).nv - 6 == joints)


def _pose(last: float) -> Decision:
    R, P = khalil.placements(tree().data, tree().state[0])[0]

    def pose(last: float) -> Array:
        return np.block([[R, P[:, None]], [np.zeros((1, 3)), np.full((1, 1), last)]])

    point = np.array([0.1, 0.2, 0.3, 1.0])
    return decide([*(R @ point[:3] + P), 1.0], pose(1.0) @ point, pose(last) @ point)


def _cut_links() -> Decision:
    """Test whether the links (from 1) that a cut joint of the five-bar connects are in the printed range."""
    robot = library.five_bar()
    loop, n = robot.loops[0], len(robot.links)
    assert isinstance(loop, Loop)
    ends = [robot.place(frame).link + 1 for frame in (loop.a, loop.b)]
    return words(all(end <= n for end in ends), all(each < n for each in ends))


def _solved() -> Decision:
    data, robot, (q, v, a), fe, me, *_ = tree()
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    A, H = khalil.direct_model(data, q, v, fe, me)
    accelerations = np.linalg.solve(A, Gamma - H)
    return decide(a, accelerations, -accelerations)


def _forces(place: str) -> Decision:
    data, robot, state, fe, me, *_ = tree()
    truth = robot.inverse_dynamics(*state, external=tree().external)
    return compare(place, truth, lambda form: khalil.inverse_dynamics(data, *state, fe, me, form).Gamma)


def _direct(place: str) -> Decision:
    data, robot, (q, v, a), *_ = tree()
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    truth, loads = robot.forward_dynamics(q, v, Gamma, external=tree().external), (Gamma, tree().wrenches)
    return compare(place, truth, lambda form: khalil.direct_dynamics(data, q, v, *loads, form=form).qdd)


def _equilibrium(sign: float, is_transposed: bool) -> Decision:
    """Compare J Vd of the last inner link with the library's wrenches: (32), (51), (25)."""
    data, robot, (q, v, a), *_ = tree()
    step = khalil.Pass(data, q, v, tree().wrenches)
    moments, forces = np.hsplit(robot.joint_wrenches(q, v, a, external=tree().external), 2)
    reactions = np.hstack([forces, moments])
    j = int(data.antecedent[-1])
    Vd, twist, chain = khalil.gravity_twist(data), np.zeros(6), [j]
    while data.antecedent[chain[0]] >= 0:
        chain.insert(0, int(data.antecedent[chain[0]]))
    for k in chain:
        Vd = step.T[k] @ Vd + step.gamma[k] + step.a[k] * a[k]  # (14)
    children = [k for k, i in enumerate(data.antecedent) if i == j]
    right = sum((step.T[k].T @ reactions[k] for k in children), twist)
    other = right if is_transposed else sum((step.T[k] @ reactions[k] for k in children), twist)
    applied = reactions[j] + step.beta[j]
    return decide(step.J[j] @ Vd, applied - right, applied + sign * other)


class FiveBar:
    """The five-bar of the library by the equations of the paper, with a loop Jacobian in closed form.

    ``robot`` is the library robot, ``q`` a closed position, and ``state`` the drive velocities and accelerations.
    """

    LENGTHS, BASE = (0.3, 0.4), 0.35  # m, proximal and distal bars, and distance of the drives
    ACTIVE, PASSIVE = [0, 2], [1, 3]

    def __init__(self) -> None:
        self.robot = library.five_bar().to(device="casadi")
        self.q = self.robot.closed.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.33])
        self.state = np.array([0.8, -0.5]), np.array([1.5, 2.0])
        links, none = self.robot.links, np.zeros(4)
        m = np.array([link.mass for link in links])
        J = np.array([about_origin(link.mass, link.com, link.inertia) for link in links])
        MS = m[:, None] * np.array([link.com for link in links])
        d, rotors = np.array([0.0, self.LENGTHS[0], self.BASE, self.LENGTHS[0]]), np.array([0.01, 0.0, 0.02, 0.0])
        table = np.array([-1, 0, -1, 2]), none.astype(int), none, none, none, d, none, none
        self.tree = khalil.Robot(*table, m, MS, J, rotors, none, none, self.robot.gravity)

    def loop(self, q: Vector) -> Matrix:
        """Return the Jacobian (2, 4) of the vector between both ends of the cut joint: (4)."""
        (near, far), angles = self.LENGTHS, np.array([q[0], q[0] + q[1], q[2], q[2] + q[3]])
        a, b, c, d = np.array([-np.sin(angles), np.cos(angles)]).T
        return np.array([near * a + far * b, far * b, -near * c - far * d, -far * d]).T

    @property
    def G(self) -> Array:
        """Rates of all joints per rate of the drives (4, 2): (56)."""
        return self._closed(np.zeros((2, 2)), np.eye(2))

    def _closed(self, known: Array, rates: Array) -> Array:
        """Return the rates of all joints from those of the drives: C rates + known = 0 with the loop Jacobian C."""
        C, full = self.loop(self.q), np.zeros((4, *np.shape(rates)[1:]))
        full[self.ACTIVE] = rates
        full[self.PASSIVE] = -np.linalg.solve(C[:, self.PASSIVE], C[:, self.ACTIVE] @ rates + known)
        return full

    def tree_forces(self, v: Array, a: Array) -> Array:
        """Return the forces Γ_tr (4,) of the tree, whose motion closes the loop, from the drive motion."""
        qd = self.G @ v
        curved = self.loop(self.q + 1j * STEP * qd).imag / STEP @ qd  # the rate of C, times q'
        return khalil.inverse_dynamics(self.tree, self.q, qd, self._closed(curved, a)).Gamma


def _projected() -> Decision:
    bar = FiveBar()
    of_tree, Gp = bar.tree_forces(*bar.state), bar.G[bar.PASSIVE]  # dqp/dqa
    active, passive = of_tree[bar.ACTIVE], of_tree[bar.PASSIVE]
    return decide(bar.robot.closed.inverse_dynamics(bar.q, *bar.state), active + Gp.T @ passive, active + Gp @ passive)


def _reactions() -> Decision:
    data, robot, (q, v, a), *_ = tree()
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    result = khalil.direct_dynamics(data, q, v, Gamma, tree().wrenches)
    moments, forces = np.hsplit(robot.joint_wrenches(q, v, a, external=tree().external), 2)
    return decide(np.hstack([forces, moments]), result.f, result.Vd)


DECISIONS = {
    "eq-1": partial(_pose, 0.0),
    "section-2.2": _cut_links,
    "eq-8": _solved,
    "eq-18": partial(_forces, "18"),
    "eq-23": partial(_forces, "U"),
    "eq-25": partial(_equilibrium, -1.0, False),
    "eq-51": partial(_equilibrium, 1.0, True),
    "eq-52": _reactions,
    "eq-57": _projected,
    "eq-62": _legs,
    "section-7.1": _fixed_frame,
    "section-7.2": _independent,
    "eq-97": partial(_base_at_rest, False),
    "section-7.3": partial(_base_at_rest, True),
    **by_place(_direct, "15", "41", "41 gamma"),
    **by_place(_elastic, "79", "81"),
    **by_place(_base, "95", "96", "98"),
    **by_place(_base_direct, "105", "107", "110"),
}
