"""Second derivatives of forces agree with derivatives of the traced forces, and obey their laws."""

import casadi as ca
import numpy as np
import pytest

import torsor

TREES = [(7, 0), pytest.param((7, 1), marks=pytest.mark.slow), (8, 2), (1, 6)]


@pytest.fixture(scope="module", params=TREES, ids=lambda p: f"{p[0]}-links-seed-{p[1]}")
def robot(request: pytest.FixtureRequest) -> torsor.Robot:
    return torsor.library.random_tree(*request.param).to(device="casadi")  # each is called a few times only


def random_state(robot: torsor.Robot, batch: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    """Return q, v, a, weight and external wrenches."""
    rng = np.random.default_rng(3)
    q = robot.integrate(robot.neutral(), rng.normal(size=(*batch, robot.nv)))
    v, a, weight = (rng.normal(size=(*batch, robot.nv)) for _ in range(3))
    return q, v, a, weight, rng.normal(size=(*batch, len(robot.links), 6))


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-11) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def blocks(robot: torsor.Robot, H: np.ndarray) -> dict[str, np.ndarray]:
    """Return the nine blocks by the letters of their rows and columns."""
    cut = {letter: slice(k * robot.nv, (k + 1) * robot.nv) for k, letter in enumerate("qva")}
    return {row + column: H[..., cut[row], cut[column]] for row in "qva" for column in "qva"}


def by_casadi(robot: torsor.Robot, state: tuple[np.ndarray, ...]) -> np.ndarray:
    """The Hessian of u -> weight . ID(integrate(q, u_q), v + u_v, a + u_a) at u = 0."""
    q, v, a, weight, external = state
    u = ca.SX.sym("u", 3 * robot.nv)
    u_q, u_v, u_a = ca.vertsplit(u, robot.nv)
    there = robot.function("integrate")(q, u_q)
    tau = robot.function("inverse_dynamics", external=True)(there, v + u_v, a + u_a, external)
    hessian, _ = ca.hessian(ca.dot(weight, tau), u)
    return np.asarray(ca.Function("hessian", [u], [hessian])(0).full())


def test_it_is_the_hessian_of_the_forces_along_integrate(robot: torsor.Robot) -> None:
    state = random_state(robot)
    found, expected = (blocks(robot, H) for H in (robot.derivatives.hessian(*state), by_casadi(robot, state)))
    for name, block in found.items():
        assert_close(block, expected[name], 1e-10)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical", "planar", "spherical", "free"])
def test_second_derivatives_of_chains_of_one_kind_of_joint(kind: str) -> None:
    robot = torsor.library.random_tree(3, 5, (kind,), branching=0.0).to(device="casadi")
    state = random_state(robot)
    assert_close(robot.derivatives.hessian(*state), by_casadi(robot, state), 1e-10)


def test_joints_may_share_a_coordinate_above_and_below_each_other() -> None:
    robot = torsor.library.six_axis_arm()
    first, *joints = robot.joints
    shared = [
        torsor.Joint(
            each.name, each.type, each.parent, each.child, each.placement, each.axis, coordinate=first.name, ratio=ratio
        )
        for each, ratio in zip(joints[::2], (2.0, -0.5, 1.5), strict=True)
    ]
    joints[::2] = shared
    robot = torsor.build("shared", [robot.base, *robot.links], [first, *joints]).to(device="casadi")
    state = random_state(robot)
    assert robot.nv == 3
    assert_close(robot.derivatives.hessian(*state), by_casadi(robot, state), 1e-10)


def test_it_is_symmetric_and_linear_in_the_weight(robot: torsor.Robot) -> None:
    q, v, a, weight, external = random_state(robot)
    H = robot.derivatives.hessian(q, v, a, weight, external)
    assert (H == H.T).all()
    each = robot.derivatives.hessian(q, v, a, np.eye(robot.nv), external)
    assert_close(np.einsum("k, kij -> ij", weight, each), H)


def test_forces_are_linear_in_acceleration_and_mix_it_with_positions_only(robot: torsor.Robot) -> None:
    q, v, a, weight, _ = random_state(robot)
    found = blocks(robot, robot.derivatives.hessian(q, v, a, weight))
    for name in ("va", "av", "aa"):
        assert not found[name].any()
    # By differences of derivatives that are linear in a: tau(a = weight) - tau(a = 0) is M(q) weight.
    still = np.zeros(robot.nv)
    dq, dq_0 = (robot.derivatives.inverse_dynamics(q, still, each)[0] for each in (weight, still))
    assert_close(found["aq"], dq - dq_0)


def test_velocities_without_friction_give_a_quadratic_form(robot: torsor.Robot) -> None:
    robot = robot.without_friction()
    q, v, a, weight, _ = random_state(robot)
    form = blocks(robot, robot.derivatives.hessian(q, v, a, weight))["vv"]
    power = robot.bias_force(q, v) + robot.bias_force(q, -v) - 2 * robot.bias_force(q, 0 * v)
    assert_close(v @ form @ v, weight @ power)


def test_branches_do_not_feel_each_other() -> None:
    robot = torsor.library.quadruped()
    found = blocks(robot, robot.derivatives.hessian(*random_state(robot)))
    legs = [slice(6 + 3 * k, 9 + 3 * k) for k in range(4)]
    for name in ("qq", "qv", "vq", "vv", "qa", "aq"):
        for i, row in enumerate(legs):
            for j, column in enumerate(legs):
                assert (i == j) == bool(found[name][row, column].any())
    sparsity = robot.function("inverse_dynamics_hessian").sparsity_out(0)
    assert sparsity.nnz() == 6 * (6 * 6 + 2 * 6 * 12 + 4 * 3 * 3)  # six blocks of trunk, trunk and legs, and each leg


def test_batches_agree_with_single_states() -> None:
    robot = torsor.library.random_tree(7, 1)
    q, v, a, weight, external = random_state(robot, (4, 1))
    batch = robot.derivatives.hessian(q, v[:, 0], a, weight, external)
    assert batch.shape == (4, 4, 3 * robot.nv, 3 * robot.nv)
    one = robot.derivatives.hessian(q[2, 0], v[1, 0], a[2, 0], weight[2, 0], external[2, 0])
    assert_close(batch[2, 1], one)


@pytest.mark.parametrize(("name", "most"), [("six_axis_arm", 2500), ("quadruped", 7400)])
def test_it_takes_few_operations(name: str, most: int) -> None:
    robot = getattr(torsor.library, name)()
    state = [ca.SX.sym(letter, n) for letter, n in zip("qvaw", (robot.nq, *3 * (robot.nv,)), strict=True)]
    tau = robot.function("inverse_dynamics")(*state[:3])
    own, _ = ca.hessian(ca.dot(state[3], tau), ca.vertcat(*state[:3]))
    count = robot.operation_count("inverse_dynamics_hessian").arithmetic
    assert count < most
    theirs = torsor.compiler.count_operations(ca.Function("own", state, [ca.cse(own)])).arithmetic
    assert count < 0.7 * theirs
