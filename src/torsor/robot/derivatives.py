"""Derivatives of robot methods (the accessor ``robot.derivatives``): analytical, directional and adjoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import one_of
from torsor.base.errors import ModelError, listing
from torsor.dynamics import ALGORITHMS, Request
from torsor.mechanism import Mechanism
from torsor.mechanism.free import Free
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.inputs import check_inputs
from torsor.robot.kernels import Out, Place, RequestShapes, RobotKernels, Values
from torsor.robot.method_names import Accessor

Results = Array | tuple[Array, ...]
Two = tuple[Array, Array]
Three = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Sparse:
    """Sparse matrices with a common pattern: ``values`` (..., nnz) at ``rows`` and ``columns`` (nnz,) of ``shape``.

    Entries are ordered by column. If a result has more than two axes, such as the reactions (L, 6, nv), all axes but
    the last form the rows.
    """

    values: Array
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    shape: tuple[int, int]

    def __repr__(self) -> str:
        many = f", {self.values.shape[:-1]} of them" if self.values.ndim > 1 else ""
        return f"<Sparse {self.shape[0]} x {self.shape[1]}, {self.rows.size} entries{many}>"

    def dense(self) -> Array:
        """Return the dense matrices (..., rows, columns).

        Example:
            >>> Sparse(np.array([5.0]), np.array([0]), np.array([1]), (1, 2)).dense().tolist()
            [[0.0, 5.0]]
        """
        # The result is on the device of the values, which may be a GPU.
        full: Array = np.zeros_like(self.values, shape=(*self.values.shape[:-1], *self.shape))
        full[..., self.rows, self.columns] = self.values
        return full


class Loads(NamedTuple):
    """External wrenches as passed by the caller: ``external`` and its rate (..., L, 6), ``points`` (..., L, 3)."""

    external: Maybe = None
    fixed_in: str = "link"
    points: Maybe = None
    external_rate: Maybe = None

    def given(self, robot: Mechanism, name: str) -> tuple[str, list[ArrayLike]]:
        """Return the axes in which the wrenches are constant while q changes, and the arrays for the algorithm."""
        one_of(self.fixed_in, ("link", "world"), robot.name, "fixed_in")
        if self.points is not None and (self.external is None or self.fixed_in == "link"):
            fix = "pass external, and fixed_in='world'"
            message = "needs wrenches that are fixed in the world"
            raise ModelError(message, argument="points", where=robot.name, fix=fix)
        if self.external is None and self.external_rate is None:
            return "", []
        if ALGORITHMS[name].rates:
            still = np.zeros((len(robot.links), 6))
            return "link", [still if item is None else item for item in (self.external, self.external_rate)]
        if self.external is None:
            raise ModelError(f"{name} takes no external_rate", where=robot.name)
        if self.points is not None:
            return "point", [self.external, self.points]
        return (self.fixed_in if ALGORITHMS[name].keeps else "link"), [self.external]


def rates(
    kernels: RobotKernels,
    name: str,
    values: Values,
    higher: Iterable[ArrayLike],
    external: Maybe,
    external_rate: Maybe,
    out: Out,
) -> tuple[Array, ...]:
    """Return the result of an algorithm at ``values`` (q, v, a, j), and 1 + len(``higher``) time derivatives of it."""
    if type(higher) is tuple and not higher and external is None and external_rate is None:
        result: Any = kernels.call(name, *values, out=out)
    elif isinstance(higher, str) or not isinstance(higher, Iterable):
        message, where, allowed = f"of {name} is {higher!r}", kernels.mechanism.name, "a list of arrays (..., nv)"
        raise ModelError(message, argument="higher", value=higher, where=where, allowed=allowed)
    else:
        more, loads = tuple(higher), Loads(external, external_rate=external_rate)
        result = loaded(kernels, name, (*values, *more), loads, {"order": 1 + len(more)}, out)
    return tuple(result)


def loaded(kernels: RobotKernels, name: str, values: Values, loads: Loads, options: dict[str, Any], out: Out) -> Any:
    """Return the results of an algorithm under external wrenches."""
    keeps, arrays = loads.given(kernels.mechanism, name)
    return kernels.compiled(kernels.request(name, external=keeps, **options))(*values, *arrays, out=out)


def _patterns(function: ca.Function) -> list[tuple[Any, Any, tuple[int, int]]]:
    result = []
    for k in range(function.n_out()):
        sparsity = function.sparsity_out(k)
        rows, columns = (np.array(item, dtype=np.intp) for item in sparsity.get_triplet())
        result.append((rows, columns, sparsity.shape))
    return result


def check_count(mechanism: Mechanism, name: str, what: str, arrays: Sequence[Any], expected: dict[str, Any]) -> None:
    """Raise ModelError if the number of arrays is not the number of inputs of an algorithm."""
    if isinstance(arrays, str) or not hasattr(arrays, "__len__") or len(arrays) != len(expected):
        count = len(arrays) if hasattr(arrays, "__len__") else arrays
        allowed = f"{len(expected)}, one for each of {', '.join(expected)}"
        raise ModelError(f"{name} got {count} {what}", where=mechanism.name, allowed=allowed)


def check_numbers(mechanism: Mechanism, free: Sequence[Free], inputs: Sequence[ArrayLike]) -> None:
    """Raise ModelError if p, the last input, does not have one entry per free parameter."""
    shape = np.shape(inputs[-1]) if isinstance(inputs, Sequence) and inputs else (0,)
    if shape[-1:] != (len(free),):
        allowed = f"(..., {len(free)}), one for each of {listing((parameter.name for parameter in free), most=4)}"
        raise ModelError(f"p has shape {shape}", where=mechanism.name, allowed=allowed)


def _single_or_tuple(results: tuple[Array, ...]) -> Results:
    return results[0] if len(results) == 1 else tuple(results)


@dataclass(frozen=True, eq=False, repr=False)
class Derivatives(Accessor):
    """Derivatives of the robot methods with the same names: ``robot.derivatives``.

    ``jerk`` differentiates ``robot.task.jerk``. The arguments are the same as for the method. The result is a tuple
    with one array per variable, in the order of the arguments; ``hessian``, ``jvp``, ``vjp`` and ``sparse`` differ.
    Rows are the components of the result, columns the coordinates of the variable. The derivative with
    respect to q is along ``integrate``: moving q to integrate(q, d) changes the result by dq d.
    """

    _closure: LoopClosure
    _free: tuple[Free, ...] = ()  # parameters of a parametric robot, the last input of jvp, vjp and sparse

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: Maybe = None,
        fixed_in: str = "link",
        points: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of tau = ID(q, v, a), each (..., nv, nv), one row per force.

        da is the mass matrix. External wrenches are in link axes at link origins. While q changes, they are constant in
        the link (``fixed_in="link"``) or in the world (``fixed_in="world"``). If they are constant in the world, the
        force acts at the link's origin or at ``points`` (..., L, 3) in link axes, such as centres of mass, and the
        remaining moment is a couple.

        The recursion takes O(n x depth) operations. It covers every joint type, rotors, springs and friction except
        the jump of Coulomb friction at rest. See Barman 2020, chapter III, and Singh, Russell and Wensing 2022.

        Example:
            >>> robot = torsor.library.two_link()
            >>> dq, dv, da = robot.derivatives.inverse_dynamics([0.0, np.pi / 2], [1.0, 2.0], [0.0, 0.0])
            >>> dv.round(9).tolist()
            [[-0.16, -0.24], [0.08, 0.0]]
            >>> bool((da == robot.mass_matrix([0.0, np.pi / 2])).all())
            True
        """
        return self._three("inverse_dynamics_derivatives", (q, v, a), external, fixed_in, points, out)

    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        external: Maybe = None,
        fixed_in: str = "link",
        points: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, dtau) of a = FD(q, v, tau), each (..., nv, nv), one row per acceleration.

        They are -M^-1 d ID/dq, -M^-1 d ID/dv and M^-1, where ID is differentiated at the computed acceleration.
        For ``fixed_in`` and ``points`` see ``inverse_dynamics``.

        Example:
            >>> robot = torsor.library.two_link()
            >>> dq, dv, dtau = robot.derivatives.forward_dynamics([0.0, 0.5], [1.0, 2.0], [0.1, 0.2])
            >>> bool(np.allclose(dtau @ robot.mass_matrix([0.0, 0.5]), np.eye(2), atol=1e-12))
            True
        """
        return self._three("forward_dynamics_derivatives", (q, v, tau), external, fixed_in, points, out)

    def joint_wrenches(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        external: Maybe = None,
        fixed_in: str = "link",
        points: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of the joint reactions, each (..., L, 6, nv).

        Rows are (moment, force) of the reaction in link axes at the link's origin; columns are the coordinates of the
        variable. See Barman 2020, chapter III. For ``fixed_in`` and ``points`` see ``inverse_dynamics``.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> dq, dv, da = robot.derivatives.joint_wrenches([0.0], [1.0], [0.0])
            >>> dv[0, :, 0].round(9).tolist()  # the centrifugal force 3 v^2 along the rod
            [0.0, 0.0, 0.0, -6.0, 0.0, 0.0]
        """
        return self._three("joint_wrench_derivatives", (q, v, a), external, fixed_in, points, out)

    def hybrid_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        tau: ArrayLike,
        forced: Sequence[str],
        external: Maybe = None,
        fixed_in: str = "link",
        points: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, dgiven), each (..., nv, nv), of the results of ``hybrid_dynamics``.

        Row k is the computed quantity of coordinate k: its acceleration if it is ``forced``, otherwise its force.
        Columns of dgiven are the given quantities: forces of forced coordinates, accelerations of the others. If no
        coordinate is forced, this is ``inverse_dynamics``; if all are, it is ``forward_dynamics``. For ``fixed_in`` and
        ``points`` see ``inverse_dynamics``.

        Example:
            >>> robot = torsor.library.two_link()
            >>> state = [0.0, 0.5], [1.0, 2.0], [0.0, 3.0], [0.1, 0.0]
            >>> dq, dv, dgiven = robot.derivatives.hybrid_dynamics(*state, forced=["joint1"])
            >>> bool(np.isclose(dgiven[0, 0], 1 / robot.mass_matrix([0.0, 0.5])[0, 0]))
            True
        """
        values = q, v, a, tau
        return self._three("hybrid_dynamics_derivatives", values, external, fixed_in, points, out, forced=forced)

    def velocity(
        self, q: ArrayLike, v: ArrayLike, place: Place, axes: str = "local", point: Maybe = None, out: Out = None
    ) -> Two:
        """Return the derivatives (dq, dv) of ``velocity``, each (..., 6, nv), with rows (omega, v).

        The derivatives are those of the components in the requested axes. dq is along ``integrate``. dv is the Jacobian
        J. In the place's own axes, J is also the derivative of the pose: a small step d moves the place by J d.

        Example:
            >>> dq, dv = torsor.library.two_link().derivatives.velocity([0.0, 0.0], [1.0, 0.0], "link2")
            >>> dq[3].round(9).tolist(), dv[4].round(9).tolist()
            ([0.0, 0.4], [0.8, 0.4])
        """
        result: Any = self._closure.kernels.at_place("velocity_derivatives", (q, v), place, axes, point, out)
        return result[0], result[1]

    def acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        place: Place,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
    ) -> Three:
        """Return the derivatives (dq, dv, da) of ``acceleration``, each (..., 6, nv), as in ``velocity``.

        Example:
            >>> robot = torsor.library.two_link()
            >>> dq, dv, da = robot.derivatives.acceleration([0.0, 0.0], [1.0, 0.0], [0.0, 0.0], "link2")
            >>> dv[3].round(9).tolist()  # the acceleration is -0.4 v1^2 - 0.4 (v1 + v2)^2
            [-1.6, -0.8]
        """
        result: Any = self._closure.kernels.at_place("acceleration_derivatives", (q, v, a), place, axes, point, out)
        return result[0], result[1], result[2]

    def jerk(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        j: ArrayLike,
        place: Place,
        axes: str = "local",
        point: Maybe = None,
        out: Out = None,
    ) -> tuple[Array, Array, Array, Array]:
        """Return the derivatives (dq, dv, da, dj) of ``robot.task.jerk``, each (..., 6, nv), as in ``velocity``.

        Example:
            >>> robot, still = torsor.library.two_link(), [0.0, 0.0]
            >>> dq, dv, da, dj = robot.derivatives.jerk(still, [1.0, 0.0], still, still, "link1")
            >>> bool(np.allclose(dj, robot.jacobian(still, "link1"))), da[3].round(9).tolist()
            (True, [-1.2, 0.0])
        """
        result: Any = self._closure.kernels.at_place("jerk_derivatives", (q, v, a, j), place, axes, point, out)
        return result[0], result[1], result[2], result[3]

    def hessian(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, weight: ArrayLike, external: Maybe = None, out: Out = None
    ) -> Array:
        """Return the second derivatives (..., 3 nv, 3 nv) of weight . ID(q, v, a) with respect to (q, v, a).

        ``weight`` (..., nv) contains multipliers of the forces, as in the Hessian of a Lagrangian or in differential
        dynamic programming. The result is the Hessian of u -> weight . ID(integrate(q, u_q), v + u_v, a + u_a) at u =
        0, so it is symmetric for every joint type. External wrenches are fixed in their links. The blocks (v, a) and
        (a, a) are zero; (a, q) is the derivative of M(q) weight. The recursion takes O(n x depth) operations.

        Example:
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> H = robot.derivatives.hessian([0.0], [1.0], [0.0], [2.0])  # of 2 (4 a + 29.43 cos(q))
            >>> H.shape, float(H[0, 0].round(9))
            ((3, 3), -58.86)
        """
        return self._closure.kernels.call("inverse_dynamics_hessian", q, v, a, weight, external=external, out=out)

    def jvp(
        self,
        name: str,
        inputs: Sequence[ArrayLike],
        tangents: Sequence[Maybe],
        *,
        components: bool = False,
        out: Out = None,
        **options: Any,
    ) -> tuple[Results, Results]:
        """Return (value, derivative along the tangents) of the algorithm ``name`` at its inputs.

        ``tangents`` are the directions of the inputs; None means zero. The tangent of q is (..., nv), along
        ``integrate``, or (..., nq) if ``components=True``. Methods with several results return tuples. With
        ``external=True``, external wrenches are the last inputs; for other ``options`` see ``Robot.function``. ``out``
        lists arrays for the values, then for the derivatives. Forward mode takes about three times as long as the
        method.

        Example:
            >>> robot = torsor.library.two_link()
            >>> tau, change = robot.derivatives.jvp("gravity_force", ([0.1, 0.2],), ([1.0, 0.0],))
            >>> tau.tolist() == robot.gravity_force([0.1, 0.2]).tolist()
            True
        """
        request, shapes = self._checked(name, inputs, form="jvp", components=components, **options)
        check_count(self._closure.mechanism, name, "tangents", tangents, shapes.tangents)
        pairs = zip(tangents, shapes.tangents.values(), strict=True)
        directions = [np.zeros(shape) if item is None else item for item, shape in pairs]
        result = self._closure.kernels.compiled(request)(*inputs, *directions, out=out)
        half = len(result) // 2
        return _single_or_tuple(result[:half]), _single_or_tuple(result[half:])

    def vjp(
        self,
        name: str,
        inputs: Sequence[ArrayLike],
        cotangents: ArrayLike | Sequence[ArrayLike],
        *,
        components: bool = False,
        out: Out = None,
        **options: Any,
    ) -> tuple[Results, tuple[Array, ...]]:
        """Return (value, gradients) of the algorithm ``name``: gradients of the scalar product of cotangents and value.

        There is one gradient per input. ``cotangents`` has the shape of the result, or is a tuple for several results.
        The gradient with respect to q is (..., nv), along ``integrate``, or (..., nq) if ``components=True``. This is
        the adjoint of ``jvp`` and takes the same options. ``out`` lists arrays for the values, then for the gradients.
        Reverse mode takes about four times as many operations as the method itself.

        Example:
            >>> robot = torsor.library.two_link()
            >>> energy, (dq, dv) = robot.derivatives.vjp("kinetic_energy", ([0.1, 0.2], [1.0, 2.0]), 1.0)
            >>> bool(np.allclose(dv, robot.mass_matrix([0.1, 0.2]) @ [1.0, 2.0]))  # the momenta
            True
        """
        request, (_, _, results) = self._checked(name, inputs, form="vjp", components=components, **options)
        count = len(results)
        weights: Any = [cotangents] if count == 1 else cotangents
        check_count(self._closure.mechanism, name, "cotangents", weights, results)
        result = self._closure.kernels.compiled(request)(*inputs, *weights, out=out)
        return _single_or_tuple(result[:count]), tuple(result[count:])

    def sparse(self, name: str, *inputs: ArrayLike, **options: Any) -> Sparse | tuple[Sparse, ...]:
        """Return the matrix or matrices that the algorithm ``name`` computes, without structural zeros.

        Forces do not depend on the motion of other branches of the tree, so the matrices of large robots have many
        structural zeros. Sparse solvers use the values and their pattern. For the options see ``jvp``.

        Example:
            >>> robot = torsor.library.random_tree(20, seed=2, types=("revolute",), extras=False)
            >>> M = robot.derivatives.sparse("mass_matrix", np.zeros(20))
            >>> M.values.size < 400, bool(np.allclose(M.dense(), robot.mass_matrix(np.zeros(20))))
            (True, True)
        """
        request, _ = self._checked(name, inputs, form="sparse", **options)
        kernels = self._closure.kernels
        result = kernels.compiled(request)(*inputs)
        values = result if isinstance(result, tuple) else (result,)
        patterns = kernels.once(("patterns", request), lambda: _patterns(kernels.traced(request.plain)))
        parts = [Sparse(value, *pattern) for value, pattern in zip(values, patterns, strict=True)]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _three(
        self, name: str, values: Values, external: Maybe, fixed_in: str, points: Maybe, out: Out, **options: Any
    ) -> Three:
        """Return the three results of a derivative algorithm, with external wrenches."""
        kernels = self._closure.kernels
        if external is None and points is None and type(fixed_in) is str and fixed_in == "link" and not options:
            result: Any = kernels.call(name, *values, out=out)
        else:
            result = loaded(kernels, name, values, Loads(external, fixed_in, points), options, out)
        return result[0], result[1], result[2]

    def _checked(self, name: str, inputs: Sequence[ArrayLike], **options: Any) -> tuple[Request, RequestShapes]:
        """Return a request and its shapes; raise ModelError for a wrong number of inputs or an impossible state."""
        closure = self._closure
        if self._free:
            check_numbers(closure.mechanism, self._free, inputs)
            options["free"] = self._free
        request = closure.kernels.request(name, **options)
        shapes = closure.kernels.shapes(request)
        check_count(closure.mechanism, name, "inputs", inputs, shapes.arguments)
        check_inputs(closure, request, inputs)
        return request, shapes
