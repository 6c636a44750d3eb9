"""One set of compiled functions for all bodies: masses, lengths and gravity of a human are inputs of them.

A walk of another person, with another load or on another slope asks for the same expressions of other numbers.
"""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from torsor import library
from torsor.errors import ModelError, describe
from torsor.motion import Number
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

__all__ = ["Shared", "check_body", "shared"]

UNBOUND: dict[str, Any] = dict.fromkeys(("upper", "velocity_limit", "effort_limit"), np.inf) | {"lower": -np.inf}


class Shared(NamedTuple):
    """A body whose numbers are inputs (``model``), and their values (``numbers``)."""

    model: Parametric[Robot]
    numbers: dict[str, Number]


def check_body(body: Robot, where: str) -> None:
    """Refuse what is no ``library.human``, and a body without weight.

    Example:
        >>> check_body(library.human(), "walk")
    """
    if not isinstance(body, Robot):
        raise ModelError(describe(f"body is {body!r}", where=where, allowed="a torsor.library.human()"))
    if body.coordinate_names != _usual().robot.coordinate_names:
        allowed, fix = "a body with the coordinates of torsor.library.human()", "freeze coordinates, do not remove them"
        raise ModelError(describe(f"robot {body.name!r}", where=where, allowed=allowed, fix=fix))
    if not body.gravity.any():
        fix = "torsor.library.human(gravity=...)"
        raise ModelError(describe("gravity is 0", where=where, allowed="a body that the ground carries", fix=fix))


def shared(body: Robot) -> Shared:
    """Return a body by the numbers in which it differs from the one that functions are compiled for.

    A body that differs from that one otherwise gets functions of its own.

    Example:
        >>> model, numbers = shared(library.human(1.8, 80.0))
        >>> model is shared(library.human(1.6, 60.0)).model
        True
    """
    for model in (_usual(), body.parametric(_paths(body))):
        own = body.parametric(list(model.names)).values
        if _is_same(model.at(own), body):
            break
    return Shared(
        model, {name: Number(value, value, value) for name, value in zip(model.names, own.tolist(), strict=True)}
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
    links = [
        [np.concatenate([[link.mass], link.com, link.inertia.ravel()]) for link in body.links] for body in (one, other)
    ]
    joints = [[replace(joint, **UNBOUND) for joint in body.joints] for body in (one, other)]
    same = np.array_equal(one.gravity, other.gravity) and all(map(np.array_equal, *links))
    return bool(same and joints[0] == joints[1])
