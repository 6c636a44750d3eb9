"""``compile``: a CasADi function as machine code that is called like a NumPy gufunc."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Shape
from torsor.base.errors import ModelError
from torsor.base.interrupts import Stoppable
from torsor.compiler import threads as python_threads
from torsor.compiler.cache import StoredKernel, natural_shape
from torsor.compiler.cuda.kernel import CudaKernel
from torsor.compiler.machine_code import has_machine_code, load_code, make_code, used_inputs
from torsor.compiler.threads import AUTO, SharedKernel, available_cores
from torsor.compiler.virtual_machine import VirtualMachine

DTYPES = ("float64", "float32")
DEVICES = ("cpu", "cuda", "casadi")
WIDTHS = (2, 4, 8, 16)
_FLOAT64 = np.dtype("float64")


def compile(
    function: ca.Function,
    dtype: Any = "float64",
    device: str = "cpu",
    threads: int | str = 1,
    *,
    inputs: Sequence[Shape] | None = None,
    outputs: Sequence[Shape] | None = None,
    width: int | None = None,
) -> "AnyKernel":
    """Return a CasADi function of SX (or one that expands to SX) as a callable on NumPy arrays, in machine code.

    Leading axes are batch axes and broadcast; ``out=``, any strides and read-only inputs are allowed, as for every
    gufunc of NumPy. ``dtype`` is float64 or float32. ``device="casadi"`` compiles nothing and evaluates with CasADi's
    virtual machine, which starts at once and is much slower; ``device="cuda"`` computes on an NVIDIA card, one thread a
    state, with arrays of CuPy (see docs/gpu.md; needs the extra ``gpu``). ``threads`` is the largest number of threads
    that share a batch, or "auto": the cores that this process may use. Small batches are computed by one thread;
    results are the same to the last bit. ``inputs`` and ``outputs`` are the shapes of the arrays of one state, by
    default those of CasADi's matrices. ``width`` is the number of states that are computed at a time, by default as
    many numbers as a vector register of the machine holds, or twice as many (see docs/compiler.md).

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
    """Return float64 or float32 for anything that NumPy accepts as this type.

    Example:
        >>> dtype_name(np.float32)
        'float32'
    """
    try:
        name = "" if dtype is None else str(np.dtype(dtype).name)  # NumPy reads None as float64
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise ModelError(argument="dtype", value=dtype, allowed=", ".join(DTYPES))
    return name


