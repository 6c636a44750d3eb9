"""The gait of Barman 2020 as printed: how closely its equations can be satisfied, and how ``walking`` versions differ.

Eq. 5.4 requires zero heights and velocities of the points in contact at all times. Six cubic control points per
coordinate cannot satisfy this together with eqs. 5.8 and 5.10: with 19 nodes there are 315 equations for 228 variables.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Group

from torsor.base.archive import Archive, reading_archive, register_result
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.base.files import check_array, data_of
from torsor.base.result import Result
from torsor.base.summary import Summary, as_text, titled_table
from torsor.base.tables import Column
from torsor.human.contact.schedule import Step
from torsor.human.gait.printed_constraints import SLIPS, TOLERANCE, PrintedWalk, Stage
from torsor.human.gait.settings import VERSIONS
from torsor.human.gait.walking import walking
from torsor.human.terms.problem import who
from torsor.mechanism.mechanism import robot_facts
from torsor.motion import MotionProblem, MotionResult, load_problem
from torsor.motion.results.files import LONGEST, MAX_ITERATIONS, archive, of_archive, outcome_arrays
from torsor.optimisation.program import Iteration, Outcome
from torsor.robot.robot import Robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FIGURES = ("slack", "slip", "objective", "iterations", "is_solved", "violation")


def stage_arrays(stages: Sequence[Stage]) -> dict[str, Any]:
    """Return the stages as arrays whose names start with the stage number."""
    arrays: dict[str, Any] = {"stages": len(stages)}
    for k, (slack, slip, outcome) in enumerate(stages):
        figures = [slack, slip, outcome.objective, outcome.iterations, outcome.is_solved, outcome.violation]
        stage_array = outcome_arrays(outcome) | {"figures": figures}
        arrays |= {f"stage{k}/{name}": value for name, value in stage_array.items()}
    return arrays


def stages_of(arrays: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return the stages; raise ValueError or KeyError for invalid arrays."""
    count = int(arrays["stages"])
    if not 0 <= count <= len(SLIPS):
        raise ValueError(f"{count} stages; allowed: 0 to {len(SLIPS)}")
    return tuple(_stage(arrays, f"stage{k}/") for k in range(count))


def _stage(arrays: Mapping[str, Any], prefix: str) -> Stage:
    names = ("x", "multipliers", "bound_multipliers", "log", "figures")
    x, multipliers, bounds, log, figures = (arrays[prefix + name] for name in names)
    shapes = (x.size,), (multipliers.size,), (x.size,), (len(log), len(Iteration._fields)), (len(FIGURES),)
    for name, shape in zip(names, shapes, strict=True):
        check_array(arrays[prefix + name], shape, prefix + name)
    status = str(arrays[f"{prefix}status"])
    is_count = 0 <= figures[3] <= MAX_ITERATIONS and (np.abs(log[:, 0]) <= MAX_ITERATIONS).all()
    if not np.isfinite(figures[[0, 1, 3]]).all() or not is_count:
        raise ValueError(f"{prefix}figures do not belong to a search")
    if len(status) > LONGEST or not status.isprintable():
        raise ValueError("the status is too long or not printable")
    slack, slip, objective, iterations, is_solved, violation = figures.tolist()
    rows = [Iteration(int(number), *rest) for number, *rest in log.tolist()]
    outcome = Outcome(x, multipliers, bounds, objective, int(iterations), status, bool(is_solved), rows, violation)
    return Stage(slack, slip, outcome)


class Difference(NamedTuple):
    """An equation of Barman 2020, chapter V: its content, and its replacements in the versions of ``walking``."""

    equation: str
    printed: str
    nearest: str
    thesis: str
    remark: str = ""


NEAREST_PREFIX = "nearest/"  # prefix of the nearest walk in a file


