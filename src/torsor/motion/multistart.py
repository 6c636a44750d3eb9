"""Solutions from many random starts, in several processes.

On Linux processes are forked after compiling. Where a system does not fork (macOS, Windows) they are spawned: the
problem is then pickled and its kernels are loaded from the cache on disk. A problem that cannot be pickled, such as one
with a lambda function, is solved in one process there. Both ways, and any number of workers, give the same results.
"""

import multiprocessing
import pickle
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from torsor.checks import whole_number
from torsor.errors import ModelError
from torsor.motion.results.solution import Solution
from torsor.motion.settings import SolveSettings
from torsor.motion.solve import solve
from torsor.motion.starts import random_start
from torsor.motion.statement import ProblemStatement
from torsor.motion.transcription.phase import Phase
from torsor.optimisation import Outcome
from torsor.simulation.progress import Bar

S = TypeVar("S", bound=Solution)

SAME = 1e-4  # relative difference within which two objectives are the same optimum
START_METHOD = "fork" if sys.platform.startswith("linux") else "spawn"


@dataclass(frozen=True)
class Multistart(Generic[S]):
    """Results from random starts, the best first: solved ones by objective, then the others.

    ``seeds`` has the seed of each. ``reached`` counts the results that have the best objective, to 1e-4 of it.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        >>> phase = motion.Phase(0.5, points=6)
        >>> problem = motion.MotionProblem(torsor.library.two_link(), phase, motion.Effort(), ends)
        >>> tried = problem.multistart(2, seed=1)
        >>> tried.reached, len(tried), sorted(tried.seeds)
        (2, 2, [1, 2])
    """

    results: tuple[S, ...]
    seeds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> S:
        return self.results[index]

    def __iter__(self) -> Iterator[S]:
        return iter(self.results)

    @property
    def best(self) -> S:
        """The best result."""
        return self.results[0]

    @property
    def reached(self) -> int:
        """The number of solved results with the best objective."""
        least = self.best.objective
        return sum(each.is_solved and each.objective <= least + SAME * abs(least) for each in self.results)

    def __repr__(self) -> str:
        return f"<Multistart: {self.reached} of {len(self)} reached the best objective, {self.best.objective:.6g}>"


class _Work(NamedTuple):
    """The input of every process: the problem, the standard deviation of random starts, and the settings."""

    problem: ProblemStatement
    spread: float
    settings: SolveSettings


# A solution without its problem, which is not sent between processes, and the phases of that problem.
_Found = tuple[Solution, tuple[Phase, ...]]
_work: list[_Work] = []  # of this process: forked processes inherit it, spawned ones receive it


def solve_from_random_starts(
    problem: ProblemStatement, seeds: range, workers: int, spread: float, settings: SolveSettings
) -> Multistart[Solution]:
    """Return the solutions from random starts with these seeds; see ``MotionProblem.multistart``."""
    whole_number(len(seeds), problem.name, "count")
    whole_number(workers, problem.name, "workers")
    x, workers = random_start(problem, seeds[0], spread), min(workers, len(seeds))
    with np.errstate(all="ignore"):  # compile before processes are made
        problem.program.value(x), problem.program.jacobian(x)
        problem.program.hessian(x, np.zeros(problem.program.m), 1.0)
    progress = settings.progress if workers == 1 else False
    work = _Work(problem, spread, replace(settings, check=False, progress=progress))
    if workers > 1 and START_METHOD != "fork" and not _can_be_pickled(work):
        workers = 1
    _work.append(work)
    try:
        if workers == 1:
            found = [_solve_one(each) for each in seeds]
        else:
            found = _solve_in_processes(work, seeds, workers, settings)
    finally:
        _work.pop()
    solutions = [replace(solution, problem=_with_nodes(problem, phases)) for solution, phases in found]
    order = sorted(range(len(seeds)), key=lambda k: (not solutions[k].is_solved, solutions[k].outcome.objective))
    return Multistart(tuple(solutions[k] for k in order), tuple(seeds[k] for k in order))


def _solve_in_processes(work: _Work, seeds: range, workers: int, settings: SolveSettings) -> list[_Found]:
    context = multiprocessing.get_context(START_METHOD)
    begin = (None, ()) if START_METHOD == "fork" else (_work_on, (work,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS are idle when this forks
        with context.Pool(workers, *begin) as pool, Bar(len(seeds), settings.progress, "solving from starts") as bar:
            found = []
            for each in pool.imap(_solve_one, seeds):
                found.append(each)
                bar.at(len(found))
            return found


def _work_on(work: _Work) -> None:
    """Begin a spawned process."""
    _work.append(work)


def _solve_one(seed: int) -> _Found:
    """Return the solution from one random start."""
    problem, spread, settings = _work[-1]
    start = random_start(problem, seed, spread)
    try:
        state = solve(problem, start, settings)
        if state.result is None:  # out of time before the search began
            raise ModelError(state.diagnosis.text if state.diagnosis else "no result")
        found = state.result
    except ModelError as error:  # this start has no finite values, as where loops cannot be closed
        none = np.zeros(problem.program.m), np.zeros(problem.program.n)
        found = Solution(problem, Outcome(start, *none, np.inf, 0, str(error), False), settings.solver)
    return replace(found, problem=None), found.problem.stages  # type: ignore[arg-type]


def _can_be_pickled(work: _Work) -> bool:
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _with_nodes(problem: ProblemStatement, phases: tuple[Phase, ...]) -> ProblemStatement:
    """Return the problem itself, or with the nodes that refinement added."""
    pairs = zip(phases, problem.stages, strict=True)
    return problem if all(len(a.nodes) == len(b.nodes) for a, b in pairs) else problem.with_phases(*phases)
