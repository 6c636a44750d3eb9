"""Derivatives of every method: along a direction, pulled back, and what of a result is not zero by structure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics import ALGORITHMS, Request
from torsor.errors import ModelError, describe
from torsor.mechanism import Mechanism
from torsor.robot.computing import Computing

__all__ = ["Differentiable", "Loads", "Sparse"]

Array = NDArray[np.float64]
Results = Array | tuple[Array, ...]
Pattern = tuple[NDArray[np.intp], NDArray[np.intp], tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Sparse:
    """A matrix, or many with one pattern: ``values`` (..., nnz) stand at ``rows`` and ``columns`` (nnz,) of ``shape``.

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
        full = np.zeros((*self.values.shape[:-1], *self.shape), self.values.dtype)
        full[..., self.rows, self.columns] = self.values
        return full


class Loads(NamedTuple):
    """External wrenches, as a caller gives them: arrays (..., L, 6), (..., L, 6) and (..., L, 3)."""

    external: ArrayLike | None = None
    fixed_in: str = "link"
    points: ArrayLike | None = None
    external_rate: ArrayLike | None = None

    def given(self, robot: Mechanism, name: str) -> tuple[str, list[ArrayLike]]:
        """Return what they keep while q changes, and the arrays that an algorithm takes for them; or refuse."""
        if not isinstance(self.fixed_in, str) or self.fixed_in not in ("link", "world"):
            raise ModelError(describe(f"fixed_in is {self.fixed_in!r}", where=robot.name, allowed="'link' or 'world'"))
        if self.points is not None and (self.external is None or self.fixed_in == "link"):
            fix = "give external, and fixed_in='world'"
            raise ModelError(describe("points without wrenches that are fixed in the world", where=robot.name, fix=fix))
        if self.external is None and self.external_rate is None:
            return "", []
        if ALGORITHMS[name].rates:
            still = np.zeros((len(robot.links), 6))
            return "link", [still if each is None else each for each in (self.external, self.external_rate)]
        if self.external is None:
            raise ModelError(describe(f"{name} takes no external_rate", where=robot.name))
        if self.points is not None:
            return "point", [self.external, self.points]
        return (self.fixed_in if ALGORITHMS[name].keeps else "link"), [self.external]


class Differentiable(Computing):
    """A robot whose methods, all of them, have derivatives along directions."""

    def jvp(
        self,
        name: str,
        inputs: Sequence[ArrayLike],
        tangents: Sequence[ArrayLike | None],
        *,
        components: bool = False,
        **options: Any,
    ) -> tuple[Results, Results]:
        """Return (value, derivative along the tangents) of the method ``name`` at its inputs.

        ``tangents`` are small changes of the inputs, None for one that stays. That of q is (..., nv), along
        ``integrate``, or (..., nq) with ``components=True``. Methods with several results give tuples. External
        wrenches are the last inputs where ``external=True`` is given; ``place``, ``forced`` and ``order`` are those of
        ``function``. Forward differentiation: about three times the operations of the method itself.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> tau, change = robot.jvp("gravity_force", ([0.1, 0.2],), ([1.0, 0.0],))
            >>> tau.tolist() == robot.gravity_force([0.1, 0.2]).tolist()
            True
        """
        request = self._request(name, **options, form="jvp", components=components)
        arguments, changes, _ = self._shapes_of(request)
        self._counted(name, "inputs", inputs, arguments)
        self._check_inputs(name, inputs)
        self._counted(name, "tangents", tangents, changes)
        pairs = zip(tangents, changes.values(), strict=True)
        given = [np.zeros(shape) if each is None else each for each, shape in pairs]
        found = self._kernel(request)(*inputs, *given)
        half = len(found) // 2
        return _unpacked(found[:half]), _unpacked(found[half:])

    def vjp(
        self,
        name: str,
        inputs: Sequence[ArrayLike],
        cotangents: ArrayLike | Sequence[ArrayLike],
        *,
        components: bool = False,
        **options: Any,
    ) -> tuple[Results, tuple[Array, ...]]:
        """Return (value, gradients): of the sum of cotangents times results of the method ``name``, by each input.

        ``cotangents`` has the shape of the result, or is a tuple of such for several results. The gradient by q is
        (..., nv), along ``integrate``, or (..., nq) with ``components=True``. Options as in ``jvp``, whose adjoint this
        is. Reverse differentiation: about four times the operations of the method itself.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> energy, (dq, dv) = robot.vjp("kinetic_energy", ([0.1, 0.2], [1.0, 2.0]), 1.0)
            >>> bool(np.allclose(dv, robot.mass_matrix([0.1, 0.2]) @ [1.0, 2.0]))  # the momenta
            True
        """
        request = self._request(name, **options, form="vjp", components=components)
        arguments, _, results = self._shapes_of(request)
        count = len(results)
        weights: Any = [cotangents] if count == 1 else cotangents
        self._counted(name, "inputs", inputs, arguments)
        self._check_inputs(name, inputs)
        self._counted(name, "cotangents", weights, results)
        found = self._kernel(request)(*inputs, *weights)
        return _unpacked(found[:count]), tuple(found[count:])

    def sparse(self, name: str, *inputs: ArrayLike, **options: Any) -> Sparse | tuple[Sparse, ...]:
        """Return the result of the method ``name``, a matrix or several, without its structural zeros.

        Forces do not depend on what happens on other branches of the tree: large robots have many such zeros, and
        solvers take values with a pattern. Options as in ``jvp``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.random_tree(20, seed=2, types=("revolute",), extras=False)
            >>> M = robot.sparse("mass_matrix", np.zeros(20))
            >>> M.values.size < 400, bool(np.allclose(M.dense(), robot.mass_matrix(np.zeros(20))))
            (True, True)
        """
        request = self._request(name, **options, form="sparse")
        self._counted(name, "inputs", inputs, self._shapes_of(request)[0])
        self._check_inputs(name, inputs)
        found = self._kernel(request)(*inputs)
        if request not in self._patterns:
            self._patterns[request] = self._pattern(request)
        patterns = self._patterns[request]
        parts = [Sparse(values, *pattern) for values, pattern in zip(_packed(found), patterns, strict=True)]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _check_inputs(self, name: str, inputs: Sequence[ArrayLike]) -> None:
        """Refuse inputs for which the method has no result; robots with loops do."""

    @cached_property
    def _patterns(self) -> dict[Request, list[Pattern]]:
        return {}

    def _pattern(self, request: Request) -> list[Pattern]:
        function = self._function(request.plain)
        sparsities = [function.sparsity_out(k) for k in range(function.n_out())]
        found = []
        for sparsity in sparsities:
            rows, columns = (np.array(each, dtype=np.intp) for each in sparsity.get_triplet())
            found.append((rows, columns, sparsity.shape))
        return found

    def _counted(self, name: str, what: str, given: Sequence[Any], wanted: dict[str, Any]) -> None:
        if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != len(wanted):
            count = len(given) if hasattr(given, "__len__") else given
            allowed = f"{len(wanted)}, one for each of {', '.join(wanted)}"
            raise ModelError(describe(f"{count} {what} of {name}", where=self.name, allowed=allowed))


def _packed(results: Results) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


def _unpacked(results: tuple[Array, ...]) -> Results:
    return results[0] if len(results) == 1 else tuple(results)
