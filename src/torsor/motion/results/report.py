"""Reports of a solution: tables for the terminal, plain values for JSON, and a figure of the curves."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from torsor.base import documents
from torsor.base.figures import Bound, Quantity, checked_what, plot_quantities
from torsor.base.summary import Summary, titled_table
from torsor.mechanism.friction import friction_jumps
from torsor.mechanism.mechanism import FORCES, robot_facts, units
from torsor.motion.results.replay import trajectory
from torsor.motion.results.solution import BETWEEN, FINER_FACTOR, VARIABLE_TITLES, Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Title of each quantity, and its unit, where {} is the unit of the coordinate or of its force.
QUANTITIES = {
    "q": ("Positions", "{}"), "v": ("Velocities", "{}/s"), "a": ("Accelerations", "{}/s²"), "j": ("Jerks", "{}/s³"),
    "tau": ("Forces", "{}"), "tau_rate": ("Force rates", "{}/s"),
    "reactions": ("Joint reactions: force magnitude", "N"),
}  # fmt: skip
MOTION_QUANTITIES = ("q", "v", "a", "j")  # these omit frozen coordinates
CONTACT_SUFFIX = ", with contact wrenches"
DEFAULT_QUANTITIES = ("q", "v", "tau", "reactions")


def plot(result: Solution, path: str | Path | None, what: str | Sequence[str] | None) -> "Figure":
    """Plot each quantity over time in panels and return the figure; values beyond the bounds are shaded."""
    if what is None:
        rates = ("tau_rate",) if any(True for _ in _bounds(result, "tau_rate", result.force_names)) else ()
        what = (*DEFAULT_QUANTITIES[:-1], *rates, DEFAULT_QUANTITIES[-1])
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
        sizes, more = np.linalg.norm(wrenches[..., 3:], axis=-1), CONTACT_SUFFIX if touches else ""
        return Quantity(title + more, robot.joint_names, [form] * len(robot.joint_names), sizes)
    names: Sequence[str] = robot.position_names if name == "q" else robot.coordinate_names
    unit_names, values = positions if name == "q" else rates, np.asarray(getattr(result, name))
    contact = result.problem.contact(result) if name == "tau" else None
    jumps = None
    if name.startswith("tau"):
        values = values if contact is None else contact[0]
        names = names if contact is not None else result.force_names
        known = dict(zip(robot.coordinate_names, rates, strict=True))
        unit_names = [FORCES[known[name]] for name in names]
    if name == "tau" and not robot.loops:
        jumps = friction_jumps(robot, result.v)
    title = title + CONTACT_SUFFIX if contact is not None else title
    moves = [
        k
        for k, coordinate in enumerate(names)
        if name not in MOTION_QUANTITIES or coordinate not in result.problem.frozen
    ]
    names, unit_names, values = [names[k] for k in moves], [unit_names[k] for k in moves], values[:, moves]
    bounds = tuple(_bounds(result, name, names))
    return Quantity(title, names, [form.format(unit) for unit in unit_names], values, bounds, jumps)


def _bounds(result: Solution, name: str, names: Sequence[str]) -> Iterator[Bound]:
    """Yield the time span in which each term bounds the quantity, and the bounds of its curves."""
    begun, labels = np.cumsum(result.durations) - result.durations, list(names)
    for batch in result.program.batches:
        T, start = result.durations[batch.phase], begun[batch.phase]
        for term, bound in zip(batch.kernels.constraints, batch.kernels.rows, strict=True):
            known = [k for k, label in enumerate(bound.labels) if label in labels]
            if getattr(term, "quantity", "") == name and term.at is None and known:
                lower, upper = np.full(len(labels), -np.inf), np.full(len(labels), np.inf)
                places = [labels.index(bound.labels[k]) for k in known]
                lower[places], upper[places] = bound.lower[known], bound.upper[known]
                if bool(np.isfinite(lower).any() or np.isfinite(upper).any()):
                    yield Bound(start + T * float(batch.s[0]), start + T * float(batch.s[-1]), lower, upper)


MAX_SENSITIVITIES = 10  # largest number of sensitivities shown


def _figures(result: Solution) -> dict[str, str]:
    counts = result.counts
    return {
        "status": escape(result.status),
        "duration T (s)": f"{result.T:.8g}",
        **{
            f"  phase {k} (s)": f"{duration:.8g}"
            for k, duration in enumerate(result.durations)
            if len(result.durations) > 1
        },
        "objective": f"{result.objective:.8g}",
        **(
            {"  estimated distance from its limit": f"{100 * result.distance:.2g} %"}
            if np.isfinite(result.distance)
            else {}
        ),
        **{
            f"  {escape(part.title)}": f"{part.weight:.4g} x {part.value:.8g}"
            + (f" (exact {part.exact:.8g})" if part.exact != part.value else "")
            for part in result.parts
        },
        **{escape(name): f"{result.numbers[name]:.8g}" for name in result.problem.shared},
        "second-order conditions": _second_order(result),
        "violation at the nodes (accepted)": f"{result.max_violation:.2e} ({result.accepted_violation:.0e})",
        "violation between the nodes (accepted)": f"{result.max_violation_fine:.2e} ({BETWEEN:.0e})",
        "variables (known, frozen)": f"{counts['variables']} ({counts['known']}, {counts['frozen']})",
        "constraints (equalities)": f"{counts['constraints']} ({counts['equalities']})",
        "solver, iterations": f"{result.solver}, {result.iterations}",
        "setup, solver (s)": f"{result.setup_seconds:.3f}, {result.solve_seconds:.3f}",
    }


def _second_order(result: Solution) -> str:
    """Return the result of the curvature check at the optimum."""
    curvature = result.curvature
    if curvature is None:
        return "not checked"
    if curvature.is_minimum:
        return "no negative curvature"
    return f"saddle point, curvature {curvature.least:.2g}"


def _constraints(result: Solution) -> Table:
    table = titled_table("Constraints", "name", "rows", "active", "violation", "of its scale", "between nodes")
    table.caption = (
        "The solver enforces constraints at the nodes. Between the nodes they are checked on a grid "
        f"{FINER_FACTOR} times finer; violations above {BETWEEN:g} of the scale make a motion optimal "
        "at the nodes only."
    )
    table.caption_justify = "left"
    for title, group in result.constraints.items():
        sizes = (f"{size:.1e}" for size in (group.violation, group.scaled, group.fine))
        table.add_row(escape(title), str(group.count), str(group.active), *sizes)
    return table


def _sensitivities(result: Solution) -> Table:
    """Return a table of the ``MAX_SENSITIVITIES`` bounds to which the objective is most sensitive, largest first."""
    table = titled_table("Sensitivity of the objective to bounds", "name", "of", "side", "dJ/d(bound)")
    sensitivities = [
        (title, label, side, value)
        for title, group in result.constraints.items()
        for (label, side), value in group.sensitivity.items()
    ]
    sensitivities += [
        (row.title, row.label, row.side, row.sensitivity) for row in result.active if row.title in VARIABLE_TITLES
    ]
    for title, label, side, value in sorted(sensitivities, key=lambda each: -abs(each[-1]))[:MAX_SENSITIVITIES]:
        table.add_row(escape(title), escape(label), side, f"{value:.4g}")
    return table


def tables(result: Solution) -> Group:
    """Return the report tables of a result."""
    shown = [titled_table(f"Motion {escape(result.problem.name)}", "quantity", "value")]
    for name, value in _figures(result).items():
        shown[0].add_row(name, value)
    if result.constraints:
        shown.append(_constraints(result))
    if result.active:
        shown.append(_sensitivities(result))
    if result.passes:
        columns = "control points", "nodes", "violation between nodes", "objective", "iterations"
        rounds = titled_table("Refinement", "round", *columns)
        for k, refinement in enumerate(result.passes):
            counts = str(refinement.points or ""), str(refinement.nodes)
            sizes = f"{refinement.violation:.2e}", f"{refinement.objective:.8g}"
            rounds.add_row(str(k), *counts, *sizes, str(refinement.iterations))
        shown.append(rounds)
    return Group(*shown)


def plain(result: Solution) -> dict[str, Any]:
    """Return key figures, constraints and the trajectory as numbers, lists and strings."""
    robot, at, contact = result.robot, result.moments, result.problem.contact(result)
    content: dict[str, Any] = {
        "units": {"T": "s", "durations": "s", "trajectory.t": "s"},
        "robot": robot_facts(robot),
        "settings": documents.plain(result.settings),
        "name": result.problem.name,
        **{name: getattr(result, name) for name in ("status", "is_solved", "T")},
        "durations": result.durations.tolist(),
        "objective": result.objective,
        "distance": result.distance if np.isfinite(result.distance) else None,
        "second_order": None
        if result.curvature is None
        else {
            "is_minimum": result.curvature.is_minimum,
            "least_curvature": result.curvature.least,
            "active": result.curvature.active,
        },
        "parts": [
            {"name": part.title, "weight": part.weight, "value": part.value, "exact": part.exact}
            for part in result.parts
        ],
        **{name: getattr(result, name) for name in ("numbers", "solver", "iterations")},
        **{name: getattr(result, name) for name in ("setup_seconds", "solve_seconds", "max_violation")},
        "max_violation_fine": result.max_violation_fine if np.isfinite(result.max_violation_fine) else None,
        **result.counts,
    }
    content["active"] = [
        {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in row.items()}
        for row in (row._asdict() for row in result.active)
    ]
    content["passes"] = [refinement._asdict() for refinement in result.passes]
    content["trajectory"] = {
        "positions": list(robot.position_names),
        "coordinates": list(robot.coordinate_names),
        "forces": list(robot.coordinate_names if contact is not None else result.force_names),
        "t": at.times.tolist(),
        **{name: getattr(at, name).tolist() for name in ("q", "v", "a")},
        "tau": (at.tau if contact is None else contact[0]).tolist(),
    }
    return content


def summary(result: Solution) -> Summary:
    """Return a short table of a result: key figures and constraints."""
    terms = [f"{part.weight:.4g} x {part.title}" for part in result.parts]
    facts = {
        "robot": result.robot.name,
        "status": result.status,
        "duration T": f"{result.T:.6g} s",
        "objective": f"{' + '.join(terms)} = {result.objective:.6g}",
        "solver": f"{result.solver}, {result.iterations} iterations, {result.solve_seconds:.3g} s",
        "largest violation": f"{result.max_violation:.1e} of its scale",
    }
    rows = [(title, str(group.count), str(group.active)) for title, group in result.constraints.items()]
    return Summary(f"Motion {result.problem.name}", facts, ("constraint", "rows", "active"), rows)
