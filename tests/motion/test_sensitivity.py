"""Derivatives of optimal motions with respect to data: those of problems solved again, and of optima in closed form."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.base.errors import ModelError
from torsor.motion.many import with_case
from torsor.motion.results.samples import Course
from torsor.optimisation import Settings, solve_ipopt

INERTIA, START, DISTANCE, T = 1 / 3, 0.1, 0.8, 0.5  # of a rod of 1 kg and 1 m without gravity, from rest to rest


def _rod(phase=None, objective=None, *more, end=START + DISTANCE):
    ends = [motion.Start(q=START, v=0.0), motion.End(q=end, v=0.0)]
    robot = torsor.library.planar_chain(1, gravity=(0.0, 0.0, 0.0))
    phase = phase or motion.Phase(T, points=8)
    return motion.MotionProblem(robot, phase, objective or motion.Effort(), [*ends, *more], name="rod")


def _differences(problem, name, found, index, step):
    """Return central differences of the objective, the variables and tau of problems that are solved again."""
    optimum, outcomes = found._conditions.optimum, []
    times, f, x, tau = np.arange(0.05, 1.0, 0.13) * found._conditions.solution.T, [], [], []  # not at knots
    for by in (step, -step):
        value = found.value.copy()
        value.reshape(-1)[index] += by
        other = with_case(problem, {name: value if value.ndim else float(value)}, 0)
        warm = {"multipliers": optimum.multipliers, "bound_multipliers": optimum.bound_multipliers}
        outcomes.append(solve_ipopt(other.program, optimum.x, Settings(1e-12, 100, **warm)))
        assert outcomes[-1].is_solved
        f.append(other.program.value(outcomes[-1].x)[0])
        x.append(outcomes[-1].x)
        tau.append(Course(other, outcomes[-1].x).at(times).tau)
    return times, *((one - two) / (2 * step) for one, two in (f, x, tau))


def _effort_and_time(name, **arguments):
    return replace(motion.PROBLEMS[name](**arguments), objective=[motion.Time(), motion.Effort(weight=1e-3)])


# The steps keep the active constraints: those of a time-optimal motion change after a small change of the data.
SOLVED_AGAIN = {
    "two-link-time, torque": (lambda: _data("two-link-time", points=12), "Torques.upper", 1e-6),
    "two-link-time, end": (lambda: _data("two-link-time", points=12), "End.q", 1e-7),
    "elastic-arm, torque": (lambda: motion.PROBLEMS["elastic-arm"](), "torque", 1e-5),
    "slide-link, weight": (lambda: motion.PROBLEMS["slide-link"](points=10), "u", 1e-6),
    "slide-link, start": (lambda: _data("slide-link", points=10), "Start.q", 1e-5),
    "ur5 with effort, end": (lambda: _effort_and_time("ur5-time", points=8), "End.q", 1e-6),
}


def _data(name, **arguments):
    return replace(motion.PROBLEMS[name](**arguments))  # without the origin, cases are named data


@pytest.mark.parametrize("case", SOLVED_AGAIN)
def test_derivatives_are_those_of_problems_solved_again(case):
    make, name, step = SOLVED_AGAIN[case]
    problem = make()
    found = problem.solve("condensed" if problem.name != "elastic-arm" else "ipopt").sensitivity(name)
    assert found.error.max() == 0.0
    for index in range(min(2, found.value.size)):
        times, f, x, tau = _differences(problem, name, found, index, step)
        moved = found.x.reshape(len(x), -1)[:, index]
        assert found.objective.ravel()[index] == pytest.approx(f, rel=1e-6)
        np.testing.assert_allclose(moved, x, atol=1e-6 * np.abs(x).max())
        forces = found.at(times, "tau").reshape(*tau.shape, -1)[..., index]
        np.testing.assert_allclose(forces, tau, atol=1e-5 * np.abs(tau).max())


def test_the_duration_of_a_degenerate_time_optimum_has_derivatives():
    problem = motion.PROBLEMS["ur5-time"](points=12)
    found = problem.solve("condensed").sensitivity("end")
    for index in range(2):
        f = _differences(problem, "end", found, index, 1e-4)[1]
        assert found.objective[index] == pytest.approx(f, rel=1e-7)
        assert found.T[index] == pytest.approx(found.objective[index], rel=1e-12)
    with refused(where="ur5-time", fix="Effort"):
        found.x  # noqa: B018


def test_robot_parameters_are_differentiated_by_differences():
    model = torsor.library.two_link().parametric(["links.link2.mass"])
    mass = float(model.values[0])
    held = {"links.link2.mass": motion.Number(mass, mass, mass)}
    aims = [motion.Time(), motion.Effort(weight=1e-2)]
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    problem = motion.MotionProblem(model, motion.Phase((0.1, 2.0), points=8), aims, ends, numbers=held)
    found = problem.solve().sensitivity("links.link2.mass")
    _, f, x, _ = _differences(problem, "links.link2.mass", found, 0, 1e-5 * mass)
    assert found.objective == pytest.approx(f, rel=1e-7) and 0 < found.error < 1e-4
    np.testing.assert_allclose(found.x, x, atol=1e-7 * np.abs(x).max())


def test_derivatives_of_least_effort_are_those_of_its_closed_form():
    # q = d (3 s^2 - 2 s^3), and the integral of tau^2 is 12 I^2 d^2 / T^3
    result = _rod().solve(tolerance=1e-10)
    by_end, by_duration = result.sensitivity("End.q"), result.sensitivity("phase.duration")
    assert by_end.objective == pytest.approx(24 * INERTIA**2 * DISTANCE / T**3, rel=1e-10)
    assert by_duration.objective == pytest.approx(-36 * INERTIA**2 * DISTANCE**2 / T**4, rel=1e-10)
    t = np.linspace(0.0, T, 11)
    s = t / T
    np.testing.assert_allclose(by_end.at(t)[:, 0], 3 * s**2 - 2 * s**3, atol=1e-10)
    np.testing.assert_allclose(by_end.at(t, "tau")[:, 0], INERTIA * (6 - 12 * s) / T**2, atol=1e-9)
    np.testing.assert_allclose(by_duration.at(t)[:, 0], -DISTANCE * (6 * s - 6 * s**2) * s / T, atol=1e-9)
    assert (0.0, pytest.approx(1.0)) == (by_end.T, by_duration.T)


def test_derivatives_of_least_time_are_those_of_its_scaling_law():
    # tau = I d q''(s) / T^2 for any spline q(s) from 0 to 1, so T is proportional to sqrt(I d / u)
    u, phase = 2.0, motion.Phase((0.1, 5.0), points=8)
    result = _rod(phase, motion.Time(), motion.Torques(upper=u)).solve(tolerance=1e-10)
    by_end, by_torque = result.sensitivity("End.q").T, result.sensitivity("Torques.upper").T
    assert by_end == pytest.approx(result.T / (2 * DISTANCE), rel=1e-9)
    assert by_torque == pytest.approx(-result.T / (2 * u), rel=1e-9)


def test_the_objective_changes_along_the_moving_optimum_by_the_derivative_of_the_lagrangian():
    problem, step = _effort_and_time("ur5-time", points=8), 1e-5
    found = problem.solve("condensed").sensitivity("End.q")
    for index in range(3):
        f = []
        for by in (step, -step):
            end = found.value + by * np.eye(6)[index]
            x = found._conditions.x + by * found.x[:, index]
            f.append(with_case(problem, {"End.q": end}, 0).program.value(x)[0])
        assert found.objective[index] == pytest.approx((f[0] - f[1]) / (2 * step), rel=1e-7)


def test_arguments_may_be_positional_and_values_may_be_tables():
    by_position, by_name = motion.PROBLEMS["slide-link"](0.01, 8), motion.PROBLEMS["slide-link"](u=0.01, points=8)
    one, two = (problem.solve().sensitivity("u") for problem in (by_position, by_name))
    assert one.objective == two.objective != 0.0
    as_list, as_table = (
        _rod(motion.Phase((0.1, 5.0), points=8), motion.Time(), motion.Torques(upper=upper)).solve()
        for upper in ([2.0], {"joint1": 2.0})
    )
    one, two = (result.sensitivity("Torques.upper") for result in (as_list, as_table))
    assert one.T.shape == (1,) and one.T == two.T


def test_the_derivative_by_a_bound_is_its_negative_multiplier():
    result = _data("two-link-time", points=12).solve(tolerance=1e-10)
    sides = result.constraints["Torques"].sensitivity
    expected = sum(value if side == "upper" else -value for (_, side), value in sides.items())  # lower is -upper
    assert result.sensitivity("Torques.upper").objective == pytest.approx(expected, rel=1e-7)


def test_many_motions_have_the_derivatives_of_each():
    problem = motion.PROBLEMS["slide-link"](points=8)
    results = problem.solve_many([{"u": u} for u in (0.01, 0.02, 0.05)])
    found = motion.sensitivities(results, "u")
    assert found.x.shape == (3, results[0].program.n)
    for k, result in enumerate(results):
        alone = result.sensitivity("u")
        assert (found.objective[k], found.T[k]) == (alone.objective, alone.T)
        np.testing.assert_array_equal(found.x[k], alone.x)


def test_many_motions_state_which_variables_are_not_determined():
    ends = np.array([[1.5, -0.5, 0.5, -1.5, -1.0, 1.0], [1.0, -1.0, 0.7, -1.2, -1.2, 0.5]])
    results = motion.PROBLEMS["ur5-time"](points=8).solve_many([{"end": end} for end in ends])
    found = motion.sensitivities(results, "end")
    assert np.isfinite(found.objective).all() and np.isfinite(found.T).all()
    assert np.isnan(found.x).all() and all(one.degeneracy is not None for one in found.each)
    np.testing.assert_array_equal(found.each[1].value, ends[1])


def test_a_bound_that_is_only_touched_is_named():
    peak = 1.5 * DISTANCE / T  # the velocity in the middle
    phase = motion.Phase(T, points=8, nodes=11)
    found = _rod(phase, None, motion.Velocities(upper=peak)).solve(tolerance=1e-10).sensitivity("End.q")
    with refused("Velocities joint1 at 0.25 s"):
        found.x  # noqa: B018


def test_variables_that_the_objective_does_not_determine_are_named():
    ends = [motion.Start(q=[0.0, 0.0], v=0.0), motion.End(q=[1.0, 0.1], v=0.0)]
    phase = motion.Phase((0.1, 5.0), degree=3, points=8)
    robot = torsor.library.planar_chain(2, gravity=(0.0, 0.0, 0.0))
    problem = motion.MotionProblem(robot, phase, motion.Time(), [*ends, motion.Velocities(upper=1.0)])
    result = problem.solve()
    found = result.sensitivity("Velocities.upper")
    np.testing.assert_allclose(found.T, -result.T, rtol=1e-6)  # at twice the speed, the motion takes half the time
    with refused("joint2"):
        found.x  # noqa: B018


def test_one_of_two_equal_bounds_has_no_derivatives():
    bounds = [motion.Velocities(upper=1.0, name=name) for name in ("one", "two")]
    result = _rod(motion.Phase((0.1, 5.0), points=8), motion.Time(), *bounds).solve()
    with refused(argument="one.upper", fix="repeat"):
        result.sensitivity("one.upper")


def test_infinite_bounds_have_no_effect():
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    limits, aims = motion.Torques(upper=[5.0, np.inf]), [motion.Time(), motion.Effort(weight=1e-3)]
    phase = motion.Phase((0.1, 2.0), points=8)
    found = motion.MotionProblem(torsor.library.two_link(), phase, aims, [*ends, limits]).solve()
    by_bound = found.sensitivity("Torques.upper").objective
    assert by_bound[0] < 0.0 and by_bound[1] == 0.0


REFUSED = {
    "unknown": ("Torques.uper", {"value": "Torques.uper", "allowed": "Torques.upper"}),
    "text": ("Torques.name", {"argument": "Torques.name", "allowed": "numbers"}),
    "not stated": ("Torques.lower", {"argument": "Torques.lower", "value": None}),
    "structure": ("phase.points", {"argument": "phase.points", "value": 12.0}),
    "rates of 0": ("End.v", {"argument": "End.v", "fix": "1e-12"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_data_without_derivatives_are_refused(case):
    name, expected = REFUSED[case]
    result = _data("two-link-time", points=12).solve("condensed")
    with refused(**expected):
        result.sensitivity(name)


def test_variables_and_unsolved_results_are_refused():
    model = torsor.library.two_link().parametric(["links.link2.mass"])
    free = {"links.link2.mass": motion.Number(0.5, 0.2, 1.0)}
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    problem = motion.MotionProblem(model, motion.Phase(1.0, points=6), motion.Effort(), ends, numbers=free)
    with refused(value="links.link2.mass", fix="equal bounds"):
        problem.solve().sensitivity("links.link2.mass")
    stopped = problem.solve(iterations=1, check=False)
    with refused(allowed="an optimal and feasible result"):
        stopped.sensitivity("End.q")
    with pytest.raises(ModelError):
        motion.sensitivities([], "End.q")
