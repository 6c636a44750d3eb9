"""Many cases of a motion problem in one batch: the derivatives and the solutions are those of each case alone."""

import multiprocessing
import os
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from motion.interpreted import interpreted
from refusals import refused, warned
from torsor import library, motion
from torsor.base.errors import ModelError
from torsor.base.progress import Bar
from torsor.library import two_link
from torsor.motion import batched, linear_systems, many, processes
from torsor.motion.batched import Rows, solve_batch
from torsor.motion.linear_systems import MAX_COMPILED
from torsor.motion.many import with_case
from torsor.motion.solve import CTRL_C
from torsor.motion.transcription.cases import Cases, structure_of
from torsor.optimisation import Settings, Watch
from torsor.optimisation.barrier import FAR

MULTIPLIERS = "multipliers", "bound_multipliers"
ARMS = {
    "two-link-time": {"points": 8},
    "slide-link": {"points": 8},
    "ur5-time": {"points": 8},
    "stanford-rates": {"points": 9},
    "path-time": {"points": 12},
}


def _reach(**changes):
    ends = motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)
    phase = motion.Phase((0.1, 2.0), points=8)
    terms = [*ends, motion.Torques(upper=10.0)]
    return motion.MotionProblem(two_link(), phase, motion.Time(), terms, name="reach", **changes)


def _cases_of(problem, cases):
    problems = [with_case(problem, case, index) for index, case in enumerate(cases)]
    return Cases.of([each.program for each in problems]), np.stack([each.guess() for each in problems])


@pytest.mark.parametrize("name", ARMS)
def test_values_and_derivatives_of_a_batch_are_those_of_each_program(name):
    program = motion.PROBLEMS[name](**ARMS[name]).program
    rng = np.random.default_rng(1)
    x = np.clip(rng.uniform(0.4, 0.6, (3, program.n)), program.lower, program.upper)
    weight, curvature = rng.uniform(0.5, 2.0, 3), np.array([1.0, 0.5, 0.0])
    cases = Cases.of([program] * 3)
    low, high = cases.row_bounds
    w = rng.uniform(np.maximum(low, -2.0), np.minimum(high, 2.0))
    z_low, z_high = (rng.uniform(0.1, 2.0, w.shape) * (np.abs(side) < FAR) for side in (low, high))
    rows = Rows(w, rng.normal(size=w.shape), z_low, z_high)
    f, h = cases.value(x)
    point = cases.point(x, rows, weight, curvature)
    places = point.systems.places
    matrix = np.where(places >= 0, point.entries[:, places], 0.0)
    by_low, by_high = (np.where(np.abs(side) < FAR, 1 / np.abs(w - side), 0.0) for side in (low, high))
    stiffness, repulsion = z_low * by_low + z_high * by_high, by_high - by_low
    for k in range(3):
        gradient, entries = program.jacobian(x[k])
        J = np.zeros((program.m, program.n))
        np.add.at(J, program.structure, entries)
        hessian = program.hessian(x[k], curvature[k] * rows.u[k], weight[k])
        pairs = (
            (f[k], program.value(x[k])[0]),
            (h[k], program.value(x[k])[1]),
            (point.gradient[k], weight[k] * gradient),
            (point.multiplied[k], J.T @ rows.u[k]),
            (point.pushed[k], J.T @ (stiffness[k] * (h[k] - w[k]))),
            (point.repelled[k], J.T @ repulsion[k]),
            (matrix[k], hessian + J.T @ (stiffness[k][:, None] * J)),
            (point.totals.slope[k], repulsion[k] @ (h[k] - w[k])),
        )
        for own, alone in pairs:
            np.testing.assert_allclose(own, alone, rtol=0, atol=1e-12 * np.abs(alone).max())


