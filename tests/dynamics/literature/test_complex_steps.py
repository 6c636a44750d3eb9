"""Derivatives and rates agree with complex steps of the published recursions, exact and independent of the library.

A function of complex numbers that is analytic has f(x + ih) = f(x) + ih f'(x) but for h^2, which is nothing at 1e-30.
"""

import numpy as np
import pytest

from torsor.reproduce.equations import barman, guarino, khalil, lie

from .conventions import Serial, Tree

TOLERANCE, STEP = 1e-9, 1e-30
SERIAL = [(3, 0), (6, 1)]
TREES = [(5, 0), (8, 1)]


def assert_same(actual, expected):
    """Assert agreement relative to the largest component."""
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


def derivatives(function, *values):
    """Return the derivatives of a function by each of the vectors it takes, the variable last."""
    found = []
    for which, value in enumerate(values):
        columns = []
        for unit in np.eye(len(value)):
            moved = [each + 1j * STEP * unit if k == which else each for k, each in enumerate(values)]
            columns.append(function(*moved).imag / STEP)
        found.append(np.moveaxis(np.array(columns), 0, -1))
    return found


def rate(function, q, v, a, j):
    """Return the rate in time of a function of (t, q, v, a) along the motion of constant j, at its start."""
    t = 1j * STEP
    moved = function(t, q + v * t + a * t**2 / 2, v + a * t + j * t**2 / 2, a + j * t)
    return moved.imag / STEP


# Serial robots, in the four published forms

FORMS = {
    "standard DH": (barman.inverse_dynamics, lambda case: (case.dh, case.from_dh().robot)),
    "modified DH": (guarino.inverse_dynamics, lambda case: (case.mdh, case.from_mdh().robot)),
    "screws": (lie.compact, lambda case: (case.screws, case.from_screws().robot)),
    "six parameters": (khalil.inverse_dynamics, lambda case: (case.tree, case.from_mdh().robot)),
}


@pytest.fixture(scope="module", params=[(form, *size) for form in FORMS for size in SERIAL], ids=str)
def serial(request):
    """The library's robot, the published inverse dynamics as a function of the state, and a motion."""
    form, *size = request.param
    case = Serial(*size)
    published, make = FORMS[form]
    data, robot = make(case)
    jerk = np.random.default_rng(8).normal(size=case.n)
    return robot, lambda q, v, a: published(data, q, v, a)[0], (*case.state, jerk)


def test_derivatives_of_forces_are_those_of_every_published_form(serial):
    robot, published, (*state, _) = serial
    for found, expected in zip(robot.derivatives.inverse_dynamics(*state), derivatives(published, *state), strict=True):
        assert_same(found, expected)


def test_derivatives_of_accelerations_are_those_of_every_published_form(serial):
    """Forward dynamics inverts the published inverse dynamics, which is affine in a."""
    robot, published, (q, v, a, _) = serial

    def accelerations(q, v, tau):
        rest = published(q, v, np.zeros(len(v)))
        columns = [published(q, v, unit) - rest for unit in np.eye(len(v))]
        return np.linalg.solve(np.array(columns).T, tau - rest)

    tau = published(q, v, a)
    expected = derivatives(accelerations, q, v, tau)
    for found, each in zip(robot.derivatives.forward_dynamics(q, v, tau), expected, strict=True):
        assert_same(found, each)


def test_rates_of_forces_are_those_of_every_published_form(serial):
    robot, published, motion = serial
    tau, tau_rate = robot.force_rate(*motion)
    assert_same(tau, published(*motion[:3]))
    assert_same(tau_rate, rate(lambda t, q, v, a: published(q, v, a), *motion))


# Trees with rotors, friction and a load on every link


@pytest.fixture(scope="module", params=TREES, ids=lambda p: f"{p[0]}-joints-{p[1]}")
def tree(request):
    return Tree(*request.param)


def test_derivatives_of_forces_and_reactions_of_trees_are_khalils(tree):
    def forces(*state):
        return khalil.inverse_dynamics(tree.reference, *state, tree.fe, tree.me)[0]

    def reactions(*state):
        _, f, m = khalil.inverse_dynamics(tree.reference, *state, tree.fe, tree.me)
        return np.hstack([m, f])

    found = tree.robot.derivatives.inverse_dynamics(*tree.state, external=tree.external)
    for each, expected in zip(found, derivatives(forces, *tree.state), strict=True):
        assert_same(each, expected)
    found = tree.robot.derivatives.joint_wrenches(*tree.state, external=tree.external)
    for each, expected in zip(found, derivatives(reactions, *tree.state), strict=True):
        assert_same(each, expected)


def test_derivatives_of_accelerations_of_trees_are_khalils(tree):
    def accelerations(q, v, tau):
        A, H = khalil.direct_model(tree.reference, q, v, tree.fe, tree.me)
        return np.linalg.solve(A, tau - H)

    q, v, tau = tree.state
    found = tree.robot.derivatives.forward_dynamics(q, v, tau, external=tree.external)
    for each, expected in zip(found, derivatives(accelerations, q, v, tau), strict=True):
        assert_same(each, expected)


def test_rates_of_forces_and_reactions_of_trees_are_khalils(tree):
    rng = np.random.default_rng(9)
    motion, load_rate = (*tree.state, rng.normal(size=tree.robot.nv)), rng.normal(size=tree.external.shape)

    def published(t, q, v, a):
        load = tree.external + load_rate * t
        return khalil.inverse_dynamics(tree.reference, q, v, a, -load[:, 3:], -load[:, :3])

    _, tau_rate = tree.robot.force_rate(*motion, tree.external, load_rate)
    assert_same(tau_rate, rate(lambda *now: published(*now)[0], *motion))
    _, wrench_rate = tree.robot.joint_wrench_rates(*motion, tree.external, load_rate)
    assert_same(wrench_rate, rate(lambda *now: np.hstack(published(*now)[:0:-1]), *motion))
