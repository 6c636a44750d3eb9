"""Walking: one step of a human, or a stride, predicted by the least effort (Barman 2020, chapter V).

One step is repeated with left and right exchanged; where the sides differ, two steps repeat themselves. Torques are
those with the ground's wrenches on the feet; the point of pressure stays within what stands, without divisions:

    n_z - x f_y >= 0 and the like, for the four sides of a box about the support
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor import library
from torsor.checks import positive
from torsor.errors import ModelError, describe
from torsor.human.body.kernels import check_body, shared
from torsor.human.body.loads import Backpack, Box
from torsor.human.body.strength import StrengthCurves, Strengths
from torsor.human.contact.ground_contact import FLIP, mirror
from torsor.human.contact.schedule import Step, Walk
from torsor.human.contact.support import SIDES
from torsor.human.given import table
from torsor.human.terms.feet import Clears, Stands, contacts
from torsor.human.terms.forces import Balance, Effort, JointReactions, Torques, Unbalance
from torsor.human.terms.habits import Habits
from torsor.motion import MotionProblem, Periodic, Phase, Positions, Symmetric
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.term import Constraint, Cost
from torsor.robot.robot import Robot

__all__ = ["FROZEN", "VERSIONS", "walking"]

Array = NDArray[np.float64]

FROZEN = ("clavicle", "wrist", "neck", "head", "spine4", "spine3_axial")
SIDEWAYS = ("tx", "yaw", "list", "adduction", "rotation", "inversion", "lateral", "axial", "pronation")
VERSIONS: Mapping[str, Mapping[str, Any]] = {
    "thesis": {"points": 6, "nodes": 31, "slack": 0.003, "slip": 0.25, "order": 1},
    "clean": {"points": 8, "nodes": 41, "slack": 0.002, "slip": 0.05, "order": 2},
}
OBJECTIVES = {"effort": Effort, "balance": Unbalance, "reaction": JointReactions}
BEGUN = 1e-6  # of a step: it has begun, and the one before has ended
SWING = 0.06  # of a step, after toe-off and before the heel strikes, while the clearance is not asked for


def walking(
    body: Robot | None = None,
    step: Step | None = None,
    version: str = "thesis",
    *,
    load: Backpack | Box | None = None,
    slope: float = 0.0,
    steps: int = 1,
    frozen: Mapping[str, float] | None = None,
    strength: Mapping[str, float] | None = None,
    curves: StrengthCurves | None = None,
    planar: bool = False,
    objective: Mapping[str, float] | None = None,
    habits: Habits | None = None,
    friction: float = 0.8,
    points: int | None = None,
    nodes: int | None = None,
    slack: float | None = None,
    slip: float | None = None,
    order: int | None = None,
) -> MotionProblem:
    """Return the problem of one step of walking with the least effort.

    ``body`` is a ``library.human``, ``step`` what it walks, with a ``load``, up a ``slope`` (rad; below 0: down).
    ``version`` is "thesis", with 6 cubic control points a coordinate, or "clean", with 8, accelerations that go on into
    the next step, and feet that hardly slip. Of a version, ``points``, ``nodes`` (at which terms are looked at),
    ``slack`` (m, within which feet stand), ``slip`` (m/s, of feet that stand) and ``order`` (of the rates that the next
    step begins with) may be given otherwise.

    Clavicles, wrists, neck, head and the upper spine are frozen, so that 38 of the 55 coordinates move. ``frozen`` adds
    {coordinate: angle (rad)}, and ``strength`` has {coordinate: factor} of strengths; both may be one-sided with
    ``steps=2``, where left and right need not do the same, and accelerations go on. ``curves`` bound hips, knees and
    ankles by what they can at their angles and speeds (``StrengthCurves``), times these factors too. ``planar`` freezes
    what is not forward or up.

    ``objective`` weighs "effort", "balance" (moments about the middle of the support) and "reaction" (forces in hips,
    knees and ankles); {"effort": 1.0} by default. ``habits`` keep the walk like that of people.

    Example:
        >>> problem = walking()
        >>> problem.program.n, len(problem.model.names)
        (228, 38)
    """
    body, step = library.human() if body is None else body, Step() if step is None else step
    check_body(body, "walk")
    habits, walk = Habits() if habits is None else habits, Walk(step, steps)
    frozen, strength = table(frozen, "frozen", "walk"), table(strength, "strength", "walk")
    for what, value, kind in (("habits", habits, Habits), ("planar", planar, bool)):
        if not isinstance(value, kind):
            raise ModelError(describe(f"{what} is {value!r}", where="walk", allowed=f"a {kind.__name__}"))
    settings = _version(version, points=points, nodes=nodes, slack=slack, slip=slip, order=order)
    body = _placed(body, load, slope)
    positive(friction, "walk", "friction")
    held = _frozen(body, frozen, planar)
    names = [name for name in body.coordinate_names if name not in held]
    given: dict[str, Any] = {"body": body, "support": walk, "friction": friction, "strength": _strength(body, strength)}
    if steps == 1:
        _refuse_sides(body, held, given["strength"])
    constraints: list[Constraint | Ends] = [
        _repeated(names, walk, max(settings["order"], steps)),
        _ranges(body, names, habits, slope, isinstance(load, Box)),
        Torques(moving=tuple(names), **given, name="torques"),
        *_curves(curves, given),
        Balance(lateral=not planar, **given, name="balance"),
        *contacts(body, walk, settings["slack"], settings["slip"], "yz" if planar else "xyz"),
        *_swing(body, walk, habits, names),
        *habits.rows(body, load if isinstance(load, Box) else None, clear=not planar),
    ]
    model, numbers = shared(body)
    points = settings["points"] + (steps - 1) * (settings["points"] - 1)
    phase = Phase(walk.duration, points=points, nodes=_nodes(settings["nodes"], steps), quadrature="trapezoid")
    feet = [each.title for each in constraints if isinstance(each, Stands | Clears)]
    return MotionProblem(
        model,
        phase,
        _objective(objective, tuple(names), habits, given),
        constraints,
        relaxation_order=(["torques", *(["strength curves"] if curves is not None else [])], ["balance"], feet),
        frozen=held,
        numbers=numbers,
        name="walk",
        settings={"solver": "condensed", "tolerance": 1e-5},
    )


def _nodes(count: int, steps: int) -> Array:
    """Return the moments (shares) at which terms are looked at: each step has its own end and its own start."""
    each = np.linspace(0.0, 1.0, count) if isinstance(count, int) else np.asarray(count, dtype=float)
    return np.concatenate([(k + np.maximum(each, BEGUN if k else 0.0)) / steps for k in range(steps)])


def _version(name: str, **given: Any) -> dict[str, Any]:
    """Return the settings of a version, with those that are given in place of its own."""
    if name not in tuple(VERSIONS):
        raise ModelError(describe(f"version is {name!r}", where="walk", allowed=", ".join(map(repr, VERSIONS))))
    found = {**VERSIONS[name], **{key: value for key, value in given.items() if value is not None}}
    for key in ("slack", "slip"):
        positive(found[key], "walk", key)
    points, nodes = found["points"], found["nodes"]
    if isinstance(points, bool) or not isinstance(points, int):
        raise ModelError(describe(f"points is {points!r}", where="walk", allowed="a whole number"))
    whole = isinstance(nodes, int) and not isinstance(nodes, bool) and nodes > 1
    if not whole and not isinstance(nodes, (list, tuple, np.ndarray)):
        allowed = "a whole number from 2, or shares of a step from 0 to 1"
        raise ModelError(describe(f"nodes is {nodes!r}", where="walk", allowed=allowed))
    return found


def _placed(body: Robot, load: Backpack | Box | None, slope: float) -> Robot:
    """Return the body with its load, on a slope: axes are those of the ground, so that gravity turns."""
    if load is not None and not isinstance(load, Backpack | Box):
        raise ModelError(describe(f"load is {load!r}", where="walk", allowed="a Backpack or a Box"))
    if isinstance(slope, bool) or not (isinstance(slope, (int, float)) and abs(slope) < math.pi / 4):
        raise ModelError(describe(f"slope is {slope!r}", where="walk", allowed="rad, between -pi/4 and pi/4"))
    size = -float(body.gravity[1])
    if body.gravity[0] or body.gravity[2] or not size > 0:
        allowed = "(0, -g, 0): y points up"
        raise ModelError(
            describe(f"gravity is {body.gravity.tolist()}", where="walk", allowed=allowed, fix="give slope=...")
        )
    loaded = body if load is None else load.on(body)
    return loaded.with_gravity([0.0, -size * math.cos(slope), -size * math.sin(slope)])


def _frozen(body: Robot, given: Mapping[str, float], planar: bool) -> dict[str, float]:
    """Return what does not move."""
    words = (*FROZEN, *SIDEWAYS) if planar else FROZEN
    held = {name: 0.0 for name in body.coordinate_names if any(word in name for word in words)}
    for name in given:
        if name not in body.coordinate_names[6:]:
            raise ModelError(
                describe(f"frozen names {name!r}", where="walk", allowed=", ".join(body.coordinate_names[6:]))
            )
        k = body.coordinate_names.index(name)
        low, high, angle = float(body.lower[k]), float(body.upper[k]), given[name]
        if isinstance(angle, bool) or not isinstance(angle, (int, float)) or not low <= angle <= high:
            allowed = f"rad, from {low:.4g} to {high:.4g}, which is its range"
            raise ModelError(describe(f"frozen: {name} is {angle!r}", where="walk", allowed=allowed))
    return held | dict(given)


def _strength(body: Robot, given: dict[str, float]) -> dict[str, float]:
    for name, factor in given.items():
        if name not in body.coordinate_names[6:]:
            allowed = ", ".join(body.coordinate_names[6:])
            raise ModelError(describe(f"strength names {name!r}", where="walk", allowed=allowed))
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < np.inf:
            what = f"strength of {name} is {factor!r}"
            raise ModelError(
                describe(what, where="walk", allowed="a factor above 0 of the body's own", fix="freeze it")
            )
    return given


def _curves(curves: StrengthCurves | None, given: Any) -> list[Constraint]:
    if curves is not None and not isinstance(curves, StrengthCurves):
        raise ModelError(describe(f"curves is {curves!r}", where="walk", allowed="a torsor.human.StrengthCurves"))
    return [] if curves is None else [Strengths(curves=curves, **given, name="strength curves")]


def _refuse_sides(body: Robot, held: Mapping[str, float], strength: Mapping[str, float]) -> None:
    """Refuse sides that differ, where the second step is to be the mirror image of the first."""
    links = {link.name: link for link in body.links}
    for name, link in links.items():
        other = links[_other(name)]
        mirrored = np.vstack([other.com * FLIP, other.inertia * np.outer(FLIP, FLIP), [other.mass] * 3])
        if not np.allclose(mirrored, np.vstack([link.com, link.inertia, [link.mass] * 3]), rtol=1e-6, atol=1e-9):
            found = f"link {name} is not {_other(name)} in a mirror"
            raise ModelError(describe(found, where="walk", fix="steps=2, or the same of the other side"))
    for what, values in (("frozen", held), ("strength", strength)):
        for name in values:
            if values.get(name) != values.get(_other(name)):
                fix = "steps=2, or the same of the other side"
                raise ModelError(describe(f"{what}: {name} differs from {_other(name)}", where="walk", fix=fix))


def _repeated(names: list[str], walk: Walk, order: int) -> Ends:
    """Return that the walk goes on as it began: mirrored after one step, or the same after two."""
    ahead = {"tz": walk.steps * walk.step.length}
    if walk.steps == 2:
        return Periodic(shifts=ahead, order=order, name="the next stride is the same")
    others, signs = mirror(tuple(names))
    partners = {name: names[k] for name, k in zip(names, others, strict=True)}
    turned = dict(zip(names, signs.tolist(), strict=True))
    return Symmetric(partners=partners, signs=turned, shifts=ahead, order=order, name="symmetry")


def _ranges(body: Robot, names: list[str], habits: Habits, slope: float, holding: bool) -> Constraint:
    lower, upper = habits.bounds(body, names, slope, holding)
    return Positions(lower=lower, upper=upper, hull=True, name="ranges")


def _swing(body: Robot, walk: Walk, habits: Habits, names: list[str]) -> list[Constraint]:
    """Return what the swinging leg does in each step: its knee bends, its foot clears the ground, its hip drops."""
    found, step = list[Constraint](), walk.step
    for index in range(walk.steps):
        side = SIDES[1 - index]
        number = "" if walk.steps == 1 else f", step {index + 1}"
        knee = f"{side}_knee_flexion"
        if habits.knee is not None and knee in names:
            least, most = (math.radians(each) for each in habits.knee)
            bent = walk.of(index, step.knee)
            found.append(Positions(only=[knee], lower=least, upper=most, at=bent, name=f"knee bent in swing{number}"))
        if habits.clearance:
            during = walk.of(index, step.toe_off + SWING), walk.of(index, 1.0 - SWING)
            for point in ("heel", "ball", "toe"):
                name = f"{side} {point} clears in swing{number}"
                found.append(
                    Clears(body=body, side=side, point=point, height=habits.clearance, during=during, name=name)
                )
        if habits.drop is not None and "list" in names:
            angle, name = math.radians(habits.drop), f"hip drops in swing{number}"
            during = walk.of(index, step.toe_off), walk.of(index, step.heel_off)
            lower, upper = (-np.inf, -angle) if side == "left" else (angle, np.inf)
            found.append(Positions(only=["list"], lower=lower, upper=upper, during=during, name=name))
    return found


def _objective(weights: Mapping[str, float] | None, moving: tuple[str, ...], habits: Habits, given: Any) -> list[Cost]:
    weights = {"effort": 1.0} if weights is None else table(weights, "objective", "walk")
    for name, weight in weights.items():
        if name not in OBJECTIVES:
            allowed = ", ".join(map(repr, OBJECTIVES))
            raise ModelError(describe(f"objective names {name!r}", where="walk", allowed=allowed))
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < np.inf:
            raise ModelError(describe(f"objective {name!r} is {weight!r}", where="walk", allowed="a weight, 0 or more"))
    made: dict[str, dict[str, Any]] = {"effort": {"moving": moving, "posture": habits.posture}}
    found: list[Cost] = [
        OBJECTIVES[name](weight=weight, **given, **made.get(name, {}), name=name)
        for name, weight in weights.items()
        if weight
    ]
    if not found:
        raise ModelError(describe("no weight is above 0", where="walk", allowed="a weight of one of the objectives"))
    return found


def _other(name: str) -> str:
    """Return the name of the same coordinate of the other side."""
    if name.startswith("right_"):
        return "left_" + name[6:]
    return "right_" + name[5:] if name.startswith("left_") else name
