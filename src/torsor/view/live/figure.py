"""A robot in the browser: solids of the same kind share a node, and each mesh has its own."""

from collections import defaultdict
from html import escape
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import printable
from torsor.base.scenes import Color, Solid
from torsor.formats.meshes.triangles import Triangles, joined
from torsor.spatial import quaternion_product
from torsor.view.live.shots import placed
from torsor.view.scene import Scene
from torsor.view.scene.detail import level, unit

# Names from files become parts of node paths and of HTML. They can contain anything, and are escaped.


def node(*names: object) -> str:
    """Return the path of a scene node; each name is one level, whatever characters it contains."""
    return "".join(f"/{quote(str(name), safe='') or '_'}" for name in names)


def words(text: object) -> str:
    """Return text with HTML characters escaped."""
    return escape(printable(str(text)))


def label(text: str, longest: int = 48) -> str:
    """Return a name as a widget label: without control characters, and at most ``longest`` characters long."""
    shown = printable(text).replace("\\n", " ")
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def short(value: float) -> str:
    """Format a number as on the offline page: no decimals from 1000 upwards, three decimals below 1.

    Example:
        >>> short(-1234.5), short(12.345), short(0.00001)
        ('−1234', '12.3', '0')
    """
    size = abs(value)
    digits = 3 if size < 1 else 2 if size < 10 else 1 if size < 1000 else 0
    number = f"{value:.{digits}f}"
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return "0" if number in ("-0", "") else number.replace("-", "−")


MAX_TRIANGLES = 8000  # triangles of solids: browsers without a GPU draw some 200,000 in a second
GAMMA = 2.2  # exponent from sRGB to light intensity
MIN_BODY_OPACITY = 0.8  # opacity of inertia ellipsoids
NO_SHADOWS = {"cast_shadow": False, "receive_shadow": False}  # shadows take most of the time of a frame


OUTLINE = 0.003  # distance of an outline from the surfaces, in sizes of the robot
AXIS_FACTORS = {"box": (2.0, 2.0, 2.0), "ball": (1.0, 1.0, 1.0), "cylinder": (1.0, 1.0, 2.0)}  # size per distance


def grown(surface: Triangles, by: float) -> Triangles:
    """Return a surface with vertices moved outwards by a distance (m); faces become counterclockwise from outside.

    Example:
        >>> from torsor.formats.meshes.triangles import sphere
        >>> float(np.linalg.norm(grown(sphere(1.0), 0.5).vertices, axis=1).max().round(3))
        1.5
    """
    corners = surface.vertices[surface.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inverted = np.einsum("fi,fi->", across, corners[:, 0] - surface.vertices.mean(axis=0)) < 0
    normals = np.zeros_like(surface.vertices)
    for k in range(3):
        np.add.at(normals, surface.faces[:, k], -across if inverted else across)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(float).tiny)
    return Triangles(surface.vertices + by * normals, surface.faces[:, ::-1] if inverted else surface.faces)


def linear(color: tuple[float, ...]) -> tuple[float, ...]:
    """Return red, green and blue as linear intensities (0 to 1), as viser expects for batched meshes."""
    return tuple(part**GAMMA for part in color[:3])


class Batch:
    """Solids of the same kind and opacity, each fixed to a link; their circles have ``around`` corners."""

    def __init__(
        self, server: Any, path: str, solids: list[tuple[int, Solid, Color]], around: int, outline: float = 0.0
    ):
        self.links = np.array([link for link, _, _ in solids])
        self.at, self.turns = placed(np.stack([solid.pose for _, solid, _ in solids]))
        shape, opacity = unit(solids[0][1].shape, around), solids[0][2][3]
        looks: dict[str, Any] = {"opacity": None if opacity >= 1 else opacity, "lod": "off", **NO_SHADOWS}
        looks["batched_scales"] = np.stack([solid.size for _, solid, _ in solids])
        if outline:
            looks["batched_scales"] += outline * np.array(AXIS_FACTORS[solids[0][1].shape])
            looks["side"] = "back"
        looks["batched_colors"] = np.array([linear(color) for _, _, color in solids])
        mesh = shape.vertices.astype(np.float32), shape.faces
        self.node = server.scene.add_batched_meshes_simple(path, *mesh, self.turns, self.at, **looks)

    def place(self, positions: Array, turns: Array) -> None:
        """Move the solids to positions (n, 3) and quaternions (n, 4)."""
        self.node.batched_positions = positions.astype(np.float32)
        self.node.batched_wxyzs = turns.astype(np.float32)


