"""Forces, reactions and their sensitivities agree with Barman's ten steps, corrected."""

import numpy as np
import pytest

import torsor
from torsor.reproduce.equations import barman

from .conventions import Serial

TOLERANCE = 1e-10
CASES = [(1, 0), (2, 1), (3, 0), (4, 1), (6, 0), (6, 1), (7, 1)]


def assert_same(actual, expected, tolerance=TOLERANCE):
    """Assert agreement relative to the largest component."""
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * max(np.abs(expected).max(), 1e-3))


def printed(*rows):
    """The paper's robots: theta, d, a, alpha, revolute, and centre of mass of each link."""
    theta, d, a, alpha, revolute, r = (np.array(column, float) for column in zip(*rows, strict=True))
    n = len(rows)
    inertias = np.tile(0.1 * np.eye(3), (n, 1, 1))
    return barman.Robot(revolute.astype(bool), theta, d, a, alpha, r, np.full(n, 0.5), inertias, np.zeros(3))


QUARTER = np.pi / 2
EXAMPLES = {
    "two_link": printed((0, 0, 0.4, 0, True, (-0.2, 0, 0)), (0, 0, 0.4, 0, True, (-0.2, 0, 0))),  # Tables 4.1, 4.2
    "slide_link": printed(  # Tables 4.3, 4.4
        (QUARTER, 0.4, 0, QUARTER, False, (0, -0.2, 0)), (QUARTER, 0, 0.4, 0, True, (-0.2, 0, 0))
    ),
}


@pytest.fixture(scope="module", params=[*CASES, *EXAMPLES], ids=str)
def pair(request):
    """The data, the library's robot, a state."""
    if isinstance(request.param, str):
        state = np.random.default_rng(4).normal(size=(3, 2))
        return EXAMPLES[request.param], getattr(torsor.library, request.param)(), state
    case = Serial(*request.param)
    return case.dh, case.from_dh().robot, case.state


def test_the_sensitivities_of_the_motion_of_each_link(pair):
    """Steps 3 to 6: angular velocity, angular acceleration and acceleration of O_j, by q, qd and qdd."""
    dh, robot, state = pair
    robot, steps = robot.to(device="casadi"), list(barman.outward(dh, *state))
    for j in {0, len(steps) // 2, len(steps) - 1}:
        _, w, wd, xdd, _ = steps[j]
        dq, dv = robot.derivatives.velocity(*state[:2], j)
        assert_same(dq[:3], w.q)
        assert_same(dv[:3], w.qd)
        found = robot.derivatives.acceleration(*state, j)
        for derivative, part in zip(found, ("q", "qd", "qdd"), strict=True):
            assert_same(derivative, np.vstack([getattr(wd, part), getattr(xdd, part)]))


def at_the_far_end(dh, q, F, T):
    """Wrenches (moment, force) at O_j, with their sensitivities, from the paper's at O_{j-1}; all are in frame j."""
    found = []
    for j in range(len(dh.m)):
        link = barman.Link(dh, j, q)
        force, moment = (barman.Sensitive(*(part[j] for part in each)) for each in (F, T))
        moment = moment + barman.moment_of(-link.Dx, -link.Dx_q, force)
        found.append([np.concatenate([getattr(x, part) for x in (moment, force)]) for part in ("x", "q", "qd", "qdd")])
    return [np.array(part) for part in zip(*found, strict=True)]


def loaded(robot, dh, q):
    """Return a load on the next-to-last link, at its origin, and the same load in the form of the library."""
    k = max(len(dh.m) - 2, 0)
    F, tau = np.random.default_rng(5).normal(size=(2, 3)) * 10
    R = robot.poses(q)[k, :3, :3]
    external = np.zeros((len(dh.m), 6))
    external[k] = -np.concatenate([R.T @ tau, R.T @ F])  # the paper's is what the robot does to its environment
    return barman.Load(k, F, tau, np.zeros(3)), external


@pytest.mark.parametrize("with_load", [False, True], ids=["free", "loaded"])
def test_forces_and_their_sensitivities_are_the_documents(pair, with_load):
    dh, robot, state = pair
    load, external = loaded(robot, dh, state[0]) if with_load else (None, None)
    (tau, *by_state), _, _ = barman.sensitivities(dh, *state, load)
    assert_same(robot.inverse_dynamics(*state, external=external), tau)
    found = robot.derivatives.inverse_dynamics(*state, external=external, fixed_in="world")
    for each, expected in zip(found, by_state, strict=True):
        assert_same(each, expected)


@pytest.mark.parametrize("with_load", [False, True], ids=["free", "loaded"])
def test_reactions_and_their_sensitivities_are_the_documents(pair, with_load):
    dh, robot, state = pair
    load, external = loaded(robot, dh, state[0]) if with_load else (None, None)
    _, F, T = barman.sensitivities(dh, *state, load)
    wrenches, *by_state = at_the_far_end(dh, state[0], F, T)
    assert_same(robot.joint_wrenches(*state, external=external), wrenches)
    found = robot.derivatives.joint_wrenches(*state, external=external, fixed_in="world")
    for each, expected in zip(found, by_state, strict=True):
        assert_same(each, expected)


def test_the_documents_sensitivities_are_the_derivatives_of_its_forces(pair):
    """By complex steps, under a load with a moment arm."""
    dh, robot, state = pair
    load = loaded(robot, dh, state[0])[0]._replace(r=np.array([0.1, -0.2, 0.3]))
    found, n, h = barman.sensitivities(dh, *state, load), len(dh.m), 1e-30
    for which in range(3):
        for i in range(n):
            moved = np.array(state, complex)
            moved[which, i] += 1j * h
            steps = barman.inverse_dynamics(dh, *moved, load)
            for each, step in zip(found, steps, strict=True):
                assert_same(each[1 + which][..., i], step.imag / h, 1e-12)
