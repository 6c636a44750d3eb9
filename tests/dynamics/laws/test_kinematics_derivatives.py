"""Derivatives of velocities, accelerations and jerks of frames agree with derivatives of the traced functions."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.robot.accessors import method_of
from torsor.spatial import from_rpy, make_pose

INPUTS = {"velocity": "qv", "acceleration": "qva", "jerk": "qvaj"}


def with_camera(robot: torsor.Robot) -> torsor.Robot:
    """Return the robot with a frame that is turned and off the origin of its last link."""
    camera = make_pose(from_rpy([0.3, -0.4, 0.5]), [0.1, 0.2, -0.3])
    return robot.with_frame("camera", robot.link_names[-1], camera).to(device="casadi")  # each is called once


def random_state(robot: torsor.Robot) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(5)
    return robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), *rng.normal(size=(3, robot.nv))


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-12) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


ROBOTS = {
    "tree": lambda: torsor.library.random_tree(9, 3),
    "other tree": lambda: torsor.library.random_tree(8, 4),
    "floating": torsor.library.free_flying_arm,
    "stanford": torsor.library.stanford,
}


CASES = [(kind, name) for kind in ROBOTS for name in INPUTS]


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(*each, marks=pytest.mark.slow if each in CASES[2:6:3] else ()) for each in CASES],
)
def test_derivatives_are_those_of_the_traced_function(kind: str, name: str) -> None:
    robot = with_camera(ROBOTS[kind]())
    values = random_state(robot)[: len(INPUTS[name])]
    symbols = [ca.SX.sym("x", each.size) for each in values]
    step, function = ca.SX.sym("step", robot.nv), robot.function(name, "camera")
    moved = function(robot.function("integrate")(symbols[0], step), *symbols[1:])
    outputs = [ca.substitute(ca.jacobian(moved, step), step, 0)]
    outputs += [ca.jacobian(function(*symbols), each) for each in symbols[1:]]
    expected = ca.Function("expected", symbols, outputs)(*values)
    found = method_of(robot, f"{name}_derivatives")(*values, "camera")
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other.full())


def test_derivatives_of_rates_are_rates_of_derivatives() -> None:
    """Of ordinary coordinates and the rate A of the twist V: dA/dq = (dV/dq)', dA/dv = dV/dq + J'."""
    robot = with_camera(torsor.library.panda())
    q, v, a, _ = random_state(robot)
    dq, J = robot.derivatives.velocity(q, v, "camera")
    h = 1e-5
    (up, up_J), (down, down_J) = (
        robot.derivatives.velocity(q + s * h * v, v + s * h * a, "camera") for s in (1.0, -1.0)
    )
    twist, (by_q, by_v, by_a) = robot.velocity(q, v, "camera"), robot.derivatives.acceleration(q, v, a, "camera")

    def classical(change: np.ndarray) -> np.ndarray:  # what w x v of the origin's acceleration adds
        turned = np.cross(change[:3].T, twist[3:]).T + np.cross(twist[:3], change[3:].T).T
        return np.vstack([np.zeros_like(turned), turned])

    assert_close(by_q, (up - down) / (2 * h) + classical(dq), 1e-8)
    assert_close(by_v, dq + (up_J - down_J) / (2 * h) + classical(J), 1e-8)
    assert_close(by_a, J)


def test_places_on_the_base_do_not_move() -> None:
    robot = torsor.library.two_link().with_frame("post", "base", make_pose(p=[1, 2, 3])).to(device="casadi")
    for name, inputs in INPUTS.items():
        for each in method_of(robot, f"{name}_derivatives")(*np.ones((len(inputs), 2)), "post"):
            assert each.shape == (6, 2) and not each.any()


def test_batches_and_parametric_robots_have_them_too() -> None:
    robot = torsor.library.two_link()
    q = np.linspace(0, 1, 6).reshape(3, 2)
    dq, dv = robot.derivatives.velocity(q, [1.0, 2.0], "link2")
    assert dq.shape == dv.shape == (3, 6, 2)
    model = robot.parametric(["joints.joint2.origin.x"])
    by_q, by_v = model.derivatives.velocity(q, [1.0, 2.0], model.values, place="link2")
    assert_close(by_q, dq)
    assert_close(by_v, dv)
