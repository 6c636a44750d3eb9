"""The surfaces of a robot in a page: each shape once, and the maps that place it on links."""

from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.view.pages.numbers import Numbers
from torsor.view.scene import Scene, Triangles
from torsor.view.scene.beams import Beam
from torsor.view.scene.bodies import ellipsoid_solid
from torsor.view.scene.detail import detailed, drawn, level
from torsor.view.scene.simplify import within

SAME = 1e-6  # largest distance between a surface and the image of a shape, as a fraction of its size
LIKE: tuple[float, float, float, float] = (0.86, 0.55, 0.2, 0.5)  # colour and opacity of ellipsoids of inertia
SOLIDS = 8000  # triangles of solids: without a graphics card a browser draws some 300,000 in a second
SHORT = 2**16  # vertices that two bytes can count


class Shapes:
    """Shapes with their vertices and faces; a surface that is an affine image of one of them is stored as the map."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.listed: list[dict[str, Any]] = []
        self._alike: dict[bytes, list[tuple[int, Array]]] = {}

    def add(self, surface: Triangles) -> dict[str, Any]:
        """Return the number of the shape of a surface and, if it is not the shape itself, the map (12 numbers)."""
        alike = self._alike.setdefault(surface.faces.astype("<i8").tobytes(), [])
        for number, source in alike:
            map_ = _affine(source, surface.vertices)
            if map_ is not None:
                return {"shape": number, "map": [float(f"{each:.9g}") for each in map_.T.ravel()]}
        alike.append((len(self.listed), np.column_stack([surface.vertices, np.ones(len(surface.vertices))])))
        kind = "u2" if len(surface.vertices) <= SHORT else "u4"
        vertices, faces = self.numbers.add(surface.vertices), self.numbers.add(surface.faces.ravel(), kind)
        self.listed.append({"vertices": vertices, "faces": faces})
        return {"shape": len(self.listed) - 1}


def _affine(source: Array, vertices: Array) -> Array | None:
    """Return the affine map (4 x 3) that takes vertices (n, 4), with ones, to others (n, 3), if there is one."""
    if len(source) != len(vertices):
        return None
    map_ = np.linalg.lstsq(source, vertices, rcond=None)[0]
    size = float(np.ptp(vertices, axis=0).max())
    return np.asarray(map_) if np.abs(source @ map_ - vertices).max() <= SAME * size else None


def surfaces(scene: Scene, numbers: Numbers, triangles: int) -> tuple[dict[str, Any], str]:
    """Return the shapes and what is shown of a robot, and a note if its meshes are simplified.

    Shapes of the description have at most about ``triangles`` triangles in all.
    """
    visuals = [each for each in scene.shown if not each.solids]
    before = sum(len(each.surface.faces) for each in visuals)
    reduced = within([each.surface for each in visuals], triangles)
    after = sum(len(each.faces) for each in reduced)
    new = {id(each): surface for each, surface in zip(visuals, reduced, strict=True)}
    shapes, shown = Shapes(numbers), []
    corners = level(scene, SOLIDS)
    for each in scene.shown:
        surface = detailed(each, corners) if each.solids else new[id(each)]
        if len(surface.faces):
            color = [round(value, 4) for value in each.color]
            middle = (surface.vertices.min(axis=0) + surface.vertices.max(axis=0)) / 2
            place = {"link": each.link, "kind": each.kind, "color": color, "middle": middle.round(5).tolist()}
            shown.append(place | {"name": each.name} | shapes.add(surface))
    for index, link in enumerate(scene.robot.links):
        body = ellipsoid_solid(link)
        if body is not None:
            place = {"link": index, "kind": "inertia", "color": list(LIKE), "middle": link.com.round(5).tolist()}
            shown.append(place | {"name": link.name} | shapes.add(drawn(body, corners[0])))
    note = (
        f"Meshes of {scene.robot.name} are simplified from {before:,} to {after:,} triangles." if after < before else ""
    )
    return {"shapes": shapes.listed, "shown": shown}, note


def beam_data(scene: Scene, numbers: Numbers) -> list[dict[str, Any]]:
    """Return how the flexible links of a robot bend, and from which place on their rods are numbered."""
    found, place = [], len(scene.robot.links)
    for each in scene.movers:
        if isinstance(each, Beam):
            parts = {name: numbers.add(getattr(each, name).ravel()) for name in ("points", "shapes", "second")}
            at = list(range(each.at.start, each.at.stop))
            found.append({"link": each.link, "place": place, "at": at, "pairs": each.pairs.ravel().tolist()} | parts)
        place += each.count
    return found
