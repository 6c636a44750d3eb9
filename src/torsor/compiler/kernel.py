"""CasADi functions on arrays, as machine code or evaluated by CasADi's virtual machine (the reference)."""

import math
import pickle
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array, Shape, real_numbers
from torsor.base.errors import ModelError
from torsor.compiler import threads as python_threads
from torsor.compiler.cache import Signature, StoredKernel, natural_shape
from torsor.compiler.machine_code import has_machine_code, load_code, make_code, used_inputs
from torsor.compiler.threads import SharedKernel, available_cores

_FLOAT64 = np.dtype("float64")


class VirtualMachine:
    """A CasADi function as a callable on arrays, evaluated by CasADi; leading axes are batch axes and broadcast.

    ``inputs`` and ``outputs`` are the array shapes of one state, with the entries of CasADi's matrices in row-major
    order. By default, a scalar has no axis, a column has one, and any other matrix has two.

    Example:
        >>> x = ca.SX.sym("x", 2)
        >>> f = VirtualMachine(ca.Function("f", [x], [x * 2], ["x"], ["y"]))
        >>> f(np.ones((3, 2))).shape
        (3, 2)
    """

    def __init__(
        self,
        function: ca.Function | StoredKernel,
        inputs: Sequence[Shape] | None = None,
        outputs: Sequence[Shape] | None = None,
    ):
        self._source, self.signature = function, Signature.of(function)
        self.inputs, self.outputs = self.signature.shapes(inputs, outputs)

    @property
    def function(self) -> ca.Function:
        """The CasADi function that defines this object."""
        return self._source.function if isinstance(self._source, StoredKernel) else self._source

    def __call__(self, *values: ArrayLike) -> Any:
        """Evaluate the function: take one array per input, and return one array or a tuple of them."""
        results = self.results(*self.check_batch(*values))
        return results[0] if len(results) == 1 else tuple(results)

    def pickled(self, *settings: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the result of ``__reduce__``: the CasADi function, and additional arguments of the class."""
        try:
            return _unpickled, (type(self), self.function.serialize(), *settings)
        except LookupError:
            message = (
                f"{self.signature.name} cannot be pickled, because its code was stored without the CasADi function"
            )
            raise pickle.PicklingError(f"{message}; fix: pickle the robot or the problem that it belongs to") from None

    def check_batch(self, *values: ArrayLike) -> tuple[list[Array], Shape]:
        """Return the inputs as arrays, and their broadcast leading axes; raise an error that names an invalid input."""
        if len(values) != len(self.inputs):
            raise TypeError(f"{self.signature.name} takes {len(self.inputs)} arguments, but {len(values)} were given")
        arrays = [self.check_shape(k, real_numbers(value), value) for k, value in enumerate(values)]
        return arrays, self.batch(arrays)

    def check_shape(self, k: int, array: Any, value: Any) -> Any:
        """Return ``array``, the value of input k; raise ModelError if it is None (no array) or has a wrong shape."""
        where, name, core = self.signature.name, self.signature.names_in[k], self.inputs[k]
        if array is None:
            raise ModelError(argument=name, value=value, where=where, allowed="an array of real numbers")
        if array.ndim < len(core) or array.shape[array.ndim - len(core) :] != core:
            expected = ", ".join(["...", *map(str, core)])
            raise ModelError(
                f"has shape {array.shape}", argument=name, value=value, where=where, allowed=f"({expected})"
            )
        return array

    def batch(self, arrays: Sequence[Array]) -> Shape:
        """Return the broadcast leading axes of the inputs."""
        shapes = [array.shape[: array.ndim - len(core)] for array, core in zip(arrays, self.inputs, strict=True)]
        if shapes and all(shape == shapes[0] for shape in shapes):
            return shapes[0]
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            names = (f"{self.signature.names_in[k]} {shape}" for k, shape in enumerate(shapes))
            message = f"leading axes do not broadcast: {', '.join(names)}"
            raise ModelError(message, where=self.signature.name, allowed="equal lengths, or 1") from None

    def results(self, arrays: Sequence[Array], batch: Shape) -> list[Array]:
        """Return the outputs for checked inputs."""
        count, columns = math.prod(batch), []
        if count == 0:
            return [np.zeros((*batch, *core)) for core in self.outputs]
        for array, core, (rows, cols) in zip(arrays, self.inputs, self.signature.sizes_in, strict=True):
            states = np.broadcast_to(array, (*batch, *core)).astype(float, copy=False).reshape(count, rows, cols)
            # CasADi maps over blocks of columns, one block per state.
            columns.append(ca.DM(np.ascontiguousarray(states.transpose(1, 0, 2)).reshape(rows, count * cols)))
        results = (self.function if count == 1 else self.function.map(count)).call(columns)
        outputs = []
        for result, core, (rows, cols) in zip(results, self.outputs, self.signature.sizes_out, strict=True):
            states = result.full().reshape(rows, count, cols).transpose(1, 0, 2)
            outputs.append(np.ascontiguousarray(states).reshape((*batch, *core)))
        return outputs


def _unpickled(kind: Callable[..., Any], text: str, *settings: Any) -> Any:
    return kind(ca.Function.deserialize(text), *settings)


class Kernel(VirtualMachine):
    """A compiled function; ``function`` is the CasADi function that defines it.

    ``ufunc`` is the machine code, or None if the function runs in CasADi's virtual machine. ``run`` is the address of
    its loop over states, or 0. ``is_plain`` is True for machine code that takes float64 arrays without conversion.
    ``most_threads`` is the maximum number of threads for a batch. Use ``quick`` for functions that are called only a
    few hundred times, with batches: the faster call for a single state is not compiled, and large functions are
    compiled without optimisation and stored on disk without the CasADi function. ``key`` is the cache key of the code
    if the caller has already looked it up in the cache; by default, it is a hash of all operations.
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
        # An array whose axes differ from those of CasADi's matrix contains the same numbers in a different shape.
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
                code, self.signature.name, *shapes, dtype, self.most_threads, quick
            )
        reshaped = self._core_in != self.inputs or self._core_out != self.outputs
        whole = len(self._used) == len(self.inputs)
        self.is_plain = self.ufunc is not None and dtype == "float64" and not reshaped and whole
        self._one_thread = self.is_plain and self.most_threads == 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the CasADi function; on unpickling, machine code is loaded from the cache or compiled again."""
        device, width, quick = self._made_with
        return self.pickled(self.dtype, device, self.threads, self.inputs, self.outputs, width, None, quick)

    @property
    def direct(self) -> Callable[..., Any]:
        """The machine-code callable itself, if possible; otherwise this kernel.

        It is possible if arrays need no conversion and the kernel uses one thread, and saves one call.
        """
        return self._direct if self._one_thread else self

    @property
    def unchecked(self) -> Callable[..., Any]:
        """The machine code for unchecked float64 arrays with one leading axis; otherwise this kernel.

        It saves a few microseconds per call in loops that pass the results of a kernel back to it.
        """
        return self.ufunc if self.is_plain and (self._one_thread or self._shared is not None) else self

    def __repr__(self) -> str:
        return f"<Kernel {self.signature.name}: {self.dtype}, threads={self.threads}>"

    def __call__(self, *values: ArrayLike, out: Any = None) -> Any:
        """Evaluate the function: take one array per input, and return one array or a tuple of them."""
        if self._one_thread or (self.is_plain and self._has_one_axis(values)):
            try:
                if out is None:
                    return self._direct(*values)
                if len(self.outputs) == 1 and self._has_shape_of_result(out, values):
                    return self.ufunc(*values, out=out)
                arrays, batch = self.check_batch(*values)
                return self.ufunc(*arrays, out=tuple(self._checked_out(out, batch)))
            except (ValueError, TypeError, OverflowError):
                # These calls raise a more specific error if the arrays are invalid.
                self._checked_out(out, self.check_batch(*values)[1])
                raise
        return self._convert_and_call(values, out)

    def _has_one_axis(self, values: Sequence[ArrayLike]) -> bool:
        """Return whether the batch has one axis, which the threads share inside the gufunc."""
        if self._shared is None:
            return False
        for value, core in zip(values, self._core_in, strict=False):  # the call reports a different number of values
            if type(value) is not np.ndarray or value.ndim > len(core) + 1:
                return False
        return True

    def _has_shape_of_result(self, out: Any, values: Sequence[Any]) -> bool:
        """Return whether NumPy can use a result array unchecked, because one input has the full batch shape."""
        if type(out) is not np.ndarray:
            return False
        whole, batch = False, out.shape[: out.ndim - len(self.outputs[0])]
        for value, core in zip(values, self.inputs, strict=False):
            if type(value) is not np.ndarray or value.dtype is not _FLOAT64:
                return False
            whole = whole or value.shape == batch + core
        return whole

    def _convert_and_call(self, values: Sequence[ArrayLike], out: Any) -> Any:
        """Evaluate with several threads, a type other than float64, or arrays with different shapes."""
        arrays, batch = self.check_batch(*values)
        outputs = self._checked_out(out, batch)
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
            for k, (array, core) in enumerate(zip(outputs, self._core_out, strict=True)):
                written = array if array is not None and self._fits(array, k, flat) else None
                results.append(np.empty((*batch, *core), self.dtype) if written is None else written)
            self._evaluate(flat, results, batch)
            shapes = [(*batch, *shape) for shape in self.outputs]
            results = [r if r.shape == shape else r.reshape(shape) for r, shape in zip(results, shapes, strict=True)]
        results = [r if r.ndim else r[()] for r in results]  # arrays without axes become numbers, as in NumPy
        for k, array in enumerate(outputs):
            if array is not None and array is not results[k]:
                np.copyto(array, results[k], casting="same_kind")
                results[k] = array
        return results[0] if len(results) == 1 else tuple(results)

    def _fits(self, array: NDArray[Any], k: int, inputs: list[NDArray[Any]]) -> bool:
        """Return whether output k can be written directly to an array: type and shape match, and no input overlaps."""
        same = self._core_out[k] == self.outputs[k] and array.dtype == self.dtype
        return same and not any(np.may_share_memory(array, input_) for input_ in inputs)

    def _checked_out(self, out: Any, batch: Shape) -> list[NDArray[Any] | None]:
        """Return the arrays of ``out=`` for the results, None for missing ones; raise ModelError for invalid ones."""
        if out is None:
            return [None] * len(self.outputs)
        name, arrays = self.signature.name, list(out) if isinstance(out, (tuple, list)) else [out]
        if len(arrays) != len(self.outputs):
            allowed = f"{len(self.outputs)}, one for each result"
            raise ModelError(f"has {len(arrays)} arrays", argument="out", where=name, allowed=allowed)
        for k, (array, core) in enumerate(zip(arrays, self.outputs, strict=True)):
            where = name if len(arrays) == 1 else f"{name}: array {k}"
            if array is not None:
                check_result_array(array, (*batch, *core), self.dtype, where)
        for a, b in combinations([array for array in arrays if array is not None], 2):
            if np.may_share_memory(a, b) and np.shares_memory(a, b):
                message, fix = "has two arrays that overlap in memory", "one array for each result"
                raise ModelError(message, argument="out", where=name, fix=fix)
        return arrays

    def _evaluate(self, arrays: list[NDArray[Any]], results: list[NDArray[Any]], batch: Shape) -> None:
        """Evaluate into ``results``, using the threads."""
        everything, cores = [*arrays, *results], [*(self._core_in[k] for k in self._used), *self._core_out]
        if self._shared is not None and len(batch) > 1 and 0 not in batch:
            self._shared.compute(everything, cores, batch)
        elif self._shared is not None or self.most_threads == 1:
            self.ufunc(*everything)
        else:
            python_threads.compute(self.ufunc, everything, cores, batch, self.most_threads)


def check_result_array(array: Any, shape: Shape, dtype: str, where: str) -> None:
    """Raise ModelError if an array in ``out=`` cannot hold a result."""
    if not isinstance(array, np.ndarray):
        message, allowed = f"is of type {type(array).__name__}", f"an array of shape {shape}"
        raise ModelError(message, argument="out", where=where, allowed=allowed)
    if array.shape != shape:
        raise ModelError(f"has shape {array.shape}", argument="out", where=where, allowed=f"{shape}, like the result")
    if not np.can_cast(dtype, array.dtype, "same_kind"):
        message = f"has the type {array.dtype}, to which {dtype} cannot be cast"
        raise ModelError(message, argument="out", where=where, allowed=dtype)
    if not array.flags.writeable:
        raise ModelError("is read-only", argument="out", where=where, fix="pass a writable array")


def _core(shape: Shape, size: tuple[int, int]) -> Shape:
    """Return the shape of an array in the machine code, which is unchanged if its axes are those of CasADi's matrix."""
    rows, columns = size
    same = shape in (size, natural_shape(size)) or (columns == 1 and shape == (rows,))
    return shape if same else natural_shape(size)
