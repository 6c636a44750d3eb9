"""Walks from several starts: the best, the near-optimal ones, and the spread of their curves.

A solver finds local minima. If several of them have nearly the same objective, the best curve alone overstates the
certainty. The spread of the near-optimal walks quantifies this.
"""

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

MAX_STARTS = 1000  # a search takes many seconds
WHERE = "near-optimal walks"
SETTINGS = ("starts", "seed", "within", "side")  # fields in files


@dataclass(frozen=True, eq=False, repr=False)
class NearOptimalWalks(MotionMultistart):
    """The results of ``near_optimal_walks``, best first: feasible ones by objective, then the others.

    ``seeds`` are the numbers of the starts: 0 is the initial guess, and k is the posture of ``bent_start`` with the
    seed ``seed`` + k - 1. ``starts`` is the requested number; after Ctrl-C there are fewer results. A feasible result
    is near-optimal if its objective exceeds the best objective by at most the fraction ``within``. ``side`` is the side
    of the strides.
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
            what = "the first result violates its constraints" if self.results else "there are no results"
            raise ModelError(what, where=WHERE, allowed="results of which the first is feasible")

    @property
    def near_optimal(self) -> tuple[MotionResult, ...]:
        """The near-optimal results, best first."""
        return tuple(result for result in self.results if result.is_feasible and self.above(result) <= self.within)

    def above(self, result: MotionResult) -> float:
        """Return the excess of a result's objective over the best objective, as a fraction of the best objective."""
        least = self.best.objective
        return (result.objective - least) / abs(least) if least else float(result.objective != least)

    @cached_property
    def strides(self) -> tuple[Stride, ...]:
        """The strides of the near-optimal results, best first."""
        return tuple(Stride(result, self.side) for result in self.near_optimal)

    @property
    def stride(self) -> Stride:
        """The best stride."""
        return self.strides[0]

    @cached_property
    def curves(self) -> dict[str, CurveSpread]:
        """The spread of each curve over the near-optimal walks, by name as in ``Stride.likeness``."""
        return curve_spreads(self.strides)

    @cached_property
    def quantities(self) -> dict[str, QuantitySpread]:
        """The spread of step_length, step_width, double_support, positive_work, and metabolic_energy if minimised."""
        return quantity_spreads(self.strides)

    @property
    def labels(self) -> tuple[str, ...]:
        """The start of each result as text."""
        return tuple(f"posture, seed {self.seed + number - 1}" if number else "initial guess" for number in self.seeds)

    # Files, tables and figures

    @classmethod
    def load(cls, path: str | Path, problem: MotionProblem | None = None) -> "NearOptimalWalks":
        """Return the results from a .npz file; ``problem`` is needed if the file does not include it."""
        with reading_archive(Path(path), cls.kind) as archive:
            solutions, seeds = files.several_of_archive(archive, problem, load_problem)
            settings = {name: archive.settings[name] for name in SETTINGS}
            return cls(tuple(map(MotionResult.of, solutions)), seeds, **settings)

    def _archive(self) -> Archive:
        archive = files.archive_of_several(self.results, self.seeds)
        return Archive(self.kind, archive.arrays, {name: getattr(self, name) for name in SETTINGS}, archive.units)

    def _columns(self) -> list[Column]:
        spreads = ((spread, part) for spread in self.curves.values() for part in PARTS)
        columns = [Column(f"{spread.title} {part}", spread.unit, getattr(spread, part)) for spread, part in spreads]
        return [Column("share of the stride", "1", np.linspace(0.0, 1.0, PERCENTS)), *columns]

    def _content(self) -> dict[str, Any]:
        content, near = files.content(self.results, self.labels, "start"), self.near_optimal
        for row, result in zip(content["results"], self.results, strict=True):
            row["is_near_optimal"] = result in near
        settings = {name: getattr(self, name) for name in SETTINGS}
        for kind, spreads in (("quantities", self.quantities), ("curves", self.curves)):
            settings[kind] = {
                name: {part: plain(getattr(spread, part)) for part in PARTS} | {"unit": spread.unit}
                for name, spread in spreads.items()
            }
        return content | settings

    def _summary(self) -> Summary:
        rows = [
            (name.replace("_", " "), f"{spread.best:.4g}", f"{spread.least:.4g} to {spread.most:.4g} {spread.unit}")
            for name, spread in self.quantities.items()
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
        """Return text tables, ``width`` characters wide: all starts, and the spread over the near-optimal walks."""
        return as_text(self, width=width)

    def __str__(self) -> str:
        return self.report()

    def __rich__(self) -> Any:
        count = len(self.near_optimal)
        spread = f"spread over {count} near-optimal walks" if count > 1 else "one near-optimal walk, no spread"
        starts = titled_table(self._title(), "start", "objective", "above", "step (m)", "iterations", "status")
        for label, result in zip(self.labels, self.results, strict=True):
            length = Stride(result).step.nominal.length
            cells = f"{result.objective:.4f}", f"{100 * self.above(result):.2f} %", f"{length:.3f}"
            if not result.is_feasible:
                cells = "violates constraints", "", ""
            starts.add_row(label, *cells, str(result.iterations), escape(result.status))
        numbers = titled_table(f"Step and energy, {spread}", "quantity", "best", "minimum", "maximum", "unit")
        for name, quantity in self.quantities.items():
            digits = 1 if "%" in quantity.unit else 3
            values = (f"{getattr(quantity, part):.{digits}f}" for part in PARTS)
            numbers.add_row(name.replace("_", " "), *values, quantity.unit)
        title = f"Curves: difference between maximum and minimum, {spread}"
        curves = titled_table(title, "curve", "largest", "at %", "mean", "range", "unit")
        for curve in self.curves.values():
            sizes = curve.widest, float(curve.width.mean()), float(np.ptp(curve.best))
            largest, mean, whole = (f"{size:.{DIGITS[curve.kind]}f}" for size in sizes)
            curves.add_row(curve.title, largest, str(int(np.argmax(curve.width))), mean, whole, curve.unit)
        starts.columns[0].no_wrap = curves.columns[0].no_wrap = True
        return Group(starts, numbers, curves)

    def plot(self, path: str | Path | None = None, references: Any = None) -> "Figure":
        """Return the figure of the best stride with bands that show the range of the near-optimal walks.

        It is saved if ``path`` is given. ``references`` are the built-in ones by default, recordings of people, or
        other strides; see ``Stride.likeness``.
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
    """Solve a ``torsor.human.walking`` problem from several starts and return the walks.

    The first start is ``start`` (see ``solve``), by default the initial guess of the problem. The others are
    ``bent_start`` with ``seed``, seed + 1, and so on; ``offset`` (rad) is the standard deviation of their angles. The
    solves run in ``workers`` processes, with ``settings`` as in ``solve``. Ctrl-C stops them, and the walks solved so
    far are returned. A walk is near-optimal if its objective exceeds the best objective by at most the fraction
    ``within``. ``side`` is the side of the strides. If no walk satisfies the constraints, a ``MotionError`` with the
    best ``result`` is raised.

    A small spread does not prove that there are no other minima; more starts may find some.

    Example:
        >>> found = near_optimal_walks(walking(), starts=4, workers=2)  # doctest: +SKIP
        >>> found.stride.step.length, found.curves["knee_flexion"].widest  # doctest: +SKIP
        >>> found.plot("walks.png")  # doctest: +SKIP
    """
    walk_of(problem)  # raises ModelError if the problem is not a walk
    starts = whole_number(starts, WHERE, "starts", most=MAX_STARTS)
    seed = whole_number(seed, WHERE, "seed", least=0)
    number(within, WHERE, "within", least=0.0)  # check before the solves
    one_of(side, SIDES, WHERE, "side")
    bent = [bent_start(problem, seed + k, offset) for k in range(starts - 1)]
    guesses = [problem.guess() if start is None else start, *bent]
    searches = problem.multistart(starts=guesses, workers=workers, **settings)
    order = sorted(range(len(searches)), key=lambda k: (not searches[k].is_feasible, searches[k].objective))
    results = tuple(searches[k] for k in order)
    if not results[0].is_feasible:
        what = f"none of {len(results)} starts leads to a walk that satisfies its constraints: {searches.best.status}"
        error = MotionError(what, where=problem.name, fix="problem.solve() names the conflicting constraints")
        error.result, error.violation = searches.best, searches.best.max_violation
        raise error
    return NearOptimalWalks(results, tuple(searches.seeds[k] for k in order), starts, seed, within, side)
