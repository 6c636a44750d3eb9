"""The function ``call`` of ``llvm/call.py`` as a Python callable."""

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

from torsor.compiler.gufunc import numpy_api
from torsor.compiler.llvm.call import ADDRESSES

_PYARRAY_NEW = 93
_METH_FASTCALL = 0x0080


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@cache
def can_call_directly() -> bool:
    """Return whether arrays lie in memory as ``llvm/call.py`` expects, tested on one: other Pythons may differ."""
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
    """Return a Python callable whose code is at the address ``function``, and an object that must live as long.

    ``table`` is the address where the code expects its ``ADDRESSES``. The callable holds a reference to the gufunc, to
    which it passes the calls that it cannot do itself.
    """
    python = [getattr(ctypes.pythonapi, name) for name in ADDRESSES[3:]]
    addresses = [id(np.ndarray), id(np.dtype(dtype)), numpy_api("_ARRAY_API")[_PYARRAY_NEW]]
    addresses += [ctypes.cast(each, ctypes.c_void_p).value for each in python]
    (ctypes.c_void_p * len(addresses)).from_address(table)[:] = addresses
    method = _MethodDef(name.encode(), function, _METH_FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(method), ufunc, None), method
