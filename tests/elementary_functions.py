"""Elementary functions of the compiler on arrays, arguments to test them with, and the distance from exact results."""

import ctypes
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from mpmath import mp

from torsor.compiler.llvm import native
from torsor.compiler.llvm.angles import sin_cos_huge
from torsor.compiler.llvm.elementary import ELEMENTARY, FUNCTIONS
from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.llvm.target import host

DTYPES = ("float64", "float32")
BITS = {"float64": np.uint64, "float32": np.uint32}
WIDTHS = (1, 2, 4, 8, 16)
ULP = 2.0
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

# The function of NumPy, of mpmath, the domain, and the points next to which formulas change.
UNARY = {
    "exp": (
        np.exp,
        mp.exp,
        (-np.inf, np.inf),
        [0, 0.34657, 709.782712893384, -708.39, -745.13, 88.72284, -87.3, -103.97],
    ),
    "expm1": (np.expm1, mp.expm1, (-np.inf, np.inf), [0, 0.34657, -0.34657, 709.7827, 88.7228, -37.43, -17.33, 37, 17]),
    "log": (np.log, mp.log, (0, np.inf), [1, 0.5**0.5, 2**0.5, 2, 0.5]),
    "log1p": (np.log1p, mp.log1p, (-1, np.inf), [0, -1, -0.292893, 0.414214, 1]),
    "sinh": (np.sinh, mp.sinh, (-np.inf, np.inf), [0, 1, -1, 710.4758, -710.4758, 89.4159, 0.34657, 22]),
    "cosh": (np.cosh, mp.cosh, (-np.inf, np.inf), [0, 0.34657, 710.4758, -710.4758, 89.4159, 22]),
    "tanh": (np.tanh, mp.tanh, (-np.inf, np.inf), [0, 0.173287, -0.173287, 19.06, 9.01, 18.5, 8.5, 20, 10]),
    "asinh": (np.arcsinh, mp.asinh, (-np.inf, np.inf), [0, 2.0**-28, 2.0**-13, 0.3535, 2.0**30, 2.0**60]),
    "acosh": (np.arccosh, mp.acosh, (1, np.inf), [1, 1.06066, 2.0**30, 2.0**60]),
    "atanh": (np.arctanh, mp.atanh, (-1, 1), [0, 1, -1, 2.0**-28, 2.0**-13, 0.171573]),
    "tan": (np.tan, mp.tan, (-np.inf, np.inf), [0, *(k * math.pi / 4 for k in range(-9, 10)), 2.0**30, 2.0**17, 1e6]),
    "asin": (np.arcsin, mp.asin, (-1, 1), [0, 0.5, -0.5, 1, -1]),
    "acos": (np.arccos, mp.acos, (-1, 1), [0, 0.5, -0.5, 1, -1]),
    "atan": (np.arctan, mp.atan, (-np.inf, np.inf), [0, 2**0.5 - 1, 1, 2**0.5 + 1, 2.0**100]),
    "erf": (np.vectorize(math.erf, otypes=[float]), mp.erf, (-np.inf, np.inf), [0, 1, -1, 5.86, 6, 3.83]),
}
BINARY = {
    "pow": (np.power, mp.power),
    "atan2": (np.arctan2, mp.atan2),
    "hypot": (np.hypot, lambda x, y: mp.sqrt(x * x + y * y)),
}
CODES = {function.__name__: code for code, function in FUNCTIONS.items()}
COUNT = {"fmod": 2, "remainder": 2} | dict.fromkeys(BINARY, 2)


# The functions on arrays: a loop over vectors in which no other code takes part.


