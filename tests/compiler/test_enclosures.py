"""Enclosures contain every value of a function over an interval, also its rounding, and shrink with the third power."""

import math
from collections.abc import Callable
from typing import Any

import casadi as ca
import mpmath
import numpy as np
import pytest

from torsor.compiler import compile
from torsor.compiler.enclosures import RULES, enclose
from torsor.compiler.program import every_operation, operations_of

ONE: dict[str, Callable[[Any], Any]] = {
    "acos": mpmath.acos, "asin": mpmath.asin, "atan": mpmath.atan, "cos": mpmath.cos, "exp": mpmath.exp,
    "log": mpmath.log, "sin": mpmath.sin, "sqrt": mpmath.sqrt, "tan": mpmath.tan, "tanh": mpmath.tanh,
    "sign": mpmath.sign, "fabs": abs, "neg": lambda x: -x, "sq": lambda x: x * x, "twice": lambda x: 2 * x,
    "inv": lambda x: 1 / x, "constpow": lambda x: x ** mpmath.mpf(2.5), "not": lambda x: not x,
}  # fmt: skip
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "fmax": max, "fmin": min,
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
    "and": lambda x, y: bool(x and y), "or": lambda x, y: bool(x or y),
    "if_else_zero": lambda x, y: y if x else 0, "if_else": lambda x, y: y if x else 3 * x,
}  # fmt: skip
# The operations of ``every_operation`` with a rule, as functions of real numbers.
EXACT: dict[str, Callable[..., Any]] = {**{name: lambda x, y, f=f: f(x) for name, f in ONE.items()}, **TWO}
POSITIVE, UNIT = {"log", "sqrt", "pow", "constpow", "div", "inv"}, {"acos", "asin"}


def functions() -> dict[str, ca.Function]:
    """Return each operation with a rule as a function of x and y."""
    every = every_operation()
    x, y = (ca.SX.sym(name) for name in "xy")
    outputs = dict(zip(every.name_out(), every(x, y), strict=True))
    named = {
        name.removeprefix("op_"): ca.Function("f", [x, y], [value], ["x", "y"], ["z"])
        for name, value in outputs.items()
        if name != "numbers"
    }
    return {name: each for name, each in named.items() if operations_of(each) <= set(RULES)}


def bounds_of(function: ca.Function, *curves: Any) -> list[np.ndarray]:
    """Return lower and upper bounds, and remainders, for enclosures of all inputs."""
    return [np.array(part).ravel() for part in enclose(function, function.name_in())(*map(np.array, curves))]


def curves(rng: np.random.Generator, name: str, count: int) -> list[np.ndarray]:
    """Return enclosures (count, 4) of x and y, of all widths from 1 to rounding, some through 0, some constant."""
    widths = 10.0 ** rng.uniform(-17, 0, (count, 1))
    result = []
    for low, high in ((0.3, 3.0),) * 2 if name in POSITIVE else ((-0.9, 0.9),) * 2 if name in UNIT else ((-4, 4),) * 2:
        c = widths * rng.uniform(-0.3, 0.3, (count, 4)) * rng.integers(0, 2, (count, 4))
        c[:, 0] = rng.uniform(low, high, count)
        if name not in POSITIVE:
            c[::5, 0] *= widths[::5, 0]
        c[:, 3] = abs(c[:, 3])
        result.append(c)
    return result


def sampled(curve: list[mpmath.mpf], u: float, share: float) -> mpmath.mpf:
    """Return the exact number at u and at a share of the remainder, from -1 to 1, of an enclosure."""
    c0, c1, c2, r = curve
    return c0 + (c1 + c2 * u) * u + r * share


def shares(rng: np.random.Generator, *shape: int) -> Any:
    """Return shares of remainders, most of them extreme ones."""
    return np.choose(rng.integers(0, 3, shape), [-1.0, 1.0, rng.uniform(-1, 1, shape)]).tolist()


def test_every_operation_with_a_rule_is_compared_with_exact_values() -> None:
    assert sorted(EXACT) == sorted(functions())


@pytest.mark.parametrize("name", sorted(EXACT))
def test_bounds_contain_exact_values_of_each_operation(name: str) -> None:
    rng = np.random.default_rng(sum(name.encode()))
    bounds = compile(enclose(functions()[name], ["x", "y"]), inputs=[(1, 4), (1, 4)], outputs=[()] * 3)
    x, y = curves(rng, name, 1000)
    lower, upper, _ = (part.tolist() for part in bounds(x[:, None], y[:, None]))
    finite = np.isfinite(np.subtract(upper, lower)).sum()
    inner, remainders = rng.uniform(-1, 1, (len(x), 2)).tolist(), shares(rng, len(x), 4, 2)
    with mpmath.workdps(60):
        for k in range(len(x)):
            exact = [list(map(mpmath.mpf, curve[k].tolist())) for curve in (x, y)]
            for u, both in zip((-1.0, 1.0, *inner[k]), remainders[k], strict=True):
                value = EXACT[name](*(sampled(curve, u, share) for curve, share in zip(exact, both, strict=True)))
                assert not (value < lower[k] or value > upper[k]), (name, k, x[k], y[k], value, lower[k], upper[k])
    assert finite > 800  # not by being infinite


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("sqrt", [0.1, 0.2, 0.0, 0.0]), ("log", [0.1, 0.2, 0.0, 0.0]), ("inv", [0.1, 0.2, 0.0, 0.0]),
        ("asin", [0.9, 0.2, 0.0, 0.0]), ("acos", [-0.9, 0.0, -0.2, 0.0]), ("tan", [1.5, 0.2, 0.0, 0.0]),
        ("sqrt", [-1.0, 0.0, 0.0, 0.0]), ("exp", [1e3, 0.0, 0.0, 0.0]), ("sign", [math.inf, 0.0, 0.0, 0.0]),
        ("fmax", [math.nan, 0.0, 0.0, 0.0]), ("fabs", [0.0, 0.0, 0.0, math.inf]), ("constpow", [0.0, 0.1, 0.0, 0.0]),
    ],
)  # fmt: skip
def test_nothing_is_bounded_where_a_function_is_undefined(name: str, curve: list[float]) -> None:
    lower, upper, _ = bounds_of(functions()[name], [curve], [[0.5, 0.0, 0.0, 0.0]])
    assert not np.isfinite(lower).all() or not np.isfinite(upper).all()


