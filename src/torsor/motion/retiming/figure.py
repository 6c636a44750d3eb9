"""The curves of a retimed motion that its figure has: the states and forces, and all else that is bounded."""

import numpy as np

from torsor.base.arrays import Array
from torsor.base.figures import Bound, Quantity, friction_jumps
from torsor.mechanism.units import FORCES, units
from torsor.motion.retiming.bounds import Bounds
from torsor.motion.retiming.uses import reactions
from torsor.robot.robot import Robot


def quantities(
    robot: Robot, bounds: Bounds, duration: float, q: Array, v: Array, a: Array, jerk: Array, tau: Array
) -> list[Quantity]:
    """Return the curves (T, n) with their bounds; jerks, rates of forces and reactions only where they are bounded.

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> bounds = Bounds.of(robot, {"velocity": 1.0, "acceleration": 2.0, "jerk": 9.0})
        >>> [each.title for each in quantities(robot, bounds, 1.0, *np.zeros((5, 1, 1)))]
        ['Positions', 'Velocities', 'Accelerations', 'Forces', 'Jerks']
    """
    names, own = robot.coordinate_names, units(robot)[1]
    forces = [FORCES[unit] for unit in own]

    def of(kind: str) -> tuple[Bound, ...]:
        return (Bound(0.0, duration, *bounds.values[kind]),) if bounds.has(kind) else ()

    limits = (Bound(0.0, duration, robot.lower, robot.upper),)
    found = [
        Quantity("Positions", names, own, q, limits, fits=False),
        Quantity("Velocities", names, [f"{unit}/s" for unit in own], v, of("velocity"), fits=False),
        Quantity("Accelerations", names, [f"{unit}/s²" for unit in own], a, of("acceleration"), fits=False),
        Quantity("Forces", names, forces, tau, of("torque"), friction_jumps(robot, v), False),
    ]
    if bounds.has("jerk"):
        found.append(Quantity("Jerks", names, [f"{unit}/s³" for unit in own], jerk, of("jerk"), fits=False))
    if bounds.has("torque_rate"):
        values, per_second = robot.force_rate(q, v, a, jerk)[1], [f"{unit}/s" for unit in forces]
        found.append(Quantity("Rates of forces", names, per_second, values, of("torque_rate"), fits=False))
    if bounds.reactions:
        joints = [f"{kind} {joint}" for joint, _, kind, _ in bounds.reactions]
        kinds = ["N" if kind == "force" else "N m" for _, _, kind, _ in bounds.reactions]
        most = np.array([size for *_, size in bounds.reactions])
        bound = Bound(0.0, duration, np.full(len(most), -np.inf), most)
        found.append(Quantity("Reactions", joints, kinds, reactions(robot, bounds, q, v, a), (bound,), fits=False))
    return found
