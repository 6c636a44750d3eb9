"""Parts of a parallel robot: its legs, and the platform on the joints of its motion."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, frozen_pose, name_of, real_array
from torsor.base.errors import ModelError
from torsor.dynamics.loops.closure import characteristic_scales
from torsor.dynamics.recursions.configuration import integrate
from torsor.dynamics.recursions.newton_euler import inverse_dynamics
from torsor.dynamics.trees.lean import lean
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import Joint, Link, Loop, Place
from torsor.mechanism.part import Part
from torsor.robot.closed_loops.mobility import RANK, choose
from torsor.robot.closed_loops.search import CLOSURE_TOLERANCE, Space
from torsor.robot.load import build
from torsor.robot.parallel.decomposition import moving
from torsor.robot.parallel.limbs import Limb, Platform, TracedLimb
from torsor.robot.robot import Robot
from torsor.spatial import make_pose, to_quaternion


@dataclass(frozen=True, eq=False)
class Leg(Part):
    """A leg of a parallel robot: an open chain from the base, and the joint that connects its end to the platform.

    The base of ``robot`` is at the pose ``base`` (4 x 4, or a point (3,)) relative to the parallel robot's base. A
    joint connects its link or frame ``tip`` to the pose ``at`` (4 x 4, or a point (3,)) on the platform. The ``kind``
    of this joint is weld, revolute, prismatic, cylindrical, universal, spherical, planar, or rod with its ``length``
    (m). Its axes are the z axes of ``tip`` and ``at`` (see ``Loop``). ``driven`` names the coordinates with a drive.
    ``home`` (nq,) is the initial guess for the leg positions with the platform at home; the default is neutral.

    Example:
        >>> arm = torsor.library.planar_chain(2).with_frame("tip", "link2", make_pose(p=[1, 0, 0]))
        >>> Leg("left", arm, "tip", at=(0.1, 0, 0), kind="revolute", driven=("joint1",)).driven
        ('joint1',)
    """

    name: str
    robot: Robot
    tip: str
    at: Array = field(default_factory=lambda: np.zeros(3))
    kind: str = "spherical"
    driven: tuple[str, ...] = ()
    base: Array = field(default_factory=lambda: np.zeros(3))
    home: Array | None = None
    length: float = 0.0

    def __post_init__(self) -> None:
        where = f"leg {name_of(self.name, 'leg')!r}"
        if not isinstance(self.robot, Robot):
            raise ModelError(f"robot is of type {type(self.robot).__name__}", where=where, allowed="a Robot")
        if self.robot.loops:
            fix = "build it as a robot with loops: robot.with_loop(...)"
            raise ModelError("the leg itself has loops", where=where, allowed="an open chain", fix=fix)
        if not self.robot.nv:
            raise ModelError("the leg does not move", where=where, allowed="one or more joints")
        if max(at.v.stop for at in self.robot.coordinates) < self.robot.nv:
            message, fix = "the leg has elastic motors, which are not constrained", "build it as a tree with loops"
            raise ModelError(message, where=where, allowed="rigid gears", fix=fix)
        self.robot.place(self.tip)
        for name in ("at", "base"):
            value = real_array(getattr(self, name), where, name)
            pose = make_pose(p=frozen_array(value, (3,), where, name)) if value.shape == (3,) else value
            self._set(**{name: frozen_pose(pose, where, name)})
        driven = (self.driven,) if isinstance(self.driven, str) else self.driven
        if not isinstance(driven, Iterable):
            raise ModelError(argument="driven", value=self.driven, where=where, allowed="names of its coordinates")
        driven = tuple(driven)
        for item in driven:
            if item not in self.robot.coordinate_names or item not in self.robot.position_names:
                both = [name for name in self.robot.coordinate_names if name in self.robot.position_names]
                message = f"contains {item!r}, which is not a coordinate of the leg"
                raise ModelError(message, value=item, argument="driven", where=where, allowed=", ".join(both))
        if len(set(driven)) < len(driven):
            allowed = "each coordinate once"
            raise ModelError(f"is {driven}", argument="driven", value=driven, where=where, allowed=allowed)
        home = self.robot.neutral() if self.home is None else self.home
        self._set(driven=driven, home=frozen_array(home, (self.robot.nq,), where, "home"))
        # Loop raises an error for an unknown kind.
        self._set(length=Loop(self.name, "a", "b", self.kind, self.length).length)


def carriage(platform: Link | Robot, motion: str, gravity: Array) -> Robot:
    """Return a robot whose last link is the platform, on the joint or joints of its motion."""
    if isinstance(platform, Robot):
        if platform.loops or len(platform.links) == 0:
            raise ModelError("it has loops or no joint", where=platform.name, allowed="an open chain that moves")
        last = platform.links[-1].name
        on_last = [frame for frame in platform.frames if frame.link == last]
        welded = [frame.name for frame in on_last if np.abs(frame.pose - np.eye(4)).any()]
        if welded:
            message = f"frames {', '.join(welded)} on the last link {last!r} may be links welded to it, so the platform"
            message += " is ambiguous"
            fix = "give the platform its own joint, or drop frames: replace(robot, frames=()); legs end at that link"
            raise ModelError(message, value=last, where=platform.name, allowed="no frames there", fix=fix)
        return platform.with_gravity(gravity)
    if not isinstance(platform, Link):
        allowed = "a Link, or a Robot whose last link it is"
        raise ModelError(f"is of type {type(platform).__name__}", argument="platform", allowed=allowed)
    name = platform.name
    if not isinstance(motion, str) or motion == "fixed":
        raise ModelError(argument="motion", value=motion, where=name, allowed="a motion")
    if motion != "translation":
        joints = [Joint(name, motion, "base", name)]
        return build(name, [Link("base"), platform], joints, gravity=gravity)
    carriers = [Link(f"{name}/{axis}") for axis in "xy"]
    names = ["base", *(link.name for link in carriers), name]
    joints = [
        Joint(f"{name}/{axis}", "prismatic", names[k], names[k + 1], axis=np.eye(3)[k]) for k, axis in enumerate("xyz")
    ]
    return build(name, [Link("base"), *carriers, platform], joints, gravity=gravity)


def coordinates_of(T: Array, robot: Robot, motion: str) -> Array:
    """Return the platform coordinates (..., nq) for poses (..., 4, 4); raise ModelError for an impossible pose."""
    R, p = T[..., :3, :3], T[..., :3, 3]
    if motion == "free":
        result = np.concatenate([p, to_quaternion(R)], axis=-1)
    elif motion == "translation":
        result = p
    elif motion == "planar":
        result = np.stack([p[..., 0], p[..., 1], np.arctan2(R[..., 1, 0], R[..., 0, 0])], axis=-1)
    else:
        fix = f"pass the coordinates {', '.join(robot.position_names)}"
        raise ModelError("poses cannot be matrices", where=robot.name, allowed="free, planar, translation", fix=fix)
    off = float(np.abs(robot.pose(result, robot.links[-1].name) - T).max(initial=0.0))
    if not off <= 1e-6:
        found_text = f"pose differs by {off:.2g} from the possible poses of a {motion} platform"
        raise ModelError(found_text, where=robot.name, allowed="poses that its motion allows")
    return np.asarray(result)


# Conversion of legs to limbs: the independent closure equations of a leg and its free spins, determined numerically at
# home. Tolerances of closure and rank are relative to the size of the robot (``length_of``).

TRIALS = 6
HOME = "set a home (of the leg or the robot) that is far from singular"


def length_of(legs: Sequence[Leg], platform: Tree, home: Array) -> float:
    """Return the size (m), a power of two: the longest distance from a leg's base to its joint, or within a leg."""
    x, last = ca.SX.sym("x", platform.nq), len(platform.bodies) - 1
    there = Platform(platform, x)
    ends = ca.horzcat(*(there.p + there.place(Place(last, leg.at))[0] for leg in legs))
    result = np.asarray(ca.Function("ends", [x], [ends])(home).full()).T
    distances = [float(np.linalg.norm(end - leg.base[:3, 3])) for end, leg in zip(result, legs, strict=True)]
    for leg in legs:
        distances += [leg.length, *(float(np.linalg.norm(joint.placement[:3, 3])) for joint in leg.robot.joints)]
    size = max(distances)
    return float(2.0 ** round(np.log2(size))) if size > 0 else 1.0


