"""Problem statements: integrals, names of phases, starts, and kernels shared between problems."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.motion import (
    Effort,
    End,
    ExpressionCost,
    Jerks,
    MotionProblem,
    Path,
    Phase,
    Reaction,
    Reference,
    Start,
    Time,
    TorqueRates,
    Torques,
)

TWO = torsor.library.two_link()
ENDS = [Start(q=0.1, v=0.0), End(q=1.5, v=0.0)]


def _integral(values, times):
    """By trapezoids."""
    return float(np.diff(times) @ (values[1:] + values[:-1])) / 2


@pytest.mark.parametrize(("degree", "points"), [(3, 5), (4, 6), (5, 8), (7, 8)])
def test_no_effort_hides_between_the_points_of_an_integral(degree, points):
    result = MotionProblem(TWO, Phase(0.8, points=points, degree=degree), Effort(), ENDS).solve()
    at = result.at(np.linspace(0.0, 0.8, 4001))
    effort = (TWO.inverse_dynamics(at.q, at.v, at.a) ** 2).sum(-1)
    assert result.objective == pytest.approx(_integral(effort, at.times), rel=1e-4)


def test_integrals_along_paths_and_from_references_see_all_their_turns():
    rng = np.random.default_rng(3)
    ends, way = [Start(q=0.0, v=0.0), End(q=1.0, v=0.0)], Path.through(rng.normal(size=(12, 2)))
    result = MotionProblem(TWO, Phase((1.0, 3.0), points=8), Effort(), ends, path=way).solve()
    assert (result.x[:-1] >= 0).all() and (result.x[:-1] <= 1).all()
    at = result.at(np.linspace(0.0, result.T, 20_001))
    effort = (TWO.inverse_dynamics(at.q, at.v, at.a) ** 2).sum(-1)
    assert result.objective == pytest.approx(_integral(effort, at.times), rel=1e-3)
    drawn = Reference(values=rng.normal(size=(15, 2)))
    result = MotionProblem(TWO, Phase(1.0, points=8), drawn, ENDS).solve()
    at = result.at(np.linspace(0.0, 1.0, 20_001))
    far = (at.q - Path.through(drawn.values, 3, np.linspace(0, 1, 15)).positions(at.times)) ** 2
    assert result.objective == pytest.approx(_integral(far.sum(-1), at.times), rel=1e-4)


def test_integrals_are_over_the_share_of_the_phase_that_is_asked_for():
    whole, *parts = (
        MotionProblem(TWO, Phase((0.5, 2.0), points=7), Effort(during=during)).program
        for during in ((0.0, 1.0), (0.0, 0.3), (0.3, 1.0))
    )
    x = 0.5 + 0.2 * np.sin(np.arange(whole.n))
    assert sum(each.value(x)[0] for each in parts) == pytest.approx(whole.value(x)[0], rel=1e-4)


def test_ends_know_phases_by_their_names():
    phases = [Phase(1.0, points=5, name="reach"), Phase(1.0, points=5, name="return")]
    at = [End(q=1.0, v=0.0, phase="reach"), Start(q=0.0), End(q=0.0, phase="return")]
    by_index = [End(q=1.0, v=0.0, phase=0), Start(q=0.0), End(q=0.0, phase=1)]
    one, other = (MotionProblem(TWO, phases, Effort(), each).program for each in (at, by_index))
    assert one.layout.size == other.layout.size
    for a, b in zip(one.layout.phases, other.layout.phases, strict=True):
        assert np.array_equal(a.known, b.known) and np.array_equal(a.columns, b.columns)


def test_straight_lines_pass_what_is_given_between_phases():
    phases = [Phase(1.0, points=5), Phase(3.0, points=5)]
    ends = [End(q=0.0), End(q=[1.0, 2.0], phase=0), Start(q=0.0)]
    problem = MotionProblem(TWO, phases, Effort(), ends)
    first, second = problem.program.layout.phases
    x = problem.guess()
    assert np.allclose(first.profiles(x, np.array([0.0, 0.5, 1.0]), 1)[0], [[0, 0], [0.5, 1], [1, 2]])
    assert np.allclose(second.profiles(x, np.array([0.0, 0.5, 1.0]), 1)[0], [[1, 2], [0.5, 1], [0, 0]])


def test_closed_loops_start_in_their_way_of_assembly():
    robot = torsor.library.five_bar()
    begin = robot.closed.assemble([1.2, 0.8])
    problem = MotionProblem(robot, Phase(1.0, points=5, nodes=3), Effort(), assembly=begin)
    assert np.allclose(problem.program.layout.phases[0].points(problem.guess()), [[1.2] * 5, [0.8] * 5])


def _lines(*rows, count=6):
    return Path.through(np.linspace(*rows, count))


def test_kernels_of_different_problems_are_kept_apart():
    gravity = TWO.parametric(["gravity"])
    one, other = TWO.parametric(["links.link1.mass"]), TWO.parametric(["links.link2.mass"])
    square = [ExpressionCost(function=lambda node, k=k: k * node.tau[0] ** 2) for k in (1.0, 1.0 + 1e-15)]
    limited = [(kind(upper=1.0, at=0.5), Jerks(upper=1.0, at=0.5)) for kind in (Torques, TorqueRates)]
    swapped = [(TorqueRates(upper=1.0, at=0.0), Torques(upper=1.0, at=0.5), Jerks(upper=1.0, at=0.5))]
    swapped += [(Torques(upper=1.0, at=0.0), TorqueRates(upper=1.0, at=0.5), Jerks(upper=1.0, at=0.5))]
    cases = [{"robot": each} for each in (TWO, gravity, one, other, TWO.with_gravity([0, -1, 0]))]
    cases += [{"robot": TWO.with_friction("joint1", viscous=each)} for each in (1.0, 2.0)]
    cases += [{"frozen": each} for each in ({"joint1": 0.1}, {"joint1": 0.2}, {"joint2": 0.1})]
    cases += [{"path": each} for each in (_lines([0, 0], [1, 1]), _lines([0, 0], [1, 1], count=7))]
    cases += [{"objective": each} for each in square]
    cases += [{"objective": Time(), "constraints": each} for each in (*limited, *swapped)]
    seen = {}
    for number, case in enumerate(cases):
        problem = MotionProblem(**{"robot": TWO, "phases": Phase(1.0, points=5, nodes=3), "objective": Effort()} | case)
        for batch in problem.program.batches:
            terms = [type(each).__name__ for each in batch.kernels.constraints]
            assert seen.setdefault(batch.kernels.identity, (number, terms))[0] == number, (case, terms)
    assert len(seen) >= len(cases)


def test_means_of_reactions_are_over_the_time_or_the_moments_they_are_asked_for():
    phase = Phase((0.5, 2.0), points=7)
    x = np.append(0.5 + 0.2 * np.sin(np.arange(14)), 1.3)

    def cost(**options):
        return MotionProblem(TWO, phase, Reaction(force=2.0, **options)).program.value(x)[0]

    half = {"during": (0.25, 0.75)}
    assert cost(**half) == cost(kind="squared", **half)  # like every objective, an integral over time
    assert cost(kind="mean", **half) == pytest.approx(cost(kind="squared", **half) / 0.65, rel=1e-12)
    assert cost(kind="mean", at=[0.2, 0.6]) == pytest.approx(cost(kind="squared", at=[0.2, 0.6]) / 2, rel=1e-12)


@pytest.mark.parametrize("solver", ["condensed", "ipopt", "sqp"])
def test_durations_between_bounds_far_apart_begin_at_their_geometric_mean(solver):
    ends = [Start(q=[0.0, -2.0], v=0.0), End(q=[1.0, -1.0], v=0.0)]
    problem = MotionProblem(TWO, Phase((1e-9, 1e9), points=12), Time(), [*ends, Torques(upper=10.0)])
    assert problem.guess()[-1] == pytest.approx(1.0)
    assert pytest.approx(0.395628, abs=1e-6) == problem.solve(solver).T


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"points": 10**9}, "points is 1000000000"),
        ({"nodes": 10**12}, "nodes is 1000000000000"),
        ({"nodes": np.linspace(0, 1, 10**6 + 1)}, "1000000 or fewer"),
        ({"knots": np.linspace(0.1, 0.9, 10**5)}, "10000 or fewer"),
    ],
)
def test_phases_that_do_not_fit_into_memory_are_refused(given, message):
    with refused(message):
        Phase(1.0, **given)
