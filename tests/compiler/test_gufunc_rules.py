"""Compiled kernels obey the rules of NumPy's generalised universal functions: shapes, strides, types, flags, memory."""

import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.compiler import VirtualMachine, compile
from torsor.compiler.llvm.target import host
from torsor.compiler.machine_code import MAX_ARRAYS

DTYPES = ("float64", "float32")
BITS = {"float64": np.uint64, "float32": np.uint32}


@pytest.fixture(autouse=True, scope="module")
def no_cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORSOR_CACHE", "off")
        yield


def mixed() -> ca.Function:
    """Return a function of a matrix, a vector and a number, with three such results."""
    M, v, a = ca.SX.sym("M", 3, 5), ca.SX.sym("v", 5), ca.SX.sym("a")
    return ca.Function(
        "mixed", [M, v, a], [M * a + 1, ca.mtimes(M, ca.sin(v)), ca.dot(v, v) / (1 + a * a)], list("Mva"), list("xyz")
    )


@pytest.fixture(scope="module", params=DTYPES)
def kernel(request):
    return compile(mixed(), dtype=request.param)


def states(count: int, dtype: str, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, *core)).astype(dtype) for core in ((3, 5), (5,), ())]


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(BITS[str(array.dtype)])


def same(a, b) -> bool:
    """Whether two results have the same shapes and the same bits."""
    a, b = (each if isinstance(each, tuple) else (each,) for each in (a, b))
    return len(a) == len(b) and all(
        x.shape == y.shape and (bits(x) == bits(y)).all() for x, y in zip(a, b, strict=True)
    )


