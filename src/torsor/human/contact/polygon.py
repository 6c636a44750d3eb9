"""The support polygon: the convex hull of the points of the soles that are in contact with the ground."""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.human.body.postures import landmark
from torsor.human.contact.support import Foot, Support
from torsor.motion.terms.term import TOUCHING
from torsor.robot.robot import Robot

SIDES_MOST = 6  # sides of the polygon of the forefoot of one foot and the heel of the other
NO_SIDE = (0.0, 0.0, 1.0)  # a side that every point is inside of


def support_points(body: Robot, support: Support, s: float) -> Array:
    """Return the points (P, 2) of the soles (x, z) (m) that are in contact at a time s.

    A heel, a ball or a tip of the toes in stance is the whole width of the sole there.

    Example:
        >>> from torsor.human import Walk
        >>> body = torsor.library.human()
        >>> support_points(body, Walk(), 0.5).round(3).tolist()  # the right foot is flat: heel and ball
        [[-0.095, 0.0], [-0.005, 0.0], [-0.095, 0.18], [-0.005, 0.18]]
    """
    half, found = Foot.of(body).half, list[tuple[float, float]]()
    for stance in support.stances:
        if not stance.first - TOUCHING <= s <= stance.last + TOUCHING:
            continue
        (x, z), heel = stance.heel, landmark(body, f"{stance.side}_heel")
        for point, _ in stance.points:
            if not point.endswith("_medial"):  # the same line across the sole as the point without this word
                ahead = float((landmark(body, f"{stance.side}_{point}") - heel)[2])
                found += [(x - half, z + ahead), (x + half, z + ahead)]
    return np.array(list(dict.fromkeys(found)))


def convex_hull(points: ArrayLike) -> Array:
    """Return the corners (C, 2) of the convex hull of points (P, 2) of a plane, anticlockwise.

    Example:
        >>> convex_hull([[0, 0], [2, 0], [1, 1], [2, 2], [0, 2], [1, 0]]).tolist()
        [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]
    """
    ordered = sorted(map(tuple, np.asarray(points, dtype=float).tolist()))
    chains = []
    for way in (ordered, ordered[::-1]):
        chain = list[tuple[float, ...]]()
        for point in way:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        chains += chain[:-1]
    return np.array(chains)


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    """Return twice the area of a triangle, positive if a, b, c are anticlockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def support_sides(body: Robot, support: Support, s: Array) -> Array:
    """Return the sides (K, 6, 3) of the support polygon at times s (K,): (a, b, c) with a x + b z + c >= 0 inside.

    (a, b) is the unit normal that points inwards, so that a x + b z + c is the distance (m) of a point (x, z) from the
    side. Where there are fewer than six sides, the last ones are (0, 0, 1).

    Example:
        >>> from torsor.human import Walk
        >>> sides = support_sides(torsor.library.human(), Walk(), np.array([0.5]))
        >>> (sides[0] @ [-0.05, 0.1, 1.0]).round(3).tolist()  # distances of a point within the sole
        [0.1, 0.045, 0.08, 0.045, 1.0, 1.0]
    """
    found = np.tile(NO_SIDE, (len(s), SIDES_MOST, 1))
    for k, each in enumerate(s.tolist()):
        corners = convex_hull(support_points(body, support, each))
        along = np.roll(corners, -1, axis=0) - corners
        inward = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.linalg.norm(along, axis=1)[:, None]
        found[k, : len(corners)] = np.column_stack([inward, -np.sum(inward * corners, axis=1)])
    return found
