"""Repeated lifts end when the weakest joint lacks strength, and fatigue follows its exponential law."""

import numpy as np
import pytest

from torsor.human import Fatigue, JointLoads
from torsor.reproduce.documents.ground import MOST_LIFTS, integrated, lifts


def test_lifts_end_when_the_weakest_joint_lacks_strength_and_rests_delay_it() -> None:
    loads = JointLoads(0.1, {"right_knee_flexion": np.full(10, -0.8), "right_elbow_flexion": np.full(10, 0.8)})
    counts = []
    for rest in (0.0, 1.0):
        count, joint, remaining = lifts(loads, rest)
        assert joint == "right_knee_flexion"  # knees tire faster than elbows
        assert remaining[-1][joint] < 0.8 <= remaining[-2][joint] and len(remaining) == count
        counts.append(count)
    assert counts[0] < counts[1] < MOST_LIFTS
    assert lifts(loads, 1e3)[:2] == (MOST_LIFTS, "")


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_the_integrated_law_of_a_constant_load_is_its_exponential(load: float) -> None:
    law, seconds = Fatigue(0.05, 0.01, 3.0), 2.0
    expected = float(law.after([load], seconds)[0])
    assert integrated(np.array([load]), seconds, 0.0, 1, law) == pytest.approx(expected, abs=1e-7)
