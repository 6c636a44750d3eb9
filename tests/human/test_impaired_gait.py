"""Crouched and asymmetric walks: given ranges, locked joints, weak sides and legs of different lengths."""

import numpy as np
import pytest

from refusals import refused, warned
from torsor.cli.predictions.walk import WALK
from torsor.human import Stride, walking
from torsor.library import human
from torsor.motion import Positions
from torsor.robot.robot import Robot

CROUCHED = {"knee_flexion": (0.5, 1.6), "ty": (-0.25, 0.0), "ankle_flexion": (-0.5, 0.5)}


def short_leg() -> Robot:
    model = human().parametric(["joints.right_knee_flexion.origin.y"])
    return model.at(0.97 * model.values)


def test_ranges_replace_those_of_habits():
    made = walking(ranges={"knee_flexion": (0.5, 1.9), "ty": (-0.25, 0.0)})
    ranges = next(each for each in made.terms if isinstance(each, Positions) and each.title == "ranges")
    assert ranges.lower["left_knee_flexion"] == 0.5 and ranges.upper["right_knee_flexion"] == 1.9
    assert ranges.lower["ty"] == -0.25


def test_a_warning_names_the_range_of_a_joint_that_a_given_range_exceeds():
    body = human()
    most = float(body.upper[body.coordinate_names.index("left_knee_flexion")])
    with warned(what="right_knee_flexion' is 0.5 to 9", allowed=f"0 to {most:.4g}") as caught:
        made = walking(ranges={"knee_flexion": (0.5, 9.0)})
    ranges = next(each for each in made.terms if isinstance(each, Positions) and each.title == "ranges")
    assert len(caught) == 1 and "left_knee_flexion" in str(caught[0].message)
    assert ranges.lower["left_knee_flexion"] == 0.5 and ranges.upper["right_knee_flexion"] == most


def test_the_command_has_ranges_in_degrees_and_metres():
    made = WALK.problem({"range": [("knee_flexion", (30.0, 90.0)), ("ty", (-0.2, 0.0))]})
    ranges = next(each for each in made.terms if isinstance(each, Positions) and each.title == "ranges")
    assert ranges.lower["right_knee_flexion"] == pytest.approx(np.radians(30)) and ranges.lower["ty"] == -0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranges": {"knee": (0.0, 1.0)}}, "ranges"),
        ({"ranges": {"knee_flexion": (1.0, 0.5)}}, "the range of knee_flexion"),
        (
            {"ranges": {"knee_flexion": (-1.0, -0.5)}},
            "the range of right_knee_flexion is -1 to -0.5",
        ),
        ({"ranges": {"neck_flexion": (0.0, 0.5)}}, "the range of neck_flexion is 0 to 0.5"),
        (
            {"ranges": {"right_knee_flexion": (0.0, 0.5)}},
            "ranges: right_knee_flexion differs from left",
        ),
        ({"body": short_leg()}, "the origin of joint right_knee_flexion is not the mirror image"),
    ],
)
def test_ranges_and_sides_that_cannot_be_are_refused(options, message):
    with refused(message):
        walking(**options)


def check(result) -> tuple[Stride, Stride]:
    """Check the laws of mechanics over a stride, and return those of both sides."""
    right, left = (Stride(result, side) for side in ("right", "left"))
    assert result.is_feasible
    for stride in (right, left):
        assert abs(stride.energy.residual) < 1e-9 * stride.energy.positive
        whole = stride.forces.sum(axis=1)
        np.testing.assert_allclose(np.trapezoid(whole, stride.s, axis=0), [0.0, 1.0, 0.0], atol=5e-3)
    np.testing.assert_allclose(right.energy.change, 0.0, atol=1e-6)
    return right, left


@pytest.mark.slow
def test_a_crouched_walk_loads_the_knees():
    upright, crouched = walking().solve(), walking(ranges=CROUCHED).solve()
    right, _ = check(crouched)
    assert right.angle("knee_flexion").min() > np.degrees(0.5) - 0.1
    assert right.moment("knee_extension").max() > 1.2 * Stride(upright).moment("knee_extension").max()
    assert crouched.parts[0].weighted > upright.parts[0].weighted


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
@pytest.mark.parametrize(
    "options",
    [
        {"frozen": {"right_ankle_flexion": 0.0}},
        {"strength": {"right_knee_flexion": 0.3, "right_hip_flexion": 0.5}},
        {"body": short_leg()},
    ],
    ids=["locked ankle", "weak side", "short leg"],
)
def test_sides_that_differ_walk_differently(options):
    right, left = check(walking(steps=2, **options).solve(check=False))
    assert np.abs(right.angle("knee_flexion") - left.angle("knee_flexion")).max() > 2.0
    if "frozen" in options:
        assert np.ptp(right.angle("ankle_flexion")) < 1e-9 < np.ptp(left.angle("ankle_flexion"))
