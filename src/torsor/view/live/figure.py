"""A robot in the browser. Solids of the same kind share a node, and so do the meshes of a link with the same colour.

All nodes are batches. The browser moves batches one frame later than single objects, so during motion, objects of both
kinds would drift apart.
"""

from collections import defaultdict
from collections.abc import Sequence
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
from torsor.view.scene.detail import THIN, level, unit, within

# Names from files become parts of node paths and of HTML. They are escaped, because they can contain any characters.


def node(*names: object) -> str:
    """Return the path of a scene node, in which each name is one level, whatever characters it contains."""
    return "".join(f"/{quote(str(name), safe='') or '_'}" for name in names)


def words(text: object) -> str:
    """Return text with HTML characters escaped."""
    return escape(printable(str(text)))


def label(text: str, longest: int = 48) -> str:
    """Return a name as a widget label, without control characters and with at most ``longest`` characters."""
    shown = printable(text).replace("\\n", " ")
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def short(value: float) -> str:
    """Format a number as on the offline page, with no decimals from 1000 upwards and three decimals below 1.

    Example:
        >>> short(-1234.5), short(12.345), short(0.00001)
        ('−1234', '12.3', '0')
    """
    size = abs(value)
    digits = 3 if size < 1 else 2 if size < 10 else 1 if size < 1000 else 0
    number = f"{value:.{digits}f}"
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return "0" if number in ("-0", "") else number.replace("-", "−")


MAX_TRIANGLES = 24_000  # triangles of solids: browsers without a GPU draw some 200,000 in a second
BATCH_TRIANGLES = 1_500_000  # triangles of all robots of a batch
GAMMA = 2.2  # exponent from sRGB to light intensity
MIN_BODY_OPACITY = 0.8  # opacity of inertia ellipsoids
SHADOWS = {"cast_shadow": True, "receive_shadow": False}  # on the floor alone: shadow maps are too coarse for bodies
NO_SHADOWS = {"cast_shadow": False, "receive_shadow": False}


OUTLINE = 0.003  # distance of an outline from the surfaces, in sizes of the robot
AXIS_FACTORS = {"box": (2.0, 2.0, 2.0), "ball": (1.0, 1.0, 1.0), "cylinder": (1.0, 1.0, 2.0)}  # size per distance


