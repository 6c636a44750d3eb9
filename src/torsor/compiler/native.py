"""LLVM behind a few functions: modules of text become object code, and object code becomes addresses."""

import ctypes
import ctypes.util
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

__all__ = ["assembly", "emit", "link", "target_description", "vector_width"]

_LINKING = threading.Lock()


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
    *("exp", "expm1", "log", "log1p", "pow", "fmod", "remainder", "hypot", "erf", "fmin", "fmax"),
    *("aligned_alloc", "free", "feclearexcept"),
)


def _machine() -> llvm.TargetMachine:
    # Small code with relative addresses: constants lie beside the code, and need no instruction to find them.
    return _ready().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=2, reloc="pic", codemodel="small", jit=True
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


def emit(modules: Sequence[str], workers: int = 2) -> list[bytes]:
    """Return the object code of LLVM modules, several compiled at a time."""
    _ready()

    def one(text: str) -> bytes:
        machine = _machine()
        module = llvm.parse_assembly(text)
        module.triple = machine.triple
        return bytes(machine.emit_object(module))

    if len(modules) == 1 or workers == 1:
        return [one(module) for module in modules]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, modules))


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
