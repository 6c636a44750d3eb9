"""A CasADi function evaluated by CasADi's own virtual machine, with NumPy's rules for leading axes.

It is the reference that machine code and exported C are tested against.
"""

import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Shape, real_numbers
from torsor.base.errors import ModelError
from torsor.compiler.cache import Signature, StoredKernel


class VirtualMachine:
    """A CasADi function as a callable on arrays; leading axes are batch axes and broadcast.

    ``inputs`` and ``outputs`` are the shapes of the arrays of one state, whose entries are those of CasADi's matrices
    row by row; by default a scalar has no axis, a column one and any other matrix two.

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
        """The CasADi function that defines it."""
        return self._source.function if isinstance(self._source, StoredKernel) else self._source

    def __call__(self, *values: ArrayLike) -> Any:
        """Evaluate; one array for each input, one array (or a tuple of them) out."""
        results = self.results(*self.check_batch(*values))
        return results[0] if len(results) == 1 else tuple(results)

    def pickled(self, *settings: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what ``__reduce__`` returns: the CasADi function, and further arguments of the class."""
        try:
            return _unpickled, (type(self), self.function.serialize(), *settings)
        except LookupError:
            found = f"{self.signature.name}: its code was stored without the CasADi function, so it cannot be pickled"
            raise pickle.PicklingError(f"{found}; fix: pickle the robot or the problem that it belongs to") from None

    def check_batch(self, *values: ArrayLike) -> tuple[list[Array], Shape]:
        """Return the inputs as arrays and the axes that they broadcast to, or an error that says which one is wrong."""
        if len(values) != len(self.inputs):
            raise TypeError(f"{self.signature.name}: {len(self.inputs)} arguments wanted, {len(values)} given")
        arrays = [self.check_shape(k, real_numbers(value), value) for k, value in enumerate(values)]
        return arrays, self.batch(arrays)

    def check_shape(self, k: int, array: Any, value: Any) -> Any:
        """Return the array that a value of input k became (None if it is no array), or raise an error."""
        where, name, core = self.signature.name, self.signature.names_in[k], self.inputs[k]
        if array is None:
            raise ModelError(argument=name, value=value, where=where, allowed="an array of real numbers")
        if array.ndim < len(core) or array.shape[array.ndim - len(core) :] != core:
            wanted = ", ".join(["...", *map(str, core)])
            raise ModelError(f"has shape {array.shape}", argument=name, value=value, where=where, allowed=f"({wanted})")
        return array

    def batch(self, arrays: Sequence[Array]) -> Shape:
        """Return the leading axes that the inputs broadcast to."""
        shapes = [array.shape[: array.ndim - len(core)] for array, core in zip(arrays, self.inputs, strict=True)]
        if shapes and all(shape == shapes[0] for shape in shapes):
            return shapes[0]
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            names = (f"{self.signature.names_in[k]} {shape}" for k, shape in enumerate(shapes))
            found = f"leading axes do not broadcast: {', '.join(names)}"
            raise ModelError(found, where=self.signature.name, allowed="equal lengths, or 1") from None

    def results(self, arrays: Sequence[Array], batch: Shape) -> list[Array]:
        """Return the outputs for inputs that have been checked."""
        count, columns = math.prod(batch), []
        if count == 0:
            return [np.zeros((*batch, *core)) for core in self.outputs]
        for array, core, (rows, cols) in zip(arrays, self.inputs, self.signature.sizes_in, strict=True):
            states = np.broadcast_to(array, (*batch, *core)).astype(float, copy=False).reshape(count, rows, cols)
            # CasADi maps over blocks of columns, one block for each state.
            columns.append(ca.DM(np.ascontiguousarray(states.transpose(1, 0, 2)).reshape(rows, count * cols)))
        results = (self.function if count == 1 else self.function.map(count)).call(columns)
        found = []
        for result, core, (rows, cols) in zip(results, self.outputs, self.signature.sizes_out, strict=True):
            states = result.full().reshape(rows, count, cols).transpose(1, 0, 2)
            found.append(np.ascontiguousarray(states).reshape((*batch, *core)))
        return found


def _unpickled(kind: Callable[..., Any], text: str, *settings: Any) -> Any:
    return kind(ca.Function.deserialize(text), *settings)
