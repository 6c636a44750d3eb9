"""Motion problems of a study: their parts by dotted names, and their names, files and parameters."""

import inspect
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.cli.predictions import NAMED
from torsor.motion import sweeps
from torsor.motion.batched import WIDTHS
from torsor.motion.sweeps.subjects import Subject, Variation

REACH = """
torsor = 1
robot = "two_link"
phases = [{ duration = [0.1, 2.0], points = 6, name = "swing" }]
objectives = [{ kind = "time" }]
constraints = [
  { kind = "start", q = [0, -2], v = 0 },
  { kind = "end", q = [1, -1], v = 0 },
  { kind = "torques", upper = 10, name = "motors" },
]
"""


@pytest.fixture
def reach(tmp_path: Path) -> Path:
    (tmp_path / "reach.toml").write_text(REACH)
    return tmp_path / "reach.toml"


@pytest.mark.parametrize(
    ("name", "value", "same"),
    [
        ("motors.upper", 15.0, lambda p: replace(p, constraints=[*p.constraints[:2], motion.Torques(upper=15.0)])),
        ("Time.weight", 2.0, lambda p: replace(p, objective=motion.Time(weight=2.0))),
        ("phases.swing.points", 8, lambda p: replace(p, phases=motion.Phase((0.1, 2.0), points=8))),
        ("phases.0.duration", [0.1, 3.0], lambda p: replace(p, phases=motion.Phase((0.1, 3.0), points=6))),
        ("solve.tolerance", 1e-4, lambda p: replace(p, settings={"tolerance": 1e-4})),
        ("links.1.mass", 2.0, lambda p: replace(p, robot=p.robot.parametric(["links.1.mass"]).at([2.0]))),
    ],
)
def test_a_dotted_name_changes_a_part_of_a_problem(reach: Path, name: str, value: Any, same: Any) -> None:
    problem = motion.load_problem(reach)
    varied, expected = Variation(problem)(**{name: value}), same(problem)
    x = expected.guess() + 0.01 * np.arange(expected.program.n)
    assert varied.program.n == expected.program.n and varied.settings == expected.settings
    f, rows = varied.program.value(x)
    g, others = expected.program.value(x)
    assert f == pytest.approx(g, rel=1e-12) and np.allclose(rows, others, rtol=1e-12, atol=1e-12)
    assert np.array_equal(varied.program.row_upper, expected.program.row_upper)
    pickle.loads(pickle.dumps(Variation(problem))).check(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("motors.uper", "uper"),
        ("motor.upper", "no parameter 'motor.upper'"),
        ("links.elbow.mass", "no parameter 'links.elbow.mass'"),
        ("phases.1.points", "no parameter 'phases.1.points'"),
    ],
)
def test_a_name_that_is_not_there_is_refused_before_the_first_case(reach: Path, name: str, words: str) -> None:
    with refused(words):
        torsor.sweep(reach, [{name: 1.0}], workers=0)


def test_a_parameter_that_is_given_is_no_variable(reach: Path) -> None:
    problem = motion.load_problem(reach)
    free = replace(problem, robot=problem.robot.parametric(["links.1.mass"]))
    held = Variation(free)(**{"links.1.mass": 2.0})
    assert "links.1.mass" in free.shared and held.held == {"links.1.mass": 2.0}


def test_a_problem_is_solved_for_each_case_and_its_arrays_are_kept(reach: Path) -> None:
    cases = [{"motors.upper": 10.0}, {"motors.upper": 15.0}, {"motors.upper": 0.01}]
    found = torsor.sweep(reach, cases, keep=["q"], settings={"iterations": 60}, workers=0)
    assert found["T"].round(4).tolist()[:2] == [0.4212, 0.3439] and found.units["T"] == "s"
    assert found["q"].shape == (3, 201, 2) and found["status"][0] == "optimal"
    assert list(found.errors()) == [2] and found.errors()[2].startswith("not solved: ")


def test_a_case_solved_with_others_is_the_case_solved_alone(reach: Path) -> None:
    bounds = [10.0, 15.0, 0.01, "strong", 12.0]
    cases = [{"motors.upper": bound, "links.1.mass": 1.0 + 0.1 * k} for k, bound in enumerate(bounds)]
    together = torsor.sweep(reach, cases, settings={"iterations": 60}, workers=0)
    alone = [torsor.sweep(reach, [case], settings={"iterations": 60}, workers=0) for case in cases]
    assert sorted(together.errors()) == [2, 3]
    for number, one in enumerate(alone):
        figures = () if number == 3 else ("T", "status", "iterations", "max_violation_fine")
        for name in (*figures, "error", "warning"):
            np.testing.assert_array_equal(together[name][number], one[name][0])
    problem = Subject("reach", Variation(motion.load_problem(reach)))
    assert problem.width(cases[0]) == WIDTHS["cpu"] and problem.width(cases[3]) == 1


