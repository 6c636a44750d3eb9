"""Repeated kernel calls give bit-identical results to separate calls; wrong arrays are rejected."""

import gc
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.compiler.repeat import Call, Chain, Workspace, can_repeat, repeat
from torsor.compiler.repeat import _chain as machine_code


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
        with refused(where="step", allowed="float64 of shape (3, 5)"):
            repeat(kernel, [states[:-1], wrong], [states[1:]])
    assert can_repeat(kernel)
    assert not can_repeat(None) and not can_repeat(torsor.compile(step(), device="casadi"))
    block, other = np.zeros(60), torsor.compile(step(), device="casadi")
    inside = block.reshape(6, 5, 2)
    with pytest.raises(ValueError, match="not in its block"):
        Chain(block, [Call(kernel, [inside[:-1], np.broadcast_to(2.5, (5, 5))], [inside[1:]])])
    with refused(what="cannot be repeated"):
        repeat(other, [states[:-1], np.zeros((3, 5))], [states[1:]])


def test_a_chain_computes_in_any_block_and_rooms_are_not_shared() -> None:
    """Fibonacci's numbers, then their squares."""
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    add = torsor.compile(ca.Function("add", [a, b], [a + b]))
    multiply = torsor.compile(ca.Function("multiply", [a, b], [a * b]))

    def calls(arrays: dict[str, Any]) -> list[Call]:
        x, y = (each[:, None] for each in arrays.values())
        return [Call(add, [x[:-2], x[1:-1]], [x[2:]]), Call(multiply, [x, x], [y])]

    work = Workspace({"x": (9,), "y": (9,)}, calls)
    first, second = work.take(), work.take()
    for room, start in ((first, 1.0), (second, 2.0)):
        room.arrays["x"][:2] = start
        room.run()
    assert first.arrays["x"].tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert second.arrays["y"].tolist() == [4 * x * x for x in first.arrays["x"]]
    work.give_back(first)
    assert work.take() is first
    with pytest.raises(ValueError, match="allowed: contiguous float64 of shape"):
        Chain(first.block, calls(first.arrays))(np.zeros(7))


def test_a_chain_keeps_the_machine_code_that_it_was_made_with() -> None:
    """Threads that create the code at the same time replace it in the cache."""
    kernel, whole = torsor.compile(step()), np.concatenate([np.zeros(60), np.full(25, 2.5)])
    inside, p = whole[:60].reshape(6, 5, 2), whole[60:].reshape(5, 5)
    chain = Chain(whole, [Call(kernel, [inside[:-1], p], [inside[1:]])])
    chain(whole)
    expected = whole.copy()
    machine_code.cache_clear()
    gc.collect()
    chain(whole)
    assert np.array_equal(whole, expected)
