"""Walks from several starts: the best one, those that are nearly as good, and how far their curves are apart.

A solver finds local minima. Where several of them have nearly the same objective, the best curve alone says more than
is known; the spread of the near-optimal ones says how much.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.markup import escape

from torsor.base.archive import Archive, reading_archive, register_result
from torsor.base.checks import number, one_of, whole_number
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.summary import Summary, as_text, titled_table
from torsor.base.tables import Column
from torsor.human.body.coordinates import SIDES
from torsor.human.comparison.table import DIGITS
from torsor.human.gait.curves import PARTS, PERCENTS, CurveSpread, QuantitySpread, curve_spreads, quantity_spreads
from torsor.human.gait.figures import plot
from torsor.human.gait.stride import Stride
from torsor.human.gait.walking import bent_start
from torsor.human.terms.problem import walk_of
from torsor.motion import MotionError, MotionMultistart, MotionProblem, MotionResult, load_problem
from torsor.motion.results import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_STARTS = 1000
WHERE = "near-optimal walks"
SETTINGS = ("starts", "seed", "within", "side")  # fields of files


@dataclass(frozen=True, eq=False, repr=False)
class NearOptimalWalks(MotionMultistart):
    """The results of ``near_optimal_walks``, the best first: feasible ones by objective, then the others.

    ``seeds`` are the numbers of the starts: 0 is the initial guess, k the posture of ``bent_start`` with the seed
    ``seed`` + k - 1. ``starts`` is how many were asked for: after Ctrl-C there are fewer results. Near-optimal are the
    feasible results whose objective is above the best one by at most the fraction ``within`` of it.
    """

    kind = "near_optimal_walks"

    starts: int = 4
    seed: int = 0
    within: float = 0.02
    side: str = "right"

    def __post_init__(self) -> None:
        whole_number(self.starts, WHERE, "starts", most=MAX_STARTS)
        whole_number(self.seed, WHERE, "seed", least=0)
        number(self.within, WHERE, "within", least=0.0)
        one_of(self.side, SIDES, WHERE, "side")
        if not self.results or not self.best.is_feasible:
            found = "the first result violates its constraints" if self.results else "no results"
            raise ModelError(found, where=WHERE, allowed="results whose first one is feasible")

    @property
    def near_optimal(self) -> tuple[MotionResult, ...]:
        """The near-optimal results, the best first."""
        return tuple(each for each in self.results if each.is_feasible and self.above(each) <= self.within)

    def above(self, result: MotionResult) -> float:
        """Return how far the objective of a result is above the best one, as a fraction of that."""
        least = self.best.objective
        return (result.objective - least) / abs(least) if least else float(result.objective != least)

    @cached_property
    def strides(self) -> tuple[Stride, ...]:
        """The strides of the near-optimal results, the best first."""
        return tuple(Stride(each, self.side) for each in self.near_optimal)

    @property
    def stride(self) -> Stride:
        """The best stride."""
        return self.strides[0]

    @cached_property
    def curves(self) -> dict[str, CurveSpread]:
        """The spread of each curve over the near-optimal walks, by the names of ``Stride.likeness``."""
        return curve_spreads(self.strides)

    @cached_property
    def quantities(self) -> dict[str, QuantitySpread]:
        """The spread of step_length, step_width, double_support, positive_work and, of free steps, metabolic_energy."""
        return quantity_spreads(self.strides)

    @property
    def labels(self) -> tuple[str, ...]:
        """The start of each result in words."""
        return tuple(f"posture, seed {self.seed + each - 1}" if each else "initial guess" for each in self.seeds)

    # Files, tables and figures

    @classmethod
    def load(cls, path: str | Path, problem: MotionProblem | None = None) -> "NearOptimalWalks":
        """Return the results in a .npz file; ``problem`` is needed if the file does not include it."""
        with reading_archive(Path(path), cls.kind) as found:
            solutions, seeds = files.several_of_archive(found, problem, load_problem)
            own = {name: found.settings[name] for name in SETTINGS}
            return cls(tuple(map(MotionResult.of, solutions)), seeds, **own)

    def _archive(self) -> Archive:
        found = files.archive_of_several(self.results, self.seeds)
        return Archive(self.kind, found.arrays, {name: getattr(self, name) for name in SETTINGS}, found.units)

    def _columns(self) -> list[Column]:
        spreads = ((each, part) for each in self.curves.values() for part in PARTS)
        columns = [Column(f"{each.title} {part}", each.unit, getattr(each, part)) for each, part in spreads]
        return [Column("share of the stride", "1", np.linspace(0.0, 1.0, PERCENTS)), *columns]

    def _content(self) -> dict[str, Any]:
        found, near = files.content(self.results, self.labels, "start"), self.near_optimal
        for row, result in zip(found["results"], self.results, strict=True):
            row["is_near_optimal"] = result in near
        own = {name: getattr(self, name) for name in SETTINGS}
        for kind, spreads in (("quantities", self.quantities), ("curves", self.curves)):
            own[kind] = {
                name: {part: plain(getattr(each, part)) for part in PARTS} | {"unit": each.unit}
                for name, each in spreads.items()
            }
        return found | own

    def to_json(self) -> str:
        """Return ``to_dict`` as JSON."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def _summary(self) -> Summary:
        rows = [
            (name.replace("_", " "), f"{each.best:.4g}", f"{each.least:.4g} to {each.most:.4g} {each.unit}")
            for name, each in self.quantities.items()
        ]
        facts = {"objective": f"{self.best.objective:.6g}", "status": self.best.status}
        return Summary(self._title(), facts, ("quantity", "best", "near-optimal walks"), rows)

    def _title(self) -> str:
        done = f"{len(self)} starts" if len(self) == self.starts else f"{len(self)} of {self.starts} starts (stopped)"
        near = len(self.near_optimal)
        return f"{done}, {near} walk{'s' * (near != 1)} within {100 * self.within:g} % of the best objective"

    def __repr__(self) -> str:
        return f"<NearOptimalWalks: {self._title()}>"

    def report(self, width: int = 110) -> str:
        """Return tables as text: all starts, and the spread of numbers and curves over the near-optimal walks."""
        return as_text(self, width=width)

    def __str__(self) -> str:
        return self.report()

    def __rich__(self) -> Any:
        count = len(self.near_optimal)
        spread = f"spread over {count} near-optimal walks" if count > 1 else "one near-optimal walk: no spread is known"
        starts = titled_table(self._title(), "start", "objective", "above", "step (m)", "iterations", "status")
        for label, result in zip(self.labels, self.results, strict=True):
            length = Stride(result).step.nominal.length
            cells = f"{result.objective:.4f}", f"{100 * self.above(result):.2f} %", f"{length:.3f}"
            if not result.is_feasible:
                cells = "violates constraints", "", ""
            starts.add_row(label, *cells, str(result.iterations), escape(result.status))
        numbers = titled_table(f"Step and energy, {spread}", "quantity", "best", "least", "most", "unit")
        for name, own in self.quantities.items():
            digits = 1 if "%" in own.unit else 3
            values = (f"{getattr(own, part):.{digits}f}" for part in PARTS)
            numbers.add_row(name.replace("_", " "), *values, own.unit)
        title = f"Curves: distance from least to most, {spread}"
        curves = titled_table(title, "curve", "largest", "at %", "mean", "range", "unit")
        for each in self.curves.values():
            sizes = each.widest, float(each.width.mean()), float(np.ptp(each.best))
            largest, mean, whole = (f"{size:.{DIGITS[each.kind]}f}" for size in sizes)
            curves.add_row(each.title, largest, str(int(np.argmax(each.width))), mean, whole, each.unit)
        starts.columns[0].no_wrap = curves.columns[0].no_wrap = True
        return Group(starts, numbers, curves)

    def plot(self, path: str | Path | None = None, references: Any = None) -> "Figure":
        """Return the figure of the best stride with bands of the near-optimal walks; ``path`` saves it.

        ``references`` are as in ``Stride.plot``: built-in ones by default, recordings of people, or other strides.
        """
        return plot(self.stride, path, references, self.curves if len(self.strides) > 1 else None)


