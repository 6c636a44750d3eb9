"""Solutions of a problem from many starts, in batches or one by one, in one or more processes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from torsor.base.arrays import Array
from torsor.base.checks import whole_number
from torsor.motion.many import Searches, solve_searches
from torsor.motion.results.solution import Solution
from torsor.motion.solve import SolveSettings
from torsor.motion.statement import ProblemStatement

S = TypeVar("S", bound=Solution)

SAME_OPTIMUM_TOLERANCE = 1e-4  # largest relative difference between objectives of the same optimum


@dataclass(frozen=True)
class Multistart(Generic[S]):
    """Results from random starts, best first: solved ones by objective, followed by the others.

    ``seeds`` contains the seed of each result. ``reached`` is the number of solved results whose objective exceeds the
    best one by at most 1e-4 of its value.
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
        """Number of starts that reached the best objective."""
        least = self.best.objective
        return sum(
            result.is_solved and result.objective <= least + SAME_OPTIMUM_TOLERANCE * abs(least)
            for result in self.results
        )

    def __repr__(self) -> str:
        return f"<Multistart: {self.reached} of {len(self)} reached the best objective, {self.best.objective:.6g}>"


def solve_from_starts(
    problem: ProblemStatement, starts: Sequence[Array], seeds: Sequence[int], workers: int, settings: SolveSettings
) -> Multistart[Solution]:
    """Return the solutions from the starting points ``starts``, (n,) each, which were generated with ``seeds``.

    See ``MotionProblem.multistart``. After Ctrl-C, the solutions found so far are returned; if there are none,
    KeyboardInterrupt is raised.
    """
    whole_number(len(starts), problem.name, "count")
    whole_number(workers, problem.name, "workers")
    # Motions with the same control points have comparable objectives.
    refine = False if settings.refine is None else settings.refine
    searches = Searches([problem] * len(starts), starts, replace(settings, check=False, refine=refine))
    found = solve_searches(searches, workers, "solving from starts")
    solved = [(start, solution) for start, solution in enumerate(found) if solution is not None]
    if not solved:
        raise KeyboardInterrupt
    solved.sort(key=lambda each: (not each[1].is_solved, each[1].outcome.objective, each[0]))
    return Multistart(tuple(solution for _, solution in solved), tuple(seeds[start] for start, _ in solved))
