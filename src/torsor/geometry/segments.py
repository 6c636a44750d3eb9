"""Nearest points of segments, the axes of capsules, over CasADi symbols.

Distances are exact; their squares have continuous first derivatives wherever the nearest points are unique (not for
parallel segments that overlap).
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
    return start + _clamped(share) * along


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
    a, b, r = first[1] - first[0], second[1] - second[0], first[0] - second[0]
    aa, bb, ab, ar, br = ca.sumsqr(a), ca.sumsqr(b), ca.dot(a, b), ca.dot(a, r), ca.dot(b, r)
    area = aa * bb - ab * ab
    apart = area > PARALLEL * aa * bb
    # The share of the first segment that is nearest to the line of the second; of parallel lines any is.
    s = ca.if_else(apart, _clamped((ab * br - bb * ar) / ca.if_else(apart, area, 1)), 0)
    # The nearest point of the second segment to that, and then that of the first one to it: they are the nearest pair.
    t = _clamped((ab * s + br) / ca.if_else(bb > 0, bb, 1))
    s = _clamped((ab * t - ar) / ca.if_else(aa > 0, aa, 1))
    return first[0] + s * a, second[0] + t * b


def _clamped(share: ca.SX) -> ca.SX:
    found: ca.SX = ca.fmax(0, ca.fmin(1, share))
    return found


def segment_distance(first: Sequence[ca.SX], second: Sequence[ca.SX]) -> ca.SX:
    """Return the squared distance of two segments, or points, each given by its ends (3 x 1).

    Example:
        >>> across = [ca.SX([0, -1, 2]), ca.SX([0, 1, 2])]
        >>> segment_distance([ca.SX([-1, 0, 0]), ca.SX([1, 0, 0])], across)
        SX(4)
    """
    p, q = nearest_points(first, second)
    return ca.sumsqr(p - q)