def grown(surface: Triangles, by: float) -> Triangles:
    """Return a surface with vertices moved outwards by a distance (m) and faces counterclockwise seen from outside.

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
    """Copies of a surface with the same opacity, each fixed to a link with a pose, scale factors (3,) and a colour.

    The copies are repeated for each of ``robots`` robots, whose links are numbered in steps of ``places``.
    """

    def __init__(
        self,
        server: Any,
        path: str,
        surface: Triangles,
        copies: Sequence[tuple[int, Array, Array, Color]],
        robots: int = 1,
        places: int = 0,
        **looks: Any,
    ):
        links, poses, sizes, colors = zip(*copies, strict=True)
        self.links = np.add.outer(places * np.arange(robots), links).ravel()
        self.at, self.turns = (np.tile(each, (robots, 1)) for each in placed(np.stack(poses)))
        opacity = colors[0][3]
        looks = {"opacity": None if opacity >= 1 else opacity, "lod": "off", **SHADOWS, **looks}
        painted = np.array([linear(color) for color in colors])
        looks |= {"batched_scales": np.tile(sizes, (robots, 1)), "batched_colors": np.tile(painted, (robots, 1))}
        mesh = surface.vertices.astype(np.float32), surface.faces
        self.node = server.scene.add_batched_meshes_simple(path, *mesh, self.turns, self.at, **looks)

    @classmethod
    def of(
        cls,
        server: Any,
        path: str,
        solids: list[tuple[int, Solid, Color]],
        around: int,
        outline: float = 0.0,
        **robots: int,
    ) -> "Batch":
        """Return a batch of solids of the same kind and opacity. Their circles have ``around`` corners."""
        shape = solids[0][1].shape
        grow = outline * np.array(AXIS_FACTORS[shape])
        copies = [(link, solid.pose, solid.size + grow, color) for link, solid, color in solids]
        looks: dict[str, Any] = {"side": "back", **NO_SHADOWS} if outline else {}
        return cls(server, path, unit(shape, around), copies, **robots, **looks)

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
    """The surfaces of ``count`` robots of one kind under the node ``path``. A ``tint`` replaces all colours.

    An outline consists of the back faces of slightly enlarged surfaces. A robot in the same posture hides these faces
    except for their edges, and no two surfaces coincide.
    """

    def __init__(
        self,
        server: Any,
        path: str,
        scene: Scene,
        tint: Color | None = None,
        outline: bool = False,
        count: int = 1,
    ):
        self.server, self.path, self.outline = server, path, outline * OUTLINE * scene.size
        self.robots = {"robots": count, "places": scene.places + 1}
        kinds = defaultdict[tuple[bool, bool, str, float, int], list[tuple[int, Solid, Color]]](list)
        most = min(MAX_TRIANGLES, BATCH_TRIANGLES // count)
        fine, coarse = level(scene, most)
        surfaces = [part.surface for part in scene.shown if not part.solids]
        reduced = iter(within(surfaces, most) if count > 1 else surfaces)
        meshes = defaultdict[tuple[bool, int, Color], list[Triangles]](list)
        for part in scene.shown:
            red, green, blue, opacity = part.color if tint is None else (*tint[:3], part.color[3] * tint[3])
            color = red, green, blue, max(opacity, MIN_BODY_OPACITY) if part.kind == "body" else opacity
            inner, fades = part.kind == "inner", part.link < len(scene.robot.links)
            for solid in part.solids:
                around = coarse if part.kind in THIN else fine
                kinds[inner, fades, solid.shape, color[3], around].append((part.link, solid, color))
            if not part.solids:
                meshes[fades, part.link, color].append(next(reduced))
        self.batches, self.fading, self.inner = list[Batch](), list[Batch](), list[Batch]()
        for key, solids in sorted(kinds.items()):
            at, ordered = path + node("solids", *key), sorted(solids, key=lambda entry: entry[0])
            self._add(Batch.of(server, at, ordered, key[-1], self.outline, **self.robots), *key[:2])
        for number, ((fades, link, color), parts) in enumerate(meshes.items()):
            self._add(self._mesh(number, link, color, joined(parts)), False, fades)
        # The poses of all parts relative to their links, so that they are moved together.
        self._on = np.concatenate([np.zeros(0, int), *(batch.links + 1 for batch in self.batches)])
        self._at = np.concatenate([np.zeros((0, 3)), *(batch.at for batch in self.batches)])
        self._turns = np.concatenate([np.zeros((0, 4)), *(batch.turns for batch in self.batches)])
        ends = np.cumsum([0, *(len(batch.links) for batch in self.batches)])
        self._parts = [slice(start, end) for start, end in pairwise(ends)]

    def _add(self, batch: Batch, inner: bool, fades: bool) -> None:
        self.batches.append(batch)
        if inner or fades:
            (self.inner if inner else self.fading).append(batch)

    def _mesh(self, number: int, link: int, color: Color, surface: Triangles) -> Batch:
        # Both sides are drawn, because the winding of triangles differs between files.
        looks: dict[str, Any] = {"side": "back", **NO_SHADOWS} if self.outline else {"side": "double"}
        surface = grown(surface, self.outline) if self.outline else surface
        copies = [(link, np.eye(4), np.ones(3), color)]
        return Batch(self.server, self.path + node("meshes", number), surface, copies, **self.robots, **looks)

    def place(self, positions: Array, turns: Array) -> None:
        """Move the surfaces to the positions (L + 1, 3) and quaternions (L + 1, 4) of the links, robot by robot."""
        where, turned = positions[self._on], turns[self._on]
        at, how = where + rotated(turned, self._at), product(turned, self._turns)
        for batch, part in zip(self.batches, self._parts, strict=True):
            batch.place(at[part], how[part])

    def fade(self, opacity: float) -> None:
        """Set the opacity (0 to 1) of all links, but not of objects. Inner parts are hidden in opaque links."""
        for batch in self.inner:
            batch.node.visible = opacity < 1
        for batch in self.fading:
            batch.node.opacity = None if opacity >= 1 else opacity
