"""A motion program written a second time: one CasADi expression of all variables, from dense bases and values alone.

Nothing of the library's derivatives is used: CasADi differentiates the values of a node, the splines and, through a
root finder, the closing of loops. Its own Jacobian and Hessian are then the truth for those of the program.
"""

import casadi as ca
import numpy as np

from torsor.motion.problem import MotionProblem
from torsor.motion.transcription.batch import Batch


def _points(phase_layout, x):
    """The control points of each profile as an expression of x."""
    found = []
    for i, spline in enumerate(phase_layout.splines):
        columns, known = phase_layout.columns[i, : spline.count], phase_layout.known[i, : spline.count]
        found.append(
            ca.vertcat(*(x[int(c)] if c >= 0 else ca.MX(float(k)) for c, k in zip(columns, known, strict=True)))
        )
    return found


def _seconds(phase_layout, x):
    return x[phase_layout.duration] if phase_layout.duration >= 0 else ca.MX(phase_layout.phase.bounds[0])


def _closing(model, y0, start):
    """Positions of a robot with loops as an implicit function of its active ones (K nodes side by side)."""
    robot = model.robot
    q = ca.SX.sym("q", robot.nq)
    error = robot.function("closure_error")(q)
    passive = [k for k in range(robot.nq) if k not in model.places]
    jacobian = ca.Function("J", [q], [ca.jacobian(error, q)])(start[0]).full()[:, passive]
    kept, rank = [], 0
    for row in range(len(jacobian)):  # loops have more equations than unknowns: take those that tell
        if np.linalg.matrix_rank(jacobian[[*kept, row]], tol=1e-6) > rank:
            kept, rank = [*kept, row], rank + 1
    assert rank == len(passive)
    active = ca.SX.sym("active", len(model.places))
    unknown = ca.SX.sym("unknown", len(passive))
    full = ca.SX(robot.nq, 1)
    full[model.places], full[passive] = active, unknown
    problem = {"x": unknown, "p": active, "g": ca.substitute(error[kept], q, full)}
    find = ca.rootfinder("find", "newton", problem, {"abstol": 1e-14})
    columns = []
    for k in range(len(start)):
        found, filled = find(start[k, passive], y0[: len(model.places), k]), ca.MX(robot.nq, 1)
        for place, value in zip(passive, ca.vertsplit(found), strict=True):
            filled[place] = value
        for place, value in zip(model.places, ca.vertsplit(y0[: len(model.places), k]), strict=True):
            filled[place] = value
        columns.append(filled)
    return ca.horzcat(*columns)


def _batch(batch: Batch, x, at):
    """Constraint and integral of one batch."""
    kernels, phase_layout = batch.kernels, batch.layout.phases[batch.phase]
    node, C, T, K = kernels.node, _points(phase_layout, x), _seconds(phase_layout, x), len(batch.s)
    y = [
        ca.vertcat(
            *(
                (ca.DM(spline.matrix(batch.s, order)) @ points / T**order).T
                for spline, points in zip(phase_layout.splines, C, strict=True)
            )
        )
        for order in range(4)
    ]
    numbers = ca.vertcat(*(x[int(k)] for k in batch.layout.numbers.values())) if batch.layout.numbers else ca.MX(0, 1)
    inputs = [
        *node.y,
        node.T,
        node.numbers,
        node.s,
        kernels._given,
        ca.vertcat(ca.SX(0, 1), *kernels._data.values()),
    ]
    inputs += [] if node.Q is None else [node.Q]
    values = ca.Function("node", inputs, [node.value(kernels.rows_expression), node.value(kernels.cost_expression)])
    Q = None
    if node.Q is not None:
        start = node.model.positions(phase_layout.profiles(at, batch.s, 1)[0])
        Q = _closing(node.model, y[0], start)
    rows, total, data = [], ca.MX(0), kernels.data(batch.s)
    for k in range(K):
        given = [*(each[:, k] for each in y), T, numbers, float(batch.s[k]), kernels.given, data[k]]
        given += [] if Q is None else [Q[:, k]]
        found, cost = values(*given)
        rows.append(found)
        total += float(batch.weights[k]) * cost
    return ca.vertcat(*rows), total


def whole(problem: MotionProblem, at):
    """Return a function of (x, multipliers, weight) that gives f, rows, gradient, Jacobian and Hessian, all dense."""
    program = problem.program
    x = ca.MX.sym("x", program.n)
    found = [_batch(batch, x, at) for batch in program.batches]
    rows, f = [each[0] for each in found], sum((each[1] for each in found), start=ca.MX(0))
    for equation in program.linear.equations:
        row = ca.MX(0)
        for part in equation.parts:
            phase_layout = program.layout.phases[part.phase]
            basis = phase_layout.splines[part.profile].matrix([part.s], part.order)
            row += (
                part.coefficient
                * (ca.DM(basis) @ _points(phase_layout, x)[part.profile])
                / _seconds(phase_layout, x) ** part.order
            )
        rows.append(row)
    g = ca.vertcat(ca.MX(0, 1), *rows) / ca.DM(program.scales)
    felt, weight = ca.MX.sym("felt", program.m), ca.MX.sym("weight")
    H, _ = ca.hessian(weight * f + ca.dot(felt, g), x)
    outputs = [f, g, ca.gradient(f, x), ca.densify(ca.jacobian(g, x)), ca.densify(H)]
    return ca.Function("whole", [x, felt, weight], outputs)


def disagreement(problem: MotionProblem, seed: int = 0, size: float = 0.1):
    """Return the largest relative error of value, gradient, Jacobian and Hessian at a random place near the guess."""
    rng, program = np.random.default_rng(seed), problem.program
    x = problem.guess() + size * rng.uniform(-1, 1, program.n)
    felt, weight = rng.uniform(-1, 1, program.m), 0.7
    wanted = [np.asarray(each.full()) for each in whole(problem, x)(x, felt, weight)]
    f, g = program.value(x)
    gradient, entries = program.jacobian(x)
    jacobian = np.zeros((program.m, program.n))
    np.add.at(jacobian, program.structure, entries)
    H = program.hessian(x, felt, weight)
    i, j = program.hessian_structure
    seen = np.zeros_like(H, dtype=bool)
    seen[i, j] = seen[j, i] = True
    assert not H[~seen].any()
    pairs = zip((np.array([[f]]), g[:, None], gradient[:, None], jacobian, H), wanted, strict=True)
    found = []
    for a, b in pairs:
        assert np.isfinite(b).all()
        found.append(float(np.abs(a - b).max(initial=0.0) / max(1e-3, np.abs(b).max(initial=0.0))))
    return found
