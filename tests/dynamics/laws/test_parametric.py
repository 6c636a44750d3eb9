"""A parametric robot equals, for any parameter values, the robot with these values, derivatives included."""

from functools import cache

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.dynamics import ALGORITHMS
from torsor.robot.accessors import method_of

TREES = [(6, 0), (7, 3), (6, 5)]
METHODS = ["inverse_dynamics", "forward_dynamics", "joint_wrenches", "mass_matrix", "coriolis_matrix", "poses"]
MORE = ["kinetic_energy", "potential_energy", "center_of_mass", "momentum", "gravity_force", "regressor", "force_rate"]


def all_paths(robot: torsor.Robot) -> list[str]:
    paths = ["gravity"]
    for link in robot.link_names:
        paths += [f"links.{link}.{field}" for field in ("mass", "com", "inertia")]
    for joint in robot.joints:
        fields = ["origin", "turn", "rotor_inertia", "viscous"] + ["point"] * (joint.type != "free")
        paths += [f"joints.{joint.name}.{field}" for field in fields]
    return paths


def moved(model: torsor.Parametric, rng: np.random.Generator) -> np.ndarray:
    """Return other values, close enough that inertias remain physical."""
    values = model.values
    return values + 0.05 * rng.uniform(0.1, 1.0, values.size) * np.maximum(np.abs(values), 0.02)


def state(robot: torsor.Robot, name: str, rng: np.random.Generator) -> list[np.ndarray]:
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    return [q if each == "q" else rng.normal(size=robot.nv) for each in ALGORITHMS[name].inputs]


def packed(value) -> list[np.ndarray]:
    return list(value) if isinstance(value, tuple) else [value]


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0.0)))


@cache
def described(n: int, seed: int) -> tuple[torsor.Robot, torsor.Parametric, np.ndarray, torsor.Robot]:
    """Return a tree, its parametric form, other parameter values, and the tree with these values."""
    robot = torsor.library.random_tree(n, seed).to(device="casadi")  # each function is called once
    model = robot.parametric(all_paths(robot))
    p = moved(model, np.random.default_rng(1))
    return robot, model, p, model.at(p)


@pytest.mark.parametrize("tree", TREES, ids=str)
@pytest.mark.parametrize("name", METHODS + MORE)
def test_at_other_values_it_is_the_robot_with_these_numbers(tree: tuple[int, int], name: str) -> None:
    robot, model, p, there = described(*tree)
    values = state(robot, name, np.random.default_rng(6))
    for found, expected in zip(
        packed(method_of(model, name)(*values, p)), packed(method_of(there, name)(*values)), strict=True
    ):
        assert_close(found, expected, 1e-10)
    for found, expected in zip(
        packed(method_of(model, name)(*values, model.values)), packed(method_of(robot, name)(*values)), strict=True
    ):
        assert_close(found, expected, 1e-11)


@pytest.mark.parametrize("field", ["mass", "com", "inertia", "origin", "turn", "point"])
def test_each_kind_of_number_alone_keeps_the_tree_lean_and_exact(field: str) -> None:
    robot, rng = torsor.library.random_tree(7, 2).to(device="casadi"), np.random.default_rng(2)
    part = "links" if field in ("mass", "com", "inertia") else "joints"
    for index, joint in enumerate(robot.joints):
        if field == "point" and joint.type == "free":
            continue  # it has none
        model = robot.parametric([f"{part}.{index}.{field}"])
        p, values = moved(model, rng), state(robot, "inverse_dynamics", rng)
        assert_close(model.inverse_dynamics(*values, p), model.at(p).inverse_dynamics(*values), 1e-10)


@pytest.mark.parametrize(
    "name", ["inverse_dynamics", "joint_wrenches", "forward_dynamics", "inverse_dynamics_derivatives"]
)
def test_derivatives_by_the_numbers_are_limits_of_differences(name: str) -> None:
    robot, rng, h = torsor.library.random_tree(5, 7), np.random.default_rng(3), 2e-3
    model = robot.parametric(["links.1.mass", "links.2.com", "joints.3.origin", "joints.2.turn.y", "gravity.z"])
    p, values = moved(model, rng), state(robot, name, rng)
    derivatives = packed(model.by_parameters(name, *values, p))
    for k in range(p.size):
        steps = [p + s * h * np.eye(p.size)[k] for s in (1, -1, 2, -2, 3, -3)]
        near = zip(*(packed(method_of(model, name)(*values, there)) for there in steps), strict=True)
        for derivative, (a, b, c, d, e, f) in zip(derivatives, near, strict=True):
            difference = (45 * (a - b) - 9 * (c - d) + (e - f)) / (60 * h)  # of sixth order
            assert_close(derivative[..., k], difference, 1e-9)


