"""Long chains: no recursion limit, and work that grows linearly with the number of links."""

import sys

import numpy as np
import pytest

import torsor
from counting import grows_linearly


@pytest.mark.slow
def test_a_chain_of_four_thousand_links_does_not_hit_the_recursion_limit() -> None:
    n = 4000
    assert n > sys.getrecursionlimit()
    robot = torsor.library.planar_chain(n, length=0.01, mass=0.01)
    tau = robot.gravity_force(np.zeros(n))
    # Hinge i carries the weight of n - i rods, half their length away.
    rods = n - np.arange(n)
    np.testing.assert_allclose(tau, rods * 0.01 * 9.81 * rods * 0.01 / 2, rtol=1e-10)


def test_work_to_build_and_trace_grows_linearly() -> None:
    torsor.library.planar_chain(3).function("inverse_dynamics")  # one-time work is not counted
    assert grows_linearly(lambda n: torsor.library.planar_chain(n).function("inverse_dynamics"), (40, 80, 120))


def test_operations_grow_linearly() -> None:
    counts = [torsor.library.planar_chain(n).operation_count("inverse_dynamics").arithmetic for n in (50, 100, 150)]
    assert counts[2] - counts[1] == counts[1] - counts[0]


def test_operations_of_real_robots_are_below_their_bars() -> None:
    from robots import robot_file

    ur5 = torsor.load(robot_file("ur5_robot.urdf")).operation_count("inverse_dynamics")
    assert ur5.arithmetic <= 290
    assert ur5.trigonometric == 10
    assert ur5.other == 0
    talos = torsor.load(robot_file("talos_reduced.urdf")).operation_count("inverse_dynamics")
    assert talos.arithmetic <= 3100
