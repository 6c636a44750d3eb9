"""The pool of native threads: bits, forks, signals, the end of a process, and how batches are divided."""

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from refusals import refused
from torsor.compiler import compile, machine_code, threads
from torsor.compiler.llvm.pool import JOINED, Job, write_pool
from torsor.compiler.llvm.target import TARGETS

DTYPES = ("float64", "float32")
BATCHES = (0, 1, 2, 7, 255, 4097, 100_003)

native = pytest.mark.skipif(not threads.has_native_threads(), reason="this system has Python threads instead")
linux = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are listed in /proc")


@pytest.fixture(autouse=True, scope="module")
def no_cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORSOR_CACHE", "off")
        yield


@pytest.fixture
def eager(monkeypatch):
    """Share even the smallest batches, in chunks of one vector each."""
    for name in ("LEAST", "SHARE", "SMALLEST", "LARGEST"):
        monkeypatch.setattr(threads, name, 1)


def small() -> ca.Function:
    """Return a function of a vector and a number with two results, one of them partly constant."""
    x, a = ca.SX.sym("x", 3), ca.SX.sym("a")
    return ca.Function(
        "small", [x, a], [ca.vertcat(ca.sin(x) * a + x[::-1], 1.5), ca.dot(x, x) / a], ["x", "a"], ["y", "z"]
    )


def states(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def same(a, b) -> bool:
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


# Bits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [2, 3, 8, 16])
def test_any_number_of_threads_gives_the_bits_of_one(dtype, count, eager):
    one, several = compile(small(), dtype=dtype), compile(small(), dtype=dtype, threads=count)
    for n in BATCHES:
        x, a = states((n, 3), dtype), states((n,), dtype, 1)
        assert same(several(x, a), one(x, a))
        assert same(several(x[::-1], a[:1]), one(x[::-1], a[:1]))
        wide = states((n, 6), dtype, 2)
        assert same(several(wide[:, ::2], a), one(wide[:, ::2], a))
        out = tuple(np.full_like(each, np.nan) for each in one(x, a))
        assert several(x, a, out=out)[1] is out[1]
        assert same(out, one(x, a))


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_with_several_axes_are_shared_whatever_their_strides(dtype, eager):
    one, several = compile(small(), dtype=dtype), compile(small(), dtype=dtype, threads=8)
    shapes = [((70, 30), (30,)), ((30, 70), (30, 1)), ((5, 1, 7), (6, 7)), ((4, 1, 1), (1, 5, 6)), ((1, 90), (8, 1))]
    shapes += [((2, 3, 50), (2, 3, 50)), ((0, 5), (5,)), ((1, 1), (1, 1)), ((200, 2), ())]
    for first, second in shapes:
        x, a = states((*first, 3), dtype), states(second, dtype, 1)
        assert same(several(x, a), one(x, a)), (first, second)
        turned = np.asfortranarray(x)
        assert same(several(turned, a), one(turned, a)), (first, second)
        shape = np.broadcast_shapes(first, second)
        out = (np.full((*shape[::-1], 4), np.nan, dtype).transpose(*range(len(shape))[::-1], -1), None)
        found = several(x, a, out=out)
        assert found[0] is out[0]
        assert all(np.array_equal(u, v) for u, v in zip(found, one(x, a), strict=True))


def test_inputs_that_are_read_only_or_overlap_the_result_are_taken(eager):
    x = ca.SX.sym("x", 3)
    several = compile(ca.Function("turn", [x], [x[::-1] * 2]), threads=3)
    locked = states((501, 3), "float64")
    locked.flags.writeable = False
    wanted = locked[:, ::-1] * 2
    assert np.array_equal(several(locked), wanted)
    memory = np.concatenate([locked, locked[:1]])
    several(memory[:501], out=memory[1:])
    assert np.array_equal(memory[1:], wanted)


@native
def test_helpers_round_as_the_calling_thread_does(eager):
    library = ctypes.CDLL(None)
    upward = {"x86_64": 0x800, "aarch64": 0x400000, "arm64": 0x400000}.get(os.uname().machine)
    if upward is None or not hasattr(library, "fesetround"):
        pytest.skip("the number of this rounding mode is not known")
    x = ca.SX.sym("x", 3)
    one, several = (compile(ca.Function("third", [x], [x / 3 + x * x]), threads=k) for k in (1, 8))
    given = states((20_011, 3), "float64")
    assert library.fesetround(upward) == 0
    try:
        wanted, found = one(given), [several(given) for _ in range(20)]
    finally:
        library.fesetround(0)
    assert not np.array_equal(wanted, one(given))
    assert all(np.array_equal(each, wanted) for each in found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_threads_share_the_pool_without_waiting_for_each_other(dtype, eager):
    kernels = [compile(small(), dtype=dtype, threads=k) for k in (1, 2, 5, 16)]
    given = [(states((n, 3), dtype, n), states((n,), dtype, n + 1)) for n in (255, 1000, 4097)]
    wanted = [kernels[0](*each) for each in given]

    def call(k: int) -> bool:
        return same(kernels[k % 4](*given[k % 3]), wanted[k % 3])

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(call, range(240)))


@pytest.mark.slow
def test_many_calls_from_many_threads_give_the_bits_of_one(eager):
    kernels = [compile(small(), threads=k) for k in (1, 2, 3, 8, 16)]
    given = [(states((n, 3), "float64", n), states((n,), "float64", n + 1)) for n in (3, 63, 255, 999, 4097, 30_011)]
    wanted = [kernels[0](*each) for each in given]

    def call(k: int) -> bool:
        return same(kernels[k % 5](*given[k % 6]), wanted[k % 6])

    assert all(map(call, range(20_000)))
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(20_000)))


