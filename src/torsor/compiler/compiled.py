"""``compile``: CasADi functions as machine code that is called like a NumPy gufunc."""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Shape
from torsor.base.errors import ModelError
from torsor.base.interrupts import Stoppable
from torsor.compiler.cuda.kernel import CudaKernel
from torsor.compiler.kernel import Kernel
from torsor.compiler.threads import AUTO

DTYPES = ("float64", "float32")
DEVICES = ("cpu", "cuda", "casadi")
WIDTHS = (2, 4, 8, 16)
AnyKernel = Kernel | CudaKernel
"""A compiled function on the CPU or GPU."""


def compile(
    function: ca.Function,
    dtype: Any = "float64",
    device: str = "cpu",
    threads: int | str = 1,
    *,
    inputs: Sequence[Shape] | None = None,
    outputs: Sequence[Shape] | None = None,
    width: int | None = None,
) -> AnyKernel:
    """Compile a CasADi SX function (or one that expands to SX) to machine code that is called on NumPy arrays.

    Leading axes are batch axes and broadcast. ``out=``, arbitrary strides and read-only inputs are supported, as in
    NumPy gufuncs.

    - ``dtype``: float64 or float32.
    - ``device``: "cpu" (machine code), "casadi" (CasADi's virtual machine, which needs no compilation but has much
      slower calls) or "cuda" (an NVIDIA GPU, one thread per state, with CuPy arrays, which requires the extra ``gpu``;
      see docs/deploy/gpu.md).
    - ``threads``: the maximum number of threads for a batch, or "auto" for the number of cores available to this
      process. Small batches use one thread. Results do not depend on the number of threads.
    - ``inputs``, ``outputs``: the array shapes of one state; by default, the shapes of CasADi's matrices.
    - ``width``: the number of states computed together; the default is the capacity of a vector register, or twice that
      (see docs/deploy/compiler.md).

    Example:
        >>> x = ca.SX.sym("x", 2)
        >>> f = compile(ca.Function("norm", [x], [ca.sqrt(ca.sumsqr(x))]))
        >>> f(np.array([[3.0, 4.0], [5.0, 12.0]])).tolist()
        [5.0, 13.0]
    """
    if not isinstance(function, ca.Function):
        raise TypeError(f"{function!r} cannot be compiled; allowed: a casadi.Function")
    dtype = dtype_name(dtype)
    if device not in DEVICES:
        raise ModelError(argument="device", value=device, allowed=", ".join(map(repr, DEVICES)))
    if width is not None and (type(width) is not int or width not in WIDTHS):
        raise ModelError(argument="width", value=width, allowed=f"{', '.join(map(str, WIDTHS))}, or None")
    if threads != AUTO and (type(threads) is not int or threads < 1):
        raise ModelError(argument="threads", value=threads, allowed=f"a whole number from 1, or {AUTO!r}")
    with Stoppable():
        if device == "cuda":
            return CudaKernel(function, dtype, inputs, outputs)
        return Kernel(function, dtype, device, threads, inputs, outputs, width)


def dtype_name(dtype: Any) -> str:
    """Return "float64" or "float32" for any NumPy specification of the type.

    Example:
        >>> dtype_name(np.float32)
        'float32'
    """
    try:
        name = "" if dtype is None else str(np.dtype(dtype).name)  # NumPy interprets None as float64
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise ModelError(argument="dtype", value=dtype, allowed=", ".join(DTYPES))
    return name
