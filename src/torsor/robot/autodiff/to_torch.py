"""Robot methods as PyTorch functions with exact derivatives."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from torsor.base.errors import missing
from torsor.robot.autodiff.functions import Node, node_of
from torsor.robot.robot import Robot


def to_torch(robot: Robot, name: str, **options: Any) -> Callable[..., Any]:
    """Return a robot method as a differentiable function of PyTorch tensors.

    For inputs and options see ``to_jax``. The kernels run on the CPU, in float64. If the robot is on the GPU
    (``robot.to(device="cuda")``), they run on the GPU, in the robot's dtype and on PyTorch's current stream, and
    tensors on that GPU are not copied. Results have the dtype and device of the inputs.

    The function is a ``torch.autograd.Function``, differentiable to any order. It supports ``backward``,
    ``torch.func.grad``, ``jvp``, ``vmap`` and ``hessian``. The extra ``torch`` is required.

    Example:
        >>> import torch
        >>> energy = to_torch(torsor.library.two_link(), "kinetic_energy")
        >>> v = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
        >>> energy(torch.zeros(2, dtype=torch.float64), v).backward()
        >>> v.grad.numpy().round(9).tolist()  # the first column of the mass matrix
        [0.4, 0.16]
    """
    try:
        import torch
    except ImportError:
        raise missing("to_torch needs PyTorch", "torch") from None
    node = node_of(robot, name, options)
    function = node.wrapped(torch, _wrap_torch)

    def called(*values: Any) -> Any:
        node.batch([tuple(np.shape(value)) for value in values])
        tensors = [x for x in values if isinstance(x, torch.Tensor)] or [torch.zeros(0, dtype=torch.float64)]
        like, types = tensors[0], [tensor.dtype for tensor in tensors if tensor.dtype.is_floating_point]
        dtype = reduce(torch.promote_types, types) if types else torch.get_default_dtype()
        result = function.apply(*(torch.as_tensor(value, dtype=dtype, device=like.device) for value in values))
        return result[0] if len(result) == 1 else result

    return called


def _wrap_torch(torch: Any, node: Node) -> Any:
    """Return a node as an autograd function; its derivatives are wrapped when first used."""

    class Wrapped(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(*values: Any) -> tuple[Any, ...]:
            like = {"dtype": values[0].dtype, "device": values[0].device}
            if node.device == "cuda":
                arrays = node.call_on(torch.cuda.current_stream().cuda_stream, [value.detach() for value in values])
                return tuple(torch.from_dlpack(array).to(**like) for array in arrays)
            # NumPy lacks some PyTorch dtypes, such as bfloat16.
            result = node(*(value.detach().to("cpu", torch.float64).numpy() for value in values))
            return tuple(torch.as_tensor(item, **like) for item in result)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *weights: Any) -> Any:
            values = ctx.saved_tensors
            gradients = node.pull.wrapped(torch, _wrap_torch).apply(*values, *weights)
            # The gradient of a broadcast input is the sum over the axes along which it was repeated.
            return tuple(gradient.sum_to_size(value.shape) for gradient, value in zip(gradients, values, strict=True))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            values = ctx.saved_tensors
            directions = [torch.zeros_like(v) if t is None else t for v, t in zip(values, tangents, strict=True)]
            return node.push.wrapped(torch, _wrap_torch).apply(*values, *directions)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *values: Any) -> Any:
            # The mapped axis comes first; axes of length 1 follow it if an input has fewer batch axes.
            moved = [v if d is None else v.movedim(d, 0) for v, d in zip(values, in_dims, strict=True)]
            cores = [len(core) for core in node.inputs]
            ranks = [m.dim() - c - (d is not None) for m, c, d in zip(moved, cores, in_dims, strict=True)]
            ready = [
                m if d is None else m.reshape(m.shape[0], *[1] * (max(ranks) - r), *m.shape[1:])
                for m, r, d in zip(moved, ranks, in_dims, strict=True)
            ]
            result = Wrapped.apply(*ready)
            return result, tuple(0 for _ in result)

    return Wrapped