@pytest.mark.parametrize("limit", [0, MAX_COMPILED], ids=["blocks", "compiled"])
def test_factorised_systems_are_solved_and_indefinite_ones_are_shifted(monkeypatch, limit):
    monkeypatch.setattr(linear_systems, "MAX_COMPILED", limit)
    rng, n = np.random.default_rng(2), 12
    pattern = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) < 3
    pattern[-1] = pattern[:, -1] = True
    systems = linear_systems.Systems(pattern)
    matrices = rng.normal(size=(5, n, n)) * pattern
    matrices = matrices + matrices.swapaxes(1, 2) + 20 * np.eye(n)
    matrices[2] -= 60 * np.eye(n)  # indefinite
    matrices[3, 0, 0] = np.nan
    entries = matrices[:, systems.rows, systems.columns]
    factors = systems.factorised(entries, np.zeros(5))
    assert factors.is_convex.tolist() == [True, True, False, False, True]
    assert factors.is_factorised.tolist() == [True, True, True, False, True] and factors.shift[2] > 0
    shifted = matrices + factors.shift[:, None, None] * np.eye(n)
    right, good = rng.normal(size=(5, 2, n)), [0, 1, 2, 4]
    np.testing.assert_allclose((factors.solved(right) @ shifted)[good], right[good], atol=1e-12)
    np.testing.assert_array_equal(factors.take(np.array([4, 1])).solved(right[[4, 1]]), factors.solved(right)[[4, 1]])


def test_solutions_of_a_batch_are_those_of_each_case_alone():
    rng = np.random.default_rng(0)
    ends, limits = rng.uniform([0.5, -1.5], [1.5, -0.5], (12, 2)), rng.uniform(8, 20, 12)
    cases = [{"End.q": q, "Torques.upper": upper} for q, upper in zip(ends, limits, strict=True)]
    problem = _reach()
    results = problem.solve_many(cases, tolerance=1e-8)
    for index, (case, result) in enumerate(zip(cases, results, strict=True)):
        alone = with_case(problem, case, index).solve("condensed", tolerance=1e-8)
        assert result.status == alone.status == "optimal"
        np.testing.assert_allclose(result.objective, alone.objective, rtol=1e-6)
        np.testing.assert_allclose(result.outcome.multipliers, alone.outcome.multipliers, atol=1e-4)
        assert result.max_violation < 1e-8


def test_a_case_does_not_depend_on_those_beside_it():
    cases, starts = _cases_of(_reach(), [{"Torques.upper": upper} for upper in (8.0, 10.0, 12.0, 15.0, 30.0)])
    whole = solve_batch(cases, starts, Settings())
    for width in (1, 2, 4):
        for one, other in zip(whole, solve_batch(cases, starts, Settings(), width=width), strict=True):
            np.testing.assert_array_equal(one.outcome.x, other.outcome.x)
            np.testing.assert_array_equal(one.outcome.multipliers, other.outcome.multipliers)


def test_bounds_and_ends_share_one_structure_and_other_nodes_do_not():
    problem = _reach()
    ends, bounds, nodes = (
        with_case(problem, case, 0).program
        for case in ({"End.q": [0.5, -1.5]}, {"Torques.upper": 5.0}, {"phase.nodes": 40})
    )
    assert structure_of(ends) == structure_of(bounds) == structure_of(problem.program) != structure_of(nodes)


def test_a_case_of_a_built_in_problem_gives_its_arguments():
    problem = motion.PROBLEMS["two-link-time"](points=8)
    few, many = problem.solve_many([{}, {"points": 12}])
    assert few.program.n == 9 and many.program.n == 17
    np.testing.assert_allclose(few.T, problem.solve().T, rtol=1e-6)
    assert many.T < few.T


def test_an_infeasible_case_has_the_diagnosis_of_a_single_solve_and_leaves_the_others_alone():
    problem = _reach()
    case = {"phase.duration": (0.1, 0.2)}  # half the time that the motion needs
    with pytest.raises(motion.MotionError) as single:
        with_case(problem, case, 1).solve("condensed")
    good, bad, same = problem.solve_many([{}, case, {}])
    assert good.is_solved and same.is_solved and not bad.is_solved
    assert bad.status.startswith("infeasible") and all(word in bad.status for word in single.value.conflict)
    np.testing.assert_array_equal(good.x, same.x)


