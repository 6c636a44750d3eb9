"""A parametric robot with loops rejects the same input as the robot itself, for values and derivatives."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import library
from torsor.robot.accessors import method_of

BAR = library.four_bar()
OPEN = np.array([0.5, 0.0, 0.0])
Q = BAR.closed.assemble([0.5])
V = BAR.closed.velocities(Q, [1.0])
ONE = [1.0]
PARALLEL = library.four_bar(1.0, 0.4, 1.0, 0.4)  # its bars are in one line at 0: a dead point of the rocker
LINE, STILL = np.zeros(3), np.zeros(3)
CALLS = {
    "constrained_velocities": lambda q, v: (q, ONE),
    "constrained_inverse_dynamics": lambda q, v: (q, ONE, ONE, ONE),
    "loop_forces": lambda q, v: (q, ONE, ONE, ONE),
    "closed_inverse_dynamics": lambda q, v: (q, v, ONE),
    "closed_forward_dynamics": lambda q, v: (q, v, [0.0, 0.0, 0.0]),
    "closed_velocities": lambda q, v: (q, v),
}


def ways(model, name, *values):
    """Each way to evaluate a method of a parametric robot."""
    method = method_of(model, name)
    result = model.robot.kernels.request(name).results(model.robot)[name]
    nothing = [None] * (len(values) + 1)
    return [
        lambda: method(*values, model.values),
        lambda: model.by_parameters(name, *values, model.values),
        lambda: model.derivatives.jvp(name, (*values, model.values), nothing),
        lambda: model.derivatives.vjp(name, (*values, model.values), np.ones(result)),
        lambda: model.robot.derivatives.jvp(name, values, nothing[1:]),
    ]


@pytest.mark.parametrize("name", CALLS)
def test_open_loops_are_refused_by_every_way_to_call(name: str) -> None:
    model = BAR.to(device="casadi").parametric(["links.0.mass"])
    for way in ways(model, name, *CALLS[name](OPEN, STILL)):
        with refused(what="the loops are not closed"):
            way()


@pytest.mark.parametrize("name", CALLS)
def test_singular_positions_are_refused_by_every_way_to_call(name: str) -> None:
    model = PARALLEL.to(device="casadi").parametric(["links.0.mass"])
    for way in ways(model, name, *CALLS[name](LINE, STILL)):
        with pytest.raises(torsor.ModelError, match=r"singular at q|lose rank|do not determine the other"):
            way()


@pytest.mark.parametrize("name", ["closed_inverse_dynamics", "closed_forward_dynamics"])
def test_velocities_that_open_the_loops_are_refused_by_every_way_to_call(name: str) -> None:
    model = BAR.to(device="casadi").parametric(["links.0.mass"])
    for way in ways(model, name, *CALLS[name](Q, [1.0, 0.0, 0.0])):
        with refused(what="the velocities open the loops"):
            way()


@pytest.mark.parametrize("name", CALLS)
def test_values_are_those_of_the_robot_with_these_numbers(name: str) -> None:
    """A longer crank closes the loop elsewhere: positions are checked with the numbers that are given."""
    model = BAR.to(device="casadi").parametric({"crank": {"joints.1.origin.x": 1.0}, "mass": "links.1.mass"})
    p = model.values + np.array([0.05, 0.3])
    there = model.at(p)
    q = there.closed.assemble([0.5])
    values = CALLS[name](q, there.closed.velocities(q, ONE))
    expected = method_of(there, name)(*values[:3])  # without the share of drives, of which none is redundant
    np.testing.assert_allclose(
        method_of(model, name)(*values, p), expected, rtol=0, atol=1e-10 * np.abs(expected).max()
    )
    with refused(what="the loops are not closed"):
        method_of(model, name)(*values, model.values)


def test_each_state_of_a_batch_has_its_own_numbers() -> None:
    model = BAR.to(device="casadi").parametric(["links.1.mass"])
    masses = np.array([[1.0], [2.0]])
    found = model.closed.inverse_dynamics(Q, V, ONE, masses, coordinates="all")
    expected = [model.at(each).closed.inverse_dynamics(Q, V, ONE, coordinates="all") for each in masses]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_share_of_drives_is_optional_as_in_the_method_of_the_robot() -> None:
    model = BAR.to(device="casadi").parametric(["links.0.mass"])
    values, p = (Q, ONE, ONE), model.values
    expected = BAR.closed.inverse_dynamics(*values)
    for found in (
        model.closed.inverse_dynamics(*values, p),
        model.closed.inverse_dynamics(*values, p, share=[2.0]),
        model.closed.inverse_dynamics(*values, ONE, p),  # as an input before p
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["constrained_inverse_dynamics", "closed_inverse_dynamics"])
def test_a_wrong_number_of_numbers_is_named(name: str) -> None:
    model, values = BAR.to(device="casadi").parametric(["links.0.mass"]), CALLS[name](Q, V)
    for wrong in (
        lambda: method_of(model, name)(*values, [1.0, 2.0]),
        lambda: model.by_parameters(name, *values, [1.0, 2.0]),
        lambda: model.derivatives.vjp(name, (*values, [1.0, 2.0]), [1.0]),
    ):
        with refused(where="four_bar", allowed="(..., 1), one for each of links.0.mass"):
            wrong()
