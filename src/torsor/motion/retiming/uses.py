"""How much of each bound a motion uses, at any times: what is said of a timing after it is found."""

from typing import NamedTuple

import numpy as np

from torsor.arrays import Array
from torsor.motion.retiming.bounds import KINDS, Bounds
from torsor.robot.robot import Robot


class Use(NamedTuple):
    """The ``use`` (T,) of a bound: the value relative to the bound on its side of 0, 1 at the bound."""

    name: str
    use: Array


def uses(robot: Robot, bounds: Bounds, q: Array, v: Array, a: Array, jerk: Array, tau: Array) -> list[Use]:
    """Return the use of all bounds in a motion, whose arrays are (T, n)."""
    values = {"velocity": v, "acceleration": a, "jerk": jerk, "torque": tau}
    if bounds.has("torque_rate"):
        values["torque_rate"] = robot.force_rate(q, v, a, jerk)[1]
    found = []
    for kind in KINDS:
        low, high = bounds.values[kind]
        for n, name in enumerate(robot.coordinate_names):
            if bounds.has(kind) and np.isfinite([low[n], high[n]]).any():
                value = values[kind][:, n]
                found.append(Use(f"{kind.replace('_', ' ')} {name}", np.maximum(value / high[n], value / low[n])))
    if bounds.reactions:
        wrenches = robot.joint_wrenches(q, v, a)
        for joint, link, kind, bound in bounds.reactions:
            part = wrenches[:, link, 3:] if kind == "force" else wrenches[:, link, :3]
            found.append(Use(f"reaction {kind} {joint}", np.linalg.norm(part, axis=-1) / bound))
    return found
