"""How much of each bound a motion uses, at any times: what is said of a timing after it is found."""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
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
        sizes = reactions(robot, bounds, q, v, a)
        for size, (joint, _, kind, bound) in zip(sizes.T, bounds.reactions, strict=True):
            found.append(Use(f"reaction {kind} {joint}", size / bound))
    return found


def reactions(robot: Robot, bounds: Bounds, q: Array, v: Array, a: Array) -> Array:
    """Return the magnitudes (T, R) of the forces (N) and moments (N m) that are bounded, in a motion (T, n).

    Example:
        >>> rod = torsor.library.planar_chain(1, mass=2.0, gravity=(0, -9.81, 0))
        >>> given = {"velocity": 1.0, "acceleration": 1.0}
        >>> bounds = Bounds.of(rod, given, {"joint1": {"force": 30.0}})
        >>> reactions(rod, bounds, *np.zeros((3, 1, 1))).round(9).tolist()  # its weight
        [[19.62]]
    """
    wrenches = robot.joint_wrenches(q, v, a)
    parts = [
        wrenches[:, link, 3:] if kind == "force" else wrenches[:, link, :3] for _, link, kind, _ in bounds.reactions
    ]
    sizes: Array = np.linalg.norm(np.stack(parts, axis=1), axis=-1)
    return sizes


def peak(use: Array) -> float:
    """Return the largest of some uses (I, P) at places with equal distances in each of I intervals.

    Between places it is that of the parabolas through three of them.

    Example:
        >>> peak(np.array([[-0.5625, 0.9375, 0.4375]]))  # 1 - (x - 1.25)^2 at 0, 1 and 2
        1.0
    """
    left, here, right = use[:, 1:-1] - use[:, :-2], use[:, 1:-1], use[:, 1:-1] - use[:, 2:]
    within = (left + right > 0) & (np.abs(left - right) <= 2 * (left + right))  # the top is between the three
    left, here, right = left[within], here[within], right[within]
    tops = here + (left - right) ** 2 / (8 * (left + right))
    return float(max(use.max(), tops.max(initial=-np.inf)))
