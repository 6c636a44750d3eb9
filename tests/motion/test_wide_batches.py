"""Batches with linear rows, row rates, fixed variables and kinked costs: as each case alone."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest

from torsor import motion
from torsor.library import two_link
from torsor.motion.batched import Rows, Warm, solve_batch
from torsor.motion.many import batch_structure, with_case
from torsor.motion.solve import SolveSettings
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.cases import structure_of
from torsor.motion.wide.cases import WideCases
from torsor.optimisation import Settings
from torsor.optimisation.barrier import EQUATION_STIFFNESS, FAR

PLAIN = SolveSettings(solver="condensed")


@dataclass(frozen=True, eq=False, kw_only=True)
class Speed(motion.ExpressionConstraint):
    """Declares a shared number "speed"."""

    def numbers(self):
        return {"speed": motion.Number(1.1, 0.5, 2.0)}


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundedTorques(Cost):
    """The absolute torques of both joints, rounded at 0."""

    rounding: float = 1.0

    def data(self, s):
        return {"rounding": np.full((len(s), 1), self.rounding)}

    def smoother(self):
        return replace(self, rounding=10.0)

    def integrand(self, node):
        return ca.sum1(ca.sqrt(node.tau**2 + node.data("rounding", 1) ** 2))


def _paced(**changes):
    """A periodic motion at a free speed, with its own clock, and a cost of torque rates."""
    phase = motion.Phase((0.3, 2.0), points=6, nodes=13, clock=2)
    speed = Speed(function=lambda node: node.shared["speed"], lower=0.8, upper=3.0, name="speed")
    torques = motion.Torques(upper=50.0, name="torques")
    bent = motion.Positions(only=["joint2"], lower=1.0, at=0.5, name="bent")
    straight = motion.Positions(only=["joint2"], upper=0.5, at=0.0)
    terms = [motion.Periodic(paces={"joint1": 0.7}, paced_by="speed", order=2), torques, speed, bent, straight]
    costs = [motion.Effort(), motion.Rates(of="torques", weight=0.3, per="speed")]
    return motion.MotionProblem(two_link(), phase, costs, terms, name="paced", **changes)


def _through(**changes):
    """A motion in two phases of free durations, whose common moment is free."""
    phases = [motion.Phase((0.1, 1.0), points=6, name="there"), motion.Phase((0.1, 1.0), points=6, name="back")]
    via = motion.Positions(only=["joint2"], lower=-0.2, upper=0.3, phase="there", at=1.0, name="via")
    ends = motion.Start(q=[0.0, -1.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)
    terms = [*ends, motion.Torques(upper=20.0), via]
    return motion.MotionProblem(two_link(), phases, motion.Time(), terms, name="through", **changes)


def _held(**changes):
    """A motion with a joint whose control points are fixed."""
    ends = motion.Start(q=[0.0, -1.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)
    still = motion.Positions(only=["joint2"], lower=-1.0, upper=-1.0, hull=True)
    phase = motion.Phase((0.1, 2.0), points=8)
    return motion.MotionProblem(two_link(), phase, motion.Time(), [*ends, motion.Torques(upper=20.0), still], **changes)


def _lift(**changes):
    ends = motion.Start(q=0.0, v=0.0), motion.End(q=[1.0, 0.5], v=0.0)
    terms = [*ends, motion.Torques(upper=60.0)]
    return motion.MotionProblem(
        two_link(), motion.Phase(1.0, points=7), RoundedTorques(), terms, name="lift", **changes
    )


CASES = {
    "paced": (_paced, [{"bent.lower": 0.9}, {"bent.lower": 1.2}, {"torques.upper": 8.0}]),
    "through": (
        _through,
        [{"Torques.upper": 25.0}, {"End.q": [0.8, -1.2]}, {"via.lower": 0.1}],
    ),
    "held": (_held, [{"Torques.upper": upper} for upper in (10.0, 20.0, 30.0)]),
    "lift": (_lift, [{"End.q": [q, 0.5]} for q in (0.8, 0.9, 1.0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_of_a_batch_are_those_of_each_program(name):
    make, cases = CASES[name]
    problems = [with_case(make(), case, k) for k, case in enumerate(cases)]
    programs, rng = [problem.program for problem in problems], np.random.default_rng(1)
    guesses = np.stack([problem.guess() for problem in problems])
    x = np.clip(guesses + rng.uniform(-0.1, 0.1, guesses.shape), programs[0].lower, programs[0].upper)
    weight, curvature = rng.uniform(0.5, 2.0, 3), np.array([1.0, 0.5, 0.0])
    batch = WideCases.of(programs, x)
    low, high = batch.row_bounds
    is_equation, is_low, is_high = low == high, low > -FAR, high < FAR
    w = np.where(is_equation, low, rng.uniform(np.maximum(low, -2.0), np.maximum(np.minimum(high, 2.0), -1.0)))
    z_low, z_high = (rng.uniform(0.1, 2.0, w.shape) * side * ~is_equation for side in (is_low, is_high))
    rows = Rows(w, rng.normal(size=w.shape), z_low, z_high)
    (f, h), point = batch.value(x), batch.point(x, rows, weight, curvature)
    places = point.systems.places
    matrix = np.where(places >= 0, point.entries[:, places], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_low, by_high = (np.where(z > 0, 1 / np.abs(w - side), 0.0) for z, side in ((z_low, low), (z_high, high)))
    stiffness, repulsion = z_low * by_low + z_high * by_high + EQUATION_STIFFNESS * is_equation, by_high - by_low
    pushed = stiffness * (h - w) + is_equation * rows.u
    for k, program in enumerate(programs):
        gradient, entries = program.jacobian(x[k])
        J, units = np.zeros((program.m, program.n)), batch.units[k]
        np.add.at(J, program.structure, entries)
        J /= units[:, None]
        hessian = program.hessian(x[k], curvature[k] * rows.u[k] / units, weight[k])
        square = J.T @ (stiffness[k][:, None] * J)
        pairs = (
            (f[k], program.value(x[k])[0]),
            (h[k], program.value(x[k])[1] / units),
            (point.gradient[k], weight[k] * gradient),
            (point.multiplied[k], J.T @ rows.u[k]),
            (point.pushed[k], J.T @ pushed[k]),
            (point.repelled[k], J.T @ repulsion[k]),
        )
        for own, alone in pairs:
            np.testing.assert_allclose(own, alone, rtol=0, atol=1e-12 * max(np.abs(alone).max(), 1.0))
        size = np.abs(hessian) + np.abs(J).T @ (stiffness[k][:, None] * np.abs(J))
        assert (np.abs(matrix[k] - hessian - square) <= 1e-12 * np.maximum(size, np.abs(hessian).max())).all()


@pytest.mark.parametrize("name", CASES)
def test_solutions_of_a_batch_are_those_of_each_case_alone(name):
    make, cases = CASES[name]
    problem = make()
    assert batch_structure(problem, PLAIN) is not None
    tolerance = 1e-8
    settings = {"solver": "condensed", "tolerance": tolerance, "refine": False}
    results = problem.solve_many(cases, **settings)
    for index, (case, result) in enumerate(zip(cases, results, strict=True)):
        alone = with_case(problem, case, index).solve(**settings)
        assert result.is_solved and result.status == alone.status
        assert result.objective == pytest.approx(alone.objective, rel=1e-6)
        assert result.max_violation <= tolerance
        program, x, u = result.program, result.x, result.outcome.multipliers
        gradient, entries = program.jacobian(x)
        rows, columns = program.structure
        total = gradient + np.bincount(columns, u[rows] * entries, minlength=program.n)
        limit = 100 * tolerance * max(1.0, np.abs(gradient).max(), np.abs(u).max())
        np.testing.assert_allclose(total + result.outcome.bound_multipliers, 0, atol=limit)
        if name in ("paced", "lift"):  # otherwise they are not unique
            np.testing.assert_allclose(u, alone.outcome.multipliers, atol=1e-4 * np.abs(u).max())


def test_only_rows_at_nodes_without_row_rates_are_computed_in_fused_kernels():
    fused = {name: structure_of(make().program) is not None for name, (make, _) in CASES.items()}
    assert fused == {"paced": False, "through": False, "held": True, "lift": True}


def test_a_case_does_not_depend_on_those_beside_it():
    problems = [with_case(_paced(), case, k) for k, case in enumerate(CASES["paced"][1])]
    starts = np.stack([problem.guess() for problem in problems])
    cases = WideCases.of([problem.program for problem in problems], starts)
    whole = solve_batch(cases, starts, Settings())
    for width in (1, 2):
        for one, other in zip(whole, solve_batch(cases, starts, Settings(), width=width), strict=True):
            np.testing.assert_array_equal(one.outcome.x, other.outcome.x)
            np.testing.assert_array_equal(one.outcome.multipliers, other.outcome.multipliers)


def test_a_batch_that_starts_at_a_solution_with_its_multipliers_needs_few_iterations():
    problem = _paced()
    starts = problem.guess()[None]
    cases = WideCases.of([problem.program], starts)
    (cold,) = solve_batch(cases, starts, Settings())
    warm = Warm(cold.outcome.multipliers[None], cold.outcome.bound_multipliers[None])
    (again,) = solve_batch(cases, cold.outcome.x[None], Settings(), warm=warm)
    assert again.outcome.iterations < cold.outcome.iterations / 2
    assert again.outcome.objective == pytest.approx(cold.outcome.objective, rel=1e-5)
