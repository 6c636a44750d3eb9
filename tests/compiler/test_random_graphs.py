"""Random CasADi functions, compiled, against CasADi's virtual machine.

How far may the two be apart? The machine code may fuse a product and a sum, so a result can differ wherever the virtual
machine rounds. Beside each value v a bound e is carried such that every evaluation whose operations are each right to
``u |v|`` (more for sin and cos) lies within e of the exact value; a fused operation rounds once where two were
allowed, so it obeys the same bound. The two results then lie within the sum of their bounds, for any graph, however it
cancels. A comparison, floor or sign whose arguments are nearer to a jump than their bounds has an open result, and so
has what depends on it; entries with an infinite bound are not compared, and the tests count that most are compared.
"""

import casadi as ca
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from torsor.compiler import VirtualMachine, compile
from torsor.compiler.llvm.code import PIECE, write_llvm
from torsor.compiler.program import read_program

DTYPES = ("float64", "float32")
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
# Allowed error of sin and cos, in u: two units of the last place, and one for the virtual machine's.
SIN_UNITS = 5
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: ca.logic_and(a < b, a > -1),
    "or": lambda a, b: ca.logic_or(a < b, b > 1),
    "if": lambda a, b: ca.if_else(a < b, a - b, a * b),
    "min": ca.fmin,
    "max": ca.fmax,
    "atan2": ca.atan2,
}
UNARY = {
    "neg": lambda a: -a,
    "sq": lambda a: a * a,
    "twice": lambda a: a + a,
    "inv": lambda a: 1 / a,
    "sqrt": lambda a: ca.sqrt(ca.fabs(a)),
    "sin": ca.sin,
    "cos": ca.cos,
    "floor": ca.floor,
    "ceil": ca.ceil,
    "sign": ca.sign,
    "not": lambda a: ca.logic_not(a < 0.3),
    "if_zero": lambda a: ca.if_else(a > 0, a, 0),
}
CONSTANTS = (0.0, 1.0, -2.0, 0.1, 1e-3, 3.14159, 41.0)


@pytest.fixture(autouse=True, scope="module")
def no_cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORSOR_CACHE", "off")
        yield


def close_within(function: ca.Function, states: list[np.ndarray], dtype: str) -> list[np.ndarray]:
    """Return, for each output, the allowed difference of two evaluations; ``states``: one row of entries per state."""
    u, info = UNIT[dtype], np.finfo(dtype)
    tiny, largest = float(info.smallest_subnormal), float(info.max)
    rows_in = [function.sparsity_in(k).get_triplet() for k in range(function.n_in())]
    held: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    zero = np.zeros(len(states[0]))
    bounds = [np.zeros((len(zero), *function.size_out(k))) for k in range(function.n_out())]
    for k in range(function.n_instructions()):
        code, into, taken = function.instruction_id(k), function.instruction_output(k), function.instruction_input(k)
        if code == ca.OP_OUTPUT:
            row, column = (each[into[1]] for each in function.sparsity_out(into[0]).get_triplet())
            bounds[into[0]][:, row, column] = 2 * held[taken[0]][1]
            continue
        if code == ca.OP_INPUT:
            row, column = (each[taken[1]] for each in rows_in[taken[0]])
            v, e = states[taken[0]][:, row * function.size2_in(taken[0]) + column].astype(float), zero
        elif code == ca.OP_CONST:
            number = function.instruction_constant(k)
            v, e = zero + number, zero + (0 if float(np.dtype(dtype).type(number)) == number else u * abs(number))
        else:
            v, e = _step(code, *(part for place in taken for part in held[place]), u=u)
            if code not in _EXACT:
                e = np.where((e > 0) | (v != 0), e + tiny, e)
        e = np.where(np.isfinite(v) & (np.abs(v) + e < largest / 2), e, np.inf)
        held[into[0]] = v, np.where(np.isnan(e), np.inf, e)
    return bounds


