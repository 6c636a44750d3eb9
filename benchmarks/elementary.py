"""Measure elementary functions in one process: Torsor's vector functions, the C library lane by lane, and NumPy.

The script prints two tables as Markdown. The first contains the time per value in ns (batches of 4096 states of 8
values, fastest of many calls) and the instructions of each function for one vector on two processors. The second
compares thirty calls of tanh with thirty inlined ones.
"""

import ctypes
import ctypes.util
import os
import time
from collections.abc import Callable
from unittest.mock import patch

import casadi as ca
import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from bench.instructions import count_instructions
from torsor.compiler import compile
from torsor.compiler.llvm.elementary import ELEMENTARY, FUNCTIONS
from torsor.compiler.llvm.rules import Emitter, Rule
from torsor.compiler.llvm.target import TARGETS, host
from torsor.compiler.llvm.vectors import Number, each_lane

BATCH, ENTRIES = 4096, 8
ROUNDS = 40
CASES: dict[str, tuple[int, Callable[..., NDArray[np.float64]], tuple[float, float]]] = {
    "exp": (ca.OP_EXP, np.exp, (-5.0, 5.0)),
    "expm1": (ca.OP_EXPM1, np.expm1, (-5.0, 5.0)),
    "log": (ca.OP_LOG, np.log, (0.1, 10.0)),
    "log1p": (ca.OP_LOG1P, np.log1p, (-0.9, 10.0)),
    "pow": (ca.OP_POW, np.power, (0.1, 5.0)),
    "tanh": (ca.OP_TANH, np.tanh, (-3.0, 3.0)),
    "sinh": (ca.OP_SINH, np.sinh, (-3.0, 3.0)),
    "cosh": (ca.OP_COSH, np.cosh, (-3.0, 3.0)),
    "asinh": (ca.OP_ASINH, np.arcsinh, (-3.0, 3.0)),
    "acosh": (ca.OP_ACOSH, np.arccosh, (1.0, 9.0)),
    "atanh": (ca.OP_ATANH, np.arctanh, (-0.9, 0.9)),
    "tan": (ca.OP_TAN, np.tan, (-6.0, 6.0)),
    "asin": (ca.OP_ASIN, np.arcsin, (-1.0, 1.0)),
    "acos": (ca.OP_ACOS, np.arccos, (-1.0, 1.0)),
    "atan": (ca.OP_ATAN, np.arctan, (-5.0, 5.0)),
    "atan2": (ca.OP_ATAN2, np.arctan2, (-5.0, 5.0)),
    "hypot": (ca.OP_HYPOT, np.hypot, (-5.0, 5.0)),
    "fmod": (ca.OP_FMOD, np.fmod, (0.1, 50.0)),
}
BINARY = {ca.OP_POW, ca.OP_ATAN2, ca.OP_HYPOT, ca.OP_FMOD}


def of_library(name: str) -> Rule:
    """Return the rule that calls a function of the C library for each lane, in double precision."""

    def rule(e: Emitter, *arguments: str) -> str:
        address = ctypes.cast(getattr(ctypes.CDLL(ctypes.util.find_library("m")), name), ctypes.c_void_p).value
        llvm.add_symbol(name, address)
        e.functions[name] = f"declare double @{name}({', '.join(['double'] * len(arguments))})"
        (result,) = each_lane(f"@{name}", ("double",), *(Number(e, each) for each in arguments))
        return result if e.scalar.name == "double" else e.put(f"fptrunc <{e.width} x double> {result} to {e.vector}")

    return rule


