"""One robot has one dynamics: four published forms and the library agree in every convention that can describe it."""

import numpy as np
import pytest

from torsor.reproduce.equations import barman, guarino, khalil, lie

from .conventions import Serial, Tree, carry, pose

TOLERANCE = 1e-11
SERIAL = [(n, seed) for n in (1, 2, 3, 4, 6, 7, 9) for seed in (0, 1)]
TREES = [(n, seed) for n in (2, 5, 8, 12) for seed in (0, 1)]


def assert_same(actual, expected):
    """Assert agreement relative to the largest component."""
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


@pytest.fixture(scope="module", params=SERIAL, ids=lambda p: f"{p[0]}-joints-{p[1]}")
def serial(request, tmp_path_factory):
    case = Serial(*request.param)
    path = tmp_path_factory.mktemp("urdf") / "random.urdf"
    described = {
        "standard DH": case.from_dh(),
        "modified DH": case.from_mdh(),
        "screws": case.from_screws(),
        "URDF": case.from_urdf(path),
    }
    return case, described


def test_the_four_published_forms_agree_under_a_load_at_the_tip(serial):
    """Every form has tip loads, all of which act on the environment, hence the minus sign."""
    case, _ = serial
    tip = -case.tip[-1]
    R = chain_rotation(case, case.n - 1)
    load = barman.Load(case.n - 1, R @ tip[3:], R @ tip[:3], np.zeros(3))
    expected = barman.inverse_dynamics(case.dh, *case.state, load)[0]

    assert_same(lie.compact(case.screws, *case.state, carry(pose(p=-case.dh.r[-1]), tip))[0], expected)
    moment, force = np.split(carry(case.E[-1], tip), 2)
    assert_same(guarino.inverse_dynamics(case.mdh, *case.state, force, moment)[0], expected)
    me, fe = np.zeros((2, case.n, 3))
    me[-1], fe[-1] = moment, force
    assert_same(khalil.inverse_dynamics(case.tree, *case.state, fe, me)[0], expected)


def chain_rotation(case, link):
    """0R_k of the standard frames at the case's state."""
    R = np.eye(3)
    for j in range(link + 1):
        theta = case.dh.theta[j] + case.dh.revolute[j] * case.state[0][j]
        R = R @ barman.rotation(theta, case.dh.alpha[j])
    return R


def test_forces_agree_in_every_convention(serial):
    case, described = serial
    loads = -np.array([carry(T, w) for T, w in zip(case.E, case.external, strict=True)])
    expected = khalil.inverse_dynamics(case.tree, *case.state, loads[:, 3:], loads[:, :3])[0]
    for each in described.values():
        external = each.in_link_axes(case.external)
        assert_same(each.robot.inverse_dynamics(*case.state, external=external), expected)


def test_forces_without_loads_agree_in_every_form_and_convention(serial):
    case, described = serial
    expected = barman.inverse_dynamics(case.dh, *case.state)[0]
    assert_same(lie.compact(case.screws, *case.state)[0], expected)
    assert_same(guarino.inverse_dynamics(case.mdh, *case.state)[0], expected)
    assert_same(khalil.inverse_dynamics(case.tree, *case.state)[0], expected)
    for robot, _ in described.values():
        assert_same(robot.inverse_dynamics(*case.state), expected)


def test_a_load_on_any_link_acts_as_in_standard_dh(serial):
    case, described = serial
    robot, _ = described["standard DH"]
    for k in range(case.n):
        R, external = chain_rotation(case, k), np.zeros((case.n, 6))
        external[k] = case.external[k]
        load = barman.Load(k, -R @ case.external[k, 3:], -R @ case.external[k, :3], np.zeros(3))
        expected = barman.inverse_dynamics(case.dh, *case.state, load)[0]
        assert_same(robot.inverse_dynamics(*case.state, external=external), expected)


def test_reactions_agree_in_every_convention(serial):
    """All are carried to the standard frame at the far end of each link, where those of the screws' form are also."""
    case, described = serial
    F = lie.compact(case.screws, *case.state)[1]
    expected = np.array([carry(pose(p=r), w) for r, w in zip(case.dh.r, F, strict=True)])
    for each in described.values():
        assert_same(each.in_standard_axes(each.robot.joint_wrenches(*case.state)), expected)

    loads = -np.array([carry(T, w) for T, w in zip(case.E, case.external, strict=True)])
    _, f, m = khalil.inverse_dynamics(case.tree, *case.state, loads[:, 3:], loads[:, :3])
    expected = np.array([carry(np.linalg.inv(T), w) for T, w in zip(case.E, np.hstack([m, f]), strict=True)])
    for each in described.values():
        wrenches = each.robot.joint_wrenches(*case.state, external=each.in_link_axes(case.external))
        assert_same(each.in_standard_axes(wrenches), expected)


def test_mass_matrix_agrees_in_every_convention(serial):
    case, described = serial
    A, _ = khalil.direct_model(case.tree, *case.state[:2])
    for robot, _ in described.values():
        assert_same(robot.mass_matrix(case.state[0]), A)


def test_bias_and_gravity_forces_agree_in_every_convention(serial):
    case, described = serial
    q, v, _ = case.state
    H = khalil.direct_model(case.tree, q, v)[1]
    weight = khalil.direct_model(case.tree, q, np.zeros(case.n))[1]
    for robot, _ in described.values():
        assert_same(robot.bias_force(q, v), H)
        assert_same(robot.gravity_force(q), weight)


def test_twists_agree_in_every_convention(serial):
    case, described = serial
    q, v, _ = case.state
    V = lie.compact(case.screws, *case.state)[2]
    for each in described.values():
        # The power of a wrench is the same in any axes, so the transpose of what carries wrenches carries twists back.
        for link, (T, twist) in enumerate(zip(each.frames, each.robot.velocities(q, v), strict=True)):
            X = np.array([carry(T @ pose(p=case.dh.r[link]), unit) for unit in np.eye(6)]).T
            np.testing.assert_allclose(X.T @ twist, V[link], rtol=0, atol=TOLERANCE * np.abs(V).max())


@pytest.fixture(scope="module", params=TREES, ids=lambda p: f"{p[0]}-joints-{p[1]}")
def tree(request):
    return Tree(*request.param)


def test_tree_forces_are_khalils(tree):
    expected = khalil.inverse_dynamics(tree.reference, *tree.state, tree.fe, tree.me)[0]
    assert_same(tree.robot.inverse_dynamics(*tree.state, external=tree.external), expected)
    expected = khalil.inverse_dynamics(tree.reference, *tree.state)[0]
    assert_same(tree.robot.inverse_dynamics(*tree.state), expected)


def test_tree_reactions_are_khalils(tree):
    _, f, m = khalil.inverse_dynamics(tree.reference, *tree.state, tree.fe, tree.me)
    assert_same(tree.robot.joint_wrenches(*tree.state, external=tree.external), np.hstack([m, f]))


def test_tree_model_is_khalils(tree):
    q, v, _ = tree.state
    A, H = khalil.direct_model(tree.reference, q, v)
    assert_same(tree.robot.mass_matrix(q), A)
    assert_same(tree.robot.bias_force(q, v), H)
    assert_same(tree.robot.gravity_force(q), khalil.direct_model(tree.reference, q, 0 * v)[1])
