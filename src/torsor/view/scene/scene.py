"""A robot as surfaces that move with its links: what the viewer, the offline page and pictures draw."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.errors import ModelError, describe, warn
from torsor.mechanism import Visual
from torsor.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.view.scene.bodies import bones, ellipsoid_solid, joint_mark, size_of
from torsor.view.scene.mesh_files import read_mesh
from torsor.view.scene.proportions import bone_radius
from torsor.view.scene.solids import Solid, ball, surface_of
from torsor.view.scene.triangles import Triangles, capsule

Color = tuple[float, float, float, float]
GREY: Color = (0.62, 0.65, 0.69, 1.0)
DARK: Color = (0.25, 0.28, 0.33, 1.0)
SIDES: dict[str, Color] = {"right": (0.76, 0.3, 0.27, 1.0), "left": (0.2, 0.44, 0.72, 1.0)}
MIDDLE: Color = (0.52, 0.55, 0.6, 1.0)
SOLID = 0.7  # opacity of ellipsoids of inertia: joints and bones shine through
FARTHEST = 1e9  # m: graphics cards count in single precision
LARGE = f"points at most {FARTHEST:g} m from the origin of the link"
IMPLAUSIBLE = (
    4.0  # length of an ellipsoid of inertia, in lengths of the rods of its link: above, it is no picture of it
)


@dataclass(frozen=True, eq=False)
class Shown:
    """A surface fixed to a link (-1: to the base), in the link's axes; ``color`` is red, green, blue, opacity (0 to 1).

    ``kind`` is "visual" (a shape of the description), "body" (an ellipsoid of inertia) or "bone" (rods and joints).
    ``solids`` are the boxes, balls and cylinders that the surface is made of, if it is: what is drawn at once.
    """

    name: str
    link: int
    surface: Triangles
    color: Color
    kind: str
    solids: tuple[Solid, ...] = ()


@dataclass(frozen=True, eq=False)
class Scene:
    """The surfaces of a robot. ``of`` makes a scene of a robot, parallel ones included.

    Links with shapes are drawn as their file describes them. A link without shapes is drawn from its numbers: rods
    between its joints, and the ellipsoid that has its mass and inertia.

    Example:
        >>> scene = Scene.of(torsor.library.planar_chain(2))
        >>> sorted({each.kind for each in scene.shown}), scene.poses(np.zeros((5, 2))).shape
        (['bone'], (5, 3, 4, 4))
    """

    robot: Robot
    shown: tuple[Shown, ...]

    @classmethod
    def of(cls, robot: Robot | ParallelRobot, meshes: bool = True) -> "Scene":
        """Return the scene of a robot; ``meshes=False`` draws links with meshes as if they had no shapes."""
        tree = robot.as_robot() if isinstance(robot, ParallelRobot) else robot
        return cls(tree, tuple(_shown(tree, meshes)))

    @cached_property
    def size(self) -> float:
        """A length (m) typical of the robot, for the sizes of arrows and marks."""
        return size_of(self.robot)

    @cached_property
    def tree(self) -> Robot:
        """The robot with its loops cut, in CasADi's virtual machine: compiling takes longer than some pictures."""
        return self.robot.open_tree().to(device="casadi")

    def poses(self, q: ArrayLike) -> Array:
        """Return the poses (..., L + 1, 4, 4) of the base (first) and of all links in base axes, for q (..., nq)."""
        moving = self.tree.poses(np.asarray(q, dtype=float))
        base = np.broadcast_to(np.eye(4), (*moving.shape[:-3], 1, 4, 4))
        return np.concatenate([base, moving], axis=-3)

    def center_of_mass(self, q: ArrayLike) -> Array:
        """Return the centre of mass (..., 3) in base axes, for q (..., nq); of a robot without mass, the origin."""
        at = np.asarray(q, dtype=float)
        return self.tree.center_of_mass(at) if self.robot.mass > 0 else np.zeros((*at.shape[:-1], 3))

    def corners(self, q: ArrayLike) -> tuple[Array, Array]:
        """Return the least and largest coordinates (3,) that any surface reaches in the postures q (..., nq)."""
        poses = self.poses(q).reshape(-1, len(self.robot.links) + 1, 4, 4)
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for each in self.shown:
            points = each.surface.vertices
            ends = np.array(np.meshgrid(*np.stack([points.min(0), points.max(0)], axis=1))).reshape(3, -1)
            moved = poses[:, each.link + 1, :3, :3] @ ends + poses[:, each.link + 1, :3, 3:]
            low, high = np.minimum(low, moved.min(axis=(0, 2))), np.maximum(high, moved.max(axis=(0, 2)))
        return (low, high) if self.shown else (-np.ones(3), np.ones(3))


