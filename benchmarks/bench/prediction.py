"""Benchmarks of motion prediction against the same nonlinear programs in CasADi."""

import time
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from bench.measure import Row
from torsor.motion import MotionProblem
from torsor.motion.problems import two_link_time, ur5_time
from torsor.optimisation.ipopt import ipopt_options, solve_ipopt
from torsor.optimisation.program import Settings

RUNS = 5
PARTS = ("nlp_f", "nlp_g", "nlp_grad_f", "nlp_jac_g", "nlp_hess_l")


class Run(NamedTuple):
    """A solution: f, iterations, and the processor times (s), in total and for functions and their derivatives."""

    objective: float
    iterations: int
    seconds: float
    evaluation: float


class _Watched:
    """A nonlinear program that measures the processor time (s) within its functions."""

    def __init__(self, program: Any) -> None:
        self._program, self.seconds = program, 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._program, name)
        if name not in ("value", "jacobian", "hessian"):
            return found

        def timed(*values: Any) -> Any:
            start = time.process_time()
            result = found(*values)
            self.seconds += time.process_time() - start
            return result

        return timed


def run_torsor(problem: MotionProblem, start: Any = None) -> Run:
    """Return the fastest of several IPOPT runs on a problem, without tracing and compilation."""
    program, x = problem.program, problem.guess() if start is None else start
    program.value(x), program.jacobian(x), program.hessian(x, np.zeros(program.m), 1.0)
    runs = []
    for _ in range(RUNS):
        program.value(x + 1e-9)  # so that no value at the start is cached
        program.jacobian(x + 1e-9)
        watched: Any = _Watched(program)
        begin = time.process_time()
        found = solve_ipopt(watched, x, Settings())
        seconds = time.process_time() - begin
        runs.append(Run(found.objective, found.iterations, seconds, watched.seconds))
    return min(runs, key=lambda run: run.evaluation)


def casadi_nlp(problem: MotionProblem, whole: bool = False) -> dict[str, Any]:
    """Return the nonlinear program of a minimum-time problem with torque and velocity limits, for ``nlpsol``.

    Torques are those of the traced robot. CasADi computes all derivatives, either of the function of one node, which is
    mapped over the nodes (MX), or of the whole program as one scalar expression (SX).
    """
    program, robot = problem.program, problem.model.robot
    (stretch,), (batch,) = program.layout.phases, program.batches
    n, s = robot.nv, batch.s
    q, v, a = (ca.SX.sym(name, n) for name in "qva")
    known: dict[str, Any] = {"Torques": robot.function("inverse_dynamics")(q, v, a), "Velocities": v}
    node: Any = ca.Function(
        "node", [q, v, a], [ca.vertcat(*(known[type(term).__name__] for term in batch.kernels.constraints))]
    )
    kind: Any = ca.SX if whole else ca.MX
    x = kind.sym("x", program.n)
    T, C = x[stretch.duration], list[Any]()
    for columns, values in zip(stretch.columns, stretch.known, strict=True):
        C.append(ca.vertcat(*(x[int(k)] if k >= 0 else value for k, value in zip(columns, values, strict=True))))
    points = ca.horzcat(*C)
    motion: list[Any] = [ca.DM(stretch.splines[0].matrix(s, d)) @ points / T**d for d in range(3)]
    if whole:
        g = ca.vertcat(*(node(*(each[k, :].T for each in motion)) for k in range(len(s))))
    else:
        g = ca.vec(node.map(len(s))(*(each.T for each in motion)))
    return {"x": x, "f": T, "g": g / program.scales}


def run_casadi(problem: MotionProblem, whole: bool = False, runs: int = RUNS) -> Run:
    """Return the IPOPT run on the same program written with CasADi, with times measured by CasADi."""
    program = problem.program
    solver = ca.nlpsol("peer", "ipopt", casadi_nlp(problem, whole), ipopt_options(program, 1e-6))
    found = []
    for _ in range(runs):
        begin = time.process_time()
        result = solver(
            x0=problem.guess(),
            lbx=program.lower,
            ubx=program.upper,
            lbg=program.row_lower,
            ubg=program.row_upper,
        )
        seconds, stats = time.process_time() - begin, solver.stats()
        evaluation = sum(stats.get(f"t_proc_{part}", 0.0) for part in PARTS)
        found.append(Run(float(result["f"]), int(stats["iter_count"]), seconds, evaluation))
    return min(found, key=lambda run: run.evaluation)


def prediction() -> list[Row]:
    """Return the times of two minimum-time motions, and of their functions and derivatives, compared with CasADi."""
    rows = []
    for title, problem in (("two-link arm", two_link_time(points=12)), ("UR5", ur5_time(points=12))):
        mine, theirs = run_torsor(problem), run_casadi(problem, runs=1)
        rows += [
            Row(f"least time, {title}, 12 control points: IPOPT in all", mine.seconds, theirs.seconds, "CasADi, map"),
            Row(f"least time, {title}: functions and derivatives", mine.evaluation, theirs.evaluation, "CasADi, map"),
        ]
    return rows
