"""A compiled function that knows its derivatives, which are such functions again: of any order, made when needed."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.compiler import compile
from torsor.dynamics.requests.forms import Named, jacobians, pulled, pushed
from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot

__all__ = ["Node", "node_of"]

Shape = tuple[int, ...]


class Node:
    """A function of arrays with leading batch axes; ``inputs`` and ``outputs`` are the shapes for one state."""

    def __init__(self, function: ca.Function, inputs: Sequence[Shape], outputs: Sequence[Shape], call: Any = None):
        self.function, self.inputs, self.outputs = function, list(inputs), list(outputs)
        self.wrapped: dict[str, Any] = {}  # what frameworks call, by their names
        if call is not None:
            self.kernel = call

    @cached_property
    def kernel(self) -> Callable[..., Any]:
        """The machine code."""
        return compile(self.function, inputs=self.inputs, outputs=self.outputs)

    def __call__(self, *values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Evaluate in float64; always a tuple."""
        found = self.kernel(*(np.asarray(each, dtype=np.float64) for each in values))
        return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))

    def batch(self, shapes: Sequence[Shape]) -> Shape:
        """Return the batch axes that arrays of these shapes have together."""
        if len(shapes) != len(self.inputs):
            names = self.function.name_in()
            allowed = f"{len(names)}, one for each of {', '.join(names)}"
            raise ModelError(describe(f"{self.function.name()}: {len(shapes)} inputs", allowed=allowed))
        batches = [shape[: len(shape) - len(core)] for shape, core in zip(shapes, self.inputs, strict=True)]
        for shape, core in zip(shapes, self.inputs, strict=True):
            if shape[len(shape) - len(core) :] != core:
                found = f"{self.function.name()}: an input of shape {tuple(shape)}"
                raise ModelError(describe(found, allowed=f"(..., {', '.join(map(str, core))})"))
        try:
            return np.broadcast_shapes(*batches)
        except ValueError:
            found = f"{self.function.name()}: inputs have the batch axes {', '.join(map(str, map(tuple, batches)))}"
            raise ModelError(describe(found, allowed="axes that broadcast")) from None

    def _symbols(self) -> tuple[Named, Named]:
        names = self.function.name_in()
        inputs = {name: ca.SX.sym(name, *self.function.size_in(name)) for name in names}
        found = self.function.call(list(inputs.values()))
        return inputs, dict(zip(self.function.name_out(), found, strict=True))

    def _derived(self, kind: str, inputs: Named, outputs: Named, shapes: tuple[list[Shape], list[Shape]]) -> "Node":
        name = f"{self.function.name()}_{kind}"
        values = ca.cse(list(outputs.values()))
        return Node(ca.Function(name, list(inputs.values()), values, list(inputs), list(outputs)), *shapes)

    @cached_property
    def jacobian(self) -> "Node":
        """All derivatives: of each output by each input, of shape output + input."""
        inputs, results = self._symbols()
        shapes = [out + each for out in self.outputs for each in self.inputs]
        return self._derived("jacobian", inputs, jacobians(inputs, results, {}), (self.inputs, shapes))

    @cached_property
    def push(self) -> "Node":
        """Changes of the outputs, from the inputs and their changes."""
        inputs, results = self._symbols()
        tangents, changes = pushed(inputs, results, {})
        return self._derived("push", inputs | tangents, changes, (self.inputs * 2, self.outputs))

    @cached_property
    def pull(self) -> "Node":
        """Gradients by the inputs of the weighted sum of the outputs, from the inputs and the weights."""
        inputs, results = self._symbols()
        weights, gradients = pulled(inputs, results, {})
        return self._derived("pull", inputs | weights, gradients, (self.inputs + self.outputs, self.inputs))


def node_of(robot: Robot, name: str, options: dict[str, Any]) -> Node:
    """Return a method of a robot as such a function."""
    if not isinstance(robot, Robot):
        raise ModelError(describe(f"{robot!r} has no methods to differentiate", allowed="a Robot"))
    kernels = robot.kernels
    request = kernels.request(name, **options)
    shapes = list(request.inputs(robot).values()), list(request.outputs(robot).values())
    return Node(kernels.traced(request), *shapes, call=kernels.exact.compiled(request))
