"""The figure of a solution: its curves with the bounds of the problem."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.figures import Bound, Quantity, checked_what, friction_jumps, plot_quantities
from torsor.mechanism.units import FORCES, units
from torsor.motion.results.replay import trajectory
from torsor.motion.results.solution import Solution

# Title of each quantity, and how its unit follows from that of the coordinate, or of its force.
QUANTITIES = {
    "q": ("Positions", "{}"),
    "v": ("Velocities", "{}/s"),
    "a": ("Accelerations", "{}/s²"),
    "j": ("Jerks", "{}/s³"),
    "tau": ("Forces", "{}"),
    "tau_rate": ("Rates of the forces", "{}/s"),
    "reactions": ("Joint reactions: size of the force", "N"),
}
MOTION = ("q", "v", "a", "j")  # without the coordinates that are frozen
CONTACT = ", with the wrenches of contact"
DEFAULT = ("q", "v", "tau", "reactions")


def plot(result: Solution, path: str | Path | None, what: str | Sequence[str] | None) -> Any:
    """Return a figure with panels for each quantity over time; values beyond the bounds are shaded."""
    if what is None:
        rates = ("tau_rate",) if any(True for _ in _bounds(result, "tau_rate", result.force_names)) else ()
        what = (*DEFAULT[:-1], *rates, DEFAULT[-1])
    drawn = [_quantity(result, name) for name in checked_what(what, QUANTITIES)]
    aims = " + ".join(part.title for part in result.problem.costs)
    who = f"{result.robot.name}: {result.problem.name}, minimise {aims}"
    how = f"{result.solver}: {result.status}, T = {result.T:.5g} s"
    return plot_quantities(drawn, result.times, f"{who}\n{how}", path, marks=np.cumsum(result.durations)[:-1])


def _quantity(result: Solution, name: str) -> Quantity:
    robot, (positions, rates) = result.robot, units(result.robot)
    title, form = QUANTITIES[name]
    if name == "reactions":
        touches = result.problem.contact(result) is not None
        wrenches = trajectory(result).reactions if touches else result.reactions
        sizes, more = np.linalg.norm(wrenches[..., 3:], axis=-1), CONTACT if touches else ""
        return Quantity(title + more, robot.joint_names, [form] * len(robot.joint_names), sizes)
    names: Sequence[str] = robot.position_names if name == "q" else robot.coordinate_names
    own, values = positions if name == "q" else rates, np.asarray(getattr(result, name))
    contact = result.problem.contact(result) if name == "tau" else None
    jumps = None
    if name.startswith("tau"):
        values = values if contact is None else contact[0]
        names = names if contact is not None else result.force_names
        known = dict(zip(robot.coordinate_names, rates, strict=True))
        own = [FORCES[known[each]] for each in names]
    if name == "tau" and not robot.loops:
        jumps = friction_jumps(robot, result.v)
    title = title + CONTACT if contact is not None else title
    moves = [k for k, each in enumerate(names) if name not in MOTION or each not in result.problem.frozen]
    names, own, values = [names[k] for k in moves], [own[k] for k in moves], values[:, moves]
    bounds = tuple(_bounds(result, name, names))
    return Quantity(title, names, [form.format(unit) for unit in own], values, bounds, jumps)


def _bounds(result: Solution, name: str, names: Sequence[str]) -> Iterator[Bound]:
    """Yield the times between which a term bounds this quantity, and its bounds of the curves."""
    begun, labels = np.cumsum(result.durations) - result.durations, list(names)
    for batch in result.program.batches:
        T, start = result.durations[batch.phase], begun[batch.phase]
        for term, bound in zip(batch.kernels.constraints, batch.kernels.rows, strict=True):
            known = [k for k, label in enumerate(bound.labels) if label in labels]
            if getattr(term, "quantity", "") == name and term.at is None and known:
                lower, upper = np.full(len(labels), -np.inf), np.full(len(labels), np.inf)
                places = [labels.index(bound.labels[k]) for k in known]
                lower[places], upper[places] = bound.lower[known], bound.upper[known]
                if _is_bounded(lower, upper):
                    yield Bound(start + T * float(batch.s[0]), start + T * float(batch.s[-1]), lower, upper)


def _is_bounded(lower: Array, upper: Array) -> bool:
    return bool(np.isfinite(lower).any() or np.isfinite(upper).any())
