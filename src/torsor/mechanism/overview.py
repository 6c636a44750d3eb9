"""The short table of a mechanism for ``print`` and for notebooks: one row for each joint with its link."""

from collections.abc import Mapping, Sequence

import numpy as np

from torsor.base.summary import Summary
from torsor.mechanism.parts import Joint, Link

HEAD = ("joint", "type", "link", "parent", "mass (kg)", "range", "effort limit")


def overview(title: str, facts: Mapping[str, str], joints: Sequence[Joint], links: Sequence[Link]) -> Summary:
    """Return the table of joints and the links that they move; a column that says nothing is left out.

    Example:
        >>> hinge = Joint("elbow", "revolute", "upper", "lower", lower=-1.0, upper=2.0)
        >>> print(overview("arm", {}, [hinge], [Link("lower", 1.5)]).text())
        arm
        joint  type      link   parent  mass (kg)  range
        elbow  revolute  lower  upper   1.5        -1 .. 2 rad
    """
    rows = [
        (
            f"{joint.name} (follows {joint.coordinate})" if joint.follows else joint.name,
            joint.type,
            link.name,
            joint.parent,
            f"{link.mass:.4g}",
            _range(joint),
            _effort(joint),
        )
        for joint, link in zip(joints, links, strict=True)
    ]
    kept = [k for k in range(len(HEAD)) if any(row[k] for row in rows)]
    return Summary(title, facts, [HEAD[k] for k in kept], [[row[k] for k in kept] for row in rows])


def _range(joint: Joint) -> str:
    lower, upper = (np.unique(np.atleast_1d(each)) for each in (joint.lower, joint.upper))
    if len(lower) != 1 or len(upper) != 1 or not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return ""
    unit = "rad" if joint.kind.turns[0] else "m"
    return f"{lower[0]:.4g} .. {upper[0]:.4g} {unit}"


def _effort(joint: Joint) -> str:
    limit = np.unique(np.atleast_1d(joint.effort_limit))
    if len(limit) != 1 or not np.isfinite(limit).all() or not joint.kind.turns:
        return ""
    return f"{limit[0]:.4g} {'N m' if joint.kind.turns[0] else 'N'}"
