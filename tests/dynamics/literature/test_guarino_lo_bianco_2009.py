"""Forces, reactions and their rates agree with Guarino Lo Bianco's equations, corrected."""

import numpy as np
import pytest

import torsor
from torsor.reproduce.equations import guarino

from .conventions import Serial, random_rotation

TOLERANCE = 1e-10
CASES = [(1, 0), (2, 1), (3, 0), (4, 1), (6, 0), (6, 1), (7, 1)]
QUARTER = np.pi / 2
STANFORD = guarino.Robot(  # Tables I and II; the lost column as in the library
    revolute=np.array([True, True, False, True, True, True]),
    a=np.zeros(6),
    alpha=QUARTER * np.array([0, -1, 1, 0, -1, 1]),
    theta=QUARTER * np.array([0, 0, -1, 0, 0, 0]),
    d=np.array([0.412, 0.154, 0, 0, 0, 0.263]),
    m=np.array([9.29, 5.01, 4.25, 1.08, 0.63, 0.51]),
    c=np.array(
        [
            (0, -0.1105, -0.0175),
            (0, 0, -0.1054),
            (0, 0, -0.6447),
            (0, -0.0054, -0.0092),
            (0, -0.0566, 0),
            (0, 0, 0.1554),
        ]
    ),
    I=np.array(
        [
            np.diag(moments)
            for moments in (
                (0.276, 0.071, 0.255),
                (0.108, 0.100, 0.018),
                (2.51, 2.51, 0.006),
                (0.002, 0.001, 0.001),
                (0.003, 0.0004, 0.003),
                (0.013, 0.013, 0.0003),
            )
        ]
    ),
    g=np.array([0, 0, -9.81]),
)


def assert_same(actual, expected):
    """Assert agreement relative to the largest component."""
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


@pytest.fixture(scope="module", params=[*CASES, "stanford"], ids=str)
def pair(request):
    """The data, the library's robot, a motion (q, v, a, j)."""
    motion = np.random.default_rng(6).normal(size=(4, 6))
    if request.param == "stanford":
        return STANFORD, torsor.library.stanford(), motion
    case = Serial(*request.param)
    return case.mdh, case.from_mdh().robot, (*case.state, case.state[0] * case.state[1])


@pytest.fixture(scope="module", params=["free", "loaded"])
def rates(request, pair):
    """The library's robot and arguments, and the paper's results."""
    mdh, robot, motion = pair
    if request.param == "free":
        return robot, motion, guarino.force_rates(mdh, *motion)
    rng, w = np.random.default_rng(7), robot.velocities(*motion[:2])[-1, :3]
    tip = guarino.Tip(random_rotation(rng), *rng.normal(size=(5, 3)) * [[0.2], [10], [10], [10], [10]])
    loads = []
    for n, f in ((tip.n, tip.f), (tip.n_rate, tip.f_rate)):
        external = np.zeros((robot.nv, 6))  # the paper's tip is what the robot does to its environment
        external[-1] = -np.concatenate([tip.R @ n + np.cross(tip.p, tip.R @ f), tip.R @ f])
        loads.append(external)
    # The link's axes turn under what the observer at rest sees; so does p, but p is fixed there.
    f, n = tip.R @ tip.f, tip.R @ tip.n
    loads[1][-1, 3:] += np.cross(w, f)
    loads[1][-1, :3] += np.cross(w, n) + np.cross(tip.p, np.cross(w, f))
    return robot, (*motion, *loads), guarino.force_rates(mdh, *motion, tip)


def test_forces_and_their_rates_are_the_documents(rates):
    robot, arguments, (tau, tau_rate, *_) = rates
    for found, expected in zip(robot.force_rate(*arguments), (tau, tau_rate), strict=True):
        assert_same(found, expected)


def test_reactions_and_their_rates_are_the_documents(rates):
    """The library's are rates of components in turning axes, the paper's those seen at rest."""
    robot, arguments, (_, _, f, n, f_rate, n_rate) = rates
    w = robot.velocities(*arguments[:2])[:, :3]
    wrench, rate = robot.joint_wrench_rates(*arguments)
    assert_same(wrench, np.hstack([n, f]))
    assert_same(rate, np.hstack([n_rate - np.cross(w, n), f_rate - np.cross(w, f)]))
