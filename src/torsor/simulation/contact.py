"""Contact in simulations: which shapes touch, and the constants of the law. See docs/contact.md."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from torsor.base.checks import instance_of, number, one_of, positive, several, whole_number
from torsor.base.errors import ModelError, describe
from torsor.geometry import default_matrix, has_contact_points, placed_shapes
from torsor.geometry.pairs import named_shapes
from torsor.geometry.placed import Placed
from torsor.geometry.sampling import shape_pairs
from torsor.mechanism import Shape
from torsor.robot.robot import Robot

KINDS = ("compliant", "hard")
# The constants that only one kind has.
OWN = {"compliant": ("dissipation", "exponent", "slip"), "hard": ("relaxation", "sweeps")}
_WHERE = "contact"
_PAIRS = 'pairs of names of links, frames or shapes, or "all"'


class Touch(NamedTuple):
    """Two shapes that may touch; the first one may be the ground."""

    first: Placed
    second: Placed


@dataclass(frozen=True, eq=False)
class Contact:
    """Unilateral contact with friction between the shapes of a robot and the ground, and between shapes.

    ``ground`` is True for the plane z = 0 of the base, a ``Shape`` that is fixed to the base (a plane with a pose, for
    a slope), or False for none. Planes and other shapes of the base itself count as ground too. ``shapes`` are the
    names of shapes, links or frames that touch the ground; None for all moving shapes. ``pairs`` are pairs of names
    whose shapes touch each other, or "all" for those that are not allowed collisions.

    ``kind="compliant"``: the normal force at a point that is x (m) deep and approaches with x' (m/s) is that of Hunt
    and Crossley (1975), k x^n max(0, 1 + d x'), with the ``stiffness`` k (N/m^n), ``exponent`` n and ``dissipation`` d
    (s/m); n = 1.5 is Hertz' contact of round bodies. Friction is Coulomb's law, regularised: mu times the normal force,
    against the slip u, times u / sqrt(|u|^2 + s^2) with ``slip`` s (m/s). Forces are functions of the state alone,
    continuous, and energy never grows.

    ``kind="hard"``: impulses at each step that keep shapes apart at its end, with Coulomb's cone of ``friction``, by
    projected Gauss-Seidel (``sweeps`` of it). Points are as stiff as a spring, ``stiffness`` in N/m, and penetration
    vanishes in the time ``relaxation`` (s); any values are stable. Nothing rebounds, and what sticks does not creep.
    Steps have a fixed length, order 2 without contact and 1 with it. Constants of the other kind are refused.

    Example:
        >>> Contact(stiffness=1e5, friction=0.6).friction
        0.6
        >>> Contact(stiffness=0.0)
        Traceback (most recent call last):
        torsor.ModelError: contact: stiffness is 0.0; allowed: a finite number, above 0
    """

    ground: bool | Shape = True
    shapes: Sequence[str] | str | None = None
    pairs: Sequence[tuple[str, str]] | str = ()
    stiffness: float = 1e6
    dissipation: float = 1.0
    friction: float = 0.8
    exponent: float = 1.5
    slip: float = 0.01
    kind: str = "compliant"
    relaxation: float = 0.02
    sweeps: int = 10

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, _WHERE, "kind")
        if not isinstance(self.ground, bool):
            instance_of(self.ground, Shape, _WHERE, "ground", allowed="True, False or a torsor.Shape")
        checked = {name: positive(getattr(self, name), _WHERE, name) for name in ("stiffness", "slip")}
        checked |= {
            name: number(getattr(self, name), _WHERE, name, least=0.0)
            for name in ("dissipation", "friction", "relaxation")
        }
        checked["exponent"] = number(self.exponent, _WHERE, "exponent", least=1.0, most=3.0)
        if not isinstance(self.pairs, (str, Sequence)):
            raise ModelError(describe(f"pairs is {self.pairs!r}", where=_WHERE, allowed=_PAIRS))
        whole_number(self.sweeps, _WHERE, "sweeps", least=0, most=1000)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for kind in KINDS:
            changed = [name for name in OWN[kind] if getattr(self, name) != getattr(Contact, name)]
            if kind != self.kind and changed:
                found = f"{changed[0]} for {self.kind} contact"
                allowed = ", ".join(("stiffness", "friction", *OWN[self.kind]))
                raise ModelError(describe(found, where=_WHERE, allowed=allowed, fix=f'leave it out, or kind="{kind}"'))

    def touches(self, robot: Robot) -> tuple[Touch, ...]:
        """Return the shapes of a robot that may touch; raise ModelError if there are none, or for unknown names.

        Example:
            >>> ball = torsor.library.quadruped().with_shapes("fl_foot", [torsor.Shape("sphere", (0.02,))])
            >>> [(each.first.name, each.second.name) for each in Contact().touches(ball)]
            [('ground', 'fl_foot/0')]
        """
        placed = placed_shapes(robot)
        if not placed:
            fix = "load a file with collision geometry, or robot.with_shapes(link, shapes)"
            raise ModelError(describe("no link has a collision shape", where=f"{robot.name}: {_WHERE}", fix=fix))
        if all(each.link < 0 for each in placed):
            fix = 'load the robot with base="floating", or give shapes to links that move'
            raise ModelError(describe("no link that moves has a shape", where=f"{robot.name}: {_WHERE}", fix=fix))
        fixed = [each for each in placed if each.link < 0]
        if self.ground:
            plane = Shape("plane") if isinstance(self.ground, bool) else self.ground
            fixed.insert(0, Placed(replace(plane, name="ground"), -1, "ground", "ground"))
        if self.shapes is None:
            named = list(range(len(placed)))
        else:
            named = [k for name in several(self.shapes) for k in named_shapes(robot, placed, name)]
        chosen = dict.fromkeys(k for k in named if placed[k].link >= 0)
        found = [Touch(under, placed[k]) for under in fixed for k in chosen]
        found += [Touch(placed[a], placed[b]) for a, b in self._pairs(robot, placed)]
        if not found:
            fix = "give ground=True, shapes that move, or pairs"
            raise ModelError(describe("no shapes that may touch", where=f"{robot.name}: {_WHERE}", fix=fix))
        for first, second in found:
            if not has_contact_points(first.shape, second.shape):
                text = f"{first.name!r} ({first.shape.shape}) and {second.name!r} ({second.shape.shape})"
                fix = "leave one out by shapes= or pairs=, or use spheres and capsules: robot.with_shapes"
                what = f"no points of contact in closed form between {text}"
                raise ModelError(describe(what, where=f"{robot.name}: {_WHERE}", fix=fix))
        return tuple(found)

    def _pairs(self, robot: Robot, placed: tuple[Placed, ...]) -> list[tuple[int, int]]:
        if isinstance(self.pairs, str):
            one_of(self.pairs, ("all",), _WHERE, "pairs")
            both = shape_pairs(placed, default_matrix(robot))
            return [(a, b) for a, b in both if placed[a].link >= 0 and placed[b].link >= 0]
        found = dict[tuple[int, int], None]()
        for pair in self.pairs:
            a, b = several(pair) if len(several(pair)) == 2 else (None, None)
            if not isinstance(a, str) or not isinstance(b, str):
                raise ModelError(describe(f"pairs has {pair!r}", where=_WHERE, allowed=_PAIRS))
            sides = (named_shapes(robot, placed, name) for name in (a, b))
            first, second = (list(side) for side in sides)
            moving = [(i, j) for i in first for j in second if placed[i].link != placed[j].link]
            if not moving:
                text = f"{a!r} and {b!r} move together: they cannot touch"
                raise ModelError(describe(text, where=f"{robot.name}: {_WHERE}", allowed="shapes of two links"))
            found |= dict.fromkeys(moving)
        return list(found)

    @property
    def about(self) -> dict[str, Any]:
        """The constants, in words and numbers, for the settings of a trajectory."""
        names = ("kind", "stiffness", "dissipation", "friction", "exponent", "slip", "relaxation", "sweeps")
        return {name: getattr(self, name) for name in names}

    def key(self, robot: Robot) -> str:
        """Return what makes the wrenches of two contacts of a robot different, as text."""
        touches = [(each.shape, each.link) for touch in self.touches(robot) for each in touch]
        return repr((self.about, [(shape.shape, shape.size, shape.pose.tolist(), link) for shape, link in touches]))

    def depth(self, force: float) -> float:
        """Return the depth (m) at which one point carries a force (N) at rest.

        Example:
            >>> round(Contact(stiffness=1e6).depth(100.0), 6)
            0.002154
        """
        exponent = 1.0 if self.kind == "hard" else self.exponent
        return float((np.abs(force) / self.stiffness) ** (1 / exponent))
