"""The bits of a result do not depend on how its code is arranged: pieces, registers, width."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.compiler.llvm import code, piece
from torsor.compiler.llvm.angles import passes

ARM = torsor.library.six_axis_arm()


def results(function: ca.Function, width: int | None = None) -> list[np.ndarray]:
    """Return the results as bits for random states, and for states with zeros of both signs."""
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(21, *function.size_in(k)))[..., 0] for k in range(function.n_in())]
    for array in given:
        array[:7] = np.where(rng.random(array[:7].shape) < 0.6, rng.choice([0.0, -0.0], array[:7].shape), array[:7])
    found = torsor.compile(function, width=width)(*given)
    return [each.view(np.int64) for each in (found if isinstance(found, tuple) else (found,))]


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORSOR_CACHE", "off")


@pytest.mark.parametrize("name", ["inverse_dynamics", pytest.param("forward_dynamics", marks=pytest.mark.slow)])
def test_pieces_and_registers_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = ARM.function(name)
    usual = results(function)
    with monkeypatch.context() as few_registers:
        few_registers.setattr(piece, "HELD_FRACTION", 0.3)
        assert same(results(function), usual)
    with monkeypatch.context() as short_pieces:
        short_pieces.setattr(code, "PIECE", 67)
        assert same(results(function), usual)


def test_the_width_changes_no_bit() -> None:
    function = ARM.function("inverse_dynamics")
    narrow, wide = results(function, 2), results(function, 4)
    assert same(narrow, wide)


@pytest.mark.parametrize(("registers", "most"), [(16, 3), (32, 5)])
def test_each_angle_is_computed_once_by_two_loops_at_most(registers: int, most: int) -> None:
    for angles in range(1, 200):
        found = passes(angles, registers)
        assert sum(each.together * each.times for each in found) == angles
        assert len(found) <= 2
        assert sum(each.times for each in found) == -(-angles // most)


@pytest.mark.parametrize("count", [1, 4, 7, 11])
def test_any_number_of_angles_has_its_sines_and_cosines(count: int) -> None:
    x = ca.SX.sym("x", count)
    angles = np.random.default_rng(1).uniform(-9, 9, (5, count))
    angles[2, count // 2] = 1e12  # beyond the usual reduction of the range
    sin, cos = torsor.compile(ca.Function("f", [x], [ca.sin(x), ca.cos(x)]))(angles)
    assert np.abs(sin.reshape(5, count) - np.sin(angles)).max() < 4e-16
    assert np.abs(cos.reshape(5, count) - np.cos(angles)).max() < 4e-16