def fastest(calls: list[Callable[[], object]]) -> list[float]:
    """Return the time of each call in nanoseconds per value; the calls alternate."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            start = time.perf_counter_ns()
            call()
            best[k] = min(best[k], time.perf_counter_ns() - start)
    return [each / (BATCH * ENTRIES) for each in best]


def function_of(operation: int, entries: int) -> ca.Function:
    """Return a function that applies an operation to each entry."""
    x, y = ca.SX.sym("x", entries), ca.SX.sym("y", entries)
    if operation in BINARY:
        return ca.Function("f", [x, y], [ca.vertcat(*(ca.SX.binary(operation, x[k], y[k]) for k in range(entries)))])
    return ca.Function("f", [x], [ca.vertcat(*(ca.SX.unary(operation, x[k]) for k in range(entries)))])


def row(name: str, rng: np.random.Generator) -> list[str]:
    """Return one row of the table."""
    operation, numpy, limits = CASES[name]
    function = function_of(operation, ENTRIES)
    values = [rng.uniform(*limits, (BATCH, ENTRIES)) for _ in range(function.n_in())]
    singles = [value.astype(np.float32) for value in values]
    with patch.dict(ELEMENTARY, {operation: of_library(name)}):
        library, library_single = compile(function), compile(function, dtype="float32")
    ours, single = compile(function), compile(function, dtype="float32")
    twice = compile(function, width=2 * host().width("float64"))
    double, half = np.empty_like(values[0]), np.empty_like(singles[0])
    times = fastest(
        [
            lambda: library.ufunc(*values, out=double),
            lambda: numpy(*values, out=double),
            lambda: ours.ufunc(*values, out=double),
            lambda: twice.ufunc(*values, out=double),
            lambda: library_single.ufunc(*singles, out=half),
            lambda: numpy(*singles, out=half),
            lambda: single.ufunc(*singles, out=half),
        ]
    )
    counts = (count_instructions(function_of(operation, 1), TARGETS[each]).total for each in ("Neoverse N1", "AVX-512"))
    return [name, *(f"{each:.1f}" for each in times), *map(str, counts)]


def thirty(rng: np.random.Generator) -> None:
    """Print the table of a program that computes tanh thirty times: compile time, time of one state, instructions."""
    x, v = ca.SX.sym("x", 30), ca.SX.sym("v", 30)
    forces = [2 * x[k] + ca.tanh(50 * v[k]) * (1 + x[7 * k % 30] ** 2) + v[k] * x[3 * k % 30] for k in range(30)]
    function = ca.Function("friction", [x, v], [ca.vertcat(*forces)])
    ways: dict[str, Rule] = {
        "C library, lane by lane": of_library("tanh"),
        "called": ELEMENTARY[ca.OP_TANH],
        "inlined": lambda e, a: FUNCTIONS[ca.OP_TANH](Number(e, a)).name,
    }
    kernels, texts, values = [], [], [rng.normal(size=(BATCH, 30)) for _ in range(2)]
    for name, rule in ways.items():
        with patch.dict(ELEMENTARY, {ca.OP_TANH: rule}):
            times = []
            for _ in range(5):
                start = time.perf_counter()
                kernel = compile(function)
                times.append(time.perf_counter() - start)
            counts = (count_instructions(function, TARGETS[each]).total for each in ("Neoverse N1", "AVX-512"))
            kernels.append(kernel)
            texts.append([name, f"{1e3 * min(times):.0f} ms", *map(str, counts)])
    out = np.empty_like(values[0])
    calls: list[Callable[[], object]] = [lambda k=k: k.ufunc(*values, out=out) for k in kernels]  # type: ignore[misc]
    print("\n| thirty tanh | compile time | instructions: N1, W = 2 | AVX-512, W = 8 | time of one state |")
    print("|---|---|---|---|---|")
    for text, nanoseconds in zip(texts, fastest(calls), strict=True):
        print("| " + " | ".join([*text, f"{nanoseconds * ENTRIES:.0f} ns"]) + " |")


def main() -> None:
    """Print the table."""
    os.environ["TORSOR_CACHE"] = "off"
    rng = np.random.default_rng(0)
    columns = ["function", "float64: C library", "NumPy", "Torsor", "Torsor, 2 W"]
    columns += ["float32: C library", "NumPy", "Torsor", "instructions: N1, W = 2"]
    print("| " + " | ".join([*columns, "AVX-512, W = 8"]) + " |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in CASES:
        print("| " + " | ".join(row(name, rng)) + " |", flush=True)
    thirty(rng)


if __name__ == "__main__":
    main()