def test_python_threads_take_their_place_where_there_are_no_native_ones(monkeypatch):
    monkeypatch.setattr(machine_code, "has_native_threads", lambda: False)
    one, several = compile(small()), compile(small(), threads=3)
    for first, second in (((0,), ()), ((7,), (7,)), ((4097,), (4097,)), ((700, 3), (3,)), ((3, 700), (3, 1))):
        x, a = states((*first, 3), "float64"), states(second, "float64", 1)
        assert same(several(x, a), one(x, a))


# How batches are divided


class Recorded:
    """A pool that keeps the words of the last job, including those that the threads wrote."""

    def __init__(self, pool):
        self._pool, self.job, self.joined = pool, None, 0

    def share(self, address: int) -> None:
        self._pool.share(address)
        words = (ctypes.c_int64 * (JOINED + 1)).from_address(address)
        self.job, self.joined = Job(*words[: len(Job._fields)]), words[JOINED]


def recorded(kernel) -> Recorded:
    kernel._shared._pool = Recorded(kernel._shared._pool)
    return kernel._shared._pool


@native
def test_helpers_take_part():
    kernel = compile(small(), threads=2)
    pool = recorded(kernel)
    x, a = states((200, 500, 3), "float64"), states((500,), "float64", 1)
    for _ in range(1000):  # until a helper comes before the work is done, on a machine that may be busy
        kernel(x, a)
        if pool.joined:
            break
    assert pool.joined


@native
def test_small_batches_stay_on_one_thread_and_large_ones_get_more_threads_and_chunks_of_whole_vectors():
    kernel = compile(small(), threads=16)
    pool, this = recorded(kernel), kernel._shared.compiled
    helpers = []
    for rows in (1, 4, 16, 64, 256):
        length = this.least // 8
        kernel(states((rows, length, 3), "float64"), states((length,), "float64", 1))
        helpers.append(pool.job.helpers)
        assert pool.job.chunk % this.width == 0
        assert this.smallest <= pool.job.chunk <= this.largest
        assert pool.job.total * pool.job.chunk >= rows * length
    assert helpers[:2] == [0, 0]
    assert helpers == sorted(helpers)
    assert helpers[-1] == 15


