"""The integration methods: Runge-Kutta, and the implicit midpoint and SDIRK rules with fixed steps."""

from collections.abc import Callable

import casadi as ca
import numpy as np

from torsor.base.errors import ModelError
from torsor.dynamics import midpoint_step, sdirk_step, tree_of
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.dynamics.recursions.implicit_steps import GAMMA, Forces
from torsor.mechanism.free import Free
from torsor.mechanism.friction import jumps
from torsor.robot.robot import Robot
from torsor.simulation.contact import IMPLICIT, Contact
from torsor.simulation.dynamics import acceleration, acted, imposed, step_function, step_inputs, symbols
from torsor.simulation.free_motion import OPEN, ended, free_motion
from torsor.simulation.inputs import Prescribed

# Time of each stage as a fraction of the step, and its weight in the sum.
STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))


def runge_kutta(
    robot: Robot,
    acting: ca.Function,
    choice: ClosureChoice | None = None,
    prescribed: Prescribed | None = None,
    free: tuple[Free, ...] = (),
) -> ca.Function:
    """Return step(t, q, v, [tau], [external], [stages], h) -> (q, v), one step of length h (s).

    With local coordinates u about q (``chart``), the state (u, v) is in a vector space, where u' is
    ``chart_rate(u, v)`` and v' is the acceleration. The method keeps its order, and the positions stay on their group
    (Munthe-Kaas 1999, with the Cayley map instead of the exponential).

    With the closure equations ``choice``, the state after the step is projected onto closed loops, and a third
    result is the margin of the equations: their distance from dependence (``closure_margin``). It is negative if, at
    the current rate, they become dependent within the next step.

    Prescribed coordinates have the positions, velocities and accelerations ``stages`` (9 x nv) at the start, the middle
    and the end of the step.
    """
    t, q, v, *held = symbols(acting)
    h, accelerated = ca.SX.sym("h"), acceleration(robot, acting, choice, prescribed=prescribed, free=free)
    inputs = dict(zip(acting.name_in(), [t, q, v, *held], strict=True))
    if prescribed is not None:
        inputs["stages"] = ca.SX.sym("stages", 9, robot.nv)
    chart, chart_rate = robot.function("chart"), robot.function("chart_rate")
    u_rate = v_rate = u_sum = v_sum = ca.SX.zeros(robot.nv, 1)

    def given(fraction: float) -> list[ca.SX]:
        return [inputs["stages"][round(6 * fraction) : round(6 * fraction) + 3, :]] if prescribed is not None else []

    for fraction, weight in STAGES:
        u, v_here = fraction * h * u_rate, v + fraction * h * v_rate
        q_here, v_here = imposed(prescribed, chart(q, u), v_here, *given(fraction))
        u_rate = chart_rate(u, v_here)
        v_rate = accelerated(t + fraction * h, q_here, v_here, *held, *given(fraction))
        u_sum, v_sum = u_sum + weight * u_rate, v_sum + weight * v_rate
    q_next, v_next = imposed(prescribed, chart(q, h * u_sum), v + h * v_sum, *given(1.0))
    inputs["h"] = h
    return step_function("rk4", tree_of(robot, free, inputs.get("p")), inputs, q_next, v_next, choice)


def implicit_midpoint(
    robot: Robot,
    acting: ca.Function,
    choice: ClosureChoice | None = None,
    prescribed: Prescribed | None = None,
    free: tuple[Free, ...] = (),
) -> ca.Function:
    """Return step(t, q, v, [tau], [external], h) -> (q, v), one symplectic step of length h (s).

    The method has order 2. Energy does not drift, the momentum of a floating robot is conserved to rounding, and stiff
    springs and dampers do not limit the step. Forces are evaluated at the middle of the step. See
    ``dynamics/recursions/implicit_steps.py`` for the equations, and ``runge_kutta`` for the result with loops.
    """
    for joint in robot.joints:
        inertia = np.asarray(joint.rotor_inertia)
        if joint.type in ("free", "spherical") and np.ptp(inertia) + inertia.any() * (joint.type == "free"):
            # Such rotor inertias are added to the mass matrix, but do not derive from a kinetic energy.
            found = f'method "implicit" with rotor_inertia {inertia.tolist()} on the {joint.type} joint {joint.name!r}'
            raise ModelError(found, value=joint.name, where=robot.name, fix='remove it, or use `method="rk4"`')
    _check(robot, "implicit", prescribed, free)
    inputs = step_inputs(acting)
    t, q, v, *held, h = inputs.values()
    at_middle = _forces_at(acting, t + h / 2, held)
    tree = tree_of(robot)
    q_next, v_next = midpoint_step(tree, q, v, h, at_middle, choice)
    return step_function("implicit", tree, inputs, q_next, v_next, choice)


