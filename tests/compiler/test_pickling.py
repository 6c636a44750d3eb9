"""Kernels are pickled as the functions that they compute; errors for other objects name what to pickle instead."""

import inspect
import pickle
from functools import cached_property

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor import motion
from torsor.compiler import Kernel, cache, compile, recall


def function() -> ca.Function:
    x = ca.SX.sym("x", 2, 3)
    return ca.Function("f", [x], [2 * x, ca.sum1(ca.sum2(x))], ["x"], ["y", "total"])


@pytest.mark.parametrize("target", [{}, {"dtype": "float32"}, {"threads": 2}, {"device": "casadi"}, {"width": 4}])
def test_a_kernel_computes_the_same_after_pickling(target: dict) -> None:
    kernel = compile(function(), **target)
    again = pickle.loads(pickle.dumps(kernel))
    assert repr(again) == repr(kernel) and again.inputs == kernel.inputs and again.outputs == kernel.outputs
    for x in (np.arange(6.0).reshape(2, 3), np.random.default_rng(0).normal(size=(700, 2, 3))):
        for a, b in zip(again(x), kernel(x), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_kernel_of_a_robot_pickles_and_its_store_says_what_to_pickle() -> None:
    robot = torsor.library.two_link()
    kernel = robot.kernels.compiled(robot.kernels.request("mass_matrix"))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))([0.1, 0.2]), robot.mass_matrix([0.1, 0.2]))
    for each in (robot.kernels, robot.closed.closure):
        with pytest.raises(pickle.PicklingError, match="fix: pickle the robot or the problem itself"):
            pickle.dumps(each)


def test_a_kernel_without_its_function_says_what_to_pickle(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path / "cache"))
    cache.location()
    Kernel(function(), "float64", "cpu", 1, None, None, key="k", quick=True)
    found = recall("k")
    assert found is not None
    with pytest.raises(pickle.PicklingError, match=r"its code was stored without .*fix: pickle the robot"):
        pickle.dumps(Kernel(found, "float64", "cpu", 1, None, None, quick=True))


def test_problems_and_results_pickle_whatever_was_asked_of_them() -> None:
    ends = motion.Start(q=0.0, v=0.0), motion.End(q=0.5, v=0.0)
    problem = torsor.MotionProblem(torsor.library.two_link(), motion.Phase(1.0, points=6), motion.Effort(), ends)
    result = problem.solve()
    for name, _ in inspect.getmembers(type(result), lambda each: isinstance(each, cached_property)):
        getattr(result, name)
    again = pickle.loads(pickle.dumps(result))
    assert (again.status, again.T, again.objective) == (result.status, result.T, result.objective)
    np.testing.assert_array_equal(again.tau, result.tau)
    assert pickle.loads(pickle.dumps(problem)).program.n == problem.program.n
    with pytest.raises(pickle.PicklingError, match="fix: pickle the MotionProblem"):
        pickle.dumps(problem.program)
