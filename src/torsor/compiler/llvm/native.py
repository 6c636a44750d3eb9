"""LLVM behind a few functions: modules of text become object code, and object code becomes addresses."""

import ctypes
import ctypes.util
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

__all__ = ["assembly", "emit", "link", "target_description", "vector_width"]

_LINKING = threading.Lock()
# Characters of LLVM text from which other processes are worth their start: about a second of work.
LARGE = 400_000
# From this many modules, about 150,000 operations, LLVM does not optimise: it takes less than half of the time, and the
# code, which is an eighth to a half slower.
HUGE = 128
# The same for code that must be there soon: about 10,000 operations.
QUICK = 8


@cache
def _ready() -> llvm.Target:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _provide_c_library()
    return llvm.Target.from_default_triple()


def _provide_c_library() -> None:
    """Tell LLVM where the functions of the C library are, since not every platform lets it look them up."""
    library = ctypes.CDLL(None)
    if not all(hasattr(library, function) for function in _C_FUNCTIONS):
        library = ctypes.CDLL(ctypes.util.find_library("m"))  # this one starts a process, so it comes second
    for function in _C_FUNCTIONS:
        if hasattr(library, function):
            llvm.add_symbol(function, ctypes.cast(getattr(library, function), ctypes.c_void_p).value)


_C_FUNCTIONS = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("exp", "expm1", "log", "log1p", "pow", "fmod", "remainder", "hypot", "erf"),
    *("aligned_alloc", "free", "feclearexcept"),
)


def _machine(level: int = 2) -> llvm.TargetMachine:
    # Small code with relative addresses: constants lie beside the code, and need no instruction to find them.
    return _ready().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=level, reloc="pic", codemodel="small", jit=True
    )


@cache
def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())


def vector_width(dtype: str) -> int:
    """Return how many numbers of a type the widest vector registers of this machine hold.

    Example:
        >>> vector_width("float32") == 2 * vector_width("float64")
        True
    """
    features = llvm.get_host_cpu_features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
    return bits // (64 if dtype == "float64" else 32)


@cache
def target_description() -> str:
    """Return what object code depends on beside its source: machine, features, and versions of LLVM and llvmlite."""
    _ready()
    version = ".".join(map(str, llvm.llvm_version_info))
    return "|".join([llvm.get_default_triple(), llvm.get_host_cpu_name(), _features(), version, llvmlite.__version__])


def emit(modules: Sequence[str], quick: bool = False) -> list[bytes]:
    """Return the object code of LLVM modules; if they are large, all cores of the machine compile.

    ``quick`` gives up optimisation for fewer modules already: it pays for code that runs some hundred times.
    llvmlite lets one thread of a process into LLVM at a time, so the others are processes, which run this file.
    """
    level = 2 if len(modules) < (QUICK if quick else HUGE) else 0
    workers = min(os.cpu_count() or 1, len(modules))
    if sum(map(len, modules)) < LARGE or workers < 2 or not sys.executable:
        return emit_here(modules, level)
    shares = [list(range(len(modules)))[k::workers] for k in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        others = [pool.submit(_emit_elsewhere, [modules[k] for k in share], level) for share in shares[1:]]
        objects = dict(zip(shares[0], emit_here([modules[k] for k in shares[0]], level), strict=True))
        for share, other in zip(shares[1:], others, strict=True):
            objects |= dict(zip(share, other.result(), strict=True))
    return [objects[k] for k in range(len(modules))]


def emit_here(modules: Sequence[str], level: int) -> list[bytes]:
    """Return the object code of LLVM modules, by this process alone; ``level`` is LLVM's, of optimisation."""
    machine, objects = _machine(level), []
    for text in modules:
        module = llvm.parse_assembly(text)
        module.triple = machine.triple
        objects.append(bytes(machine.emit_object(module)))
    return objects


def _emit_elsewhere(modules: list[str], level: int) -> list[bytes]:
    """Compile in another process; if it fails for any reason, here."""
    work = pickle.dumps((modules, level))
    try:
        done = subprocess.run([sys.executable, __file__], input=work, capture_output=True, check=True)
        objects: list[bytes] = pickle.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, pickle.PickleError, EOFError):
        return emit_here(modules, level)
    return objects


def assembly(module: str) -> str:
    """Return the assembly text of an LLVM module, in which instructions can be counted."""
    _ready()
    return str(_machine().emit_assembly(llvm.parse_assembly(module)))


def link(objects: Sequence[bytes]) -> Any:
    """Return an engine with object code made ready to run: it knows the addresses, and must live as long as they do."""
    _ready()
    with _LINKING:
        empty = llvm.parse_assembly("")
        engine = llvm.create_mcjit_compiler(empty, _machine())
        for content in objects:
            engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        engine.finalize_object()
        return engine


if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps(emit_here(*pickle.load(sys.stdin.buffer))))