def sdirk(
    robot: Robot,
    acting: ca.Function,
    choice: ClosureChoice | None = None,
    prescribed: Prescribed | None = None,
    free: tuple[Free, ...] = (),
) -> ca.Function:
    """Return step(t, q, v, [tau], [external], h) -> (q, v), one L-stable step of length h (s).

    The method has order 2. Stiff springs and dampers do not limit the step and come to rest. Forces are evaluated at
    both stages. See ``dynamics/recursions/implicit_steps.py`` for the equations. Robots with loops raise ModelError.
    """
    _check(robot, "sdirk", prescribed, free)
    _check_tree(robot, "sdirk", choice, prescribed)
    inputs = step_inputs(acting)
    t, q, v, *held, h = inputs.values()
    stages = _forces_at(acting, t + GAMMA * h, held), _forces_at(acting, t + 1.0 * h, held)
    tree = tree_of(robot)
    q_next, v_next = sdirk_step(tree, q, v, h, stages)
    return step_function("sdirk", tree, inputs, q_next, v_next, choice)


def linearly_implicit(
    robot: Robot,
    acting: ca.Function,
    choice: ClosureChoice | None = None,
    prescribed: Prescribed | None = None,
    free: tuple[Free, ...] = (),
    contact: Contact | None = None,
) -> ca.Function:
    """Return step(t, q, v, [tau], [external], h) -> (q, v), one step of length h (s) with implicit drives.

    Springs, friction, drives and compliant contact of any stiffness are stable, without iterations; they have order 1,
    and all other forces order 2. See ``free_motion`` and ``compliant`` for the equations, and ``runge_kutta`` for the
    result with loops.
    """
    _check_tree(robot, "linearly_implicit", None, prescribed)
    motion = free_motion(robot, acting, contact, choice, free)
    end = ended(robot, motion, motion.change, (motion.change + motion.followed) / 2)
    tree = tree_of(robot, free, motion.inputs.get("p"))
    return step_function("linearly_implicit", tree, motion.inputs, *end, choice, OPEN[robot.target.dtype], motion.M)


def _forces_at(acting: ca.Function, t: ca.SX, held: list[ca.SX]) -> Forces:
    """Return the acting forces at a time, as a function of (q, v) -> tau and external wrenches."""

    def at(q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX | None]:
        tau, *external = acted(acting, [t, q, v, *held])
        return tau, external[0] if external else None

    return at


def _check_tree(robot: Robot, method: str, choice: ClosureChoice | None, prescribed: Prescribed | None) -> None:
    """Raise ModelError for prescribed motion and closed loops."""
    for given, what, other in ((prescribed, "prescribed motion", "rk4"), (choice, "closed loops", "implicit")):
        if given is not None:
            found, fix = f"is {method!r}, which does not support {what}", f'use `method="{other}"` or "adaptive"'
            raise ModelError(found, argument="method", value=method, where=robot.name, fix=fix)


def _check(robot: Robot, method: str, prescribed: Prescribed | None, free: tuple[Free, ...]) -> None:
    """Raise ModelError for parameters, prescribed motion and discontinuous friction, where Newton's method fails."""
    if free:
        found, fix = f"is {method!r}, which does not support parameters p", f'use `method="{IMPLICIT}"` or "rk4"'
        raise ModelError(found, argument="method", value=method, where=robot.name, fix=fix)
    _check_tree(robot, method, None, prescribed)
    for joint in robot.joints:
        motor = joint.motor
        rough = {joint.name: jumps(joint).any(), f"{joint.name}/motor": motor and motor.coulomb and not motor.smooth}
        for where, is_rough in rough.items():
            if is_rough:
                found = f"is {method!r}, and friction of {where!r} is discontinuous at rest"
                fix = f'make it smooth: with_friction({where!r}, smooth=1e-3), or use `method="rk4"`'
                raise ModelError(found, argument="method", value=method, where=robot.name, fix=fix)


_Step = Callable[[Robot, ca.Function, ClosureChoice | None, Prescribed | None, tuple[Free, ...]], ca.Function]

STEPS: dict[str, _Step] = {
    "rk4": runge_kutta,
    "implicit": implicit_midpoint,
    "sdirk": sdirk,
    "linearly_implicit": linearly_implicit,
}
"""Fixed-step methods by name. Each takes a robot, the acting forces (t, q, v, ...) -> tau, [external], the equations
that keep loops closed (None without loops), prescribed motion (or None) and the free parameters of the robot, which
are the input "p" of the forces, and returns its step.

Forces and step are CasADi functions over SX. The inputs of the step are those of the forces, by name and in order, and
the length "h" (s). Its outputs are "q_next" and "v_next" and, with loops, "margin" (see ``runge_kutta``). The
names determine the shapes in the kernel.
"""

METHODS = (*STEPS, "adaptive")
"""The methods of ``simulate``."""
