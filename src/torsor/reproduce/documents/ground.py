"""Barman 2020: ground reaction forces in two steps (section 5.1), and repeated lifting until fatigue (6.2.2)."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.base.errors import ModelWarning
from torsor.human import (
    Box,
    Fatigue,
    JointLoads,
    TrunkStrength,
    fatigued,
    ground_reaction,
    joint_loads,
    joint_torques,
    lifting,
    person_of,
    with_strength,
)
from torsor.human.body.coordinates import GLOBAL
from torsor.human.body.trunk_strength import SPINE
from torsor.human.terms.problem import HumanProblem
from torsor.motion import MotionResult
from torsor.reproduce.documents.drawing import tidy
from torsor.reproduce.documents.printed_walk import habitual_walk
from torsor.reproduce.item import BY_DIFFERENCES, Compute, Outcome, Row, claim, only, zero
from torsor.robot.robot import Robot

# Section 5.1: the resultant active force and the zero-moment point come first, then the ground forces at that point.

STEP = 2e-3  # s between the positions from which accelerations are computed
SECOND = np.array([1 / 90, -3 / 20, 3 / 2, -49 / 18, 3 / 2, -3 / 20, 1 / 90]) / STEP**2  # second derivative, order 6
INSTANTS = (0.03, 0.1, 0.2, 0.5, 0.8, 0.97)  # fractions of the step: three in double support


def equilibrium(body: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """Return the force and the moment about the origin that a moving body requires, computed from link poses alone.

    They are the sums of m (c'' - g) and of c x m (c'' - g) + the integral of (R r) x (R r)'' dm over all links. The
    accelerations are finite differences of poses, so no recursion, Jacobian or velocity is used.
    """
    t = STEP * np.arange(-3, 4)[:, None]
    poses = body.poses(q + v * t + a * t**2 / 2)
    rates, force, moment = np.tensordot(SECOND, poses, axes=1), np.zeros(3), np.zeros(3)
    for link, pose, rate in zip(body.links, poses[3], rates, strict=True):
        centre, lifted = pose[:3, :3] @ link.com + pose[:3, 3], rate[:3, :3] @ link.com + rate[:3, 3]
        push = link.mass * (lifted - body.gravity)
        spread = np.trace(link.inertia) / 2 * np.eye(3) - link.inertia  # the integral of r r^T dm
        turned = pose[:3, :3] @ spread @ rate[:3, :3].T
        force += push
        moment += np.cross(centre, push) + [turned[i, j] - turned[j, i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return force, moment


def _two_steps() -> list[Row]:
    result, body = habitual_walk().result, habitual_walk().body
    assert isinstance(result.problem, HumanProblem)
    places = [round(s * (len(result.times) - 1)) for s in INSTANTS]
    q, v, a = (values[places] for values in (result.q, result.v, result.a))
    force, moment = (np.array(part) for part in zip(*map(equilibrium, [body] * len(q), q, v, a), strict=True))
    ground = ground_reaction(body, q, v, a)
    zmp = np.stack([ground.zmp[:, 0], 0 * ground.twist, ground.zmp[:, 1]], axis=1)
    about = (moment - np.cross(zmp, force))[:, [0, 2]]
    torques, external = (values[places] for values in result.problem.contact(result))
    balanced = body.inverse_dynamics(q, v, a, external)
    change = (torques - balanced)[:, len(GLOBAL) :]
    weight = body.mass * float(np.linalg.norm(body.gravity))
    return [
        zero("step 1: resultant force, minus that from the poses", ground.force - force, weight, BY_DIFFERENCES, "N"),
        zero("step 1: moment, minus that from the poses", ground.moment - moment, weight, BY_DIFFERENCES, "N m"),
        zero("horizontal moment about the zero-moment point", about, weight, BY_DIFFERENCES, "N m"),
        zero("step 2: forces of the six global coordinates", balanced[:, : len(GLOBAL)], weight, unit="N, N m"),
        zero("step 2: joint torques, minus those of the recursion with ground forces", change, weight, unit="N m"),
    ]


# Section 6.2.2: the same lift again and again, until a joint lacks the strength.

BOX, RESTS, MOST_LIFTS = 10.0, (0.5, 1.0, 2.0, 4.0), 300  # kg; s between lifts
TRUNK = SPINE[0]  # its load is that of the whole back
SUBSTEPS = 8  # of an interval, in the integration of the differential equation


def lift(left: Mapping[str, float]) -> MotionResult:
    """Return the lift of a person with the remaining strengths {coordinate: factor}."""
    person = replace(person_of(library.human()), strength={TRUNK: left.get(TRUNK, 1.0)})
    body = with_strength(library.human(), {name: factor for name, factor in left.items() if name != TRUNK})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of feet that slip by 0.2 mm too far between the nodes
        return lifting(body, Box(BOX), trunk=TrunkStrength(person)).solve()


def loads(result: MotionResult) -> JointLoads:
    """Return the loads of limbs and back, relative to their strengths at rest."""
    of_limbs, names = joint_loads(result), result.robot.coordinate_names
    bend = result.q[:, [names.index(name) for name in SPINE]].sum(axis=1)
    trunk = TrunkStrength(person_of(library.human()))
    torque = joint_torques(result)[:, names.index(TRUNK)]
    fraction = np.where(torque < 0, torque / trunk.extend(bend), torque / trunk.flex(bend))
    count = len(next(iter(of_limbs.fractions.values())))
    middle = np.interp((np.arange(count) + 0.5) / count * result.T, result.times, fraction)
    return JointLoads(of_limbs.seconds, of_limbs.fractions | {TRUNK: middle})


def lifts(each: JointLoads, rest: float) -> tuple[int, str, list[dict[str, float]]]:
    """Return the number of possible lifts, the joint that is too weak for another, and the strengths after each lift.

    Strengths are fractions of those at rest. After ``MOST_LIFTS`` lifts, the joint is "".
    """
    peaks = {name: float(np.abs(fractions).max()) for name, fractions in each.fractions.items()}
    remaining = fatigued(each, MOST_LIFTS, rest)
    for done, left in enumerate(remaining, 1):
        weakest = max(peaks, key=lambda name: peaks[name] / left[name])
        if peaks[weakest] > left[weakest]:
            return done, weakest, remaining[:done]
    return MOST_LIFTS, "", remaining


def integrated(load: Array, seconds: float, rest: float, repetitions: int, law: Fatigue) -> float:
    """Return the remaining strength from the differential equation of the model (Runge-Kutta, order 4)."""
    steps = [(each, seconds / SUBSTEPS) for each in load for _ in range(SUBSTEPS)]
    steps += [(0.0, rest / (SUBSTEPS * len(load)))] * (SUBSTEPS * len(load))

    def rate(c: float, x: float) -> float:
        recovery = law.recovery * (law.rest if x == 0 else 1.0)
        return recovery * (1 - c) - law.tiring * min(x, c)

    c = 1.0
    for _ in range(repetitions):
        for x, h in steps:
            a = rate(c, x)
            b = rate(c + h / 2 * a, x)
            d = rate(c + h / 2 * b, x)
            c += h / 6 * (a + 2 * b + 2 * d + rate(c + h * d, x))
    return c


def _fatigue() -> Outcome:
    rested = loads(lift({}))
    found = {rest: lifts(rested, rest) for rest in RESTS}
    done, weakest, remaining = found[RESTS[0]]
    fractions = rested.fractions[weakest]
    load = np.maximum(np.sign(fractions[np.abs(fractions).argmax()]) * fractions, 0.0)
    expected = integrated(load, rested.seconds, RESTS[0], done, Fatigue.of(weakest))
    tired = loads(lift(remaining[-1]))
    peaks = [float(np.abs(each.fractions[weakest]).max()) for each in (rested, tired)]
    more, again = lifts(tired, RESTS[0])[0], "lifting, predicted again with fatigue"
    strength = f"strength of {weakest} after {done} lifts, minus that from the differential equation"
    load_change = f"{100 * peaks[1]:.0f} % instead of {100 * peaks[0]:.0f} % of its strength at rest"
    rows = [
        zero(strength, remaining[-1][weakest] - expected, tolerance=BY_DIFFERENCES),
        claim(again, "to reduce injury", f"{weakest} is loaded by {load_change}", peaks[1] < peaks[0]),
        only("lifts of a rested person who moves in that way", f"{more} instead of {done}"),
    ]
    for rest, (count, joint, _) in found.items():
        words = f"{count} lifts, then {joint} is too weak" if joint else f"more than {count} lifts"
        rows.append(only(f"box of {BOX:g} kg, {rest:g} s of rest between lifts", words))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for rest, (*_, strengths) in found.items():
            axes.plot([1.0, *(each[weakest] for each in strengths)], label=f"{rest:g} s of rest")
        axes.axhline(peaks[0], color="0.4", linestyle=":", label="peak load of the lift")
        axes.legend(fontsize=8)
        tidy(axes, f"Remaining strength, {weakest.replace('_', ' ')}", "lifts", "relative to a rested person")

    return Outcome(rows, draw, (6.5, 4.0))


ITEMS: dict[str, Compute] = {
    "barman/ground-forces": _two_steps,
    "barman/fatigue": _fatigue,
}
