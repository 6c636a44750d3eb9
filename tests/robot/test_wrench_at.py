"""Wrenches from forces and moments at places: power, duality with the Jacobian, rejected input."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.spatial import from_rpy, make_pose

CAMERA = make_pose(from_rpy([0.3, -0.4, 0.5]), [0.1, 0.2, -0.3])


@pytest.mark.parametrize("axes", ["world", "aligned", "local"])
def test_generalised_forces_are_the_transposed_jacobian_times_the_wrench(axes: str) -> None:
    robot = torsor.library.free_flying_arm()
    robot = robot.with_frame("camera", robot.link_names[-1], CAMERA).to(device="casadi")
    rng = np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.normal(size=(3, robot.nv)))
    n, f, point = rng.normal(size=(3, 3))
    external = robot.wrench_at(q, "camera", n, f, axes, point)
    assert external.shape == (3, len(robot.links), 6)
    still = np.zeros(robot.nv)
    tau = robot.inverse_dynamics(q, still, still) - robot.inverse_dynamics(q, still, still, external)
    J = robot.jacobian(q, "camera", "local" if axes == "local" else "aligned", point)
    np.testing.assert_allclose(tau, np.r_[n, f] @ J, rtol=0, atol=1e-11)


def test_wrenches_add_up() -> None:
    robot, q = torsor.library.two_link().to(device="casadi"), [0.3, 0.4]
    force, moment = robot.wrench_at(q, "link2", force=[1, 2, 3]), robot.wrench_at(q, "link2", moment=[4, 5, 6])
    np.testing.assert_allclose(force + moment, robot.wrench_at(q, "link2", [4, 5, 6], [1, 2, 3]), atol=1e-15)
    assert robot.wrench_at(np.zeros((0, 2)), "link1", force=[1, 0, 0]).shape == (0, 2, 6)


def test_wrong_wrenches_are_refused_in_words() -> None:
    robot, q = torsor.library.two_link().to(device="casadi"), [0.3, 0.4]
    for given, words in [
        ({"place": "base", "force": [1, 0, 0]}, "base"),
        ({"place": "link1"}, "needs a moment or a force"),
        ({"place": "link1", "force": [1, 0]}, "force"),
        ({"place": "link1", "force": [1, 0, np.nan]}, "force"),
        ({"place": "link1", "force": [1, 0, 0], "axes": "global"}, "axes"),
        ({"place": "arm", "force": [1, 0, 0]}, "arm"),
    ]:
        with refused(words):
            robot.wrench_at(q, **given)


def test_forces_that_do_not_broadcast_with_postures_raise() -> None:
    with refused(what="leading axes do not broadcast: moment (), force (4,)"):
        torsor.library.two_link().wrench_at(np.zeros((3, 2)), "link2", force=np.zeros((4, 3)))
