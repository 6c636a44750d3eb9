"""The classical Runge-Kutta method of order 4, in local coordinates about the positions at the start of the step."""

import casadi as ca

from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.robot.robot import Robot
from torsor.simulation.dynamics import acceleration, imposed, step_function, symbols
from torsor.simulation.prescribed import Prescribed

# Time of each stage as a fraction of the step, and its weight in the sum.
STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))


def runge_kutta(
    robot: Robot, acting: ca.Function, choice: ClosureChoice | None = None, prescribed: Prescribed | None = None
) -> ca.Function:
    """Return step(t, q, v, [tau], [external], [stages], h) -> (q, v), one step of length h (s).

    With local coordinates u about q (``chart``), the state (u, v) is in a vector space, where u' is
    ``chart_rate(u, v)`` and v' the acceleration: the method keeps its order, and the positions stay on their group
    (Munthe-Kaas 1999, with the Cayley map instead of the exponential).

    With the equations of closure ``choice``, the state after the step is projected onto closed loops, and a third
    result is the margin of the equations: their distance from dependence (``closure_margin``), negative where at the
    present rate they become dependent within the next step.

    Prescribed coordinates have the positions, velocities and accelerations ``stages`` (9 x nv) at the start, the middle
    and the end of the step.

    Example:
        >>> from torsor.simulation.dynamics import forces
        >>> from torsor.simulation.sources import Source
        >>> robot = torsor.library.two_link()
        >>> runge_kutta(robot, forces(robot, Source(), Source(), False))
        Function(rk4:(t,q[2],v[2],h)->(q_next[2],v_next[2]) SXFunction)
    """
    t, q, v, *held = symbols(acting)
    h, accelerated = ca.SX.sym("h"), acceleration(robot, acting, choice, prescribed=prescribed)
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
    return step_function("rk4", robot, inputs, q_next, v_next, choice)
