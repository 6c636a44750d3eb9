"""Reports of a solution: tables for the terminal, and plain values for JSON."""

from typing import Any

import numpy as np
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from torsor.base import documents
from torsor.base.documents import robot_facts
from torsor.base.summary import Summary, as_text
from torsor.motion.results.constraints import FINER, VARIABLES
from torsor.motion.results.solution import BETWEEN, Solution

MOST = 10  # sensitivities that are shown


def titled_table(title: str, *columns: str) -> Table:
    """Return an empty table with its title and its columns, the first to the left and the others to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    return table


def _figures(result: Solution) -> Table:
    table = titled_table(f"Motion {escape(result.problem.name)}", "what", "value")
    counts = result.counts
    rows = {
        "status": escape(result.status),
        "duration T (s)": f"{result.T:.8g}",
        **{f"  phase {k} (s)": f"{each:.8g}" for k, each in enumerate(result.durations) if len(result.durations) > 1},
        "objective": f"{result.objective:.8g}",
        **{f"  {escape(part.title)}": f"{part.weight:.4g} x {part.value:.8g}" for part in result.parts},
        **{escape(name): f"{result.numbers[name]:.8g}" for name in result.problem.shared},
        "violation at the nodes (accepted)": f"{result.max_violation:.2e} ({result.accepted_violation:.0e})",
        "violation between the nodes (accepted)": f"{result.max_violation_fine:.2e} ({BETWEEN:.0e})",
        "variables (known, frozen)": f"{counts['variables']} ({counts['known']}, {counts['frozen']})",
        "constraints (equalities)": f"{counts['constraints']} ({counts['equalities']})",
        "solver, iterations": f"{result.solver}, {result.iterations}",
        "setup, solver (s)": f"{result.setup_seconds:.3f}, {result.solve_seconds:.3f}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _constraints(result: Solution) -> Table:
    table = titled_table("Constraints", "name", "rows", "active", "violation", "of its scale", "between nodes")
    table.caption = (
        "The solver enforces constraints at the nodes. Between the nodes they are checked, on a grid "
        f"{FINER} times finer; violations above {BETWEEN:g} of the scale make a motion optimal at the nodes only."
    )
    table.caption_justify = "left"
    for title, group in result.constraints.items():
        sizes = (f"{each:.1e}" for each in (group.violation, group.scaled, group.fine))
        table.add_row(escape(title), str(group.count), str(group.active), *sizes)
    return table


def _sensitivities(result: Solution) -> Table:
    """Return the bounds to which the objective is most sensitive."""
    table = titled_table("Sensitivity of the objective to bounds", "name", "of", "side", "dJ/d(bound)")
    found = [
        (title, label, side, value)
        for title, group in result.constraints.items()
        for (label, side), value in group.sensitivity.items()
    ]
    found += [(row.title, row.label, row.side, row.sensitivity) for row in result.active if row.title in VARIABLES]
    for title, label, side, value in sorted(found, key=lambda each: -abs(each[-1]))[:MOST]:
        table.add_row(escape(title), escape(label), side, f"{value:.4g}")
    return table


def _passes(result: Solution) -> Table:
    table = titled_table("Refinement", "round", "nodes", "violation between nodes", "objective", "iterations")
    for number, each in enumerate(result.passes):
        table.add_row(
            str(number), str(each.nodes), f"{each.violation:.2e}", f"{each.objective:.8g}", str(each.iterations)
        )
    return table


def tables(result: Solution) -> Group:
    """Return the tables of a result."""
    found = [_figures(result)]
    if result.constraints:
        found.append(_constraints(result))
    if result.active:
        found.append(_sensitivities(result))
    if result.passes:
        found.append(_passes(result))
    return Group(*found)


def text(result: Solution, width: int) -> str:
    """Return the tables as text."""
    return as_text(tables(result), width=width)


def plain(result: Solution) -> dict[str, Any]:
    """Return figures, constraints and the trajectory as numbers, lists and strings."""
    robot, at, contact = result.robot, result.moments, result.problem.contact(result)
    found: dict[str, Any] = {
        "units": {"T": "s", "durations": "s", "trajectory.t": "s"},
        "robot": robot_facts(robot),
        "settings": documents.plain(result.settings),
        "name": result.problem.name,
        "status": result.status,
        "is_solved": result.is_solved,
        "T": result.T,
        "durations": result.durations.tolist(),
        "objective": result.objective,
        "parts": [{"name": part.title, "weight": part.weight, "value": part.value} for part in result.parts],
        "numbers": result.numbers,
        "solver": result.solver,
        "iterations": result.iterations,
        "setup_seconds": result.setup_seconds,
        "solve_seconds": result.solve_seconds,
        "max_violation": result.max_violation,
        "max_violation_fine": result.max_violation_fine if np.isfinite(result.max_violation_fine) else None,
        **result.counts,
    }
    found["active"] = [
        {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in row.items()}
        for row in (each._asdict() for each in result.active)
    ]
    found["passes"] = [each._asdict() for each in result.passes]
    found["trajectory"] = {
        "positions": list(robot.position_names),
        "coordinates": list(robot.coordinate_names),
        "forces": list(robot.coordinate_names if contact is not None else result.force_names),
        "t": at.times.tolist(),
        **{name: getattr(at, name).tolist() for name in ("q", "v", "a")},
        "tau": (at.tau if contact is None else contact[0]).tolist(),
    }
    return found


def summary(result: Solution) -> Summary:
    """Return the short table of a result: figures, and the constraints."""
    facts = {
        "robot": result.robot.name,
        "status": result.status,
        "duration T": f"{result.T:.6g} s",
        "objective": " + ".join(f"{part.weight:.4g} x {part.title}" for part in result.parts)
        + f" = {result.objective:.6g}",
        "solver": f"{result.solver}, {result.iterations} iterations, {result.solve_seconds:.3g} s",
        "largest violation": f"{result.max_violation:.1e} of its scale",
    }
    rows = [(title, str(group.count), str(group.active)) for title, group in result.constraints.items()]
    return Summary(f"Motion {result.problem.name}", facts, ("constraint", "rows", "active"), rows)
