"""IPOPT, an interior-point method for sparse programs (Waechter and Biegler 2006), as shipped with CasADi."""

from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.optimisation.program import NonlinearProgram, Outcome, Settings
from torsor.optimisation.record import Record, run_solver

STATUS_TEXTS = {
    "Solve_Succeeded": "optimal",
    "Solved_To_Acceptable_Level": "optimal to a looser tolerance",
    "Infeasible_Problem_Detected": "no feasible point was found nearby",
    "Maximum_Iterations_Exceeded": "stopped at the iteration limit",
    "Maximum_CpuTime_Exceeded": "stopped at the time limit",
    "Maximum_WallTime_Exceeded": "stopped at the time limit",
    "User_Requested_Stop": "stopped",
    "Restoration_Failed": "no feasible point was found nearby",
    "Search_Direction_Becomes_Too_Small": "stopped: no better step was found",
    "Not_Enough_Degrees_Of_Freedom": "stopped: more equations than variables (the solver 'condensed' can solve these)",
    "Diverging_Iterates": "stopped: variables grow without bound",
}

DISABLED_OPTIONS = ("calc_lam_p", "calc_lam_x", "calc_f", "calc_g", "error_on_fail", "show_eval_warnings")
DEFAULT_OPTIONS = {"no_nlp_grad": True} | dict.fromkeys(DISABLED_OPTIONS, False)
WARM_OPTIONS = {"ipopt.warm_start_init_point": "yes", "ipopt.mu_strategy": "monotone", "ipopt.mu_init": 1e-6}
WARM_PUSH_OPTIONS = ("bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac", "mult_bound_push")
WARM_OPTIONS |= {f"ipopt.warm_start_{name}": 1e-9 for name in WARM_PUSH_OPTIONS}


class _Call(ca.Callback):
    """A CasADi function that calls a Python function; inputs and outputs have fixed sparsity patterns.

    Exceptions must not propagate through IPOPT. The first one is appended to ``raised``; this call and all later ones
    fail, which stops IPOPT.
    """

    def __init__(self, name: str, inputs: dict[str, Any], outputs: dict[str, Any], work: Any, raised: list[Any]):
        super().__init__()
        self._inputs, self._outputs, self._work, self._raised = inputs, outputs, work, raised
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._inputs)

    def get_n_out(self) -> int:
        return len(self._outputs)

    def get_name_in(self, i: int) -> str:
        return list(self._inputs)[i]

    def get_name_out(self, i: int) -> str:
        return list(self._outputs)[i]

    def get_sparsity_in(self, i: int) -> Any:
        return list(self._inputs.values())[i]

    def get_sparsity_out(self, i: int) -> Any:
        return list(self._outputs.values())[i]

    def eval_buffer(self, inputs: Any, outputs: Any) -> int:
        if self._raised:
            return 1
        try:
            results = self._work(*(None if buffer is None else np.frombuffer(buffer, dtype=float) for buffer in inputs))
        except BaseException as error:
            self._raised.append(error)
            return 1
        if results is None:
            return 1
        for result, out in zip(results, outputs, strict=True):
            if out is not None:
                np.frombuffer(out, dtype=float)[:] = result
        return 0

    def has_eval_buffer(self) -> bool:
        return True


def ipopt_options(program: NonlinearProgram, tolerance: float) -> dict[str, Any]:
    """Return the options of IPOPT itself, which are independent of the evaluation of the program."""
    sides = (program.lower, program.upper, program.row_lower, program.row_upper)
    bounds = sum(int(np.isfinite(side).sum()) for side in sides)
    return {
        "ipopt.tol": tolerance,
        "ipopt.constr_viol_tol": tolerance,
        "ipopt.compl_inf_tol": tolerance / max(bounds, 1),  # the sum bounds the error of f
        "ipopt.mu_strategy": "adaptive",
        "ipopt.mumps_pivtol": 1e-6,
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "print_time": False,
    }