register_result("near_optimal_walks", NearOptimalWalks, "walks from several starts")


def near_optimal_walks(
    problem: MotionProblem,
    starts: int = 4,
    seed: int = 0,
    *,
    start: Any = None,
    within: float = 0.02,
    offset: float = 0.2,
    side: str = "right",
    workers: int = 1,
    **settings: Any,
) -> NearOptimalWalks:
    """Return the walks that searches from several starts find for a problem of ``torsor.human.walking``.

    The first start is ``start``, as in ``solve``, by default the initial guess of the problem; the others are
    ``bent_start(problem, seed)``, with seed + 1, and so on; ``offset`` (rad) is the standard deviation of their angles.
    Searches run in ``workers`` processes; ``settings`` are those of ``solve``. Ctrl-C ends them, and the walks that
    were found until then are the result. ``within`` is the fraction of the best objective within which a walk counts as
    near-optimal; ``side`` is that of the strides. If no walk satisfies the constraints, it raises a ``MotionError``
    with the best ``result``.

    A small spread is no proof that there is no other minimum: more starts may find one.

    Example:
        >>> found = near_optimal_walks(walking(version="free"), starts=4, workers=2)  # doctest: +SKIP
        >>> found.stride.step.length, found.curves["knee_flexion"].widest  # doctest: +SKIP
        >>> found.plot("walks.png")  # doctest: +SKIP
    """
    walk_of(problem)  # raises ModelError if the problem is no walk
    starts = whole_number(starts, WHERE, "starts", most=MAX_STARTS)
    seed = whole_number(seed, WHERE, "seed", least=0)
    number(within, WHERE, "within", least=0.0)  # mistakes are found before the searches
    one_of(side, SIDES, WHERE, "side")
    bent = [bent_start(problem, seed + k, offset) for k in range(starts - 1)]
    given = [problem.guess() if start is None else start, *bent]
    found = problem.multistart(starts=given, workers=workers, **settings)
    order = sorted(range(len(found)), key=lambda k: (not found[k].is_feasible, found[k].objective))
    results = tuple(found[k] for k in order)
    if not results[0].is_feasible:
        words = f"none of {len(results)} starts leads to a walk that satisfies its constraints: {found.best.status}"
        error = MotionError(words, where=problem.name, fix="problem.solve() names what conflicts")
        error.result, error.violation = found.best, found.best.max_violation
        raise error
    return NearOptimalWalks(results, tuple(found.seeds[k] for k in order), starts, seed, within, side)