def module(write: Callable[..., tuple[str, ...]], dtype: str, width: int, count: int, results: int) -> str:
    e = Emitter(Scalar(dtype), width)
    step, align = width * e.scalar.size, e.scalar.size
    values = []
    for k in range(count):
        pointer = e.put(f"getelementptr i8, ptr %in.{k}, i64 %at")
        values.append(e.put(f"load {e.vector}, ptr {pointer}, align {align}"))
    for k, value in enumerate(write(e, *values)):
        pointer = e.put(f"getelementptr i8, ptr %out.{k}, i64 %at")
        e.lines.append(f"  store {e.vector} {value}, ptr {pointer}, align {align}")
    pointers = [*(f"ptr %in.{k}" for k in range(count)), *(f"ptr %out.{k}" for k in range(results))]
    head = [f"define void @run(i64 %bytes, {', '.join(pointers)}) {{", "start:", "  br label %entry", "entry:"]
    head.append("  %at = phi i64 [ 0, %start ], [ %next, %entry ]")
    tail = [f"  %next = add i64 %at, {step}", "  %more = icmp slt i64 %next, %bytes"]
    tail += ["  br i1 %more, label %entry, label %end", "end:", "  ret void", "}"]
    # A number without a name would be counted with those of the emitter.
    return "\n".join([*e.functions.values(), *head, *e.lines, *tail])