def fit(leg: Leg, carriage: Robot, home: Array, before: tuple[int, int], length: float) -> tuple[Limb, Array, Tree]:
    """Return the leg as a ``Limb``, its positions (nq,) with the platform at home, and its tree with all inertias.

    ``before`` are the numbers of positions and velocities of the preceding legs. ``length`` (m) is the robot's size.
    """
    where, prefix = f"leg {leg.name!r}", f"{leg.name}/"
    ground = build("ground", [Link("base")], [], gravity=carriage.gravity).with_frame("stand", "base", leg.base)
    robot = ground.attach(leg.robot, at="stand", prefix=prefix)
    loop, names, whole = Loop(leg.name, "tip", "at", leg.kind, leg.length), robot.coordinate_names, Tree.of(robot)
    ends = robot.place(prefix + leg.tip), Place(len(carriage.links) - 1, leg.at)
    rows, no_idle = tuple(range(loop.count)), np.zeros((0, robot.nv))
    driven = tuple(names.index(prefix + name) for name in leg.driven)
    slices = slice(before[0], before[0] + robot.nq), slice(before[1], before[1] + robot.nv)
    limb = Limb(leg.name, lean(whole), *ends, loop, rows, no_idle, driven, *slices, length)
    look = Look(limb, lean(Tree.of(carriage)), home)
    q, size = look.space.closest(np.array(leg.home))
    if size > CLOSURE_TOLERANCE:
        message = f"the leg does not reach the platform at home: the closure error is {size * length:.2g}"
        fix = "check base, at, tip and kind, or set a home (of the leg or the robot) nearer to one that closes"
        raise ModelError(message, where=where, fix=fix)
    leg_jacobian, all_ = look.own(q), look.whole(q)
    choice = choose(leg_jacobian, [])
    rank = len(choice.rows)
    scale = float(np.linalg.norm(all_, 2))
    if np.count_nonzero(np.linalg.svd(all_, compute_uv=False) > RANK * scale) > rank:
        message = f"the leg blocks motions that the platform's joint has: {', '.join(carriage.coordinate_names)}"
        fix = "give the platform a motion that all legs allow, or give the leg more joints"
        raise ModelError(message, where=where, fix=fix)
    idle = _idle(limb, look, q, robot.nv - rank, names, where)
    return limb._replace(rows=choice.rows, idle=idle), q, whole