def test_another_solver_is_used_for_each_case():
    results = _reach().solve_many([{}, {"Torques.upper": 20.0}], solver="ipopt")
    assert [result.solver for result in results] == ["ipopt", "ipopt"]
    np.testing.assert_allclose(results[0].T, _reach().solve_many([{}])[0].T, rtol=1e-6)


def test_equations_and_free_ends_are_solved_in_the_batch_as_alone():
    robot = library.ur5()
    for name in robot.joint_names[3:]:
        robot = robot.fix(name)
    ends = motion.Start(q=[0.0, -1.2, 1.5], v=0.0), motion.End(v=0.0)  # at a free position: linear rows
    goal = motion.FramePosition(frame="wrist_3_link", position=[0.4, 0.2, 0.4], at=1.0)
    terms = [*ends, motion.Torques(), motion.Velocities(), goal]
    problem = motion.MotionProblem(robot, motion.Phase((0.1, 3.0), points=8), motion.Time(), terms)
    assert problem.program.linear.m == 3 and structure_of(problem.program) is not None
    cases = [{"FramePosition.position": [0.45, y, 0.4]} for y in (-0.2, 0.1, 0.4)]
    for case, result in zip(cases, problem.solve_many(cases, tolerance=1e-8), strict=True):
        with interpreted():
            alone = with_case(problem, case, 0).solve("condensed", tolerance=1e-8)
        assert result.status == alone.status == "optimal" and result.max_violation <= 1e-8
        np.testing.assert_allclose(result.objective, alone.objective, rtol=1e-6)
        program, (x, u, z) = result.program, (getattr(result.outcome, name) for name in ("x", *MULTIPLIERS))
        gradient, entries = program.jacobian(x)
        rows, columns = program.structure
        total = gradient + z + np.bincount(columns, u[rows] * entries, minlength=program.n)
        np.testing.assert_allclose(total, 0, atol=1e-6)


def test_an_elastic_arm_is_solved_in_the_batch():
    problem = motion.PROBLEMS["elastic-arm"](points=20)
    assert structure_of(problem.program) is not None
    (result,) = problem.solve_many([{"torque": 35.0}])
    with interpreted():
        alone = motion.PROBLEMS["elastic-arm"](points=20, torque=35.0).solve()
    assert result.objective == pytest.approx(alone.T, rel=1e-5)


def test_a_problem_with_one_row_at_a_node_is_solved_in_the_batch():
    terms = [*_reach().constraints[:2], motion.Torques(upper={"joint1": 10.0})]
    problem = replace(_reach(), constraints=terms)
    (result,) = problem.solve_many([{}])
    assert result.objective == pytest.approx(problem.solve("condensed").T, rel=1e-6)


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ({"End.r": 0.0}, "End.r"),
        ({"End.q": [1, -1], "Ends.q": 0.0}, "Ends.q"),
        ({"end": [0, 0]}, "end"),
        (3, "3"),
        ({"Torques.upper": np.nan}, "nan"),
    ],
)
def test_invalid_cases_are_rejected_before_any_is_solved(case, found):
    with pytest.raises(ModelError, match="case 1") as error:
        _reach().solve_many([{}, case])
    assert found in str(error.value)


def _random_ends(count):
    ends = np.random.default_rng(0).uniform([0.5, -1.5], [1.5, -0.5], (count, 2))
    return [{"End.q": q} for q in ends]


