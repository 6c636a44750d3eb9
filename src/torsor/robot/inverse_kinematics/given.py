"""Targets of inverse kinematics from what a user gives: objects, or arrays by the places that they are for."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import ROTATION_TOLERANCE, real_array
from torsor.base.errors import ModelError
from torsor.robot.inverse_kinematics.targets import Pose, Position, Target


def made(targets: Any, where: str) -> tuple[Target, ...]:
    """Return targets as objects, from {place: pose or position}, one target, or a sequence of them.

    Example:
        >>> [each.label for each in made({"link2": np.eye(4), "link1": [0, 0, 1.0]}, "arm")]
        ["pose of 'link2'", "position of 'link1'"]
    """
    if isinstance(targets, Target):
        targets = [targets]
    if isinstance(targets, Mapping):
        targets = [_plain(place, value, where) for place, value in targets.items()]
    allowed = "{place: pose (..., 4, 4) or position (..., 3)}, or a list of Pose, Position, Orientation, Direction, "
    allowed += "LookAt and CenterOfMass"
    if not isinstance(targets, Sequence) or isinstance(targets, str) or not len(targets):
        raise ModelError(argument="targets", value=targets, where=where, allowed=allowed)
    for each in targets:
        if not isinstance(each, Target) or type(each) is Target:
            raise ModelError(f"a target of type {type(each).__name__}", where=where, allowed=allowed)
    return tuple(targets)


def _all_rotations(array: Array) -> bool:
    """Whether an array holds rotations, which three positions would be by mistake only."""
    if array.shape[-2:] != (3, 3) or not array.size:
        return False
    return bool(np.abs(array @ array.swapaxes(-1, -2) - np.eye(3)).max() < ROTATION_TOLERANCE)


def _plain(place: Any, value: Any, where: str) -> Target:
    """Return the target of an array: a pose (..., 4, 4) or a position (..., 3)."""
    if isinstance(value, Target):
        fix = "give a list of target objects, or {place: array}"
        raise ModelError(f"a {type(value).__name__} at {place!r}", value=place, where=where, fix=fix)
    array = real_array(value, where, f"target of {place!r}")
    if array.shape[-2:] == (4, 4):
        return Pose(place, array)
    if array.shape[-1:] == (3,) and not _all_rotations(array):
        return Position(place, array)
    found = f"target of {place!r} has shape {array.shape}"
    fix = "of a rotation (3, 3) make an Orientation; of three positions, Position(place, positions)"
    raise ModelError(found, value=place, where=where, allowed="(..., 4, 4) or (..., 3)", fix=fix)
