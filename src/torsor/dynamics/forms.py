"""The forms of a traced function: derivatives along directions, pulled back, or all of them, by CasADi's own rules.

Positions are points of a curved space where there are quaternions. A step u along ``integrate`` changes their
components by E(q) u, with E the derivative of ``integrate`` at no step; so d f(q; u) = f_q E u, and E^T pulls back.
"""

import casadi as ca

from torsor.dynamics.configuration import integrate
from torsor.dynamics.requests import Request
from torsor.dynamics.tree import Tree

__all__ = ["formed"]

Named = dict[str, ca.SX]


def formed(tree: Tree, request: Request, inputs: Named, results: Named) -> tuple[Named, Named]:
    """Return the inputs and outputs, in the request's form, of results that were traced from inputs."""
    if request.form == "value":
        return inputs, results
    if request.form == "sparse":
        return inputs, {name: each.nz[:] for name, each in results.items()}
    steps = {} if request.components else {name: _steps(tree, inputs[name]) for name in request.positions}
    return {"jvp": _jvp, "vjp": _vjp, "jacobian": _jacobian}[request.form](request, inputs, results, steps)


def _steps(tree: Tree, q: ca.SX) -> ca.SX:
    """Return E (nq x nv): how the components of positions change along ``integrate``."""
    u = ca.SX.sym("u", tree.nv)
    return ca.substitute(ca.jacobian(integrate(tree, q, u), u), u, ca.SX.zeros(tree.nv, 1))


def _jvp(request: Request, inputs: Named, results: Named, steps: Named) -> tuple[Named, Named]:
    shapes = {name: (steps[name].size2(), 1) if name in steps else each.shape for name, each in inputs.items()}
    tangents = {name: ca.SX.sym(f"d_{name}", *shape) for name, shape in shapes.items()}
    change = [steps[name] @ each if name in steps else each for name, each in tangents.items()]
    at = ca.vertcat(*map(ca.vec, inputs.values()))
    along = ca.vertcat(*map(ca.vec, change))
    derived = {
        f"d_{name}": ca.reshape(ca.jtimes(ca.vec(ca.densify(each)), at, along), each.shape)
        for name, each in results.items()
    }
    return inputs | {f"d_{name}": each for name, each in tangents.items()}, results | derived


def _vjp(request: Request, inputs: Named, results: Named, steps: Named) -> tuple[Named, Named]:
    weights = {f"bar_{name}": ca.SX.sym(f"bar_{name}", *each.shape) for name, each in results.items()}
    total = sum((ca.dot(w, each) for w, each in zip(weights.values(), results.values(), strict=True)), start=ca.SX(0))
    found = {name: ca.densify(ca.reshape(ca.gradient(total, each), each.shape)) for name, each in inputs.items()}
    pulled = {f"bar_{name}": steps[name].T @ each if name in steps else each for name, each in found.items()}
    return inputs | weights, results | pulled


def _jacobian(request: Request, inputs: Named, results: Named, steps: Named) -> tuple[Named, Named]:
    # Arrays are ordered row by row, CasADi's matrices column by column.
    found = {}
    for name, result in results.items():
        for each in request.by or tuple(inputs):
            values, at = ca.vec(result.T), inputs[each]
            J = ca.jacobian(values, ca.vec(at))
            if at.size2() > 1:
                J = J[:, [i + j * at.size1() for i in range(at.size1()) for j in range(at.size2())]]
            found[f"{name}_by_{each}"] = J @ steps[each] if each in steps else J
    return inputs, found