@pytest.mark.parametrize("settings", [{}, {"solver": "ipopt", "refine": True}], ids=["batch", "alone"])
def test_processes_give_the_results_of_one_process(settings):
    cases = [*_random_ends(5), {"phase.duration": (0.1, 0.2)}]
    one, two = (_reach().solve_many(cases, workers=workers, **settings) for workers in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.status == b.status and a.objective == b.objective and a.iterations == b.iterations
        np.testing.assert_array_equal(a.x, b.x)
        np.testing.assert_array_equal(a.outcome.multipliers, b.outcome.multipliers)
        assert [len(phase.nodes) for phase in a.problem.stages] == [len(phase.nodes) for phase in b.problem.stages]


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_the_cases_that_are_solved(monkeypatch, ctrl_c, workers):
    problem, cases = _reach(), _random_ends(100)
    whole, at = problem.solve_many(cases), processes.Here.at
    monkeypatch.setattr(processes, "PAUSE", 1e-3)
    monkeypatch.setattr(processes.Here, "at", lambda here, ended: (at(here, ended), here.is_stopped or ctrl_c()))
    results = problem.solve_many(cases, workers=workers)
    solved = [k for k, result in enumerate(results) if result.is_solved]
    assert 0 < len(solved) < 100 and {result.status for result in results} == {"optimal", CTRL_C}
    for k in solved:
        np.testing.assert_array_equal(results[k].x, whole[k].x)


def test_ctrl_c_ends_a_search_in_another_process(monkeypatch, ctrl_c):
    problem, at = _reach(), processes.Here.at
    monkeypatch.setattr(processes.Here, "at", lambda here, ended: (at(here, ended), here.is_stopped or ctrl_c()))
    monkeypatch.setattr(many, "solve", partial(_stuck, many.solve))
    results = problem.solve_many([{}] * 3, workers=2, solver="ipopt")
    assert [result.status for result in results] == [CTRL_C] * 3


def _stuck(solve, problem, start, settings):
    """Search again and again until Ctrl-C ends a search."""
    while True:
        state = solve(problem, start, settings)
        if state.result.status == CTRL_C:
            return state


def test_motions_around_obstacles_that_get_stuck_are_solved_in_the_batch(monkeypatch):
    ends = [0.0, 1.4, -1.1, 1.3, -0.6, -0.2], [-0.9, -0.7, 0.8, -0.7, 0.0, 1.4]
    balls = (motion.Sphere(center=center, radius=0.05) for center in ([0.81, 0.11, 0.06], [0.64, -0.19, 0.5]))
    cases = [{"end": end, "obstacles": [ball]} for end, ball in zip(ends, balls, strict=True)]
    make = motion.PROBLEMS["ur5-time"]
    with interpreted():
        alone = [make(points=8, **case).solve("condensed") for case in cases]
    monkeypatch.setattr(many, "_alone", None)
    for result, single in zip(make(points=8, **cases[0]).solve_many(cases), alone, strict=True):
        assert result.is_solved and result.max_violation <= 1e-6
        assert result.objective <= single.objective * (1 + 1e-3)
    monkeypatch.setattr(batched, "MAX_RESTARTS", 0)
    with pytest.raises(TypeError):  # without restarts, both are left to single searches
        make(points=8, **cases[0]).solve_many(cases)


def test_a_case_with_values_that_are_not_finite_has_a_status_and_leaves_the_others_alone():
    good, huge = _reach().solve_many([{"End.q": [1.2, -0.9]}, {"End.q": [1e300, 0.0]}])
    assert good.status == "optimal"
    assert not huge.is_solved and "not a number" in huge.status


def test_data_of_cases_are_copied():
    end = np.array([1.0, -1.0])
    results = []
    for _ in range(2):
        results += _reach().solve_many([{"End.q": end}])
        end += 0.1
    assert results[0].problem.conditions[1].q.tolist() == [1.0, -1.0]


def test_problems_that_are_not_batched_keep_their_solver():
    reach = _reach()
    costs = motion.Time(), motion.MechanicalEnergy(weight=0.1)
    problem = motion.MotionProblem(reach.robot, reach.phases, costs, reach.constraints)
    (result,) = problem.solve_many([{"End.q": [1.2, -0.9]}])
    assert result.is_solved and result.solver == problem.solve(check=False).solver


@pytest.mark.parametrize("cases", [None, {"End.q": [1.0, -1.0]}, "End.q"])
def test_cases_that_are_no_list_are_refused(cases):
    with refused(argument="cases", allowed="a list of dicts"):
        _reach().solve_many(cases)


def _ended_by_the_system(work, job, monitor):
    if job == 1 and multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def test_jobs_of_a_process_that_was_killed_are_done_in_the_first_one():
    with Bar(3, False, "jobs") as bar, Watch() as watch, warned(what="a process ended unexpectedly"):
        found = sorted(processes.results(_ended_by_the_system, None, range(3), 2, processes.Here(bar, watch)))
    assert found == [0, 1, 2]
