"""Every rule of the compiler against CasADi's virtual machine, and the errors of sin and cos in the last place.

The errors of the other elementary functions in the last place are in ``test_elementary.py``.
"""

import math

import casadi as ca
import numpy as np
import pytest
from mpmath import mp

from refusals import refused
from torsor.compiler import VirtualMachine, compile
from torsor.compiler.llvm.elementary import ELEMENTARY
from torsor.compiler.llvm.rules import RULES, Emitter, Scalar

DTYPES = ("float64", "float32")
WIDTHS = (2, 4, 8, 16)
BITS = {"float64": np.uint64, "float32": np.uint32}
# CasADi takes these two away when it builds an expression; their numbers of arguments.
BY_HAND = {ca.OP_ASSIGN: 1, ca.OP_LIFT: 2}
BINARY = {
    *(ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_DIV, ca.OP_POW, ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_AND),
    *(ca.OP_OR, ca.OP_FMOD, ca.OP_REMAINDER, ca.OP_COPYSIGN, ca.OP_FMIN, ca.OP_FMAX, ca.OP_ATAN2, ca.OP_HYPOT),
    ca.OP_IF_ELSE_ZERO,
}
UNARY = {
    *(ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE, ca.OP_INV, ca.OP_SQRT, ca.OP_FABS, ca.OP_FLOOR, ca.OP_CEIL, ca.OP_SIGN),
    *(ca.OP_NOT, ca.OP_EXP, ca.OP_EXPM1, ca.OP_LOG, ca.OP_LOG1P, ca.OP_SIN, ca.OP_COS, ca.OP_TAN, ca.OP_ASIN),
    *(ca.OP_ACOS, ca.OP_ATAN, ca.OP_SINH, ca.OP_COSH, ca.OP_TANH, ca.OP_ASINH, ca.OP_ACOSH, ca.OP_ATANH, ca.OP_ERF),
    ca.OP_ERFINV,
}
UNUSED = {ca.OP_TWICE} if ca.CasadiMeta.version().startswith("3.6.") else set()  # 2 x is a product there
# Elementary functions without an error.
EXACT = {ca.OP_FMOD, ca.OP_REMAINDER}
TRIGONOMETRIC = {ca.OP_SIN, ca.OP_COS}
# CasADi makes OP_CONSTPOW of a power with a constant exponent only.
EXPONENTS = (2.5, -1.5, 0.25, 12.5, -7.25)


@pytest.fixture(autouse=True, scope="module")
def no_cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORSOR_CACHE", "off")
        yield


def every_operation() -> tuple[ca.Function, list[int]]:
    """Return the function of two numbers whose outputs are all operations, and the code of each output."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    unary, binary = sorted(UNARY - UNUSED), sorted(BINARY)
    results = [ca.SX.unary(code, x) for code in unary] + [ca.SX.binary(code, x, y) for code in binary]
    results += [x**exponent for exponent in EXPONENTS]
    return ca.Function("every", [x, y], results), unary + binary + [ca.OP_CONSTPOW] * len(EXPONENTS)


def zeros_of_both_signs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return where x and y are 0.0 and -0.0, in either order: fmin and fmax may return either of them."""
    return (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where two arrays have the same bits, all NaN counting as one."""
    bits = BITS[str(a.dtype)]
    return (a.view(bits) == np.asarray(b, dtype=a.dtype).view(bits)) | (np.isnan(a) & np.isnan(b))


def arguments(dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of numbers: all pairs of special ones, and random ones of all sizes."""
    info = np.finfo(dtype)
    single = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, math.pi, 1e-3, 1e5, math.inf, math.nan]
    single += [info.tiny, info.smallest_subnormal, 37 * float(info.smallest_subnormal), info.max, math.sqrt(info.max)]
    special = np.array(single + [-value for value in single], dtype=dtype)
    pairs = np.array(np.meshgrid(special, special)).reshape(2, -1)
    rng = np.random.default_rng(seed)
    ordinary = rng.uniform(-3, 3, (2, 1000))
    whole = rng.integers(-5, 6, (2, 500)).astype(float)
    sizes = rng.choice([-1.0, 1.0], (2, 1000)) * 10.0 ** rng.uniform(-35, 35, (2, 1000))
    x, y = np.concatenate([pairs, ordinary, whole, sizes], axis=1).astype(dtype)
    return x, y


