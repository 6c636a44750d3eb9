"""Bang-bang motions: known least times, and errors."""

from itertools import pairwise

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion


def least_time(robot: torsor.Robot, start: list[float], end: list[float], points: int = 12, **limits: object):
    ends = motion.Start(q=start, v=0.0), motion.End(q=end, v=0.0)
    return motion.MotionProblem(
        robot, motion.Phase((0.05, 4.0), points=points), motion.Time(), [*ends, motion.Torques(**limits)]
    )


def test_two_link_arm_reaches_the_true_optimum():
    best = motion.switching(least_time(torsor.library.two_link(), [0, -2], [1, -1]))
    np.testing.assert_allclose(best.T, 0.39185453951551963, rtol=1e-10)
    assert best.switches[0] == pytest.approx([0.1959272697576295], rel=1e-9)
    assert best.switches[1] == pytest.approx([0.0457093212328104, 0.23530043136991013], rel=1e-9)
    assert best.first.tolist() == [1, -1]
    assert best.margin > 0


def slider(mass: float) -> torsor.Robot:
    links = [torsor.Link("ground"), torsor.Link("mass", mass)]
    joint = torsor.Joint("slide", "prismatic", "ground", "mass", axis=(1, 0, 0))
    return torsor.build("slider", links, [joint])


def test_a_mass_that_is_pushed_and_braked_takes_the_time_of_the_double_integrator():
    # With forces from -B to A: T^2 = 2 m d (A + B) / (A B), and the switch is at T B / (A + B).
    mass, way, push, brake = 2.0, 0.7, 5.0, 3.0
    best = motion.switching(least_time(slider(mass), [0.2], [0.2 + way], lower=-brake, upper=push))
    T = np.sqrt(2 * mass * way * (push + brake) / (push * brake))
    np.testing.assert_allclose(best.T, T, rtol=1e-10)
    assert best.switches[0] == pytest.approx([T * brake / (push + brake)], rel=1e-9)


def test_the_motion_replays_in_simulation():
    best = motion.switching(least_time(torsor.library.two_link(), [0, -2], [1, -1]))
    times, q, v = best.states(41)
    edges, state = np.unique(np.concatenate([[0.0], *best.switches, [best.T]])), (q[0], v[0])
    for begin, end in pairwise(edges):
        run = torsor.simulate(
            best.robot, *state, duration=end - begin, step=1e-4, controller=best.torques((begin + end) / 2)
        )
        state = run.q[-1], run.v[-1]
        inside = (times > begin) & (times < end)
        np.testing.assert_allclose(run.at(times[inside] - begin).q, q[inside], atol=1e-8)
    np.testing.assert_allclose(np.concatenate(state), [1, -1, 0, 0], atol=1e-9)


def test_too_few_switches_are_refused_by_joint():
    with refused(allowed="3 in total", fix="solve with more control points"):
        motion.switching(least_time(torsor.library.two_link(), [0, -2], [1, -1], points=6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": motion.Effort()}, "only Time"),
        ({"frozen": {"joint2": 0.0}}, "all free"),
        ({"constraints": [motion.Velocities(upper=1.0)]}, "Velocities"),
        ({"constraints": [motion.Start(q=0.0)]}, "Start must specify q and v"),
        ({"phases": [motion.Phase(1.0), motion.Phase(1.0)]}, "one phase"),
    ],
)
def test_what_is_no_bang_bang_problem_is_refused(change, message):
    given = {
        "robot": torsor.library.two_link(),
        "phases": motion.Phase((0.1, 2.0)),
        "objective": motion.Time(),
        "constraints": [motion.Start(q=0.0, v=0.0), motion.End(q=1.0, v=0.0), motion.Torques()],
    }
    with refused(message):
        motion.switching(motion.MotionProblem(**(given | change)))
