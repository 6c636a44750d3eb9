"""NumPy generalised universal functions from machine code, without a line of C.

NumPy hands its C interface to other modules as an array of addresses, ``_UFUNC_API``; entry 31 is
``PyUFunc_FromFuncAndDataAndSignature``, which ctypes can call.
"""

import ctypes
import importlib
from typing import Any

import numpy as np

# NumPy 2 moved its core.
_core = importlib.import_module(
    "numpy._core._multiarray_umath" if np.__version__ >= "2" else "numpy.core._multiarray_umath"
)

_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31
_NO_IDENTITY = -1


def numpy_api(name: str) -> Any:
    """Return one of the arrays of addresses in which NumPy publishes its C interface."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get_pointer(getattr(_core, name), None), ctypes.POINTER(ctypes.c_void_p))


def _constructor() -> Any:
    table = numpy_api("_UFUNC_API")
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        *[ctypes.c_int] * 4,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
    )
    return prototype(table[_FROM_FUNC_AND_DATA_AND_SIGNATURE])


class _Head(ctypes.Structure):
    """The first fields of NumPy's ``PyUFuncObject``, as documented."""

    _fields_ = [
        ("head", ctypes.c_byte * object.__basicsize__),
        ("counts", ctypes.c_int * 4),
        ("functions", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_void_p),
        ("types", ctypes.c_void_p),
        ("doc", ctypes.c_void_p),
        ("ptr", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
    ]


def _own(ufunc: np.ufunc, kept: list[Any]) -> None:
    """Make a gufunc hold a reference to the objects that its pointers point to; it is dropped with the gufunc."""
    head = _Head.from_address(id(ufunc))
    assert head.obj is None, "NumPy uses this field of a new gufunc itself"
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    head.obj = id(kept)


def make_gufunc(address: int, name: str, signature: str, dtype: str, kept: list[Any], doc: str = "") -> np.ufunc:
    """Return the gufunc whose inner loop is at an address; it holds a reference to the list ``kept``.

    NumPy stores pointers to the strings and arrays that it is given here, so they are added to that list.
    """
    inputs, outputs = (part.count("(") for part in signature.split("->"))
    kinds = bytes([np.dtype(dtype).num]) * (inputs + outputs)
    loops, data = (ctypes.c_void_p * 1)(address), (ctypes.c_void_p * 1)(None)
    strings = tuple(ctypes.create_string_buffer(text.encode()) for text in (name, doc, signature))
    types = ctypes.create_string_buffer(kinds)
    made: np.ufunc = _constructor()(
        ctypes.addressof(loops),
        ctypes.addressof(data),
        ctypes.addressof(types),
        1,
        inputs,
        outputs,
        _NO_IDENTITY,
        *strings[:2],
        0,
        strings[2],
    )
    kept += [loops, data, types, strings]
    _own(made, kept)
    return made