def defined(function: ca.Function, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the results of the virtual machine, in double precision and then rounded to the type of the arguments."""
    with np.errstate(over="ignore", under="ignore"):
        return [result.astype(x.dtype) for result in VirtualMachine(function)(x.astype(float), y.astype(float))]


def test_the_function_of_every_operation_uses_exactly_the_operations_in_the_table():
    function, codes = every_operation()
    used = {function.instruction_id(k) for k in range(function.n_instructions())} - {
        ca.OP_INPUT,
        ca.OP_OUTPUT,
        ca.OP_CONST,
    }
    assert used == set(codes)
    assert used | UNUSED | set(BY_HAND) == set(RULES) | set(ELEMENTARY) | TRIGONOMETRIC
    assert not set(RULES) & set(ELEMENTARY)
    assert not used & set(BY_HAND)
    for k, code in enumerate(codes):
        alone = ca.Function("alone", function.sx_in(), [function(*function.sx_in())[k]])
        assert code in {alone.instruction_id(j) for j in range(alone.n_instructions())}


def near(ours: np.ndarray, theirs: np.ndarray, ulp: int) -> np.ndarray:
    """Return where numbers other than 0 differ by at most some units of the last place."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(ours.astype(np.longdouble) - theirs)
        return (theirs != 0) & np.isfinite(theirs) & (distance <= ulp * np.spacing(np.abs(theirs)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_arithmetic_has_the_bits_of_the_virtual_machine_and_elementary_functions_its_digits(dtype, width):
    function, codes = every_operation()
    x, y = arguments(dtype)
    found = compile(function, dtype=dtype, width=width)(x, y)
    for code, ours, theirs in zip(codes, found, defined(function, x, y), strict=True):
        assert ours.dtype == dtype
        if code not in TRIGONOMETRIC:
            right = same_bits(ours, theirs)
            if code in (ca.OP_FMIN, ca.OP_FMAX):
                right |= zeros_of_both_signs(x, y) & (ours == 0)
            if code == ca.OP_ERFINV:  # CasADi's own approximation, in a handful of operations that each round
                right |= np.isclose(ours, theirs, rtol=64 * np.finfo(dtype).eps, atol=0)
            elif code in ELEMENTARY and code not in EXACT:
                # 2 units of ours and, in double precision, 1 of the C library, which the virtual machine calls.
                # Zeros, infinities and NaN have no such tolerance.
                right |= near(ours, theirs, 3 if dtype == "float64" else 2)
            wrong = np.flatnonzero(~right)
            shown = [(x[k], y[k], ours[k], theirs[k]) for k in wrong[:5]]
            assert not len(wrong), f"operation {code}: x, y, found, defined: {shown}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_assign_and_lift_give_their_first_argument(dtype):
    for code, count in BY_HAND.items():
        emitter = Emitter(Scalar(dtype), 4)
        assert RULES[code](emitter, *["%first", "%second"][:count]) == "%first"
        assert emitter.lines == []


def test_an_operation_without_a_rule_is_refused():
    x = ca.SX.sym("x")
    with pytest.raises(NotImplementedError, match=r"shown: CasADi's operation OP_PRINTME has no rule; .*fix: remove"):
        compile(ca.Function("shown", [x], [ca.SX.binary(ca.OP_PRINTME, x, x)]))
    if ca.CasadiMeta.version().startswith("3.6."):
        return  # it has no calls in functions of SX
    inner = ca.Function("inner", [x], [ca.sin(x)], {"never_inline": True})
    with pytest.raises(
        NotImplementedError, match=r"outer: CasADi's operation OP_CALL has no rule; .*fix: create .* never_inline"
    ):
        compile(ca.Function("outer", [x], [inner(x)]))


NUMBERS = [1e39, -1e39, 3.4028235677973366e38, 3.4028235e38, 1e-46, 1e-320, math.inf, math.nan]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_is_the_nearest_number_of_the_type(dtype, number):
    x = ca.SX.sym("x")
    kernel = compile(ca.Function("f", [x], [ca.vertcat(number, x)]), dtype=dtype)
    with np.errstate(all="ignore"):
        wanted = np.array([[number, 1.0]]).astype(dtype)
    assert same_bits(kernel(np.ones(1, dtype)), wanted).all()


# sin and cos


def sin_cos(dtype: str, width: int | None = None):
    x = ca.SX.sym("x")
    return compile(ca.Function("sin_cos", [x], [ca.sin(x), ca.cos(x)]), dtype=dtype, width=width)


def neighbours(values: np.ndarray, steps: int) -> np.ndarray:
    """Return floating-point numbers with their neighbours."""
    found = [values]
    for direction in (-np.inf, np.inf):
        last = values
        for _ in range(steps):
            last = np.nextafter(last, np.asarray(direction, dtype=values.dtype))
            found.append(last)
    return np.concatenate(found)


def angles(dtype: str, count: int) -> dict[str, np.ndarray]:
    """Return arguments of sin and cos in several ranges."""
    rng, info = np.random.default_rng(7), np.finfo(dtype)
    quarters = np.concatenate([np.arange(-40, 41), rng.integers(-(2**29), 2**29, count // 10)])
    eighths = np.arange(-41, 42, 2)
    signs = rng.choice([-1.0, 1.0], count)
    largest = 300 if dtype == "float64" else 38
    edge = 2.0**30 if dtype == "float64" else 2.0**17
    ranges = {
        "within half a turn": rng.uniform(-np.pi, np.pi, count),
        "small": signs * 10.0 ** rng.uniform(-30, 0, count),
        "up to 1000": rng.uniform(-1e3, 1e3, count),
        "up to 1e9": signs * 10.0 ** rng.uniform(0, 9, count),
        "huge": signs * 10.0 ** rng.uniform(9.04, largest, count),
        "beside multiples of pi/2": neighbours((quarters * (np.pi / 2)).astype(dtype), 3),
        "beside odd multiples of pi/4": neighbours((eighths * (np.pi / 4)).astype(dtype), 3),
        "beside the limit of the reduction": neighbours(np.array([edge, -edge]).astype(dtype), 40),
        "subnormal": signs * rng.integers(1, 2**20, count).astype(float) * float(info.smallest_subnormal),
    }
    return {name: values.astype(dtype) for name, values in ranges.items()}


def error_in_ulp(found: np.ndarray, x: np.ndarray, which: str) -> np.ndarray:
    """Return the distance of each result from the exact one, in units of the exact one's last place."""
    exact = getattr(mp, which)
    errors = np.empty(len(x))
    with mp.workprec(140):
        for k, (value, ours) in enumerate(zip(x.tolist(), found.tolist(), strict=True)):
            true = exact(mp.mpf(value))
            unit = np.spacing(np.abs(found.dtype.type(float(true))))
            errors[k] = float(abs(mp.mpf(ours) - true) / mp.mpf(float(unit)))
    return errors


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", list(angles("float64", 10)))
def test_sin_and_cos_are_within_two_units_of_the_last_place(dtype, name, count=1500):
    x = angles(dtype, count)[name]
    for which, found in zip(("sin", "cos"), sin_cos(dtype)(x), strict=True):
        worst = error_in_ulp(found, x, which).max()
        assert worst <= 2.0, f"{which}: {worst} ulp"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", list(angles("float64", 10)))
def test_sin_and_cos_are_within_two_units_of_the_last_place_for_many_angles(dtype, name):
    test_sin_and_cos_are_within_two_units_of_the_last_place(dtype, name, count=100_000)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sin_and_cos_have_the_same_bits_for_every_width(dtype):
    x = np.concatenate([*angles(dtype, 500).values(), np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)])
    usual = sin_cos(dtype)(x)
    for width in WIDTHS:
        for a, b in zip(usual, sin_cos(dtype, width)(x), strict=True):
            assert same_bits(a, b).all()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sin_and_cos_of_infinity_and_nan_are_nan_and_leave_their_neighbours_alone(dtype, width):
    kernel = sin_cos(dtype, width)
    x = np.random.default_rng(3).uniform(-9, 9, 64).astype(dtype)
    alone = kernel(x)
    for place in range(16):
        for bad in (np.inf, -np.inf, np.nan, 1e30):
            changed = x.copy()
            changed[place] = bad
            for before, after in zip(alone, kernel(changed), strict=True):
                assert np.isfinite(after[place]) == np.isfinite(bad)
                assert same_bits(np.delete(before, place), np.delete(after, place)).all()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sin_of_a_zero_is_that_zero(dtype, width):
    x = np.array([0.0, -0.0] * 9, dtype)
    sin, cos = sin_cos(dtype, width)(x)
    assert (cos == 1).all()
    assert same_bits(sin, x).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_sin_of_a_subnormal_is_that_number_and_its_cos_is_one(dtype):
    x = angles(dtype, 200)["subnormal"]
    sin, cos = sin_cos(dtype)(x)
    assert same_bits(sin, x).all()
    assert (cos == 1).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_sin_and_cos_obey_their_symmetries_to_the_last_bit(dtype):
    kernel = sin_cos(dtype)
    x = np.concatenate(list(angles(dtype, 500).values()))
    (sin, cos), (sin_minus, cos_minus) = kernel(x), kernel(-x)
    assert same_bits(sin_minus, -sin).all()
    assert same_bits(cos_minus, cos).all()
    assert (np.abs(sin) <= 1).all()
    assert (np.abs(cos) <= 1).all()


def test_symbols_that_are_no_inputs_are_named():
    x, mass = ca.SX.sym("x", 2), ca.SX.sym("mass")
    function = ca.Function("weight", [x], [mass * x], {"allow_free": True})
    with refused(where="weight", fix="make them inputs of the function"):
        compile(function)
