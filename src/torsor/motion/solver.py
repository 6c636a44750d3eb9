"""Successive solution of neighbouring cases of a motion problem."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from threadpoolctl import threadpool_limits

from torsor.base.checks import instance_of
from torsor.motion import many
from torsor.motion.many import Searches, Template
from torsor.motion.problem import MotionProblem, MotionResult, batch_settings, warn_between_nodes
from torsor.motion.refine import with_points_of
from torsor.motion.results.solution import Solution
from torsor.motion.solve import ONLY_AT_NODES, warm_start
from torsor.motion.starts import moved, read_start


class Solver:
    """A solver that starts each case of a problem from the solution of the previous one.

    It keeps the compiled functions and the structure of the linear systems. The interior-point method starts with the
    multipliers of the previous solution and a small barrier parameter, so small changes of the data need few
    iterations. For ``settings``, and for problems that are solved by a different method, see
    ``MotionProblem.solve_many``.

    Example:
        >>> from torsor import motion
        >>> terms = [motion.Start(q=[0, -2], v=0), motion.End(q=[1, -1], v=0), motion.Torques(upper=10.0)]
        >>> phase = motion.Phase((0.1, 2.0), points=8)
        >>> reach = motion.MotionProblem(torsor.library.two_link(), phase, motion.Time(), terms)
        >>> solver = motion.Solver(reach)
        >>> results = [solver.solve({"End.q": [1 + change, -1]}) for change in (0.0, 0.001, 0.002)]
        >>> [round(result.T, 5) for result in results]
        [0.40542, 0.40555, 0.40568]
        >>> max(result.iterations for result in results[1:]) < results[0].iterations
        True
    """

    def __init__(self, problem: MotionProblem, **settings: Any) -> None:
        instance_of(problem, MotionProblem, "Solver", "problem", allowed="a MotionProblem")
        self.problem, self._settings = problem, batch_settings(problem, settings)
        self._last: MotionResult | None = None
        self._bases = {id(problem.robot): problem}  # one problem for each robot
        self._templates: dict[Any, Template] = {}

    def solve(self, case: Mapping[str, Any] | None = None, start: Any = None) -> MotionResult:
        """Return the motion of a case (see ``MotionProblem.solve_many``), by default of the problem itself.

        ``start`` replaces the previous solution (see ``MotionProblem.solve``). If the case is infeasible,
        ``MotionError`` is raised, and the next case starts from the last successful solution.
        """
        settings, problem = self._settings, self._with(case or {})
        start = self._last if start is None else start
        if isinstance(start, Solution) and settings.refine is not False:
            problem = with_points_of(problem, start)
        structure = many.batch_structure(problem, settings)
        found = None if structure is None else self._solved(problem, structure, start)
        if found is None:
            result = problem.solve(start=start, **asdict(settings))
        else:
            result = MotionResult.of(replace(found, settings=asdict(settings)))
            if ONLY_AT_NODES in result.status:
                warn_between_nodes(result)
        if result.is_solved:
            self._last = result
        return result

    def _with(self, case: Mapping[str, Any]) -> MotionProblem:
        """Return the problem of a case; it shares symbols with an earlier problem with the same robot."""
        (problem,) = many.with_one_robot(self.problem, [many.made(self.problem, case, 0)])
        names = getattr(problem.robot, "names", None)
        for base in self._bases.values():
            if names is not None and names == getattr(base.robot, "names", None):
                problem = replace(problem, robot=base.robot)
        base = self._bases.setdefault(id(problem.robot), problem)
        many.build(base, problem, 0)
        return problem

    def _solved(self, problem: MotionProblem, structure: Any, start: Any) -> Solution | None:
        """Return the solution of the batch solver from ``start``, or if that fails, from straight lines."""
        if structure not in self._templates:
            self._templates[structure] = Template(problem.program, "cpu")
        x, warm = read_start(problem, start), warm_start(problem, start)
        if warm is not None:
            x = moved(problem, start, x)
        for one, outcomes in ((x, None if warm is None else [warm]), (problem.guess(), None)):
            with threadpool_limits(1):
                searches = Searches([problem], [one], self._settings)
                (found,) = many.solve_group(searches, self._templates[structure], warm=outcomes)
            if found is not None:
                return found
        return None
