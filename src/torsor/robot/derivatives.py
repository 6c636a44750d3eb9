"""Derivatives of every algorithm: directional (jvp), transposed (vjp), and results without structural zeros."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array
from torsor.base.checks import one_of
from torsor.base.errors import ModelError
from torsor.dynamics import ALGORITHMS, Request
from torsor.mechanism import Mechanism
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.inputs import check_inputs
from torsor.robot.kernels import Out, RequestShapes, RobotKernels

Results = Array | tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Sparse:
    """Sparse matrices with one pattern: ``values`` (..., nnz) at ``rows`` and ``columns`` (nnz,) of ``shape``.

    Entries are ordered column by column. Of a result with more than two axes, such as the reactions (L, 6, nv), all
    axes but the last are the rows.
    """

    values: Array
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    shape: tuple[int, int]

    def __repr__(self) -> str:
        many = f", {self.values.shape[:-1]} of them" if self.values.ndim > 1 else ""
        return f"<Sparse {self.shape[0]} x {self.shape[1]}, {self.rows.size} entries{many}>"

    def dense(self) -> Array:
        """Return the matrices (..., rows, columns) with their zeros.

        Example:
            >>> Sparse(np.array([5.0]), np.array([0]), np.array([1]), (1, 2)).dense().tolist()
            [[0.0, 5.0]]
        """
        # An array of the kind of the values, which may be on a card.
        full: Array = np.zeros_like(self.values, shape=(*self.values.shape[:-1], *self.shape))
        full[..., self.rows, self.columns] = self.values
        return full


class Loads(NamedTuple):
    """External wrenches as callers give them: ``external`` and its rate (..., L, 6), ``points`` (..., L, 3)."""

    external: ArrayLike | None = None
    fixed_in: str = "link"
    points: ArrayLike | None = None
    external_rate: ArrayLike | None = None

    def given(self, robot: Mechanism, name: str) -> tuple[str, list[ArrayLike]]:
        """Return where the wrenches are fixed while q changes, and the arrays that an algorithm takes for them."""
        one_of(self.fixed_in, ("link", "world"), robot.name, "fixed_in")
        if self.points is not None and (self.external is None or self.fixed_in == "link"):
            fix = "give external, and fixed_in='world'"
            raise ModelError(
                "without wrenches that are fixed in the world", argument="points", where=robot.name, fix=fix
            )
        if self.external is None and self.external_rate is None:
            return "", []
        if ALGORITHMS[name].rates:
            still = np.zeros((len(robot.links), 6))
            return "link", [still if each is None else each for each in (self.external, self.external_rate)]
        if self.external is None:
            raise ModelError(f"{name} takes no external_rate", where=robot.name)
        if self.points is not None:
            return "point", [self.external, self.points]
        return (self.fixed_in if ALGORITHMS[name].keeps else "link"), [self.external]


def derivatives(
    kernels: RobotKernels,
    name: str,
    values: tuple[ArrayLike, ...],
    external: ArrayLike | None,
    fixed_in: str,
    points: ArrayLike | None,
    out: Out,
    **options: Any,
) -> tuple[Array, Array, Array]:
    """Return the three results of an algorithm of derivatives, under external wrenches."""
    if external is None and points is None and type(fixed_in) is str and fixed_in == "link" and not options:
        found: Any = kernels.call(name, *values, out=out)
    else:
        found = _loaded(kernels, name, values, Loads(external, fixed_in, points), options, out)
    three: tuple[Array, Array, Array] = found
    return three


def rates(
    kernels: RobotKernels,
    name: str,
    values: tuple[ArrayLike, ...],
    higher: Iterable[ArrayLike],
    external: ArrayLike | None,
    external_rate: ArrayLike | None,
    out: Out,
) -> tuple[Array, ...]:
    """Return a result with its rates in time: one for the last of ``values``, and one for each of ``higher``."""
    if type(higher) is tuple and not higher and external is None and external_rate is None:
        found: Any = kernels.call(name, *values, out=out)
    elif isinstance(higher, str) or not isinstance(higher, Iterable):
        text = f"of {name} is {higher!r}"
        raise ModelError(
            text, argument="higher", value=higher, where=kernels.mechanism.name, allowed="a list of arrays (..., nv)"
        )
    else:
        more, loads = tuple(higher), Loads(external, external_rate=external_rate)
        found = _loaded(kernels, name, (*values, *more), loads, {"order": 1 + len(more)}, out)
    results: tuple[Array, ...] = found
    return results


def _loaded(
    kernels: RobotKernels, name: str, values: tuple[ArrayLike, ...], loads: Loads, options: dict[str, Any], out: Out
) -> Any:
    keeps, given = loads.given(kernels.mechanism, name)
    return kernels.compiled(kernels.request(name, external=keeps, **options))(*values, *given, out=out)


def jvp(
    closure: LoopClosure,
    name: str,
    inputs: Sequence[ArrayLike],
    tangents: Sequence[ArrayLike | None],
    components: bool,
    options: dict[str, Any],
    out: Out = None,
) -> tuple[Results, Results]:
    """Return (value, directional derivative) of an algorithm; see ``Robot.jvp``."""
    request = closure.kernels.request(name, **options, form="jvp", components=components)
    changes = _check_inputs(closure, request, inputs).tangents
    check_count(closure.mechanism, name, "tangents", tangents, changes)
    pairs = zip(tangents, changes.values(), strict=True)
    given = [np.zeros(shape) if each is None else each for each, shape in pairs]
    found = closure.kernels.compiled(request)(*inputs, *given, out=out)
    half = len(found) // 2
    return _single_or_tuple(found[:half]), _single_or_tuple(found[half:])


def vjp(
    closure: LoopClosure,
    name: str,
    inputs: Sequence[ArrayLike],
    cotangents: ArrayLike | Sequence[ArrayLike],
    components: bool,
    options: dict[str, Any],
    out: Out = None,
) -> tuple[Results, tuple[Array, ...]]:
    """Return (value, gradients of the sum of cotangents times results) of an algorithm; see ``Robot.vjp``."""
    request = closure.kernels.request(name, **options, form="vjp", components=components)
    results = _check_inputs(closure, request, inputs).results
    count = len(results)
    weights: Any = [cotangents] if count == 1 else cotangents
    check_count(closure.mechanism, name, "cotangents", weights, results)
    found = closure.kernels.compiled(request)(*inputs, *weights, out=out)
    return _single_or_tuple(found[:count]), tuple(found[count:])


def sparse(
    closure: LoopClosure, name: str, inputs: Sequence[ArrayLike], options: dict[str, Any]
) -> Sparse | tuple[Sparse, ...]:
    """Return the results of an algorithm without their structural zeros; see ``Robot.sparse``."""
    kernels = closure.kernels
    request = kernels.request(name, **options, form="sparse")
    _check_inputs(closure, request, inputs)
    found = kernels.compiled(request)(*inputs)
    values = found if isinstance(found, tuple) else (found,)
    patterns = kernels.once(("patterns", request), lambda: _patterns(kernels.traced(request.plain)))
    parts = [Sparse(each, *pattern) for each, pattern in zip(values, patterns, strict=True)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _check_inputs(closure: LoopClosure, request: Request, inputs: Sequence[ArrayLike]) -> RequestShapes:
    """Return the shapes of a request, or raise ModelError for another number of inputs or an impossible state."""
    shapes = closure.kernels.shapes(request)
    check_count(closure.mechanism, request.name, "inputs", inputs, shapes.arguments)
    check_inputs(closure, request, inputs)
    return shapes


def _patterns(function: ca.Function) -> list[tuple[Any, Any, tuple[int, int]]]:
    """Return rows, columns and shape of each result of a function."""
    found = []
    for k in range(function.n_out()):
        sparsity = function.sparsity_out(k)
        rows, columns = (np.array(each, dtype=np.intp) for each in sparsity.get_triplet())
        found.append((rows, columns, sparsity.shape))
    return found


def check_count(mechanism: Mechanism, name: str, what: str, given: Sequence[Any], wanted: dict[str, Any]) -> None:
    """Raise ModelError if the number of arrays is not the one that an algorithm takes."""
    if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != len(wanted):
        count = len(given) if hasattr(given, "__len__") else given
        allowed = f"{len(wanted)}, one for each of {', '.join(wanted)}"
        raise ModelError(f"{count} {what} of {name}", where=mechanism.name, allowed=allowed)


def _single_or_tuple(results: tuple[Array, ...]) -> Results:
    return results[0] if len(results) == 1 else tuple(results)
