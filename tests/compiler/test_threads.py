"""Kernels with several threads, called from several threads, and next to other threads."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest

from refusals import refused
from torsor.compiler import Kernel, compile

DTYPES = ("float64", "float32")


@pytest.fixture(autouse=True, scope="module")
def no_cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORSOR_CACHE", "off")
        yield


def work(length: int = 30) -> ca.Function:
    """Return a function of a vector and a number with two results, with sines, products and sums."""
    x, a = ca.SX.sym("x", 3), ca.SX.sym("a")
    v = x
    for _ in range(length):
        v = ca.vertcat(ca.sin(v[1]) * v[2] + v[0], ca.cos(v[2]) * a, v[0] * v[1] - 0.5 * v[2])
    return ca.Function("work", [x, a], [v, ca.dot(v, x)], ["x", "a"], ["y", "z"])


def same(a, b) -> bool:
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [2, 3])
def test_several_threads_give_the_bits_of_one(dtype, threads):
    one, several = compile(work(), dtype=dtype), compile(work(), dtype=dtype, threads=threads)
    rng = np.random.default_rng(0)
    shapes = [((n,), (n,)) for n in (0, 1, 5, 255, 512, 768, 769, 4999)]
    shapes += [((700, 3), (3,)), ((3, 700), (3, 1)), ((1, 1500), (2, 1)), ((2000,), ()), ((1,), (2000,)), ((), (2000,))]
    for first, second in shapes:
        x, a = rng.normal(size=(*first, 3)).astype(dtype), rng.normal(size=second).astype(dtype)
        wanted = one(x, a)
        assert same(several(x, a), wanted)
        out = tuple(np.full_like(each, np.nan) for each in wanted)
        found = several(x, a, out=out)
        assert found[0] is out[0]
        assert same(out, wanted)


@pytest.mark.parametrize("threads", [2, 3])
def test_several_threads_take_any_layout(threads):
    one, several = compile(work()), compile(work(), threads=threads)
    x = np.random.default_rng(1).normal(size=(3000, 3))
    a = np.linspace(0, 1, 3000)
    for view, number in ((np.asfortranarray(x), a), (x[::-1], a[::-1]), (x[::2], a[1::2]), (np.flip(x, 1), a)):
        assert same(several(view, number), one(view, number))
    out = (np.zeros((3, 3000)).T, np.zeros((3000, 2))[:, 0])
    several(x, a, out=out)
    assert all(np.array_equal(u, v) for u, v in zip(out, one(x, a), strict=True))


def test_an_error_in_the_arguments_is_raised_with_several_threads_too():
    kernel = compile(work(), threads=2)
    with refused(argument="x", where="work"):
        kernel(np.ones((2000, 4)), 1.0)
    with refused(argument="a", where="work"):
        kernel(np.ones((2000, 3)), 1j)


def test_no_warning_comes_from_the_threads():
    x = ca.SX.sym("x")
    kernel = compile(ca.Function("f", [x], [1 / x, ca.log(x)]), threads=2)
    with np.errstate(all="raise"):
        inverse, logarithm = kernel(np.zeros(5000))
    assert np.isinf(inverse).all()
    assert np.isinf(logarithm).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_kernel_called_from_many_threads_gives_right_results(dtype, threads):
    kernel = compile(work(), dtype=dtype, threads=threads)
    rng = np.random.default_rng(2)
    given = [(rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=n).astype(dtype)) for n in range(590, 630)]
    wanted = [kernel(*each) for each in given]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for found, right in zip(pool.map(lambda each: kernel(*each), given), wanted, strict=True):
                assert same(found, right)


def test_a_kernel_with_much_scratch_memory_can_be_called_from_many_threads():
    x = ca.SX.sym("x", 4)
    early = [ca.sin(k * x[k % 4]) * x[(k + 1) % 4] for k in range(1, 700)]
    late = 0
    for k, value in enumerate(early[::-1]):
        late = 0.5 * late + value * x[k % 4]
    kernel = compile(ca.Function("wide", [x], [late]))
    given = [np.random.default_rng(k).normal(size=(101, 4)) for k in range(16)]
    wanted = [kernel(each) for each in given]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            found = list(pool.map(kernel, given))
            assert all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))


def test_kernels_can_be_compiled_in_many_threads_at_once():
    x = ca.SX.sym("x", 3)
    functions = [ca.Function(f"f{k}", [x], [x * k + ca.sin(x)]) for k in range(12)]
    given = np.random.default_rng(0).normal(size=(9, 3))
    with ThreadPoolExecutor(4) as pool:
        kernels = list(pool.map(compile, functions))
    for k, kernel in enumerate(kernels):
        assert np.allclose(kernel(given), given * k + np.sin(given), rtol=1e-13, atol=1e-13)


def is_seen_half_done(kernel: Kernel, count: int) -> bool:
    """Return whether this thread runs Python while another one is inside a call for ``count`` states."""
    out = tuple(np.full((count, *core), np.nan) for core in ((3,), ()))
    first, last, half_done = out[1][:1], out[1][-1:], False
    worker = threading.Thread(target=kernel, args=(np.ones((count, 3)), 0.5), kwargs={"out": out})
    worker.start()
    while worker.is_alive():
        half_done = half_done or bool(not np.isnan(first).any() and np.isnan(last).any())
    worker.join()
    assert not np.isnan(last).any()
    return half_done


@pytest.mark.parametrize("threads", [1, 2])
def test_other_threads_go_on_while_a_kernel_runs(threads):
    """If the kernel held the interpreter lock, no other thread could see some results without the others."""
    kernel = compile(work(100), threads=threads)
    assert any(is_seen_half_done(kernel, 2**k) for k in range(12, 22))  # until a call is long enough to be seen


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_kernel_with_threads_works_in_a_forked_process():
    program = """
import os, warnings
import casadi as ca, numpy as np
from torsor.compiler import compile
warnings.simplefilter("ignore")
x = ca.SX.sym("x", 3)
kernel = compile(ca.Function("f", [x], [2 * x]), threads=2)
ones = np.ones((300_000, 3))
for _ in range(5):  # until all threads are there
    assert (kernel(ones) == 2).all()
child = os.fork()
if child == 0:
    os._exit(0 if (kernel(ones) == 2).all() else 1)
print("ended", os.waitpid(child, 0)[1])
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert found.stdout == "ended 0\n", found.stderr