@cache
def compiled(name: str, dtype: str, width: int) -> Callable[..., tuple[np.ndarray, ...]]:
    """Return a function of arrays whose lengths are multiples of 16."""
    results = 2 if name == "sin_cos_huge" else 1
    count = COUNT.get(name, 1)
    write = sin_cos_huge if results == 2 else lambda e, *values: (ELEMENTARY[CODES[name]](e, *values),)
    code = native.link(host().objects([module(write, dtype, width, count, results)]), ["run"])
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (count + results))
    run = call(code["run"])

    def on_arrays(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        given = [np.ascontiguousarray(array, dtype) for array in arrays]
        outputs = tuple(np.empty_like(given[0]) for _ in range(results))
        assert len(given[0]) % 16 == 0
        run(given[0].nbytes, *(array.ctypes.data for array in (*given, *outputs)))
        return outputs

    on_arrays.code = code
    return on_arrays


def evaluate(name: str, *arrays: np.ndarray, width: int = 16) -> np.ndarray:
    """Return a function of arrays of any length."""
    size = len(arrays[0])
    filled = [np.concatenate([array, np.repeat(array[-1:], -size % 16)]) for array in arrays]
    return compiled(name, str(arrays[0].dtype), width)(*filled)[0][:size]


# Arguments


def neighbours(values: np.ndarray, steps: int) -> np.ndarray:
    """Return numbers and their neighbours up to some steps away, by their bits."""
    kind = {"float64": np.int64, "float32": np.int32}[str(values.dtype)]
    bits = values.view(kind)[:, None] + np.arange(-steps, steps + 1, dtype=kind)
    near = bits.ravel().view(values.dtype)
    return near[np.isfinite(near)]


def every_binade(dtype: str, each: int, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers with every exponent, of both signs, subnormal ones included."""
    digits, fields = (52, 2047) if dtype == "float64" else (23, 255)
    field = np.repeat(np.arange(fields, dtype=BITS[dtype]), each)
    sign = rng.integers(0, 2, field.size, dtype=BITS[dtype])
    fraction = rng.integers(0, 1 << digits, field.size, dtype=BITS[dtype])
    shift = BITS[dtype](digits)
    top = BITS[dtype](63 if dtype == "float64" else 31)
    return ((sign << top) | (field << shift) | fraction).view(dtype)


def numbers(name: str, dtype: str, count: int, each: int = 1) -> np.ndarray:
    """Return arguments of a function of one number: all sizes, and next to special points."""
    rng = np.random.default_rng(11)
    _, _, (low, high), points = UNARY[name]
    limit = 750 if dtype == "float64" else 110
    moderate = rng.uniform(max(low, -limit), min(high, limit), count)
    usual = rng.uniform(max(low, -3.0), min(high, 3.0), count)
    tiny = rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-12, 0, count)
    beside_one = 1 + tiny
    parts = [np.concatenate([moderate, usual, tiny, beside_one, np.array(points)]).astype(dtype)]
    parts += [neighbours(np.array(points).astype(dtype), 20), every_binade(dtype, each, rng)]
    x = np.concatenate(parts)
    return x[(x >= low) & (x <= high)]


def pairs(name: str, dtype: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return arguments of a function of two numbers, finite results of pow among them for all sizes of its base."""
    rng = np.random.default_rng(12)
    binades = every_binade(dtype, max(1, count // 400), rng)
    other = rng.permutation(every_binade(dtype, max(1, count // 400), rng))
    moderate, beside = rng.uniform(-9, 9, count), 1 + rng.uniform(-1e-3, 1e-3, count)
    xs, ys = [binades, moderate.astype(dtype)], [other, rng.uniform(-9, 9, count).astype(dtype)]
    small = rng.integers(1, 1 << 20, count).astype(BITS[dtype]).view(dtype)
    xs, ys = [*xs, small], [*ys, rng.permutation(small)]
    if name == "pow":
        base = np.abs(binades)
        wanted = rng.uniform(-1, 1, base.size) * (746 if dtype == "float64" else 104)
        exponent = wanted / np.where(base == 1, 1, np.log(base.astype(float)))
        whole = rng.integers(-40, 41, count).astype(float)
        xs = [*(np.abs(each) for each in xs), base, beside.astype(dtype), moderate.astype(dtype)]
        ys = [*ys, exponent.astype(dtype), (wanted[0] / (beside - 1)).astype(dtype), whole.astype(dtype)]
    else:
        scaled = moderate * rng.uniform(0.3, 3, count)
        xs, ys = [*xs, moderate.astype(dtype)], [*ys, scaled.astype(dtype)]
    x, y = np.concatenate(xs), np.concatenate(ys)
    return x, y


# Exact results, and the distance from them


def distance_in_ulp(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return |found - exact| in units of the last place of the exact result, which has more digits; inf where wrong.

    Infinite results are right if the exact one is beyond the largest number or half a unit before it.
    """
    largest = np.finfo(found.dtype).max
    with np.errstate(all="ignore"):
        rounded = exact.astype(found.dtype)
        unit = np.spacing(np.minimum(np.abs(rounded), largest)).astype(exact.dtype)
        error = np.abs(found.astype(exact.dtype) - exact) / unit
    beyond = np.isinf(found) & (np.abs(exact) >= largest) & (np.sign(found) == np.sign(exact))
    nan = np.isnan(found) & np.isnan(exact)
    return np.where(beyond | nan | (found == exact), 0.0, np.where(np.isnan(error), np.inf, error)).astype(float)


def by_mpmath(function: Callable[..., mp.mpf], found: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    """Return the errors in units of the last place, with exact results of mpmath."""
    errors, largest = np.empty(len(found)), float(np.finfo(found.dtype).max)
    kind = found.dtype.type
    with mp.workprec(200):
        for k, (ours, *given) in enumerate(zip(found.tolist(), *(array.tolist() for array in arrays), strict=True)):
            true = function(*map(mp.mpf, given))
            if abs(true) > largest:
                errors[k] = 0.0 if math.isinf(ours) and (ours > 0) == (true > 0) else np.inf
                continue
            unit = mp.mpf(float(np.spacing(np.abs(kind(float(true))))))
            errors[k] = np.inf if not math.isfinite(ours) else float(abs(mp.mpf(ours) - true) / unit)
    return errors


def wide(dtype: str) -> type:
    """Return a type with digits enough to judge results of another."""
    return np.float64 if dtype == "float32" else np.longdouble


def worst(name: str, errors: np.ndarray, found: np.ndarray, *arrays: np.ndarray) -> float:
    """Return the largest error, which must be within the bound."""
    k = int(np.argmax(errors))
    print(f"{name} {found.dtype}: {errors[k]:.3f} ulp of {len(errors)} at {[array[k] for array in arrays]}")
    assert errors[k] <= ULP, (name, errors[k], [array[k] for array in arrays], found[k])
    return float(errors[k])


def errors_of(name: str, found: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    """Return errors with exact results of a wider type: float64 for float32, long double for float64."""
    function = (UNARY | BINARY)[name][0]
    with np.errstate(all="ignore"):
        return distance_in_ulp(found, function(*(array.astype(wide(str(found.dtype))) for array in arrays)))


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where two arrays have the same bits, all NaN counting as one."""
    bits = BITS[str(a.dtype)]
    return (a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))