def _shown(robot: Robot, meshes: bool) -> Iterator[Shown]:
    radius, faults = bone_radius(robot), list[str]()
    for index, link in enumerate((robot.base, *robot.links), start=-1):
        drawn = 0
        for number, visual in enumerate(link.visuals):
            try:
                surface = _surface(visual, link.name) if meshes or visual.shape != "mesh" else None
            except ModelError as error:
                faults.append(str(error))
                surface = None
            if surface is not None:
                drawn += 1
                yield Shown(
                    visual.name or f"{link.name}/{number}", index, surface[0], _color(visual), "visual", surface[1]
                )
        if not drawn:
            yield from _from_numbers(robot, index, radius)
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        warn(f"{robot.name}: drawn without {faults[0]}{more}")


def _surface(visual: Visual, link: str) -> tuple[Triangles, tuple[Solid, ...]]:
    """Return the surface of a shape, and the solid that it is, if it is one; one too large to draw is an error."""
    with np.errstate(over="ignore", invalid="ignore"):
        surface, solids = _shape(visual)
    if not np.abs(surface.vertices).max(initial=0.0) <= FARTHEST:  # no number also where a product overflowed
        raise ModelError(describe(f"a {visual.shape} of size {visual.size}", where=f"link {link!r}", allowed=LARGE))
    return surface, solids


def _shape(visual: Visual) -> tuple[Triangles, tuple[Solid, ...]]:
    if visual.shape == "mesh":
        if visual.path is None:
            raise ModelError(f"mesh {visual.mesh!r}: the file is not found")
        return read_mesh(visual.path, visual.folders).scaled(visual.size).at(visual.pose), ()
    if visual.shape == "capsule":
        return capsule(*visual.size).at(visual.pose), ()
    if visual.shape == "box":
        solid = Solid("box", visual.pose, np.array(visual.size))
    elif visual.shape == "sphere":
        solid = ball(visual.size[0], visual.pose)
    else:
        solid = Solid("cylinder", visual.pose, np.array([visual.size[0], *visual.size]))
    return solid.surface, (solid,)


def _color(visual: Visual) -> Color:
    if visual.color is None:
        return GREY
    red, green, blue, opacity = (*np.clip(visual.color, 0.0, 1.0).tolist(), 1.0)[:4]
    return red, green, blue, opacity


def _from_numbers(robot: Robot, index: int, radius: float) -> Iterator[Shown]:
    """Return rods and a joint of a link (-1: the base) and, if it can be seen, the ellipsoid of its inertia."""
    link = robot.base if index < 0 else robot.links[index]
    rods = bones(robot, index, radius if index >= 0 else radius / 2)
    mark = joint_mark(robot, index, radius) if index >= 0 else None
    body = ellipsoid_solid(link) if index >= 0 else None
    if body is not None and rods and 2 * body.size.max() > IMPLAUSIBLE * _extent(surface_of(rods)):
        body = None  # inertias of many files are those of much larger bodies, which would hide the robot
    if rods:
        yield _drawn(f"{link.name}/bone", index, GREY, "bone", rods)
    if mark is not None:
        yield _drawn(f"{link.name}/joint", index, DARK, "bone", (mark,))
    if body is not None:
        yield _drawn(f"{link.name}/body", index, (*palette(robot, index)[:3], SOLID), "body", (body,))


def _extent(surface: Triangles) -> float:
    return float(np.ptp(surface.vertices, axis=0).max())


def _drawn(name: str, index: int, color: Color, kind: str, solids: tuple[Solid, ...]) -> Shown:
    return Shown(name, index, surface_of(solids), color, kind, solids)


def palette(robot: Robot, index: int) -> Color:
    """Return the colour of a link: red and blue where names begin with right and left, else neighbours differ.

    Example:
        >>> [round(each, 2) for each in palette(torsor.library.ur5(), 0)]
        [0.35, 0.58, 0.8, 1.0]
    """
    names = [each.lower() for each in robot.link_names]
    if all(any(each.startswith(side) for each in names) for side in SIDES):
        return next((color for side, color in SIDES.items() if names[index].startswith(side)), MIDDLE)
    hue = (0.58 + 0.381966 * index) % 1.0  # steps of the golden section repeat no hue
    phase = np.clip(np.abs((hue * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1, 0, 1)
    red, green, blue = (0.35 + 0.45 * phase).tolist()
    return red, green, blue, 1.0
