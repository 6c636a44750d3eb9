"""Robots as surfaces that move with the links, for the viewer, offline pages and pictures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array
from torsor.base.errors import ModelError, warn
from torsor.base.scenes import Color, Solid, Thing
from torsor.formats.meshes.mesh_files import Painted, read_painted
from torsor.formats.meshes.triangles import Triangles, capsule, joined
from torsor.formats.search_path import SEARCH_FIX
from torsor.mechanism import Mechanism, Shape, Visual
from torsor.mechanism.mechanism import default_posture
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation.timeline import Timeline
from torsor.spatial import make_pose
from torsor.view.scene import bodies
from torsor.view.scene.bodies import Beam, bone_radius, is_beam, surface_of

SHAPE_COLOR = (0.85, 0.45, 0.2, 0.55)  # transparent, because shapes overlap at joints
PLANE_COLOR = (0.6, 0.62, 0.65, 0.4)
PLANE_SIDE, PLANE_THICKNESS = 2.0, 0.002  # m: an infinite plane is drawn as a plate


def showing_shapes(robot: Robot) -> Robot:
    """Return the robot with its collision shapes as visuals. Meshes are drawn instead of their convex hulls.

    Height fields are not drawn.
    """
    if not any(link.shapes for link in (robot.base, *robot.links)):
        fix = "load a file with collision geometry, or leave --collision out"
        raise ModelError("no link has a collision shape", where=robot.name, fix=fix)
    base, *links = (
        replace(link, visuals=tuple(_visual(shape) for shape in link.shapes if shape.shape != "height field"))
        for link in (robot.base, *robot.links)
    )
    return replace(robot, base=base, links=tuple(links))


def _visual(shape: Shape) -> Visual:
    if shape.shape == "plane":
        pose = shape.pose @ make_pose(p=[0, 0, -PLANE_THICKNESS / 2])
        return Visual("box", (PLANE_SIDE, PLANE_SIDE, PLANE_THICKNESS), pose, PLANE_COLOR, name=shape.name)
    return Visual(shape.shape, shape.size, shape.pose, SHAPE_COLOR, shape.mesh, shape.path, shape.name, shape.folders)


UPRIGHT_COSINE = 0.9  # cosine of the largest angle between gravity and the axis that is taken as vertical


def home(robot: Robot | ParallelRobot, q: ArrayLike | None = None) -> Array:
    """Return the initial positions (nq,) for a picture: ``q`` or the home posture, with loops closed.

    The home posture is the home of a parallel robot, the posture named "home" or "default", or the neutral posture
    within the limits.

    Example:
        >>> home(torsor.library.four_bar()).round(3).tolist()
        [0.525, 0.204, 1.549]
    """
    tree = robot.as_robot() if isinstance(robot, ParallelRobot) else robot
    if q is not None:
        positions = np.array(frozen_array(q, (tree.nq,), tree.name, "q"))
        return tree.closed.positions(positions) if tree.loops else positions
    if isinstance(robot, ParallelRobot):
        return np.concatenate([np.asarray(robot.home, dtype=float), robot.inverse_kinematics(robot.home)])
    if tree.loops:
        return tree.closed.positions(default_posture(tree))
    return np.clip(tree.postures.get("home", default_posture(tree)), tree.lower, tree.upper)


def upwards(robot: Mechanism) -> Array:
    """Return the upward direction (3,): opposite to gravity (rounded to an axis if one is close), or z without gravity.

    Example:
        >>> upwards(torsor.library.human()).tolist(), upwards(torsor.library.ur5()).tolist()
        ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    """
    size = float(np.linalg.norm(robot.gravity))
    if not size > 0:
        return np.array([0.0, 0.0, 1.0])
    up = -np.asarray(robot.gravity) / size + 0.0
    axis = int(np.argmax(np.abs(up)))
    return np.sign(up[axis]) * np.eye(3)[axis] + 0.0 if abs(up[axis]) > UPRIGHT_COSINE else up


ROD_COLOR: Color = (0.62, 0.65, 0.69, 1.0)
JOINT_COLOR: Color = (0.25, 0.28, 0.33, 1.0)
IVORY: Color = (0.95, 0.92, 0.83, 1.0)
SKIN: Color = (0.86, 0.67, 0.56, 1.0)
SIDE_COLORS: dict[str, Color] = {"right": (0.76, 0.3, 0.27, 1.0), "left": (0.2, 0.44, 0.72, 1.0)}
MIDDLE_COLOR: Color = (0.52, 0.55, 0.6, 1.0)
RIGID_OPACITY = 0.3  # opacity of the shapes of a flexible link, which do not bend
PERSON_OPACITY = 0.35  # of a measured body around its skeleton
BODY_OPACITY = 0.7  # opacity of inertia ellipsoids
MAX_MOVED_POINTS = 30_000  # of a surface, in all postures: about 1 ms
MAX_COORDINATE = 1e9  # m: GPUs use single precision
ALLOWED_POINTS = f"points at most {MAX_COORDINATE:g} m from the origin of the link"


@dataclass(frozen=True, eq=False)
class Carried:
    """An object that moves with the links."""

    thing: Thing
    pose: Callable[[Array], Array]
    count = 1

    def poses(self, links: Array, q: Array) -> Array:
        """Return the pose (..., 1, 4, 4) in base axes from the base and link poses (..., L + 1, 4, 4)."""
        return self.pose(links[..., 1:, :, :])[..., None, :, :]


@dataclass(frozen=True, eq=False)
class Shown:
    """A surface fixed to a link (-1: to the base), in link axes. ``color`` is red, green, blue and opacity (0 to 1).

    Link indices from the number of links upwards refer to the movers of a scene, in order. ``kind`` is "visual" (a
    shape of the description), "body" (an inertia ellipsoid), "bone" (rods and joints) or "inner" (rods and joints
    inside other shapes). ``solids`` contains the boxes, balls and cylinders of the surface, if it consists of these.
    """

    name: str
    link: int
    surface: Triangles
    color: Color
    kind: str
    solids: tuple[Solid, ...] = ()


@dataclass(frozen=True, eq=False)
class Scene:
    """The surfaces of a robot or parallel robot, created by ``of``.

    Links are drawn with the shapes of their description. A link without shapes is drawn as rods between its joints,
    or as its inertia ellipsoid if these coincide. Flexible links are drawn bent. ``movers`` (rods of flexible links,
    carried objects) have places after those of the links. A ``compiled`` scene is faster for many robots.

    Example:
        >>> scene = Scene.of(torsor.library.planar_chain(2))
        >>> sorted({part.kind for part in scene.shown}), scene.poses(np.zeros((5, 2))).shape
        (['bone'], (5, 3, 4, 4))
    """

    robot: Robot
    shown: tuple[Shown, ...]
    movers: tuple[Beam | Carried, ...] = ()
    compiled: bool = False

    @classmethod
    def of(
        cls,
        robot: Robot | ParallelRobot,
        meshes: bool = True,
        things: Sequence[Thing] = (),
        progress: Callable[[float], None] | None = None,
        skeleton: bool = False,
    ) -> "Scene":
        """Return the scene of a robot and ``things``. ``meshes=False`` draws rods instead of meshes.

        ``progress`` is called before each link, with the fraction (0 to 1) of the links that have been read. With
        ``skeleton``, links have both rods and shapes, or flesh around the rods if there are no shapes.
        """
        tree = robot.as_robot() if isinstance(robot, ParallelRobot) else robot
        bent = tuple(bodies.beams(tree))
        loads = tuple(Carried(thing, thing.pose) for thing in things if thing.pose is not None)
        fixed = [_drawn(thing.name, -1, thing.color, "visual", thing.solids) for thing in things if thing.pose is None]
        links = _shown(tree, meshes, progress, skeleton)
        return cls(tree, (*links, *_moved(tree, bent, loads), *fixed), (*bent, *loads))

    @property
    def places(self) -> int:
        """Number of places to which surfaces can be fixed, excluding the base: links, then movers."""
        return len(self.robot.links) + sum(mover.count for mover in self.movers)

    @cached_property
    def size(self) -> float:
        """The size (m) of the robot, by which arrows and marks are scaled."""
        return bodies.size_of(self.robot)

    @property
    def end(self) -> str:
        """The name of the end of a serial chain (the last frame of its last link, or this link), or "" otherwise."""
        robot, last = self.robot, len(self.robot.links) - 1
        if robot.loops or last < 0 or list(robot.parents) != list(range(-1, last)):
            return ""
        link = robot.link_names[last]
        return [link, *(frame.name for frame in robot.frames if frame.link == link)][-1]

    @cached_property
    def tree(self) -> Robot:
        """The robot with its loops cut, in CasADi's virtual machine, which is faster than compiling for few states."""
        return self.robot.open_tree().to(device="cpu" if self.compiled else "casadi")

    def poses(self, q: ArrayLike) -> Array:
        """Return the poses (..., places + 1, 4, 4) of the base, links and movers in base axes, for q (..., nq)."""
        positions = np.asarray(q, dtype=float)
        moving = self.tree.poses(positions)
        links = np.concatenate([np.broadcast_to(np.eye(4), (*moving.shape[:-3], 1, 4, 4)), moving], axis=-3)
        return np.concatenate([links, *(mover.poses(links, positions) for mover in self.movers)], axis=-3)

    def center_of_mass(self, q: ArrayLike) -> Array:
        """Return the centre of mass (..., 3) in base axes for q (..., nq), or the origin for a robot without mass."""
        at = np.asarray(q, dtype=float)
        return self.tree.center_of_mass(at) if self.robot.mass > 0 else np.zeros((*at.shape[:-1], 3))

    def corners(self, q: ArrayLike) -> tuple[Array, Array]:
        """Return the minimum and maximum coordinates (3,) of all surfaces in the postures q (..., nq).

        They are exact if few points are moved; otherwise, those of boxes around the surfaces.
        """
        poses = self.poses(q).reshape(-1, self.places + 1, 4, 4)
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for part in self.shown:
            points = part.surface.vertices
            ends = points.T
            if len(points) * len(poses) > MAX_MOVED_POINTS:
                ends = np.array(np.meshgrid(*np.stack([points.min(0), points.max(0)], axis=1))).reshape(3, -1)
            moved = poses[:, part.link + 1, :3, :3] @ ends + poses[:, part.link + 1, :3, 3:]
            low, high = np.minimum(low, moved.min(axis=(0, 2))), np.maximum(high, moved.max(axis=(0, 2)))
        return (low, high) if self.shown else (-np.ones(3), np.ones(3))


