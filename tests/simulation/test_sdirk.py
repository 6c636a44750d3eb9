"""The L-stable method: its order, and stiff damped springs that come to rest where the midpoint rule leaves them."""

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused

H, STEPS = 1e-3, 40


def stiff(stiffness: float = 1e8, damping: float = 1e6) -> torsor.Robot:
    """Return a rod of 1 kg m^2 on a spring that is far stiffer than the step resolves, and damped."""
    return torsor.library.planar_chain(1, gravity=(0.0, 0.0, 0.0)).with_spring(
        "joint1", stiffness=stiffness, damping=damping
    )


def slopes(errors: list[float]) -> list[float]:
    return [float(np.log2(coarse / fine)) for coarse, fine in pairwise(errors)]


@pytest.mark.parametrize(
    "robot",
    [
        torsor.library.planar_chain(3),
        torsor.library.elastic_arm(),
        pytest.param(
            torsor.library.random_tree(4, seed=1, types=("free", "revolute", "spherical", "planar")).without_friction(),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["chain", "elastic", "every type of joint"],
)
def test_the_order_is_two(robot: torsor.Robot) -> None:
    rng = np.random.default_rng(0)
    start = {"q0": robot.integrate(robot.neutral(), 0.3 * rng.normal(size=robot.nv)), "v0": rng.normal(size=robot.nv)}
    exact = torsor.simulate(robot, **start, duration=0.2, step=1e-4)
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        found = torsor.simulate(robot, **start, duration=0.2, step=h, method="sdirk")
        off = robot.difference(found.q[-1], exact.q[-1])
        errors.append(float(np.abs(off).max() + np.abs(found.v[-1] - exact.v[-1]).max()))
    np.testing.assert_allclose(slopes(errors), 2.0, atol=0.05)


def test_the_order_is_two_with_time_dependent_forces() -> None:
    robot = torsor.library.planar_chain(2).with_friction("joint1", viscous=0.3, coulomb=0.2, smooth=0.5)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    push = ca.Function("push", [t, q, v], [ca.sin(5 * t) * ca.vertcat(3, 1) - 0.5 * v])
    wind = ca.Function("wind", [t, q, v], [ca.vertcat(ca.SX.zeros(1, 6), ca.horzcat(0, 0, ca.cos(t), 1, t, 0))])
    settings = {"controller": push, "external": wind, "duration": 0.4}
    exact = torsor.simulate(robot, step=1e-4, **settings).q[-1]
    found = [torsor.simulate(robot, step=h, method="sdirk", **settings).q[-1] for h in (8e-3, 4e-3, 2e-3)]
    np.testing.assert_allclose(slopes([np.abs(each - exact).max() for each in found]), 2.0, atol=0.05)


def test_stiff_damped_springs_come_to_rest() -> None:
    """Damped with a time constant of microseconds, the rod is at rest after each step of 1 ms; midpoints swing on."""
    rod = stiff()
    calm = torsor.simulate(rod, [0.1], duration=STEPS * H, step=H, method="sdirk")
    swing = torsor.simulate(rod, [0.1], [100.0], duration=STEPS * H, step=H, method="implicit")
    still = torsor.simulate(rod, [0.1], [100.0], duration=STEPS * H, step=H, method="sdirk")
    assert np.abs(still.v[5:]).max() < 12.0 and np.abs(still.v[-1]).max() < 0.5
    assert np.abs(swing.v[-1]).max() > 50.0
    assert np.abs(calm.q[-1]).max() < 0.1


@pytest.mark.parametrize("stiffness", [1e4, 1e8, 1e12])
def test_a_linear_spring_is_amplified_by_the_rational_function_of_the_method(stiffness: float) -> None:
    """R(z) = (1 + (1 - 2 g) z) / (1 - g z)^2 of the matrix z = h [[0, 1], [-K / J, -D / J]]."""
    damping = 0.1 * np.sqrt(stiffness)
    rod = stiff(stiffness, damping)
    J = float(rod.mass_matrix([0.0])[0, 0])
    g, z = 1 - 1 / np.sqrt(2), H * np.array([[0.0, 1.0], [-stiffness / J, -damping / J]])
    inverse = np.linalg.inv(np.eye(2) - g * z)
    wanted = (np.eye(2) + (1 - 2 * g) * z) @ inverse @ inverse @ [0.1, 0.2]
    found = torsor.simulate(rod, [0.1], [0.2], duration=H, step=H, method="sdirk")
    scale = np.abs(wanted).max()
    np.testing.assert_allclose([found.q[-1, 0], found.v[-1, 0]], wanted, atol=1e-7 * scale)


def test_what_it_cannot_do_is_refused() -> None:
    rod = torsor.library.planar_chain(1).with_friction("joint1", coulomb=1.0)
    with refused(argument="method", fix="smooth"):
        torsor.simulate(rod, duration=0.01, method="sdirk")
    bar = torsor.library.four_bar()
    with refused(argument="method", value="sdirk"):
        torsor.simulate(bar, bar.closed.positions(bar.neutral()), duration=0.01, method="sdirk")
