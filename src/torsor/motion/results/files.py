"""Files of one or more solutions: the contents of .npz files, including the problem, and their validation."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from torsor.base.archive import Archive, as_bytes, as_text
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.figures import label_of_title, new_figure, saved, styled
from torsor.base.files import check_array
from torsor.base.summary import Summary
from torsor.base.tables import Column
from torsor.mechanism.mechanism import robot_facts
from torsor.motion.encoding import decoded, encoded
from torsor.motion.files import save_problem
from torsor.motion.results.solution import Pass, Solution
from torsor.motion.statement import ProblemStatement
from torsor.motion.transcription.phase import Phase
from torsor.optimisation import SOLVERS
from torsor.optimisation.program import Iteration, Outcome, largest_violation
from torsor.robot.archived import robot_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


P = TypeVar("P", bound=ProblemStatement)

LONGEST, MAX_ITERATIONS = 1000, 10**9  # largest length of a status, and number of iterations
OBJECTIVE_TOLERANCE = 1e-6  # relative difference within which two objectives are equal
MAX_BOUND_VIOLATION = 1e-3  # largest violation of a variable bound in a solver's result
# Header keys: the problem name, and the reason why it is not included.
NAME_KEY, REASON_KEY = "problem", "without_problem"
UNITS = {"x": "control points rad, m; durations s; other numbers SI", "seconds": "s", "multipliers": "scaled rows"}
PROBLEM_FILES = {"problem": "problem.toml", "problem_robot": "problem.robot.toml"}


def outcome_arrays(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome of a solver as arrays."""
    return {
        "x": outcome.x,
        "multipliers": outcome.multipliers,
        "bound_multipliers": outcome.bound_multipliers,
        "log": np.array(outcome.log, dtype=float).reshape(-1, len(Iteration._fields)),
        "status": outcome.status,
    }


def archive(result: Solution) -> Archive:
    """Return the contents of a solution file."""
    outcome = result.outcome
    arrays = outcome_arrays(outcome) | {
        "figures": [outcome.objective, outcome.iterations, outcome.is_solved, result.tolerance],
        "seconds": [result.setup_seconds, result.solve_seconds],
        "passes": np.array(result.passes, dtype=float).reshape(-1, len(Pass._fields)),
        "solver": result.solver,
        "robot": as_bytes(robot_text(result.robot)),
    }
    if result.passes:  # a problem passed to ``load`` lacks the knots and nodes added by refinement
        for k, phase in enumerate(result.problem.stages):
            arrays |= {f"knots_{k}": phase.spline.inner, f"nodes_{k}": phase.nodes}
    problem, why = _written(result.problem)
    settings = plain(result.settings) | {NAME_KEY: result.problem.name, REASON_KEY: why}
    return Archive("motion", arrays | problem, settings, UNITS)


