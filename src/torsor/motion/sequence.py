"""Results of consecutive solves over a parameter, or over the weights of two objectives."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from torsor.base.archive import Archive, reading_archive, register_result
from torsor.base.checks import number
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.base.result import Result
from torsor.base.summary import Summary
from torsor.base.tables import Column
from torsor.motion.problem import MotionProblem, MotionResult, load_problem
from torsor.motion.results import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WEIGHT, VALUE = "weight", "value"  # kinds of values
MAX_RESULTS = 100_000  # largest number of results in a file


@dataclass(frozen=True, eq=False, repr=False)
class MotionSequence(Result, Sequence[MotionResult]):
    """The results of ``motion.continuation`` or ``motion.pareto``, in the order of their ``values``.

    It is indexed and iterated like a list; a slice is a shorter sequence. ``parameter`` is the kind of the values:
    "value" for a continuation and "weight" for a Pareto front. Values that are not numbers, text or lists of these are
    saved as text.
    """

    results: tuple[MotionResult, ...]
    values: tuple[Any, ...]
    parameter: str = VALUE

    kind = "sequence"

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, index: int) -> MotionResult: ...

    @overload
    def __getitem__(self, index: slice) -> "MotionSequence": ...

    def __getitem__(self, index: int | slice) -> "MotionResult | MotionSequence":
        if isinstance(index, slice):
            return MotionSequence(self.results[index], self.values[index], self.parameter)
        return self.results[index]

    def __repr__(self) -> str:
        if not self.results:
            return "<MotionSequence: no results>"
        solved = sum(result.is_solved for result in self.results)
        ends = f"{self.parameter} {self.values[0]} to {self.values[-1]}"
        return f"<MotionSequence {self.results[0].problem.name!r}: {solved} of {len(self)} solved, {ends}>"

    @classmethod
    def load(
        cls, path: str | Path, problem: MotionProblem | Callable[[Any], MotionProblem] | None = None
    ) -> "MotionSequence":
        """Load results from a .npz file; ``problem`` is needed if the file does not include it.

        ``problem`` is a problem, or the function ``make_problem`` that was passed to ``motion.continuation``.
        """
        with reading_archive(Path(path), cls.kind) as archive:
            values, parameter = archive.settings["values"], archive.settings["parameter"]
            if not isinstance(values, list) or not 0 < len(values) <= MAX_RESULTS or parameter not in (VALUE, WEIGHT):
                raise ValueError("its header does not have a list of values")
            problems = [problem(value) if callable(problem) else problem for value in values]
            solutions = files.unpacked(archive, problems, load_problem)
            return cls(tuple(map(MotionResult.of, solutions)), tuple(values), parameter)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot the results and return the figure; with ``path``, save it too.

        For a parameter, the figure shows objectives and durations; for weights, the two objectives of the Pareto front.
        """
        first = self._some()[0]
        figure, is_front = new_figure(9.0, 4.0), self.parameter == WEIGHT
        is_line = all(map(files.is_number, self.values))
        x = list(self.values) if is_line else list(range(len(self)))
        curves = [
            (self.parameter, x, [result.outcome.objective for result in self.results], "objective", not is_line),
            (self.parameter, x, [result.T for result in self.results], "duration (s)", not is_line),
        ]
        if is_front:
            one, other = ([result.parts[k].value for result in self.results] for k in (0, 1))
            curves[0] = (first.parts[0].title, one, other, first.parts[1].title, True)
        for axes, (across, right, up, what, is_labelled) in zip(figure.subplots(1, 2), curves, strict=True):
            axes.plot(right, up, "o-", color="C0")
            styled(axes, "", what)
            axes.set_xlabel(across)
            for k, label in enumerate(self.values if is_labelled else ()):
                axes.annotate(str(label)[:20], (right[k], up[k]), textcoords="offset points", xytext=(4, 4), size=7)
        what = "Pareto front" if is_front else "continuation"
        aims = " + ".join(part.title for part in first.problem.costs)
        title = f"{first.robot.name}: {first.problem.name}, minimise {aims}; {what} of {len(self)}, {first.solver}"
        figure.suptitle(label_of_title(title))
        return saved(figure, path)

    def _some(self) -> tuple[MotionResult, ...]:
        """Return the results; raise ModelError if there are none."""
        if not self.results:
            raise ModelError("the sequence has no results", where="motion", fix="pass values to solve for")
        return self.results

    def _archive(self) -> Archive:
        arrays, _ = files.packed(self._some())
        settings = {"parameter": self.parameter, "values": plain(self.values)}
        return Archive(self.kind, arrays, settings, {"0/ and so on": "as in a motion"})

    def _columns(self) -> list[Column]:
        return files.columns(self._some(), self._labels, self.parameter)

    def _content(self) -> dict[str, Any]:
        return files.content(self._some(), self._labels, VALUE) | {"parameter": self.parameter}

    def _summary(self) -> Summary:
        if not self.results:
            return Summary("MotionSequence: no results", {})
        return files.summary(self.results, self._labels, repr(self).strip("<>"), self.parameter)

    @property
    def _labels(self) -> list[Any]:
        """The values as numbers and text."""
        return [value if files.is_number(value) else str(value) for value in plain(self.values)]


