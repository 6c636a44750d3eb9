"""Differences between platforms, simulated here: applications that are not Python, Windows, spawned processes."""

import ctypes
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor.compiler import cache
from torsor.compiler.llvm import native
from torsor.compiler.llvm import target as targets
from torsor.compiler.llvm.target import host


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two modules, which are large enough here to be worth a second process."""
    monkeypatch.setattr(native, "MIN_PARALLEL_LENGTH", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return [f"define double @f{k}(double %x) {{\n  %y = fadd double %x, %x\n  ret double %y\n}}\n" for k in range(2)]


def test_a_second_process_compiles_the_same_code(modules: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    start, done = subprocess.Popen, list[subprocess.Popen]()
    monkeypatch.setattr(subprocess, "Popen", lambda *how, **more: done.append(start(*how, **more)) or done[-1])
    assert native.emit(modules) == host().objects(modules)
    assert [each.returncode for each in done] == [0]


def test_a_second_process_that_fails_is_done_without(modules: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    assert native.emit(modules) == host().objects(modules)


@pytest.mark.parametrize("executable", ["/opt/planner/planner", r"planner.exe", "", None, sys.executable])
def test_an_application_is_not_started_a_second_time(
    modules: list[str], monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    def refuse(*how: object, **more: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(sys, "frozen", executable == sys.executable, raising=False)  # as PyInstaller sets it
    assert native.emit(modules) == host().objects(modules)


def test_an_application_without_sources_has_another_hash_when_it_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    application, source_hash = tmp_path / "planner", cache.source_hash.__wrapped__
    monkeypatch.setattr(sys, "executable", str(application))
    data = tmp_path / "extracted" / "torsor" / "compiler" / "loop.ll"  # frozen applications have data files
    data.parent.mkdir(parents=True)
    data.touch()
    for package in (tmp_path / "extracted" / "torsor", application / "torsor"):  # a frozen application, a zip file
        monkeypatch.setattr(cache, "_PACKAGE", package)
        application.write_text("first")
        first = source_hash("compiler")
        assert source_hash("compiler") == first
        application.write_text("the second")
        assert source_hash("compiler") != first


@pytest.mark.parametrize("name", ["rules.py", "ir/loop.ll", "coefficients.toml"])
def test_the_hash_of_a_package_covers_code_and_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_PACKAGE", tmp_path)
    file, source_hash = tmp_path / "compiler" / name, cache.source_hash.__wrapped__
    file.parent.mkdir(parents=True)
    file.with_name("code.py").touch()
    before = source_hash("compiler")
    file.write_text("first")
    first = source_hash("compiler")
    file.write_text("other")
    assert len({before, first, source_hash("compiler")}) == 3


@pytest.mark.parametrize(
    "features, bits", [("+avx,+avx2,+avx512f", 512), ("+avx2,-avx512f", 256), ("+sse2,-avx2", 128), (None, 128)]
)
def test_vectors_are_as_wide_as_the_features_say(
    monkeypatch: pytest.MonkeyPatch, features: str | None, bits: int
) -> None:
    class Features:
        def flatten(self) -> str:
            if features is None:
                raise RuntimeError("host features are not known")
            return features

    monkeypatch.setattr(targets.llvm, "get_host_cpu_features", Features)
    assert host.__wrapped__().bits == bits


@pytest.mark.parametrize("missing", [(), ("feclearexcept", "cos", "fma")])
def test_the_functions_of_windows_are_found_by_their_own_names(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    other = {"feclearexcept": "_clearfp"}
    has = {name if name not in missing else other.get(name, f"_{name}") for name in native.C_FUNCTIONS}
    functions = {"ucrtbase": has, "ntdll": {"__chkstk"}}

    class Library:
        def __init__(self, name: str):  # there is no None for the process itself
            for each in functions[name]:
                setattr(self, each, ctypes.cast(len(each), ctypes.c_void_p))

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "CDLL", Library)
    found = native.c_addresses()
    assert found.keys() == {*native.C_FUNCTIONS, "__chkstk"}
    assert found["feclearexcept"] == len("_clearfp" if missing else "feclearexcept")


def test_every_function_that_code_may_call_is_here() -> None:
    assert native.c_addresses().keys() == set(native.C_FUNCTIONS)


def test_the_cache_works_where_files_have_no_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path))
    monkeypatch.delattr(os, "geteuid", raising=False)
    cache.store("key", [b"code"])
    assert cache.load("key") == [b"code"]


@pytest.mark.parametrize(
    "platform, place",
    [("win32", "local/torsor/cache"), ("darwin", "home/Library/Caches/torsor"), ("linux", "xdg/torsor")],
)
def test_each_platform_has_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, place: str
) -> None:
    monkeypatch.delenv("TORSOR_CACHE", raising=False)
    for variable, folder in (("HOME", "home"), ("LOCALAPPDATA", "local"), ("XDG_CACHE_HOME", "xdg")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.location() == tmp_path / place


def test_everything_but_posix_is_enough() -> None:
    program = """
import os, signal
for name in ("fork", "register_at_fork", "geteuid", "getuid", "forkpty", "posix_spawn", "killpg", "wait"):
    if hasattr(os, name):
        delattr(os, name)
import torsor
robot = torsor.library.two_link()
print(robot.inverse_dynamics([[0.1, 0.2]] * 3, [0.0, 0.0], [0.0, 0.0]).shape)
print(torsor.simulate(robot, duration=0.01).q.shape)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert found.stdout == "(3, 2)\n(11, 2)\n", found.stderr


def test_robots_work_in_processes_that_are_spawned() -> None:
    robot = torsor.library.two_link()
    state = np.array([0.1, 0.2]), np.array([0.3, 0.4]), np.array([0.5, 0.6])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        made, forces = pool.apply(torsor.library.two_link), pool.apply(robot.inverse_dynamics, state)
    assert made == robot
    assert np.array_equal(forces, robot.inverse_dynamics(*state))


@pytest.mark.skipif(sys.platform != "linux", reason="the addresses that Linux chooses are the subject")
def test_constants_lie_near_the_code_in_a_process_with_large_arrays() -> None:
    """One small gap is left above 4 GiB that are taken: constants fit into it, and the code does not."""
    program = """
import ctypes, mmap
from torsor.compiler.llvm import native

count = 10_000
lines = [f"  %v{k + 1} = fmul double %v{k}, {1 + k % 50 * 1e-5!r}" for k in range(count)]
large = ["define double @product(double %v0) {", *lines, f"  %w = call double @twice(double %v{count})"]
twice = "define double @twice(double %x) {\\n  %y = fmul double %x, 2.125\\n  ret double %y\\n}"
modules = ["\\n".join(["declare double @twice(double)", *large, "  ret double %w", "}"]), twice]
objects = native.host().objects(modules, level=0)
native.link(native.host().objects([twice]), ["twice"])

library = ctypes.CDLL(None)
library.mmap.restype, library.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 4]
library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def reserve(size):
    return library.mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)

for _ in range(3_000):
    gap = reserve(65_536)
wall = min(reserve(1 << 30) for _ in range(4))
for size in (65_536, 4_096):
    for _ in range(20_000):  # without end where addresses are given from below
        if reserve(size) < wall:
            break
library.munmap(gap, 65_536)

code = native.link(objects, ["product"])
product = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code["product"])
expected = 1.0
for k in range(count):
    expected *= 1 + k % 50 * 1e-5
assert product(1.0) == expected * 2.125
"""
    subprocess.run([sys.executable, "-c", program], check=True)
