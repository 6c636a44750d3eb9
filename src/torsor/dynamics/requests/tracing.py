"""From a request to a CasADi function: build the tree, make free numbers symbols, run the algorithm."""

from typing import Any

import casadi as ca

from torsor.dynamics.requests.algorithms import ALGORITHMS, WITH_MARGIN
from torsor.dynamics.requests.forms import formed
from torsor.dynamics.requests.request import Request
from torsor.dynamics.trees.imposed import impose, touched
from torsor.dynamics.trees.lean import lean
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Mechanism

# Above this many operations, the search for common subexpressions takes longer than compiling them twice.
LONG = 50_000


def trace(mechanism: Mechanism, request: Request, plain: bool = False) -> ca.Function:
    """Return the requested function of a mechanism over CasADi SX, zeros and ones folded away.

    ``plain`` leaves the tree as it is described, for equations that people read: no frame is moved, no inertia
    regrouped, and free numbers stand where they are in the description.
    """
    algorithm = ALGORITHMS[request.name]
    symbols = {name: ca.SX.sym(name, *shape) for name, shape in request.arguments(mechanism).items()}
    arguments: dict[str, Any] = {name: symbol for name, symbol in symbols.items() if name != "p"}
    if algorithm.at_place:
        arguments["place"] = mechanism.place(request.place)  # type: ignore[arg-type]
    if algorithm.in_axes:
        arguments["axes"] = request.axes
    if algorithm.by_rows:
        arguments["rows"] = request.rows
    if algorithm.hybrid:
        arguments["forced"] = request.forced
    if algorithm.closed:
        arguments["choice"] = request.choice
    if algorithm.keeps:
        arguments["in_world"] = request.loads in ("world", "point")
    tree = Tree.of(mechanism)
    if (algorithm.lean or (algorithm.lean_afloat and tree.floats)) and not plain:
        tree = lean(tree, touched(mechanism, request.free)) if request.free else lean(tree)
    if request.free:
        tree = impose(tree, mechanism, request.free, symbols["p"], plain)
    found = algorithm.rule(tree, **arguments)
    values = found if isinstance(found, tuple) else (found,)
    results = dict(zip(request.results(mechanism), values, strict=True))
    inputs, outputs = (symbols, results) if request.form == "value" else formed(tree, request, symbols, results)
    expressions = list(outputs.values())
    name = request.name.removesuffix(WITH_MARGIN)  # which users do not know
    function = ca.Function(name, list(inputs.values()), expressions, list(inputs), list(outputs))
    if (request.form in ("value", "sparse") and algorithm.shared) or function.n_instructions() > LONG:
        return function
    return ca.Function(name, list(inputs.values()), ca.cse(expressions), list(inputs), list(outputs))
