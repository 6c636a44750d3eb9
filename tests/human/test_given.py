"""What is asked of a walk in vain is told before the search, and nothing that is given is passed over in silence."""

import re
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor.human import Backpack, Box, Habits, Stride, ground_reaction, walking
from torsor.library import human
from torsor.mechanism import Link
from torsor.motion import MotionResult
from torsor.optimisation.outcome import Outcome


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"body": "human"}, "body is 'human'; allowed: a torsor.library.human()"),
        ({"body": human(gravity=(0.0, 0.0, -9.81))}, "gravity is [0.0, 0.0, -9.81]; allowed: (0, -g, 0)"),
        ({"body": human(gravity=(0.0, 0.0, 0.0))}, "gravity is 0; allowed: a body that the ground carries"),
        ({"version": ["thesis"]}, "version is ['thesis']"),
        ({"steps": 2.0}, "steps is 2.0; allowed: 1 or 2"),
        ({"steps": True}, "steps is True; allowed: 1 or 2"),
        ({"frozen": ["right_knee_flexion"]}, "frozen is ['right_knee_flexion']; allowed: a table"),
        ({"strength": 0.5}, "strength is 0.5; allowed: a table"),
        ({"objective": "effort"}, "objective is 'effort'; allowed: a table"),
        ({"planar": "no"}, "planar is 'no'; allowed: a bool"),
        ({"habits": Habits}, "allowed: a Habits"),
        ({"points": "6"}, "points is '6'; allowed: a whole number"),
        ({"nodes": 31.5}, "nodes is 31.5; allowed: a whole number from 2, or shares"),
        ({"slack": np.inf}, "slack is inf; allowed: a finite number, above 0"),
        ({"slope": True}, "slope is True; allowed: rad"),
        ({"habits": Habits(ranges={"knee_flexon": (0, 5)})}, "ranges name 'knee_flexon'"),
    ],
)
def test_walks_of_the_wrong_kind_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(torsor.ModelError, match=re.escape(message)):
        walking(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("habit", "value"),
    [
        ("ranges", 5),
        ("ranges", {"knee_flexion": 5}),
        ("ranges", {"knee_flexion": (50, 5)}),
        ("ranges", {"knee_flexion": (np.nan, 5)}),
        ("sway", -1),
        ("lean", (1, 0)),
        ("lean", 5),
        ("drop", "a"),
        ("arms", np.nan),
        ("posture", -1),
        ("clearance", None),
        ("knee", 60),
    ],
)
def test_habits_that_are_none_are_refused(habit: str, value: object) -> None:
    with pytest.raises(torsor.ModelError, match=f"habits: .*{habit.removesuffix('s')}.*; allowed: "):
        Habits(**{habit: value})  # type: ignore[arg-type]


def test_loads_that_are_nowhere_are_refused() -> None:
    for make, message in (
        (lambda: Backpack(5.0, height=np.nan), "height is nan; allowed: a finite number"),
        (lambda: Box(5.0, near=0.6), "near, far is (0.6, 0.5)"),
        (lambda: Box(5.0, low=0.3), "low, high is (0.3, 0.0)"),
    ):
        with pytest.raises(torsor.ModelError, match=re.escape(message)):
            make()


def test_segments_are_links_of_their_names() -> None:
    heavy = human(segments={"head": Link("head", 8.0)})
    assert heavy.mass == pytest.approx(human().mass + 8.0 - human().links[heavy.link_names.index("head")].mass)
    assert human(1.7, np.int64(70)).mass == pytest.approx(70.0)  # type: ignore[arg-type]
    for segments, message in (
        ({"tail": None}, "no segment 'tail'; allowed: ground, pelvis"),
        ({"head": 5.0}, "segment 'head' is 5.0; allowed: a Link of that name"),
        ({"head": Link("skull", 4.0)}, "segment 'head' is Link(name='skull'"),
        ([1], "segments is [1]; allowed: a table"),
    ):
        with pytest.raises(torsor.ModelError, match=re.escape(message)):
            human(segments=segments)  # type: ignore[arg-type]


def test_a_body_whose_sides_differ_needs_two_steps() -> None:
    """The second step of one is the mirror image of the first, which a lighter leg on one side makes wrong."""
    shank = human().links[human().link_names.index("right_shank")]
    body = human(segments={"right_shank": Link("right_shank", 2.0, shank.com, shank.inertia / 2)})
    with pytest.raises(torsor.ModelError, match=r"right_shank is not left_shank in a mirror; fix: steps=2"):
        walking(body)
    assert walking(body, steps=2).name == "walk"


def test_what_is_no_result_and_no_body_is_refused() -> None:
    with pytest.raises(torsor.ModelError, match="result is 5; allowed: what solve"):
        Stride(5)  # type: ignore[arg-type]
    with pytest.raises(torsor.ModelError, match="body is 5; allowed: a body"):
        ground_reaction(5, *np.zeros((3, 55)))  # type: ignore[arg-type]


def test_a_walk_is_saved_without_its_problem_and_loaded_with_it(tmp_path: Path) -> None:
    problem = walking()
    with pytest.raises(torsor.ModelError, match=r"effort: Effort of torsor.human.terms.forces cannot be written"):
        problem.save(tmp_path / "walk.toml")
    program, x = problem.program, problem.guess()
    none = np.zeros(program.m), np.zeros(program.n)
    MotionResult(problem, Outcome(x, *none, 0.0, 0, "by hand", False), "condensed").save(tmp_path / "walk.npz")
    with pytest.raises(torsor.ModelError, match="does not hold its problem; fix: give problem="):
        MotionResult.load(tmp_path / "walk.npz")


def test_wrists_bend_farther_away_from_the_thumb_than_towards_it() -> None:
    """Thumbs point forward while arms hang: the hand goes back, to the side of the little finger, by 30 degrees."""
    body, q = human(), np.zeros(55)
    for side in ("right", "left"):
        k = body.coordinate_names.index(f"{side}_wrist_deviation")
        assert np.degrees([body.lower[k], body.upper[k]]) == pytest.approx([-20.0, 30.0])
        q[k] = 0.3
        assert body.pose(q, f"{side}_knuckles")[2, 3] < body.pose(q, f"{side}_wrist")[2, 3]