def _shown(robot: Robot, meshes: bool, progress: Callable[[float], None] | None, skeleton: bool) -> Iterator[Shown]:
    radius, faults = bone_radius(robot), list[ModelError]()
    for index, link in enumerate((robot.base, *robot.links), start=-1):
        if progress is not None:
            progress((index + 1) / (len(robot.links) + 1))
        drawn, bends = 0, is_beam(robot, link)
        for number, visual in enumerate(link.visuals):
            try:
                surfaces = _surfaces(visual, link.name) if meshes or visual.shape != "mesh" else []
            except ModelError as error:
                faults.append(error)
                surfaces = []
            for surface, color, solids in surfaces:
                drawn += 1
                name = visual.name or f"{link.name}/{number}"
                faded = (*color[:3], RIGID_OPACITY * color[3]) if bends else color
                yield Shown(name, index, surface, faded, "visual", solids)
        if skeleton:
            yield from _skeleton(robot, index, radius, bare=not drawn)
        elif not drawn:
            yield from _from_numbers(robot, index, radius)
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        warn(f"drawn without {faults[0].but(fix='')}{more}", where=robot.name, fix=faults[0].fix)


def _surfaces(visual: Visual, link: str) -> list[tuple[Triangles, Color, tuple[Solid, ...]]]:
    """Return the coloured surfaces of a shape with their solids. Raise ModelError if one is too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        surfaces = _shape(visual)
    for surface, _, _ in surfaces:
        if not np.abs(surface.vertices).max(initial=0.0) <= MAX_COORDINATE:  # also NaN, after an overflow
            message = f"a {visual.shape} of size {visual.size} is too large"
            raise ModelError(message, where=f"link {link!r}", allowed=ALLOWED_POINTS)
    return surfaces


def _shape(visual: Visual) -> list[tuple[Triangles, Color, tuple[Solid, ...]]]:
    """Return the surfaces of a shape. A mesh has the colour of the description or the colours of its file."""
    color = _color(visual)
    if visual.shape == "mesh":
        if visual.path is None:
            message, where = "the file does not exist", f"mesh {visual.mesh!r}"
            raise ModelError(message, value=visual.mesh, where=where, fix=SEARCH_FIX)
        parts = read_painted(visual.path, visual.folders)
        if visual.color is not None:
            parts = (Painted(joined([part.surface for part in parts]), color),)
        return [(part.surface.scaled(visual.size).at(visual.pose), part.color or ROD_COLOR, ()) for part in parts]
    if visual.shape == "capsule":
        return [(capsule(*visual.size).at(visual.pose), color, ())]
    if visual.shape == "box":
        solid = Solid("box", visual.pose, np.array(visual.size))
    elif visual.shape == "sphere":
        solid = bodies.ball(visual.size[0], visual.pose)
    elif visual.shape == "ellipsoid":
        solid = Solid("ball", visual.pose, np.array(visual.size))
    else:
        solid = Solid("cylinder", visual.pose, np.array([visual.size[0], *visual.size]))
    return [(surface_of(solid), color, (solid,))]


def _color(visual: Visual) -> Color:
    if visual.color is None:
        return ROD_COLOR
    red, green, blue, opacity = (*np.clip(visual.color, 0.0, 1.0).tolist(), 1.0)[:4]
    return red, green, blue, opacity


def _moved(robot: Robot, bent: Sequence[Beam], loads: Sequence[Carried]) -> Iterator[Shown]:
    """Return the rods of flexible links and the carried objects, each fixed to a place after the links."""
    place, radius = len(robot.links), bone_radius(robot)
    for beam in bent:
        color, name = palette(robot, beam.link), robot.links[beam.link].name if beam.link >= 0 else robot.base.name
        for solid in beam.solids(radius):
            yield _drawn(f"{name}/beam", place, color, "bone", (solid,))
            place += 1
    for number, load in enumerate(loads):
        yield _drawn(load.thing.name, place + number, load.thing.color, "visual", load.thing.solids)


def _from_numbers(robot: Robot, index: int, radius: float) -> Iterator[Shown]:
    """Return the rods and the joint of a link (-1: the base), or the inertia ellipsoid of a link without rods."""
    link = robot.base if index < 0 else robot.links[index]
    rods = bodies.bones(robot, index, radius if index >= 0 else radius / 2)
    mark = bodies.joint_mark(robot, index, radius) if index >= 0 else None
    body = bodies.ellipsoid_solid(link) if index >= 0 and not rods and not is_beam(robot, link) else None
    if rods:
        yield _drawn(f"{link.name}/bone", index, ROD_COLOR, "bone", rods)
    if mark is not None:
        yield _drawn(f"{link.name}/joint", index, JOINT_COLOR, "bone", (mark,))
    if body is not None:
        yield _drawn(f"{link.name}/body", index, (*palette(robot, index)[:3], BODY_OPACITY), "body", (body,))


def _skeleton(robot: Robot, index: int, radius: float, bare: bool) -> Iterator[Shown]:
    """Return the rods and the joint of a link as inner parts. A ``bare`` link also has flesh around its rods."""
    if index < 0:
        return
    link, rods = robot.links[index], bodies.bones(robot, index, radius)
    joint = (bodies.ball(1.6 * radius, robot.joints[index].frame),)
    if rods:
        yield _drawn(f"{link.name}/bone", index, _side_color(link.name), "inner", (*rods, *joint))
    if rods and bare:
        yield _drawn(f"{link.name}/flesh", index, SKIN, "visual", bodies.flesh(rods, link.mass))


def _side_color(name: str) -> Color:
    """Return red for right and blue for left links of a body (by Torsor's or OpenSim's names), or ivory for others."""
    sides = [side for side in SIDE_COLORS if name.startswith(side) or name.endswith(f"_{side[0]}")]
    return SIDE_COLORS[sides[0]] if sides else IVORY


def _drawn(name: str, index: int, color: Color, kind: str, solids: tuple[Solid, ...]) -> Shown:
    return Shown(name, index, surface_of(*solids), color, kind, solids)


def palette(robot: Robot, index: int) -> Color:
    """Return the colour of a link: red or blue if its name begins with right or left, otherwise one of several hues.

    Example:
        >>> [round(part, 2) for part in palette(torsor.library.ur5(), 0)]
        [0.35, 0.58, 0.8, 1.0]
    """
    names = [name.lower() for name in robot.link_names]
    if all(any(name.startswith(side) for name in names) for side in SIDE_COLORS):
        return next((color for side, color in SIDE_COLORS.items() if names[index].startswith(side)), MIDDLE_COLOR)
    hue = (0.58 + 0.381966 * index) % 1.0  # steps of the golden section repeat no hue
    phase = np.clip(np.abs((hue * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1, 0, 1)
    red, green, blue = (0.35 + 0.45 * phase).tolist()
    return red, green, blue, 1.0


WEIGHT_ARROW = 1 / 3  # length of an arrow of the whole weight, in sizes of the robot
CONTACT_STRETCH = 2.0  # of the arrows of contact forces: several feet share the weight of a robot
STANDARD_GRAVITY = 9.81  # m/s^2, for robots without gravity
MIN_ARROW = 1e-3  # shortest arrow, in sizes of the robot


def weight(robot: Mechanism) -> float:
    """Return the weight (N) of a robot, which scales force arrows."""
    return robot.mass * (float(np.linalg.norm(robot.gravity)) or STANDARD_GRAVITY) or 1.0


def arrows(line: Timeline, scene: Scene) -> Array | None:
    """Return the force arrows (T, n, 7) of a motion, or None without forces.

    An arrow consists of its start and vector (m) in base axes, and 1 for ground reaction forces or 0 otherwise. Ground
    reaction forces start at their points of application, and other external forces at the link origins. NaN hides an
    arrow.
    """
    scale = WEIGHT_ARROW * scene.size / weight(line.robot)
    if line.ground is not None:
        stretch = 1.0 if line.is_person else CONTACT_STRETCH
        parts, kind = (line.ground[..., :3], stretch * scale * line.ground[..., 3:]), 1.0
    elif line.external is not None and line.external[..., 3:].any():
        links = np.flatnonzero(line.external[..., 3:].any(axis=(0, 2)))
        poses = scene.poses(line.q)[:, links + 1]
        ways = np.einsum("tnij,tnj->tni", poses[..., :3, :3], line.external[:, links, 3:])
        parts, kind = (poses[..., :3, 3], scale * ways), 0.0
    else:
        return None
    vectors = np.concatenate([*parts, np.full((*parts[0].shape[:-1], 1), kind)], axis=-1)
    vectors[np.linalg.norm(parts[1], axis=-1) < MIN_ARROW * scene.size] = np.nan
    return vectors