@native
def test_work_decides_what_a_large_batch_is():
    x = ca.SX.sym("x", 3)
    y = x
    for _ in range(300):
        y = ca.vertcat(y[1] * y[2] + 1, y[0] - y[1], y[2] * 0.5)
    little, much = compile(small(), threads=2), compile(ca.Function("much", [x], [y]), threads=2)
    assert much._shared.compiled.least * 10 < little._shared.compiled.least


# Cores


def test_auto_uses_the_cores_of_this_process():
    kernel = compile(small(), threads="auto")
    assert kernel.threads == pickle.loads(pickle.dumps(kernel)).threads == "auto"
    assert kernel.most_threads == threads.available_cores()
    if hasattr(os, "sched_getaffinity"):
        assert threads.available_cores() <= len(os.sched_getaffinity(0))
    x, a = states((4097, 3), "float64"), states((4097,), "float64", 1)
    assert same(kernel(x, a), compile(small())(x, a))


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "250000 100000"}, 3),
        ({"cpu.max": "max 100000"}, sys.maxsize),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, sys.maxsize),
        ({}, sys.maxsize),
        ({"cpu.max": ""}, sys.maxsize),
    ],
)
def test_the_quota_of_a_container_limits_the_cores(files, cores, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert threads._quota(str(tmp_path)) == cores


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "two", "AUTO", None])
def test_other_numbers_of_threads_are_refused(wrong):
    with refused(argument="threads", allowed="a whole number from 1, or 'auto'"):
        compile(small(), threads=wrong)


# The process


def tasks() -> set[Path]:
    return set(Path("/proc/self/task").iterdir())


@native
@linux
def test_threads_are_made_once_and_get_no_signals(eager):
    given = states((500, 3), "float64"), states((500,), "float64", 1)
    before = tasks()
    compile(small(), threads=18)(*given)
    made = tasks()
    assert len(made) >= 18
    for count in (18, 5):
        compile(small(), threads=count)(*given)
    assert tasks() == made
    for task in made - before:
        status = (task / "status").read_text()
        blocked = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk"))
        assert blocked >> (signal.SIGINT - 1) & 1


def test_an_interrupt_arrives_between_shared_calls(eager):
    kernel = compile(small(), threads=4)
    given = states((500, 3), "float64"), states((500,), "float64", 1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            kernel(*given)
            signal.raise_signal(signal.SIGINT)
            for _ in range(10_000):
                kernel(*given)
    finally:
        signal.signal(signal.SIGINT, before)


FORK = """
import os, sys, threading, warnings
import casadi as ca, numpy as np
from torsor.compiler import compile
warnings.simplefilter("ignore")
x = ca.SX.sym("x", 3)
kernel = compile(ca.Function("f", [x], [2 * x]), threads=4)
ones = np.ones((300_000, 3))
right = lambda: all((kernel(ones) == 2).all() for _ in range(5))
assert right()
stop = threading.Event()
def busy():
    while not stop.is_set():
        kernel(ones)
others = [threading.Thread(target=busy) for _ in range(2)]
for each in others:
    each.start()
for _ in range(10):  # at some of these forks another thread is in the middle of a shared batch
    child = os.fork()
    if child == 0:
        os._exit(0 if right() and right() else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for each in others:
    each.join()
child = os.fork()
if child == 0:
    right()
    sys.exit(0)  # the interpreter of the child ends, with threads of its own
assert os.waitpid(child, 0)[1] == 0
right()
print("ended")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_its_own_threads_and_both_processes_end():
    found = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stdout) == (0, "ended\n"), found.stderr


def test_two_threads_that_ask_at_once_get_one_pool():
    found, barrier = [], threading.Barrier(4)

    def ask() -> None:
        barrier.wait()
        found.append(threads._native_pool())

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert len({id(each) for each in found}) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_the_pool_compiles_for_every_processor(target):
    machine = TARGETS[target]
    family = "arm" if machine.is_arm else machine.triple.split("-")[0]
    text = machine.assembly([write_pool(family, 2)])
    assert ("isb" if machine.is_arm else "pause") in text
