"""Compiled kernels shared by all bodies, with masses, lengths and gravity as inputs.

Walks of different people, with different loads or on different slopes, use the same expressions with different numbers,
so they require no recompilation.
"""

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from torsor import library
from torsor.base.arrays import Array, Flags, Indices
from torsor.base.checks import instance_of
from torsor.base.errors import ModelError
from torsor.mechanism import Joint
from torsor.motion import Number
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot

_UPPER = np.triu_indices(3)
_OF_LINK = (
    "mass",
    *(f"com.{axis}" for axis in "xyz"),
    *(f"inertia.{'xyz'[a]}{'xyz'[b]}" for a, b in np.transpose(_UPPER)),
)
# Fields of joints on which the dynamics do not depend, and the placement, whose origin is among the numbers.
_NOT_COMPARED = ("placement", "lower", "upper", "velocity_limit", "effort_limit")
_COMPARED = attrgetter(*(entry.name for entry in fields(Joint) if entry.compare and entry.name not in _NOT_COMPARED))


def checked_body(body: Robot | None, where: str) -> Robot:
    """Return the body (None: the default); raise ModelError if it is not a ``library.human`` with nonzero gravity."""
    body = library.human() if body is None else body
    instance_of(body, Robot, where, "body", allowed="a torsor.library.human()")
    if body.coordinate_names != _default().model.robot.coordinate_names:
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

    A body that differs in other properties requires separate kernels.
    """
    shared, values = _default(), _numbers(body)
    if _has_same_dynamics(shared, body, values):
        model, values = shared.model, values[shared.places]
    else:
        model = body.parametric([path for path, is_free in zip(_paths(body), _is_free(body), strict=True) if is_free])
        values = model.values
    numbers = {name: Number(value, value, value) for name, value in zip(model.names, values.tolist(), strict=True)}
    return model, numbers


class _Shared(NamedTuple):
    """The default body with its parameters, their ``places`` in ``_numbers``, and the data shared by all bodies."""

    model: Parametric[Robot]
    places: Indices
    numbers: Array  # 0 for parameters
    structure: tuple[Any, ...]


@cache
def _default() -> _Shared:
    body = library.human()
    is_free, paths = _is_free(body), _paths(body)
    more = [paths.index(path) for path in ("links.spine4.com.z", "links.spine4.inertia.yz")]  # changed by loads
    places = np.concatenate([np.flatnonzero(is_free), more])
    numbers = _numbers(body)
    numbers[places] = 0.0
    return _Shared(body.parametric([paths[k] for k in places]), places, numbers, _structure(body))


def _numbers(body: Robot) -> Array:
    """Return the numbers of a body that may be parameters: those of links, joint origins and gravity."""
    inertias = np.array([link.inertia for link in body.links])[:, *_UPPER]
    links = np.column_stack([[link.mass for link in body.links], [link.com for link in body.links], inertias])
    origins = np.array([joint.placement for joint in body.joints])[:, :3, 3]
    return np.concatenate([links.ravel(), origins.ravel(), body.gravity])


def _paths(body: Robot) -> list[str]:
    """Return the paths of ``_numbers``."""
    links = [f"links.{link.name}.{entry}" for link in body.links for entry in _OF_LINK]
    origins = [f"joints.{joint.name}.origin.{axis}" for joint in body.joints for axis in "xyz"]
    return [*links, *origins, *(f"gravity.{axis}" for axis in "xyz")]


def _is_free(body: Robot) -> Flags:
    """Return flags of the ``_numbers`` that are parameters: nonzero numbers, and gravity in the sagittal plane."""
    is_free: Flags = _numbers(body) != 0
    is_free[: len(body.links) * len(_OF_LINK)] &= np.repeat([link.mass > 0 for link in body.links], len(_OF_LINK))
    is_free[-3:] = False, True, True
    return is_free


def _structure(body: Robot) -> tuple[Any, ...]:
    """Return the data other than ``_numbers`` on which the dynamics depend."""
    rotations = [joint.placement[:3, :3] for joint in body.joints]
    return rotations, *zip(*map(_COMPARED, body.joints), strict=True)


def _has_same_dynamics(shared: _Shared, body: Robot, numbers: Array) -> bool:
    """Return whether the default body with different parameters equals a body; frames and limits are ignored."""
    if numbers.shape != shared.numbers.shape:
        return False
    others = numbers.copy()
    others[shared.places] = 0.0
    inertias = np.array([link.inertia for link in body.links])
    is_same = np.array_equal(others, shared.numbers) and np.array_equal(inertias, inertias.swapaxes(1, 2))
    return is_same and all(map(np.array_equal, shared.structure, _structure(body)))
