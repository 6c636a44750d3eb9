"""IPOPT: an interior-point method for sparse programs, as CasADi's wheel brings it (Waechter and Biegler 2006)."""

from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.motion.program import Program
from torsor.motion.solvers.outcome import Iteration, Outcome, Settings

__all__ = ["solve_ipopt"]

Array = NDArray[np.float64]

WORDS = {
    "Solve_Succeeded": "optimal",
    "Solved_To_Acceptable_Level": "optimal to a looser tolerance",
    "Infeasible_Problem_Detected": "no feasible motion was found nearby",
    "Maximum_Iterations_Exceeded": "stopped at the most iterations",
    "Maximum_CpuTime_Exceeded": "stopped at the most seconds",
    "Maximum_WallTime_Exceeded": "stopped at the most seconds",
    "User_Requested_Stop": "stopped",
    "Restoration_Failed": "no feasible motion was found nearby",
    "Search_Direction_Becomes_Too_Small": "stopped: no better step was found",
    "Diverging_Iterates": "stopped: variables grow without bound",
}


class _Call(ca.Callback):
    """A function of CasADi that calls one of Python, with inputs and outputs of given patterns."""

    def __init__(self, name: str, inputs: dict[str, Any], outputs: dict[str, Any], work: Any) -> None:
        super().__init__()
        self._inputs, self._outputs, self._work = inputs, outputs, work
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._inputs)

    def get_n_out(self) -> int:
        return len(self._outputs)

    def get_name_in(self, i: int) -> str:
        return list(self._inputs)[i]

    def get_name_out(self, i: int) -> str:
        return list(self._outputs)[i]

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        pattern: ca.Sparsity = list(self._inputs.values())[i]
        return pattern

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        pattern: ca.Sparsity = list(self._outputs.values())[i]
        return pattern

    def eval_buffer(self, inputs: Any, outputs: Any) -> int:
        given = [np.frombuffer(each, dtype=float) if each is not None else None for each in inputs]
        try:
            found = self._work(*given)
        except FloatingPointError:
            return 1
        for result, out in zip(found, outputs, strict=True):
            if out is not None:
                np.frombuffer(out, dtype=float)[:] = np.ravel(result)
        return 0

    def has_eval_buffer(self) -> bool:
        return True


def solve_ipopt(program: Program, start: Array, settings: Settings, **options: Any) -> Outcome:
    """Return what IPOPT finds from a start (x,)."""
    n, m = program.n, program.m
    dense, none = ca.Sparsity.dense, ca.Sparsity.dense(0, 1)
    rows, columns = program.structure
    jacobian = ca.Sparsity.triplet(m, n, rows.tolist(), columns.tolist())
    i, j = program.bend_structure
    hessian = ca.Sparsity.triplet(n, n, i.tolist(), j.tolist())
    x, p, weight, felt = dense(n, 1), none, dense(1, 1), dense(m, 1)
    functions = {
        "nlp": _Call("nlp", {"x": x, "p": p}, {"f": dense(1, 1), "g": felt}, lambda x, p: program.value(x)),
        "grad_f": _Call(
            "grad_f",
            {"x": x, "p": p},
            {"f": dense(1, 1), "grad_f_x": x},
            lambda x, p: (program.value(x)[0], program.slope(x)[0]),
        ),
        "jac_g": _Call(
            "jac_g",
            {"x": x, "p": p},
            {"g": felt, "jac_g_x": jacobian},
            lambda x, p: (program.value(x)[1], program.slope(x)[1]),
        ),
        "hess_lag": _Call(
            "hess_lag",
            {"x": x, "p": p, "lam_f": weight, "lam_g": felt},
            {"triu_hess_gamma_x_x": hessian},
            lambda x, p, lam_f, lam_g: (program.bend(x, lam_g, float(lam_f[0]))[i, j],),
        ),
    }
    log = list[Iteration]()
    settings_ = {
        "ipopt.tol": settings.tolerance,
        "ipopt.constr_viol_tol": settings.tolerance,
        "ipopt.max_iter": settings.iterations,
        "ipopt.mu_strategy": "adaptive",
        "ipopt.mumps_pivtol": 0.0,
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "print_time": False,
        "no_nlp_grad": True,
        "calc_lam_p": False,
        "calc_lam_x": False,
        "calc_f": False,
        "calc_g": False,
        "error_on_fail": False,
        **{name: functions[name] for name in ("grad_f", "jac_g", "hess_lag")},
        **options,
    }
    if np.isfinite(settings.seconds):
        settings_["ipopt.max_wall_time"] = settings.seconds
    solver = ca.nlpsol("motion", "ipopt", functions["nlp"], settings_)
    found = solver(x0=start, lbx=program.lower, ubx=program.upper, lbg=program.row_lower, ubg=program.row_upper)
    stats = solver.stats()
    status = str(stats["return_status"])
    return Outcome(
        _column(found["x"]),
        _column(found["lam_g"]),
        _column(found["lam_x"]),
        float(found["f"]),
        int(stats["iter_count"]),
        WORDS.get(status, status.replace("_", " ").lower()),
        bool(stats["success"]),
        log,
    )


def _column(found: ca.DM) -> Array:
    return np.asarray(found.full()).ravel()
