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

__all__ = ["make_gufunc"]

_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31
_NO_IDENTITY = -1


def _constructor() -> Any:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get_pointer(_core._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
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


def make_gufunc(address: int, name: str, signature: str, dtype: str, doc: str = "") -> tuple[np.ufunc, Any]:
    """Return the gufunc whose inner loop is at an address, and what must be kept as long as it is used.

    NumPy keeps pointers to the strings and arrays that it is given here, so they have to live on.
    """
    inputs, outputs = (part.count("(") for part in signature.split("->"))
    kinds = bytes([np.dtype(dtype).num]) * (inputs + outputs)
    loops, data = (ctypes.c_void_p * 1)(address), (ctypes.c_void_p * 1)(None)
    strings = tuple(ctypes.create_string_buffer(text.encode()) for text in (name, doc, signature))
    types = ctypes.create_string_buffer(kinds)
    made = _constructor()(
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
    return made, (loops, data, types, strings)
