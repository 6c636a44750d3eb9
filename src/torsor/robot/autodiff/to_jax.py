"""Robot methods as JAX functions with exact derivatives, evaluated through callbacks on the CPU or GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np

from torsor.base.errors import describe, missing
from torsor.compiler.cuda.device import foreign_stream
from torsor.robot.autodiff.functions import Node, node_of
from torsor.robot.robot import Robot


def to_jax(robot: Robot, name: str, **options: Any) -> Callable[..., Any]:
    """Return a robot method as a function of JAX arrays that can be jitted, mapped and differentiated.

    Inputs are the same as for the method, with any leading axes. Options are the same as for ``robot.derivatives.jvp``:
    ``external=True`` adds external wrenches after the inputs; for ``place``, ``forced`` and ``order`` see
    ``Robot.function``. Derivatives are taken with respect to the components of the positions. Forward and reverse
    derivatives of any order are generated from the traced function (``jax.custom_jvp``). Results have the dtype of the
    inputs. The extra ``jax`` is required.

    The kernels run on the CPU, in float64, through ``jax.pure_callback``. If the robot is on the GPU
    (``robot.to(device="cuda")``), they run on the GPU, in the robot's dtype and on XLA's stream, and no data is copied
    to the host. This uses ``jax.experimental.buffer_callback``, which requires JAX 0.6 or newer and GPU arrays.

    Example:
        >>> import jax
        >>> energy = to_jax(torsor.library.two_link(), "kinetic_energy")
        >>> momenta = jax.grad(energy, argnums=1)(np.zeros(2), np.array([1.0, 0.0]))
        >>> np.asarray(momenta).round(4).tolist()  # the first column of the mass matrix
        [0.4000000059604645, 0.1599999964237213]
    """
    try:
        import jax
    except ImportError:
        raise missing("to_jax needs JAX", "jax") from None
    function = node_of(robot, name, options).wrapped(jax, _wrap_jax)

    def called(*values: Any) -> Any:
        result = function(*values)
        return result[0] if len(result) == 1 else result

    return called


def _wrap_jax(jax: Any, node: Node) -> Callable[..., Any]:
    """Return a node as a function of JAX arrays that returns a tuple."""
    jnp = jax.numpy

    def on_host(*values: Any) -> Any:
        return tuple(item.astype(values[0].dtype) for item in node(*values))

    def on_gpu(context: Any, out: Any, *values: Any) -> None:
        kernel: Any = node.kernel
        xp = kernel.xp
        result = node.call_on(context.stream, [xp.asarray(value) for value in values])
        with foreign_stream(xp, context.stream):
            for goal, item in zip(out, result, strict=True):
                xp.asarray(goal)[...] = item

    def called(*values: Any) -> tuple[Any, ...]:
        batch = node.batch([np.shape(value) for value in values])
        dtype = jnp.result_type(float, *values)
        arrays = [jnp.asarray(value, dtype) for value in values]
        shapes = tuple(jax.ShapeDtypeStruct(batch + shape, dtype) for shape in node.outputs)
        result: tuple[Any, ...]
        if node.device == "cuda":
            result = _buffer_callback()(on_gpu, shapes, vmap_method="expand_dims")(*arrays)
        else:
            result = jax.pure_callback(on_host, shapes, *arrays, vmap_method="expand_dims")
        return result

    def derived(values: Any, tangents: Any) -> Any:
        jacobians = node.jacobian.wrapped(jax, _wrap_jax)(*values)
        count, result = len(node.inputs), []
        for k, shape in enumerate(node.outputs):
            pairs = zip(node.inputs, jacobians[k * count : (k + 1) * count], tangents, strict=True)
            result.append(sum(_times(jnp, J, tangent, core, shape) for core, J, tangent in pairs))
        return function(*values), tuple(result)

    function: Callable[..., Any] = jax.custom_jvp(called)
    function.defjvp(derived)  # type: ignore[attr-defined]
    return function


def _buffer_callback() -> Any:
    try:
        from jax.experimental.buffer_callback import buffer_callback
    except ImportError:
        fix = "install a newer JAX, or use robot.to(device='cpu')"
        message = "this version of JAX has no GPU callbacks"
        text = describe(message, where="torsor.robot.autodiff.to_jax", allowed="0.6 or newer", fix=fix)
        raise ImportError(text) from None
    return buffer_callback


def _times(jnp: Any, J: Any, tangent: Any, core: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return J times the tangent, both with any batch axes, using operations that JAX can transpose."""
    batch = J.shape[: J.ndim - len(core) - len(shape)]
    flat = J.reshape(*batch, int(np.prod(shape)), int(np.prod(core)))
    before = tangent.shape[: tangent.ndim - len(core)]
    change = jnp.einsum("...oi,...i->...o", flat, tangent.reshape(*before, int(np.prod(core))))
    return change.reshape(*change.shape[:-1], *shape)
