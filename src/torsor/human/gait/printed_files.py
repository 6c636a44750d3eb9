"""Searches for the printed gait on disk: the outcomes of their stages as arrays, read back with checks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torsor.base.files import check_array
from torsor.human.gait.printed_set import SLIPS, Stage
from torsor.motion.results.files import LONGEST, MOST, outcome_arrays
from torsor.optimisation.outcome import Iteration, Outcome

FIGURES = ("slack", "slip", "objective", "iterations", "is_solved", "violation")


def stage_arrays(stages: Sequence[Stage]) -> dict[str, Any]:
    """Return the stages as arrays whose names begin with their number."""
    found: dict[str, Any] = {"stages": len(stages)}
    for k, (slack, slip, outcome) in enumerate(stages):
        figures = [slack, slip, outcome.objective, outcome.iterations, outcome.is_solved, outcome.violation]
        own = outcome_arrays(outcome) | {"figures": figures}
        found |= {f"stage{k}/{name}": value for name, value in own.items()}
    return found


def stages_of(found: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return the stages; raise ValueError or KeyError where the arrays are none."""
    count = int(found["stages"])
    if not 0 <= count <= len(SLIPS):
        raise ValueError(f"{count} stages; allowed: 0 to {len(SLIPS)}")
    return tuple(_stage(found, f"stage{k}/") for k in range(count))


def _stage(found: Mapping[str, Any], prefix: str) -> Stage:
    x, multipliers, bounds, log = (found[prefix + name] for name in ("x", "multipliers", "bound_multipliers", "log"))
    figures, status = found[f"{prefix}figures"], str(found[f"{prefix}status"])
    check_array(figures, (len(FIGURES),), "figures")
    for name, array, shape in (
        ("x", x, (x.size,)),
        ("multipliers", multipliers, (multipliers.size,)),
        ("bound_multipliers", bounds, (x.size,)),
        ("log", log, (len(log), len(Iteration._fields))),
    ):
        check_array(array, shape, prefix + name)
    if not np.isfinite(figures[[0, 1, 3]]).all() or not 0 <= figures[3] <= MOST or (np.abs(log[:, 0]) > MOST).any():
        raise ValueError(f"{prefix}figures are not those of a search")
    if len(status) > LONGEST or not status.isprintable():
        raise ValueError("a status that is too long or not printable")
    slack, slip, objective, iterations, is_solved, violation = figures.tolist()
    rows = [Iteration(int(number), *rest) for number, *rest in log.tolist()]
    outcome = Outcome(x, multipliers, bounds, objective, int(iterations), status, bool(is_solved), rows, violation)
    return Stage(slack, slip, outcome)
