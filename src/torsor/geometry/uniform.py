"""Uniform-density bodies with the shapes of a link, and hints for links whose inertias differ greatly from them."""

from typing import NamedTuple

import numpy as np

from torsor.base.errors import ModelError
from torsor.geometry.convex import Hull, hull_of
from torsor.mechanism import Link, Mechanism, Shape, Visual
from torsor.mechanism.parts import Solid, primitive_solid, tetrahedra_solid
from torsor.spatial import composite, move_inertia

FACTOR = 10.0  # ratio of a link's principal moments to those of a uniform body above which they are suspicious


class Hint(NamedTuple):
    """A hint about a suspicious link."""

    link: str
    text: str


def uniform_body(shape: Shape, where: str) -> Solid | None:
    """Return (volume, centre, inertia about the centre for unit density) of a shape in link axes.

    The result is None for planes and height fields.
    """
    if shape.shape in ("plane", "height field"):
        return None
    is_mesh = shape.shape == "mesh"
    solid = _of_hull(hull_of(shape, where)) if is_mesh else primitive_solid(shape.shape, np.array(shape.size))
    return move_inertia(shape.pose, *solid)


def _of_hull(hull: Hull) -> Solid:
    """Return volume, centre and inertia about the centre of a unit-density convex hull, as sums over tetrahedra."""
    middle = hull.vertices.mean(axis=0)
    corners = (hull.vertices - middle)[hull.faces]  # each face forms a tetrahedron with the middle
    volume, center, inertia = tetrahedra_solid(corners, np.abs(np.linalg.det(corners)) / 6)
    return volume, middle + center, inertia


def inertia_hint(link: Link) -> str:
    """Return a hint if the inertia of a link with shapes is suspicious, or an empty string.

    The principal moments are compared with those of a uniform body with the mass and shapes of the link. Hollow links
    and links with motors differ by a factor of 2 or 3. Inertias that are invented or in wrong units differ by much
    more.
    """
    if link.defect:
        return str(link.defect.but(where=""))
    if not link.mass > 0:
        return ""
    bodies = [body for shape in link.shapes for body in [uniform_body(shape, link.where)] if body is not None]
    if not bodies:
        return ""
    volume, _, inertia = composite(*bodies)
    expected = np.linalg.eigvalsh(inertia) * link.mass / volume
    moments = np.linalg.eigvalsh(link.inertia)
    shown, others = (", ".join(f"{value:.3g}" for value in values) for values in (moments, expected))
    if not moments.max() > 0:
        return f"it has mass {link.mass:.3g} kg but no inertia; a uniform body of its shape has {others} kg m^2"
    ratio = np.maximum(moments, 1e-300) / expected
    body = f"a uniform body of its shape and mass, {others}"
    if ratio.max() > FACTOR:
        return f"moments of inertia {shown} kg m^2 are up to {ratio.max():.3g} times those of {body}"
    if ratio.min() < 1 / FACTOR:
        return f"moments of inertia {shown} kg m^2 are down to 1/{1 / ratio.min():.3g} of those of {body}"
    return ""


def inertia_hints(robot: Mechanism) -> list[Hint]:
    """Return hints about suspicious inertias of moving links; links whose meshes cannot be read are skipped."""
    result = []
    for link in robot.links:
        try:
            text = inertia_hint(link)
        except (ModelError, ImportError):  # missing meshes are reported separately
            continue
        result += [Hint(link.name, text)] if text else []
    return result


def missing_meshes(robot: Mechanism) -> list[str]:
    """Return the distinct mesh files of visuals and collision shapes that were not found."""
    parts = list[Visual | Shape]()
    for link in (robot.base, *robot.links):
        parts += [*link.visuals, *link.shapes]
    return list(dict.fromkeys(part.mesh or part.name for part in parts if part.shape == "mesh" and part.path is None))
