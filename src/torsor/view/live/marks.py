"""What is drawn beside a robot: frames, the centre of mass, ellipsoids of inertia, arrows of forces, trails."""

from collections.abc import Callable
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.scenes import Color
from torsor.formats.meshes.triangles import turned
from torsor.view.live.figure import MAX_TRIANGLES, PLAIN, Batch, linear, node, rotated
from torsor.view.live.shots import Film, Shot
from torsor.view.scene import Scene
from torsor.view.scene.bodies import ellipsoid_solid
from torsor.view.scene.detail import level, unit
from torsor.view.scene.scene import weight

AROUND = 8  # corners of circles
SHAPE = turned([(0.0, 0.0), (1.0, 0.0), (1.0, 0.72), (2.7, 0.72), (0.0, 1.0)], AROUND)  # along z, of length 1
THIN, SLIM = 0.006, 0.06  # radius of an arrow: in sizes of the robot, and at most in lengths of the arrow
LEAST = 1e-3  # arrows shorter than this part of the size of the robot are not drawn


class Arrows:
    """A given number of arrows in one colour; ``size`` (m) is that of the robot."""

    def __init__(self, server: Any, path: str, count: int, color: tuple[float, ...], size: float):
        self.size = size
        turns = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        shape = SHAPE.vertices.astype(np.float32), SHAPE.faces
        zeros, looks = np.zeros((count, 3)), {"batched_colors": linear(color), "lod": "off", **PLAIN}
        self.node = server.scene.add_batched_meshes_simple(path, *shape, turns, zeros, batched_scales=zeros, **looks)

    def place(self, starts: Array, vectors: Array) -> None:
        """Draw arrows from ``starts`` (count, 3) along ``vectors`` (count, 3), in m; NaN draws none."""
        lengths = np.linalg.norm(np.nan_to_num(vectors), axis=-1, keepdims=True)
        seen = lengths > LEAST * self.size
        widths = np.minimum(THIN * self.size, SLIM * lengths)
        scales = np.where(seen, np.concatenate([widths, widths, lengths], axis=-1), 0.0)
        self.node.batched_positions = np.where(seen, np.nan_to_num(starts), 0.0).astype(np.float32)
        self.node.batched_wxyzs = along(np.where(seen, np.nan_to_num(vectors), [0.0, 0.0, 1.0])).astype(np.float32)
        self.node.batched_scales = scales.astype(np.float32)


def along(vectors: Array) -> Array:
    """Return quaternions w x y z (..., 4) of rotations that turn the z axis along vectors (..., 3)."""
    x, y, z = np.moveaxis(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), -1, 0)
    down = z < -1 + 1e-12
    w, about_x, about_y = np.where(down, 0.0, 1 + z), np.where(down, 1.0, -y), np.where(down, 0.0, x)
    found = np.stack([w, about_x, about_y, np.zeros_like(z)], axis=-1)
    return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True)) + 0.0


ARM = 0.25  # lever arm of the weight whose moment has a long arrow, in sizes of the robot
LONG = 0.35  # length of a long arrow, in sizes of the robot
AMBER: Color = (0.95, 0.6, 0.1, 0.45)
ARROWS = {
    "reactions": (0.1, 0.45, 0.9),
    "moments": (0.55, 0.25, 0.8),
    "ground": (0.1, 0.62, 0.25),
    "external": (0.85, 0.15, 0.2),
    "external moments": (0.95, 0.5, 0.55),
}
"""Colours of arrows: forces and moments in joints, forces of the ground, forces and moments of the environment."""
NAMES = {
    "frames": "frames",
    "center": "centre of mass",
    "inertia": "ellipsoids of inertia",
    "reactions": "forces in joints (blue)",
    "moments": "moments in joints (violet)",
    "ground": "forces of the ground (green)",
    "external": "external wrenches (red: forces, pink: moments)",
}
CENTER = "centre of mass"
REMEMBERED = 600  # points of the trail of a robot that is moved by hand


