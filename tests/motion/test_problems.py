"""The built-in motion problems reproduce published figures, and refinement works on them."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import motion
from torsor.motion.problems import PROBLEMS, elastic_arm, panda_time, path_time, slide_link, two_link_time, ur5_time

# Clamped cubic splines with n control points a joint, bounds on 10 n + 1 moments; and on 2 n + 1, with the torque that
# these leave between them.
LEAST_TIMES = {6: 0.421169, 8: 0.405417, 10: 0.399023, 12: 0.395628, 16: 0.393759, 20: 0.393022, 30: 0.392313}
COARSE = {8: (0.403152, 10.5863), 12: (0.394715, 10.9291), 20: (0.392830, 10.1545)}
TRUE_LEAST_TIME = 0.39185453951551963
# T and J of splines, eqs. 4.18 and 4.19 as printed
SLIDE = {6: (0.64633746, 0.85316543), 12: (0.64626048, 0.85306381), 20: (0.64625980, 0.85306289)}


def solved(problem: motion.MotionProblem) -> motion.MotionResult:
    result = problem.solve(tolerance=1e-9)
    assert result.is_solved
    return result


@pytest.mark.parametrize("points", LEAST_TIMES)
def test_two_link_arm_takes_the_least_times_of_the_table(points):
    assert pytest.approx(LEAST_TIMES[points], abs=1e-6) == solved(two_link_time(points)).T


@pytest.mark.parametrize("points", COARSE)
def test_coarse_grids_leave_the_torques_of_the_table_between_them(points):
    T, torque = COARSE[points]
    if torque > 10 * 1.05:
        with warned(what="optimal at the nodes only"):
            result = solved(two_link_time(points, nodes=2 * points + 1))
    else:
        result = solved(two_link_time(points, nodes=2 * points + 1))
    assert pytest.approx(T, abs=1e-6) == result.T
    assert pytest.approx(torque, rel=2e-4) == np.abs(result.at(np.linspace(0, result.T, 4001)).tau).max()


def test_more_control_points_and_fewer_nodes_are_never_slower():
    # Knots halve, so that each space of splines holds the one before; nodes halve, so that each grid holds the next.
    by_points = [solved(two_link_time(points, nodes=121)).T for points in (6, 9, 15, 27)]
    assert (np.diff(by_points) < 0).all()
    by_nodes = [solved(two_link_time(12, nodes=nodes)).T for nodes in (17, 33, 65, 129)]
    assert (np.diff(by_nodes) > 0).all()
    assert min(by_points) > TRUE_LEAST_TIME


def test_bang_bang_refinement_starts_from_a_result():
    best = motion.switching(two_link_time().solve())
    assert pytest.approx(TRUE_LEAST_TIME, rel=1e-9) == best.T


@pytest.mark.parametrize("points", SLIDE)
def test_slide_and_link_as_printed(points):
    result = solved(slide_link(points=points))
    T, J = SLIDE[points]
    assert pytest.approx(T, abs=2e-6) == result.T
    assert pytest.approx(J, abs=2e-7) == result.objective


def test_other_readings_of_the_slide_and_link():
    for variant, T, J in (("reordered", 0.567138, 0.748623), ("without-offset", 0.585784, 0.773235)):
        result = solved(slide_link(points=20, variant=variant))
        assert pytest.approx(T, abs=5e-6) == result.T
        assert pytest.approx(J, abs=1e-6) == result.objective
    # With no weight on effort it is the least time, 0.51907 s by collocation.
    assert pytest.approx(0.51907, abs=3e-4) == slide_link(u=0.0, points=30).solve().T


def test_the_front_of_time_and_effort_falls():
    front = motion.pareto(slide_link(u=0.5, points=8), [0.999, 0.99, 0.97, 0.9])
    times, efforts = (np.array([result.parts[k].value for result in front]) for k in (0, 1))
    assert (np.diff(times) > 0).all()
    assert (np.diff(efforts) < 0).all()


@pytest.mark.slow
def test_torque_rates_of_the_ur5_stay_within_bounds_and_cost_time():
    limits = np.array([1500.0] * 3 + [280.0] * 3)
    free, held = ur5_time(points=10).solve(), ur5_time(points=10, torque_rates=limits).solve()
    assert held.T > free.T
    rates, torques = (np.abs(getattr(held, name)) for name in ("tau_rate", "tau"))
    assert (rates / limits).max() < 1.02  # between nodes
    assert (torques / held.problem.robot.effort_limit).max() < 1.01


@pytest.mark.slow
def test_the_ur5_goes_round_an_obstacle():
    centre, radius = np.array([0.45, 0.55, 0.5]), 0.1
    problem = ur5_time(points=10, obstacles=[motion.Sphere(center=centre, radius=radius)])
    free, round_it = (each.solve() for each in (ur5_time(points=10), problem))
    gaps = [
        np.linalg.norm(problem.robot.pose(result.q, "ee_link")[:, :3, 3] - centre, axis=1).min() - radius - 0.06
        for result in (free, round_it)
    ]
    assert gaps[0] < 0.0 < 0.009 < gaps[1]
    assert round_it.T > free.T


def test_a_path_is_kept_and_its_pace_is_least():
    way = np.column_stack([np.linspace(0, 1, 8), np.sin(np.linspace(0, 2, 8))])
    result = path_time(way, robot=torsor.library.two_link()).solve()
    path = result.problem.path
    progress = np.linspace(0, 1, 2001)
    distance = np.linalg.norm(result.q[:, None] - path.positions(progress), axis=2).min(axis=1)
    assert distance.max() < 1e-3
    # At almost every moment some torque is at its bound.
    assert (np.abs(result.tau).max(axis=1)[2:-2] > 9.5).mean() > 0.8


def test_nothing_swings_when_the_elastic_arm_has_arrived():
    result = elastic_arm().solve()
    robot, last = result.problem.robot, -1
    held = torsor.simulate(
        robot, result.q[last], result.v[last], duration=0.2, step=1e-3, controller=result.tau[last] * [1, 1, 0, 1]
    )
    assert np.abs(held.q - result.q[last]).max() < 1e-6
    # The spring is at work: with the motor where the link is, it swings.
    stiff = result.q[last].copy()
    stiff[3] = stiff[2]
    loose = torsor.simulate(robot, stiff, duration=0.2, step=1e-3, controller=result.tau[last] * [1, 1, 0, 1])
    assert np.abs(loose.q[:, 2] - stiff[2]).max() > 1e-3
    assert np.abs(result.tau[:, 2]).max() < 0.02 * np.abs(result.tau).max()


def test_the_example_draws_the_figures_of_the_document(tmp_path, capsys):
    path = Path(__file__).parents[2] / "examples" / "motion.py"
    spec = importlib.util.spec_from_file_location("motion_example", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(str(tmp_path / "motion.png"))
    assert "0.391854540 s" in capsys.readouterr().out
    assert (tmp_path / "motion.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_is_solved(name):
    assert PROBLEMS[name]().solve().is_solved


@pytest.mark.slow
def test_the_panda_keeps_the_torque_rates_of_its_maker():
    result = panda_time().solve()
    assert np.abs(result.tau_rate).max() < 1020.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: slide_link(variant="other"), "variant"),
        (lambda: slide_link(u=2.0), "u"),
        (lambda: slide_link(u=math.nan), "u"),
    ],
)
def test_what_a_problem_does_not_know_is_refused(make, message):
    with refused(message):
        make()