def run_python(text: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a program in another process, so that a crash does not end the tests."""
    code = "import numpy as np, casadi as ca, os, sys\nfrom torsor.compiler import compile\n" + text
    settings = {**os.environ, "TORSOR_CACHE": "off", **environment}
    return subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=120)


# Memory


def layouts(array: np.ndarray, axes: int) -> dict[str, np.ndarray]:
    """Return the same numbers in many layouts; the last ``axes`` axes belong to one state."""
    raw = array.tobytes()
    shifted = np.frombuffer(b"x" + raw, dtype=array.dtype, offset=1).reshape(array.shape)
    spread = np.full([2 * n for n in array.shape], np.nan, array.dtype)
    window = spread[tuple(slice(None, None, 2) for _ in array.shape)]
    window[...] = array
    locked = array.copy()
    locked.flags.writeable = False
    swapped = array.astype(array.dtype.newbyteorder())
    order = list(range(array.ndim))[::-1]
    found = {
        "in order": array.copy(),
        "Fortran": np.asfortranarray(array),
        "transposed": np.ascontiguousarray(array.transpose(order)).transpose(order),
        "sliced": window,
        "states backwards": array[::-1].copy()[::-1],
        "all backwards": np.ascontiguousarray(np.flip(array))[tuple(slice(None, None, -1) for _ in array.shape)],
        "not aligned": shifted,
        "read-only": locked,
        "other byte order": swapped,
        "tail of a longer array": np.concatenate([array, array])[len(array) :],
    }
    if axes:
        wide = np.concatenate([array, array], axis=-1)
        found["part of wider rows"] = wide[..., : array.shape[-1]]
        found["states last"] = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)
    return found


@pytest.mark.parametrize("count", [1, 2, 7, 8, 16, 37])
def test_results_do_not_depend_on_the_layout_of_the_inputs(kernel, count):
    given = states(count, kernel.dtype)
    wanted = kernel(*given)
    tried = 0
    for k, core in enumerate(((3, 5), (5,), ())):
        for name, array in layouts(given[k], len(core)).items():
            assert np.array_equal(array, given[k])
            assert same(kernel(*given[:k], array, *given[k + 1 :]), wanted), f"input {k}: {name}"
            tried += 1
    assert tried == 34


@pytest.mark.parametrize("count", [1, 7, 16, 37])
def test_results_do_not_depend_on_the_layout_of_out(kernel, count):
    given = states(count, kernel.dtype)
    wanted = kernel(*given)
    for k, result in enumerate(wanted):
        for name, place in layouts(np.zeros_like(result), result.ndim - 1).items():
            if place.flags.writeable:
                out = [None, None, None]
                out[k] = place
                found = kernel(*given, out=tuple(out))
                assert found[k] is place
                assert same(found[k].astype(kernel.dtype), result), f"output {k}: {name}"


def test_what_lies_between_the_entries_of_out_is_not_touched(kernel):
    given = states(21, kernel.dtype)
    wanted = kernel(*given)
    for k, result in enumerate(wanted):
        around = np.full([2 * n + 1 for n in result.shape], 7.25, kernel.dtype)
        inside = tuple(slice(1, None, 2) for _ in result.shape)
        out = [None] * 3
        out[k] = around[inside]
        kernel(*given, out=tuple(out))
        assert same(around[inside], result)
        around[inside] = 7.25
        assert (around == 7.25).all()


@pytest.mark.skipif(sys.platform == "win32", reason="pages are guarded with mprotect")
def test_nothing_is_read_or_written_beyond_the_arrays():
    found = run_python("""
import ctypes, mmap
page = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def guarded(shape, dtype):
    # Memory between two pages that cannot be touched: one array begins after the first, one ends before the second.
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    inner = -(-size // page) * page
    memory = mmap.mmap(-1, inner + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for edge in (start, start + page + inner):
        assert libc.mprotect(edge, page, 0) == 0
    return [np.frombuffer(memory, dtype, size // np.dtype(dtype).itemsize, at).reshape(shape)
            for at in (page, page + inner - size)]
for dtype in ("float64", "float32"):
    for entries in (1, 3, 4, 5, 7):
        x = ca.SX.sym("x", entries)
        kernel = compile(ca.Function("f", [x], [2 * x]), dtype=dtype)
        shape = () if entries == 1 else (entries,)
        for count in (1, 2, 7, 8, 15, 16, 17, 33):
            for array, place in zip(guarded((count, *shape), dtype), guarded((count, *shape), dtype)):
                array[...] = np.arange(array.size).reshape(array.shape)
                for a, b in ((array, place), (array[::-1], place), (array, place[::-1])):
                    kernel.ufunc(a, out=b)
                    assert np.array_equal(b, 2 * a)
print("right", flush=True)
os._exit(0)
""")
    assert (found.returncode, found.stdout) == (0, "right\n"), found.stderr[-500:]


def test_out_may_be_one_of_the_inputs():
    for dtype in DTYPES:
        x, y = ca.SX.sym("x", 6), ca.SX.sym("y", 6)
        turn = compile(ca.Function("turn", [x, y], [x[::-1] + y, y * 2]), dtype=dtype)
        a, b = (np.random.default_rng(k).normal(size=(41, 6)).astype(dtype) for k in (0, 1))
        wanted = turn(a, b)
        for shift in (0, 1):
            memory = np.concatenate([a, a[:1]])
            memory[shift : 41 + shift] = a
            assert same(turn(memory[shift : 41 + shift], b, out=(memory[:41], None)), wanted)


def test_inputs_are_never_written(kernel):
    given = states(37, kernel.dtype)
    before = [array.copy() for array in given]
    kernel(*given)
    assert same(tuple(given), tuple(before))
    locked = [np.broadcast_to(array[0], array.shape) for array in given]
    assert not any(array.flags.writeable for array in locked)
    result = kernel(*locked)
    assert same(tuple(each[0] for each in result), tuple(each[-1] for each in result))


def test_read_only_out_is_refused(kernel):
    place = np.zeros((4, 3), kernel.dtype)
    place.flags.writeable = False
    with refused(argument="out"):
        kernel(*states(4, kernel.dtype), out=(None, place, None))
    assert (place == 0).all()


# Batches


def test_batch_axes_broadcast(kernel):
    M, v, a = states(24, kernel.dtype)
    M, v, a = M[:12].reshape(4, 3, 3, 5), v[:3], a[:4].reshape(4, 1)
    found = kernel(M, v, a)
    assert [each.shape for each in found] == [(4, 3, 3, 5), (4, 3, 3), (4, 3)]
    for i in range(4):
        for j in range(3):
            one = kernel(M[i, j][None], v[j][None], a[i])
            assert same(tuple(each[i, j] for each in found), tuple(each[0] for each in one))


@pytest.mark.parametrize("batch", [(0,), (0, 3), (3, 0), (2, 0, 5)])
def test_empty_batches_give_empty_results(kernel, batch):
    found = kernel(np.zeros((*batch, 3, 5)), np.zeros(5), 1.0)
    assert [each.shape for each in found] == [(*batch, 3, 5), (*batch, 3), batch]
    assert all(each.dtype == kernel.dtype for each in found)


def test_one_state_without_batch_axes_is_taken(kernel):
    M, v, a = (array[0] for array in states(1, kernel.dtype))
    found = kernel(M, v, a)
    assert [np.shape(each) for each in found] == [(3, 5), (3,), ()]
    batched = kernel(M[None], v[None], np.asarray(a)[None])
    assert all(np.array_equal(one, many[0]) for one, many in zip(found, batched, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_function_of_a_number_takes_a_number_and_gives_one(dtype):
    x = ca.SX.sym("x")
    double = compile(ca.Function("double", [x], [2 * x]), dtype=dtype)
    assert double(1.5) == 3
    assert np.shape(double(1.5)) == ()
    assert double([1.5, 2]).tolist() == [3, 4]
    place = np.zeros((), dtype)
    assert double(4, out=place) is place
    assert place == 8


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_result_of_a_state_depends_on_neither_its_place_nor_the_size_of_the_batch(dtype):
    kernel = compile(mixed(), dtype=dtype)
    given = states(67, dtype)
    all_at_once = kernel(*given)
    for size in (1, 2, 3, 5, 8, 13, 16, 33):
        for first in range(0, 67 - size, 7):
            part = kernel(*(array[first : first + size] for array in given))
            assert same(part, tuple(each[first : first + size] for each in all_at_once))
    order = np.random.default_rng(5).permutation(67)
    assert same(kernel(*(array[order] for array in given)), tuple(each[order] for each in all_at_once))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "size", [(1, 1), (1, 2), (2, 1), (3, 1), (1, 5), (4, 1), (2, 2), (5, 3), (3, 7), (16, 1), (1, 17), (33, 2)]
)
def test_matrices_of_any_shape_come_through_entry_by_entry(dtype, size):
    X = ca.SX.sym("X", *size)
    scale = np.arange(1.0, size[0] * size[1] + 1).reshape(size)
    kernel = compile(ca.Function("scale", [X], [X * ca.DM(scale), X.T]), dtype=dtype)
    core = VirtualMachine(kernel.function).inputs[0]
    for count in (1, 3, 8, 19, 32):
        x = np.random.default_rng(0).normal(size=(count, *size)).astype(dtype)
        for layout in (x.reshape(count, *core), np.asfortranarray(x.reshape(count, *core))):
            product, transpose = kernel(layout)
            assert np.array_equal(product.reshape(count, *size), x * scale.astype(dtype))
            assert np.array_equal(transpose.reshape(count, *size[::-1]), x.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_function_of_nothing_gives_its_constants(dtype):
    kernel = compile(ca.Function("constants", [], [ca.SX([1, 2, 3]), ca.SX(5)]), dtype=dtype)
    three, five = kernel()
    assert three.tolist() == [1, 2, 3]
    assert five == 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_length_zero_are_taken_and_given(dtype):
    x, y = ca.SX.sym("x", 0), ca.SX.sym("y", 2)
    kernel = compile(ca.Function("none", [x, y], [2 * y, x]), dtype=dtype)
    twice, none = kernel(np.zeros((4, 0)), np.ones((4, 2)))
    assert (twice == 2).all()
    assert twice.shape == (4, 2)
    assert none.shape == (4, 0)
    assert twice.dtype == none.dtype == dtype


# Single states: they take another way where there is one output


class Marked(np.ndarray):
    """Arrays of another class."""


def single(dtype: str = "float64"):
    M, v, a = ca.SX.sym("M", 3, 5), ca.SX.sym("v", 5), ca.SX.sym("a")
    function = ca.Function("single", [M, v, a], [ca.mtimes(M, ca.sin(v)) / a], list("Mva"), ["x"])
    return compile(function, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_single_state_has_the_bits_that_it_has_in_a_batch_in_every_layout(dtype):
    kernel, (M, v, a) = single(dtype), states(19, dtype)
    wanted = kernel(M, v, a)
    for call in (kernel, kernel.direct):
        for k in range(19):
            assert same(call(M[k], v[k], np.asarray(a[k])), wanted[k])
            assert same(call(M[k], v[k], float(a[k])), wanted[k])
        for one in layouts(M[:1], 2).values():
            assert same(call(one[0], v[0], np.asarray(a[0])), wanted[0])
        for one in layouts(v[:1], 1).values():
            assert same(call(M[0], one[0], np.asarray(a[0])), wanted[0])
        assert same(np.asarray(call(M[0].view(Marked), v[0], a[0])), wanted[0])
        assert same(call(M[0].tolist(), v[0].tolist(), a[0].tolist()), wanted[0])
        assert call(M[0], v[0], np.asarray(a[0])).dtype == dtype


def test_a_number_comes_out_as_the_same_type_whatever_goes_in():
    x = ca.SX.sym("x", 2)
    for dtype in DTYPES:
        kernel = compile(ca.Function("norm", [x], [ca.sqrt(ca.sumsqr(x))]), dtype=dtype)
        kinds = {type(kernel(given)) for given in (np.array([3.0, 4.0], dtype), [3.0, 4.0], np.array([3, 4]))}
        assert len(kinds) == 1, kinds


def test_wrong_arguments_of_a_single_state_are_refused_with_the_name_of_the_argument():
    kernel, M, v, a = single(), np.ones((3, 5)), np.ones(5), np.ones(())
    with refused(argument="M", where="single", allowed="(..., 3, 5)"):
        kernel(np.ones((5, 3)), v, a)
    with refused(argument="v", where="single", allowed="(..., 5)"):
        kernel(M, np.ones(4), a)
    with refused(argument="v", where="single"):
        kernel(M, np.ones(5, complex), a)
    for given in ([], [M], [M, v], [M, v, a, a]):
        with pytest.raises(TypeError, match=f"single takes 3 arguments, but {len(given)} were given"):
            kernel(*given)


def test_a_single_state_leaves_no_references_behind():
    kernel, given = single(), [np.ones((3, 5)), np.ones(5), np.ones(())]
    everything = (*given, np.dtype("float64"), np.ndarray)
    kernel(*given)
    before = [sys.getrefcount(each) for each in everything]
    results = [kernel(*given) for _ in range(1000)]
    usual = [np.empty(3) for _ in range(3)]
    assert {sys.getrefcount(result) for result in results} == {sys.getrefcount(result) for result in usual}
    del results
    assert all(abs(sys.getrefcount(each) - count) < 50 for each, count in zip(everything, before, strict=True))
    # NumPy's own gufuncs lose a reference to the type when shapes are wrong, so only the arrays are counted here.
    for wrong in range(1000):
        with pytest.raises(torsor.ModelError):
            kernel(given[0], np.ones(wrong % 5), given[2])
    assert [sys.getrefcount(array) for array in given] == before[:3]


def test_no_warning_and_no_error_comes_of_a_single_state():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    kernel = compile(ca.Function("f", [x, y], [ca.vertcat(x / y, ca.log(x), x * x * y, ca.sin(x))]))
    bad = [np.asarray(value) for value in (0.0, -1.0, np.inf, np.nan, 1e300, 5e-324)]
    with np.errstate(all="raise"):
        for a in bad:
            for b in bad:
                assert kernel(a, b).shape == (4,)
                assert np.sqrt(np.array([4.0]))[0] == 2
                assert np.array([2.0]).astype(np.float32)[0] == 2
                assert np.array([2.5]).astype(int)[0] == 2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_direct_callable_of_several_results_gives_the_tuple_of_the_gufunc(dtype):
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 2)
    made = ca.Function("several", [x, y], [ca.sin(x), x @ y.T, y * x[0]])
    kernel = compile(made, dtype)
    one, two = np.array([0.1, 0.2, 0.3], dtype), np.array([2.0, -1.0], dtype)
    wanted = kernel.ufunc(one, two)
    for given in [(one, two), (one.tolist(), two), (one[::-1][::-1], two), (np.tile(one, (4, 1)), two)]:
        found = kernel.direct(*given)
        assert isinstance(found, tuple) and len(found) == 3
        for mine, other in zip(found, wanted, strict=True):
            assert mine.dtype == dtype and (mine == other).all() and mine.flags.writeable
    found = kernel.direct(one, two)
    assert [sys.getrefcount(each) for each in found] == 3 * [3]  # the tuple, the loop and the argument hold it
    with pytest.raises(ValueError, match=r"mismatch|has shape"):
        kernel.direct(one, one)


def test_the_direct_callable_lives_longer_than_its_kernel():
    found = run_python("""
x = ca.SX.sym("x", 3)
taken = [compile(ca.Function(f"f{k}", [x], [x * k])).direct for k in range(30)]
import gc; gc.collect()
others = [compile(ca.Function("g", [x], [x - k])) for k in range(30)]
for k, call in enumerate(taken):
    assert (call(np.ones((9, 3))) == k).all()
    assert (call(np.ones(3)) == k).all()
    assert call.__name__ == f"f{k}"
del taken, call; gc.collect()
print("right")
""")
    assert (found.returncode, found.stdout) == (0, "right\n"), found.stderr[-500:]


# Types and messages


def test_whole_numbers_and_lists_are_taken_and_booleans_are_not(kernel):
    M, v = np.arange(15).reshape(3, 5), [1, 0, 2, 3, 1]
    wanted = kernel(M.astype(kernel.dtype), np.array(v, kernel.dtype), 2.0)
    for dtype in ("int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"):
        found = kernel(M.astype(dtype), v, 2)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    for given in ((M > 3, v, 2), (M, v, True), (M, v, np.True_)):
        with refused(allowed="an array of real numbers"):
            kernel(*given)
    assert all(np.array_equal(a, b) for a, b in zip(kernel(M.tolist(), v, 2), wanted, strict=True))


def test_the_result_has_the_type_of_the_kernel_whatever_the_inputs_have(kernel):
    for dtype in DTYPES:
        given = states(9, dtype)
        found = kernel(*given)
        assert all(each.dtype == kernel.dtype for each in found)
        assert same(found, kernel(*(array.astype(kernel.dtype) for array in given)))


def test_out_of_another_floating_type_is_filled_with_rounded_results(kernel):
    given = states(9, kernel.dtype)
    wanted = kernel(*given)
    for dtype in DTYPES:
        out = tuple(np.zeros(each.shape, dtype) for each in wanted)
        kernel(*given, out=out)
        assert all(np.array_equal(a, b.astype(dtype)) for a, b in zip(out, wanted, strict=True))
    whole = np.zeros((9, 3), int)
    with refused(argument="out", allowed=kernel.dtype):
        kernel(*given, out=(None, whole, None))


@pytest.mark.parametrize(
    "wrong", [1j, np.ones(5, complex), "abc", ["a"] * 5, None, np.array([None] * 5), {}, [[1, 2], [3]]]
)
def test_values_that_are_not_real_numbers_are_refused_with_the_name_of_the_argument(kernel, wrong):
    with refused(argument="v", where="mixed"):
        kernel(np.ones((3, 5)), wrong, 1.0)


@pytest.mark.parametrize("shape", [(), (4,), (6,), (1,), (5, 1), (2, 3), (0,)])
def test_a_wrong_shape_is_refused_with_the_name_of_the_argument_and_what_is_allowed(kernel, shape):
    with refused(argument="v", where="mixed", allowed="(..., 5)"):
        kernel(np.ones((3, 5)), np.ones(shape), 1.0)
    with refused(argument="M", where="mixed", allowed="(..., 3, 5)"):
        kernel(np.ones(shape), np.ones(5), 1.0)


def test_batches_that_do_not_broadcast_are_refused_with_the_names_of_the_arguments(kernel):
    with refused(what="leading axes do not broadcast: M (2,), v (3,), a ()"):
        kernel(np.ones((2, 3, 5)), np.ones((3, 5)), 1.0)


def test_a_wrong_number_of_arguments_is_refused(kernel):
    for given in ([], [np.ones((3, 5))], [np.ones((3, 5)), np.ones(5), 1.0, 2.0]):
        with pytest.raises(TypeError, match=f"mixed takes 3 arguments, but {len(given)} were given"):
            kernel(*given)


def test_a_wrong_out_is_refused(kernel):
    given = states(4, kernel.dtype)
    for out in [(None, np.zeros((4, 2)), None), (None, np.zeros((3, 3)), None), (None, np.zeros(3), None)]:
        with refused(argument="out"):
            kernel(*given, out=out)
    for out in [np.zeros((4, 3)), (None, None), (None, [0.0] * 4, None)]:
        with refused(argument="out"):
            kernel(*given, out=out)


def test_wrong_settings_are_refused_with_what_is_allowed():
    x = ca.SX.sym("x", 3)
    function = ca.Function("f", [x], [x])
    for name, wrong in {
        "dtype": ["int", "float16", None],
        "device": ["tpu", None],
        "threads": [0, -1, 1.5, "2"],
    }.items():
        for value in wrong:
            with refused(argument=name):
                compile(function, **{name: value})


@pytest.mark.parametrize("width", [3, -1, "4", 2.0, 6])
def test_a_width_that_is_no_power_of_two_is_refused_with_what_is_allowed(width):
    x = ca.SX.sym("x", 3)
    with refused(argument="width"):
        compile(ca.Function("f", [x], [x]), width=width)


# Shapes that are not CasADi's


@pytest.mark.parametrize("shape", [(12,), (2, 6), (6, 2), (4, 3), (2, 3, 2), (1, 12), (12, 1), (3, 4)])
def test_arrays_may_have_another_shape_than_the_matrices(shape):
    found = run_python(f"""
X, scale, shape = ca.SX.sym("X", 3, 4), np.arange(1.0, 13.0), {shape}
function = ca.Function("f", [X], [X * ca.DM(scale.reshape(3, 4))])
for dtype in ("float64", "float32"):
    kernel = compile(function, dtype=dtype, inputs=[shape], outputs=[shape])
    x = np.random.default_rng(0).normal(size=(2, 19, *shape)).astype(dtype)
    for given in (x[0], np.asfortranarray(x[0]), x[0, ::-1], x[:, 4]):
        assert np.array_equal(kernel(given), given * scale.reshape(shape).astype(dtype))
print("right")
""")
    assert (found.returncode, found.stdout) == (0, "right\n"), found.stderr[-500:]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_may_be_a_vector_with_any_stride(dtype):
    X = ca.SX.sym("X", 1, 5)
    kernel = compile(ca.Function("f", [X], [2 * X]), dtype=dtype, inputs=[(5,)], outputs=[(5,)])
    x = np.random.default_rng(0).normal(size=(11, 10)).astype(dtype)
    for given in (x[:, :5], x[:, ::2], x[:, 4::-1], np.asfortranarray(x[:, :5])):
        assert np.array_equal(kernel(given), 2 * given)
    place = np.zeros_like(x)
    kernel(x[:, :5], out=place[:, ::2])
    assert np.array_equal(place[:, ::2], 2 * x[:, :5])
    assert (place[:, 1::2] == 0).all()


@pytest.mark.parametrize(
    "shapes",
    [{"inputs": [(4,)]}, {"inputs": [(6, 1)]}, {"outputs": [(2, 2)]}, {"outputs": [()]}, {"inputs": [(5,), ()]}],
)
def test_shapes_that_hold_another_number_of_entries_are_refused(shapes):
    x = ca.SX.sym("x", 5)
    with refused(allowed="one shape for each of the matrices [(5, 1)], with"):
        compile(ca.Function("f", [x], [x]), **shapes)


# Floating-point flags


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_warning_and_no_error_comes_of_nan_infinity_overflow_or_division_by_zero(dtype):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    results = [x / y, x * y, x * x + y, ca.sqrt(x), ca.sin(x), ca.log(x), ca.exp(x), x**y, ca.acos(x), ca.fmod(x, y)]
    results += [ca.if_else(y == 0, 0, x / y), ca.if_else(x > 0, ca.sqrt(x), 0), x < y, ca.floor(x)]
    kernel = compile(ca.Function("f", [x, y], results), dtype=dtype)
    info = np.finfo(dtype)
    bad = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal], dtype)
    a, b = np.array(np.meshgrid(bad, bad)).reshape(2, -1)
    with np.errstate(all="raise"):
        found = kernel(a, b)
        assert np.isinf(found[0]).any()
        assert np.isnan(found[0]).any()
        for k in range(len(a)):
            kernel(a[k : k + 1], b[k : k + 1])
        # The flags of the kernel are not found by what comes after it, either.
        assert np.add(np.ones(3), 1.0).tolist() == [2, 2, 2]
    safe = found[10]
    assert (safe[b == 0] == 0).all()


def test_a_number_too_large_for_float32_becomes_infinite_without_a_warning():
    x = ca.SX.sym("x", 2)
    kernel = compile(ca.Function("f", [x], [-x]), dtype="float32")
    with np.errstate(all="raise"):
        assert kernel(np.array([[1e300, 1.0]])).tolist() == [[-np.inf, -1.0]]


# Life and death


def memory() -> int:
    """Return the memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


LINUX = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")


def grows_by(kernel, calls: int) -> int:
    given, out = states(9, kernel.dtype), tuple(np.zeros((9, *core), kernel.dtype) for core in ((3, 5), (3,), ()))
    for _ in range(2000):
        kernel(*given)
    gc.collect()
    before = memory()
    for k in range(calls):
        if k % 2:
            kernel(*given, out=out)
        else:
            kernel(*given)
        if k % 100 == 0:
            with refused(argument="v"):
                kernel(given[0], given[1][:, :4], given[2])
    gc.collect()
    return memory() - before


@LINUX
@pytest.mark.slow
def test_memory_does_not_grow_with_a_hundred_thousand_calls():
    assert grows_by(compile(mixed()), 100_000) < 3e6


@LINUX
def test_memory_does_not_grow_with_a_hundred_thousand_calls_of_a_single_state():
    kernel, given = single(), [np.ones((3, 5)), np.ones(5), np.ones(())]
    for _ in range(1000):
        kernel(*given)
    before = memory()
    for _ in range(100_000):
        kernel(*given)
    assert memory() - before < 1e6


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_does_not_grow_with_a_million_calls(dtype):
    assert grows_by(compile(mixed(), dtype=dtype), 1_000_000) < 5e6


def test_many_kernels_can_be_made_and_thrown_away():
    x = ca.SX.sym("x", 3)
    ones, kept = np.ones((5, 3)), []
    for k in range(60):
        kernel = compile(ca.Function(f"f{k}", [x], [x * k]))
        assert (kernel(ones) == k).all()
        if k % 10 == 0:
            kept.append((k, kernel))
    gc.collect()
    for k, kernel in kept:
        assert (kernel(ones) == k).all()


def test_the_ufunc_lives_longer_than_its_kernel():
    found = run_python("""
x = ca.SX.sym("x", 3)
taken = [compile(ca.Function(f"f{k}", [x], [x * k])).ufunc for k in range(30)]
import gc; gc.collect()
others = [compile(ca.Function("g", [x], [x - k])) for k in range(30)]
for k, ufunc in enumerate(taken):
    assert (ufunc(np.ones((9, 3))) == k).all()
    assert ufunc.__name__ == f"f{k}"
print("right")
""")
    assert (found.returncode, found.stdout) == (0, "right\n"), found.stderr[-500:]


@pytest.mark.parametrize("rows", [60, 400])
def test_large_matrices_do_not_overflow_the_stack(rows):
    found = run_python(f"""
import threading
X = ca.SX.sym("X", {rows}, {rows})
kernel = compile(ca.Function("f", [X], [X[0, 1] - X[-1, -2]]))
x = np.random.default_rng(0).normal(size=({rows}, {rows}))
right = []
threading.stack_size(512 * 1024)  # what a thread of macOS has
thread = threading.Thread(target=lambda: right.append(kernel(x) == x[0, 1] - x[-1, -2]))
thread.start(); thread.join()
print([bool(each) for each in right], bool(kernel(x) == x[0, 1] - x[-1, -2]))
""")
    assert (found.returncode, found.stdout) == (0, "[True] True\n"), found.stderr[-500:]


def test_the_width_is_what_the_vectors_of_the_machine_hold():
    assert host().width("float64") in (2, 4, 8)
    assert host().width("float32") == 2 * host().width("float64")


def test_more_arrays_than_numpy_takes_are_refused_before_anything_is_compiled():
    xs = [ca.SX.sym(f"x{k}") for k in range(70)]
    function = ca.Function("many", xs, [sum(xs)])
    with pytest.raises(
        ValueError, match=r"many has 70 inputs and 1 outputs; allowed: (64|32) arrays in all.*fix: join some"
    ):
        compile(function)
    assert compile(function, device="casadi")(*range(70)) == sum(range(70))
    most = ca.Function("most", xs[: MAX_ARRAYS - 1], [sum(xs[: MAX_ARRAYS - 1])])
    assert compile(most)(*range(MAX_ARRAYS - 1)) == sum(range(MAX_ARRAYS - 1))


@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"threads": 2}])
def test_inputs_without_numbers_are_left_out_of_the_machine_code(options):
    x, empty, y = ca.SX.sym("x", 2), ca.SX.sym("empty", 0), ca.SX.sym("y", 2)
    function = ca.Function("partly", [x, empty, y], [x * y, ca.sum1(x)], ["x", "empty", "y"], ["a", "b"])
    kernel = compile(function, **options)
    assert kernel.ufunc is not None
    a, b = kernel(np.ones((4, 2)), np.zeros((3, 1, 0)), np.array([2.0, 3.0]))
    assert a.tolist() == [[[2.0, 3.0]] * 4] * 3 and b.tolist() == [[2.0] * 4] * 3
    out = np.empty((3, 2)), np.empty(3)
    assert kernel(np.ones(2), np.zeros((3, 0)), np.ones(2), out=out)[0] is out[0] and (out[1] == 2).all()
    with pytest.raises(ValueError, match=r"empty has shape \(1,\)"):
        kernel(np.ones(2), np.zeros(1), np.ones(2))
    again = pickle.loads(pickle.dumps(kernel))
    assert again(np.ones(2), np.zeros(0), np.ones(2))[1] == 2.0
