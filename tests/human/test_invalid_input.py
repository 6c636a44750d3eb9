"""Invalid input raises an error that names the argument, before anything is solved."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.human import (
    TASKS,
    Backpack,
    Box,
    Fatigue,
    Habits,
    JointLoads,
    Stride,
    fatigued,
    ground_reaction,
    joint_strength,
    walking,
)
from torsor.library import human
from torsor.mechanism import Link
from torsor.motion import MotionProblem, MotionResult
from torsor.motion.encoding import decoded
from torsor.optimisation.program import Outcome


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"body": "human"}, "body"),
        ({"body": human(gravity=(0.0, 0.0, -9.81))}, "gravity is [0.0, 0.0, -9.81]"),
        ({"body": human(gravity=(0.0, 0.0, 0.0))}, "a body that has weight"),
        ({"steps": 2.0}, "steps"),
        ({"steps": True}, "steps"),
        ({"frozen": ["right_knee_flexion"]}, "frozen"),
        ({"strength": 0.5}, "strength"),
        ({"objective": "effort"}, "objective"),
        ({"planar": "no"}, "planar"),
        ({"habits": Habits}, "habits"),
        ({"points": "6"}, "points"),
        ({"nodes": 31.5}, "nodes"),
        ({"slack": np.inf}, "slack"),
        ({"slope": True}, "slope"),
        ({"habits": Habits(ranges={"knee_flexon": (0, 5)})}, "ranges"),
    ],
)
def test_invalid_arguments_of_walking_raise(options: dict[str, object], message: str) -> None:
    with refused(message):
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
def test_invalid_habits_raise(habit: str, value: object) -> None:
    with refused(where="habits") as caught:
        Habits(**{habit: value})  # type: ignore[arg-type]
    assert habit.removesuffix("s") in caught.value.argument


def test_invalid_loads_raise() -> None:
    for make, message in (
        (lambda: Backpack(5.0, height=np.nan), "height"),
        (lambda: Box(5.0, near=0.6), "near, far"),
        (lambda: Box(5.0, low=0.3), "low, high"),
    ):
        with refused(message):
            make()


def test_invalid_segments_raise() -> None:
    heavy = human(segments={"head": Link("head", 8.0)})
    assert heavy.mass == pytest.approx(human().mass + 8.0 - human().links[heavy.link_names.index("head")].mass)
    assert human(1.7, np.int64(70)).mass == pytest.approx(70.0)  # type: ignore[arg-type]
    for segments, message in (
        ({"tail": None}, "tail"),
        ({"head": 5.0}, "segment 'head'"),
        ({"head": Link("skull", 4.0)}, "segment 'head' is Link(name='skull'"),
        ({"head": human().links[human().link_names.index("neck")]}, "a Link of that name"),
        ([1], "segments"),
    ):
        with refused(message):
            human(segments=segments)  # type: ignore[arg-type]


def test_a_body_whose_sides_differ_needs_two_steps() -> None:
    """With one step the second is its mirror image, which is wrong for a body with one lighter leg."""
    shank = human().links[human().link_names.index("right_shank")]
    body = human(segments={"right_shank": Link("right_shank", 2.0, shank.com, shank.inertia / 2)})
    with refused(fix="steps=2"):
        walking(body)
    assert walking(body, steps=2).name == "walk"


def test_invalid_results_and_bodies_raise() -> None:
    with refused(argument="result", allowed="the result of torsor.human.walking"):
        Stride(5)  # type: ignore[arg-type]
    with refused(argument="body", allowed="a body"):
        ground_reaction(5, *np.zeros((3, 55)))  # type: ignore[arg-type]


def test_a_walk_is_no_toml_file_but_its_result_keeps_the_problem(tmp_path: Path) -> None:
    problem = walking()
    with refused(where="energy", what="MetabolicEnergy of torsor.human.terms.objectives cannot be written to a file"):
        problem.save(tmp_path / "walk.toml")
    program, x = problem.program, problem.guess()
    none = np.zeros(program.m), np.zeros(program.n)
    MotionResult(problem, Outcome(x, *none, 0.0, 0, "by hand", False), "condensed").save(tmp_path / "walk.npz")
    with np.load(tmp_path / "walk.npz") as found:
        kept = decoded(found["problem_json"].tobytes().decode())
    assert repr(kept) == repr(problem) and kept.program.n == program.n


@pytest.mark.parametrize("task", [walking, *TASKS.values()])
def test_tasks_need_a_human_with_a_weight(task: Callable[..., MotionProblem]) -> None:
    with refused(argument="body", allowed="a torsor.library.human()"):
        task(3)
    with refused(value="two_link", allowed="a body with the coordinates"):
        task(torsor.library.two_link())
    with refused(what="gravity is 0"):
        task(human().with_gravity([0.0, 0.0, 0.0]))


def test_invalid_angles_and_velocities_of_strength_raise() -> None:
    name = "right_knee_flexion"
    for q, v in ((np.nan, 0.0), (0.0, np.inf), ("a", 0.0), ([0.0, 1.0], [0.0, 1.0, 2.0])):
        with refused(where=name):
            joint_strength(human(), name, q, v)  # type: ignore[arg-type]


def test_invalid_loads_and_laws_of_fatigue_raise() -> None:
    loads = JointLoads(1.0, {"right_knee_flexion": np.array([-0.6, 0.2])})
    for laws in ({"right_knee": Fatigue()}, {"right_knee_flexion": 3}):
        with refused(allowed="a Fatigue of one of right_knee_flexion"):
            fatigued(loads, 2, laws=laws)  # type: ignore[arg-type]
    with refused(argument="loads", allowed="a result of a walk, or JointLoads"):
        fatigued(3, 2)  # type: ignore[arg-type]
    with refused(argument="rest", allowed="a number, 0 or more"):
        fatigued(loads, 2, rest=-1)