class Look:
    """Numerical closure error and Jacobians of a leg, with the platform at a fixed pose; all are nondimensional."""

    def __init__(self, limb: Limb, platform: Tree, home: Array):
        x, q = ca.SX.sym("x", platform.nq), ca.SX.sym("q", limb.tree.nq)
        u = ca.SX.sym("u", platform.nv)
        traced = TracedLimb(limb, q, Platform(platform, x, u), closed=False)
        w, v = traced.platform.velocity_at(traced.r)
        by_platform = ca.jacobian(traced.C @ traced.down(w) + traced.P @ traced.down(v), u)
        held = TracedLimb(limb, q, traced.platform).A
        # Jacobians are divided by the scales of the equations and multiplied by those of leg and platform steps.
        rows = ca.diag(1 / ca.SX(limb.loop.units(limb.length)))
        leg_scales, others = (characteristic_scales(tree, limb.length)[1] for tree in (limb.tree, platform))
        result = [
            traced.closure_error(),
            rows @ traced.A @ ca.diag(ca.SX(leg_scales)),
            rows @ ca.horzcat(traced.A, by_platform) @ ca.diag(ca.SX(np.concatenate([leg_scales, others]))),
            rows @ held,
        ]
        result = [ca.substitute(item, u, ca.SX.zeros(platform.nv, 1)) for item in result]
        self._function = ca.Function("look", [x, q], result)
        dv = ca.SX.sym("dv", limb.tree.nv)
        self._moved = ca.Function("moved", [q, dv], [integrate(limb.tree, q, dv)])
        self._home = home
        # Jacobians with respect to the leg, to leg and platform, and to the leg as if it were closed at q.
        self.own, self.whole, self.closed = (partial(self._at, k) for k in (1, 2, 3))
        self.space = Space(lambda q: self._at(0, q).ravel(), self.own, self.moved, leg_scales)

    def _at(self, k: int, q: Array) -> Array:
        return np.asarray(self._function(self._home, q)[k].full())

    def moved(self, q: Array, dv: Array) -> Array:
        """Return the leg's positions after a step."""
        return np.asarray(self._moved(q, dv).full()).ravel()


