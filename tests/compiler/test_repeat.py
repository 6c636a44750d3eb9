"""A kernel many times in a row is the same as so many calls, to the last bit; wrong arrays are refused."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.compiler.repeat import can_repeat, repeat


def step() -> ca.Function:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    return ca.Function("step", [x, p], [ca.vertcat(x[1], p * x[0] * (1 - x[0]) + 0.1 * ca.sin(x[1]))])


def test_repeated_calls_are_those_of_a_loop_to_the_last_bit() -> None:
    kernel, states = torsor.compile(step()), np.random.default_rng(0).random((31, 5, 2))
    loop = states[0]
    repeat(kernel, [states[:-1], np.broadcast_to(2.5, (30, 5))], [states[1:]])
    for k in range(30):
        loop = kernel(loop, 2.5)
        assert np.array_equal(states[k + 1], loop)


def test_wrong_arrays_and_kernels_are_refused() -> None:
    kernel, states = torsor.compile(step()), np.zeros((4, 5, 2))
    for wrong in (np.zeros((2, 5)), np.zeros((3, 5), dtype=np.float32)):
        with pytest.raises(ValueError, match=r"step: float.* of shape .*; allowed: float64 of shape \(3, 5\)"):
            repeat(kernel, [states[:-1], wrong], [states[1:]])
    assert can_repeat(kernel)
    assert not can_repeat(None) and not can_repeat(torsor.compile(step(), device="casadi"))