class Kernel(VirtualMachine):
    """A compiled function: ``function`` is the CasADi function that defines it, ``ufunc`` is the machine code.

    ``run`` is the address of its loop over states, 0 where there is none; ``is_plain`` says whether it is machine code
    that takes arrays of float64 as they are, ``most_threads`` how many threads share a batch at most.
    ``quick`` is for functions that are called a few hundred times: large ones are compiled without optimisation, and
    stored on disk without the CasADi function. ``key`` is the name of the code on disk, where the caller has already
    looked for it; by default it is a hash of all operations.
    """

    def __init__(
        self,
        function: ca.Function | StoredKernel,
        dtype: str,
        device: str,
        threads: int | str,
        inputs: Sequence[Shape] | None,
        outputs: Sequence[Shape] | None,
        width: int | None = None,
        key: str | None = None,
        quick: bool = False,
    ):
        super().__init__(function, inputs, outputs)
        self.dtype, self.threads = dtype, threads
        self._made_with = device, width, quick
        self.ufunc: Any = None
        self.run = 0
        self._shared: SharedKernel | None = None
        self.most_threads = available_cores() if isinstance(threads, str) else threads
        sizes_in, sizes_out = self.signature.sizes_in, self.signature.sizes_out
        # An array whose axes are not those of CasADi's matrix has the same numbers in another shape.
        self._core_in = [_core(shape, size) for shape, size in zip(self.inputs, sizes_in, strict=True)]
        self._core_out = [_core(shape, size) for shape, size in zip(self.outputs, sizes_out, strict=True)]
        self._used = used_inputs(sizes_in)
        if device == "cpu" and has_machine_code(self.signature.name, sizes_in, sizes_out):
            shapes = [self._core_in[k] for k in self._used], self._core_out
            if isinstance(function, StoredKernel):
                code = function.code
            else:
                code = make_code(function, *shapes, dtype, width, key, quick)
            self.ufunc, self._direct, self._shared, self.run = load_code(
                code, self.signature.name, *shapes, dtype, self.most_threads
            )
        reshaped = self._core_in != self.inputs or self._core_out != self.outputs
        whole = len(self._used) == len(self.inputs)
        self.is_plain = self.ufunc is not None and dtype == "float64" and not reshaped and whole
        self._one_thread = self.is_plain and self.most_threads == 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the CasADi function: machine code is compiled again, or found in the cache, where it is unpickled."""
        device, width, quick = self._made_with
        return self.pickled(self.dtype, device, self.threads, self.inputs, self.outputs, width, None, quick)

    @property
    def direct(self) -> Callable[..., Any]:
        """The machine code itself if it can take the arrays as they are, which saves a call; otherwise this kernel."""
        return self._direct if self._one_thread else self

    @property
    def unchecked(self) -> Callable[..., Any]:
        """The machine code for arrays of float64 with one leading axis, which are not checked; otherwise this kernel.

        It saves a few microseconds, for loops that call a kernel with the arrays that it returned.
        """
        return self.ufunc if self.is_plain and (self._one_thread or self._shared is not None) else self

    def __repr__(self) -> str:
        return f"<Kernel {self.signature.name}: {self.dtype}, threads={self.threads}>"

    def __call__(self, *values: ArrayLike, out: Any = None) -> Any:
        """Evaluate: one array for each input, one array (or a tuple of them) out."""
        if self._one_thread or (self.is_plain and self._has_one_axis(values)):
            try:
                if out is None:
                    return self._direct(*values)
                if len(self.outputs) == 1 and self._has_shape_of_result(out, values):
                    return self.ufunc(*values, out=out)
                arrays, batch = self.check_batch(*values)
                return self.ufunc(*arrays, out=tuple(self._checked_out(out, batch)))
            except (ValueError, TypeError, OverflowError):
                # These raise the better message if the arrays are wrong.
                self._checked_out(out, self.check_batch(*values)[1])
                raise
        return self._convert_and_call(values, out)

    def _has_one_axis(self, values: Sequence[ArrayLike]) -> bool:
        """Return whether the batch is one row of states, which the threads share inside the gufunc."""
        if self._shared is None:
            return False
        for value, core in zip(values, self._core_in, strict=False):  # another number of values is an error of the call
            if type(value) is not np.ndarray or value.ndim > len(core) + 1:
                return False
        return True

    def _has_shape_of_result(self, out: Any, values: Sequence[Any]) -> bool:
        """Return whether NumPy can take an array as the result unseen: if one of the inputs has the whole batch."""
        if type(out) is not np.ndarray:
            return False
        whole, batch = False, out.shape[: out.ndim - len(self.outputs[0])]
        for value, core in zip(values, self.inputs, strict=False):
            if type(value) is not np.ndarray or value.dtype is not _FLOAT64:
                return False
            whole = whole or value.shape == batch + core
        return whole

    def _convert_and_call(self, values: Sequence[ArrayLike], out: Any) -> Any:
        """Evaluate with several threads, in another type than float64, or with arrays in another shape."""
        arrays, batch = self.check_batch(*values)
        given = self._checked_out(out, batch)
        if self.ufunc is None:
            results = [result.astype(self.dtype, copy=False) for result in self.results(arrays, batch)]
        else:
            given_in = list(zip(arrays, self.inputs, self._core_in, strict=True))
            with np.errstate(over="ignore"):  # numbers too large for float32 become infinite
                flat = [
                    array.astype(self.dtype, copy=False).reshape((*array.shape[: array.ndim - len(shape)], *core))
                    for array, shape, core in (given_in[k] for k in self._used)
                ]
            results = []
            for k, (array, core) in enumerate(zip(given, self._core_out, strict=True)):
                written = array if array is not None and self._fits(array, k, flat) else None
                results.append(np.empty((*batch, *core), self.dtype) if written is None else written)
            self._evaluate(flat, results, batch)
            shapes = [(*batch, *shape) for shape in self.outputs]
            results = [r if r.shape == own else r.reshape(own) for r, own in zip(results, shapes, strict=True)]
        results = [r if r.ndim else r[()] for r in results]  # as NumPy does: an array without axes becomes a number
        for k, array in enumerate(given):
            if array is not None and array is not results[k]:
                np.copyto(array, results[k], casting="same_kind")
                results[k] = array
        return results[0] if len(results) == 1 else tuple(results)

    def _fits(self, array: NDArray[Any], k: int, inputs: list[NDArray[Any]]) -> bool:
        """Return whether output k can be written to an array directly: right type and shape, no overlap with inputs."""
        same = self._core_out[k] == self.outputs[k] and array.dtype == self.dtype
        return same and not any(np.may_share_memory(array, each) for each in inputs)

    def _checked_out(self, out: Any, batch: Shape) -> list[NDArray[Any] | None]:
        """Return the arrays of ``out=`` for the results, None where none is given, or raise an error."""
        if out is None:
            return [None] * len(self.outputs)
        name, given = self.signature.name, list(out) if isinstance(out, (tuple, list)) else [out]
        if len(given) != len(self.outputs):
            allowed = f"{len(self.outputs)}, one for each result"
            raise ModelError(f"has {len(given)} arrays", argument="out", where=name, allowed=allowed)
        for k, (array, core) in enumerate(zip(given, self.outputs, strict=True)):
            where = name if len(given) == 1 else f"{name}: array {k}"
            if array is not None:
                check_result_array(array, (*batch, *core), self.dtype, where)
        for a, b in combinations([array for array in given if array is not None], 2):
            if np.may_share_memory(a, b) and np.shares_memory(a, b):
                found, fix = "has two arrays that overlap in memory", "one array for each result"
                raise ModelError(found, argument="out", where=name, fix=fix)
        return given

    def _evaluate(self, arrays: list[NDArray[Any]], results: list[NDArray[Any]], batch: Shape) -> None:
        """Evaluate into ``results``, shared by the threads."""
        everything, cores = [*arrays, *results], [*(self._core_in[k] for k in self._used), *self._core_out]
        if self._shared is not None and len(batch) > 1 and 0 not in batch:
            self._shared.compute(everything, cores, batch)
        elif self._shared is not None or self.most_threads == 1:
            self.ufunc(*everything)
        else:
            python_threads.compute(self.ufunc, everything, cores, batch, self.most_threads)


def check_result_array(array: Any, shape: Shape, dtype: str, where: str) -> None:
    """Raise ModelError for an array of ``out=`` that cannot take a result."""
    if not isinstance(array, np.ndarray):
        found, allowed = f"is of type {type(array).__name__}", f"an array of shape {shape}"
        raise ModelError(found, argument="out", where=where, allowed=allowed)
    if array.shape != shape:
        raise ModelError(f"has shape {array.shape}", argument="out", where=where, allowed=f"{shape}, as the result")
    if not np.can_cast(dtype, array.dtype, "same_kind"):
        found = f"has the type {array.dtype}, to which {dtype} cannot be cast"
        raise ModelError(found, argument="out", where=where, allowed=dtype)
    if not array.flags.writeable:
        raise ModelError("is read-only", argument="out", where=where, fix="give an array that can be written")


AnyKernel = Kernel | CudaKernel
"""A compiled function on the processor or on a card."""


def _core(shape: Shape, size: tuple[int, int]) -> Shape:
    """Return the shape of an array in the machine code: its own if its axes are those of CasADi's matrix."""
    rows, columns = size
    same = shape in (size, natural_shape(size)) or (columns == 1 and shape == (rows,))
    return shape if same else natural_shape(size)
