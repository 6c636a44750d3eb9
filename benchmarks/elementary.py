"""Time of elementary functions: vectors of this package, the C library lane by lane, and NumPy, in one process.

Prints the tables of docs/compiler.md as Markdown: nanoseconds for one state of a batch of 4096, the median of many
calls, and the instructions of each function on two processors.
"""

import os
import time
from collections.abc import Callable
from unittest.mock import patch

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.compiler.kernel import compile
from torsor.compiler.llvm import code
from torsor.compiler.llvm.instructions import count_instructions
from torsor.compiler.llvm.rules import Emitter, Rule
from torsor.compiler.llvm.target import TARGETS

BATCH = 4096
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
BINARY = {"pow", "atan2", "hypot", "fmod"}


def of_library(name: str) -> Rule:
    """Return the rule that calls a function of the C library for each lane."""

    def rule(e: Emitter, *arguments: str) -> str:
        kinds = ", ".join([e.scalar.name] * len(arguments))
        called = name if e.scalar.name == "double" else f"{name}f"
        e.functions[called] = f"declare {e.scalar.name} @{called}({kinds})"
        result = "poison"
        for lane in range(e.width):
            numbers = [e.put(f"extractelement {e.vector} {each}, i64 {lane}") for each in arguments]
            given = ", ".join(f"{e.scalar.name} {each}" for each in numbers)
            value = e.put(f"call {e.scalar.name} @{called}({given})")
            result = e.put(f"insertelement {e.vector} {result}, {e.scalar.name} {value}, i64 {lane}")
        return result

    return rule


def median(call: Callable[[], object], repeats: int = 201) -> float:
    """Return the median time of a call in nanoseconds of one state."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return float(np.median(times)) / BATCH


def main() -> None:
    """Print the table."""
    os.environ["TORSOR_CACHE"] = "off"
    rng = np.random.default_rng(0)
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    print("| function | C library | NumPy | Torsor | float32 | instructions, Neoverse N1, W = 2 | AVX-512, W = 8 |")
    print("|---|---|---|---|---|---|---|")
    for name, (operation, numpy, limits) in CASES.items():
        symbols = [x, y] if name in BINARY else [x]
        result = ca.SX.binary(operation, x, y) if name in BINARY else ca.SX.unary(operation, x)
        function = ca.Function(name, symbols, [result])
        values = [rng.uniform(*limits, BATCH) for _ in symbols]
        with patch.dict(code.EVERY_RULE, {operation: of_library(name)}):
            before = compile(function)
        after, single = compile(function), compile(function, dtype="float32")
        singles = [value.astype(np.float32) for value in values]
        out, out_single = np.empty(BATCH), np.empty(BATCH, np.float32)
        times = (
            median(lambda: before.ufunc(*values, out=out)),  # noqa: B023
            median(lambda: numpy(*values, out=out)),  # noqa: B023
            median(lambda: after.ufunc(*values, out=out)),  # noqa: B023
            median(lambda: single.ufunc(*singles, out=out_single)),  # noqa: B023
        )
        counts = (count_instructions(function, TARGETS[target]).total for target in ("Neoverse N1", "AVX-512"))
        print(f"| {name} | " + " | ".join([*(f"{each:.1f}" for each in times), *map(str, counts)]) + " |")


if __name__ == "__main__":
    main()
