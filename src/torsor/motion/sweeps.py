"""Many searches: from random starts, along a parameter, and between two objectives."""

import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.motion.results.result import MotionResult
from torsor.motion.solve import Search, solve
from torsor.motion.transcription.phase import Phase
from torsor.optimisation.outcome import Outcome

if TYPE_CHECKING:
    from torsor.motion.problem import MotionProblem

__all__ = ["Multistart", "continuation", "multistart", "pareto"]

Array = NDArray[np.float64]

SAME = 1e-4  # of the objective, within which two searches have reached the same optimum


@dataclass(frozen=True)
class Multistart:
    """Results from random starts, the best first: those that are solved by objective, then the others.

    ``seeds`` has the seed of each. ``reached`` counts the results whose objective is that of the best, to 1e-4 of it.

    Example:
        >>> import torsor
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        >>> phase = motion.Phase(0.5, points=6)
        >>> problem = motion.MotionProblem(torsor.library.two_link(), phase, motion.Effort(), ends)
        >>> tried = problem.multistart(2, seed=1)
        >>> tried.reached, len(tried), sorted(tried.seeds)
        (2, 2, [1, 2])
    """

    results: tuple[MotionResult, ...]
    seeds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> MotionResult:
        return self.results[index]

    def __iter__(self) -> Iterator[MotionResult]:
        return iter(self.results)

    @property
    def best(self) -> MotionResult:
        """The best result."""
        return self.results[0]

    @property
    def reached(self) -> int:
        """How many solved results have the objective of the best."""
        least = self.best.objective
        return sum(each.is_solved and each.objective <= least + SAME * abs(least) for each in self.results)

    def __repr__(self) -> str:
        return f"<Multistart: {self.reached} of {len(self)} reached the best objective, {self.best.objective:.6g}>"


def _count(value: int, what: str, where: str) -> int:
    if type(value) is not int or value < 1:
        raise ModelError(describe(f"{what} is {value!r}", where=where, allowed="a whole number above 0"))
    return value


_shared: dict[str, Any] = {}  # what forked processes find: a problem with compiled functions cannot be sent to them


def _one(seed: int) -> tuple[Any, tuple[Phase, ...]]:
    """Return the result from one random start without its problem, and the phases of that."""
    problem, search = _shared["problem"], _shared["search"]
    start = problem.random_start(seed, _shared["spread"])
    try:
        found = solve(problem, start, search)
    except ModelError as error:  # this start has no numbers, as where loops cannot be closed
        none = np.zeros(problem.program.m), np.zeros(problem.program.n)
        found = MotionResult(problem, Outcome(start, *none, np.inf, 0, str(error), False), search.solver)
    return replace(found, problem=None), found.problem.stages  # type: ignore[arg-type]


def multistart(
    problem: "MotionProblem", count: int, seed: int, workers: int, spread: float, **settings: Any
) -> Multistart:
    """Return what is found from random starts with the seeds ``seed``, ``seed`` + 1, ...; see ``MotionProblem``.

    Processes are forked after tracing and compiling; where the system cannot fork, there is one.
    """
    _count(count, "count", problem.name)
    _count(workers, "workers", problem.name)
    search = Search.of(problem.name, **(dict(problem.settings) | settings | {"check": False}))
    x = problem.random_start(seed, spread)
    seeds = range(seed, seed + count)
    with np.errstate(all="ignore"):  # compiled once, before processes are made
        problem.program.value(x), problem.program.jacobian(x)
        problem.program.hessian(x, np.zeros(problem.program.m), 1.0)
    _shared.update(problem=problem, spread=spread, search=replace(search, progress=search.progress and workers == 1))
    try:
        if min(workers, count) == 1 or not sys.platform.startswith("linux"):
            found = [_one(each) for each in seeds]
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS are idle when this forks
                with multiprocessing.get_context("fork").Pool(min(workers, count)) as pool:
                    found = pool.map(_one, seeds, chunksize=1)
    finally:
        _shared.clear()
    results = [replace(each, problem=_with_nodes(problem, phases)) for each, phases in found]
    order = sorted(range(count), key=lambda k: (not results[k].is_solved, results[k].outcome.objective))
    return Multistart(tuple(results[k] for k in order), tuple(seeds[k] for k in order))


def _with_nodes(problem: "MotionProblem", phases: tuple[Phase, ...]) -> "MotionProblem":
    """Return the problem itself, or with the nodes that refinement added."""
    pairs = zip(phases, problem.stages, strict=True)
    return problem if all(len(a.nodes) == len(b.nodes) for a, b in pairs) else problem.with_phases(*phases)


def continuation(
    make_problem: Callable[[Any], "MotionProblem"], values: Iterable[Any], start: Any = None, **settings: Any
) -> list[MotionResult]:
    """Return the results of ``make_problem(value)`` for each value, each solved from the one before.

    ``start`` is that of the first, ``settings`` those of ``MotionProblem.solve``.

    Example:
        >>> import torsor
        >>> from torsor import motion
        >>> robot = torsor.library.two_link()
        >>> def reach(limit):
        ...     ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        ...     phase, limits = motion.Phase((0.1, 2.0), points=6), motion.Torques(upper=limit)
        ...     return motion.MotionProblem(robot, phase, motion.Time(), [*ends, limits])
        >>> [round(each.T, 4) for each in motion.continuation(reach, [10.0, 12.0, 15.0])]
        [0.4212, 0.3845, 0.3439]
    """
    found = list[MotionResult]()
    for value in values:
        found.append(make_problem(value).solve(start=found[-1] if found else start, **settings))
    return found


def pareto(problem: "MotionProblem", shares: Sequence[float], **settings: Any) -> list[MotionResult]:
    """Return the results for u of the first part of the objective and 1 - u of the second, for each u of ``shares``.

    The problem has two parts, whose own weights stay as factors, which make them alike in size: their weights are then
    u w1 and (1 - u) w2. Each search starts from the result before.

    Example:
        >>> import torsor
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
        found = f"the objective has {len(problem.costs)} parts"
        raise ModelError(describe(found, where=problem.name, allowed="two of them"))
    for each in shares:
        if not (isinstance(each, int | float | np.number) and 0 <= each <= 1):
            raise ModelError(describe(f"a share is {each!r}", where=problem.name, allowed="from 0 to 1"))
    first, second = problem.costs

    def made(u: float) -> "MotionProblem":
        parts = replace(first, weight=u * first.weight), replace(second, weight=(1 - u) * second.weight)
        return replace(problem, objective=parts)

    return continuation(made, shares, **settings)
