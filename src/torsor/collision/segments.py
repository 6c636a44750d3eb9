"""Nearest points of segments, the axes of capsules, over CasADi symbols.

Those of two segments are interior points of both, or an end of one of them. Distances are exact; their squares have
continuous first derivatives wherever the nearest points are unique (not for parallel segments that overlap).
"""

from collections.abc import Sequence

import casadi as ca

PARALLEL = 1e-9  # squared sine of the angle below which segments count as parallel


def on_segment(point: ca.SX, start: ca.SX, end: ca.SX) -> ca.SX:
    """Return the point (3 x 1) of a segment that is nearest to a point; the ends may be one point.

    Example:
        >>> ca.DM(on_segment(ca.SX([0.25, 1, 0]), ca.SX([0, 0, 0]), ca.SX([1, 0, 0])))
        DM([0.25, 0, 0])
    """
    along = end - start
    square = ca.sumsqr(along)
    share = ca.dot(point - start, along) / ca.if_else(square > 0, square, 1)
    return start + ca.fmax(0, ca.fmin(1, share)) * along


def nearest_points(first: Sequence[ca.SX], second: Sequence[ca.SX]) -> tuple[ca.SX, ca.SX]:
    """Return the nearest points (3 x 1 each) of two segments, or points, each given by its ends.

    Example:
        >>> across = [ca.SX([0, -1, 2]), ca.SX([0, 1, 2])]
        >>> [ca.DM(each) for each in nearest_points([ca.SX([-1, 0, 0]), ca.SX([1, 0, 0])], across)]
        [DM([0, 0, 0]), DM([0, 0, 2])]
    """
    if len(first) == 1:
        return first[0], second[0] if len(second) == 1 else on_segment(first[0], *second)
    if len(second) == 1:
        return on_segment(second[0], *first), second[0]
    tries = [(p, on_segment(p, *second)) for p in first] + [(on_segment(p, *first), p) for p in second]
    p, q = tries[0]
    least = ca.sumsqr(p - q)
    for x, y in tries[1:]:
        square = ca.sumsqr(x - y)
        p, q = ca.if_else(square < least, x, p), ca.if_else(square < least, y, q)
        least = ca.fmin(least, square)
    inside, s, t = _crossing(first, second)
    x, y = first[0] + s * (first[1] - first[0]), second[0] + t * (second[1] - second[0])
    return ca.if_else(inside, x, p), ca.if_else(inside, y, q)


def segment_distance(first: Sequence[ca.SX], second: Sequence[ca.SX]) -> ca.SX:
    """Return the squared distance of two segments, or points, each given by its ends (3 x 1).

    Example:
        >>> across = [ca.SX([0, -1, 2]), ca.SX([0, 1, 2])]
        >>> segment_distance([ca.SX([-1, 0, 0]), ca.SX([1, 0, 0])], across)
        SX(4)
    """
    p, q = nearest_points(first, second)
    return ca.sumsqr(p - q)


def _crossing(first: Sequence[ca.SX], second: Sequence[ca.SX]) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return whether the nearest points of two lines are inside of both segments, and where: shares of their lengths.

    The common perpendicular of two lines; lines that are parallel have no unique one.
    """
    a, b, r = first[1] - first[0], second[1] - second[0], first[0] - second[0]
    aa, bb, ab, ar, br = ca.sumsqr(a), ca.sumsqr(b), ca.dot(a, b), ca.dot(a, r), ca.dot(b, r)
    area = aa * bb - ab * ab
    apart = area > PARALLEL * aa * bb
    safe = ca.if_else(apart, area, 1)  # the other branch is evaluated too
    s, t = (ab * br - bb * ar) / safe, (aa * br - ab * ar) / safe
    inside = ca.logic_and(apart, ca.logic_and(ca.logic_and(s > 0, s < 1), ca.logic_and(t > 0, t < 1)))
    return inside, s, t