class Marks:
    """The marks of one robot under the node ``path``; ``shown`` has the names of those that are drawn."""

    def __init__(self, server: Any, path: str, scene: Scene, color: Color):
        self.server, self.path, self.scene, self.color = server, path, scene, color
        self.shown, self.stretch = set[str](), 1.0
        self.weight, self._longest = weight(scene.robot), dict[str, float]()
        self._nodes = dict[str, Any]()
        self._trails = dict[str, tuple[Any, list[Array]]]()

    def show(self, name: str, shown: bool) -> None:
        """Draw a mark or not."""
        for each in (name, f"{name} moments") if name == "external" else (name,):
            (self.shown.add if shown else self.shown.discard)(each)
            if each in self._nodes:
                found = self._nodes[each]
                (found.node if isinstance(found, (Arrows, Batch)) else found).visible = shown

    def _node(self, name: str, make: Callable[[str], Any]) -> Any:
        if name not in self._nodes:
            self._nodes[name] = make(self.path + node("marks", name))
        return self._nodes[name]

    def place(self, shot: Shot) -> None:
        """Move the marks that are shown to where they are at a moment."""
        links = len(self.scene.robot.links) + 1
        positions, turns = (each[:links] for each in shot.placed)  # rods of beams and loads have no marks
        scene, size = self.server.scene, self.scene.size
        if "frames" in self.shown:
            sizes = {"axes_length": 0.1 * size, "axes_radius": 0.004 * size}
            axes = self._node("frames", lambda at: scene.add_batched_axes(at, turns, positions, **sizes))
            axes.batched_positions, axes.batched_wxyzs = positions.astype(np.float32), turns.astype(np.float32)
        if "center" in self.shown:
            ball, looks = unit("ball", 16), {"color": (0.95, 0.75, 0.1), **PLAIN}
            mesh = (0.025 * size * ball.vertices).astype(np.float32), ball.faces
            self._node("center", lambda at: scene.add_mesh_simple(at, *mesh, **looks)).position = shot.center
        if "inertia" in self.shown:
            solids = [(k, ellipsoid_solid(link), AMBER) for k, link in enumerate(self.scene.robot.links)]
            bodies = [(k, solid, color) for k, solid, color in solids if solid is not None]
            if bodies:
                around = level(self.scene, MAX_TRIANGLES)[0]
                self._node("inertia", lambda at: Batch(self.server, at, bodies, around)).place(positions, turns)
        for name in ARROWS.keys() & self.shown:
            self._arrows(name, shot, positions[1:], turns[1:])
        for name, (line, points) in self._trails.items():
            if line is None or points:
                self._prolong(name, shot)

    def _arrows(self, name: str, shot: Shot, positions: Array, turns: Array) -> None:
        """Draw forces as arrows from where they act, moments about the arrow by the right-hand rule."""
        if name == "ground":
            found = shot.ground
            starts, vectors = (None, None) if found is None else (found[:, :3], found[:, 3:])
        else:
            outside = name.startswith("external")
            found = shot.external if outside else shot.reactions
            part = slice(0, 3) if name.endswith("moments") else slice(3, 6)
            starts = positions
            if not outside:
                joints = [joint.frame[:3, 3] for joint in self.scene.robot.joints]  # in the axes of their links
                starts = positions + rotated(turns, np.stack(joints))
            vectors = None if found is None else rotated(turns, found[:, part])
        if starts is not None and vectors is not None:
            size = self.scene.size
            arrows = self._node(name, lambda at: Arrows(self.server, at, len(vectors), ARROWS[name], size))
            arrows.place(starts, self.stretch * LONG * size * vectors / self._largest(name, vectors))

    def _largest(self, name: str, vectors: Array) -> float:
        """Return the force (N) or moment (N m) of a long arrow: that of the weight, or the largest one at first."""
        if name in ("ground", "external"):
            return self.weight
        if name == "external moments":
            return self.weight * ARM * self.scene.size
        if name not in self._longest:
            self._longest[name] = float(np.nanmax(np.linalg.norm(vectors, axis=-1), initial=0.0)) or self.weight
        return self._longest[name]

    @property
    def places(self) -> tuple[str, ...]:
        """What can have a trail: the centre of mass, links and frames."""
        robot = self.scene.robot
        return (CENTER, *robot.link_names, *(frame.name for frame in robot.frames))

    def trail(self, name: str, film: Film | None) -> None:
        """Draw the path of a link, a frame or the centre of mass: all of a motion, or the way of a robot so far."""
        if film is None:
            self._trails[name] = (None, [])
            return
        points = film.centers if name == CENTER else self._at(name, *film.placed)
        self._trails[name] = (self._line(name, points), [])

    def _at(self, name: str, positions: Array, turns: Array) -> Array:
        place = self.scene.robot.place(name)
        link = place.link + 1
        return positions[..., link, :] + rotated(turns[..., link, :], place.pose[:3, 3])

    def _line(self, name: str, points: Array) -> Any:
        pieces = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        path = self.path + node("trails", name)
        thick, add = 0.004 * self.scene.size, self.server.scene.add_line_segments
        return add(path, pieces, self.color[:3], thickness=thick) if len(pieces) else None

    def _prolong(self, name: str, shot: Shot) -> None:
        line, points = self._trails[name]
        here = shot.center if name == CENTER else self._at(name, *shot.placed)
        if not points or np.linalg.norm(here - points[-1]) > LEAST * self.scene.size:
            points = [*points[1 - REMEMBERED :], here]
            line = self._line(name, np.array(points)) if len(points) > 1 else None
        self._trails[name] = (line, points)

    def forget(self) -> None:
        """Remove all trails."""
        for line, _ in self._trails.values():
            if line is not None:
                line.remove()
        self._trails.clear()