def _written(problem: ProblemStatement) -> tuple[dict[str, Any], str]:
    """Return the problem as arrays of readable TOML or JSON, or no arrays and the reason."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            save_problem(problem, Path(folder, PROBLEM_FILES["problem"]))
            return {key: as_bytes(Path(folder, name).read_bytes()) for key, name in PROBLEM_FILES.items()}, ""
        except ModelError:
            pass
    try:
        return {"problem_json": as_bytes(encoded(problem))}, ""
    except ModelError as error:  # Python functions: the problem must be passed to ``load``
        return {}, str(error)


def of_archive(found: Archive, problem: P | None, read_problem: Callable[[Path], P]) -> Solution:
    """Return the solution in an archive; ``read_problem`` reads the problem from a TOML file."""
    settings = {key: setting for key, setting in found.settings.items() if key not in (NAME_KEY, REASON_KEY)}
    if problem is None:
        return _solution(found.arrays, settings, _problem(found, read_problem))
    return _solution(found.arrays, settings, _refined_as(found.arrays, problem))


def _refined_as(found: Mapping[str, Any], problem: P) -> P:
    """Return a problem with the knots and nodes that refinement had added when the solution was saved."""
    phases = list[Phase]()
    for k, phase in enumerate(problem.stages):
        knots, nodes = (found.get(f"{name}_{k}") for name in ("knots", "nodes"))
        if knots is None or nodes is None:
            return problem
        for name, values in (("knots", knots), ("nodes", nodes)):
            check_array(values, (len(values),), name)
        is_finer = not np.array_equal(knots, phase.spline.inner)
        points = {"points": None, "knots": knots.tolist()} if is_finer else {}
        is_same = not is_finer and np.array_equal(nodes, phase.nodes)
        phases.append(phase if is_same else replace(phase, nodes=nodes, **points))
    is_same = all(new is old for new, old in zip(phases, problem.stages, strict=True))
    return problem if is_same else problem.with_phases(*phases)


def _problem(archive: Archive, read_problem: Callable[[Path], P]) -> ProblemStatement:
    result = archive.arrays
    if "problem_json" in result:
        return decoded(as_text(result["problem_json"]))
    if "problem" not in result:
        why = archive.settings.get(REASON_KEY) or "it contains Python functions"
        raise ValueError(f"the file does not contain its problem ({str(why)[:LONGEST]}); fix: pass problem=...")
    with tempfile.TemporaryDirectory() as folder:
        for key, name in PROBLEM_FILES.items():
            Path(folder, name).write_bytes(result[key].astype(np.uint8).tobytes())
        return read_problem(Path(folder, PROBLEM_FILES["problem"]))


def _solution(found: Mapping[str, Any], settings: Mapping[str, Any], problem: ProblemStatement) -> Solution:
    program = problem.program
    n, m = program.n, program.m
    shapes: dict[str, tuple[int, ...]] = {"x": (n,), "multipliers": (m,), "bound_multipliers": (n,)}
    shapes |= {"figures": (4,), "seconds": (2,), "log": (len(found["log"]), len(Iteration._fields))}
    most = len(Pass._fields)
    columns = most - 1 if np.shape(found["passes"])[-1] == most - 1 else most  # version 0.2 has no control points
    shapes["passes"] = len(found["passes"]), columns
    for name, shape in shapes.items():
        check_array(found[name], shape, name)
    if not np.isfinite(found["x"]).all() or not np.isfinite(found["figures"][1:]).all():
        raise ValueError("the variables or figures are not finite")
    status, solver = str(found["status"]), str(found["solver"])
    if len(status) > LONGEST or not status.isprintable():  # control characters
        raise ValueError("the status is too long or not printable")
    if solver not in SOLVERS:
        raise ValueError(f"the solver is {solver[:50]!r}; allowed: {', '.join(SOLVERS)}")
    objective, iterations, is_solved, tolerance = found["figures"].tolist()
    if is_solved and not np.isfinite(objective):
        raise ValueError("the optimal objective is not finite")
    if not (0 <= iterations <= MAX_ITERATIONS and tolerance > 0):
        raise ValueError(f"the file has {iterations:g} iterations and a tolerance of {tolerance:g}")
    if not (np.isfinite(found["passes"]).all() and (np.abs(found["log"][:, 0]) <= MAX_ITERATIONS).all()):
        raise ValueError("the log contains numbers that are not finite or too large")
    log = [Iteration(int(number), *rest) for number, *rest in found["log"].tolist()]
    multipliers = found["multipliers"], found["bound_multipliers"]
    if (np.maximum(program.lower - found["x"], found["x"] - program.upper) > MAX_BOUND_VIOLATION).any():
        raise ValueError("variables are outside their bounds")
    value, rows = program.value(found["x"])
    if is_solved and not abs(value - objective) <= OBJECTIVE_TOLERANCE * max(1.0, abs(objective)):
        raise ValueError(f"its objective is {objective:.9g}, but {value:.9g} in this problem: it belongs to another")
    excess = largest_violation(program, found["x"], rows)
    outcome = Outcome(found["x"], *multipliers, objective, int(iterations), status, bool(is_solved), log, excess)
    passes = tuple(
        Pass(int(nodes), off, f, int(count), *map(int, points))
        for nodes, off, f, count, *points in found["passes"].tolist()
    )
    setup, seconds = found["seconds"].tolist()
    return Solution(problem, outcome, solver, tolerance, setup, seconds, passes, settings)


SHARED_ARRAYS = ("problem", "problem_robot", "problem_json", "robot")  # arrays that most results share
MAX_RESULTS = 1_000_000
ALIKE_TOLERANCE = 1e-3  # smallest relative range of the objective axis


def archive_of_several(results: Sequence[Solution], seeds: Sequence[int]) -> Archive:
    """Return the contents of a file of results from random starts."""
    arrays, settings = packed(results)
    units = {"seeds": "1", "0/ and so on": "as in a motion"}
    return Archive("multistart", {"seeds": np.array(seeds, dtype=np.int64)} | arrays, settings, units)


def packed(results: Sequence[Solution]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the arrays of several results, with shared arrays stored once, and the settings of the first result."""
    arrays: dict[str, Any] = {}
    first = archive(results[0])
    for k, result in enumerate(results):
        part = first if k == 0 else archive(result)
        if k and all(np.array_equal(part.arrays.get(name, 0), first.arrays.get(name, 0)) for name in SHARED_ARRAYS):
            kept = {name: array for name, array in part.arrays.items() if name not in SHARED_ARRAYS}
            part = Archive(part.kind, kept, part.settings)
        arrays |= part.within(f"{k}/")
    return arrays, first.settings


