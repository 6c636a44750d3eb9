"""Orientations are reached from far away too, and a path is followed from its start to its end."""

import numpy as np
import pytest

import torsor
from torsor import motion


@pytest.mark.parametrize("first", [-2.0, -0.5, 1.2])
def test_a_hand_a_quarter_turn_off_and_more_is_turned_exactly(first: float) -> None:
    robot = torsor.library.two_link().with_frame("tip", "link2", np.eye(4))
    up = motion.Orientation(frame="tip", axis=[1, 0, 0], direction=[0, 1, 0], at=1.0)
    start = motion.Start(q=[0.0, first], v=0.0)
    phase = motion.Phase((0.1, 2.0), points=8)
    limits = motion.Torques(upper=10.0)
    result = motion.MotionProblem(robot, phase, motion.Time(), [start, motion.End(v=0.0), limits, up]).solve()
    assert result.is_solved
    assert abs(robot.pose(result.q[-1], "tip")[:3, 0] - [0, 1, 0]).max() < 1e-6


def test_the_progress_along_a_path_goes_from_its_start_to_its_end() -> None:
    points = [[0, -2], [0.2, -2.1], [0.4, -2], [0.6, -1.7], [0.8, -1.3], [1, -1]]
    rest = [motion.Start(v=0.0), motion.End(v=0.0), motion.Torques(upper=10.0)]
    phase, path = motion.Phase((0.1, 2.0), points=10), motion.Path.through(points)
    result = motion.MotionProblem(torsor.library.two_link(), phase, motion.Time(), rest, path=path).solve()
    np.testing.assert_allclose(result.q[[0, -1]], [points[0], points[-1]], atol=1e-9)
