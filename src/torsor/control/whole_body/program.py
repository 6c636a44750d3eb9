"""The symbolic quadratic program of whole-body control: one function of (t, q, v, targets) for all matrices.

The variables are the accelerations a (nv) and the contact forces f. With the tasks J_i a = b_i, their weights w_i, and
the contact Jacobians J_c,

    minimise    sum w_i |J_i a - b_i|^2 + r_a |a|^2 + r_f |f|^2        (for the tasks of the first priority)
    subject to  M a + h - J_c^T f = 0         rows of coordinates without a drive
                J_c a = -J_c' v - d J_c v      contacts do not move
                J_i a = b_i                    hard tasks
                |M a + h - J_c^T f| <= effort limits
                C f >= 0, normal force <= most
                position and velocity limits at the end of a horizon, as bounds on a
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import isfinite, sqrt
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import missing
from torsor.control.whole_body.tasks import PointContact, Posture, SurfaceContact, Symbols, Task
from torsor.dynamics.recursions.kinematics import symmetric
from torsor.mechanism.mechanism import places_in_q
from torsor.robot.robot import Robot

INFINITE_BOUND = 1e30  # infinite bound in the solver
# Relative length of the independent part of a row below which a contact equation is dependent; rounding leaves 1e-14.
DEPENDENCE_TOLERANCE = 1e-9

Contact = PointContact | SurfaceContact


@dataclass(frozen=True, eq=False)
class Settings:
    """Coordinates without a drive, weights r_a and r_f, horizon of joint limits (s), and flags of active limits."""

    passive: tuple[int, ...]
    regularisation: tuple[float, float]
    horizon: float
    effort_limits: bool
    joint_limits: bool


@dataclass(frozen=True, eq=False)
class Program:
    """A quadratic program: ``function`` returns its H, g, A, lower, upper, and the forces h (nv) at zero acceleration.

    The first ``equations`` rows of A are the equations. The rows of the ``driven`` coordinates follow; the drive forces
    are these rows times x, plus h. Friction rows come last. The first ``bounds`` entries of lower and upper are bounds
    on the first variables, and the others are bounds on A x. ``kinds`` are 5 for equations and 0 for inequalities.
    ``groups`` maps names to their entries, and ``forces`` maps each contact to its variables. ``levels`` are the
    numbers of task rows per priority. If there are several priorities, the function also returns J and b: these rows in
    order of priority, times the square roots of the weights.
    """

    function: ca.Function
    equations: int
    driven: Array
    bounds: int
    kinds: Array
    groups: dict[str, Array]
    forces: dict[str, slice]
    levels: tuple[int, ...]


class _Rows:
    """Rows of A and their bounds, by group."""

    def __init__(self, first: int):
        self.A, self.lower, self.upper = list[ca.SX](), list[ca.SX](), list[ca.SX]()
        self.kinds, self.groups = [0] * first, dict[str, list[int]]()

    def add(self, group: str, A: ca.SX, lower: ca.SX, upper: ca.SX) -> None:
        count = A.size1()
        self.groups.setdefault(group, []).extend(range(len(self.kinds), len(self.kinds) + count))
        self.kinds += [5 if lower is upper else 0] * count
        self.A.append(A)
        self.lower.append(lower)
        self.upper.append(upper)


def program(
    robot: Robot, tasks: Sequence[Task], contacts: Sequence[Contact], given: Sequence[int], settings: Settings
) -> Program:
    """Return the program of a robot; targets of the tasks ``given`` (indices) are concatenated inputs."""
    at, nv = Symbols(robot), robot.nv
    driven = [k for k in range(nv) if k not in settings.passive]
    count = sum(contact.size for contact in contacts)
    targets = {k: ca.SX.sym(f"target{k}", *(*tasks[k].shape(robot), 1)[:2]) for k in given}

    J_c = ca.vertcat(ca.SX(0, nv), *(contact.moved(at) for contact in contacts))
    F, h = ca.horzcat(at.of("mass_matrix"), -J_c.T), at.of("bias_force", at.v)
    lower, upper = _joint_limits(at, settings)
    rows = _Rows(lower.size1())
    if rows.kinds:
        rows.groups["joint limits"] = list(range(len(rows.kinds)))
    if settings.passive:
        balance = -h[list(settings.passive)]
        rows.add("equations of motion", F[list(settings.passive), :], balance, balance)
    for place, J, b in _motions(at, contacts):
        rows.add(f"contact {place!r} stays", ca.horzcat(J, ca.SX(J.size1(), count)), b, b)

    H = ca.diag(ca.SX([settings.regularisation[0]] * nv + [settings.regularisation[1]] * count))
    g = ca.SX(nv + count, 1)
    soft = sorted({task.priority for task in tasks if not task.hard})
    levels: dict[int, list[tuple[ca.SX, ca.SX]]] = {level: [] for level in soft}
    for k, task in enumerate(tasks):
        J, b = task.wanted(at, targets.get(k))
        if isinstance(task, Posture):
            J, b = J[driven, :], b[driven]
        if task.hard:
            rows.add(f"task {task.label!r}", ca.horzcat(J, ca.SX(J.size1(), count)), b, b)
            continue
        levels[task.priority].append((sqrt(task.weight) * J, sqrt(task.weight) * b))
        if task.priority == soft[0]:
            H[:nv, :nv] += task.weight * (J.T @ J)
            g[:nv] -= task.weight * (J.T @ b)

    equations = sum(kind == 5 for kind in rows.kinds)
    if driven:
        effort = np.minimum(robot.effort_limit[driven], INFINITE_BOUND) if settings.effort_limits else INFINITE_BOUND
        limit = ca.SX(ca.DM(np.broadcast_to(effort, len(driven))))
        rows.add("torque limits", F[driven, :], -limit - h[driven], limit - h[driven])
    forces, first = dict[str, slice](), nv
    for contact in contacts:
        forces[contact.place] = slice(first, first + contact.size)
        C = np.vstack([contact.cone(), contact.normal_row()])[: None if contact.most < INFINITE_BOUND else -1]
        spread = ca.SX(C.shape[0], nv + count)
        spread[:, first : first + contact.size] = ca.sparsify(ca.SX(ca.DM(C)))
        least, most = ca.SX.zeros(C.shape[0], 1), ca.SX.ones(C.shape[0], 1) * INFINITE_BOUND
        if contact.most < INFINITE_BOUND:
            most[-1] = contact.most
        rows.add(f"friction of {contact.place!r}", spread, least, most)
        first += contact.size

    A = ca.vertcat(ca.SX(0, nv + count), *rows.A)
    results = [symmetric(H), g, A, ca.vertcat(lower, *rows.lower), ca.vertcat(upper, *rows.upper), h]
    inputs = {"t": at.t, "q": at.q, "v": at.v}
    if targets:
        inputs["targets"] = ca.vertcat(*(ca.vec(target.T) for target in targets.values()))
    names = ["H", "g", "A", "lower", "upper", "h"]
    if len(levels) > 1:
        every = [row for rows in levels.values() for row in rows]
        results += [ca.vertcat(*(J for J, _ in every)), ca.vertcat(*(b for _, b in every))]
        names += ["J", "b"]
    dense = ca.cse([ca.densify(result) for result in results])
    traced = ca.Function("whole_body", list(inputs.values()), dense, list(inputs), names)
    groups = {name: np.array(group) for name, group in rows.groups.items()}
    counts = tuple(sum(J.size1() for J, _ in own) for own in levels.values())
    drives, kinds = (np.array(entries, dtype=kind) for entries, kind in ((driven, int), (rows.kinds, np.int32)))
    return Program(traced, equations, drives, lower.size1(), kinds, groups, forces, counts)


def _motions(at: Symbols, contacts: Sequence[Contact]) -> list[tuple[str, ca.SX, ca.SX]]:
    """Return place, J and desired acceleration of each contact, without equations that depend on previous ones.

    In the axes of a body, the equations of its points depend on each other with constant factors, so one configuration
    is enough to detect dependence.
    """
    motions, basis = list[tuple[str, ca.SX, ca.SX]](), np.zeros((0, at.robot.nv))
    rng = np.random.default_rng(0)
    q = at.robot.integrate(at.robot.neutral(), rng.uniform(-0.6, 0.6, at.robot.nv))
    for contact in contacts:
        J, b = contact.motion(at)
        number = ca.Function("J", [at.q], [ca.densify(J)])(q).full()
        rows = list[int]()
        for k, row in enumerate(number):
            left = row - basis.T @ (basis @ row)
            left = left - basis.T @ (basis @ left)
            if np.linalg.norm(left) > DEPENDENCE_TOLERANCE * max(1.0, float(np.linalg.norm(row))):
                basis = np.vstack([basis, left / np.linalg.norm(left)])
                rows.append(k)
        if rows:
            motions.append((contact.place, J[rows, :], b[rows]))
    return motions


def _joint_limits(at: Symbols, settings: Settings) -> tuple[ca.SX, ca.SX]:
    """Return bounds on a (nv x 1, or 0 x 1 if there are none) that enforce the joint limits one horizon later."""
    robot, step = at.robot, settings.horizon
    lower, upper = [ca.SX(-INFINITE_BOUND)] * robot.nv, [ca.SX(INFINITE_BOUND)] * robot.nv
    rates = [k for k in range(robot.nv) if np.isfinite(robot.velocity_limit[k])]
    for k in rates if settings.joint_limits else []:
        limit = float(robot.velocity_limit[k])
        lower[k], upper[k] = (-limit - at.v[k]) / step, (limit - at.v[k]) / step
    for k, i in places_in_q(robot.joints, robot.coordinates).items() if settings.joint_limits else []:
        ahead = at.q[i] + at.v[k] * step
        if np.isfinite(robot.lower[i]):
            lower[k] = ca.fmax(lower[k], 2 * (float(robot.lower[i]) - ahead) / step**2)
        if np.isfinite(robot.upper[i]):
            upper[k] = ca.fmin(upper[k], 2 * (float(robot.upper[i]) - ahead) / step**2)
    free = all(bound.is_constant() for bound in (*lower, *upper))
    return (ca.SX(0, 1), ca.SX(0, 1)) if free else (ca.vertcat(*lower), ca.vertcat(*upper))


# Quadratic programs of one state: their solution by DAQP, and the conflict if there is no solution.

SOLVED, INFEASIBLE, FAILED = 1, -1, -4
# Tolerances relative to the largest entry: for zero singular values of equations, and for contradictory equations.
ZERO_TOLERANCE, CONTRADICTION_TOLERANCE = 1e-10, 1e-8
EQUATION_TOLERANCE = 1e-8  # allowed residual of equations relative to their right-hand sides; rounding leaves 1e-12


class Problem(NamedTuple):
    """Minimise 1/2 x^T H x + g^T x subject to lower <= (x, A x) <= upper; kinds are 5 for equations.

    ``equations`` is the number of equations, which are the first rows of A and are checked after solving.
    """

    H: Array
    g: Array
    A: Array
    lower: Array
    upper: Array
    kinds: Array
    equations: int = 0


@cache
def solver() -> Any:
    """Return the solver module from an optional package."""
    try:
        import daqp
    except ImportError:
        raise missing("whole-body control needs DAQP, which is not installed", "wbc") from None
    return daqp


def solve(problem: Problem) -> tuple[Array, int, Array]:
    """Return x, the solver's exit flag (1: solved, -1: infeasible) and the row multipliers.

    If dependent equations stop the solver, they are replaced by independent ones.
    """
    H, g, A, lower, upper, kinds, _ = problem
    x, _, flag, info = solver().solve(H, g, A, upper, lower, kinds.copy())
    if flag == INFEASIBLE or (flag == SOLVED and _holds(problem, x)):
        return x, int(flag), info["lam"]
    return _solve_independent(problem)


def _holds(problem: Problem, x: Array) -> bool:
    """Return whether x satisfies the equations; a solver may stop early if they depend on each other."""
    if not problem.equations:
        return isfinite(x.dot(x))
    first, last = len(problem.lower) - len(problem.A), problem.equations
    values, targets = problem.A[:last].dot(x), problem.upper[first : first + last]
    left = values - targets
    return bool(left.dot(left) <= EQUATION_TOLERANCE**2 * (1.0 + targets.dot(targets)))  # False for NaN


def _solve_independent(problem: Problem) -> tuple[Array, int, Array]:
    """Return (x, status, multipliers) with the equations replaced by independent ones.

    If equations contradict each other, the status is ``INFEASIBLE``, and x and the multipliers are 0.
    """
    H, g, A, lower, upper, kinds, _ = problem
    first = len(lower) - len(A)
    equal = np.flatnonzero(kinds[first:] == 5)
    U, s, V = np.linalg.svd(A[equal], full_matrices=False)
    keep = s > ZERO_TOLERANCE * s.max(initial=0.0)
    right = U.T @ upper[first + equal]
    left = upper[first + equal] - U[:, keep] @ right[keep]
    multipliers = np.zeros(len(kinds))
    if np.abs(left).max(initial=0.0) > CONTRADICTION_TOLERANCE * max(
        1.0, np.abs(upper[first + equal]).max(initial=0.0)
    ):
        return np.zeros(len(g)), INFEASIBLE, multipliers
    others = np.flatnonzero(kinds != 5)
    inside = others[others >= first] - first
    value = right[keep] / s[keep]
    rows = np.vstack([V[keep], A[inside]])
    low, high = (np.concatenate([side[:first], value, side[first + inside]]) for side in (lower, upper))
    sense = np.zeros(len(low), dtype=np.int32)
    sense[first : first + len(value)] = 5
    x, _, flag, info = solver().solve(H, g, np.ascontiguousarray(rows), high, low, sense)
    if flag == SOLVED and not _holds(problem, x):
        flag = FAILED
    multipliers[others] = np.delete(info["lam"], range(first, first + len(value)))
    multipliers[first + equal] = U[:, keep] @ (info["lam"][first : first + len(value)] / s[keep])
    return x, int(flag), multipliers


def conflict(problem: Problem, groups: dict[str, Array], kept: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a minimal set of conflicting groups; the groups ``kept`` are always enforced."""
    lower, upper, kinds = problem.lower.copy(), problem.upper.copy(), problem.kinds.copy()
    needed = list[str]()
    for name, rows in groups.items():
        if name in kept:
            continue
        before = lower[rows], upper[rows], kinds[rows]
        lower[rows], upper[rows], kinds[rows] = -INFINITE_BOUND, INFINITE_BOUND, 0
        if solve(problem._replace(lower=lower, upper=upper, kinds=kinds, equations=0))[1] != INFEASIBLE:
            lower[rows], upper[rows], kinds[rows] = before
            needed.append(name)
    return tuple(needed)


