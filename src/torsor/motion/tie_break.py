"""The tie-break of minimum-time motions: least effort among the fastest.

Where one joint limits the time, the others may move in many ways that are equally fast: an optimum of the time alone
does not determine them, and they chatter between their limits. A second problem does: the same constraints, durations
that are at most 1e-4 of themselves longer than the least ones, and the integral of squared forces as its objective,
each relative to the bound that the problem gives it.
"""

from dataclasses import replace

import numpy as np

from torsor.base.errors import ModelError, describe
from torsor.motion.results.solution import Solution
from torsor.motion.statement import ProblemStatement
from torsor.motion.terms.limits import Torques
from torsor.motion.terms.objectives import Effort, Time

LONGER = 1e-4  # fraction of its least duration by which a phase may be longer, so that there is room within the bounds


def check_tie_break(problem: ProblemStatement) -> None:
    """Raise ModelError where the objective is not the time, or no duration is free.

    Example:
        >>> from torsor import motion
        >>> check_tie_break(motion.PROBLEMS["two-link-time"]())
    """
    if not all(isinstance(each, Time) for each in problem.costs):
        found = f"tie_break with the objective {', '.join(each.title for each in problem.costs)}"
        raise ModelError(describe(found, where=problem.name, allowed="the objective Time alone", fix="leave it out"))
    if all(phase.bounds[0] == phase.bounds[1] for phase in problem.stages):
        fix = "leave it out, or give bounds (least, most) of a duration"
        raise ModelError(describe("tie_break of given durations", where=problem.name, fix=fix))


def least_effort_problem(found: Solution) -> ProblemStatement:
    """Return the problem of least effort whose phases last as long as those of a solution, or slightly longer.

    Its variables are those of the given problem.
    """
    problem, phases = found.problem, []
    for phase, T in zip(found.problem.stages, found.durations, strict=True):
        least, most = phase.bounds
        bounds = (least, max(least, min(most, float(T) * (1 + LONGER))))
        phases.append(phase if least == most else replace(phase, duration=bounds))
    return replace(problem, objective=Effort(scale=_scales(problem), name="tie-break"), phases=phases, settings={})


def _scales(problem: ProblemStatement) -> list[float]:
    """Return the size of each force: its largest bound in the problem, or else in the robot, or 1."""
    robot = problem.model.robot
    names, limits = problem.node.force_names, dict(zip(robot.coordinate_names, robot.effort_limit, strict=True))
    sizes = {name: float(limits[name]) for name in names}
    for term in problem.conditions:
        if type(term) is Torques and (term.lower is not None or term.upper is not None):
            lower, upper = term.bounds_of(robot, names)
            own = np.maximum(np.abs(lower), np.abs(upper))
            sizes |= {name: float(each) for name, each in zip(names, own, strict=True) if np.isfinite(each)}
    return [size if 0 < size < np.inf else 1.0 for size in sizes.values()]
