"""Loads on a body: a backpack, a box in both hands, and time-varying hand forces."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import arrays, frozen_array, instance_of, interval, number, positive
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.robot.robot import Robot

MAX_HAND_FORCE = 3000.0  # N; more than a person can exert with two hands


@dataclass(frozen=True, eq=False)
class HandForces:
    """Forces (N) on the knuckles of both hands at ``times`` (K,) (s), linear in between and constant outside.

    ``right`` and ``left`` (K, 3) are the forces that the load exerts on the hands, in base axes: x to the left, y up, z
    forward. Pushing a cart forward with 100 N corresponds to (0, 0, -50) on each hand, and holding 10 kg to (0, -49,
    0).

    Example:
        >>> push = HandForces.ramp((0.0, 0.0, -120.0), 0.5)
        >>> push.at([0.0, 0.25, 2.0])[:, 0].tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, -30.0], [0.0, 0.0, -60.0]]
    """

    times: Array
    right: Array
    left: Array

    def __post_init__(self) -> None:
        times = np.atleast_1d(arrays(self.times, (), "hand forces", "times"))
        if times.ndim != 1 or not (np.diff(times) > 0).all():
            what, allowed = f"are {times.tolist()[:6]}", "increasing times (s)"
            raise ModelError(what, argument="times", where="hand forces", allowed=allowed)
        object.__setattr__(self, "times", times)
        for side in SIDES:
            force = frozen_array(getattr(self, side), (len(times), 3), "hand forces", side)
            largest = float(np.linalg.norm(force, axis=1).max())
            if largest > MAX_HAND_FORCE:
                what = f"the force on the {side} hand is {largest:.4g} N"
                allowed = f"at most {MAX_HAND_FORCE:g} N, the limit of human strength"
                raise ModelError(what, where="hand forces", allowed=allowed, fix="give forces in newtons")
            object.__setattr__(self, side, force)

    @classmethod
    def constant(cls, force: ArrayLike) -> "HandForces":
        """Return a constant force (3,) (N), split equally between the hands.

        Example:
            >>> HandForces.constant((0.0, -98.1, 0.0)).at([1.0]).tolist()
            [[[0.0, -49.05, 0.0], [0.0, -49.05, 0.0]]]
        """
        half = frozen_array(force, (3,), "hand forces", "force")[None] / 2
        return cls(np.zeros(1), half, half)

    @classmethod
    def ramp(cls, force: ArrayLike, rise: float) -> "HandForces":
        """Return a force (3,) (N) that rises linearly from 0 within ``rise`` (s), split equally between the hands."""
        half = np.outer([0.0, 1.0], frozen_array(force, (3,), "hand forces", "force") / 2)
        return cls(np.array([0.0, number(rise, "hand forces", "rise", above=0.0)]), half, half)

    def at(self, times: ArrayLike) -> Array:
        """Return the forces (K, 2, 3) (N) on the right and the left hand at times (K,) (s)."""
        t = arrays(times, (), "hand forces", "times")
        ways = [np.stack([np.interp(t, self.times, getattr(self, side)[:, k]) for k in range(3)], -1) for side in SIDES]
        return np.stack(ways, axis=-2)


def hand_wrenches(body: Robot, q: ArrayLike, forces: ArrayLike) -> Array:
    """Return the external wrenches (..., L, 6) of forces (..., 2, 3) (N, base axes) on the right and left knuckles.

    Each wrench is a moment and a force at the link origin in link axes, as in inverse dynamics.

    Example:
        >>> body, q = torsor.library.human(), np.zeros(55)
        >>> wrenches = hand_wrenches(body, q, [[0.0, -50.0, 0.0], [0.0, 0.0, 0.0]])
        >>> wrenches[body.link_names.index("right_hand")].round(9).tolist()
        [0.0, 0.0, 0.0, 0.0, -50.0, 0.0]
    """
    instance_of(body, Robot, "hand forces", "body", allowed="a torsor.library.human()")
    q, force = arrays(q, (body.nq,), "hand forces", "q"), arrays(forces, (2, 3), "hand forces", "forces")
    lead = np.broadcast_shapes(q.shape[:-1], force.shape[:-2])
    wrenches = np.zeros((*lead, len(body.links), 6))
    for k, side in enumerate(SIDES):
        link = body.place(f"{side}_knuckles").link
        R, at = body.pose(q, link)[..., :3, :3], body.place(f"{side}_knuckles").pose[:3, 3]
        local_force = np.einsum("...ji,...j->...i", R, force[..., k, :])
        wrenches[..., link, :3], wrenches[..., link, 3:] = np.cross(at, local_force), local_force
    return wrenches


MAX_MASS = 600.0  # kg; heavier than any load that a person has lifted


@dataclass(frozen=True)
class Backpack:
    """A backpack with a ``mass`` (kg), on the upper trunk.

    Its centre of mass is ``behind`` (m) behind the lowest joint of the upper trunk and ``height`` (m) above this joint.
    ``size`` (m) is the edge length of a homogeneous cube with the same inertia.

    Example:
        >>> round(Backpack(15.0).on(torsor.library.human()).mass, 9)
        88.0
    """

    mass: float
    behind: float = 0.2
    height: float = 0.0
    size: float = 0.3

    def __post_init__(self) -> None:
        number(self.mass, "backpack", "mass", above=0.0, most=MAX_MASS)
        for name in ("behind", "size"):
            positive(getattr(self, name), "backpack", name)
        number(self.height, "backpack", "height")

    def on(self, body: Robot) -> Robot:
        """Return the body with this load."""
        inertia = self.mass * self.size**2 / 6 * np.eye(3)
        return body.with_payload("spine4", self.mass, [0.0, self.height, -self.behind], inertia)


@dataclass(frozen=True)
class Box:
    """A box with a ``mass`` (kg), held by both hands on its sides, ``width`` (m) apart.

    Each hand carries half of the mass as a point mass. During walking, the box stays between ``near`` and ``far`` (m)
    in front of the upper trunk, and between ``low`` and ``high`` (m) above the lowest joint of the upper trunk.

    Example:
        >>> round(Box(8.0).on(torsor.library.human()).mass, 9)
        81.0
    """

    mass: float
    width: float = 0.35
    near: float = 0.2
    far: float = 0.5
    low: float = -0.4
    high: float = 0.0

    def __post_init__(self) -> None:
        number(self.mass, "box", "mass", above=0.0, most=MAX_MASS)
        positive(self.width, "box", "width")
        interval((self.near, self.far), "box", "near, far")
        interval((self.low, self.high), "box", "low, high")

    def on(self, body: Robot) -> Robot:
        """Return the body with this load."""
        for side in SIDES:
            body = body.with_payload(f"{side}_knuckles", self.mass / 2)
        return body
