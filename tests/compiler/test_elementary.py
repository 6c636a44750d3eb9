"""Elementary functions: errors in the last place against exact results, special cases, lanes and processors."""

import math
import re
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location

import casadi as ca
import llvmlite.binding as llvm
import numpy as np
import pytest
from mpmath import mp

import torsor
from elementary_functions import (
    BENCHMARKS,
    BINARY,
    CODES,
    COUNT,
    DTYPES,
    UNARY,
    WIDTHS,
    by_mpmath,
    compiled,
    errors_of,
    evaluate,
    every_binade,
    module,
    neighbours,
    numbers,
    pairs,
    same_bits,
    wide,
    worst,
)
from torsor.compiler.llvm.angles import sin_cos_huge
from torsor.compiler.llvm.elementary import ELEMENTARY
from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.llvm.target import TARGETS, Target


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_float64_is_within_two_units_of_the_last_place(name):
    rng = np.random.default_rng(1)
    arrays = (numbers(name, "float64", 150),) if name in UNARY else pairs(name, "float64", 150)
    chosen = rng.permutation(len(arrays[0]))[: 1200 if name in UNARY else 400]
    arrays = tuple(array[chosen] for array in arrays)
    found = evaluate(name, *arrays)
    worst(name, by_mpmath((UNARY | BINARY)[name][1], found, *arrays), found, *arrays)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_float32_is_within_two_units_of_the_last_place(name):
    arrays = (numbers(name, "float32", 3000, 20),) if name in UNARY else pairs(name, "float32", 3000)
    found = evaluate(name, *arrays)
    worst(name, errors_of(name, found, *arrays), found, *arrays)


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double has no more digits than float64 here")
@pytest.mark.parametrize("name", [*(name for name in UNARY if name != "erf"), *BINARY])
def test_float64_is_within_two_units_of_the_last_place_for_a_million_numbers(name):
    arrays = (numbers(name, "float64", 200_000, 100),) if name in UNARY else pairs(name, "float64", 60_000)
    found = evaluate(name, *arrays)
    worst(name, errors_of(name, found, *arrays), found, *arrays)


@pytest.mark.slow
def test_erf_in_float64_is_within_two_units_of_the_last_place_for_many_numbers():
    x = np.concatenate([numbers("erf", "float64", 1000), np.random.default_rng(5).uniform(0, 6, 60_000)])
    worst("erf", by_mpmath(mp.erf, found := evaluate("erf", x), x), found, x)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(UNARY))
def test_float32_is_within_two_units_of_the_last_place_over_all_bits(name):
    stride = 1009 if name == "erf" else 101  # primes: every last digit and every exponent comes
    for start in range(0, 2**32, 2**28):
        x = np.arange(start, start + 2**28, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
        low, high = UNARY[name][2]
        x = x[(x >= low) & (x <= high)]
        if len(x):
            worst(name, errors_of(name, found := evaluate(name, x), x), found, x)


# Exact functions


def test_fmod_and_remainder_are_exact():
    rng = np.random.default_rng(8)
    for dtype in DTYPES:
        x = np.concatenate([every_binade(dtype, 2, rng), rng.integers(-50, 50, 3000).astype(dtype) / 4])
        y = np.concatenate([rng.permutation(every_binade(dtype, 2, rng)), rng.integers(1, 30, 3000).astype(dtype) / 4])
        x, y = x[y != 0], y[y != 0]
        fmod, remainder = (evaluate(name, x, y) for name in ("fmod", "remainder"))
        wanted = np.array([math.remainder(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])
        assert same_bits(fmod, np.fmod(x.astype(float), y.astype(float)).astype(dtype)).all()
        assert same_bits(remainder, wanted.astype(dtype)).all()


# Special cases


def special(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    digits = info.nmant
    some = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
        5.0,
        1e5,
        math.inf,
        math.nan,
        info.tiny,
        info.max,
        info.eps,
        1 - info.eps,
    ]
    some += [info.smallest_subnormal, 2.0**digits + 1, 2.0 ** (digits + 1), 2.0 ** (digits + 1) + 2, 1 + info.eps]
    return np.array(some + [-each for each in some], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*UNARY, *BINARY, "fmod"])
def test_zeros_infinities_and_nan_are_those_of_the_c_standard(name, dtype):
    one = special(dtype)
    arrays = [one] if name in UNARY else [each.ravel() for each in np.meshgrid(one, one)]
    function = {"fmod": np.fmod}.get(name) or (UNARY | BINARY)[name][0]
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(*(array.astype(wide(dtype)) for array in arrays))).astype(dtype)
    found = evaluate(name, *arrays)
    edge = ~np.isfinite(wanted) | (wanted == 0)
    assert edge.any()
    shown = [(*(a[k] for a in arrays), found[k], wanted[k]) for k in np.flatnonzero(edge & ~same_bits(found, wanted))]
    assert not shown, shown[:5]
    assert (np.isfinite(found) & (found != 0))[~edge].all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_odd_functions_are_odd_and_even_ones_even_to_the_last_bit(dtype):
    for name in ("sinh", "cosh", "tanh", "asinh", "atanh", "tan", "asin", "atan", "erf"):
        x = numbers(name, dtype, 300)
        assert same_bits(evaluate(name, -x), (1 if name == "cosh" else -1) * evaluate(name, x)).all()