def product(a: Array, b: Array) -> Array:
    """Return the products (..., 4) of quaternions w x y z."""
    return np.roll(quaternion_product(np.roll(a, -1, axis=-1), np.roll(b, -1, axis=-1)), 1, axis=-1)


def rotated(turns: Array, vectors: Array) -> Array:
    """Return vectors (..., 3) rotated by quaternions w x y z (..., 4)."""
    w, axis = turns[..., :1], turns[..., 1:]
    across = 2 * np.cross(axis, vectors)
    return np.asarray(vectors + w * across + np.cross(axis, across))


class Figure:
    """The surfaces of a robot under the node ``path``; a ``tint`` replaces all colours.

    An outline consists of the back faces of slightly larger surfaces. A robot in the same posture hides all but their
    edges, and no two surfaces coincide.
    """

    def __init__(self, server: Any, path: str, scene: Scene, tint: Color | None = None, outline: bool = False):
        self.server, self.path, self.outline = server, path, outline * OUTLINE * scene.size
        kinds = defaultdict[tuple[bool, str, float, int], list[tuple[int, Solid, Color]]](list)
        fine, coarse = level(scene, MAX_TRIANGLES)
        meshes = defaultdict[tuple[int, Color], list[Triangles]](list)
        for part in scene.shown:
            red, green, blue, opacity = part.color if tint is None else (*tint[:3], part.color[3] * tint[3])
            color = red, green, blue, max(opacity, MIN_BODY_OPACITY) if part.kind == "body" else opacity
            fades = part.kind != "inner" and part.link < len(scene.robot.links)
            for solid in part.solids:
                around = coarse if part.kind in ("bone", "inner") else fine
                kinds[fades, solid.shape, color[3], around].append((part.link, solid, color))
            if not part.solids:
                meshes[part.link, color].append(part.surface)
        self.batches = [
            Batch(
                server, path + node("solids", *key), sorted(solids, key=lambda entry: entry[0]), key[-1], self.outline
            )
            for key, solids in sorted(kinds.items())
        ]
        self.fading = [batch for key, batch in zip(sorted(kinds), self.batches, strict=True) if key[0]]
        self._attach()
        self.links = {link: server.scene.add_frame(self._link(link), show_axes=False) for link, _ in meshes}
        self.meshes = [self._mesh(k, *key, joined(surfaces)) for k, (key, surfaces) in enumerate(meshes.items())]

    def _attach(self) -> None:
        """Collect the poses of all solids relative to their links, so that they can be moved together."""
        self._on = np.concatenate([np.zeros(0, int), *(batch.links + 1 for batch in self.batches)])
        self._at = np.concatenate([np.zeros((0, 3)), *(batch.at for batch in self.batches)])
        self._turns = np.concatenate([np.zeros((0, 4)), *(batch.turns for batch in self.batches)])
        ends = np.cumsum([0, *(len(batch.links) for batch in self.batches)])
        self._parts = [slice(start, end) for start, end in pairwise(ends)]

    def _link(self, link: int) -> str:
        return self.path + node("links", link + 1)

    def _mesh(self, number: int, link: int, color: Color, surface: Triangles) -> Any:
        # Files do not agree on the winding of triangles: both sides are drawn.
        surface, side = (grown(surface, self.outline), "back") if self.outline else (surface, "double")
        shape = surface.vertices.astype(np.float32), surface.faces
        opacity = None if color[3] >= 1 else color[3]
        looks = {"color": color[:3], "opacity": opacity, "flat_shading": False, "side": side, **NO_SHADOWS}
        return self.server.scene.add_mesh_simple(self._link(link) + node(number), *shape, **looks)

    def place(self, positions: Array, turns: Array) -> None:
        """Move the surfaces to the link positions (L + 1, 3) and quaternions (L + 1, 4)."""
        where, turned = positions[self._on], turns[self._on]
        at, how = where + rotated(turned, self._at), product(turned, self._turns)
        for batch, part in zip(self.batches, self._parts, strict=True):
            batch.place(at[part], how[part])
        for link, frame in self.links.items():
            frame.position, frame.wxyz = positions[link + 1], turns[link + 1]

    def fade(self, opacity: float) -> None:
        """Set the opacity (0 to 1) of all links, but not of inner parts and objects."""
        for handle in (*self.meshes, *(batch.node for batch in self.fading)):
            handle.opacity = None if opacity >= 1 else opacity
