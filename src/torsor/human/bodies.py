"""One set of compiled functions for all bodies: masses, lengths and gravity of a human are inputs of them.

A walk of another person, with another load or on another slope asks for the same expressions of other numbers.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from torsor import library
from torsor.errors import ModelError, describe
from torsor.human.balance import GLOBAL
from torsor.model import Robot
from torsor.motion import Number
from torsor.parametric import Parametric

__all__ = ["Shared", "check_names", "shared"]


class Shared(NamedTuple):
    """A body whose numbers are inputs (``model``), and their values (``numbers``)."""

    model: Parametric[Robot]
    numbers: dict[str, Number]


def shared(body: Robot) -> Shared:
    """Return a body by the numbers in which it differs from the one that functions are compiled for.

    A body that differs from that one otherwise gets functions of its own.

    Example:
        >>> model, numbers = shared(library.human(1.8, 80.0))
        >>> model is shared(library.human(1.6, 60.0)).model
        True
    """
    check_names(body)
    for model in (_usual(), body.parametric(_paths(body))):
        own = body.parametric(list(model.names)).values
        if _is_same(model.at(own), body):
            break
    return Shared(
        model, {name: Number(value, value, value) for name, value in zip(model.names, own.tolist(), strict=True)}
    )


def check_names(body: Robot) -> None:
    """Refuse a robot that does not have the coordinates of a human."""
    if body.coordinate_names[:6] != GLOBAL or body.coordinate_names != _usual().robot.coordinate_names:
        allowed = "a body with the coordinates of torsor.library.human()"
        raise ModelError(
            describe(f"robot {body.name!r}", allowed=allowed, fix="freeze coordinates in place of removing them")
        )


@cache
def _usual() -> Parametric[Robot]:
    body = library.human()
    return body.parametric([*_paths(body), "links.spine4.com.z", "links.spine4.inertia.yz"])


def _paths(body: Robot) -> list[str]:
    """Return paths of all numbers that are not zero."""
    found = []
    for link in body.links:
        if link.mass > 0:
            found.append(f"links.{link.name}.mass")
            found += [f"links.{link.name}.com.{axis}" for k, axis in enumerate("xyz") if link.com[k]]
            entries = [(a, b) for a in range(3) for b in range(a, 3) if link.inertia[a, b]]
            found += [f"links.{link.name}.inertia.{'xyz'[a]}{'xyz'[b]}" for a, b in entries]
    for joint in body.joints:
        found += [f"joints.{joint.name}.origin.{axis}" for k, axis in enumerate("xyz") if joint.placement[k, 3]]
    return [*found, "gravity.y", "gravity.z"]


def _is_same(one: Robot, other: Robot) -> bool:
    """Whether two bodies move alike: frames and limits do not matter, for these are no part of the functions."""
    numbers = [
        [each.gravity, *(np.concatenate([[a.mass], a.com, a.inertia.ravel()]) for a in each.links)]
        + [np.concatenate([j.placement.ravel(), j.axis, j.coulomb, j.viscous, j.rotor_inertia]) for j in each.joints]
        for each in (one, other)
    ]
    drives = all(joint.motor is None and joint.spring is None for joint in other.joints)
    return drives and one.joint_names == other.joint_names and all(map(np.array_equal, *numbers))