# Strict priorities: tasks of a later priority use only the freedom that earlier tasks leave.
#
# After each priority, its tasks keep the accelerations that they reached: J_i a = J_i a* is an equation in the next
# programs, each of which minimises the errors of its own tasks (Kanoun, Lamiraux and Wieber 2011; Escande, Mansard and
# Wieber 2014). The constraints apply to all programs.


def solve_levels(
    problem: Problem, x: Array, J: Array, b: Array, levels: Sequence[int], regularisation: tuple[float, float]
) -> tuple[Array, int]:
    """Return the solution with all priorities, and the solver's flag, from the solution x of the first priority.

    J (k x nv) and b (k) are the tasks J a = b. ``levels`` contains the number of rows of each priority.
    """
    (count, nv), size = J.shape, len(x)
    ends = np.cumsum(levels)
    weights = np.full(size, regularisation[1])
    weights[:nv] = regularisation[0]
    wide = np.zeros((count, size))
    wide[:, :nv] = J
    for first, last in pairwise(ends):
        earlier = wide[:first]
        reached = earlier @ x
        rows = wide[first:last]
        A = np.concatenate((problem.A, earlier))
        lower, upper = (np.concatenate((side, reached)) for side in (problem.lower, problem.upper))
        kinds = np.concatenate((problem.kinds, np.full(first, 5, dtype=np.int32)))
        H = rows.T @ rows + np.diag(weights)
        x, flag, _ = solve(Problem(H, -rows.T @ b[first:last], A, lower, upper, kinds, problem.equations))
        if flag != SOLVED:
            return x, FAILED  # a solution exists, namely that of the previous priority
    return x, SOLVED