def test_remainders_shrink_with_the_third_power_of_the_width() -> None:
    x = ca.SX.sym("x", 2)
    rows = ca.vertcat(ca.sin(x[0]) * ca.exp(x[1]) / x[0], ca.sqrt(x[0]) * ca.atan(x[1] * x[0]) - ca.tanh(x[1]))
    function = ca.Function("f", [x], [rows], ["x"], ["y"])
    widths = 2.0 ** -np.arange(4, 8)
    curves = ([[1.5, 0.7 * h, 0.2 * h**2, 0.1 * h**3], [0.4, -0.5 * h, 0.4 * h**2, 0.0]] for h in widths)
    remainders = np.array([bounds_of(function, curve)[2] for curve in curves])
    assert np.all(np.abs(remainders[:-1] / remainders[1:] / 8 - 1) < 0.2)


def test_a_branch_on_an_unknown_condition_contains_both_values_and_not_their_sum() -> None:
    x = ca.SX.sym("x")
    for condition, least, most in ((x > 0, 5.0, 7.0), (x > 2, 5.0, 5.0), (x > -2, 7.0, 7.0)):
        function = ca.Function("f", [x], [ca.if_else(condition, 7, 5)], ["x"], ["y"])
        lower, upper = (part[0] for part in bounds_of(function, [[0.0, 1.0, 0.0, 0.0]])[:2])
        assert np.allclose([lower, upper], [least, most], rtol=1e-11, atol=0) and lower <= least and upper >= most


def test_a_limited_value_is_within_its_limits_whatever_it_is() -> None:
    x = ca.SX.sym("x")
    share = ca.fmax(0.25, ca.fmin(0.5, 1 / x))
    function = ca.Function("f", [x], [share], ["x"], ["y"])
    lower, upper = (part[0] for part in bounds_of(function, [[0.0, 1.0, 0.0, 0.0]])[:2])  # 1 / x has a pole
    assert 0.25 - 1e-11 < lower <= 0.25 and 0.5 <= upper < 0.5 + 1e-11
    lower, upper = (part[0] for part in bounds_of(function, [[3.0, 1e-3, 0.0, 0.0]])[:2])
    assert abs(lower - 1 / 3.001) < 1e-6 and abs(upper - 1 / 2.999) < 1e-6


STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda m, a, b: a + b,
    lambda m, a, b: a * b,
    lambda m, a, b: a - b,
    lambda m, a, b: m.sin(a),
    lambda m, a, b: m.cos(b),
    lambda m, a, b: a / (2 + m.sin(b)),
    lambda m, a, b: m.sqrt(1 + a * a),
    lambda m, a, b: (a + abs(a - b)) / 2,
]


def test_random_graphs_contain_exact_values() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        graph = [(*rng.integers(0, 3 + k, 2).tolist(), STEPS[int(rng.integers(len(STEPS)))]) for k in range(12)]

        def result(module: Any, values: list[Any], graph: list[Any] = graph) -> Any:
            for a, b, step in graph:
                values = [*values, step(module, values[a], values[b])]
            return values[-1]

        symbol = ca.SX.sym("x", 3)
        function = ca.Function("f", [symbol], [result(ca, ca.vertsplit(symbol))], ["x"], ["y"])
        x = np.concatenate([rng.uniform(-2, 2, (3, 1)), rng.uniform(-0.02, 0.02, (3, 3))], axis=1)
        x[:, 3] = abs(x[:, 3]) * 1e-4
        lower, upper = (part[0] for part in bounds_of(function, x)[:2])
        exact = [list(map(mpmath.mpf, curve)) for curve in x.tolist()]
        with mpmath.workdps(40):
            for u, remainders in zip(np.linspace(-1, 1, 25).tolist(), shares(rng, 25, 3), strict=True):
                values = [sampled(curve, u, share) for curve, share in zip(exact, remainders, strict=True)]
                value = result(mpmath, values)
                assert lower <= value <= upper


def test_an_operation_without_a_rule_is_named() -> None:
    x = ca.SX.sym("x")
    with pytest.raises(ValueError, match="OP_ERF"):
        enclose(ca.Function("f", [x], [ca.erf(x)], ["x"], ["y"]), ["x"])
