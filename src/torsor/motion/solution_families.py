"""Sequences of solves: along a parameter, and between two objectives."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torsor.base.checks import number
from torsor.base.deprecation import renamed_argument
from torsor.base.errors import ModelError, describe
from torsor.motion.problem import MotionProblem, MotionResult
from torsor.motion.sequence import VALUE, WEIGHT, MotionSequence


def continuation(
    make_problem: Callable[[Any], MotionProblem], values: Iterable[Any], start: Any = None, **settings: Any
) -> MotionSequence:
    """Return the results of ``make_problem(value)`` for each value, each started from the result before.

    ``start`` is the start of the first, ``settings`` are those of ``MotionProblem.solve``. The results are indexed like
    a list, and are saved, read and drawn together: ``save``, ``torsor.load_result``, ``plot``.

    Example:
        >>> from torsor import motion
        >>> robot = torsor.library.two_link()
        >>> def reach(limit):
        ...     ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        ...     phase, limits = motion.Phase((0.1, 2.0), points=6), motion.Torques(upper=limit)
        ...     return motion.MotionProblem(robot, phase, motion.Time(), [*ends, limits])
        >>> [round(each.T, 4) for each in motion.continuation(reach, [10.0, 12.0, 15.0])]
        [0.4212, 0.3845, 0.3439]
    """
    return _solved(make_problem, values, VALUE, start, settings)


def _solved(
    make_problem: Callable[[Any], MotionProblem],
    values: Iterable[Any],
    parameter: str,
    start: Any,
    settings: Mapping[str, Any],
) -> MotionSequence:
    given, found = tuple(values), list[MotionResult]()
    for value in given:
        found.append(make_problem(value).solve(start=found[-1] if found else start, **settings))
    return MotionSequence(tuple(found), given, parameter)


def pareto(
    problem: MotionProblem, weights: Sequence[float] = (), *, shares: Sequence[float] | None = None, **settings: Any
) -> MotionSequence:
    """Return the results for an objective u w1 f1 + (1 - u) w2 f2, for each u of ``weights`` from 0 to 1.

    The problem's objective has two terms f1 and f2; their own weights w1 and w2 should give them similar sizes. Each
    solve starts from the result before.

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
    weights = renamed_argument("pareto", "shares", "weights", shares, weights)
    if len(problem.costs) != 2:
        found = f"the objective has {len(problem.costs)} terms"
        raise ModelError(describe(found, where=problem.name, allowed="two terms"))
    for each in weights:
        number(each, problem.name, "a weight", least=0.0, most=1.0)
    first, second = problem.costs

    def weighted(u: float) -> MotionProblem:
        parts = replace(first, weight=u * first.weight), replace(second, weight=(1 - u) * second.weight)
        return replace(problem, objective=parts)

    return _solved(weighted, weights, WEIGHT, settings.pop("start", None), settings)
