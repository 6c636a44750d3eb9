"""A phase with its own clock: exact derivatives, and quantities that are derivatives with respect to elapsed time."""

from dataclasses import dataclass

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.motion import Rates
from torsor.motion.results.samples import Course


@dataclass(frozen=True, eq=False, kw_only=True)
class Speed(motion.ExpressionConstraint):
    """Declares a shared number "speed"."""

    def numbers(self):
        return {"speed": motion.Number(1.1, 0.5, 2.0)}


ARM, CLOCK = torsor.library.two_link(), motion.Phase((0.3, 2.0), points=6, nodes=13, clock=2)


def problem(costs, paced_by=""):
    ends = motion.Periodic(paces={"joint1": 0.7}, paced_by=paced_by, order=2)
    speed = Speed(function=lambda node: node.shared["speed"], upper=3.0, name="speed")
    return motion.MotionProblem(ARM, CLOCK, costs, [ends, motion.Torques(upper=50.0, name="torques"), speed])


def gradient_and_jacobian(program, x):
    dense = np.zeros((program.m, program.n))
    gradient, values = program.jacobian(x)
    dense[program.structure] = values
    return gradient.copy(), dense


def smooth(node):
    return 1e-4 * node.j[0] ** 2 + 1e-5 * node.rate(node.tau)[1] ** 2 + node.t * node.q[0] ** 2


COSTS = {
    "integrals": [motion.Effort(), motion.ExpressionCost(function=smooth)],
    "rates": [Rates(of="torques", weight=0.3, per="speed")],
    "time": [motion.Time()],
}


@pytest.mark.parametrize("name", COSTS)
def test_derivatives_by_time_and_clock_are_those_of_differences(name):
    own = problem(COSTS[name], "speed" if name == "rates" else "").program
    rng, e = np.random.default_rng(1), 1e-6
    x = problem(COSTS[name]).guess() + 0.1 * rng.normal(size=own.n)
    weights = rng.normal(size=own.m)

    def slope(at):
        gradient, jacobian = gradient_and_jacobian(own, at)
        return 1.3 * gradient + jacobian.T @ weights

    def difference(function):
        return np.stack(
            [(function(x + e * step) - function(x - e * step)) / (2 * e) for step in np.eye(own.n)], axis=-1
        )

    gradient, jacobian = gradient_and_jacobian(own, x)
    hessian = own.hessian(x, weights, 1.3)
    for found, wanted in (
        (gradient, difference(lambda at: own.value(at)[0])),
        (jacobian, difference(lambda at: own.value(at)[1])),
        (hessian, difference(slope)),
    ):
        assert abs(found - wanted).max() < 1e-8 * max(abs(wanted).max(), 1.0)


def test_velocities_and_force_rates_are_derivatives_by_the_time_that_the_clock_shows():
    own = problem(COSTS["integrals"])
    x = own.guess() + 0.2 * np.random.default_rng(2).normal(size=own.program.n)
    layout, e = own.program.layout.phases[0], 1e-5
    T = layout.seconds(x)
    t = np.linspace(0.1, 0.9, 5) * T
    before, here, after = (Course(own, x).at(t + step) for step in (-e, 0.0, e))
    for value, rate in (("q", "v"), ("v", "a"), ("a", "j"), ("tau", "tau_rate")):
        wanted = getattr(here, rate)
        found = (getattr(after, value) - getattr(before, value)) / (2 * e)
        assert abs(found - wanted).max() < 1e-6 * max(abs(wanted).max(), 1.0)
    profiles = layout.profiles(x, here.s, 4)
    for k, name in enumerate("qvaj"):
        np.testing.assert_allclose(profiles[k], getattr(here, name), rtol=1e-10, atol=1e-10)


def test_the_integral_of_one_over_the_phase_is_its_duration():
    own = problem([motion.ExpressionCost(function=lambda node: node.T / node.T)]).program
    x = problem(COSTS["time"]).guess()
    x[list(own.layout.phases[0].ticks)] = 0.3, -0.2, 0.1, 0.15
    assert abs(own.value(x)[0] - own.layout.phases[0].seconds(x)) < 1e-10


def test_times_and_places_are_inverse():
    layout = problem(COSTS["time"]).program.layout.phases[0]
    x = problem(COSTS["time"]).guess()
    x[list(layout.ticks)] = 0.3, -0.2, 0.1, 0.15
    s = np.linspace(0.0, 1.0, 21)
    np.testing.assert_allclose(layout.places(x, layout.times(x, s)), s, atol=1e-12)


def test_rates_of_an_unknown_constraint_are_refused():
    with refused(value="nothing"):
        problem([Rates(of="nothing")]).guess()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: motion.Phase(1.0, clock=7), "clock"),
        (
            lambda: motion.MotionProblem(ARM, [motion.Phase(1.0, clock=1), motion.Phase(1.0)], motion.Effort()),
            "2 phases",
        ),
        (
            lambda: motion.MotionProblem(ARM, CLOCK, motion.Effort(), [motion.Start(q=0.0, v=1.0)]).program,
            "must have zero rates",
        ),
    ],
)
def test_clocks_that_cannot_be_are_refused(make, words):
    with refused(words):
        make()
