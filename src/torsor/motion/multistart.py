"""Solutions from many starts, in several processes.

On Linux, processes are forked after compilation. On systems that do not fork (macOS, Windows) they are spawned: the
problem is pickled and its kernels are loaded from the disk cache. A problem that cannot be pickled, such as one with a
lambda function, is then solved in one process. The results are the same for both methods and any number of workers.
Ctrl-C ends the searches and keeps the solutions found so far.
"""

import multiprocessing
import pickle
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import whole_number
from torsor.base.errors import ModelError
from torsor.base.progress import Bar
from torsor.motion.results.solution import Solution
from torsor.motion.solve import CTRL_C, SolveSettings, solve
from torsor.motion.statement import ProblemStatement
from torsor.motion.transcription.phase import Phase
from torsor.optimisation import Outcome

S = TypeVar("S", bound=Solution)

SAME_OPTIMUM_TOLERANCE = 1e-4  # relative difference within which two objectives belong to the same optimum
START_METHOD = "fork" if sys.platform.startswith("linux") else "spawn"


@dataclass(frozen=True)
class Multistart(Generic[S]):
    """Results from random starts, best first: solved ones by objective, then the others.

    ``seeds`` contains the seed of each result. ``reached`` is the number of results within 1e-4 of the best objective.
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
        return sum(
            result.is_solved and result.objective <= least + SAME_OPTIMUM_TOLERANCE * abs(least)
            for result in self.results
        )

    def __repr__(self) -> str:
        return f"<Multistart: {self.reached} of {len(self)} reached the best objective, {self.best.objective:.6g}>"


class _Work(NamedTuple):
    """The input of every process: the problem, the variables of each start, and the settings."""

    problem: ProblemStatement
    starts: Sequence[Array]
    settings: SolveSettings


class _Found(NamedTuple):
    """The solution of a start without its problem, which is not sent between processes, and the problem's phases."""

    start: int
    solution: Solution
    phases: tuple[Phase, ...]


_work: list[_Work] = []  # of this process; forked processes inherit it, spawned ones receive it


def solve_from_starts(
    problem: ProblemStatement, starts: Sequence[Array], seeds: Sequence[int], workers: int, settings: SolveSettings
) -> Multistart[Solution]:
    """Return the solutions from given variables (n,), each with a seed; see ``MotionProblem.multistart``.

    After Ctrl-C, the solutions found so far are returned; if there are none, KeyboardInterrupt is raised.
    """
    whole_number(len(starts), problem.name, "count")
    whole_number(workers, problem.name, "workers")
    x, workers = starts[0], min(workers, len(starts))
    with np.errstate(all="ignore"):  # compile before processes are created
        problem.program.value(x), problem.program.jacobian(x)
        problem.program.hessian(x, np.zeros(problem.program.m), 1.0)
    progress = settings.progress if workers == 1 else False
    # Motions with the same control points have comparable objectives.
    refine = False if settings.refine is None else settings.refine
    work = _Work(problem, starts, replace(settings, check=False, progress=progress, refine=refine))
    if workers > 1 and START_METHOD != "fork":
        try:
            pickle.dumps(work)
        except (pickle.PicklingError, AttributeError, TypeError):
            workers = 1
    _work.append(work)
    solved = list[_Found]()
    try:
        for one_solution in _solve_here(len(starts)) if workers == 1 else _solve_in_processes(work, workers, settings):
            solved.append(one_solution)
    except KeyboardInterrupt:
        if not solved:
            raise
    finally:
        _work.pop()
    solved.sort(key=lambda each: (not each.solution.is_solved, each.solution.outcome.objective, each.start))
    solutions, nodes = list[Solution](), [len(phase.nodes) for phase in problem.stages]
    for _, solution, phases in solved:
        is_same = [len(phase.nodes) for phase in phases] == nodes  # refinement added no nodes
        solutions.append(replace(solution, problem=problem if is_same else problem.with_phases(*phases)))
    return Multistart(tuple(solutions), tuple(seeds[solution.start] for solution in solved))


def _solve_here(count: int) -> Iterator[_Found]:
    """Yield the solution of each start; after Ctrl-C, the interrupted one is the last."""
    for start in range(count):
        solved = _solve_one(start)
        yield solved
        if solved.solution.status.startswith(CTRL_C):
            return


def _solve_in_processes(work: _Work, workers: int, settings: SolveSettings) -> Iterator[_Found]:
    """Yield the solutions as they are found."""
    context, count = multiprocessing.get_context(START_METHOD), len(work.starts)
    begin = None if START_METHOD == "fork" else work
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # BLAS threads are idle at the time of the fork
        with (
            context.Pool(workers, _begin, (begin,)) as pool,
            Bar(count, settings.progress, "solving from starts") as bar,
        ):
            for done, solution in enumerate(pool.imap_unordered(_solve_one, range(count)), start=1):
                yield solution
                bar.at(done)


def _begin(work: _Work | None) -> None:
    """Initialise a process, with the work if it was spawned; only the first process handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if work is not None:
        _work.append(work)


def _solve_one(start: int) -> _Found:
    """Return the solution from one start."""
    problem, starts, settings = _work[-1]
    x = starts[start]
    try:
        state = solve(problem, x, settings)
        if state.result is None:  # the time limit was reached before the search began
            raise ModelError(str(state.diagnosis or "no result"))
        result = state.result
    except ModelError as error:  # values are not finite at this start, for example if loops cannot be closed
        none = np.zeros(problem.program.m), np.zeros(problem.program.n)
        result = Solution(problem, Outcome(x, *none, np.inf, 0, str(error), False), settings.solver)
    return _Found(start, replace(result, problem=None), result.problem.stages)  # type: ignore[arg-type]