_EXACT = {ca.OP_NEG, ca.OP_TWICE, ca.OP_FABS, ca.OP_FMIN, ca.OP_FMAX, ca.OP_IF_ELSE_ZERO}
_EXACT |= {ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_AND, ca.OP_OR, ca.OP_NOT, ca.OP_SIGN, ca.OP_FLOOR, ca.OP_CEIL}


def _step(code, a, ea, b=0.0, eb=0.0, *, u):
    """Return the value of an operation and the bound of its error; a and b carry the errors ea and eb."""
    size_a, size_b = np.abs(a), np.abs(b)
    if code in (ca.OP_ADD, ca.OP_SUB, ca.OP_TWICE):
        v = a + b if code == ca.OP_ADD else a - b if code == ca.OP_SUB else a + a
        e = ea + (ea if code == ca.OP_TWICE else eb)
        return v, e + (0 if code == ca.OP_TWICE else u * (np.abs(v) + e))
    if code in (ca.OP_MUL, ca.OP_SQ):
        b, eb, size_b = (a, ea, size_a) if code == ca.OP_SQ else (b, eb, size_b)
        e = size_a * eb + size_b * ea + ea * eb
        return a * b, e + u * (np.abs(a * b) + e)
    if code in (ca.OP_DIV, ca.OP_INV):
        if code == ca.OP_INV:
            a, ea, b, eb, size_a, size_b = 1.0, 0.0, a, ea, 1.0, size_a
        e = np.where(size_b > eb, (size_a * eb + size_b * ea) / (size_b * (size_b - eb)), np.inf)
        return a / b, e + u * (np.abs(a / b) + e)
    if code == ca.OP_SQRT:
        v = np.sqrt(a)
        e = np.where(ea == 0, 0.0, np.where(a > ea, ea / (v + np.sqrt(np.maximum(a - ea, 0))), np.inf))
        return v, e + u * (v + e)
    if code in (ca.OP_SIN, ca.OP_COS):
        v = np.sin(a) if code == ca.OP_SIN else np.cos(a)
        return v, ea + SIN_UNITS * u * (np.abs(v) + ea)
    if code == ca.OP_ATAN2:
        # The angle moves by no more than the distance moved over the distance left.
        moved, away = np.hypot(ea, eb), np.hypot(a, b)
        e = np.where(moved == 0, 0.0, np.where(away > 2 * moved, 2 * moved / away, np.inf))
        e = np.where((b < 0) & (size_a <= ea) & (moved > 0), np.inf, e)  # the cut
        return np.arctan2(a, b), e + 4 * u * (np.abs(np.arctan2(a, b)) + e)
    if code in (ca.OP_NEG, ca.OP_FABS):
        return (-a if code == ca.OP_NEG else size_a), ea
    if code in (ca.OP_FMIN, ca.OP_FMAX):
        return (np.minimum if code == ca.OP_FMIN else np.maximum)(a, b), np.maximum(ea, eb)
    if code in (ca.OP_FLOOR, ca.OP_CEIL):
        rounded = np.floor if code == ca.OP_FLOOR else np.ceil
        return rounded(a), np.where(rounded(a - ea) == rounded(a + ea), 0.0, ea + 1)
    if code == ca.OP_SIGN:
        return np.sign(a), np.where((size_a > ea) | (ea == 0), 0.0, 2.0)
    if code == ca.OP_IF_ELSE_ZERO:
        return np.where(a != 0, b, 0.0), np.where(ea == 0, np.where(a != 0, eb, 0.0), size_b + eb)
    return _logic(code, a, ea, b, eb)


def _logic(code, a, ea, b, eb):
    if code in (ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE):
        compare = {ca.OP_LT: np.less, ca.OP_LE: np.less_equal, ca.OP_EQ: np.equal, ca.OP_NE: np.not_equal}[code]
        sure = (np.abs(a - b) > 2 * (ea + eb)) | (ea + eb == 0)
        return compare(a, b) * 1.0, np.where(sure, 0.0, 1.0)
    if code == ca.OP_NOT:
        return (a == 0) * 1.0, ea
    assert code in (ca.OP_AND, ca.OP_OR), code
    both = (np.logical_and if code == ca.OP_AND else np.logical_or)(a != 0, b != 0)
    return both * 1.0, np.minimum(ea + eb, 1.0)