def printed_differences() -> tuple[Difference, ...]:
    """Return the equations 5.1 to 5.10 as printed, in the version "nearest" and in the version "thesis".

    The version "printed" uses them as printed. ``remark`` explains how an equation is interpreted where the text is
    ambiguous.

    Example:
        >>> [each.equation for each in printed_differences() if each.nearest != "as printed"]
        ['5.4']
    """
    near, thesis = VERSIONS["nearest"], VERSIONS["thesis"]
    bands = {"near_slack": near.slack, "near_slip": near.slip, "thesis_slack": thesis.slack, "thesis_slip": thesis.slip}
    bands = {name: 1e3 * value for name, value in bands.items()}  # mm and mm/s
    rows = data_of(__name__)["differences"]
    return tuple(Difference(**{name: text.format(**bands) for name, text in row.items()}) for row in rows)


@dataclass(frozen=True, eq=False)
class PrintedGait(Result):
    """The result of ``printed_gait``: how closely a motion satisfies the printed equations.

    ``stages`` are the searches with increasingly narrow bounds on eq. 5.4 while all other equations hold. ``nearest``
    is the minimum-effort walk in the version "nearest".
    """

    kind = "printed_gait"
    stages: tuple[Stage, ...]
    nearest: MotionResult

    @classmethod
    def load(cls, path: str | Path, problem: MotionProblem | None = None) -> "PrintedGait":
        """Return the searches from a .npz file."""
        with reading_archive(Path(path), cls.kind) as archive:
            nearest = of_archive(archive.part(NEAREST_PREFIX), problem, load_problem)
            return cls(stages_of(archive.arrays), MotionResult.of(nearest))

    def _archive(self) -> Archive:
        units = {"figures of a stage": dict(zip(FIGURES, ("m", "m/s", "1", "1", "1", "1"), strict=True))}
        return Archive(self.kind, stage_arrays(self.stages) | archive(self.nearest).within(NEAREST_PREFIX), {}, units)

    @property
    def least_violation(self) -> float:
        """The smallest violation of eq. 5.4 found, in m and m/s, while all other equations hold."""
        return min(stage.slip for stage in self.stages if stage.is_feasible)

    @property
    def conflict(self) -> dict[str, float]:
        """The strength of the conflict of each equation with eq. 5.4 in the nearest walk, relative to eq. 5.4 itself.

        These are sums of |dJ/d(bound)| over the rows of an equation. As the bounds approach their minimum, all of these
        derivatives diverge, and their ratios show which equations contradict each other.
        """
        sums = defaultdict[str, float](float)
        for title, group in self.nearest.constraints.items():
            sums[title.split()[0]] += sum(map(abs, group.sensitivity.values()))
        return {name: sums[name] / sums["5.4"] for name in sorted(sums, key=lambda equation: -sums[equation])}

    def _content(self) -> dict[str, Any]:
        return {
            "units": {"slack": "m", "slip": "m/s", "least_violation": "m, m/s"},
            "robot": robot_facts(self.nearest.robot),
            "settings": plain(self.nearest.settings),
            "least_violation": self.least_violation,
            "tolerance_of_the_thesis": TOLERANCE,
            "stages": [
                {"slack": stage.slack, "slip": stage.slip, "effort": stage.outcome.objective, "status": _status(stage)}
                for stage in self.stages
            ],
            "conflict": self.conflict,
            "nearest": {"effort": self.nearest.objective, "status": self.nearest.status},
            "differences": [difference._asdict() for difference in printed_differences()],
        }

    def _columns(self) -> list[Column]:
        values = list(zip(*((stage.slack, stage.slip, stage.outcome.objective) for stage in self.stages), strict=True))
        names = (("band of heights", "m"), ("band of velocities", "m/s"), ("effort", "1"))
        columns = [Column(*name, list(column)) for name, column in zip(names, values, strict=True)]
        return [*columns, Column("search", "", [_status(stage) for stage in self.stages])]

    def _summary(self) -> Summary:
        facts = {"least violation": f"{self.least_violation:g} (m, m/s)", "nearest walk": self.nearest.status}
        head = ("equation", "sum of |dJ/d(bound)|, relative to 5.4")
        rows = [(name, f"{value:.2g}") for name, value in self.conflict.items()]
        return Summary("Printed gait of Barman 2020", facts, head, rows)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Return a figure (matplotlib, extra ``plot``): effort as a function of the bound on eq. 5.4, and conflicts."""
        figure = new_figure(10.0, 4.2)
        left, right = figure.subplots(1, 2)
        feasible = [stage for stage in self.stages if stage.is_feasible]
        slips, efforts = [1e3 * stage.slip for stage in feasible], [stage.outcome.objective for stage in feasible]
        left.loglog(slips, efforts, color="C0")
        faces = ["C0" if stage.is_accepted else "white" for stage in feasible]
        left.scatter(slips, efforts, c=faces, edgecolors="C0", zorder=3)
        styled(left, "effort of walks; filled: SNOPT accepts eq. 5.4", "effort (eq. 5.1)")
        left.set_xlabel("largest velocity in contact (mm/s)")
        shown = {name: value for name, value in self.conflict.items() if value > 0}
        right.barh(list(shown), list(shown.values()), color="C1")
        right.set(xscale="log", xlabel="sum of |dJ/d(bound)|, relative to eq. 5.4")
        styled(right, "equations that conflict with eq. 5.4", "equation")
        who_ = who(self.nearest.problem)
        figure.suptitle(label_of_title(f"{who_}: the printed gait (Barman 2020), {self.nearest.solver}"))
        return saved(figure, path)

    def report(self, width: int = 110) -> str:
        """Return text tables, ``width`` characters wide: bounds and effort, conflict, differences between versions."""
        return as_text(self, width=width)

    def __rich__(self) -> Any:
        title = "Eq. 5.4 within bands, all other equations as printed"
        stages = titled_table(title, "heights (mm)", "velocities (mm/s)", "effort", "search")
        for stage in self.stages:
            effort = f"{stage.outcome.objective:.3f}" if stage.is_feasible else ""
            stages.add_row(f"{1e3 * stage.slack:g}", f"{1e3 * stage.slip:g}", effort, _status(stage))
        accepted = f"SNOPT accepts {TOLERANCE:g} times the size of the solution in Barman 2020"
        stages.caption = f"Least violation found: {self.least_violation:g} (m, m/s). {accepted}."
        stages.caption_justify = "left"
        title = "Equations that conflict with eq. 5.4 in the nearest walk"
        conflict = titled_table(title, "equation", "sum of |dJ/d(bound)|, relative to 5.4")
        for name, value in self.conflict.items():
            conflict.add_row(name, f"{value:.2g}")
        head = ("equation", "as printed", 'version "nearest"', 'version "thesis"', "reading")
        differences = titled_table("Barman 2020, chapter V", *head)
        for column in differences.columns:
            column.justify = "left"
        for difference in printed_differences():
            differences.add_row(*difference)
        return Group(stages, conflict, differences)


register_result("printed_gait", PrintedGait, "a printed gait")


def _status(stage: Stage) -> str:
    return stage.outcome.status if stage.is_feasible else "no motion found"


def printed_gait(body: Robot | None = None, step: Step | None = None, *, progress: bool | None = None) -> PrintedGait:
    """Return how closely a walk can satisfy the equations of Barman 2020, chapter V, and the conflicting equations.

    All equations except 5.4 hold as printed. The bounds on eq. 5.4 are narrowed until no motion is found. ``body`` is a
    ``library.human``, and ``step`` defines length, speed and contacts. ``progress`` shows the iterations. The
    computation takes minutes.

    Example:
        >>> gait = torsor.human.printed_gait()  # doctest: +SKIP
        >>> gait.least_violation  # doctest: +SKIP
        0.001
    """
    problem = walking(body, step, "printed")
    assert isinstance(problem, PrintedWalk)
    stages, near = tuple(problem.approach(progress=progress)), VERSIONS["nearest"]
    wider = [stage for stage in stages if stage.is_feasible and stage.slip > near.slip]
    if not wider:
        what = "no motion satisfies the printed equations even with wide bands of eq. 5.4"
        raise ModelError(what, where="printed gait", fix="use another body or step")
    problem = problem.with_bands(near.slack, near.slip)
    return PrintedGait(stages, problem.solve(start=wider[-1].outcome.x, progress=progress))
