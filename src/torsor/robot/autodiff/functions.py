"""Compiled functions with derivatives of any order, each compiled on first use."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Shape
from torsor.base.checks import common_shape
from torsor.base.errors import ModelError
from torsor.compiler import compile
from torsor.compiler.cuda.device import foreign_stream
from torsor.dynamics.requests import Named, jacobians, pulled, pushed
from torsor.robot.robot import Robot


class Node:
    """A function of arrays with leading batch axes; ``inputs`` and ``outputs`` are the shapes for one state."""

    def __init__(
        self,
        function: ca.Function,
        inputs: Sequence[Shape],
        outputs: Sequence[Shape],
        call: Any = None,
        dtype: str = "float64",
        device: str = "cpu",
    ):
        self.function, self.inputs, self.outputs = function, list(inputs), list(outputs)
        self.dtype, self.device = dtype, device
        self._wrapped: dict[str, Any] = {}
        if call is not None:
            self.kernel = call

    def wrapped(self, framework: Any, wrap: Callable[[Any, "Node"], Any]) -> Any:
        """Return the node as a function for ``framework`` (the module jax or torch), created once by ``wrap``."""
        name = framework.__name__
        if name not in self._wrapped:
            self._wrapped[name] = wrap(framework, self)
        return self._wrapped[name]

    @cached_property
    def kernel(self) -> Callable[..., Any]:
        """The compiled function."""
        return compile(self.function, self.dtype, self.device, inputs=self.inputs, outputs=self.outputs)

    def call_on(self, stream: int, values: Sequence[Any]) -> tuple[Any, ...]:
        """Evaluate the function on the GPU, on another framework's stream, and return a tuple of CuPy arrays."""
        kernel: Any = self.kernel
        with foreign_stream(kernel.xp, stream):
            result = kernel(*values)
        return result if isinstance(result, tuple) else (result,)

    def __call__(self, *values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Evaluate the function in float64 and return a tuple of arrays."""
        result = self.kernel(*(np.asarray(value, dtype=np.float64) for value in values))
        return tuple(map(np.asarray, result if isinstance(result, tuple) else (result,)))

    def batch(self, shapes: Sequence[Shape]) -> Shape:
        """Return the common batch axes of inputs with these shapes."""
        where, names = self.function.name(), self.function.name_in()
        if len(shapes) != len(self.inputs):
            allowed = f"{len(names)}, one for each of {', '.join(names)}"
            raise ModelError(f"{len(shapes)} inputs", where=where, allowed=allowed)
        batches = {}
        for name, shape, core in zip(names, shapes, self.inputs, strict=True):
            split = len(shape) - len(core)
            if split < 0 or shape[split:] != core:
                allowed = f"(..., {', '.join(map(str, core))})"
                raise ModelError(f"has shape {tuple(shape)}", argument=name, where=where, allowed=allowed)
            batches[name] = tuple(shape[:split])
        return common_shape(where, **batches)

    def _symbols(self) -> tuple[Named, Named]:
        names = self.function.name_in()
        inputs = {name: ca.SX.sym(name, *self.function.size_in(name)) for name in names}
        result = self.function.call(list(inputs.values()))
        return inputs, dict(zip(self.function.name_out(), result, strict=True))

    def _derive(self, kind: str, inputs: Named, outputs: Named, shapes: tuple[list[Shape], list[Shape]]) -> "Node":
        name = f"{self.function.name()}_{kind}"
        values = ca.cse(list(outputs.values()))
        function = ca.Function(name, list(inputs.values()), values, list(inputs), list(outputs))
        return Node(function, *shapes, dtype=self.dtype, device=self.device)

    @cached_property
    def jacobian(self) -> "Node":
        """Node for the derivative, of shape output + input, of each output with respect to each input."""
        inputs, results = self._symbols()
        shapes = [out + input_ for out in self.outputs for input_ in self.inputs]
        return self._derive("jacobian", inputs, jacobians(inputs, results, {}), (self.inputs, shapes))

    @cached_property
    def push(self) -> "Node":
        """Node that maps inputs and their tangents to the tangents of the outputs (Jacobian-vector product)."""
        inputs, results = self._symbols()
        tangents, changes = pushed(inputs, results, {})
        return self._derive("push", inputs | tangents, changes, (self.inputs * 2, self.outputs))

    @cached_property
    def pull(self) -> "Node":
        """Node for the input gradients of a weighted sum of the outputs (vector-Jacobian product)."""
        inputs, results = self._symbols()
        weights, gradients = pulled(inputs, results, {})
        return self._derive("pull", inputs | weights, gradients, (self.inputs + self.outputs, self.inputs))


def node_of(robot: Robot, name: str, options: dict[str, Any]) -> Node:
    """Return a robot method as a node."""
    if not isinstance(robot, Robot):
        raise ModelError(f"robot is {robot!r}", value=robot, allowed="a Robot")
    kernels = robot.kernels
    request = kernels.request(name, **options)
    shapes = list(request.inputs(robot).values()), list(request.outputs(robot).values())
    if robot.target.device == "cuda":
        call = kernels.compiled(request)
        return Node(kernels.traced(request), *shapes, call=call, dtype=robot.target.dtype, device="cuda")
    return Node(kernels.traced(request), *shapes, call=kernels.exact.compiled(request))
