"""Requests: each specifies one function of a mechanism by its algorithm, options and form of results."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Shape
from torsor.dynamics.algorithms import ALGORITHMS, WITH_MARGIN, size
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.dynamics.recursions.configuration import steps as along_steps
from torsor.dynamics.trees.imposed import tree_of
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Coupling, Mechanism, Wheel, ends_of
from torsor.mechanism.free import Free

LOADS = ("", "link", "world", "point")
"""External wrenches: none; fixed in the link while q changes; fixed in the world; or fixed in the world with a force
that acts at a point of the link."""

ROWS = {"all": 6, "angular": 3, "linear": 3}
"""Selections of the velocities of a link or frame, and their number."""


@dataclass(frozen=True)
class Request:
    """One function of a mechanism, with everything that it depends on except the mechanism itself.

    - ``loads``: one of ``LOADS``.
    - ``place``: the name of a link or frame; ``axes``: one of ``AXES``; ``point``: whether a point of the place is an
      input; ``rows``: the selection of its velocities.
    - ``forced``: the coordinates driven by force.
    - ``choice``: the closure equations and coordinates that close the loops.
    - ``order``: the number of time derivatives.
    - ``free``: the parameters of the mechanism that are inputs.
    - ``form``: "value" for the results, "sparse" for their structural nonzeros, "jvp" or "vjp" for products with the
      Jacobian or its transpose, "jacobian" for all derivatives.
    - ``by``: the inputs with respect to which derivatives are taken (default: all). Derivatives with respect to
      positions are taken along ``integrate``, or with respect to their ``components``.
    """

    name: str
    loads: str = ""
    place: str | None = None
    axes: str = "local"
    point: bool = False
    rows: str = "all"
    forced: frozenset[int] | None = None
    choice: ClosureChoice | None = None
    order: int = 1
    free: tuple[Free, ...] = ()
    form: str = "value"
    by: tuple[str, ...] = ()
    components: bool = False

    @property
    def plain(self) -> "Request":
        """The request in the form "value"."""
        return replace(self, form="value", by=(), components=False)

    def arguments(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shapes, for one state, of the inputs of the algorithm itself."""
        algorithm, links = ALGORITHMS[self.name], len(mechanism.links)
        shapes: dict[str, Shape] = {name: (size(mechanism, algorithm.axis_of(name)),) for name in algorithm.inputs}
        if self.choice is not None and self.choice.coupled and "share" in shapes:
            shapes["share"] = 2 * shapes["share"]
        if algorithm.rates:
            shapes |= {f"j_{k}": (mechanism.nv,) for k in range(1, self.order)}
        if self.loads:
            shapes["external"] = links, 6
            if algorithm.rates:
                shapes["external_rate"] = links, 6
            if self.loads == "point":
                shapes["points"] = links, 3
        if self.point:
            shapes["point"] = (3,)
        return shapes | ({"p": (len(self.free),)} if self.free else {})

    def results(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shapes, for one state, of the results of the algorithm itself."""
        algorithm = ALGORITHMS[self.name]
        shape = tuple(size(mechanism, ROWS[self.rows] if axis == "rows" else axis) for axis in algorithm.output)
        names = algorithm.results
        if algorithm.rates:
            names = (*names, *(f"{names[-1]}_{k}" for k in range(1, self.order)))
        return {f"{self.name}_{item}": shape for item in names} if names else {self.name: shape}

    def inputs(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shapes, for one state, of the inputs of the function."""
        shapes = self.arguments(mechanism)
        if self.form == "jvp":
            return shapes | {f"d_{name}": shape for name, shape in self.tangents(mechanism).items()}
        if self.form == "vjp":
            return shapes | {f"bar_{name}": shape for name, shape in self.results(mechanism).items()}
        return shapes

    def outputs(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shapes, for one state, of the outputs of the function; sparse outputs have the dense shape."""
        shapes = self.results(mechanism)
        if self.form in ("value", "sparse"):
            return shapes
        tangents = self.tangents(mechanism)
        if self.form == "jvp":
            return shapes | {f"d_{name}": shape for name, shape in shapes.items()}
        if self.form == "vjp":
            return shapes | {f"bar_{name}": shape for name, shape in tangents.items()}
        by = self.by or tangents
        return {f"{name}_by_{item}": shape + tangents[item] for name, shape in shapes.items() for item in by}

    def tangents(self, mechanism: Mechanism) -> dict[str, Shape]:
        """Return the shapes of the tangents of the inputs; tangents of positions are velocities or ``components``."""
        turned = {} if self.components else dict.fromkeys(self.positions, (mechanism.nv,))
        return self.arguments(mechanism) | turned

    def label(self, mechanism: Mechanism) -> str:
        """Return text that is equal for equal functions of a mechanism: places replace names, and sets are ordered."""
        at = None
        if self.place is not None:
            place = mechanism.place(self.place)
            at = place.link, place.pose.tobytes()
        return repr((replace(self, place=None, forced=None), at, None if self.forced is None else sorted(self.forced)))

    @property
    def positions(self) -> tuple[str, ...]:
        """The inputs that are positions."""
        algorithm = ALGORITHMS[self.name]
        return tuple(name for name in algorithm.inputs if algorithm.axis_of(name) == "nq")


def fingerprint(mechanism: Mechanism, *more: object) -> str:
    """Return a hash of everything that traced functions of a mechanism depend on, and of ``more`` (by its repr)."""
    digest = hashlib.sha256(repr((mechanism.parents, mechanism.coordinates, more)).encode())
    digest.update(mechanism.gravity.tobytes())
    for link, joint in zip(mechanism.links, mechanism.joints, strict=True):
        numbers = (joint.pitch, joint.ratio, joint.offset, joint.smooth, link.mass)
        digest.update(f"{joint.type} {joint.follows} {numbers!r} {joint.spring!r} {joint.friction_model}".encode())
        if joint.motor is not None:  # by index, not by name
            carrier = mechanism.places[joint.motor.carrier].link
            parts = {field.name: getattr(joint.motor, field.name) for field in fields(joint.motor) if field.compare}
            parts |= {"carrier": carrier, "axis": joint.motor.axis.tolist()}
            digest.update(repr(parts).encode())
        if joint.flexible is not None:
            shape = joint.flexible.numbers()
            digest.update(f"{type(joint.flexible).__name__} {[item.shape for item in shape]}".encode())
            digest.update(b"".join(item.tobytes() for item in shape))
        arrays = (joint.placement, joint.axis, joint.point, joint.coulomb, joint.viscous, joint.rotor_inertia)
        for array in (*arrays, link.com, link.inertia):
            digest.update(np.asarray(array).tobytes())
    for loop in mechanism.loops:  # by places and indices, not by names
        if isinstance(loop, Coupling):
            terms = [(mechanism.position_names.index(name), c) for name, c in loop.polynomials.items()]
            content: object = (terms, loop.offset)
        else:
            places = (mechanism.place(end) for end in ends_of(mechanism, loop))
            sizes = (loop.radius, loop.roller) if isinstance(loop, Wheel) else (loop.length,)
            content = loop.kind, sizes, [(place.link, place.pose.tobytes()) for place in places]
        digest.update(repr(content).encode())
    return digest.hexdigest()


# The forms of a traced function: values, Jacobian-vector and vector-Jacobian products, and Jacobians, by CasADi.
#
# Positions with quaternions are points on a manifold. A step u along ``integrate`` changes their components by E(q) u,
# where E is the derivative of ``integrate`` at u = 0. The tangent is therefore f_q E u, and E^T maps gradients back.

Named = dict[str, ca.SX]


def formed(tree: Tree, request: Request, inputs: Named, results: Named) -> tuple[Named, Named]:
    """Return the inputs and outputs in the request's form; ``results`` were traced from ``inputs``."""
    if request.form == "sparse":
        return inputs, {name: ca.vec(result.nz[:]) for name, result in results.items()}  # nonzeros of a row are a row
    steps = {} if request.components else {name: along_steps(tree, inputs[name]) for name in request.positions}
    if request.form == "jvp":
        tangents, changes = pushed(inputs, results, steps)
        return inputs | tangents, results | changes
    if request.form == "vjp":
        weights, gradients = pulled(inputs, results, steps)
        return inputs | weights, results | gradients
    return inputs, jacobians(inputs, results, steps, request.by)


def pushed(inputs: Named, results: Named, steps: Named) -> tuple[Named, Named]:
    """Return symbols for tangents of the inputs, and the tangents of the results (Jacobian-vector product)."""
    shapes = {name: (steps[name].size2(), 1) if name in steps else input_.shape for name, input_ in inputs.items()}
    tangents = {name: ca.SX.sym(f"d_{name}", *shape) for name, shape in shapes.items()}
    change = [steps[name] @ tangent if name in steps else tangent for name, tangent in tangents.items()]
    at, along = (ca.vertcat(ca.SX(0, 1), *map(ca.vec, item)) for item in (inputs.values(), change))
    changes = {
        f"d_{name}": ca.reshape(ca.jtimes(ca.vec(ca.densify(result)), at, along), result.shape)
        for name, result in results.items()
    }
    return {f"d_{name}": tangent for name, tangent in tangents.items()}, changes


def pulled(inputs: Named, results: Named, steps: Named) -> tuple[Named, Named]:
    """Return symbols for weights of the results, and the gradients of the weighted sum (vector-Jacobian product)."""
    weights = {f"bar_{name}": ca.SX.sym(f"bar_{name}", *item.shape) for name, item in results.items()}
    total = sum((ca.dot(w, item) for w, item in zip(weights.values(), results.values(), strict=True)), start=ca.SX(0))
    result = {name: ca.densify(ca.reshape(ca.gradient(total, input_), input_.shape)) for name, input_ in inputs.items()}
    return weights, {f"bar_{name}": steps[name].T @ item if name in steps else item for name, item in result.items()}


def jacobians(inputs: Named, results: Named, steps: Named, by: Sequence[str] = ()) -> Named:
    """Return the row-major derivatives of each result with respect to each input, or to those in ``by``."""
    # Arrays are row-major, CasADi's matrices column-major.
    derivatives = {}
    for name, result in results.items():
        for item in by or inputs:
            at = inputs[item]
            J = ca.jacobian(ca.vec(result.T), ca.vec(at))
            if at.size2() > 1:
                J = J[:, [i + j * at.size1() for i in range(at.size1()) for j in range(at.size2())]]
            derivatives[f"{name}_by_{item}"] = J @ steps[item] if item in steps else J
    return derivatives


# Number of operations above which searching for common subexpressions takes longer than compiling them repeatedly.
MAX_SHARED_OPERATIONS = 50_000


def trace(mechanism: Mechanism, request: Request, plain: bool = False) -> ca.Function:
    """Return the requested function of a mechanism as a CasADi SX function, simplified for zeros and ones.

    If ``plain`` is True, the tree remains as described, for human-readable equations: no frame is moved, no inertia is
    regrouped, and free parameters appear as in the description.
    """
    algorithm = ALGORITHMS[request.name]
    symbols = {name: ca.SX.sym(name, *shape) for name, shape in request.arguments(mechanism).items()}
    arguments: dict[str, Any] = {name: symbol for name, symbol in symbols.items() if name != "p"}
    if algorithm.at_place:
        arguments["place"] = mechanism.place(request.place)  # type: ignore[arg-type]
    options = {"axes": request.axes, "rows": request.rows, "forced": request.forced, "choice": request.choice}
    arguments |= {name: value for name, value in options.items() if name in algorithm.parameters}
    if algorithm.keeps:
        arguments["in_world"] = request.loads in ("world", "point")
    is_lean = algorithm.lean or (algorithm.lean_afloat and Tree.of(mechanism).floats)
    tree = tree_of(mechanism, request.free, symbols.get("p"), is_lean and not plain, plain)
    result = algorithm.rule(tree, **arguments)
    values = result if isinstance(result, tuple) else (result,)
    results = dict(zip(request.results(mechanism), values, strict=True))
    inputs, outputs = (symbols, results) if request.form == "value" else formed(tree, request, symbols, results)
    expressions = list(outputs.values())
    name = request.name.removesuffix(WITH_MARGIN)  # the suffix is internal
    function = ca.Function(name, list(inputs.values()), expressions, list(inputs), list(outputs))
    if (request.form in ("value", "sparse") and algorithm.shared) or function.n_instructions() > MAX_SHARED_OPERATIONS:
        return function
    return ca.Function(name, list(inputs.values()), ca.cse(expressions), list(inputs), list(outputs))
