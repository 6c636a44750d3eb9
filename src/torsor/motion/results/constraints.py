"""Active constraints, sensitivities of the optimum to their bounds, and violations by name, also on a finer grid."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.motion.transcription.batch import Batch
from torsor.motion.transcription.program import Program, Row
from torsor.optimisation import row_violations

VARIABLES = ("Duration", "Number", "Control point")  # titles of bounds of variables
FINER = 10  # times as many nodes on the grid on which violations between nodes are checked
TOUCHED = 1e-6  # scaled distance from a bound below which a row is active


class Active(NamedTuple):
    """A row at its bound: its term and label, phase and time, the side and the bound, and dJ/d(bound) in user units.

    ``phase`` and ``time`` (s, since the motion began) are None for conditions at ends and for bounds of variables.
    """

    title: str
    label: str
    phase: int | None
    time: float | None
    side: str
    bound: float
    sensitivity: float


@dataclass(frozen=True)
class Group:
    """All rows of one name: their count, the count of active ones, and their largest violation.

    ``violation`` is in the rows' own units, ``scaled`` is relative to their scales, and ``fine`` is the scaled one on a
    grid ten times finer; ``label`` and ``time`` say where. ``sensitivity`` has {(label, side): dJ/d(bound)} for a bound
    that changes at all times at once.
    """

    title: str
    count: int
    active: int
    violation: float
    scaled: float
    fine: float
    label: str
    time: float | None
    sensitivity: dict[tuple[str, str], float] = field(default_factory=dict)


def time_of(program: Program, x: Array, row: Row) -> float | None:
    """Return the time of a row in s since the start of the motion, or None for conditions at ends."""
    if row.phase is None or row.s is None:
        return None
    seconds = [phase_layout.seconds(x) for phase_layout in program.layout.phases]
    return sum(seconds[: row.phase]) + float(program.layout.phases[row.phase].times(x, np.array(row.s)))


def on_finer_grid(program: Program) -> tuple[Program, Flags]:
    """Return the program with ten times as many nodes, and which of its rows (m,) have to hold.

    Terms that hold only at given moments (``at``) are not checked between them.
    """
    batches, required = list[Batch](), list[Flags]()
    for batch in program.batches:
        terms = batch.kernels.constraints
        if not batch.kernels.m:
            continue
        everywhere = [term.at is None for term in terms]
        inserted = 1 if not any(everywhere) else FINER
        parts = np.arange(inserted) / inserted
        s = np.append((batch.s[:-1, None] + np.diff(batch.s)[:, None] * parts).ravel(), batch.s[-1])
        batches.append(replace(batch, s=s, weights=np.zeros(len(s))))
        between = np.repeat(everywhere, [len(bound.labels) for bound in batch.kernels.rows])
        required.append((between | (np.arange(len(s)) % inserted == 0)[:, None]).ravel())
    required.append(np.ones(program.linear.m, dtype=bool))
    return replace(program, batches=tuple(batches)), np.concatenate(required)


def active_rows(program: Program, x: Array, multipliers: Array, bound_multipliers: Array) -> list[Active]:
    """Return the rows and variables at their bounds.

    With L = f + multipliers . rows, df/d(bound) = -multiplier, here per unit of the unscaled row. A row is active if it
    is at its bound, or if its multiplier exceeds the distance from it, which an interior-point method never closes.
    """
    g, lower, upper, scales = program.value(x)[1], program.row_lower, program.row_upper, program.scales
    found = []
    for k in map(int, np.flatnonzero(_touching(g, lower, upper, multipliers))):
        row = program.rows[k]
        side, bound = _side(g[k], lower[k], upper[k], multipliers[k])
        sensitivity = -float(multipliers[k] / scales[k])
        at = row.phase, time_of(program, x, row)
        found.append(Active(row.title, row.label, *at, side, float(bound * scales[k]), sensitivity))
    near = _touching(x, program.lower, program.upper, bound_multipliers)
    for k, (title, label) in _variables(program).items():
        if near[k]:
            side, bound = _side(x[k], program.lower[k], program.upper[k], bound_multipliers[k])
            found.append(Active(title, label, None, None, side, float(bound), -float(bound_multipliers[k])))
    return found


def _variables(program: Program) -> dict[int, tuple[str, str]]:
    """Return a title and a label for each variable."""
    found = dict[int, tuple[str, str]]()
    for phase, phase_layout in enumerate(program.layout.phases):
        for profile, point in np.argwhere(phase_layout.columns >= 0).tolist():
            label = f"{point} of profile {profile}, phase {phase}"
            found[int(phase_layout.columns[profile, point])] = VARIABLES[2], label
        if phase_layout.duration >= 0:
            found[phase_layout.duration] = VARIABLES[0], f"phase {phase}"
    return found | {column: (VARIABLES[1], name) for name, column in program.layout.numbers.items()}


def _touching(values: Array, lower: Array, upper: Array, multipliers: Array) -> Flags:
    distance = np.minimum(upper - values, values - lower)
    return np.asarray((lower == upper) | (distance <= TOUCHED) | (np.abs(multipliers) > distance))


def _side(value: float, lower: float, upper: float, multiplier: float) -> tuple[str, float]:
    if lower == upper:
        return "equal", lower
    above = multiplier > 0 if abs(multiplier) > TOUCHED else upper - value < value - lower
    return ("upper", upper) if above else ("lower", lower)


def groups(
    program: Program, x: Array, multipliers: Array, active: list[Active], fine: tuple[Program, Flags]
) -> dict[str, Group]:
    """Return the rows grouped by the names of their terms; sensitivities are summed over all times."""
    between = defaultdict[str, float](float)
    with np.errstate(invalid="ignore"):
        amounts = np.where(fine[1], np.nan_to_num(row_violations(fine[0], x), nan=np.inf, posinf=np.inf), 0.0)
    for row, each in zip(fine[0].rows, amounts, strict=True):
        between[row.title] = max(between[row.title], float(each))
    places = defaultdict[str, list[int]](list)
    for k, row in enumerate(program.rows):
        places[row.title].append(k)
    outside, found = row_violations(program, x), dict[str, Group]()
    for title, own in places.items():
        worst = own[int(np.argmax(outside[own]))]
        row, sensitivity = program.rows[worst], defaultdict[tuple[str, str], float](float)
        seen = [each for each in active if each.title == title]
        sides = {(each.label, each.side) for each in seen}
        for k in own:
            equal = program.row_lower[k] == program.row_upper[k]
            key = program.rows[k].label, "equal" if equal else "upper" if multipliers[k] > 0 else "lower"
            if key in sides:
                sensitivity[key] -= float(multipliers[k] / program.scales[k])
        own_units, scaled = float((outside * program.scales)[own].max()), float(outside[worst])
        sizes, time = (own_units, scaled, max(between[title], scaled)), time_of(program, x, row)
        found[title] = Group(title, len(own), len(seen), *sizes, row.label, time, dict(sensitivity))
    return found
