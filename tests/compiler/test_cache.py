"""The cache of compiled code: shared by processes, repaired when damaged, and not trusted if others can write to it.

Root may write and read everything, so no test expects a permission error: the tests check which files are used and
left on disk, which is the same for every user.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

from refusals import refused
from torsor.cli.main import main
from torsor.compiler import Kernel, Signature, cache, compile, recall
from torsor.compiler.llvm import native
from torsor.compiler.llvm.target import host
from torsor.robot.kernels import Kernels
from torsor.robot.target import Target

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")

# Compiles one function and checks its results; says whether the code was compiled or found.
PROGRAM = """
import sys
import casadi as ca
import numpy as np
from torsor.compiler.llvm import native
from torsor.compiler import compile

emit, compiled = native.emit, []
def watched(*arguments, **options):
    compiled.append(True)
    if "forbidden" in sys.argv:
        raise AssertionError("compiled again")
    return emit(*arguments, **options)
native.emit = watched
x = ca.SX.sym("x", 4)
kernel = compile(ca.Function("f", [x], [ca.sin(x) + 2 * x, ca.sumsqr(x)]))
given = np.linspace(-3, 3, 44).reshape(11, 4)
first, second = kernel(given)
assert np.allclose(first, np.sin(given) + 2 * given, rtol=1e-14, atol=1e-14)
assert np.allclose(second, (given**2).sum(1), rtol=1e-14)
print("compiled" if compiled else "found")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty cache, for this process and those that it starts."""
    path = tmp_path / "cache"
    monkeypatch.setenv("TORSOR_CACHE", str(path))
    monkeypatch.delenv("TORSOR_CACHE_MB", raising=False)
    return path


def function(factor: float = 2.0) -> ca.Function:
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [factor * x])


def start(*arguments: str, program: str = PROGRAM, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


class Compiler:
    """Counts how often code is compiled rather than found."""

    def __init__(self, monkeypatch):
        self.count, emit = 0, native.emit

        def counted(*arguments, **options):
            self.count += 1
            return emit(*arguments, **options)

        monkeypatch.setattr(native, "emit", counted)

    def compiles(self, factor: float = 2.0) -> bool:
        """Compile a function, check it, and return whether it had to be compiled."""
        before = self.count
        given = np.arange(21.0).reshape(7, 3)
        assert np.array_equal(compile(function(factor))(given), factor * given)
        return self.count > before


@pytest.fixture
def compiler(folder, monkeypatch) -> Compiler:
    return Compiler(monkeypatch)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def only_file(folder: Path) -> Path:
    (name,) = names(folder)
    assert name.endswith(".kernel")
    return folder / name


def test_a_second_process_finds_what_the_first_compiled(folder):
    assert finish(start()) == "compiled"
    assert finish(start("forbidden")) == "found"
    assert only_file(folder).stat().st_mode & 0o077 == 0
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_many_processes_at_once_leave_one_file_and_no_leftovers(folder):
    processes = [start() for _ in range(8)]
    said = [finish(process) for process in processes]
    assert "compiled" in said
    assert set(said) <= {"compiled", "found"}
    assert only_file(folder).stat().st_size > 100
    assert finish(start("forbidden")) == "found"


def test_the_same_function_is_compiled_once_and_another_one_again(compiler, folder):
    assert compiler.compiles(2.0)
    assert not compiler.compiles(2.0)
    assert compiler.compiles(3.0)
    assert len(names(folder)) == 2


def test_type_and_width_and_shape_have_their_own_code(compiler, folder):
    compile(function())
    compile(function(), dtype="float32")
    compile(function(), width=2 * host().width("float64"))
    compile(function(), outputs=[(3, 1)])
    assert compiler.count == len(names(folder)) == 4


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :]


DAMAGE = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "only the head": lambda content: content[:21],
    "half a checksum": lambda content: content[:40],
    "without a body": lambda content: content[:53],
    "truncated": lambda content: content[: len(content) // 2],
    "one byte short": lambda content: content[:-1],
    "one byte long": lambda content: content + b"\0",
    "bit of the head": lambda content: flipped(content, 3),
    "bit of the checksum": lambda content: flipped(content, 30),
    "bit of the count": lambda content: flipped(content, 54),
    "bit of the code": lambda content: flipped(content, len(content) // 2),
    "last bit": lambda content: flipped(content, len(content) - 1),
    "garbage": lambda content: np.random.default_rng(0).bytes(len(content)),
    "text": lambda content: b"hello\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_compiled_again_and_healed(compiler, folder, damage):
    assert compiler.compiles()
    file = only_file(folder)
    sound = file.read_bytes()
    file.write_bytes(DAMAGE[damage](sound))
    assert compiler.compiles()
    assert only_file(folder).read_bytes()[:21] == sound[:21]
    assert len(only_file(folder).read_bytes()) == len(sound)
    assert not compiler.compiles()


def test_code_of_another_machine_is_not_used(folder):
    assert finish(start()) == "compiled"
    elsewhere = """