def several_of_archive(
    found: Archive, problem: P | None, read_problem: Callable[[Path], P]
) -> tuple[list[Solution], tuple[int, ...]]:
    """Return the results in an archive and their seeds; raise ValueError if the seeds are not a vector of integers."""
    seeds = found.arrays["seeds"]
    if seeds.ndim != 1 or seeds.dtype.kind not in "iu" or not 0 < len(seeds) <= MAX_RESULTS:
        raise ValueError("seeds must be a vector of integers")
    return unpacked(found, [problem] * len(seeds), read_problem), tuple(map(int, seeds))


def unpacked(found: Archive, problems: Sequence[P | None], read_problem: Callable[[Path], P]) -> list[Solution]:
    """Return the results that ``packed`` stored; ``problems`` has an entry for each, None if the file has it."""
    solutions = list[Solution]()
    for k, problem in enumerate(problems):
        part = found.part(f"{k}/")
        shares = k > 0 and problem is None and not any(name in part.arrays for name in SHARED_ARRAYS)
        common: Any = solutions[0].problem if shares else problem
        solutions.append(of_archive(part, common, read_problem))
    return solutions


def columns(results: Sequence[Solution], labels: Sequence[Any], name: str = "seed") -> list[Column]:
    """Return table columns: label, objective, duration T (s), iterations, ``is_solved`` and status of each result."""
    return [
        Column(name, "1" if all(map(is_number, labels)) else "", list(labels)),
        Column("objective", "1", [result.outcome.objective for result in results]),
        Column("T", "s", [result.T for result in results]),
        Column("iterations", "1", [result.iterations for result in results]),
        Column("solved", "", [str(result.is_solved) for result in results]),
        Column("status", "", [result.status for result in results]),
    ]


def is_number(value: object) -> bool:
    """Return whether a label is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def content(results: Sequence[Solution], labels: Sequence[Any], name: str = "seed") -> dict[str, Any]:
    """Return the results as plain values, without their motions."""
    table = [
        {name: label, "objective": result.outcome.objective}
        | {key: getattr(result, key) for key in ("T", "iterations", "is_solved", "status")}
        for label, result in zip(labels, results, strict=True)
    ]
    return {
        "units": {"T": "s"},
        "robot": robot_facts(results[0].robot),
        "settings": plain(results[0].settings),
        "name": results[0].problem.name,
        "results": plain(table),
    }


def plot(results: Sequence[Solution], seeds: Sequence[int], path: str | Path | None) -> "Figure":
    """Plot the objectives, best first; hollow markers denote unsolved results."""
    figure = new_figure(8.0, 4.0)
    axes = figure.subplots()
    values = np.array([result.outcome.objective for result in results])
    rank = np.arange(1, len(values) + 1)
    for solved, label, face in ((True, "solved", "C0"), (False, "not solved", "none")):
        is_shown = np.array([result.is_solved is solved for result in results]) & np.isfinite(values)
        if is_shown.any():
            axes.plot(rank[is_shown], values[is_shown], "o", color="C0", markerfacecolor=face, label=label)
    for x, y, seed in zip(rank, values, seeds, strict=True):
        if np.isfinite(y):
            axes.annotate(str(seed), (x, y), textcoords="offset points", xytext=(4, 4), fontsize=7, color="0.4")
    styled(axes, "objective of each start; numbers are seeds", "objective")
    axes.set_xlabel("rank")
    axes.locator_params("x", integer=True)
    axes.ticklabel_format(axis="y", useOffset=False)
    known = values[np.isfinite(values)]
    if known.size and np.ptp(known) < ALIKE_TOLERANCE * np.abs(known).max():  # draws equal results at equal height
        half = ALIKE_TOLERANCE * float(np.abs(known).max())
        axes.set_ylim(float(known.mean()) - half, float(known.mean()) + half)
    if axes.lines:
        axes.legend(frameon=False)
    best = results[0]
    aims = " + ".join(part.title for part in best.problem.costs)
    title = f"{best.robot.name}: {best.problem.name}, minimise {aims}; {len(results)} random starts, {best.solver}"
    figure.suptitle(label_of_title(title))
    return saved(figure, path)


def summary(results: Sequence[Solution], labels: Sequence[Any], title: str, name: str = "seed") -> Summary:
    """Return a short table of several results."""
    rows = [
        (str(label), f"{result.outcome.objective:.6g}", str(result.iterations), result.status)
        for label, result in zip(labels, results, strict=True)
    ]
    facts = {"problem": results[0].problem.name, "robot": results[0].robot.name}
    return Summary(title, facts, (name, "objective", "iterations", "status"), rows)
