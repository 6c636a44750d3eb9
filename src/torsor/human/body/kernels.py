"""One set of compiled kernels for all bodies: masses, lengths and gravity are kernel inputs.

The walk of a different person, with a different load or on a different slope, uses the same expressions with different
numbers. It therefore requires no new compilation.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.checks import instance_of
from torsor.base.errors import ModelError
from torsor.motion import Number
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

UNBOUND: dict[str, Any] = dict.fromkeys(("upper", "velocity_limit", "effort_limit"), np.inf) | {"lower": -np.inf}


def checked_body(body: Robot | None, where: str) -> Robot:
    """Return the body (None: the default); raise ModelError if it is not a ``library.human`` with a weight."""
    body = library.human() if body is None else body
    instance_of(body, Robot, where, "body", allowed="a torsor.library.human()")
    if body.coordinate_names != _default().robot.coordinate_names:
        allowed, fix = (
            "a body with the coordinates of torsor.library.human()",
            "freeze coordinates, do not remove them",
        )
        what = f"robot {body.name!r} does not have the coordinates of the human body"
        raise ModelError(what, value=body.name, where=where, allowed=allowed, fix=fix)
    if not body.gravity.any():
        fix = "torsor.library.human(gravity=...)"
        raise ModelError("gravity is 0", where=where, allowed="a body that has weight", fix=fix)
    return body


def shared_model(body: Robot) -> tuple[Parametric[Robot], dict[str, Number]]:
    """Return the parametric body for which the kernels are compiled, and the parameters of this body.

    A body that differs in other properties requires its own kernels.
    """
    for model in (_default(), body.parametric(_paths(body))):
        values = body.parametric(list(model.names)).values
        if _has_same_dynamics(model.at(values), body):
            break
    numbers = {name: Number(value, value, value) for name, value in zip(model.names, values.tolist(), strict=True)}
    return model, numbers


@cache
def _default() -> Parametric[Robot]:
    body = library.human()
    return body.parametric([*_paths(body), "links.spine4.com.z", "links.spine4.inertia.yz"])


def _paths(body: Robot) -> list[str]:
    """Return the paths of all non-zero parameters."""
    paths = []
    for link in body.links:
        if link.mass > 0:
            paths.append(f"links.{link.name}.mass")
            paths += [f"links.{link.name}.com.{axis}" for k, axis in enumerate("xyz") if link.com[k]]
            entries = [(a, b) for a in range(3) for b in range(a, 3) if link.inertia[a, b]]
            paths += [f"links.{link.name}.inertia.{'xyz'[a]}{'xyz'[b]}" for a, b in entries]
    for joint in body.joints:
        paths += [f"joints.{joint.name}.origin.{axis}" for k, axis in enumerate("xyz") if joint.placement[k, 3]]
    return [*paths, "gravity.y", "gravity.z"]


def _has_same_dynamics(one: Robot, other: Robot) -> bool:
    """Return whether two bodies have the same dynamics; frames and limits are not part of the kernels."""
    links = [[np.hstack([link.mass, link.com, link.inertia.ravel()]) for link in body.links] for body in (one, other)]
    joints = [[replace(joint, **UNBOUND) for joint in body.joints] for body in (one, other)]
    same = np.array_equal(one.gravity, other.gravity) and all(map(np.array_equal, *links))
    return bool(same and joints[0] == joints[1])
