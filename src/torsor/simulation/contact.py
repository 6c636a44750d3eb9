"""Contact in simulations: the shapes that may touch, and the contact model. See docs/simulate/contact.md."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, number, one_of, positive, several, whole_number
from torsor.base.errors import ModelError, listing, warn
from torsor.dynamics import Tree
from torsor.dynamics.recursions.kinematics import moves, sx, world_poses
from torsor.geometry import contact_points, default_matrix, has_contact_points, placed_shapes, terrain_points
from torsor.geometry.allowed import shape_pairs
from torsor.geometry.closed_forms import lowest_point
from torsor.geometry.contacts import contact_error, vertices_or_size
from torsor.geometry.convex import MAX_REDUCED_VERTICES
from torsor.geometry.pairs import named_shapes
from torsor.geometry.placed import Placed
from torsor.mechanism import Shape
from torsor.mechanism.parts import ALL_BITS, FRICTION
from torsor.robot.robot import Robot
from torsor.simulation.inputs import Source, expanded
from torsor.spatial import cross, skew

KINDS = ("compliant", "hard")
IMPLICIT = "linearly_implicit"  # the method whose steps include compliant contact
# Parameters that belong to only one kind of contact.
OWN = {"compliant": ("dissipation", "exponent", "slip"), "hard": ("relaxation", "restitution", "sweeps")}
# Parameters that are inputs of the steps that include contact.
PARAMETERS = {
    "compliant": ("friction", "stiffness", "dissipation", "slip"),
    "hard": ("friction", "stiffness", "relaxation", "restitution"),
}
_WHERE = "contact"
# Number of points above which those of a step are chosen; how many are chosen in hard contact, and how many of each
# link in compliant contact: the corners of a face.
MANY, CHOSEN = 32, {"hard": 8, "compliant": 4}
ROUNDED = 1e-9  # m: height difference below which two surfaces are the same
STEEPEST = 0.1  # vertical component of the normal above which a plane of the base is ground; other planes are walls
_FLOORS = ("plane", "height field")
_PLANE = Shape("plane", priority=-ALL_BITS)
_TERRAIN = replace(_PLANE, name="ground")  # the only shape that stands for a terrain, whatever the names of others
_PAIRS = 'pairs of names of links, frames or shapes, or "all"'


class Touch(NamedTuple):
    """Two shapes that may touch, the first of which may be the ground."""

    first: Placed
    second: Placed


@dataclass(frozen=True, eq=False)
class Contact:
    """Unilateral contact with friction between the shapes of a robot and the ground, and between shapes.

    ``ground`` is True, False or a ``Shape``. True selects the ground planes and height fields of the base (MJCF scenes
    have them), or the plane z = 0 if there are none. False means no ground. A ``Shape`` is fixed to the base, such as a
    plane with a pose for a slope. A ``casadi.Function`` is the height z(x, y) (m) of a terrain, such as
    ``rough_ground``. Shapes of the base, such as tables and walls, can also be touched. ``shapes`` are the names of
    shapes, links or frames that touch the ground; None selects all moving shapes. ``pairs`` are pairs of names whose
    shapes touch each other, or "all" for all pairs that are not allowed collisions. ``friction`` is the coefficient of
    Coulomb friction of all contacts; None selects those of the shapes (``Shape.friction``, by default 0.8).

    With ``kind="compliant"``, the normal force at a point with depth x (m) and approach velocity x' (m/s) is k x^n
    max(0, 1 + d x') (Hunt and Crossley 1975), with the ``stiffness`` k (N/m^n), ``exponent`` n and ``dissipation`` d
    (s/m); n = 1.5 corresponds to Hertzian contact of round bodies. Friction is regularised Coulomb friction: -mu times
    the normal force times u / sqrt(|u|^2 + s^2), with the slip velocity u and ``slip`` s (m/s). Forces are continuous
    functions of the state, and energy never increases. The method "linearly_implicit", which drives select, treats
    contact implicitly. It chooses at most ``points`` points of each link on a shape of the base and of each pair of
    links (by default, 4 if the shapes have more than 32).

    With ``kind="hard"``, impulses keep shapes apart at the end of each step, with a Coulomb cone of ``friction``. They
    are computed in ``sweeps`` iterations of the projected Gauss-Seidel method. Each point has a spring ``stiffness``
    (N/m), and penetration decays with the time constant ``relaxation`` (s); all values are stable. Sticking contacts do
    not creep. ``restitution`` (0 to 1) is the ratio of the impulse that separates shapes to the impulse that stops them
    (Poisson's hypothesis), and of their normal velocities if balls collide. Impacts do not increase the energy.
    ``trajectory.settings["contact"]`` contains the ``residual``, which is the largest velocity error (m/s) of a point
    after the sweeps, and the ``mean_residual``; ``simulate`` warns if the latter exceeds 1 mm/s. If the shapes have
    more than ``points`` contact points (by default, more than 32), the deepest ``points`` of them (by default 8) are
    chosen in each step, at most five between two links; points that are left out count in the residual. Steps have a
    fixed length and order 2, but order 1 in impacts and with springs or drives.

    Parameters of the other kind raise ModelError.

    Example:
        >>> Contact(stiffness=1e5, friction=0.6).friction
        0.6
        >>> Contact(stiffness=0.0)
        Traceback (most recent call last):
        torsor.ModelError: contact: stiffness is 0.0; allowed: a finite number, above 0
    """

    ground: bool | Shape | ca.Function = True
    shapes: Sequence[str] | str | None = None
    pairs: Sequence[tuple[str, str]] | str = ()
    stiffness: float = 1e6
    dissipation: float = 1.0
    friction: float | None = None
    exponent: float = 1.5
    slip: float = 0.01
    kind: str = "compliant"
    relaxation: float = 0.02
    sweeps: int = 10
    points: int | None = None
    restitution: float = 0.0

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, _WHERE, "kind")
        if isinstance(self.ground, ca.Function):
            object.__setattr__(self, "ground", scalar_terrain(self.ground))
        elif not isinstance(self.ground, bool):
            allowed = "True, False, a torsor.Shape, or a casadi.Function of x and y"
            instance_of(self.ground, Shape, _WHERE, "ground", allowed=allowed)
        checked = {name: positive(getattr(self, name), _WHERE, name) for name in ("stiffness", "slip")}
        for name in ("dissipation", "relaxation", *(("friction",) if self.friction is not None else ())):
            checked[name] = number(getattr(self, name), _WHERE, name, least=0.0)
        checked["restitution"] = number(self.restitution, _WHERE, "restitution", least=0.0, most=1.0)
        checked["exponent"] = number(self.exponent, _WHERE, "exponent", least=1.0, most=3.0)
        if not isinstance(self.pairs, (str, Sequence)):
            raise ModelError(argument="pairs", value=self.pairs, where=_WHERE, allowed=_PAIRS)
        whole_number(self.sweeps, _WHERE, "sweeps", least=0, most=1000)
        if self.points is not None:
            whole_number(self.points, _WHERE, "points", least=1)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for kind in KINDS:
            changed = [name for name in OWN[kind] if getattr(self, name) != getattr(Contact, name)]
            if kind != self.kind and changed:
                found = f"{changed[0]} is not a parameter of {self.kind} contact"
                allowed = ", ".join(("stiffness", "friction", "points", *OWN[self.kind]))
                raise ModelError(found, where=_WHERE, allowed=allowed, fix=f'omit it, or `kind="{kind}"`')

    def touches(self, robot: Robot) -> tuple[Touch, ...]:
        """Return the shapes of a robot that may touch; raise ModelError if there are none, or for unknown names.

        Example:
            >>> touches = Contact(shapes=["fl_foot", "hr_foot"]).touches(torsor.library.quadruped())
            >>> [(each.first.name, each.second.name) for each in touches]
            [('ground', 'fl_foot/0'), ('ground', 'hr_foot/0')]
        """
        placed = placed_shapes(robot)
        if not placed:
            fix = "load a file with collision geometry, or robot.with_shapes(link, shapes)"
            raise ModelError("the robot has no collision shapes", where=f"{robot.name}: {_WHERE}", fix=fix)
        if all(each.link < 0 for each in placed):
            fix = 'load the robot with `base="floating"`, or give shapes to links that move'
            raise ModelError("no moving link has a collision shape", where=f"{robot.name}: {_WHERE}", fix=fix)
        fixed = [k for k, each in enumerate(placed) if each.link < 0]
        shapes = (*placed, *self._ground(robot, [placed[k] for k in fixed]))
        fixed = [*range(len(placed), len(shapes)), *fixed]
        named = list(range(len(placed)))
        if self.shapes is not None:
            named = [k for name in several(self.shapes) for k in named_shapes(robot, placed, name)]
        chosen = dict.fromkeys(k for k in named if placed[k].link >= 0)
        # A ground that is not a shape of the robot has no mask.
        masks = {
            k: [a for a in fixed if a == len(placed) or placed[a].shape.may_touch(placed[k].shape)] for k in chosen
        }
        planes = [a for a in fixed if shapes[a].shape.shape == "plane" and not self.is_terrain(shapes[a])]
        above = {a: [p for p in planes if a != p and _is_below(shapes[a].shape, shapes[p].shape, a > p)] for a in fixed}
        covered = {(a, k) for a in fixed for k in chosen if not set(above[a]).isdisjoint(masks[k])}
        once = dict[frozenset[int], Touch]()  # ``pairs`` may also name a shape of the base
        for a, b in [*((a, k) for a in fixed for k in chosen if a in masks[k]), *self._pairs(robot, placed)]:
            if covered.isdisjoint(((a, b), (b, a))):
                once.setdefault(frozenset((a, b)), Touch(shapes[a], shapes[b]))
        found = list(once.values())
        if not found:
            fix = "give ground=True, shapes that move and whose masks match, or pairs"
            raise ModelError("no pair of shapes can touch", where=f"{robot.name}: {_WHERE}", fix=fix)
        for first, second in found:
            if not has_contact_points(first.shape, second.shape):
                text = f"{first.name!r} ({first.shape.shape}) and {second.name!r} ({second.shape.shape})"
                fix = "leave one out with `shapes=` or `pairs=`, or use spheres and capsules: robot.with_shapes"
                what = f"contact is not supported between {text}"
                raise ModelError(what, where=f"{robot.name}: {_WHERE}", fix=fix)
        return tuple(found)

    def is_terrain(self, placed: Placed) -> bool:
        """Return whether a shape stands for the terrain, where ``ground`` is a function."""
        return placed.shape is _TERRAIN

    def _ground(self, robot: Robot, fixed: Sequence[Placed]) -> list[Placed]:
        """Return the ground to add: none if there is no ground, or if the base has a ground that faces up."""
        floors = [each for each in fixed if each.shape.shape in _FLOORS and each.shape.pose[2, 2] > STEEPEST]
        if not self.ground or (isinstance(self.ground, bool) and floors):
            return []
        # The friction on a ground that is not given is that of the robot's shapes.
        plane = self.ground if isinstance(self.ground, Shape) else _PLANE
        if floors and plane.shape == "plane":
            found = f"there are two grounds: the given one, and {floors[0].name!r} of the base"
            fix = "use the ground of the base (`ground=True`), or remove it: robot.with_shapes(base, [])"
            raise ModelError(found, where=f"{robot.name}: {_WHERE}", allowed="one", fix=fix)
        shape = _TERRAIN if isinstance(self.ground, ca.Function) else replace(plane, name="ground")
        return [Placed(shape, -1, "ground", "ground")]

    def _pairs(self, robot: Robot, placed: tuple[Placed, ...]) -> list[tuple[int, int]]:
        if isinstance(self.pairs, str):
            one_of(self.pairs, ("all",), _WHERE, "pairs")
            both = shape_pairs(placed, default_matrix(robot))
            return [(a, b) for a, b in both if placed[a].link >= 0 and placed[b].link >= 0]
        found = dict[tuple[int, int], None]()
        for pair in self.pairs:
            a, b = several(pair) if len(several(pair)) == 2 else (None, None)
            if not isinstance(a, str) or not isinstance(b, str):
                raise ModelError(f"has {pair!r}", value=pair, argument="pairs", where=_WHERE, allowed=_PAIRS)
            first, second = (list(named_shapes(robot, placed, name)) for name in (a, b))
            moving = [(i, j) for i in first for j in second if placed[i].link != placed[j].link]
            if not moving:
                text = f"{a!r} and {b!r} move together, so they cannot touch"
                raise ModelError(text, where=f"{robot.name}: {_WHERE}", allowed="shapes of two links")
            found |= dict.fromkeys(moving)
        return list(found)

    @property
    def about(self) -> dict[str, Any]:
        """Parameters for the settings of a trajectory, with the ``terrain`` if there is one."""
        names = ("kind", "stiffness", "dissipation", "friction", "exponent", "slip", *OWN["hard"], "points")
        terrain = {"terrain": self.ground} if isinstance(self.ground, ca.Function) else {}
        return {name: getattr(self, name) for name in names} | terrain

    def parameters(self, method: str) -> dict[str, float]:
        """Numbers by name that are inputs of a step of ``method`` which includes contact; none for other steps."""
        if self.kind == "compliant" and method != IMPLICIT:
            return {}
        numbers = {name: getattr(self, name) for name in PARAMETERS[self.kind]}
        return numbers | {"friction": FRICTION if self.friction is None else self.friction}

    def parameters_in(self, inputs: Mapping[str, ca.SX]) -> Sequence[Any]:
        """Return the parameters among the ``inputs`` of a step, or their values if they are not inputs."""
        if "parameters" in inputs:
            return ca.vertsplit(inputs["parameters"])
        return list(self.parameters(IMPLICIT).values())

    def most_points(self, count: int) -> int:
        """Return the number of contact points in a step, or of each link, of ``count`` points of all shapes."""
        if self.points is not None:
            return min(self.points, count)
        return count if count <= MANY else CHOSEN[self.kind]

    def floor(self, robot: Robot) -> list[float] | None:
        """Return the normal (3) of the ground plane and its distance (m) from the origin of the base.

        The result is None if shapes may also touch anything else, such as a box on the base or each other.

        Example:
            >>> Contact().floor(torsor.library.quadruped())
            [0.0, 0.0, 1.0, 0.0]
        """
        first, *others = {id(touch.first): touch.first for touch in self.touches(robot)}.values()
        if others or first.link >= 0 or first.shape.shape != "plane" or self.is_terrain(first):
            return None
        normal, point = first.shape.pose[:3, 2], first.shape.pose[:3, 3]
        return [*normal.tolist(), float(normal @ point)]

    def key(self, robot: Robot, inputs: bool = False) -> str:
        """Return text that identifies the contact wrenches of a robot, whose ``parameters`` may be ``inputs``."""
        touches = self.touches(robot)
        traced = self.friction != 0, self.restitution != 0
        about = (self.kind, self.sweeps, self.points, self.exponent, *traced) if inputs else self.about
        friction = [friction_of(touch, self) for touch in touches] if self.friction is None else []
        places = [(each.shape.shape, each.shape.pose.tolist(), each.link) for touch in touches for each in touch]
        sizes = [vertices_or_size(each.shape) for touch in touches for each in touch]
        return repr((about, friction, places, sizes, self._terrain))

    @cached_property
    def _terrain(self) -> str:
        """Text that identifies the terrain."""
        if not isinstance(self.ground, ca.Function):
            return ""
        return hashlib.sha256(self.ground.serialize().encode()).hexdigest()

    def depth(self, force: float) -> float:
        """Return the depth (m) at which a single point carries a force (N) at rest.

        Example:
            >>> round(Contact(stiffness=1e6).depth(100.0), 6)
            0.002154
        """
        exponent = 1.0 if self.kind == "hard" else self.exponent
        return float((np.abs(force) / self.stiffness) ** (1 / exponent))


def scalar_terrain(height: ca.Function) -> ca.Function:
    """Return a terrain z(x, y), expanded into scalar operations; raise ModelError for other functions."""
    sizes = [height.size_in(k) for k in range(height.n_in())], [height.size_out(k) for k in range(height.n_out())]
    if sizes != ([(1, 1), (1, 1)], [(1, 1)]):
        found = f"{height.name()} takes {sizes[0]} and returns {sizes[1]}"
        raise ModelError(found, argument="ground", where=_WHERE, allowed="numbers x and y (m) -> z (m)")
    scalar = expanded(height, "ground", ("x", "y"))
    if scalar is None:
        found = f"{height.name()} cannot be expanded into scalar operations"
        fix = "write z as CasADi operations, or as a table of heights: torsor.simulation.height_field"
        raise ModelError(found, argument="ground", where=_WHERE, fix=fix)
    return scalar


def friction_of(touch: Touch, contact: Contact) -> float:
    """Return the coefficient of friction of two shapes: that of the contact, or of the shapes if it has none.

    Example:
        >>> touch = Contact().touches(torsor.library.quadruped())[0]
        >>> friction_of(touch, Contact()), friction_of(touch, Contact(friction=0.3))
        (0.8, 0.3)
    """
    first, second = (each.shape for each in touch)
    return first.friction_with(second) if contact.friction is None else contact.friction


def _is_below(shape: Shape, plane: Shape, same: bool) -> bool:
    """Return whether a shape of the base is below a plane, which is touched first; ``same`` includes the same plane."""
    up, top = plane.pose[:3, 2], shape.pose[:3, 3]
    if shape.shape in ("mesh", "height field"):
        return False
    if shape.shape == "plane":
        if not np.allclose(shape.pose[:3, 2], up, rtol=0, atol=ROUNDED):
            return False
    else:
        top = np.array(ca.DM(lowest_point(shape.shape, sx(shape.pose), shape.size, sx(-up)))).ravel()
    height = float(up @ (top - plane.pose[:3, 3]))
    return height <= ROUNDED if same or shape.shape != "plane" else height < -ROUNDED


# Symbolic contact points of a moving robot: depth, normal, relative velocity, and wrenches on links.


class ContactPoint(NamedTuple):
    """A contact point in base axes: signed ``distance`` (m) and unit ``normal`` (3) from the first shape to the second.

    Forces act on both shapes at ``point`` (3). ``velocity`` (3) is the velocity of the second shape relative to the
    first at this point. The rate of the distance is normal . velocity. A force on the second shape acts on each link
    with the factor in ``weights``: 1 on the link of the second shape and -1 on the link of the first, or symbols that
    are 0 on all other links. ``friction`` is a coefficient.
    """

    distance: ca.SX
    normal: ca.SX
    point: ca.SX
    velocity: ca.SX
    weights: Mapping[int, Any]
    friction: float | ca.SX


class ContactState:
    """The contact points of a robot at (q, v), and the wrenches of their forces on its links."""

    def __init__(self, robot: Robot, contact: Contact, q: ca.SX, v: ca.SX):
        tree = Tree.of(robot)
        moved = moves(tree, q)
        bodies = world_poses(tree, moved)
        self.tree, self._v, own = tree, v, [sx(body.link) for body in tree.bodies]
        self.links = [ca.horzcat(R @ T[:3, :3], p + R @ T[:3, 3]) for T, (R, p) in zip(own, bodies, strict=True)]
        # Velocities are those at the origin of the root: coordinates far from the base would cause rounding errors.
        self._roots, self._columns = list[ca.SX](), list[tuple[ca.SX, ca.SX]]()
        for body, move, (R, p) in zip(tree.bodies, moved, bodies, strict=True):
            self._roots.append(self._roots[body.parent] if body.parent >= 0 else p)
            A = R @ move.S[:3, :]
            self._columns.append((A, R @ move.S[3:, :] + skew(p - self._roots[-1]) @ A))
        self.points, self.touches = list[ContactPoint](), list[Touch]()
        for touch in contact.touches(robot):
            poses = [self.links[each.link] if each.link >= 0 else sx(ca.DM.eye(4)[:3, :]) for each in touch]
            friction = friction_of(touch, contact)
            weights = {each.link: sign for each, sign in zip(touch, (-1, 1), strict=True) if each.link >= 0}
            if isinstance(contact.ground, ca.Function) and contact.is_terrain(touch.first):
                found = terrain_points(contact.ground, touch.second.shape, poses[1])
            else:
                found = contact_points(touch.first.shape, poses[0], touch.second.shape, poses[1])
            for each in found:
                middle = (each.first + each.second) / 2
                self.points.append(ContactPoint(each.distance, each.normal, middle, middle, weights, friction))
                self.touches.append(touch)
        self.points = self.moving(self.points, v)

    def moving(self, points: Sequence[ContactPoint], v: ca.SX) -> list[ContactPoint]:
        """Return contact points with the velocities that the joint velocities v (nv x 1) cause."""
        bodies, twist = self.tree.bodies, list[tuple[ca.SX, ca.SX]]()
        for body, (omega, linear) in zip(bodies, self._joint_twists(v), strict=True):
            above = twist[body.parent] if body.parent >= 0 else (0, 0)
            twist.append((above[0] + omega, above[1] + linear))
        found = []
        for point in points:
            velocity = ca.SX.zeros(3, 1)
            for link, weight in point.weights.items():
                omega, linear = twist[link]
                velocity += weight * (linear + cross(omega, point.point - self._roots[link]))
            found.append(point._replace(velocity=velocity))
        return found

    def _joint_twists(self, v: ca.SX) -> list[tuple[ca.SX, ca.SX]]:
        """Return the twist of each body relative to its parent, (omega, v at the root of its tree) in base axes."""
        return [
            (A @ rate, B @ rate)
            for body, (A, B) in zip(self.tree.bodies, self._columns, strict=True)
            for rate in [body.rate(v)]
        ]

    def joint_twists(self) -> list[tuple[ca.SX, ca.SX]]:
        """Return the twist of each body relative to its parent, (omega, v of the base's origin) in base axes."""
        both = zip(self._joint_twists(self._v), self._roots, strict=True)
        return [(omega, linear - cross(omega, root)) for (omega, linear), root in both]

    def wrenches(self, points: Sequence[ContactPoint], forces: Sequence[ca.SX]) -> ca.SX:
        """Return the wrenches (L x 6) on links, at link origins in link axes, due to forces (3) on the second shapes.

        The opposite forces act on the first shapes at the same points.
        """
        on = dict[int, tuple[ca.SX, ca.SX]]()
        for each, force in zip(points, forces, strict=True):
            for link, weight in each.weights.items():
                n, f = on.get(link, (ca.SX.zeros(3, 1), ca.SX.zeros(3, 1)))
                arm = each.point - self.links[link][:, 3]
                on[link] = n + weight * cross(arm, force), f + weight * force
        found = ca.SX.zeros(len(self.tree.bodies), 6)
        for link, (n, f) in on.items():
            R = self.links[link][:, :3]
            found[link, :] = ca.vertcat(R.T @ n, R.T @ f).T
        return found


# Compliant contact: the Hunt-Crossley model with regularised Coulomb friction, as wrenches on the links.
#
# With the depth x of a point, its rate x' and the tangential velocity u (slip),
#
#     f_n = k x^n max(0, 1 + d x')            f_t = -mu f_n u / sqrt(|u|^2 + s^2)
#
# (Hunt and Crossley 1975). The elastic part k x^n is the gradient of an energy. The rest dissipates power in every
# state, because f_n - k x^n has the sign of x' and f_t opposes u, so energy never increases. A body that hits at the
# speed v rebounds at e v, where
#
#     d v (1 + e) = log((1 + d v) / (1 - d e v))
#
# for every stiffness, exponent and mass. Under a tangential force of r mu f_n with r < 1, a body creeps at the speed
# s r / sqrt(1 - r^2).

# m: keeps the derivative of x^n finite where shapes do not touch; the elastic force stays a function of depth alone.
_TINY = 1e-12


def elastic_power(depth: ca.SX, exponent: float) -> ca.SX:
    """Return x^(n-1), whose derivative is finite at 0."""
    if exponent == 1.5:
        return ca.SX(ca.sqrt(depth + _TINY))
    return ca.SX(1 if exponent == 1 else (depth + _TINY) ** (exponent - 1))


def compliant_force(contact: Contact, point: ContactPoint) -> ca.SX:
    """Return the compliant force (3 x 1) on the second shape, in base axes."""
    depth, apart = ca.fmax(-point.distance, 0), ca.dot(point.normal, point.velocity)
    elastic = contact.stiffness * depth * elastic_power(depth, contact.exponent)
    normal = elastic * ca.fmax(1 - contact.dissipation * apart, 0)
    if ca.SX(point.friction).is_zero():
        return normal * point.normal
    slip = point.velocity - apart * point.normal
    return normal * (point.normal - point.friction / ca.sqrt(ca.sumsqr(slip) + contact.slip**2) * slip)


def checked_contact(robot: Robot, contact: Any) -> Contact:
    """Return the contact of a simulation; raise ModelError for anything else."""
    allowed = "a torsor.simulation.Contact, such as Contact(kind='hard')"
    return instance_of(contact, Contact, robot.name, "contact", allowed=allowed)


def added_contact(robot: Robot, contact: Contact | None, method: str) -> ca.Function | None:
    """Return ``contact_wrenches`` of the forces that are explicit in a step of ``method``, created once per robot.

    The result is None if there are none: hard contact is part of the step, and so is compliant contact in the method
    "linearly_implicit".
    """
    if contact is None:
        return None
    checked_contact(robot, contact).touches(robot)
    if contact.kind == "hard" or method == IMPLICIT:
        return None
    if contact.points is not None:
        found, fix = "`points` has no effect on explicit contact forces", f'`method="{IMPLICIT}"` or `kind="hard"`'
        raise ModelError(found, where=robot.name, fix=f"omit it, or use {fix}")
    made: ca.Function = robot.kernels.once(("contact", contact.key(robot)), lambda: contact_wrenches(robot, contact))
    return made


def with_contact(robot: Robot, wrenches: Source, contact: Contact | None, method: str) -> Source:
    """Return external wrenches with those of contact that are explicit in a step of ``method``, and its parameters."""
    if contact is None:
        return wrenches
    added, parameters = added_contact(robot, contact, method), tuple(contact.parameters(method).values())
    return wrenches._replace(added=added, parameters=parameters)


def contact_wrenches(robot: Robot, contact: Contact) -> ca.Function:
    """Return the function (t, q, v) -> contact wrenches (L x 6) on the links, at link origins in link axes."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    state = ContactState(robot, contact, q, v)
    wrenches = state.wrenches(state.points, [compliant_force(contact, each) for each in state.points])
    return ca.Function("contact", [t, q, v], [ca.densify(wrenches)], ["t", "q", "v"], ["contact"])


# Checks before a simulation with contact: shapes that overlap, and steps that are too long for the stiffness.

# Largest initial depth, relative to the depth at rest under the whole weight: a motion may continue from an impact.
DEEPER = 10.0
SHALLOW = 1e-3  # m: depth that is always allowed
LATE = 5e-3  # m: error of a reduced hull above which there is a warning
# The classical Runge-Kutta method is stable if h times a decay rate, or an angular frequency, is at most 2.78.
STABLE = 2.78
FEW = 64  # maximum number of rollouts whose step is checked


class Start(NamedTuple):
    """Contact points at q: distances (..., K), and the Jacobians (..., K, 3, nv) of their relative velocities."""

    names: list[tuple[str, str]]
    distance: Array
    normal: Array
    jacobian: Array


def points_at(robot: Robot, contact: Contact, q: Array) -> Start:
    """Return the contact points at postures q (B, nq), from a function that is traced once and not compiled."""

    def traced() -> tuple[list[tuple[str, str]], ca.Function]:
        q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        state = ContactState(robot, contact, q, v)
        rows = [
            ca.vertcat(each.distance, each.normal, ca.vec(ca.jacobian(each.velocity, v).T)) for each in state.points
        ]
        names = [(touch.first.name, touch.second.name) for touch in state.touches]
        return names, ca.Function("start", [q], [ca.vec(ca.densify(ca.horzcat(*rows).T))])

    names, function = robot.kernels.once(("contact at the start", contact.key(robot, inputs=True)), traced)
    table = function.map(len(q))(q.T).full().T.reshape(len(q), -1, len(names)).swapaxes(-1, -2)
    jacobian = table[..., 4:].reshape(*table.shape[:-1], 3, robot.nv)
    return Start(names, table[..., 0], table[..., 1:4], jacobian)


def hull_errors(robot: Robot, contact: Contact) -> dict[str, float]:
    """Return the largest distance (m) of the hull of each mesh from the hull of its contact points, by shape name."""
    shapes = (each for touch in contact.touches(robot) for each in touch)
    return {each.name: contact_error(each.shape) for each in shapes if each.shape.shape == "mesh"}


def check_start(robot: Robot, contact: Contact, q: Array, step: float | None) -> dict[str, Any]:
    """Raise ModelError if shapes overlap at q (..., nq); warn of reduced hulls and if ``step`` (s) is too long.

    The result has the largest error of a hull (m) and the number of contact points, for the settings of a trajectory.
    """
    errors = hull_errors(robot, contact)
    late = {name: error for name, error in errors.items() if error > LATE}
    if late:
        found = listing((f"{name!r} by {1e3 * error:.2g} mm" for name, error in late.items()), most=4)
        found = f"hulls are reduced to {MAX_REDUCED_VERTICES} vertices, so that contact may begin too late: {found}"
        warn(found, where=robot.name, fix="omit these shapes with `shapes=`, or replace them: robot.with_shapes")
    postures = q.reshape(math.prod(q.shape[:-1]), robot.nq)
    start = points_at(robot, contact, postures)
    weight = robot.mass * max(float(np.linalg.norm(robot.gravity)), 1.0)
    allowed = max(SHALLOW, DEEPER * contact.depth(weight))
    least = start.distance.min(axis=0)
    deepest = dict[tuple[str, str], float]()
    for name, distance in zip(start.names, least, strict=True):
        deepest[name] = min(distance, deepest.get(name, np.inf))
    deep = sorted((distance, name) for name, distance in deepest.items() if distance < -allowed)
    if deep:
        found = listing((f"{a!r} and {b!r} by {-1e3 * distance:.3g} mm" for distance, (a, b) in deep), most=4)
        limit = f"{1e3 * allowed:.3g} mm: {DEEPER:g} times the depth at rest, at least 1 mm"
        fix = "start higher or further apart, or leave the pair out with `shapes=` or `pairs=`"
        raise ModelError(f"shapes overlap at the start: {found}", where=robot.name, allowed=limit, fix=fix)
    if step is not None:
        longest = stable_step(robot, contact, postures[:FEW], start, weight)
        if step > longest:
            fix = 'use a shorter step, `method="adaptive"`, a smaller stiffness or a larger slip'
            warn_of_long_step(robot, step, longest, "the contact stiffness", fix)
    count = len(start.names)
    return {
        "hull_error": max(errors.values(), default=0.0),
        "points": contact.most_points(count) if contact.kind == "hard" else count,
    }


def warn_of_long_step(robot: Robot, step: float, longest: float, stiff: str, fix: str) -> None:
    """Warn that a ``step`` (s) exceeds the ``longest`` stable one (s); ``stiff`` names the cause."""
    text = f"the step of {step:.3g} s is too long for {stiff}: the largest stable step is about {longest:.2g} s"
    warn(text, where=robot.name, fix=fix)


def stable_step(robot: Robot, contact: Contact, q: Array, start: Start, weight: float) -> float:
    """Return an estimate of the largest stable Runge-Kutta step (s), with all weight on a single point."""
    M = robot.mass_matrix(q, loops="open").reshape(-1, 1, robot.nv, robot.nv)
    J = start.jacobian[: len(q)]
    compliance = J @ np.linalg.solve(np.broadcast_to(M, (*J.shape[:2], *M.shape[2:])), J.swapaxes(-1, -2))
    depth = contact.depth(weight)
    slope = contact.exponent * weight / depth
    n = start.normal[: len(q)]
    frequency = np.sqrt(slope * np.einsum("bki,bkij,bkj->bk", n, compliance, n).max())
    friction = max(friction_of(touch, contact) for touch in contact.touches(robot))
    decay = friction * weight / contact.slip * np.linalg.eigvalsh(compliance).max()
    damping = contact.dissipation * weight * frequency**2 / slope
    return float(STABLE / max(frequency, decay, damping, 1e-300))


# m/s: largest mean velocity error after the sweeps. Sticking bodies creep by up to 1 mm per second. For sliding bodies,
# the same error is less important.
CREEP = 1e-3


def residual_facts(residual: Array) -> dict[str, float]:
    """Return the largest and mean residuals (m/s) of hard contact for the settings of a trajectory."""
    known = residual[np.isfinite(residual)]
    return {"residual": float(known.max(initial=0.0)), "mean_residual": float(known.mean()) if known.size else 0.0}


def warn_of_creep(robot: Robot, settings: Mapping[str, Any]) -> None:
    """Warn if the sweeps of hard contact have not converged."""
    contact = settings.get("contact", {})
    if contact.get("mean_residual", 0.0) > CREEP:
        mean, largest, sweeps, points = (contact[name] for name in ("mean_residual", "residual", "sweeps", "points"))
        found = f"hard contact has not converged: after {sweeps} sweeps with {points} points, "
        found += f"the mean velocity error is {mean:.2g} m/s, the largest {largest:.2g} m/s"
        fix = f"use `sweeps={max(4 * sweeps, 10)}`, a shorter step, or more `points=` if the shapes have more"
        warn(found, where=robot.name, allowed=f"{CREEP:g} m/s", fix=fix)
