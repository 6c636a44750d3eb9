"""Derivatives with closed loops agree with derivatives of the functions along motions with closed loops."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.compiler import count_operations
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.trees.tree import Tree
from torsor.robot.accessors import method_of

from .loaded import CASES, close, fewest, indices, mechanism, state, used
from .mechanisms import four_bar

# Central differences of the eighth order.
STENCIL = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
STEP = 0.002

QUICK = ["loaded", "elastic", "redundant", "ball"]
SOME = [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in [*CASES, "ball"]]

FUNCTIONS = {
    "constrained_velocities": "constrained_velocity_derivatives",
    "constrained_accelerations": "constrained_acceleration_derivatives",
    "constrained_inverse_dynamics": "constrained_inverse_dynamics_derivatives",
    "constrained_forward_dynamics": "constrained_forward_dynamics_derivatives",
    "loop_forces": "loop_force_derivatives",
    "loop_wrenches": "loop_wrench_derivatives",
    "constrained_joint_wrenches": "constrained_joint_wrench_derivatives",
}


def inputs(robot: torsor.Robot, q: np.ndarray, name: str) -> tuple[list[np.ndarray], dict]:
    _, _, x, x_rate, external = state(robot, q)
    tau, share = np.random.default_rng(5).normal(size=len(x)), np.linspace(1.0, 2.0, len(x))
    if name == "constrained_velocities":
        return [q, x], {}
    if name == "constrained_accelerations":
        return [q, x, x_rate], {}
    if name == "constrained_forward_dynamics":
        return [q, x, tau], {"external": external}
    return [q, x, x_rate], {"external": external, "share": share}


def moved(robot: torsor.Robot, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Positions a step along ``integrate`` from q, closed by coordinates that are not among the independent ones."""
    rest = [k for k in range(robot.nv) if k not in robot.closed.closure.driven_choice.independent]
    q = robot.integrate(q, step)
    for _ in range(5):
        A, back = robot.closed.jacobian(q), np.zeros(robot.nv)
        back[rest] = -np.linalg.lstsq(A[:, rest], robot.closed.error(q), rcond=None)[0]
        q = robot.integrate(q, back)
    assert np.abs(robot.closed.error(q)).max() < 1e-14
    return q


def agreed(robot: torsor.Robot, values: list[np.ndarray], name: str) -> list[np.ndarray]:
    """The same inputs, in which the rates of all active coordinates follow from those that move the mechanism."""
    q, x, *rest = values
    own, moves = used(robot), bool(rest) and name != "constrained_forward_dynamics"
    rate = rest[0][own] if moves else np.zeros(len(own))
    v, a = fewest(robot).closed.accelerations(q, x[own], rate)
    return [q, v[indices(robot)], *([a[indices(robot)]] if moves else rest)]


def slope(function, along) -> np.ndarray:
    return sum(c * (function(along(k * STEP)) - function(along(-k * STEP))) for k, c in STENCIL.items()) / STEP


@pytest.mark.parametrize("case", SOME)
def test_derivatives_are_slopes_along_closed_ways(case: str) -> None:
    robot, q = mechanism(case)
    columns = used(robot)
    _, G = robot.closed.derivatives.velocities(q, np.zeros(len(robot.active)))
    for name, derivative in FUNCTIONS.items():
        values, loads = inputs(robot, q, name)

        def result(which: int, value: np.ndarray, name=name, values=values, loads=loads) -> np.ndarray:
            given = agreed(robot, [*values[:which], value, *values[which + 1 :]], name)
            found = method_of(robot, name)(*given, **loads)
            return found[1] if name == "constrained_accelerations" else found

        found = method_of(robot, derivative)(*values, **loads)
        for which, by in enumerate(found):
            driven = range(len(robot.active)) if name == "constrained_forward_dynamics" and which == 2 else columns
            expected = np.zeros_like(by)
            for k in driven:
                unit = np.eye(len(robot.active))[k]
                if which == 0:
                    way = slope(lambda at: result(0, at), lambda h, k=k: moved(robot, q, h * G[:, k]))
                else:
                    way = slope(
                        lambda at, which=which: result(which, at),
                        lambda h, unit=unit, start=values[which]: start + h * unit,
                    )
                expected[..., k] = way
            close(by, expected, 1e-9)


