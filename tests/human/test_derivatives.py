"""Derivatives of torques, balance, friction and joint reactions agree with complex-step derivatives."""

import casadi as ca
import numpy as np
import pytest

from references.complex_steps import slopes_along
from torsor.human import walking
from torsor.human.contact.contact_forces import required
from torsor.library import human


def test_derivatives_of_the_ground_reaction_agree_with_complex_steps() -> None:
    body, rng = human(), np.random.default_rng(0)
    state = [ca.SX.sym(name, 55) for name in "qva"]
    origin = body.function("pose", place="pelvis")(state[0])[:3, 3]
    f, n = required(body.function("inverse_dynamics")(*state), state[0], origin)
    zmp = ca.vertcat(n[2], -n[0]) / f[1]
    values = ca.Function("ground", state, [f, n, zmp])
    jacobian = ca.Function("jacobian", state, [ca.jacobian(ca.vertcat(f, n, zmp), ca.vertcat(*state))])
    at = [0.2 * rng.normal(size=55) for _ in state]
    ways = [rng.normal(size=(55, 4)) for _ in state]
    wanted = np.concatenate(slopes_along(values, at, ways))
    found = jacobian(*at).full() @ np.concatenate(ways)
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("objective", [{"effort": 1.0}, {"effort": 1.0, "balance": 0.1, "joint loads": 0.01}])
def test_compiled_derivatives_of_a_walk_agree_with_complex_steps(objective: dict[str, float]) -> None:
    problem, rng = walking(objective=objective), np.random.default_rng(1)
    program = problem.program
    batch = next(each for each in program.batches if any(rows.title == "torques" for rows in each.kernels.constraints))
    traced, node = batch.kernels, batch.kernels.node
    x = np.clip(problem.guess() + 0.1 * rng.normal(size=program.n), program.lower, program.upper)
    given = batch._at(x)
    k, T = 10, float(given["T"])
    multipliers, names = rng.normal(size=traced.m), [*traced.inputs]
    symbols = [traced.inputs[name] for name in names]
    total = 0.7 * node.value(traced.cost_expression) + ca.dot(multipliers, node.value(traced.rows_expression))
    inputs = ca.vertcat(*(symbols[names.index(f"y_{d}")] for d in range(3)))
    gradient = ca.gradient(total, inputs)
    function = ca.Function(
        "node", symbols, [node.value(traced.rows_expression), node.value(traced.cost_expression), gradient]
    )
    at = [np.atleast_1d(given[name][k] if given[name].ndim == 2 or name == "s" else given[name]) for name in names]
    ways = [
        rng.normal(size=(each.numel(), 3)) * name.startswith("y_") for name, each in zip(names, symbols, strict=True)
    ]
    rows, cost, curvature = slopes_along(function, at, ways)
    along = np.stack([ways[names.index(f"y_{d}")] for d in range(3)])  # (orders, N, directions), by derivatives in time
    scaled = along * T ** np.arange(3.0)[:, None, None]
    jacobian, hessian_kernel = traced.jacobian(False), traced.hessian(False)
    found = jacobian.call(**given)
    pairs = jacobian.pairs
    jacobians = np.zeros((traced.m, 3, problem.program.layout.phases[0].columns.shape[0]))
    for d, entries in enumerate(found["rows"][k].reshape(3, -1)):
        jacobians[pairs[0], d, pairs[1]] = entries
    np.testing.assert_allclose(np.einsum("rdi,diw->rw", jacobians, scaled), rows, rtol=1e-9, atol=1e-8)
    size = jacobians[0].size
    own = found["cost"][k][:size].reshape(3, -1)
    np.testing.assert_allclose(np.einsum("di,diw->w", own, scaled), cost[0], rtol=1e-9)
    count = len(batch.s)
    hessian = hessian_kernel.call(**given, multipliers=np.tile(multipliers, (count, 1)), weight=np.full(count, 0.7))
    N, (i, j) = jacobians.shape[2], hessian_kernel.blocks
    H = np.zeros((3, N, 3, N))
    blocks = hessian["blocks"][k].reshape(3, 3, -1)
    for d in range(3):
        for e in range(3):
            H[d, i, e, j] = H[e, j, d, i] = blocks[d, e]
    J = np.zeros((3, traced.square_count, N))
    square_pairs = hessian_kernel.pairs
    J[:, square_pairs[0], square_pairs[1]] = hessian["squares"][k][: 3 * square_pairs.shape[1]].reshape(3, -1)
    H += 2 * 0.7 * np.einsum("dsi,esj->diej", J, J)
    wanted = curvature.reshape(3, N, -1) / T ** np.arange(3.0)[:, None, None]  # by derivatives in s
    np.testing.assert_allclose(
        np.einsum("diej,ejw->diw", H, scaled), wanted, rtol=1e-8, atol=1e-7 * np.abs(wanted).max()
    )
