"""Inverse kinematics of UPS legs in closed form: two axes that intersect, and a slide from there to the platform.

With w from the centre of the universal joint to the joint on the platform, in the first joint's axes at rest,

    |w| = length      q_1: w turned into the plane of the second joint      q_2: the angle of w from the first axis

There are four solutions: two with q_1 half a turn apart, and for each a second one with the leg reversed and a negative
length. Two signs select one of them.
"""

import math
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.dynamics.recursions.axes import place_in_body
from torsor.dynamics.recursions.kinematics import sx
from torsor.robot.parallel.limbs import Limb
from torsor.robot.parallel.platforms import Platform
from torsor.spatial.vectors import choose

EXACT = 1e-12  # tolerance of the distance between axes that intersect (m), and of right angles


class Angles(NamedTuple):
    """Positions (3 x 1) of a strut, and the cosines and sines of the angles of its first two joints."""

    q: ca.SX
    cosines: tuple[ca.SX, ca.SX]
    sines: tuple[ca.SX, ca.SX]


class Strut(NamedTuple):
    """A UPS leg in numbers: pose (R, centre) of its universal joint in base axes, and the zeros of its two angles.

    A joint turns (or slides) by ratio q + offset, with (ratio, offset) in ``scale``; ``rest`` is the length of the leg
    where the slide is zero.
    """

    limb: Limb
    R: Array
    centre: Array
    first: float
    second: float
    rest: float
    scale: tuple[tuple[float, float], ...]

    def signs(self, q: Any) -> tuple[Any, Any]:
        """Return the two signs of the assembly mode at the positions q (3,): that of sin(q_2), and of the length."""
        ratio, offset = self.scale[1]
        slide, rest = self.scale[2]
        side = choose(ca.sin(ratio * q[1] + offset - self.second) >= 0, 1.0, -1.0)
        return side, choose(slide * q[2] + rest + self.rest >= 0, 1.0, -1.0)

    def solve(self, platform: Platform, signs: tuple[Any, Any]) -> Angles:
        """Return the leg's positions for the platform's pose, in the assembly mode given by ``signs``."""
        r, _ = platform.place(self.limb.at)
        x, y, z = ca.vertsplit(sx(self.R.T) @ (platform.p + r - sx(self.centre)))
        flat, (side, way) = x * x + y * y, signs
        across, length = ca.sqrt(flat), way * ca.sqrt(flat + z * z)
        c1, s1 = _add_angle(side * way * x / across, side * way * y / across, -self.first)
        c2, s2 = _add_angle(z / length, side * way * across / length, self.second)
        values = ca.atan2(s1, c1), ca.atan2(s2, c2), length - self.rest
        q = [(value - offset) / ratio for value, (ratio, offset) in zip(values, self.scale, strict=True)]
        return Angles(ca.vertcat(*q), (c1, c2), (s1, s2))


def closest(q: ca.SX, guess: Any) -> ca.SX:
    """Return the positions of a strut with angles within half a turn of the guess."""
    turns = (2 * math.pi * ca.floor((q[k] - guess[k]) / (2 * math.pi) + 0.5) for k in range(2))
    return ca.vertcat(*(q[k] - turn for k, turn in enumerate(turns)), q[2])


def _add_angle(c: ca.SX, s: ca.SX, angle: float) -> tuple[ca.SX, ca.SX]:
    """Return the cosine and sine of the angle with cosine c and sine s, plus ``angle``."""
    quarters = round(angle / (math.pi / 2))
    if abs(angle - quarters * math.pi / 2) < 1e-14:
        return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters % 4]
    cos, sin = math.cos(angle), math.sin(angle)
    return c * cos - s * sin, s * cos + c * sin


def strut_of(limb: Limb) -> Strut | None:
    """Return a UPS leg as a strut, else None: two orthogonal hinges, a slide orthogonal to the second, a ball."""
    bodies = limb.tree.bodies
    kinds = [body.joint.kind.name for body in bodies]
    turns = ("revolute", "continuous")
    serial = [body.parent for body in bodies] == [-1, 0, 1] and limb.tip.link == 2 and limb.loop.kind == "spherical"
    if not serial or kinds[0] not in turns or kinds[1] not in turns or kinds[2] != "prismatic":
        return None
    if any(body.joint.follows for body in bodies) or any(abs(body.joint.ratio) != 1 for body in bodies[:2]):
        return None
    first, second, third = (np.asarray(body.T) for body in bodies)
    # All in the frame of the first joint at rest.
    axis, at = second[:3, 2], second[:3, 3]
    if abs(axis[2]) > EXACT:
        return None
    # The point of the second axis nearest to the first, which is the z axis.
    level = at - (at[:2] @ axis[:2]) * axis
    if np.hypot(level[0], level[1]) > EXACT:
        return None
    centre = np.array([0.0, 0.0, level[2]])
    seen = second[:3, :3].T @ (centre - at)  # the centre, in the second body's axes: on its z axis
    _, p_tip = place_in_body(limb.tree, limb.tip)
    along = third[:3, 2]
    tip = third[:3, 3] + third[:3, :3] @ np.asarray(ca.DM(p_tip)).ravel() - seen  # with the slide at zero
    if abs(along[2]) > EXACT or np.linalg.norm(np.cross(tip, along)) > EXACT:
        return None
    # The slide's direction turns in the plane across the second axis, from the first axis at the angle ``second``.
    upright = second[2, 0], second[2, 1]
    flat = second[:3, :3] @ np.array([-upright[1], upright[0], 0.0])
    angle = math.atan2(upright[1], upright[0]) - math.atan2(along[1], along[0])
    scale = tuple((body.joint.ratio, body.joint.offset + body.turn) for body in bodies)
    R = first[:3, :3]
    return Strut(limb, R, first[:3, 3] + R @ centre, math.atan2(flat[1], flat[0]), angle, float(tip @ along), scale)
