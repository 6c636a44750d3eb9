"""Object code for this machine and its addresses; large functions are compiled by several processes."""

import ctypes
import ctypes.util
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from torsor.compiler.llvm import target
from torsor.compiler.llvm.target import host

LINKING = threading.RLock()
# Characters of LLVM text (about a second of work) above which starting other processes is worthwhile.
MIN_PARALLEL_LENGTH = 400_000
# Number of modules (about 150,000 operations) from which LLVM does not optimise. Compilation then takes less than half
# the time, and the code is slower by an eighth to a half.
MAX_OPTIMISED_MODULES = 72
# The same limit with ``quick``: about 10,000 operations.
MAX_QUICK_MODULES = 9

C_FUNCTIONS = (
    *("malloc", "free", "feclearexcept"),
    # Used on processors without such instructions (x86-64 before AVX2).
    *("fma", "fmaf", "floor", "floorf", "ceil", "ceilf"),
)
"""C library functions that compiled code may call."""


def emit(modules: Sequence[str], quick: bool = False) -> list[bytes]:
    """Return the object code of LLVM modules; large ones are compiled on all cores.

    The first module is always optimised, because packing would otherwise be slow. ``quick`` disables optimisation at a
    lower number of modules, for code that runs only a few hundred times. llvmlite allows only one thread per process in
    LLVM, so the work is divided among processes.
    """
    workers = min(os.cpu_count() or 1, len(modules))
    python = _python()
    length = sum(len(module) for module in modules if not module.startswith(target.ENCODED_MARK))
    level = 2 if len(modules) < (MAX_QUICK_MODULES if quick else MAX_OPTIMISED_MODULES) else 0
    if length < MIN_PARALLEL_LENGTH or workers < 2 or python is None:
        return _objects(modules, level)
    parts = [list(range(len(modules)))[k::workers] for k in range(workers)]
    helpers = _Helpers(python)
    with ThreadPoolExecutor(workers) as pool:
        try:
            others = [pool.submit(helpers.emit, [modules[k] for k in part], level) for part in parts[1:]]
            objects = dict(zip(parts[0], _objects([modules[k] for k in parts[0]], level), strict=True))
            for part, other in zip(parts[1:], others, strict=True):
                objects |= dict(zip(part, other.result(), strict=True))
        except BaseException:
            helpers.stop()
            raise
    return [objects[k] for k in range(len(modules))]


def _objects(modules: Sequence[str], level: int) -> list[bytes]:
    return [*host().objects(modules[:1]), *host().objects(modules[1:], level)]


def _python() -> str | None:
    """Return the Python executable for other processes, or None in an embedding application."""
    is_python = "python" in Path(sys.executable or "").stem.lower() and not getattr(sys, "frozen", False)
    return sys.executable if is_python and Path(target.__file__).is_file() else None


class _Helpers:
    """Compiler processes, which stop when this process is interrupted; they do not receive Ctrl-C from the terminal."""

    def __init__(self, python: str):
        self._python, self._stopped = python, False
        self._running: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Stop all processes, and prevent new ones."""
        with self._lock:
            self._stopped = True
            for item in self._running:
                item.kill()

    def emit(self, modules: list[str], level: int) -> list[bytes]:
        """Compile in another process, or in this one if the other fails for any reason except a stop signal."""
        # -P, because the folder of the script has modules with names of standard modules. No window is opened on
        # Windows.
        command, flags = [self._python, "-P", target.__file__], getattr(subprocess, "CREATE_NO_WINDOW", 0)
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        try:
            with self._lock:
                if self._stopped:
                    return []
                helper = subprocess.Popen(command, **pipes, creationflags=flags, start_new_session=True)
                self._running.append(helper)
            result, _ = helper.communicate(pickle.dumps((modules, level)))
            if helper.returncode in (-signal.SIGINT, -signal.SIGTERM):
                raise KeyboardInterrupt
            objects: list[bytes] = pickle.loads(result) if helper.returncode == 0 else []
        except (OSError, subprocess.SubprocessError, pickle.PickleError, EOFError):
            objects = []
        if objects or self._stopped:
            return objects
        return host().objects(modules, level)


def link(objects: Sequence[bytes], names: Sequence[str], functions: Mapping[str, int] | None = None) -> Any:
    """Return linked code as a table of the addresses of ``names``, which keeps the code in memory.

    ``functions`` contains addresses of functions that the code may call in addition to ``C_FUNCTIONS``.
    """
    library = llvm.JITLibraryBuilder()
    for content in objects:
        library.add_object_img(content)
    for name, address in {**_c_library(), **(functions or {})}.items():
        library.import_symbol(name, address)
    for name in names:
        library.export_symbol(name)
    # Functions called by LLVM itself, such as memset.
    library.add_current_process()
    with LINKING:
        return library.link(_linker(), f"code {next(_LIBRARIES)}")


_LIBRARIES = itertools.count()


@cache
def _linker() -> Any:
    """Return LLVM's linker for this process.

    JITLink places the code and the constants of an object file next to each other. LLVM's older linker, RuntimeDyld,
    allocates them separately; in a process with large arrays, they may be more than 2 GiB apart, which a 32-bit offset
    cannot reach.
    """
    linker = llvm.create_lljit_compiler(host().machine(), use_jit_link=True)
    # Idle threads run code until the process ends, even during interpreter shutdown.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(linker))
    return linker


@cache
def _c_library() -> dict[str, int]:
    return c_addresses()


def c_addresses(names: Sequence[str] = C_FUNCTIONS) -> dict[str, int]:
    """Return the addresses of the C library functions available on this platform."""
    result: dict[str, int] = {}
    windows = sys.platform == "win32"
    # On Windows, functions with large stack frames check the stack.
    needed = {*names, *(("__chkstk",) if windows else ())}
    # The last one starts a process to locate its library, and is rarely needed.
    libraries = ("ucrtbase", "ntdll") if windows else (None, "m")
    for library in (ctypes.CDLL(ctypes.util.find_library(item) if item == "m" else item) for item in libraries):
        for name in needed - result.keys():
            # On Windows, some functions have older, nonstandard names.
            known = (name, f"_{name}", *(("_clearfp",) if name == "feclearexcept" else ())) if windows else (name,)
            function = next((getattr(library, item) for item in known if hasattr(library, item)), None)
            if function is not None:
                result[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
        if needed <= result.keys():
            break
    return result


def _locks() -> list[Any]:
    """Return the locks for linking and for llvmlite, in the order in which they are taken."""
    llvmlite_lock = getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)
    return [LINKING, *([] if llvmlite_lock is None else [llvmlite_lock])]


def _before_fork() -> None:
    for lock in _locks():
        lock.acquire()


def _after_fork() -> None:
    for lock in reversed(_locks()):
        lock.release()


if hasattr(os, "register_at_fork"):
    # A forked child must not inherit LLVM while another thread of the parent is compiling.
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