def compare(function: ca.Function, arrays: list[np.ndarray], dtype: str) -> tuple[int, int]:
    """Compare the compiled function with the virtual machine; return the numbers of compared and of all entries."""
    kernel, machine = compile(function, dtype=dtype), VirtualMachine(function)
    arrays = [array.astype(dtype) for array in arrays]
    found, wanted = kernel(*arrays), machine(*arrays)
    found, wanted = (each if isinstance(each, tuple) else (each,) for each in (found, wanted))
    batch = machine.check_batch(*arrays)[1]
    states = [
        np.broadcast_to(array, (*batch, *core)).reshape(int(np.prod(batch)), int(np.prod(core)))
        for array, core in zip(arrays, machine.inputs, strict=True)
    ]
    with np.errstate(all="ignore"):
        bounds = close_within(function, states, dtype)
    checked = total = 0
    for ours, theirs, bound in zip(found, wanted, bounds, strict=True):
        assert ours.dtype == dtype
        assert ours.shape == theirs.shape
        bound = bound.reshape(ours.shape)
        open_ = np.isinf(bound)
        with np.errstate(all="ignore"):
            right = np.abs(ours.astype(float) - theirs) <= bound
        assert (right | open_).all(), (
            ours[~(right | open_)][:4],
            theirs[~(right | open_)][:4],
            bound[~(right | open_)][:4],
        )
        checked, total = checked + int((~open_).sum()), total + bound.size
    return checked, total


@st.composite
def functions(draw) -> ca.Function:
    """Return a random function: sparse and full matrices of any shape in, random results out."""
    inputs = []
    for k in range(draw(st.integers(1, 4))):
        rows, columns = draw(st.sampled_from([(1, 1), (3, 1), (4, 1), (5, 1), (2, 3), (1, 4), (3, 3), (7, 2)]))
        if draw(st.integers(0, 3)) == 0:
            full = (
                ca.Sparsity.lower(rows) if rows == columns else ca.Sparsity.triplet(rows, columns, [0], [columns - 1])
            )
            inputs.append(ca.SX.sym(f"x{k}", full))
        else:
            inputs.append(ca.SX.sym(f"x{k}", rows, columns))
    values = [entry for each in inputs for entry in each.nonzeros()] + [ca.SX(number) for number in CONSTANTS]
    names = [*BINARY, *UNARY]
    index = st.integers(0, 10**6)
    for name, i, j in draw(st.lists(st.tuples(st.sampled_from(names), index, index), min_size=1, max_size=60)):
        # Later values are taken more often, so that graphs are deep.
        a, b = values[-1 - i % len(values)], values[j % len(values)]
        values.append(BINARY[name](a, b) if name in BINARY else UNARY[name](a))
    outputs = []
    for _ in range(draw(st.integers(1, 3))):
        rows, columns = draw(st.sampled_from([(1, 1), (2, 1), (5, 1), (2, 2), (1, 3), (4, 3)]))
        result = ca.SX(rows, columns)
        for row in range(rows):
            for column in range(columns):
                place = draw(st.integers(-3, len(values) - 1))  # structural zeros, inputs, constants and results
                if place >= 0:
                    result[row, column] = values[-1 - place]
        outputs.append(result)
    return ca.Function("random", inputs, outputs)


def states_of(function: ca.Function, batch: tuple[int, ...], narrow: int, seed: int) -> list[np.ndarray]:
    """Return random arguments; ``narrow`` selects the input axes that have length 1 or are missing."""
    rng, arrays = np.random.default_rng(seed), []
    for k, core in enumerate(VirtualMachine(function).inputs):
        own = tuple(1 if narrow >> (3 * k + axis) & 1 else length for axis, length in enumerate(batch))
        own = own[1:] if narrow >> (3 * k + 2) & 1 and k else own
        values = rng.normal(size=(*own, *core)) * rng.choice([0.1, 1.0, 10.0])
        arrays.append(np.where(rng.random(values.shape) < 0.05, np.round(values), values))
    return arrays