register_result("sequence", MotionSequence, "a sequence of motions")


def continuation(
    make_problem: Callable[[Any], MotionProblem], values: Iterable[Any], start: Any = None, **settings: Any
) -> MotionSequence:
    """Solve ``make_problem(value)`` for each value, starting from the previous result, and return the results.

    ``start`` is the initial guess of the first solve, and ``settings`` are passed to ``MotionProblem.solve``. The
    results are indexed like a list, and are saved, loaded and plotted together: ``save``, ``torsor.load_result``,
    ``plot``.

    Example:
        >>> from torsor import motion
        >>> robot = torsor.library.two_link()
        >>> def reach(limit):
        ...     ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        ...     phase, limits = motion.Phase((0.1, 2.0), points=6), motion.Torques(upper=limit)
        ...     return motion.MotionProblem(robot, phase, motion.Time(), [*ends, limits])
        >>> [round(result.T, 4) for result in motion.continuation(reach, [10.0, 12.0, 15.0])]
        [0.4212, 0.3845, 0.3439]
    """
    all_values, results = tuple(values), list[MotionResult]()
    for value in all_values:
        results.append(make_problem(value).solve(start=results[-1] if results else start, **settings))
    return MotionSequence(tuple(results), all_values)


def pareto(problem: MotionProblem, weights: Sequence[float], **settings: Any) -> MotionSequence:
    """Solve for the objective u w1 f1 + (1 - u) w2 f2 for each u (0 to 1) in ``weights``, and return the results.

    The objective of the problem must have two terms f1 and f2. Choose their weights w1 and w2 such that both terms have
    similar magnitudes. Each solve starts from the previous result.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        >>> problem = motion.MotionProblem(
        ...     torsor.library.two_link(), motion.Phase((0.1, 2.0), points=6), [motion.Time(), motion.Effort()], ends
        ... )
        >>> front = motion.pareto(problem, [0.99, 0.9])
        >>> [part.title for part in front[0].parts], front[0].T < front[1].T
        (['Time', 'Effort'], True)
    """
    if len(problem.costs) != 2:
        raise ModelError(f"the objective has {len(problem.costs)} terms", where=problem.name, allowed="two terms")
    for weight in weights:
        number(weight, problem.name, "a weight", least=0.0, most=1.0)
    first, second = problem.costs

    def weighted(u: float) -> MotionProblem:
        parts = replace(first, weight=u * first.weight), replace(second, weight=(1 - u) * second.weight)
        return problem.changed(objective=parts)

    return replace(continuation(weighted, weights, **settings), parameter=WEIGHT)
