"""Marks of a robot: frames, centre of mass, inertia ellipsoids, force arrows and trails."""

from collections.abc import Callable
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Color
from torsor.formats.meshes.triangles import turned
from torsor.view.live.figure import MAX_TRIANGLES, NO_SHADOWS, Batch, linear, node, rotated
from torsor.view.live.shots import Film, Shot
from torsor.view.scene import Scene
from torsor.view.scene.bodies import ellipsoid_solid
from torsor.view.scene.detail import level, unit
from torsor.view.scene.scene import CONTACT_STRETCH, weight

CIRCLE_CORNERS = 8  # corners of circles
ARROW_SURFACE = turned([(0.0, 0.0), (1.0, 0.0), (1.0, 0.72), (2.7, 0.72), (0.0, 1.0)], CIRCLE_CORNERS)  # length 1 on z
ARROW_RADIUS = 0.006  # in sizes of the robot
ARROW_SLENDERNESS = 0.06  # largest radius of an arrow, in lengths of it
MIN_ARROW = 1e-3  # shortest arrow, in sizes of the robot


class Arrows:
    """A fixed number of arrows in one colour. ``size`` (m) is the size of the robot."""

    def __init__(self, server: Any, path: str, count: int, color: tuple[float, ...], size: float):
        self.size = size
        turns = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        shape = ARROW_SURFACE.vertices.astype(np.float32), ARROW_SURFACE.faces
        zeros, looks = np.zeros((count, 3)), {"batched_colors": linear(color), "lod": "off", **NO_SHADOWS}
        self.node = server.scene.add_batched_meshes_simple(path, *shape, turns, zeros, batched_scales=zeros, **looks)

    def place(self, starts: Array, vectors: Array) -> None:
        """Draw arrows from ``starts`` (count, 3) along ``vectors`` (count, 3), in m.

        Arrows with NaN, or shorter than ``MIN_ARROW`` times the robot size, are hidden.
        """
        lengths = np.linalg.norm(np.nan_to_num(vectors), axis=-1, keepdims=True)
        seen = lengths > MIN_ARROW * self.size
        widths = np.minimum(ARROW_RADIUS * self.size, ARROW_SLENDERNESS * lengths)
        scales = np.where(seen, np.concatenate([widths, widths, lengths], axis=-1), 0.0)
        self.node.batched_positions = np.where(seen, np.nan_to_num(starts), 0.0).astype(np.float32)
        self.node.batched_wxyzs = along(np.where(seen, np.nan_to_num(vectors), [0.0, 0.0, 1.0])).astype(np.float32)
        self.node.batched_scales = scales.astype(np.float32)


def along(vectors: Array) -> Array:
    """Return quaternions w x y z (..., 4) that rotate the z axis into the directions of vectors (..., 3)."""
    x, y, z = np.moveaxis(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), -1, 0)
    down = z < -1 + 1e-12
    w, about_x, about_y = np.where(down, 0.0, 1 + z), np.where(down, 1.0, -y), np.where(down, 0.0, x)
    quaternions = np.stack([w, about_x, about_y, np.zeros_like(z)], axis=-1)
    return np.asarray(quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)) + 0.0


MOMENT_ARM = 0.25  # moment arm of the weight whose moment has a long arrow, in sizes of the robot
LONG_ARROW = 0.35  # length of a long arrow, in sizes of the robot
PERSON_SIZE = 2.6  # m: the size by which ground forces are drawn, so that a person's weight has an arrow of 0.9 m
INERTIA_COLOR: Color = (0.95, 0.6, 0.1, 0.45)
ARROW_COLORS = {
    "reactions": (0.1, 0.45, 0.9),
    "moments": (0.55, 0.25, 0.8),
    "ground": (0.1, 0.62, 0.25),
    "external": (0.85, 0.15, 0.2),
    "external moments": (0.95, 0.5, 0.55),
}
"""Colours of joint forces and moments, ground reaction forces, external forces and moments."""
MARK_LABELS = {
    "frames": "frames",
    "center": "centre of mass",
    "inertia": "inertia ellipsoids",
    "reactions": "joint forces (blue)",
    "moments": "joint moments (violet)",
    "ground": "ground forces (green)",
    "external": "external wrenches (red: forces, pink: moments)",
    "markers": "measured markers (blue)",
}
MEASURED_COLOR, MEASURED_RADIUS = (0.1, 0.4, 0.9), 0.012  # m; model markers are orange
CENTER_LABEL = "centre of mass"
MAX_TRAIL_POINTS = 600  # points of the trail of a robot with sliders