BATCHES = [(), (0,), (1,), (2,), (7,), (13,), (31,), (3, 5), (2, 1, 3), (0, 4), (17, 2)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_graphs_agree_with_the_virtual_machine(dtype, examples=30):
    counts = []

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, phases=(Phase.generate, Phase.shrink)
    )
    @given(functions(), st.sampled_from(BATCHES), st.integers(0, 2**12 - 1), st.integers(0, 2**31))
    def check(function, batch, narrow, seed):
        counts.append(compare(function, states_of(function, batch, narrow, seed), dtype))

    check()
    checked, total = np.sum(counts, axis=0)
    assert checked > 0.8 * total
    assert checked > 500  # how many there are depends on the version of hypothesis


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_random_graphs_agree_with_the_virtual_machine(dtype):
    test_random_graphs_agree_with_the_virtual_machine(dtype, examples=400)


def test_the_bound_notices_an_error_of_a_few_units_of_the_last_place():
    x = ca.SX.sym("x", 2)
    function = ca.Function("f", [x], [ca.sin(x[0]) * x[1] + x[0]])
    states = np.random.default_rng(0).uniform(1, 2, (1000, 2))
    (bound,) = close_within(function, [states], "float64")
    value = np.abs(VirtualMachine(function)(states))
    assert (bound.ravel() < 20 * np.spacing(value)).all()
    assert (bound > 0).all()


def large(operations: int) -> ca.Function:
    """Return a long graph whose values stay near 1, with values that are used soon, late, and at the end."""
    rng = np.random.default_rng(1)
    x = ca.SX.sym("x", 9)
    values, count = x.nonzeros(), 0
    while count < operations:
        near, far = values[-1 - rng.integers(min(9, len(values)))], values[rng.integers(len(values))]
        if rng.random() < 0.02:
            values += [ca.sin(far), ca.cos(far)]
            count += 2
        else:
            # Halves keep the size, and the errors of what comes before fade.
            values.append(0.5 * near + 0.25 * far * near if rng.random() < 0.5 else 0.5 * near - 0.25 * far)
            count += 4
    picks = rng.choice(len(values), 60, replace=False)
    return ca.Function("large", [x], [ca.vertcat(*(values[k] for k in picks)), ca.vertcat(*values[-12:], x[0], 2.0)])


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_a_graph_of_twenty_thousand_operations_in_many_pieces_agrees_with_the_virtual_machine(dtype):
    function = large(40_000)  # half of them are used
    program = read_program(function)
    assert len(program.operations) > 18_000
    # One module for each piece: pieces in machine code, which AArch64 has for float32, lie in one module.
    modules = write_llvm(program, (1, 1, 1), dtype, 4, encode=False)
    assert len(modules) > 18_000 // PIECE
    assert (
        sum("ptr %scratch" in line and "getelementptr" in line for text in modules for line in text.split("\n")) > 100
    )
    checked, total = compare(function, [np.random.default_rng(2).uniform(-1, 1, (37, 9))], dtype)
    assert checked == total


def test_sin_and_cos_of_one_value_may_lie_in_different_pieces():
    x = ca.SX.sym("x", 3)
    value = x[0] * x[1] + x[2]
    sin, v = ca.sin(value), x[0]
    for k in range(4 * PIECE):
        v = 0.5 * v + 0.25 * x[k % 3] * (sin if k % 100 == 0 else v)
    function = ca.Function("apart", [x], [v * ca.cos(value), sin, value])
    checked, total = compare(function, [np.random.default_rng(4).uniform(-2, 2, (19, 3))], "float64")
    assert checked == total
