"""Percent capable of a task: a search for the weakest person who can do it, with an individual motion.

A motion predicted for a person of mean strength uses this strength, so the fraction of people who are strong enough for
that motion hardly depends on the load (for the default man, 35 % at 15, 20 and 25 kg, and 42 % at 30 kg). Here, the
motion of the weakest person is optimised too, with the strengths of ``torsor.human.terms.population``. Everybody who is
at least as strong can do the task. The fraction of these people does not increase with the load, because a motion with
a load is also possible with a smaller load and the same strengths.
"""

from dataclasses import dataclass, replace
from typing import Any

from torsor.base.checks import instance_of, several, whole_number
from torsor.human.body.loads import hand_wrenches
from torsor.human.body.person import Person, person_of
from torsor.human.body.postures import landmark
from torsor.human.body.strength import GRAVITY, age_group, age_ratio
from torsor.human.body.trunk_strength import SPINE, TrunkStrength
from torsor.human.ergonomics.capability import Capability, capabilities, limb_strengths
from torsor.human.ergonomics.lumbar import LumbarModel, disc_height, lumbar_loads
from torsor.human.gait.walking import bent_start
from torsor.human.tasks.task import Task
from torsor.human.terms.forces import LegPeaks, Torques, TrunkTorques
from torsor.human.terms.population import OtherTorques, TrunkPopulation, Weakest
from torsor.human.terms.problem import grounded_term, hand_forces, load_of, sampled
from torsor.motion import MotionProblem, MotionResult, Phase

WHERE = "percent capable"
WEAKEST, OTHERS = "weakest person", "other torques"  # titles of terms
WEIGHT = 100.0  # weight of one standard deviation relative to the effort, which selects among motions of equal weakness
POINTS, NODES = 12, 46  # 16 points and 61 nodes change the result by at most 1 percentage point (15 kg and 30 kg)
OFFSET = 0.15  # rad; standard deviation of the joint angles of additional starts
MAX_STARTS = 100


@dataclass(frozen=True, eq=False, repr=False)
class PercentCapable:
    """The fraction of people who can do a task, returned by ``percent_capable``.

    ``capable`` is the fraction. ``result`` is the motion of the weakest of these people, and ``capabilities`` are its
    most demanding moments. ``of_starts`` contains the fractions from all successful starts, largest first. If no start
    was successful, ``capable`` is 0, and ``result`` is the closest motion.
    """

    capable: float
    capabilities: list[Capability]
    result: MotionResult
    of_starts: tuple[float, ...]

    @property
    def deviations(self) -> float:
        """Strength of the weakest person who can do the task, in standard deviations from the mean."""
        return max((each.moment - each.mean) / each.deviation for each in self.capabilities)

    def __repr__(self) -> str:
        return f"<PercentCapable: {100 * self.capable:.1f} %, {len(self.of_starts)} starts>"

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values."""
        rows = [each._asdict() for each in self.capabilities]
        return {"capable": self.capable, "of_starts": list(self.of_starts), "capabilities": rows}


def percent_capable(
    task: MotionResult | MotionProblem, age: float | str = "young", *, starts: int = 3, model: LumbarModel | None = None
) -> PercentCapable:
    """Return the fraction of people with the same height, mass, sex and age group who can do a task.

    ``task`` is a task of ``torsor.human`` or its result. ``age`` is an age group ("young", "middle", "old") or a number
    of years. A person is assumed to be equally weak or strong at all joints with known standard deviations: hips,
    knees, ankles, trunk, elbows and shoulders. The other joints have the strengths of the body. The motion has at least
    12 control points and 46 nodes. It is the best of ``starts`` solutions from different initial guesses, solved in one
    batch. ``model`` contains the position of L5/S1.

    Example:
        >>> percent_capable(3)
        Traceback (most recent call last):
        torsor.ModelError: percent capable: task is 3; allowed: a task of torsor.human, or its result
    """
    given = task.problem if isinstance(task, MotionResult) else task
    problem: Task = instance_of(given, Task, WHERE, "task", allowed="a task of torsor.human, or its result")
    whole_number(starts, WHERE, "starts", most=MAX_STARTS)
    model, load = LumbarModel() if model is None else model, load_of(problem)
    years, carried = age_group(age), 0.0 if load is None else load.mass
    person = person_of(grounded_term(problem).body, carried)
    weakest = _weakest(problem, Person(person.height, person.mass, person.sex), years, model)
    guesses = [weakest.guess(), *(bent_start(weakest, seed, OFFSET) for seed in range(starts - 1))]
    results = list(weakest.multistart(starts=guesses))
    found = [(_capabilities(result, person, years, model, carried), result) for result in results if result.is_feasible]
    if not found:
        return PercentCapable(0.0, [], results[0], ())
    fractions = [min((each.capable for each in rows), default=1.0) for rows, _ in found]
    best = fractions.index(max(fractions))
    return PercentCapable(fractions[best], *found[best], tuple(sorted(fractions, reverse=True)))


def _capabilities(
    result: MotionResult, person: Person, years: str, model: LumbarModel, carried: float
) -> list[Capability]:
    """Return the most demanding moments of a motion over all samples."""
    s = result.times / result.T
    samples = sampled(result, s)
    external = hand_wrenches(result.robot, samples.q, hand_forces(result, s))
    motion = samples.q, samples.v, samples.a
    loads = lumbar_loads(result.robot, *motion, external=external, model=model, carried=carried)
    return capabilities(result.robot, person, samples.q, samples.torques, loads.extension, years)


def _weakest(problem: Task, similar: Person, years: str, model: LumbarModel) -> Task:
    """Return the problem of the motion of the weakest person who can do a task."""
    term, stage, constraints = grounded_term(problem), problem.stages[0], several(problem.constraints)
    body, strengths = term.body, limb_strengths(similar, years)
    ground: dict[str, Any] = {name: getattr(term, name) for name in ("body", "support", "friction", "hands", "seconds")}
    bounded = [one for one in constraints if isinstance(one, Torques | TrunkTorques)]
    kept = [one for one in constraints if one not in bounded]
    moving = next(one.moving for one in bounded if isinstance(one, Torques))
    covered = (*SPINE, *(each.coordinate for each in strengths))
    others = OtherTorques(**ground, moving=moving, covered=covered, name=OTHERS)
    navel = float((landmark(body, "spine1") - landmark(body, "pelvis"))[1])
    below = max(navel - disc_height(similar, model), 0.0)
    weight = below / navel * body.links[body.link_names.index("pelvis")].mass * GRAVITY
    coefficients = age_ratio(SPINE[0], similar.sex, years) * TrunkStrength(similar).coefficients
    trunk = TrunkPopulation(tuple(coefficients.tolist()), below, weight)
    duration = stage.duration
    assert isinstance(duration, float)  # as in every task
    cost = Weakest(**ground, strengths=strengths, trunk=trunk, weight=WEIGHT / duration, name=WEAKEST)
    titles = {one.title for one in kept}
    groups = (tuple(title for title in group if title in titles) for group in problem.relaxation_order)
    points, nodes = max(POINTS, stage.spline.count), max(NODES, len(stage.nodes))
    return replace(
        problem,
        phases=Phase(duration, points=points, nodes=nodes, quadrature=stage.quadrature),
        objective=[*(other for other in problem.costs if not isinstance(other, LegPeaks)), cost],  # z bounds all peaks
        constraints=[*kept, others],
        relaxation_order=((OTHERS,), *(group for group in groups if group)),
    )