@pytest.mark.parametrize("case", SOME)
def test_derivatives_are_those_of_the_traced_functions(case: str) -> None:
    robot, q = mechanism(case)
    _, G = robot.closed.derivatives.velocities(q, np.zeros(len(robot.active)))
    for name, derivative in FUNCTIONS.items():
        values, loads = inputs(robot, q, name)
        given = [*values, *([loads["share"]] if "share" in loads else []), *([loads["external"]] if loads else [])]
        for which, by in enumerate(method_of(robot, derivative)(*values, **loads)):
            for k in range(len(robot.active)):
                change = G[:, k] if which == 0 else np.eye(len(robot.active))[k]
                tangents = [change if each == which else None for each in range(len(given))]
                _, expected = robot.derivatives.jvp(name, given, tangents, external=bool(loads))
                expected = expected[1] if isinstance(expected, tuple) else expected
                close(by[..., k], expected)


def test_rates_of_results_come_from_rates_of_all_active_coordinates() -> None:
    robot, q = mechanism("redundant")
    v, _, x, x_rate, _ = state(robot, q)
    dq, dv, da = robot.closed.derivatives.inverse_dynamics(q, x, x_rate)
    independent = [robot.coordinate_names[k] for k in robot.closed.closure.driven_choice.independent]
    spare = [k for k, name in enumerate(robot.active) if name not in independent]
    assert spare and not dq[:, spare].any() and not dv[:, spare].any() and not da[:, spare].any()
    _, expected = robot.derivatives.jvp(
        "constrained_inverse_dynamics", (q, x, x_rate, np.ones(2)), (v, x_rate, x, None)
    )
    close(dq @ x + dv @ x_rate + da @ x, expected)


def test_loads_that_stay_in_the_world_turn_back() -> None:
    robot, q = mechanism("revolute")
    _, _, x, x_rate, external = state(robot, q)
    _, G = robot.closed.derivatives.velocities(q, x)
    start = robot.poses(q)[:, :3, :3]

    def forces(at: np.ndarray) -> np.ndarray:
        turned = np.einsum("lji,ljk->lik", robot.poses(at)[:, :3, :3], start)
        kept = np.concatenate([np.einsum("lij,lj->li", turned, part) for part in np.split(external, 2, -1)], axis=-1)
        return robot.closed.inverse_dynamics(at, x, x_rate, kept)

    dq, _, _ = robot.closed.derivatives.inverse_dynamics(q, x, x_rate, external, fixed_in="world")
    for k in range(len(x)):
        close(dq[:, k], slope(forces, lambda h, k=k: moved(robot, q, h * G[:, k])), 1e-9)


def test_batches_are_what_their_states_are() -> None:
    robot = four_bar()
    q = robot.closed.assemble(np.linspace(0.3, 2.0, 5)[:, None], guess=[0.5, 1.0, 1.5])
    many = robot.closed.derivatives.inverse_dynamics(q, np.ones(1), np.zeros(1))
    one = robot.closed.derivatives.inverse_dynamics(q[3], np.ones(1), np.zeros(1))
    for each, single in zip(many, one, strict=True):
        assert each.shape == (5, 1, 1)
        np.testing.assert_allclose(each[3], single, rtol=1e-12)


def by_casadi(robot: torsor.Robot, name: str) -> int:
    """Operations of CasADi's own derivatives of a traced function, along G for positions."""
    function = robot.function(name)
    x = [ca.SX.sym(function.name_in(k), *function.size_in(k)) for k in range(function.n_in())]
    found = function(*x)
    found = found[-1] if isinstance(found, tuple) else found
    along = steps(Tree.of(robot), x[0]) @ robot.function("constrained_velocity_derivatives")(x[0], x[1])[1]
    count = 2 if name == "constrained_velocities" else 3
    J = [ca.jacobian(found, x[0]) @ along, *(ca.jacobian(found, each) for each in x[1:count])]
    return sum(count_operations(ca.Function("J", x, ca.cse(J))))


# A rod has one equation, and all derivatives of one number are cheap: there CasADi needs fewer operations.
COUNTED = [
    each if each in QUICK[:4] else pytest.param(each, marks=pytest.mark.slow)
    for each in [*CASES, "ball"]
    if each != "rod"
]


@pytest.mark.parametrize("case", COUNTED)
def test_operations_are_fewer_than_those_of_casadis_derivatives(case: str) -> None:
    robot, _ = mechanism(case)
    for name, derivative in FUNCTIONS.items():
        assert sum(robot.operation_count(derivative)) < by_casadi(robot, name), name
