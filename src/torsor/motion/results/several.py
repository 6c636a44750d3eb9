"""Several results of motion problems together, each with a label such as its seed: on disk, as a table, as a figure."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.archive import Archive
from torsor.base.documents import plain, robot_facts
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.base.summary import Summary
from torsor.base.tables import Column
from torsor.motion.results import files
from torsor.motion.results.files import P
from torsor.motion.results.solution import Solution
from torsor.motion.statement import ProblemStatement

SHARED = ("problem", "problem_robot", "problem_json", "robot")  # arrays that most results have in common
MOST_RESULTS = 1_000_000
ALIKE = 1e-3  # relative difference of objectives below which their axis is not stretched further


def archive_of_several(results: Sequence[Solution], seeds: Sequence[int]) -> Archive:
    """Return all that a file of results from random starts holds."""
    arrays, settings = packed(results)
    units = {"seeds": "1", "0/ and so on": "as in a motion"}
    return Archive("multistart", {"seeds": np.array(seeds, dtype=np.int64)} | arrays, settings, units)


def packed(results: Sequence[Solution]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the arrays of several results, what they share once, and the settings of the first."""
    arrays: dict[str, Any] = {}
    first = files.archive(results[0])
    for k, result in enumerate(results):
        own = first if k == 0 else files.archive(result)
        if k and all(np.array_equal(own.arrays.get(name, 0), first.arrays.get(name, 0)) for name in SHARED):
            own = Archive(
                own.kind, {name: each for name, each in own.arrays.items() if name not in SHARED}, own.settings
            )
        arrays |= own.within(f"{k}/")
    return arrays, first.settings


def several_of_archive(
    found: Archive, problem: P | None, read_problem: Callable[[Path], P]
) -> tuple[list[Solution], tuple[int, ...]]:
    """Return the results in an archive and their seeds."""
    seeds = found.arrays["seeds"]
    if seeds.ndim != 1 or seeds.dtype.kind not in "iu" or not 0 < len(seeds) <= MOST_RESULTS:
        raise ValueError("seeds are not a row of whole numbers")
    return unpacked(found, [problem] * len(seeds), read_problem), tuple(int(seed) for seed in seeds)


def unpacked(found: Archive, problems: Sequence[P | None], read_problem: Callable[[Path], P]) -> list[Solution]:
    """Return the results of ``packed``; ``problems`` has that of each, or None where the file has it."""
    solutions = list[Solution]()
    for k, problem in enumerate(problems):
        part = found.part(f"{k}/")
        shares = k > 0 and problem is None and not any(name in part.arrays for name in SHARED)
        common: Any = solutions[0].problem if shares else problem
        solutions.append(files.of_archive(part, common, read_problem))
    return solutions


def columns(results: Sequence[Solution], labels: Sequence[Any], name: str = "seed") -> list[Column]:
    """Return the table: label, objective, duration, iterations and status of each result."""
    return [
        Column(name, "1" if all(map(is_number, labels)) else "", list(labels)),
        Column("objective", "1", [each.outcome.objective for each in results]),
        Column("T", "s", [each.T for each in results]),
        Column("iterations", "1", [each.iterations for each in results]),
        Column("solved", "", [str(each.is_solved) for each in results]),
        Column("status", "", [each.status for each in results]),
    ]


def is_number(value: object) -> bool:
    """Whether a label is a number.

    Example:
        >>> is_number(0.5), is_number("slow")
        (True, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def content(results: Sequence[Solution], labels: Sequence[Any], name: str = "seed") -> dict[str, Any]:
    """Return the results as plain values, without their motions."""
    names = (name, "objective", "T", "iterations", "is_solved", "status")
    rows = zip(*(column.values for column in columns(results, labels, name)), strict=True)
    table = [dict(zip(names, row, strict=True)) | {"is_solved": row[4] == "True"} for row in rows]
    problem: ProblemStatement = results[0].problem
    return {
        "units": {"T": "s"},
        "robot": robot_facts(results[0].robot),
        "settings": plain(results[0].settings),
        "name": problem.name,
        "results": plain(table),
    }


def plot(results: Sequence[Solution], seeds: Sequence[int], path: str | Path | None) -> Any:
    """Return a figure of the objectives, the best first; those that were not solved are hollow."""
    figure = new_figure(8.0, 4.0)
    axes = figure.subplots()
    values = np.array([each.outcome.objective for each in results])
    rank = np.arange(1, len(values) + 1)
    for solved, label, face in ((True, "solved", "C0"), (False, "not solved", "none")):
        own = np.array([each.is_solved is solved for each in results]) & np.isfinite(values)
        if own.any():
            axes.plot(rank[own], values[own], "o", color="C0", markerfacecolor=face, label=label)
    for x, y, seed in zip(rank, values, seeds, strict=True):
        if np.isfinite(y):
            axes.annotate(str(seed), (x, y), textcoords="offset points", xytext=(4, 4), fontsize=7, color="0.4")
    styled(axes, "objective of each start; numbers are seeds", "objective")
    axes.set_xlabel("rank")
    axes.locator_params("x", integer=True)
    axes.ticklabel_format(axis="y", useOffset=False)
    known = values[np.isfinite(values)]
    if known.size and np.ptp(known) < ALIKE * np.abs(known).max():  # starts that agree look so
        half = ALIKE * float(np.abs(known).max())
        axes.set_ylim(float(known.mean()) - half, float(known.mean()) + half)
    if axes.lines:
        axes.legend(frameon=False)
    best = results[0]
    aims = " + ".join(part.title for part in best.problem.costs)
    title = f"{best.robot.name}: {best.problem.name}, minimise {aims}; {len(results)} random starts, {best.solver}"
    figure.suptitle(label_of_title(title))
    return saved(figure, path)


def summary(results: Sequence[Solution], labels: Sequence[Any], title: str, name: str = "seed") -> Summary:
    """Return the short table of several results."""
    rows = [
        (str(label), f"{each.outcome.objective:.6g}", str(each.iterations), each.status)
        for label, each in zip(labels, results, strict=True)
    ]
    facts = {"problem": results[0].problem.name, "robot": results[0].robot.name}
    return Summary(title, facts, (name, "objective", "iterations", "status"), rows)
