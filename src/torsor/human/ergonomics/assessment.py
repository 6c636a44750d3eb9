"""Ergonomic assessment of a task: lumbar spine loads, lifting equation, percent capable, cumulative dose."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType

from torsor.base.arrays import Array
from torsor.base.checks import instance_of
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.base.html_report import image, in_motion, terminal_table, write_html
from torsor.base.summary import titled_table
from torsor.human.body.coordinates import SIDES
from torsor.human.body.loads import Box, hand_wrenches
from torsor.human.body.person import Person, person_of
from torsor.human.body.strength import age_group
from torsor.human.body.work_shift import WorkShift
from torsor.human.ergonomics.capability import Capability, capabilities
from torsor.human.ergonomics.joint_contact import IN_VIVO, JointContact, contact_of
from torsor.human.ergonomics.lumbar import (
    COMPRESSION_LIMITS,
    SHEAR_LIMITS,
    Dose,
    LumbarLoads,
    LumbarModel,
    cumulative_dose,
    lumbar_loads,
)
from torsor.human.ergonomics.niosh import LiftEnd, LiftingIndex, lifting_index
from torsor.human.ergonomics.population import PercentCapable, percent_capable
from torsor.human.tasks.figures import draw_postures
from torsor.human.tasks.task import Task
from torsor.human.terms.problem import REACTION_JOINTS, grounded_term, hand_forces, load_of, sampled, shift_of, who
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 8  # maximum number of rows of the percent capable table
SAME_FRACTION = 0.005  # difference below which both sides share a row


@dataclass(frozen=True)
class Assessment:
    """The ergonomic assessment of a predicted human motion, returned by ``assess``.

    It contains ``times`` (K,) (s) and the ``loads`` on L5/S1 at these times. ``capabilities`` are the most demanding
    moments of this motion, most demanding first. ``contacts`` are the estimated joint contact forces of both legs by
    side. ``niosh`` is the result of the lifting equation, or the reason why it does not apply. ``shift`` is the work
    shift, with its ``dose``. ``tables()``, ``plot`` and ``to_dict`` present these results.
    """

    result: MotionResult
    person: Person
    model: LumbarModel
    times: Array
    loads: LumbarLoads
    capabilities: list[Capability]
    contacts: dict[str, JointContact]
    niosh: LiftingIndex | str
    shift: WorkShift
    age: str

    @cached_property
    def dose(self) -> Dose:
        """The cumulative load of all repetitions."""
        return cumulative_dose(
            self.times, np.maximum(self.loads.compression, 0.0), self.shift.repetitions, self.person.sex
        )

    @cached_property
    def population(self) -> PercentCapable | None:
        """The fraction of people who can do the task (see ``percent_capable``), or None for a walk."""
        problem = self.result.problem
        return percent_capable(problem, self.age, model=self.model) if isinstance(problem, Task) else None

    @property
    def capable(self) -> float:
        """The fraction of people with the same height, mass, sex and age group who are strong enough for the task.

        For a task, the first access searches for the motion of the weakest person. For a walk, it is the fraction of
        people who are strong enough for this walk.
        """
        if self.population is not None:
            return self.population.capable
        return self.capabilities[0].capable if self.capabilities else 1.0

    @property
    def peak(self) -> int:
        """Index of the sample with the largest compression."""
        return int(np.argmax(self.loads.compression))

    def tables(self) -> list[RenderableType]:
        """Return the tables of the report."""
        return [self._back(), self._equation(), self._strength(), self._contact()]

    def __rich__(self) -> Any:
        return Group(*self.tables())

    def _back(self) -> RenderableType:
        loads, k = self.loads, self.peak
        heads = "quantity", "largest", "lower limit", "upper limit", "time (s)"
        table = titled_table("Lumbar spine, disc L5/S1", *heads)
        compression = dict(zip(("action", "maximum"), COMPRESSION_LIMITS, strict=True))
        shear = dict(zip(("frequent", "occasional"), SHEAR_LIMITS, strict=True))
        rows: tuple[tuple[str, Array, str, dict[str, float]], ...] = (
            ("compression", loads.compression, "N", compression),
            ("forward shear", np.abs(loads.shear), "N", shear),
            ("lateral shear", np.abs(loads.side_shear), "N", {}),
            ("extension moment", loads.extension, "N m", {}),
            ("lateral moment", np.abs(loads.lateral), "N m", {}),
            ("axial moment", np.abs(loads.axial), "N m", {}),
        )
        for name, values, unit, limits in rows:
            at = int(np.argmax(values))
            cells = [f"{limit:.0f} {unit} ({meaning})" for meaning, limit in limits.items()] or ["", ""]
            table.add_row(name, f"{values[at]:.0f} {unit}", *cells, f"{self.times[at]:.2f}")
        table.add_section()
        dose, count = self.dose, self.shift.repetitions
        table.add_row("mean compression", f"{dose.linear / count / (self.times[-1] - self.times[0]):.0f} N")
        per_shift = "once per shift" if count == 1 else f"{count:g} times per shift"
        table.add_row(f"cumulative compression, {per_shift}", f"{dose.linear / 1000:.1f} kN s")
        table.add_row(f"squared dose, {per_shift}", f"{dose.squared:.0f} N h", f"{dose.limit:.0f} N h")
        muscles = f"{100 * loads.muscles[k] / loads.compression[k]:.0f}"
        table.caption = (
            f"Single equivalent muscles with moment arms of {self.model.erector:g} m (back), {self.model.abdominal:g} "
            f"m (abdomen) and {self.model.lateral:g} m (side) carry {muscles} % of the largest compression."
        )
        table.caption_justify = "left"
        return table

    def _equation(self) -> RenderableType:
        if isinstance(self.niosh, str):
            return f"The NIOSH lifting equation does not apply: {self.niosh}."
        shift, niosh = self.shift, self.niosh
        title = (
            f"NIOSH lifting equation (1991): {shift.frequency_per_minute:.3g} lifts per minute, {shift.duration} work"
        )
        table = titled_table(f"{title}, {shift.coupling} coupling", "multiplier", "origin", "destination")
        ends = [niosh.origin, *([] if niosh.destination is None else [niosh.destination])]
        for name in niosh.origin._fields:
            table.add_row(name, *(f"{getattr(end, name):.3f}" for end in ends))
        table.add_section()
        limits = [limit for limit in (niosh.origin_limit, niosh.destination_limit) if limit is not None]
        table.add_row("recommended weight limit (kg)", *(f"{limit:.1f}" for limit in limits))
        table.add_row("lifting index", *(f"{niosh.load / limit:.2f}" if limit else "infinite" for limit in limits))
        return table

    def _strength(self) -> RenderableType:
        title = f"Percent capable: {self.person.sex}, {self.age}, {self.person.height:.3g} m, {self.person.mass:.3g} kg"
        columns = ("joint and direction", "moment (N m)", "mean strength", "deviation", "capable", "time (s)")
        table = titled_table(title, *columns)
        population = self.population
        rows = self.capabilities if population is None else population.capabilities
        for name, demand in _distinct([demand for demand in rows if not demand.extrapolated])[:MAX_ROWS]:
            cells = (
                f"{demand.moment:.0f}",
                f"{demand.mean:.0f}",
                f"{demand.deviation:.0f}",
                f"{100 * demand.capable:.1f} %",
            )
            time = (self.times if population is None else population.result.times)[demand.instant]
            table.add_row(name, *cells, f"{time:.2f}")
        table.caption = "Share of people strong enough for this motion; weaker people may move in another way."
        if population is not None:
            table.caption = _population_in_words(population)
        table.caption_justify = "left"
        return table

    def _contact(self) -> RenderableType:
        title = "Estimated leg contact forces (body weights)"
        table = titled_table(title, "joint", *SIDES, "measured in level walking")
        for joint in REACTION_JOINTS:
            measured = "{:g} to {:g}".format(*IN_VIVO[joint]) if joint in IN_VIVO else ""
            table.add_row(joint, *(f"{self.contacts[side].peak(joint):.1f}" for side in SIDES), measured)
        return table

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot postures, and compression and shear with limits, and return the figure; with ``path``, save it too."""
        figure = new_figure(10.0, 6.2)
        panels = figure.subplots(3, 1, height_ratios=[1.0, 1.0, 0.8])
        draw_postures(panels[0], self.result)
        curves = (
            (panels[1], {"compression": self.loads.compression}, COMPRESSION_LIMITS, "L5/S1: compression", "N"),
            (
                panels[2],
                {"forward": self.loads.shear, "lateral": self.loads.side_shear},
                SHEAR_LIMITS,
                "L5/S1: shear",
                "N",
            ),
        )
        for axes, lines, limits, title, unit in curves:
            for name, values in lines.items():
                axes.plot(self.times, values, label=name)
            top = max(1.15 * limits[0], 1.1 * max(float(np.abs(values).max()) for values in lines.values()))
            for limit, style in zip(limits, ("--", ":"), strict=True):
                if limit < top:
                    axes.axhline(limit, color="tab:red", linestyle=style, linewidth=1.0)
                    axes.text(self.times[-1], limit, f" {limit:.0f} N", va="center", fontsize=8, color="tab:red")
            axes.set(xlim=(self.times[0], self.times[-1]), ylim=(min(0.0, axes.get_ylim()[0]), top))
            axes.legend(fontsize=8)
            styled(axes, title, unit)
        panels[2].set_xlabel("time (s)")
        figure.suptitle(label_of_title(f"{who(self.result.problem)}: {self.result.problem.name}"))
        return saved(figure, path, dpi=100)

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain values, in SI units."""
        lift, niosh = self.niosh, dict[str, Any]()
        if isinstance(lift, LiftingIndex):
            ends = {"origin": lift.origin, "destination": lift.destination}
            niosh = {name: None if end is None else end._asdict() for name, end in ends.items()}
            niosh |= {"limit": lift.limit, "index": lift.index}
        peaks = {side: {name: leg.peak(name) for name in REACTION_JOINTS} for side, leg in self.contacts.items()}
        return {
            "person": plain(vars(self.person)),
            "model": plain(vars(self.model)),
            "times": self.times.tolist(),
            "loads": {name: values.tolist() for name, values in self.loads._asdict().items()},
            "limits": {"compression": list(COMPRESSION_LIMITS), "shear": list(SHEAR_LIMITS)},
            "capable": self.capable,
            "capabilities": [capability._asdict() for capability in self.capabilities],
            "population": None if self.population is None else self.population.to_dict(),
            "contact": peaks,
            "niosh": niosh or lift,
            "shift": plain(vars(self.shift))
            | {"frequency": self.shift.frequency_per_minute, "work_duration": self.shift.duration},
            "dose": self.dose._asdict(),
        }


def _distinct(rows: list[Capability]) -> list[tuple[str, Capability]]:
    """Return the rows with their names; rows that are equal on both sides occur once, without the side."""
    shown = dict[str, Capability]()
    for row in rows:
        side, _, joint = row.name.partition(" ")
        if side in SIDES and joint in shown and abs(shown[joint].capable - row.capable) < SAME_FRACTION:
            continue
        others = [other for other in rows if other is not row and other.name.endswith(f" {joint}")]
        is_same = side in SIDES and any(abs(other.capable - row.capable) < SAME_FRACTION for other in others)
        shown[joint if is_same else row.name] = row
    return list(shown.items())


def _population_in_words(population: PercentCapable) -> str:
    """Return text on percent capable, its meaning and its spread."""
    if not population.of_starts:
        return "0 % of people can do this task: no motion was found, even for the strongest."
    low, high = (100 * fraction for fraction in (population.of_starts[-1], population.of_starts[0]))
    return (
        f"{100 * population.capable:.1f} % of people can do this task, each in their own way. The table shows the "
        f"motion of the weakest of them, {population.deviations:+.2f} standard deviations from the mean at all joints "
        f"({len(population.of_starts)} starts: {low:.1f} to {high:.1f} %). Moments at angles at which strength was not "
        "measured are not shown."
    )


def assess(
    result: MotionResult,
    *,
    age: float | str = "young",
    repetitions: float | None = None,
    frequency: float | None = None,
    coupling: str | None = None,
    work_duration: str | None = None,
    model: LumbarModel | None = None,
) -> Assessment:
    """Return the ergonomic assessment of a predicted human motion: a task, or a walk with or without a load.

    ``age`` is the age group of the strengths ("young", "middle", "old") or the age in years. ``repetitions`` per shift,
    ``frequency`` (lifts per minute), ``coupling`` and ``work_duration`` replace those of the problem (see
    ``torsor.human.WorkShift``), which determine the cumulative load and, for lifts, the lifting equation. ``model``
    contains the trunk moment arms; the default is ``LumbarModel()``.

    Example:
        >>> assess(3)
        Traceback (most recent call last):
        torsor.ModelError: ergonomics: result is 3; allowed: the result of a problem of torsor.human
    """
    instance_of(result, MotionResult, "ergonomics", "result", allowed="the result of a problem of torsor.human")
    grounded_term(result.problem)  # raises ModelError for other motions
    given: dict[str, Any] = {
        "repetitions": repetitions, "frequency": frequency, "coupling": coupling, "work_duration": work_duration
    }  # fmt: skip
    shift = replace(shift_of(result.problem), **{name: value for name, value in given.items() if value is not None})
    years = age_group(age)
    model, load = LumbarModel() if model is None else model, load_of(result.problem)
    carried, body = 0.0 if load is None else load.mass, result.robot
    person = person_of(body, carried)
    person.warn_outside_of_tables("ergonomics")
    times = result.times
    samples = sampled(result, times / result.T)
    external = hand_wrenches(body, samples.q, hand_forces(result, times / result.T))
    loads = lumbar_loads(body, samples.q, samples.v, samples.a, external=external, model=model, carried=carried)
    strengths = capabilities(body, person, samples.q, samples.torques, loads.extension, age)
    niosh: LiftingIndex | str = "it covers only lifting with both hands"
    if isinstance(load, Box) and result.problem.name == "lift":
        try:
            ends = [_lift_end(body, samples.q[k]) for k in (0, -1)]
            often: dict[str, Any] = {"frequency": shift.frequency_per_minute, "duration": shift.duration}
            niosh = lifting_index(load.mass, *ends, coupling=shift.coupling, **often)
        except ModelError as error:  # the equation does not cover the load, which is also a result
            niosh = str(error)
    contacts = {side: contact_of(body, person, samples, side) for side in SIDES}
    return Assessment(result, person, model, times, loads, strengths, contacts, niosh, shift, years)


def _lift_end(body: Robot, q: Array) -> LiftEnd:
    """Return the position of the midpoint of the hands relative to the midpoint of the ankles."""
    hands, feet = (
        np.mean([body.pose(q, f"{side}_{place}")[:3, 3] for side in SIDES], axis=0) for place in ("knuckles", "foot")
    )
    aside, ahead = hands[0] - feet[0], hands[2] - feet[2]
    asymmetry = abs(math.degrees(math.atan2(aside, ahead)))
    return LiftEnd(math.hypot(aside, ahead), max(float(hands[1]), 0.0), asymmetry)


def write_ergonomic_report(path: str | Path, result: MotionResult | Assessment, **settings: Any) -> Path:
    """Write the ergonomic report on a predicted human motion or its assessment as an HTML page, and return its path.

    The report contains the lumbar spine loads with limits, the lifting equation, percent capable, the cumulative load
    over a shift, a figure and the motion in 3D; it requires matplotlib (``torsor[plot]``). ``settings`` are arguments
    of ``torsor.human.ergonomics.assess`` for a motion, and raise ModelError with an assessment.

    Example:
        >>> write_ergonomic_report("lift.html", 3)
        Traceback (most recent call last):
        torsor.ModelError: ergonomics: result is 3; allowed: the result of a problem of torsor.human
    """
    if isinstance(result, Assessment) and settings:
        fix = "pass the motion, or pass them to assess"
        what = "cannot be combined with an assessment"
        raise ModelError(what, argument=", ".join(settings), where="ergonomics", fix=fix)
    assessment = result if isinstance(result, Assessment) else assess(result, **settings)
    result = assessment.result
    name = f"{who(result.problem)}: {result.problem.name}"
    parts = [f"<h1>{escape(name)}</h1>", f"<p>{escape(result.status)}, {result.T:.3g} s</p>"]
    parts += [image(assessment.plot()), *(terminal_table(table) for table in assessment.tables())]
    return write_html(Path(path), name, [*parts, *in_motion(result, name)])
