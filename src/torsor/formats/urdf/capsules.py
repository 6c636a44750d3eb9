"""Capsules in URDF: a cylinder and two spheres, whose names tell that they are one capsule.

URDF has no capsules, and few readers know the element <capsule>. The three parts are the same body for all of them.
"""

import re
from dataclasses import replace
from typing import TypeVar

import numpy as np

from torsor.mechanism import Shape, Visual
from torsor.spatial import make_pose

Surface = TypeVar("Surface", bound=Visual | Shape)
_NAME = re.compile(r"(?:(.*)/)?capsule\d+", re.DOTALL)
_ENDS = {"low": -0.5, "high": 0.5}
_TOLERANCE = 1e-9  # of positions, over the size of the capsule


def capsule_parts(capsule: Surface, number: int) -> list[Surface]:
    """Return a capsule as a cylinder and the spheres at its ends; one of length 0 is a sphere.

    ``number`` makes the names of the parts unique among those of the link: ``NAME/capsule0``, ``NAME/capsule0/low``.

    Example:
        >>> parts = capsule_parts(Shape("capsule", (0.1, 0.5), name="arm"), 0)
        >>> [(part.shape, part.name) for part in parts]
        [('cylinder', 'arm/capsule0'), ('sphere', 'arm/capsule0/low'), ('sphere', 'arm/capsule0/high')]
        >>> joined_capsules(parts)[0].name
        'arm'
    """
    radius, length = capsule.size
    if not length:
        return [replace(capsule, shape="sphere", size=(radius,))]
    name = f"{capsule.name}/capsule{number}" if capsule.name else f"capsule{number}"
    spheres = [
        replace(capsule, shape="sphere", size=(radius,), name=f"{name}/{end}", pose=_end(capsule, side))
        for end, side in _ENDS.items()
    ]
    return [replace(capsule, shape="cylinder", name=name), *spheres]


def joined_capsules(parts: list[Surface]) -> list[Surface]:
    """Return visuals or shapes with capsules in place of the parts that ``capsule_parts`` makes of them.

    Parts that somebody has changed since, so that they are no capsule any more, stay what they are.
    """
    found, k = list[Surface](), 0
    while k < len(parts):
        whole = _capsule(parts[k : k + 3])
        found.append(parts[k] if whole is None else whole)
        k += 1 if whole is None else 3
    return found


def _capsule(parts: list[Surface]) -> Surface | None:
    name = _NAME.fullmatch(parts[0].name)
    if name is None or [part.shape for part in parts] != ["cylinder", "sphere", "sphere"]:
        return None
    cylinder, *spheres = parts
    capsule = replace(cylinder, shape="capsule", name=name[1] or "")
    for sphere, (end, side) in zip(spheres, _ENDS.items(), strict=True):
        away = np.abs(sphere.pose[:3, 3] - _end(capsule, side)[:3, 3]).max()
        same = getattr(sphere, "color", None) == getattr(cylinder, "color", None)
        fits = sphere.size[0] == cylinder.size[0] and away <= _TOLERANCE * sum(cylinder.size)
        if not (fits and same and sphere.name == f"{cylinder.name}/{end}"):
            return None
    return capsule


def _end(capsule: Visual | Shape, side: float) -> np.ndarray:
    return capsule.pose @ make_pose(p=[0, 0, side * capsule.size[1]])
