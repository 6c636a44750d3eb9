"""Machine code as NumPy generalised universal functions and as direct Python callables, without C code.

NumPy exposes its C interface to other modules as an array of addresses, ``_UFUNC_API``. Entry 31 is
``PyUFunc_FromFuncAndDataAndSignature``, which ctypes can call.
"""

import ctypes
import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from torsor.base.arrays import real_numbers
from torsor.compiler.llvm.call import ADDRESSES

# NumPy 2 renamed the core module.
_core = importlib.import_module(
    "numpy._core._multiarray_umath" if np.__version__ >= "2" else "numpy.core._multiarray_umath"
)

_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31
_NO_IDENTITY = -1
_PYARRAY_NEW = 93
_METH_FASTCALL = 0x0080


def numpy_api(name: str) -> Any:
    """Return one of the address tables of NumPy's C interface."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get_pointer(getattr(_core, name), None), ctypes.POINTER(ctypes.c_void_p))


class _Head(ctypes.Structure):
    """The first fields of NumPy's ``PyUFuncObject``, as documented."""

    _fields_ = [
        *(("head", ctypes.c_byte * object.__basicsize__), ("counts", ctypes.c_int * 4)),
        *((name, ctypes.c_void_p) for name in ("functions", "data")),
        *((name, ctypes.c_int) for name in ("ntypes", "reserved")),
        *((name, ctypes.c_void_p) for name in ("name", "types", "doc", "ptr", "obj")),
    ]


def make_gufunc(
    address: int, name: str, signature: str, dtype: str, kept: list[Any], data: int | None = None, doc: str = ""
) -> np.ufunc:
    """Return a gufunc whose inner loop is at an address; the gufunc holds a reference to the list ``kept``.

    ``data`` is the address that NumPy passes to the loop as its last argument. NumPy stores pointers to the strings and
    arrays passed to it, so they are added to ``kept``.
    """
    inputs, outputs = (part.count("(") for part in signature.split("->"))
    kinds = bytes([np.dtype(dtype).num]) * (inputs + outputs)
    loops, passed = (ctypes.c_void_p * 1)(address), (ctypes.c_void_p * 1)(data)
    strings = tuple(ctypes.create_string_buffer(text.encode()) for text in (name, doc, signature))
    types = ctypes.create_string_buffer(kinds)
    addresses = ctypes.addressof(loops), ctypes.addressof(passed), ctypes.addressof(types)
    texts = ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, *[ctypes.c_void_p] * 3, *[ctypes.c_int] * 4, *texts)
    make = prototype(numpy_api("_UFUNC_API")[_FROM_FUNC_AND_DATA_AND_SIGNATURE])
    made: np.ufunc = make(*addresses, 1, inputs, outputs, _NO_IDENTITY, *strings[:2], 0, strings[2])
    kept += [loops, passed, types, strings]
    head = _Head.from_address(id(made))
    assert head.obj is None, "NumPy uses this field of a new gufunc itself"
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))  # released with the gufunc
    head.obj = id(kept)
    return made


class _MethodDef(ctypes.Structure):
    _fields_ = [
        *(("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))
    ]


@cache
def can_call_directly() -> bool:
    """Return whether arrays have the memory layout that ``llvm/call.py`` expects, which depends on the Python build."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe, head = np.zeros((2, 3)), object.__basicsize__

    def field(kind: Any, offset: int) -> Any:
        return kind.from_address(id(probe) + offset).value

    shape = field(ctypes.c_void_p, head + 16)
    return bool(
        field(ctypes.c_void_p, head - 8) == id(np.ndarray)
        and field(ctypes.c_void_p, head) == probe.ctypes.data
        and field(ctypes.c_int, head + 8) == 2
        and [ctypes.c_int64.from_address(shape + 8 * k).value for k in range(2)] == [2, 3]
        and field(ctypes.c_void_p, head + 40) == id(np.dtype("float64"))
        and field(ctypes.c_int, head + 48) & 0x101 == 0x101
    )


def make_callable(ufunc: np.ufunc, name: str, dtype: str, function: int, table: int) -> tuple[Any, Any]:
    """Return a Python callable with the code at the address ``function``, and an object that must outlive it.

    ``table`` is the address of the table of ``ADDRESSES``. The callable holds a reference to the gufunc, to which it
    passes calls that it cannot handle; see ``checked``.
    """
    python = [getattr(ctypes.pythonapi, name) for name in ADDRESSES[3:-1]]
    addresses = [id(np.ndarray), id(np.dtype(dtype)), numpy_api("_ARRAY_API")[_PYARRAY_NEW]]
    addresses += [*(ctypes.cast(item, ctypes.c_void_p).value for item in python), id(ufunc)]
    (ctypes.c_void_p * len(addresses)).from_address(table)[:] = addresses
    method = _MethodDef(name.encode(), function, _METH_FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(method), checked(ufunc), None), method


def checked(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return a wrapper of a gufunc that raises TypeError unless all arguments are arrays of real numbers.

    Without this check, NumPy would use masked values in computations and return tensors of other frameworks.
    """

    def call(*values: Any) -> Any:
        arrays = [real_numbers(value) for value in values]
        if any(array is None for array in arrays):
            raise TypeError(f"{ufunc.__name__}: an argument is not an array of real numbers")
        return ufunc(*arrays)

    return call