def test_several_parts_of_an_objective_are_columns_that_add_up_to_it(reach: Path) -> None:
    problem, cases = motion.load_problem(reach), [{"links.1.mass": 1.0}, {"links.1.mass": 2.0}]
    both = replace(problem, objective=[motion.Time(), motion.Effort(weight=1e-3)])
    found = torsor.sweep(both, cases, workers=0)
    assert np.allclose(found["objective.Time"] + found["objective.Effort"], found["objective"], rtol=1e-9, atol=0)
    assert np.allclose(found["objective.Time"], found["T"], rtol=1e-9, atol=0) and (found["objective.Effort"] > 0).all()
    assert not any(name.startswith("objective.") for name in torsor.sweep(problem, cases, workers=0).table())


def test_a_function_that_returns_a_problem_is_solved(reach: Path) -> None:
    problem = motion.load_problem(reach)
    found = torsor.sweep(
        lambda points: problem.with_phases(motion.Phase((0.1, 2.0), points)), [{"points": 6}], workers=0
    )
    assert found["T"].round(4).tolist() == [0.4212]


@pytest.mark.parametrize(
    ("what", "case", "words"),
    [
        (
            "walk",
            {"hight": 1.8},
            "got an unexpected keyword argument 'hight'",
        ),
        ("wlak", {}, "a .toml file of a motion problem, or one of walk, run"),
        (3, {}, "the subject is a int"),
    ],
)
def test_wrong_names_are_refused(what: Any, case: dict[str, Any], words: str) -> None:
    with refused(words):
        torsor.sweep(what, [case], workers=0)


def test_named_problems_are_those_of_their_packages() -> None:
    one = sweeps.PROBLEMS["walk"](height=1.8, mass=80.0, backpack=10.0, speed=1.1, slope=0.05)
    load, step = torsor.human.Backpack(10.0), torsor.human.Step(speed=1.1)
    other = torsor.human.walking(torsor.library.human(1.8, 80.0), step, load=load, slope=0.05)
    assert one.numbers == other.numbers and one.stages[0].duration == other.stages[0].duration
    assert set(motion.PROBLEMS) < set(sweeps.PROBLEMS)
    with refused(what="backpack and box are both given"):
        sweeps.PROBLEMS["walk"](backpack=1.0, box=1.0)


@pytest.mark.parametrize("name", sweeps.PROBLEMS)
def test_sweeps_and_the_command_line_have_the_arguments_of_the_declaration(name: str) -> None:
    named = sweeps.PROBLEMS[name]
    declared = {each.name: each.option_name for each in named.arguments if each.kind is not list}
    assert set(declared.values()) <= {each.name for each in NAMED[name].options}
    assert list(inspect.signature(named).parameters) == [each.name for each in named.arguments]
    given = {key: value for key, value in named.defaults.items() if value is not None}
    assert named(**given).name == named().name == name  # the function takes all of them
    assert pickle.loads(pickle.dumps(named)) is named


def test_bounds_of_a_declaration_hold_in_python_too() -> None:
    with refused(argument="u", value=2.0, where="slide-link"):
        sweeps.PROBLEMS["slide-link"](u=2.0)
    with refused(argument="handle", value=-1.0, where="push"):
        sweeps.PROBLEMS["push"](handle=-1.0)


def test_sweeps_know_the_human_without_importing_it() -> None:
    code = "import sys, torsor.motion.sweeps as s; assert 'walk' in s.PROBLEMS and 'torsor.human' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_people_of_a_study_are_described_by_age_and_percentiles() -> None:
    child = sweeps.PROBLEMS["walk"](sex="female", age=8.0, mass_percentile=95.0)
    mass = sum(each.start for name, each in child.numbers.items() if name.endswith(".mass"))
    assert mass == pytest.approx(torsor.human.size_of_percentile(50, 95, "female", 8.0)[1], rel=1e-9)
    found = torsor.sweep("walk", [{"stature_percentile": 99.0}], workers=0)
    assert found.failed == 1 and "the stature percentile is 99 %" in found.errors()[0]


def test_wrong_settings_are_refused_before_the_first_case() -> None:
    with refused(value="speed"):
        torsor.sweep("walk", [{}], settings={"speed": 1}, workers=0)
    with refused(argument="keep", allowed="times"):
        torsor.sweep("walk", [{}], keep=["velocity"], workers=0)