from torsor.compiler.llvm.target import Target, host
here = host().description
Target.description = here + "|another machine"
"""
    assert finish(start(program=elsewhere + PROGRAM)) == "compiled"
    assert len(names(folder)) == 2
    assert finish(start("forbidden")) == "found"
    assert finish(start("forbidden", program=elsewhere + PROGRAM)) == "found"


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "none", ""])
def test_a_cache_that_is_off_writes_nothing(compiler, folder, monkeypatch, tmp_path, word):
    monkeypatch.setenv("TORSOR_CACHE", word)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cache.location() is None
    assert compiler.compiles()
    assert compiler.compiles()
    assert list(tmp_path.iterdir()) == []
    assert cache.info() == (None, 0, 0)
    assert cache.clear() == 0


def test_a_folder_that_cannot_be_made_is_no_error(compiler, folder, monkeypatch):
    folder.write_text("a file, not a folder")
    for path in (folder, folder / "below"):
        monkeypatch.setenv("TORSOR_CACHE", str(path))
        assert compiler.compiles()
        assert cache.info().kernels == 0
        assert cache.clear() == 0
    assert folder.read_text() == "a file, not a folder"


def test_a_read_only_folder_is_no_error_and_its_kernels_are_used(compiler, folder):
    assert compiler.compiles(2.0)
    folder.chmod(0o500)
    try:
        assert not compiler.compiles(2.0)
        assert compiler.compiles(3.0)
        assert compiler.compiles(3.0) == (len(names(folder)) == 1)  # root can write nevertheless
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722, 0o1777])
def test_nothing_is_used_from_a_folder_that_others_can_write(compiler, folder, mode):
    assert compiler.compiles()
    folder.chmod(mode)
    assert compiler.compiles()
    assert compiler.compiles(3.0)
    assert compiler.compiles(3.0)
    assert len(names(folder)) == 1, "nor is anything put there"
    folder.chmod(0o700)
    assert not compiler.compiles()


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o622])
def test_a_file_that_others_can_write_is_not_used_and_replaced(compiler, folder, mode):
    assert compiler.compiles()
    only_file(folder).chmod(mode)
    assert compiler.compiles()
    assert only_file(folder).stat().st_mode & 0o077 == 0
    assert not compiler.compiles()


def test_a_link_is_not_followed(compiler, folder, tmp_path):
    assert compiler.compiles()
    file = only_file(folder)
    elsewhere = tmp_path / "elsewhere.kernel"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert compiler.compiles()
    assert not only_file(folder).is_symlink()
    assert not compiler.compiles()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_belongs_to_another_user_is_not_used(compiler, folder, what):
    assert compiler.compiles()
    given_away = folder if what == "folder" else only_file(folder)
    os.chown(given_away, 12345, 12345)
    assert compiler.compiles()


def test_a_process_killed_while_writing_leaves_a_cache_that_works(folder):
    slow = """
