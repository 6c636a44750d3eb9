"""The forms of a traced function: values, Jacobian-vector and vector-Jacobian products, and Jacobians, by CasADi.

Positions with quaternions are points of a manifold. A step u along ``integrate`` changes their components by E(q) u,
with E the derivative of ``integrate`` at u = 0; so the tangent is f_q E u, and E^T maps gradients back.
"""

from collections.abc import Sequence

import casadi as ca

from torsor.dynamics.recursions.configuration import steps as along_steps
from torsor.dynamics.requests.request import Request
from torsor.dynamics.trees.tree import Tree

Named = dict[str, ca.SX]


def formed(tree: Tree, request: Request, inputs: Named, results: Named) -> tuple[Named, Named]:
    """Return the inputs and outputs, in the request's form, of results that were traced from inputs."""
    if request.form == "sparse":
        return inputs, {name: ca.vec(each.nz[:]) for name, each in results.items()}  # the nonzeros of a row are a row
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
    shapes = {name: (steps[name].size2(), 1) if name in steps else each.shape for name, each in inputs.items()}
    tangents = {name: ca.SX.sym(f"d_{name}", *shape) for name, shape in shapes.items()}
    change = [steps[name] @ each if name in steps else each for name, each in tangents.items()]
    at, along = (ca.vertcat(ca.SX(0, 1), *map(ca.vec, each)) for each in (inputs.values(), change))
    changes = {
        f"d_{name}": ca.reshape(ca.jtimes(ca.vec(ca.densify(each)), at, along), each.shape)
        for name, each in results.items()
    }
    return {f"d_{name}": each for name, each in tangents.items()}, changes


def pulled(inputs: Named, results: Named, steps: Named) -> tuple[Named, Named]:
    """Return symbols for weights of the results, and the gradients of the weighted sum (vector-Jacobian product)."""
    weights = {f"bar_{name}": ca.SX.sym(f"bar_{name}", *each.shape) for name, each in results.items()}
    total = sum((ca.dot(w, each) for w, each in zip(weights.values(), results.values(), strict=True)), start=ca.SX(0))
    found = {name: ca.densify(ca.reshape(ca.gradient(total, each), each.shape)) for name, each in inputs.items()}
    return weights, {f"bar_{name}": steps[name].T @ each if name in steps else each for name, each in found.items()}


def jacobians(inputs: Named, results: Named, steps: Named, by: Sequence[str] = ()) -> Named:
    """Return the derivatives of each result by each input, or those in ``by``: rows and columns in row-major order."""
    # Arrays are row-major, CasADi's matrices column-major.
    found = {}
    for name, result in results.items():
        for each in by or inputs:
            at = inputs[each]
            J = ca.jacobian(ca.vec(result.T), ca.vec(at))
            if at.size2() > 1:
                J = J[:, [i + j * at.size1() for i in range(at.size1()) for j in range(at.size2())]]
            found[f"{name}_by_{each}"] = J @ steps[each] if each in steps else J
    return found
