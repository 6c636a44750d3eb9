"""Joints that formats describe as one: slides and turns between two frames, with massless links between them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from torsor.base.arrays import Array
from torsor.mechanism import Joint, Link
from torsor.spatial import inverse_pose


def joint_chain(
    steps: Sequence[Joint | Array], parent: str, child: str, before: Array, after: Array, unused: Callable[[str], str]
) -> tuple[list[Link], list[Joint]]:
    """Return the massless links and the joints of a chain that goes from a frame on ``parent`` to one on ``child``.

    ``before`` and ``after`` (4 x 4) are the poses of the two frames on their links; they coincide when all ``steps``
    are at zero. The axes of the steps are in these frames; their parents and children are not used. A step may be a
    pose (4 x 4) that does not move; at least one is a joint. ``unused`` makes the name of a link unique.

    Example:
        >>> slide, turn = Joint("x", "prismatic", "", "", axis=(1, 0, 0)), Joint("angle", "revolute", "", "")
        >>> links, joints = joint_chain([slide, turn], "ground", "cart", np.eye(4), np.eye(4), lambda name: name)
        >>> [link.name for link in links], [(joint.parent, joint.child) for joint in joints]
        (['cart/1'], [('ground', 'cart/1'), ('cart/1', 'cart')])
    """
    last = max(k for k, step in enumerate(steps) if isinstance(step, Joint))
    links, joints = list[Link](), list[Joint]()
    for pose in (step for step in reversed(steps[last + 1 :]) if not isinstance(step, Joint)):
        after = after @ inverse_pose(pose)  # what does not move after the last joint is a part of its child
    for step in steps[: last + 1]:
        if not isinstance(step, Joint):
            before = before @ step
        elif step is not steps[last]:
            links.append(Link(unused(f"{child}/{len(links) + 1}")))
            joints.append(replace(step, parent=parent, child=links[-1].name, placement=before))
            parent, before = links[-1].name, np.eye(4)
        else:
            moved = replace(step, parent=parent, child=child, placement=before @ inverse_pose(after))
            joints.append(replace(moved, axis=after[:3, :3] @ step.axis, point=after[:3, 3]))
    return links, joints
