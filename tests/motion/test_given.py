"""Held numbers, data of moments and squares are inputs of the kernels; groups of constraints are relaxed in order."""

from dataclasses import dataclass
from functools import cache

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import motion
from torsor.motion.terms.term import Constraint, Cost, Rows

from .whole import disagreement

ENDS = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]


@cache
def robot() -> torsor.Robot:
    return torsor.library.two_link()


@dataclass(frozen=True, eq=False, kw_only=True)
class Squared(Cost):
    """Squares of torques, as a column or within the integrand."""

    column: bool = True

    def integrand(self, node):
        """Return the velocities' squares, and those of the torques where they are no column."""
        return 0.1 * ca.sumsqr(node.v) + (0 if self.column else ca.sumsqr(node.tau / 7.0))

    def squares(self, node):
        """Return torques in parts of 7 N m."""
        return node.tau / 7.0 if self.column else ca.SX(0, 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Below(Constraint):
    """The first torque stays below a ceiling that falls with time, which is data."""

    ceiling: float

    def data(self, s):
        """Return the ceiling."""
        return {"ceiling": (self.ceiling * (2 - s))[:, None]}

    def rows(self, node):
        """Return the torque in parts of the ceiling."""
        return Rows(node.tau[0] / node.data("ceiling", 1), np.full(1, -np.inf), np.ones(1), ("torque",))


def problem(model, cost, *rows, duration=(0.3, 1.5), **more):
    return motion.MotionProblem(model, motion.Phase(duration, points=6, nodes=5), cost, [*ENDS, *rows], **more)


def held(model, **free):
    """The numbers of a model, all with one value but those that are free."""
    values = dict(zip(model.names, model.values, strict=True))
    return {name: free.get(name, motion.Number(value, value, value)) for name, value in values.items()}


@pytest.mark.parametrize("duration", [(0.3, 1.5), 0.8])
def test_squares_have_the_derivatives_of_a_sum_in_the_integrand(duration) -> None:
    for column in (True, False):
        assert max(disagreement(problem(robot(), Squared(column=column, weight=2.0), duration=duration))) < 1e-12


@pytest.mark.slow
def test_held_numbers_and_data_leave_derivatives_exact() -> None:
    model = robot().parametric(["links.link2.mass", "gravity.y", "links.link1.mass"])
    for numbers in (held(model), held(model, **{"gravity.y": motion.Number(-9.0, -10.0, -8.0)})):
        asked = problem(model, Squared(), Below(ceiling=5.0), numbers=numbers)
        assert max(disagreement(asked)) < 1e-12


def test_a_held_number_is_no_variable_and_is_the_robot_s() -> None:
    model = robot().parametric(["links.link2.mass"])
    heavier = problem(model, Squared(), numbers={"links.link2.mass": motion.Number(2.0, 2.0, 2.0)})
    result = heavier.solve()
    assert heavier.held == {"links.link2.mass": 2.0} and not heavier.shared
    assert result.numbers == {"links.link2.mass": 2.0} and result.robot.links[1].mass == 2.0
    baked = problem(model.at([2.0]), Squared()).solve()
    assert result.objective == pytest.approx(baked.objective, rel=1e-9)


def test_data_changes_what_holds_and_not_what_is_compiled() -> None:
    models = [problem(robot(), Squared(), Below(ceiling=ceiling), duration=0.8) for ceiling in (5.0, 50.0)]
    keys = [next(batch.kernels.identity for batch in each.program.batches if batch.kernels.m) for each in models]
    assert keys[0] == keys[1]
    rows = [each.program.value(each.guess())[1] for each in models]
    np.testing.assert_allclose(rows[0], 10 * rows[1], rtol=1e-12)


def test_a_search_by_way_of_a_feasible_motion_ends_where_the_other_does() -> None:
    asked = problem(robot(), motion.Effort(), motion.Torques(upper=10.0), duration=0.6)
    direct, after = asked.solve(), asked.solve(feasible_first=True)
    assert after.is_solved and after.objective == pytest.approx(direct.objective, rel=1e-6)
    assert len(after.log) >= after.iterations > 0


def test_a_group_that_gives_way_is_told_by_how_much() -> None:
    limits = motion.Torques(upper=10.0, name="torques"), motion.Velocities(upper=20.0, name="slow")
    asked = problem(robot(), motion.Effort(), *limits, duration=0.25, relaxation_order=[["torques"], ["slow"]])
    with refused(what="satisfies torques (joint1 is below its lower bound", error=motion.MotionError) as caught:
        asked.solve()
    error = caught.value
    assert error.conflict == ("torques",) and error.result is not None
    most = np.abs(error.result.at(0.25 * np.linspace(0, 1, 5)).tau).max() / 10.0 - 1.0
    assert error.violation == pytest.approx(most, rel=1e-6)
    wider = motion.Torques(upper=10.0 * (1 + 1.001 * error.violation))
    with warned(what="between the nodes,"):  # there are five
        assert problem(robot(), motion.Effort(), wider, limits[1], duration=0.25).solve().is_solved


def test_a_group_is_tried_without_those_before_it() -> None:
    limits = motion.Torques(upper=10.0, name="torques"), motion.Velocities(upper=2.0, name="slow")
    asked = problem(robot(), motion.Effort(), *limits, duration=0.25, relaxation_order=[["torques"], ["slow"]])
    with refused(what="even without torques", error=motion.MotionError) as caught:
        asked.solve()
    assert caught.value.conflict == ("slow",)


@pytest.mark.parametrize(
    ("relaxation_order", "message"),
    [
        ([["torque"]], "relaxation_order"),
        ("torques", "torques"),
        (None, "relaxation_order contains None"),
    ],
)
def test_groups_that_are_none_are_refused(relaxation_order: object, message: str) -> None:
    with refused(message):
        problem(robot(), motion.Effort(), motion.Torques(name="torques"), relaxation_order=relaxation_order)