def _idle(limb: Limb, look: Look, q: Array, count: int, names: tuple[str, ...], where: str) -> Array:
    """Return the combinations of rates (k x nv) that remain zero: spins of a leg that do not move the platform.

    A spin is a rotation about a line that is fixed in the leg. If the leg is symmetric about that line, nothing
    accelerates the spin, so a leg at rest does not start to spin.
    """
    if not count:
        return np.zeros((0, limb.tree.nv))
    rng = np.random.default_rng(0)
    rows = _null(look.closed(q), count)
    for _ in range(TRIALS):
        jacobian = look.closed(look.moved(q, 0.3 * look.space.units * rng.normal(size=limb.tree.nv)))
        there = _null(jacobian, count)
        if np.linalg.matrix_rank(jacobian, RANK) > limb.tree.nv - count:
            raise ModelError(f"the leg is singular at home: {moving(names, rows[0])}", where=where, fix=HOME)
        if np.abs(there - there @ rows.T @ rows).max() > 1e-9:
            loose = ", ".join(repr(names[k]) for k in np.flatnonzero(np.abs(rows).max(axis=0) > 1e-9))
            message = f"the platform does not constrain {count} motions of the leg ({loose})"
            fix = "remove a joint, or use a joint at the platform with more constraints"
            raise ModelError(message, where=where, allowed="spins of ball joints about the leg's line", fix=fix)
    worst = _spin_force(limb.tree, rows, look, q, rng)
    if worst > 1e-9:
        message = f"the leg can spin about its line and is not symmetric about it ({worst:.1g} of its forces)"
        fix = "make it symmetric about the line, or use a universal joint in place of one ball"
        raise ModelError(message, where=where, fix=fix)
    rows[np.abs(rows) < 1e-12] = 0.0
    return rows


def _null(A: Array, count: int) -> Array:
    return np.asarray(np.linalg.svd(A)[2][A.shape[1] - count :])


def _spin_force(tree: Tree, rows: Array, look: Look, q: Array, rng: np.random.Generator) -> float:
    """Return the force along the spins, as a fraction of the leg's forces, for random motions without spin."""
    symbols = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv), ca.SX.sym("a", tree.nv)
    forces = ca.Function("forces", list(symbols), [inverse_dynamics(tree, *symbols)])
    worst, still = 0.0, np.eye(tree.nv) - rows.T @ rows
    for _ in range(TRIALS):
        v, a = still @ rng.normal(size=tree.nv), still @ rng.normal(size=tree.nv)
        there = look.moved(q, look.space.units * rng.normal(size=tree.nv))
        tau = np.asarray(forces(there, v, a).full()).ravel()
        worst = max(worst, float(np.abs(rows @ tau).max() / max(np.abs(tau).max(), 1e-300)))
    return worst
