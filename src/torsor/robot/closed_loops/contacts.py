"""Prescribed contacts: links or frames of a robot, each fixed to the ground by a loop."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from torsor.base.arrays import Maybe
from torsor.base.checks import one_of, vectors
from torsor.base.errors import ModelError
from torsor.mechanism import Mechanism, edit, edit_loops
from torsor.mechanism.mechanism import carrier
from torsor.robot.kernels import RobotKernels
from torsor.spatial import make_pose

M = TypeVar("M", bound=Mechanism)

CONTACTS = {"point": "spherical", "surface": "weld"}
"""Cut joint of each contact kind, with 3 or 6 equations."""


def with_contacts(robot: M, kernels: RobotKernels, places: Sequence[str] | Mapping[str, str], q: Maybe, kind: str) -> M:
    """Return the robot with a loop "PLACE/contact" that fixes each place at its pose for positions q (nq,)."""
    where = f"{robot.name}: with_contacts"
    if isinstance(places, str) or not isinstance(places, Sequence | Mapping) or not places:
        allowed = "link and frame names, or {name: 'point' or 'surface'}"
        raise ModelError(f"are {places!r}", value=places, argument="places", where=where, allowed=allowed)
    unknown = [place for place in places if not isinstance(place, str | int)]
    if unknown:
        raise ModelError(f"places contains {unknown[0]!r}", where=where, allowed="link and frame names")
    kinds = dict(places) if isinstance(places, Mapping) else dict.fromkeys(places, kind)
    if len(kinds) < len(places):
        raise ModelError("a place is named twice", where=where, allowed="one contact per place")
    at = robot.neutral() if q is None else vectors(q, robot.nq, where, "q")
    if at.ndim > 1:
        raise ModelError(f"has shape {at.shape}", argument="q", where=where, allowed=f"({robot.nq},)")
    touched = robot
    for place, item in kinds.items():
        joint = CONTACTS[one_of(item, tuple(CONTACTS), where, f"contact of {place!r}")]
        result = robot.place(place)  # raises ModelError for an unknown name
        if result.link < 0:
            message = f"{place!r} does not move, because it is part of the base"
            raise ModelError(message, value=place, where=where, allowed="links and frames of moving links")
        T = np.asarray(kernels.exact.call("pose", at, place=place))
        upright = result.pose @ make_pose(T[:3, :3].T)
        foot, ground, link = f"{place}/contact_foot", f"{place}/contact_ground", carrier(robot, result).name
        touched = edit.with_frame(touched, foot, link, upright)
        touched = edit.with_frame(touched, ground, robot.base.name, make_pose(p=T[:3, 3]))
        touched = edit_loops.with_loop(touched, f"{place}/contact", ground, foot, joint)
    return touched