import os, sys, time
real = os.fdopen
class Slow:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *how): self.file.close()
    def write(self, content):
        self.file.write(content[: len(content) // 2]); self.file.flush()
        print("half", flush=True)
        time.sleep(60)
def slow(handle, mode="r", *rest, **more):
    file = real(handle, mode, *rest, **more)
    return Slow(file) if mode == "wb" else file
os.fdopen = slow
"""
    process = start(program=slow + PROGRAM)
    assert process.stdout.readline().strip() == "half"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert not any(name.endswith(".kernel") for name in names(folder))
    assert finish(start()) == "compiled"
    assert finish(start("forbidden")) == "found"
    assert cache.info().kernels == 1


def leftover(folder: Path, age: float) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f".{'0' * 64}.1.abcdef.part"
    file.write_bytes(b"half of a kernel")
    os.utime(file, (time.time() - age,) * 2)
    return file


def test_leftovers_of_killed_processes_are_removed_when_they_are_old(compiler, folder):
    old = leftover(folder, age=30 * 86400.0)
    assert compiler.compiles()
    assert not old.exists()


def test_what_another_process_is_writing_is_left_alone(compiler, folder):
    young = leftover(folder, age=0.0)
    assert compiler.compiles()
    assert young.exists()


def test_clear_removes_leftovers_too(compiler, folder):
    leftover(folder, age=30 * 86400.0)
    assert cache.clear() == 0
    assert names(folder) == []


def test_the_least_recently_used_kernels_go_when_the_cache_is_full(compiler, folder, monkeypatch):
    now = time.time()
    for k in range(5):
        assert compiler.compiles(2.0 + k)
        for file in folder.iterdir():
            if file.stat().st_mtime > now - 500:
                os.utime(file, (now - 10000 + 1000 * k,) * 2)
    size = cache.info().bytes / 5
    assert not compiler.compiles(2.0)  # the oldest is used again, and becomes the youngest
    monkeypatch.setenv("TORSOR_CACHE_MB", str(3.5 * size / 1e6))
    assert compiler.compiles(99.0)
    assert cache.info().kernels == 3
    assert cache.info().bytes <= 3.5 * size
    assert [compiler.compiles(factor) for factor in (99.0, 2.0, 6.0)] == [False, False, False]
    assert compiler.compiles(3.0)


def test_a_kernel_larger_than_the_cache_is_not_stored(compiler, folder, monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE_MB", "0")
    assert compiler.compiles()
    assert names(folder) == []
    assert compiler.compiles()


@pytest.mark.parametrize("wrong", ["much", "", "nan", "-1"])
def test_a_size_limit_that_is_no_number_does_not_stop_a_kernel(compiler, folder, monkeypatch, wrong):
    """Either the default applies, or an error names the setting; a bare conversion error is never raised."""
    monkeypatch.setenv("TORSOR_CACHE_MB", wrong)
    try:
        assert compiler.compiles()
    except ValueError as error:
        assert "TORSOR_CACHE_MB" in str(error)


def test_info_and_clear_and_location_agree(compiler, folder):
    assert cache.location() == folder
    assert cache.info() == (folder, 0, 0)
    assert cache.clear() == 0
    for factor in (2.0, 3.0, 4.0):
        compiler.compiles(factor)
    (folder / "notes.txt").write_text("not a kernel")
    held = cache.info()
    assert (held.path, held.kernels) == (folder, 3)
    assert held.bytes == sum(file.stat().st_size for file in folder.glob("*.kernel"))
    assert cache.clear() == 3
    assert names(folder) == ["notes.txt"]
    assert cache.info() == (folder, 0, 0)
    assert compiler.compiles()


def test_the_default_location_is_below_the_home_of_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("TORSOR_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.location().is_relative_to(tmp_path)
    assert cache.location().name == "torsor"
    monkeypatch.setenv("TORSOR_CACHE", "~/kernels")
    assert cache.location() == tmp_path / "kernels"


def test_a_stored_kernel_runs_without_reading_its_function(folder):
    made = function(3.0)
    first = Kernel(made, "float64", "cpu", 1, None, None, key="three")
    stored = recall("three")
    assert stored is not None and stored.signature == Signature.of(made)
    again = Kernel(stored, "float64", "cpu", 1, None, None)
    x = np.linspace(-1, 1, 12).reshape(4, 3)
    np.testing.assert_array_equal(again(x), first(x))
    with refused(argument="i0", allowed="(..., 3)"):
        again(np.zeros(2))
    assert "function" not in vars(stored)  # none of this has needed it
    assert again.function.n_instructions() == made.n_instructions()


def test_quick_code_is_stored_without_its_function(folder):
    made = function(5.0)
    Kernel(made, "float64", "cpu", 1, None, None, key="five", quick=True)
    stored = recall("five")
    again = Kernel(stored, "float64", "cpu", 1, None, None, quick=True)
    np.testing.assert_array_equal(again(np.ones(3)), np.full(3, 5.0))
    with pytest.raises(LookupError, match="f: the code was stored without its CasADi function"):
        again.function  # noqa: B018


def test_a_valid_file_under_another_name_is_deleted_and_compiled_again(compiler, folder):
    assert compiler.compiles(2.0)
    two = only_file(folder)
    content = two.read_bytes()
    assert compiler.compiles(3.0)
    (three,) = {*folder.glob("*.kernel")} - {two}
    three.write_bytes(content)  # of the same shapes: it would compute another function
    three.chmod(0o600)
    assert compiler.compiles(3.0)
    assert three.read_bytes() != content and not compiler.compiles(3.0) and not compiler.compiles(2.0)


def test_the_folder_of_nobody_is_one_warning_and_no_cache(compiler, monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", "~nobody_of_that_name/x")
    cache._expanded.cache_clear()
    with pytest.warns(RuntimeWarning, match="user who does not exist, so compiled code is not stored") as caught:
        assert compiler.compiles() and compiler.compiles()
    assert len(caught) == 1 and cache.location() is None
    assert "does not exist" in cache.refused() and cache.clear() == 0


def test_a_folder_that_others_can_write_is_named_as_off(compiler, folder, capsys):
    assert compiler.compiles() and cache.refused() == ""
    folder.chmod(0o770)
    assert "other users can write to it (mode 770); fix: chmod 700" in cache.refused()
    folder.chmod(0o1777)  # a shared folder such as /tmp
    assert "fix: set TORSOR_CACHE to a folder that you own" in cache.refused()
    folder.chmod(0o770)
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("cache: off, 1 kernels") and f"{folder} is not used, because other users can write" in shown
    folder.chmod(0o700)


def test_who_needs_a_kernel_that_is_being_compiled_waits_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traced, begun, looked = [], threading.Event(), threading.Event()

    def trace() -> ca.Function:
        traced.append(True)
        begun.set()
        assert looked.wait(60)  # the other has found nothing on disk, and would begin to compile
        return function()

    def recalled(name: str) -> object:
        found = recall(name)
        if begun.is_set():
            looked.set()
        return found

    monkeypatch.setattr("torsor.robot.kernels.recall", recalled)
    found = list[Any]()

    def need() -> None:
        found.append(Kernels(Target(), lambda: "the same model").kernel("f", trace)(np.ones(3)))

    threads = [threading.Thread(target=need) for _ in range(2)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    for each in threads:
        each.join()
    assert len(traced) == 1 and np.array_equal(found[0], found[1])
    assert not [each for each in folder.iterdir() if each.name.endswith(".lock")]


def test_a_killed_process_does_not_keep_others_from_compiling(folder: Path) -> None:
    program = "import os, signal\nfrom torsor.compiler.cache import compiling\n"
    program += "with compiling('0' * 64): os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", program], check=False)
    assert (folder / f".{'0' * 64}.lock").exists()
    with cache.compiling("0" * 64) as waited:
        assert not waited
    assert not (folder / f".{'0' * 64}.lock").exists()