# Lanes and widths


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", list(CODES))
def test_a_lane_does_not_depend_on_its_neighbours_or_on_the_width(name, dtype):
    rng = np.random.default_rng(2)
    arrays = [rng.permutation(np.concatenate([special(dtype), rng.uniform(-9, 9, 200).astype(dtype)]))[:208]]
    arrays += [rng.permutation(arrays[0]) for _ in range(COUNT.get(name, 1) - 1)]
    few = name == "erfinv"  # six functions in one, which takes long to compile for the widest vectors
    usual = evaluate(name, *arrays, width=4 if few else 16)
    for width in WIDTHS[:3] if few else WIDTHS:
        assert same_bits(evaluate(name, *arrays, width=width), usual).all(), width
    turned = [np.roll(array, 3) for array in arrays]
    assert same_bits(evaluate(name, *turned, width=4), np.roll(usual, 3)).all()


# Huge angles


@pytest.mark.parametrize("dtype", DTYPES)
def test_sin_and_cos_of_huge_angles_are_within_two_units_of_the_last_place(dtype, count=300):
    rng = np.random.default_rng(3)
    edge = 2.0**30 if dtype == "float64" else 2.0**17
    x = every_binade(dtype, 2 if dtype == "float64" else 8, rng)
    # The number of float64 that is nearest to a multiple of pi/2, and others next to large multiples.
    nearest = np.array([6381956970095103.0 * 2.0**797, 5.319372648326541e255], dtype) if dtype == "float64" else x[:0]
    multiples = (rng.integers(2**31, 2**50, count) * (math.pi / 2)).astype(dtype)
    x = rng.permutation(x[np.abs(x) > edge])
    x = np.concatenate([nearest, x[:200], rng.permutation(neighbours(multiples, 2))])[: 16 * 25]
    x = np.concatenate([x, -x])
    for exact, found in zip((mp.sin, mp.cos), compiled("sin_cos_huge", dtype, 8)(x), strict=True):
        with mp.workprec(1300):
            worst("huge", by_mpmath(lambda z, f=exact: _with(1300, f, z), found, x), found, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_usual_angles_next_to_multiples_of_a_quarter_turn_are_within_two_units_of_the_last_place(dtype):
    x, top = ca.SX.sym("x"), int(2.0**30 if dtype == "float64" else 2.0**17)
    function = torsor.compile(ca.Function("angles", [x], [ca.sin(x), ca.cos(x), ca.tan(x)]), dtype=dtype)
    many = np.random.default_rng(4).integers(1, int(top / 2), 60).tolist()
    with mp.workprec(200):
        multiples = [mp.pi / 2 * n for n in [*range(1, 30), *_convergents(top), *many]]
    angles = np.array([float(each) for each in multiples]).astype(dtype)
    angles = np.concatenate([angles, -angles])
    for exact, found in zip((mp.sin, mp.cos, mp.tan), function(angles), strict=True):
        worst("next to multiples", by_mpmath(exact, found, angles), found, angles)


def _convergents(top: int) -> list[int]:
    """Return the multiples up to ``top`` that are nearest to numbers with few digits: of pi/2 over powers of two."""
    found = set[int]()
    for power in range(-60, 1, 5):
        rest, before, last = mp.pi / 2 / mp.mpf(2) ** power, 1, 0
        for _ in range(40):
            whole = int(mp.floor(rest))
            before, last = last, whole * last + before
            if not last * 1.6 <= top:
                break
            found.add(last)
            rest = 1 / (rest - whole)
    return sorted(found - {0})


def _with(bits: int, function: Callable[[mp.mpf], mp.mpf], x: mp.mpf) -> mp.mpf:
    with mp.workprec(bits):
        return function(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_sin_and_cos_of_infinity_are_nan_and_no_lane_of_a_huge_angle_depends_on_another(dtype, width):
    x = np.array([1e30, np.inf, -np.inf, np.nan, -1e31, 1e10, 0.0, 1e-30] * 2, dtype)
    usual = compiled("sin_cos_huge", dtype, 16)(x)
    for ours, other in zip(compiled("sin_cos_huge", dtype, width)(x), usual, strict=True):
        assert np.isnan(ours[1:4]).all()
        assert np.isfinite(ours[[0, 4, 5]]).all()
        assert same_bits(ours[:6], other[:6]).all()


# Code


def all_of_them(e: Emitter, x: str, y: str) -> tuple[str, ...]:
    found = [ELEMENTARY[code](e, *[x, y][: COUNT.get(name, 1)]) for name, code in CODES.items()]
    return *found, *sin_cos_huge(e, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target, width", [("AVX-512", 8), ("AVX2", 4), ("NEON", 2), ("GPU", 1)])
def test_no_function_is_called_that_the_code_does_not_have(dtype, target, width):
    text = module(all_of_them, dtype, width, 2, len(CODES) + 2)
    parsed = llvm.parse_assembly(text)
    parsed.verify()
    missing = [each.name for each in parsed.functions if each.is_declaration and not each.name.startswith("llvm.")]
    assert not missing
    if target == "GPU":  # there is no C library on NVIDIA GPUs
        assert ".extern" not in Target("nvptx64-nvidia-cuda", "sm_80").assembly([text], 0)
    else:
        called = re.findall(r"\t(?:callq?|bl)\s+(\S+)", TARGETS[target].assembly([text], 0))
        assert len(called) > len(CODES)
        assert all(each.startswith(("vectors.", "reduce.", "exact.")) for each in called), called


def test_a_function_that_is_used_often_is_written_once():
    e = Emitter(Scalar("float64"), 4)
    for _ in range(30):
        ELEMENTARY[ca.OP_TANH](e, "%x")
    assert list(e.functions) == ["@vectors.tanh"]
    assert len(e.lines) == 30


def test_the_coefficients_are_those_that_the_script_computes():
    wanted = (BENCHMARKS.parent / "src/torsor/compiler/llvm/coefficients.toml").read_text()
    spec = spec_from_file_location("coefficients", BENCHMARKS / "coefficients.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.text() == wanted
