"""Geometric comparison of the shapes of a robot with those of its copy, written to a file and read back."""

import filecmp
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.copies import Copy
from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.formats.meshes.mesh_files import read_mesh
from torsor.mechanism import Shape, Visual
from torsor.robot.robot import Robot

TOLERANCE = 1e-6  # of sizes (relative), poses (m) and colours; MuJoCo and mesh files have single precision


class Placed(NamedTuple):
    """A visual or a collision shape, and its pose in the axes of the base."""

    given: Visual | Shape
    pose: Array


def lost_shapes(robot: Robot, again: Robot) -> list[str]:
    """Return the visuals and collision shapes of a robot that a copy lacks; empty if it lacks none.

    Both are compared at a random state, regardless of link names. Simple shapes are compared by kind, size, pose and
    colour. Meshes are compared by the area of their surface and its first and second moments. All meshes at one pose
    are combined, because a mesh may have been split by colour. A mesh without a file is compared by its name and scale.

    Example:
        >>> import torsor
        >>> arm = torsor.library.two_link()
        >>> drawn = arm.with_shapes("link1", [Shape("sphere", (0.1,))])
        >>> lost_shapes(drawn, drawn), lost_shapes(drawn, arm)
        ([], ['collision sphere'])
    """
    copy = Copy(robot, again)
    q, _, _ = copy.state(np.random.default_rng(1))
    ours, theirs = _placed(copy.robot, q), _placed(copy.again, copy.q(q))
    left = []
    for one in ours:
        other = next((k for k, each in enumerate(theirs) if _same(one, each)), None)
        if other is None:
            left.append(one)
        else:
            del theirs[other]
    return [_words(one) for one in left if not _same_surface(one, left, theirs)]


def _placed(robot: Robot, q: Array) -> list[Placed]:
    found = []
    for pose, link in zip([np.eye(4), *robot.poses(q)], (robot.base, *robot.links), strict=True):
        parts: list[Visual | Shape] = [*link.visuals, *link.shapes]
        found += [Placed(given, pose @ given.pose) for given in parts]
    return found


def _is_near(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE))


def _same(one: Placed, other: Placed) -> bool:
    """Whether two shapes are the same, as far as no mesh must be read to tell."""
    a, b = one.given, other.given
    if type(a) is not type(b) or a.shape != b.shape or not _is_near(one.pose, other.pose):
        return False
    same = np.allclose(a.size, b.size, rtol=TOLERANCE, atol=0) and _is_near(_color(a), _color(b))
    return same and _same_file(_file(a), _file(b), bool(a.path and b.path))


def _color(given: Visual | Shape) -> tuple[float, ...]:
    """Return red, green, blue and opacity; of what has no colour, numbers that no colour has."""
    color = getattr(given, "color", None)
    return (-1.0,) * 4 if color is None else (*color, 1.0)[:4]


def _file(given: Visual | Shape) -> str:
    return str(Path(given.path).resolve()) if given.path else Path(given.mesh or "").name


def _same_file(a: str, b: str, found: bool) -> bool:
    """Return whether two names refer to the same file or, if the files exist, to the same content."""
    if a == b or not found or "#" in a + b:  # surfaces in stages of USD
        return a == b
    return Path(a).is_file() and Path(b).is_file() and filecmp.cmp(a, b, shallow=False)


def _same_surface(one: Placed, ours: list[Placed], theirs: list[Placed]) -> bool:
    """Whether the meshes of both robots at the pose of one, and of its kind, have the same surface together."""
    if one.given.shape != "mesh":
        return False
    mine, yours = (
        [
            _moments(_file(each.given), each.given.size)
            for each in side
            if type(each.given) is type(one.given) and each.given.shape == "mesh" and _is_near(each.pose, one.pose)
        ]
        for side in (ours, theirs)
    )
    known = [each for each in (*mine, *yours) if each is not None]
    if len(known) < len(mine) + len(yours) or not yours:
        return False
    total, found = sum(known[: len(mine)]), sum(known[len(mine) :])
    return bool(np.allclose(total, found, rtol=0, atol=TOLERANCE * np.abs(total).max()))


@lru_cache(maxsize=4096)
def _moments(path: str, scale: tuple[float, ...]) -> Array | None:
    """Return ∫ (r, 1)(r, 1)ᵀ dA of the surface of a mesh file (4 x 4), in its own axes; None if it cannot be read."""
    try:
        surface = read_mesh(path).scaled(scale)
    except ModelError:
        return None
    corners = np.insert(surface.vertices, 3, 1.0, axis=1)[surface.faces]  # (m, 3, 4)
    sides = corners[:, 1:, :3] - corners[:, :1, :3]
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1) / 2
    weighted, sums = corners * areas[:, None, None], corners.sum(axis=1)
    return np.asarray(np.einsum("mki,mkj->ij", weighted, corners) + (sums * areas[:, None]).T @ sums) / 12


def _words(one: Placed) -> str:
    kind = "visual" if isinstance(one.given, Visual) else "collision"
    what = f"{kind} {one.given.shape}"
    return f"{what} {Path(one.given.mesh or '').name}".rstrip()
