"""Solutions on disk: .npz files that include the problem, and .csv files of the motion."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.files import check_array, reading_npz, write_npz
from torsor.motion.results.replay import trajectory
from torsor.motion.results.solution import Pass, Solution
from torsor.motion.statement import ProblemStatement
from torsor.motion.writing import save_problem
from torsor.optimisation import SOLVERS
from torsor.optimisation.outcome import Iteration, Outcome
from torsor.optimisation.program import largest_violation

P = TypeVar("P", bound=ProblemStatement)

VERSION = 1
LONGEST, MOST = 1000, 10**9  # characters of a status, and iterations
SAME = 1e-6  # relative difference within which two objectives are equal
OUTSIDE = 1e-3  # largest violation of a bound of a variable that a solver leaves


def save(result: Solution, path: Path) -> None:
    """Write a solution; if writing fails, an earlier file stays as it was."""
    if path.suffix.lower() != ".npz":
        raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=".npz"))
    outcome = result.outcome
    arrays: dict[str, Any] = {
        "torsor": VERSION,
        "x": outcome.x,
        "multipliers": outcome.multipliers,
        "bound_multipliers": outcome.bound_multipliers,
        "figures": [outcome.objective, outcome.iterations, outcome.is_solved, result.tolerance],
        "seconds": [result.setup_seconds, result.solve_seconds],
        "log": np.array(outcome.log, dtype=float).reshape(-1, len(Iteration._fields)),
        "passes": np.array(result.passes, dtype=float).reshape(-1, len(Pass._fields)),
        "status": outcome.status,
        "solver": result.solver,
    }
    with tempfile.TemporaryDirectory() as folder:
        try:
            save_problem(result.problem, Path(folder, "problem.toml"))
        except ModelError:  # a problem with Python functions: it has to be given to ``load``
            pass
        else:
            for name in ("problem", "problem.robot"):
                arrays[name.replace(".", "_")] = np.frombuffer(
                    Path(folder, f"{name}.toml").read_bytes(), dtype=np.uint8
                )
    write_npz(path, arrays)


def load(path: Path, problem: P | None, read_problem: Callable[[Path], P]) -> Solution:
    """Return the solution in a .npz file; ``read_problem`` reads the problem from a TOML file."""
    with reading_npz(path, "a result") as found:
        if int(found["torsor"]) != VERSION:
            raise ValueError(f"version {found['torsor']}; allowed: {VERSION}")
        return _solution(found, _problem(found, read_problem) if problem is None else problem)


def _problem(found: dict[str, NDArray[Any]], read_problem: Callable[[Path], P]) -> P:
    if "problem" not in found:
        raise ValueError("the file does not contain its problem; fix: give problem=...")
    with tempfile.TemporaryDirectory() as folder:
        for key, name in (("problem", "problem.toml"), ("problem_robot", "problem.robot.toml")):
            Path(folder, name).write_bytes(found[key].astype(np.uint8).tobytes())
        return read_problem(Path(folder, "problem.toml"))


def _solution(found: dict[str, NDArray[Any]], problem: ProblemStatement) -> Solution:
    program = problem.program
    shapes: dict[str, tuple[int, ...]] = {
        "x": (program.n,),
        "multipliers": (program.m,),
        "bound_multipliers": (program.n,),
        "figures": (4,),
        "seconds": (2,),
        "log": (len(found["log"]), len(Iteration._fields)),
        "passes": (len(found["passes"]), len(Pass._fields)),
    }
    for name, shape in shapes.items():
        check_array(found[name], shape, name)
    if not np.isfinite(found["x"]).all() or not np.isfinite(found["figures"]).all():
        raise ValueError("values that are not finite")
    status, solver = str(found["status"]), str(found["solver"])
    if len(status) > LONGEST or not status.isprintable():  # control characters
        raise ValueError("a status that is too long or not printable")
    if solver not in SOLVERS:
        raise ValueError(f"solver {solver[:50]!r}; allowed: {', '.join(SOLVERS)}")
    objective, iterations, is_solved, tolerance = found["figures"].tolist()
    if not (0 <= iterations <= MOST and tolerance > 0):
        raise ValueError(f"{iterations:g} iterations to a tolerance of {tolerance:g}")
    if not (np.isfinite(found["passes"]).all() and (np.abs(found["log"][:, 0]) <= MOST).all()):
        raise ValueError("a log of numbers that are not finite, or too large")
    log = [Iteration(int(number), *rest) for number, *rest in found["log"].tolist()]
    multipliers = found["multipliers"], found["bound_multipliers"]
    if (np.maximum(program.lower - found["x"], found["x"] - program.upper) > OUTSIDE).any():
        raise ValueError("variables outside their bounds")
    value, rows = program.value(found["x"])
    if is_solved and not abs(value - objective) <= SAME * max(1.0, abs(objective)):
        raise ValueError(f"its objective is {objective:.9g}, but {value:.9g} in this problem: it is of another problem")
    excess = largest_violation(program, found["x"], rows)
    outcome = Outcome(found["x"], *multipliers, objective, int(iterations), status, bool(is_solved), log, excess)
    passes = tuple(Pass(int(nodes), off, f, int(count)) for nodes, off, f, count in found["passes"].tolist())
    setup, seconds = found["seconds"].tolist()
    return Solution(problem, outcome, solver, tolerance, setup, seconds, passes)


def to_csv(result: Solution, path: Path) -> None:
    """Write the motion as a table: time, positions, velocities, accelerations, forces, with names and units."""
    if path.suffix.lower() != ".csv":
        raise ModelError(describe(f"the suffix is {path.suffix!r}", where=path.name, allowed=".csv"))
    trajectory(result).save(path)