def test_derivatives_by_all_inertial_numbers_span_the_regressor() -> None:
    robot, rng = torsor.library.random_tree(4, 1, extras=False), np.random.default_rng(4)
    values = state(robot, "inverse_dynamics", rng)
    model = robot.parametric([f"links.{k}.mass" for k in range(4)])
    # The mass alone, its centre and its inertia about it held: m, m c and m (c.c - c c^T) change with it.
    Y = robot.inertial.regressor(*values)
    for k, link in enumerate(robot.links):
        c = link.com
        J = c @ c * np.eye(3) - np.outer(c, c)
        change = np.r_[1.0, c, J[0], J[1, 1:], J[2, 2]]
        found = model.by_parameters("inverse_dynamics", *values, model.values)[:, k]
        assert_close(found, Y[:, 10 * k : 10 * k + 10] @ change, 1e-10)


def test_a_length_of_a_denavit_hartenberg_table_is_one_number() -> None:
    def arm(a: float, d: float) -> torsor.Robot:
        links = [
            torsor.DHLink(d=0.3, a=0.1, alpha=0.7, mass=2.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3) * 0.1),
            torsor.DHLink(d=d, a=a, alpha=-0.4, mass=1.5, com=(0.0, 0.1, 0.1), inertia=np.eye(3) * 0.2),
            torsor.DHLink(d=0.2, a=0.3, alpha=0.2, mass=1.0, com=(0.1, 0.0, 0.1), inertia=np.eye(3) * 0.05),
        ]
        return torsor.from_dh(links)

    rng = np.random.default_rng(5)
    # The link's frame is at the far end: a length moves it against its parent and its axis against it, the other way.
    lengths = {"a": {"joints.1.origin.x": 1.0, "joints.1.point.x": -1.0}, "d": {"joints.1.origin.z": 1.0}}
    model = arm(0.4, 0.1).parametric(lengths)
    q, v, a = rng.normal(size=(3, 3))
    found = model.inverse_dynamics(q, v, a, [0.25, 0.05])
    assert_close(found, arm(0.65, 0.15).inverse_dynamics(q, v, a), 1e-12)
    assert_close(model.joint_wrenches(q, v, a, [0.25, 0.05])[2], arm(0.65, 0.15).joint_wrenches(q, v, a)[2], 1e-12)


@pytest.mark.parametrize(
    "paths",
    [
        {"more": {"links.0.mass": 1.0}},
        {"more": {"links.0.mass": np.int64(2), "links.1.mass": np.float32(0.5)}},
        {"mass": "links.0.mass", "more": {"links.0.mass": 1.0, "links.1.mass": 1.0}},
        {"more": {"links.0.mass": 1.0, "links.1.mass": 1.0}, "mass": "links.0.mass"},
        {"more": {"links.0.mass": 1.0}, "most": {"links.0.mass": 1.0}},
    ],
    ids=str,
)
def test_shares_add_up_in_the_robot_as_in_its_methods(paths) -> None:
    model = torsor.library.planar_chain(2).parametric(paths)
    p, q = model.values + np.arange(1, len(model.values) + 1), [0.1, 0.2]
    assert_close(model.gravity_force(q, p), model.at(p).gravity_force(q), 1e-13)


@pytest.mark.parametrize("path", ["gravity.", "links.link1.mass.", "joints.0.origin."])
def test_a_path_that_ends_with_a_dot_is_refused(path: str) -> None:
    with refused(value=path, fix=f"write '{path[:-1]}'"):
        torsor.library.planar_chain(2).parametric([path])


def test_springs_friction_and_rotors_are_numbers_too() -> None:
    robot = torsor.library.planar_chain(2).with_spring("joint1", 20.0, rest=0.3)
    robot = robot.with_friction("joint2", coulomb=0.2, viscous=0.1, smooth=0.01)
    robot = robot.with_motor("joint2", 1e-3, ratio=10.0, carrier="link1", stiffness=500.0)
    paths = ["joints.joint1.stiffness", "joints.joint2.stiffness", "joints.joint2.coulomb", "joints.joint2.viscous"]
    model = robot.parametric([*paths, "joints.joint1.rotor_inertia"])
    assert model.values.tolist() == [20.0, 500.0, 0.2, 0.1, 0.0]
    rng = np.random.default_rng(6)
    q, v, a = rng.normal(size=(3, 3))
    p = np.array([25.0, 400.0, 0.3, 0.0, 0.02])
    for name in ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives"):
        for found, expected in zip(
            packed(method_of(model, name)(q, v, a, p)), packed(method_of(model.at(p), name)(q, v, a)), strict=True
        ):
            assert_close(found, expected, 1e-11)
    weight = rng.normal(size=3)
    expected = model.at(p).derivatives.hessian(q, v, a, weight)
    assert_close(model.derivatives.hessian(q, v, a, weight, p), expected, 1e-11)