def solve_ipopt(program: NonlinearProgram, start: Array, settings: Settings, **options: Any) -> Outcome:
    """Solve a program from a start (n,) with IPOPT; ``options`` are additional options of CasADi's ``nlpsol``.

    Example:
        >>> from torsor.optimisation.program import Formula
        >>> valley = Formula(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, lambda x: x[0] + x[1], n=2, row_upper=1.0)
        >>> solve_ipopt(valley, [0.0, 0.0], Settings()).x.round(6).tolist()
        [1.5, -0.5]
    """
    return run_solver(program, start, settings, lambda record, x: _search(record, x, options))


def _search(record: Record, start: Array, options: dict[str, Any]) -> Outcome:
    program, settings, cached, raised = record.program, record.settings, record.evaluations, list[BaseException]()
    n, m = program.n, program.m
    dense, none = ca.Sparsity.dense, ca.Sparsity(0, 1)
    jacobian = ca.Sparsity.triplet(m, n, *(indices.tolist() for indices in program.structure))
    order = np.lexsort(program.structure)  # CasADi's order of entries
    hessian = ca.Sparsity.triplet(n, n, *(indices.tolist() for indices in program.hessian_structure))
    x, rows, one = dense(n, 1), dense(m, 1), dense(1, 1)
    at, upper = {"x": x, "p": none}, program.hessian_structure

    def value(x: Array, p: None) -> Any:
        # Points without finite derivatives are rejected here, where IPOPT can still shorten the step. If the point is
        # accepted, its derivatives are needed anyway.
        return cached.value(x) if cached.is_finite(x) else None

    def gradients(x: Array, p: None) -> Any:
        return cached.value(x)[0], cached.jacobian(x)[0]

    def jacobians(x: Array, p: None) -> Any:
        return cached.value(x)[1], cached.jacobian(x)[1][order]

    def hessians(x: Array, p: None, weight: Array, multipliers: Array) -> Any:
        return (cached.hessian(x, multipliers, float(weight[0]))[upper],)

    def iteration(x: Array, f: Array, g: Array, lam_x: Array, lam_g: Array, lam_p: Array) -> Any:
        record.note(x, lam_g, lam_x)
        return (0.0,)

    weights = {"lam_f": one, "lam_g": rows}
    seen = {"x": x, "f": one, "g": rows, "lam_x": x, "lam_g": rows, "lam_p": none}
    nlp = _Call("nlp", at, {"f": one, "g": rows}, value, raised)
    sides = (program.lower, program.upper, program.row_lower, program.row_upper)
    solver_options: dict[str, Any] = {
        **DEFAULT_OPTIONS,
        **ipopt_options(program, settings.tolerance),
        "ipopt.max_iter": settings.iterations,
        "grad_f": _Call("grad_f", at, {"f": one, "grad_f_x": x}, gradients, raised),
        "jac_g": _Call("jac_g", at, {"g": rows, "jac_g_x": jacobian}, jacobians, raised),
        "hess_lag": _Call("hess_lag", at | weights, {"triu_hess_gamma_x_x": hessian}, hessians, raised),
        "iteration_callback": _Call("seen", seen, {"stop": one}, iteration, raised),
        "inputs_check": False,  # programs are checked; CasADi would warn about more equations than variables
    }
    begin = {"x0": start}
    if settings.multipliers is not None:
        begin["lam_g0"] = settings.multipliers
        begin["lam_x0"] = np.zeros(n) if settings.bound_multipliers is None else settings.bound_multipliers
        solver_options |= WARM_OPTIONS
    solver = ca.nlpsol("program", "ipopt", nlp, solver_options | options)
    solution = solver(**begin, **dict(zip(("lbx", "ubx", "lbg", "ubg"), sides, strict=True)))
    if raised:
        raise raised[0]
    status, is_solved = str(solver.stats()["return_status"]), bool(solver.stats()["success"])
    result = STATUS_TEXTS.get(status, status.replace("_", " ").lower())
    last, y, z = (np.asarray(solution[key].full()).ravel() for key in ("x", "lam_g", "lam_x"))
    return record.outcome(result, is_solved, (last, y, z) if is_solved else None)
