"""The equations of motion with controller and environment, as CasADi functions and as compiled kernels."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Shape
from torsor.compiler import AnyKernel, Signature
from torsor.compiler.cache import source_hash
from torsor.compiler.llvm.target import host
from torsor.dynamics import Tree, tree_of
from torsor.dynamics.loops.constrained import (
    CLOSURE_TOLERANCE,
    ClosureChoice,
    closed_forward_dynamics,
    projected_end,
)
from torsor.mechanism.drives import saturated_force
from torsor.mechanism.free import Free
from torsor.robot.robot import Robot
from torsor.simulation.inputs import Prescribed, Source

NARROW = 2  # states per vector in kernels for single states: the minimum that the compiler supports


def held_inputs(controller: Source, external: Source, sampled: bool) -> tuple[bool, bool]:
    """Return, for generalised forces and external wrenches, whether they are inputs that are constant during a step."""
    controlled = controller.array is not None or controller.call is not None
    return controlled or sampled, external.array is not None or external.call is not None


def windowed(controller: Source, external: Source, sampled: bool) -> list[Source]:
    """Return the sources of a step that need the window of a signal: one input each, after the held forces."""
    both = [] if sampled else [controller]
    return [source for source in (*both, external) if source.window is not None]


def windows(sources: tuple[Source, Source, bool], start: Any, end: Any) -> list[Array]:
    """Return the windows (..., rows, columns) of the sources that need one, from ``start`` (...) to ``end`` (...)."""
    return [source.window(start, end) for source in windowed(*sources) if source.window is not None]


def parameters(controller: Source, external: Source, sampled: bool) -> dict[str, Array]:
    """Return the parameters (..., n) that are inputs of a step: gains of drives, and numbers of hard contact."""
    both = {"gains": () if sampled else controller.parameters, "parameters": external.parameters}
    return {name: np.asarray(numbers) for name, numbers in both.items() if len(numbers)}


def further(sources: tuple[Source, Source, bool], start: Any, end: Any) -> list[Array]:
    """Return the inputs of a step after the held forces: ``windows``, and parameters (..., n) for each time."""
    numbers = parameters(*sources).values()
    return windows(sources, start, end) + [np.broadcast_to(each, (*np.shape(start), each.size)) for each in numbers]


def forces(
    robot: Robot, controller: Source, external: Source, sampled: bool, free: tuple[Free, ...] = ()
) -> ca.Function:
    """Return the acting forces: (t, q, v, [tau], [external], [windows], [gains], [parameters], [p]) -> tau, [external].

    p, the values of the ``free`` parameters of the robot, is an input of the step, which the forces do not read.

    If a traced controller has limits, its forces without limits, the added forces and the limits follow.
    Forces that are traced, or zero, are not inputs. If ``sampled`` is true, the controller is sampled at its own rate,
    so its force is always an input. A source with samples needs its window. The results are (nv x 1) and (L x 6).
    """
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    tau, wrenches = ca.SX.sym("tau", robot.nv), ca.SX.sym("external", len(robot.links), 6)
    inputs = {"t": t, "q": q, "v": v}
    parts: dict[str, list[ca.SX]] = {}
    for name, source in (("window", controller), ("external_window", external)):
        parts[name] = []
        if source.window is not None and source.function is not None and not (sampled and source is controller):
            parts[name] = [ca.SX.sym(name, *source.function.size_in(3))]
    own = parameters(controller, external, sampled)
    numbers = {name: [ca.SX.sym(name, each.shape[-1])] for name, each in own.items()}
    numbers |= {"p": [ca.SX.sym("p", len(free))]} if free else {}
    holds_tau, holds_external = held_inputs(controller, external, sampled)
    if holds_tau:
        inputs["tau"] = tau
    elif controller.function is None:
        tau = ca.SX.zeros(robot.nv, 1)
    else:
        tau = controller.function(t, q, v, *parts["window"], *numbers.get("gains", []))
    added = None if controller.added is None else controller.added(t, q, v)
    parts_of_tau = {}
    if controller.limit is not None:
        if controller.function is not None and not holds_tau:
            parts_of_tau = {"drive_tau": tau, "added_tau": ca.SX.zeros(robot.nv, 1) if added is None else added}
            parts_of_tau["limit"] = ca.SX(controller.limit)
        tau = saturated_force(tau, controller.limit)
    acting = {"acting_tau": tau if added is None else tau + added}
    if holds_external:
        inputs["external"] = acting["acting_external"] = wrenches
    elif external.function is not None:
        acting["acting_external"] = external.function(t, q, v, *parts["external_window"])
    if external.added is not None:
        acting["acting_external"] = acting.get("acting_external", 0) + external.added(t, q, v)
    acting |= parts_of_tau
    inputs |= {name: part[0] for name, part in (parts | numbers).items() if part}
    return ca.Function("forces", list(inputs.values()), list(acting.values()), list(inputs), list(acting))


def acted(acting: ca.Function, arguments: list[ca.SX]) -> list[ca.SX]:
    """Return the acting generalised forces and, if there are any, the external wrenches."""
    found = dict(zip(acting.name_out(), acting.call(arguments), strict=True))
    return [found[name] for name in ("acting_tau", "acting_external") if name in found]


def acceleration(
    robot: Robot,
    acting: ca.Function,
    choice: ClosureChoice | None = None,
    rate: float = 0.0,
    prescribed: Prescribed | None = None,
    free: tuple[Free, ...] = (),
) -> ca.Function:
    """Return a(t, q, v, [tau], [external], [given]) (nv x 1) under the acting forces.

    ``choice`` are the equations that keep loops closed, if there are any; ``rate`` (1/s) reduces their errors.
    ``given`` (3 x nv) are the positions, velocities and accelerations of ``prescribed`` coordinates; q and v have the
    same positions and velocities. The ``free`` parameters of the robot are the input "p" of the forces.
    """
    t, q, v, *rest = symbols(acting)
    inputs, arguments = dict(zip(acting.name_in(), [t, q, v, *rest], strict=True)), acted(acting, [t, q, v, *rest])
    external = arguments[1] if len(arguments) > 1 else None
    if prescribed is not None:
        inputs["given"] = ca.SX.sym("given", 3, robot.nv)
    if choice is not None:
        active = None if prescribed is None else inputs["given"][2, list(choice.active)].T
        tree = tree_of(robot, free, inputs.get("p"))
        a = closed_forward_dynamics(tree, q, v, arguments[0], choice, external, rate, a_active=active)
    elif prescribed is not None:
        hybrid = robot.function("hybrid_dynamics", external=external is not None, forced=prescribed.forced)
        a = hybrid(q, v, inputs["given"][2, :].T, *arguments)[0]
    else:
        forward = robot.function("forward_dynamics", external=external is not None, free=free)
        a = forward(q, v, *arguments, *([inputs["p"]] if free else []))
    return ca.Function("acceleration", list(inputs.values()), [a], list(inputs), ["a"])


def imposed(prescribed: Prescribed | None, q: ca.SX, v: ca.SX, given: ca.SX | None = None) -> tuple[ca.SX, ca.SX]:
    """Return (q, v) with the positions and velocities of prescribed coordinates as ``given`` (3 x nv)."""
    if prescribed is None or given is None:
        return q, v
    q, v = ca.SX(q), ca.SX(v)
    for i, k in zip(prescribed.q, prescribed.v, strict=True):
        q[i], v[k] = given[0, k], given[1, k]
    return q, v


def step_function(
    name: str,
    tree: Tree,
    inputs: dict[str, ca.SX],
    q_next: ca.SX,
    v_next: ca.SX,
    choice: ClosureChoice | None,
    tolerance: float = CLOSURE_TOLERANCE,
    M: ca.SX | None = None,
) -> ca.Function:
    """Return the step (t, q, v, ..., h) -> (q_next, v_next).

    With a ``choice``, it closes the loops of the ``tree`` up to the ``tolerance`` and also returns the margin of the
    equations. ``M`` is that of ``closed_state``.
    """
    ends = {"q_next": q_next, "v_next": v_next}
    if choice is not None:
        projected = projected_end(tree, inputs["q"], q_next, v_next, choice, tolerance, M)
        ends = dict(zip(("q_next", "v_next", "margin"), projected, strict=True))
    outputs = ca.cse([ca.densify(each) for each in ends.values()])
    return ca.Function(name, list(inputs.values()), outputs, list(inputs), list(ends))


def symbols(function: ca.Function) -> list[ca.SX]:
    """Return symbols for the inputs of a function, with their names."""
    return [ca.SX.sym(name, *function.size_in(name)) for name in function.name_in()]


def step_inputs(acting: ca.Function) -> dict[str, ca.SX]:
    """Return symbols for the inputs of a step by name: the inputs of the acting forces, and the step length h."""
    return dict(zip([*acting.name_in(), "h"], [*symbols(acting), ca.SX.sym("h")], strict=True))


def position_rate(robot: Robot, q: ca.SX, v: ca.SX) -> ca.SX:
    """Return the rate (nq x 1) of the positions at the velocities v; quaternions may have any length."""
    t = ca.SX.sym("t")
    return ca.substitute(ca.jacobian(robot.function("integrate")(q, t * v), t), t, 0)


def closed(
    robot: Robot,
    name: str,
    sources: tuple[Source, Source, bool],
    make: Callable[[], ca.Function],
    prescribed: Prescribed | None = None,
    single: bool = False,
) -> AnyKernel:
    """Return the kernel of a function of the acting forces, with traced sources inlined; see ``compiled``.

    ``sources`` are the arguments of ``forces``: controller, external wrenches, and whether the controller is sampled.
    """
    controller, external, _ = sources
    name = name if prescribed is None else f"{name} {prescribed.v}"
    holds = held_inputs(*sources)
    free = [each for each, holding in zip((controller, external), holds, strict=True) if not holding]
    traced = [each.function for each in free if each.function is not None]
    added = [each.added for each in (controller, external) if each.added is not None]
    label = f"{name} {holds} {[each.function is not None for each in free]} {[each.name() for each in added]}"
    label += "" if controller.limit is None else f" saturated {controller.limit.tolist()}"
    return compiled(robot, label, [*traced, *added], make, single)


def compiled(
    robot: Robot,
    name: str,
    sources: Sequence[ca.Function],
    make: Callable[[], ca.Function],
    single: bool = False,
    shapes: Mapping[str, Shape] | None = None,
) -> AnyKernel:
    """Return a kernel of the robot; its cache key is its name and the traced functions in it.

    If ``single`` is true, the kernel handles one state at a time and uses the narrowest vectors. ``shapes`` are those
    of inputs and results by name, in addition to the names of simulations.
    """
    width = NARROW if single and host().width("float64") > NARROW else None
    name += " single" * (width is not None)
    digest = hashlib.sha256("".join(source.serialize() for source in sources).encode()).hexdigest()

    def shapes_of(signature: Signature) -> tuple[list[Shape], list[Shape]]:
        nq, nv, ny = robot.nq, robot.nv, robot.nq + robot.nv
        known: dict[str, Shape] = dict.fromkeys(("t", "h", "event", "margin", "residual"), ())
        known |= dict.fromkeys(("q", "q_next", "chart"), (nq,))
        known |= dict.fromkeys(("v", "v_next", "tau", "controller", "u"), (nv,))
        known |= {"given": (3, nv), "stages": (9, nv)}
        known |= dict.fromkeys(("carry", "by_u", "rate_by_v", "rate_by_u"), (nv, nv))  # maps of charts
        known |= {f"{end}_by_{each}": (nv, nv) for end in ("q_next", "v_next") for each in ("q", "v", "tau")}
        known |= dict.fromkeys(("external", "contact"), (len(robot.links), 6))
        known |= {"y": (ny,), "y_rate": (ny,), "y_jacobian": (ny, ny)}
        sizes = dict(zip(signature.names_in, signature.sizes_in, strict=True))
        known |= {name: sizes[name] for name in ("window", "external_window") if name in sizes}
        known |= {name: sizes[name][:1] for name in ("gains", "parameters", "p") if name in sizes}
        known |= shapes or {}
        known |= {f"bar_{name}": shape for name, shape in known.items()}
        inputs, outputs = ([known[each] for each in names] for names in (signature.names_in, signature.names_out))
        return inputs, outputs

    traced_by = source_hash("simulation", "geometry")  # contact is traced by both
    return robot.kernels.kernel(("simulation", name, digest, traced_by), make, shapes_of, width=width)