def test_loads_directions_and_batches_work_as_for_a_robot() -> None:
    robot, rng = torsor.library.random_tree(4, 2), np.random.default_rng(7)
    model = robot.parametric(["links.2.mass", "gravity"])
    q, v, a = state(robot, "inverse_dynamics", rng)
    external = rng.normal(size=(len(robot.links), 6))
    p = model.values + rng.uniform(size=(5, 4))
    tau = model.inverse_dynamics(q, v, a, p, external=external)
    assert tau.shape == (5, robot.nv)
    assert_close(tau[2], model.at(p[2]).inverse_dynamics(q, v, a, external=external), 1e-11)
    dq, _, _ = model.derivatives.inverse_dynamics(q, v, a, p[2], external=external, fixed_in="world")
    expected, _, _ = model.at(p[2]).derivatives.inverse_dynamics(q, v, a, external=external, fixed_in="world")
    assert_close(dq, expected, 1e-11)
    change = rng.normal(size=4)
    _, along = model.derivatives.jvp("inverse_dynamics", (q, v, a, p[1]), (None, None, None, change))
    assert_close(along, model.by_parameters("inverse_dynamics", q, v, a, p[1]) @ change, 1e-11)
    _, gradients = model.derivatives.vjp("inverse_dynamics", (q, v, a, p[1]), np.ones(robot.nv))
    assert_close(gradients[-1], model.by_parameters("inverse_dynamics", q, v, a, p[1]).sum(axis=0), 1e-11)
    J = model.jacobian(q, model.values, place=robot.link_names[-1])
    np.testing.assert_array_equal(J, robot.jacobian(q, robot.link_names[-1]))


def test_the_function_of_few_free_numbers_takes_few_operations_more() -> None:
    robot = torsor.library.six_axis_arm()
    plain = robot.operation_count("inverse_dynamics")
    from torsor.compiler import count_operations

    for path, most in (("links.5.mass", 60), ("joints.3.origin", 120), ("gravity", 30)):
        count = count_operations(robot.parametric([path]).function("inverse_dynamics"))
        assert count.multiplications + count.additions <= plain.multiplications + plain.additions + most


@pytest.mark.parametrize(
    "paths, message",
    [
        ("links.0.mass", "a list of paths"),
        ([], "no number is named"),
        (["links.0.mass", "links.0.mass"], "named twice"),
        (["links.0.mass", "links.link1.mass"], "'links.0.mass' and 'links.link1.mass' are the same number"),
        ({"a": "gravity.x", "b": "gravity"}, "'a' and 'b.x' are the same number"),
        ({"a": {"links.0.mass": 1.0, "links.link1.mass": 2.0}}, "'a' changes one number by two paths"),
        ({"a": {}}, "'a' changes no number"),
        (["link.0.mass"], "links.LINK.FIELD"),
        (["links.9.mass"], "'link1', 'link2', or 0 to 1"),
        (["links.-1.mass"], "no such link"),
        (["links.link1.weight"], "mass, com, inertia"),
        (["links.link1.com.w"], "x, y, z"),
        (["joints.joint1.stiffness"], "no field 'stiffness'"),
        ([3], "links.LINK.FIELD"),
        ({"length": {"joints.joint1.origin": 1.0}}, "name one"),
        ({"length": {"joints.joint1.origin.x": float("nan")}}, "coefficient of 'joints.joint1.origin.x'"),
    ],
)
def test_paths_that_name_nothing_are_refused(paths, message: str) -> None:
    with refused(message):
        torsor.library.two_link().parametric(paths)


def test_values_that_no_robot_has_are_refused_when_a_robot_is_made_of_them() -> None:
    model = torsor.library.two_link().parametric(["links.link1.mass"])
    for wrong, message in (([-1.0], "mass"), ([np.nan], "p"), ([1.0, 2.0], "p")):
        with refused(message):
            model.at(wrong)
    with refused(allowed="4"):
        model.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(AttributeError, match="has no 'walk'"):
        model.walk(1.0)


def test_sparse_results_are_those_of_the_robot_with_these_numbers() -> None:
    model = torsor.library.quadruped().to(device="casadi").parametric(["links.1.mass", "links.1.com"])
    p, q = model.values + 0.1, model.robot.neutral()
    found = model.derivatives.sparse("mass_matrix", q, p)
    assert found.values.size < 18 * 18
    np.testing.assert_allclose(found.dense(), model.at(p).mass_matrix(q), rtol=0, atol=1e-13)