class Marks:
    """The marks of one robot under the node ``path``. ``shown`` contains the names of the visible marks."""

    def __init__(self, server: Any, path: str, scene: Scene, color: Color):
        self.server, self.path, self.scene, self.color = server, path, scene, color
        self.shown, self.stretch = set[str](), 1.0
        self.weight, self._longest = weight(scene.robot), dict[str, float]()
        self._nodes = dict[str, Any]()
        self._trails = dict[str, tuple[Any, list[Array] | None]]()  # lines; points only of a path so far

    def show(self, name: str, shown: bool) -> None:
        """Show or hide a mark."""
        for mark in (name, f"{name} moments") if name == "external" else (name,):
            (self.shown.add if shown else self.shown.discard)(mark)
            if mark in self._nodes:
                drawn = self._nodes[mark]
                (drawn.node if isinstance(drawn, (Arrows, Batch)) else drawn).visible = shown

    def _node(self, name: str, make: Callable[[str], Any]) -> Any:
        if name not in self._nodes:
            self._nodes[name] = make(self.path + node("marks", name))
        return self._nodes[name]

    def place(self, shot: Shot) -> None:
        """Move the visible marks to their positions at an instant."""
        links = len(self.scene.robot.links) + 1
        positions, turns = (values[:links] for values in shot.placed)  # rods of flexible links and loads have no marks
        scene, size = self.server.scene, self.scene.size
        if "frames" in self.shown:
            sizes = {"axes_length": 0.1 * size, "axes_radius": 0.004 * size}
            axes = self._node("frames", lambda at: scene.add_batched_axes(at, turns, positions, **sizes))
            axes.batched_positions, axes.batched_wxyzs = positions.astype(np.float32), turns.astype(np.float32)
        if "center" in self.shown:
            ball, looks = unit("ball", 16), {"color": (0.95, 0.75, 0.1), **NO_SHADOWS}
            mesh = (0.025 * size * ball.vertices).astype(np.float32), ball.faces
            self._node("center", lambda at: scene.add_mesh_simple(at, *mesh, **looks)).position = shot.center
        if "inertia" in self.shown:
            solids = [(k, ellipsoid_solid(link), INERTIA_COLOR) for k, link in enumerate(self.scene.robot.links)]
            bodies = [(k, solid, color) for k, solid, color in solids if solid is not None]
            if bodies:
                around = level(self.scene, MAX_TRIANGLES)[0]
                self._node("inertia", lambda at: Batch.of(self.server, at, bodies, around)).place(positions, turns)
        if "markers" in self.shown and shot.markers is not None:
            self._points(shot.markers)
        for name in ARROW_COLORS.keys() & self.shown:
            self._arrows(name, shot, positions[1:], turns[1:])
        for name, (_, points) in self._trails.items():
            if points is not None:
                self._prolong(name, points, shot)

    def _points(self, points: Array) -> None:
        """Draw balls at points (M, 3). NaN hides a ball."""
        ball, count = unit("ball", CIRCLE_CORNERS), len(points)
        mesh = (MEASURED_RADIUS * ball.vertices).astype(np.float32), ball.faces
        turns = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        looks: dict[str, Any] = {"batched_colors": linear(MEASURED_COLOR), "lod": "off", **NO_SHADOWS}
        looks["batched_scales"] = np.ones((count, 3))
        add = self.server.scene.add_batched_meshes_simple
        drawn = self._node("markers", lambda at: add(at, *mesh, turns, np.zeros((count, 3)), **looks))
        seen = np.isfinite(points).all(axis=-1, keepdims=True)
        drawn.batched_positions = np.where(seen, np.nan_to_num(points), 0.0).astype(np.float32)
        drawn.batched_scales = np.where(seen, np.ones((count, 3)), 0.0).astype(np.float32)

    def _arrows(self, name: str, shot: Shot, positions: Array, turns: Array) -> None:
        """Draw force arrows at the points of application, and moment arrows by the right-hand rule."""
        if name == "ground":
            wrenches = shot.ground
            starts, vectors = (None, None) if wrenches is None else (wrenches[:, :3], wrenches[:, 3:])
        else:
            outside = name.startswith("external")
            wrenches = shot.external if outside else shot.reactions
            part = slice(0, 3) if name.endswith("moments") else slice(3, 6)
            starts = positions
            if not outside:
                joints = [joint.frame[:3, 3] for joint in self.scene.robot.joints]  # in the axes of their links
                starts = positions + rotated(turns, np.stack(joints))
            vectors = None if wrenches is None else rotated(turns, wrenches[:, part])
            if vectors is not None and shot.is_person:  # residuals of a person are no joint forces
                root = next(k for k, link in enumerate(self.scene.robot.links) if link.mass > 0)
                vectors[: root + 1] = np.nan
        if starts is not None and vectors is not None:
            size = self.scene.size
            if name == "ground":
                size = PERSON_SIZE if shot.is_person else CONTACT_STRETCH * size
            arrows = self._node(name, lambda at: Arrows(self.server, at, len(vectors), ARROW_COLORS[name], size))
            arrows.place(starts, self.stretch * LONG_ARROW * size * vectors / self._largest(name, vectors))

    def _largest(self, name: str, vectors: Array) -> float:
        """Return the force (N) or moment (N m) of a full-length arrow: the weight, or the initial maximum."""
        if name in ("ground", "external"):
            return self.weight
        if name == "external moments":
            return self.weight * MOMENT_ARM * self.scene.size
        if name not in self._longest:
            self._longest[name] = float(np.nanmax(np.linalg.norm(vectors, axis=-1), initial=0.0)) or self.weight
        return self._longest[name]

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the places that can have a trail: the centre of mass, links and frames."""
        robot = self.scene.robot
        return (CENTER_LABEL, *robot.link_names, *(frame.name for frame in robot.frames))

    @property
    def trailed(self) -> tuple[str, ...]:
        """The places that have a trail."""
        return tuple(self._trails)

    def trail(self, name: str, film: Film | None) -> None:
        """Draw the path of a link, frame or centre of mass: that of a whole motion, or that of a robot so far."""
        if film is None:
            self._trails[name] = (self._trails.get(name, (None, None))[0], [])
            return
        path = film.centers if name == CENTER_LABEL else self._at(name, *film.placed)
        self._trails[name] = (self._line(name, path), None)

    def _at(self, name: str, positions: Array, turns: Array) -> Array:
        place = self.scene.robot.place(name)
        link = place.link + 1
        return positions[..., link, :] + rotated(turns[..., link, :], place.pose[:3, 3])

    def _line(self, name: str, points: Array) -> Any:
        pieces = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        path = self.path + node("trails", name)
        thick, add = 0.004 * self.scene.size, self.server.scene.add_line_segments
        return add(path, pieces, self.color[:3], thickness=thick) if len(pieces) else None

    def _prolong(self, name: str, points: list[Array], shot: Shot) -> None:
        line = self._trails[name][0]
        here = shot.center if name == CENTER_LABEL else self._at(name, *shot.placed)
        if not points or np.linalg.norm(here - points[-1]) > MIN_ARROW * self.scene.size:
            points = [*points[1 - MAX_TRAIL_POINTS :], here]
            line = self._line(name, np.array(points)) if len(points) > 1 else line
        self._trails[name] = (line, points)

    def forget(self) -> None:
        """Remove all trails."""
        for line, _ in self._trails.values():
            if line is not None:
                line.remove()
        self._trails.clear()
