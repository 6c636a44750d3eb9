"""Problems as TOML read back to the same program, and errors in files are described in one line."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.motion.terms.ends import Ends
from torsor.motion.terms.registry import FORM, term_registry
from torsor.motion.terms.term import Constraint, Cost, Number

GOOD = """
torsor = 1
robot = "two_link"

[[phases]]
duration = [0.1, 2.0]
points = 6

[[objectives]]
kind = "time"

[[constraints]]
kind = "start"
q = [0, -2]
v = 0

[[constraints]]
kind = "end"
q = { joint1 = 1, joint2 = -1 }
v = 0

[[constraints]]
kind = "torques"
upper = 10
"""


def read(folder: Path, text: str) -> motion.MotionProblem:
    (folder / "reach.toml").write_text(text)
    return motion.load_problem(folder / "reach.toml")


def same(a: motion.MotionProblem, b: motion.MotionProblem) -> bool:
    """Whether two problems are the same program, looked at in a random point."""
    x = a.random_start(1, 0.3)
    one, other = a.program.value(x), b.program.value(x)
    return bool(one[0] == other[0] and np.array_equal(one[1], other[1]) and a.program.rows == b.program.rows)


def test_a_file_is_the_problem_in_python(tmp_path: Path) -> None:
    ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
    limits = motion.Torques(upper=10.0)
    python = motion.MotionProblem(
        torsor.library.two_link(), motion.Phase((0.1, 2.0), points=6), motion.Time(), [*ends, limits]
    )
    file = read(tmp_path, GOOD)
    assert file.name == "reach" and same(python, file)


def test_what_is_written_reads_back_to_the_same_program(tmp_path: Path) -> None:
    robot = torsor.library.planar_chain(3)
    one, two, three = robot.coordinate_names
    phases = (
        motion.Phase((0.1, 2.0), knots=[0.3, 0.4], degree=4, name="go", own={one: motion.Spline.uniform(9)}),
        motion.Phase(0.7, points=7, nodes=[0.0, 0.3, 1.0], quadrature="trapezoid"),
        motion.Phase(0.5, points=6, nodes=7),
    )
    conditions = [
        motion.Start(q={one: 0.1, three: 1 / 3}, v=0.0),
        motion.Symmetric(partners={one: three, three: one}, signs={one: -1.0}, order=0),
        motion.Torques(upper=[10.0, np.inf, 5.0], name='"odd" name\n', phase="go"),
        motion.Velocities(upper=3.0, at=[0.5, 1.0]),
        motion.Linked(order=1),
    ]
    costs = motion.Effort(weight=0.1, scale=[1.0, 2.0, 3.0]), motion.Time(during=(0.25, 1.0))
    problem = motion.MotionProblem(
        robot, phases, costs, conditions, frozen={two: 0.7}, name="all sorts", settings={"tolerance": 1e-7}
    )
    problem.save(tmp_path / "sorts.toml")
    back = motion.load_problem(tmp_path / "sorts.toml")
    assert same(problem, back) and back.name == "all sorts" and back.settings == {"tolerance": 1e-7}


def test_paths_and_free_numbers_are_written_too(tmp_path: Path) -> None:
    path = motion.Path.through(np.random.default_rng(0).normal(size=(7, 2)))
    ends = [motion.Start(q=0.0, v=0.0), motion.End(q=1.0, v=0.0)]
    model = torsor.library.two_link().parametric(["links.link2.mass"])
    numbers = {"links.link2.mass": Number(2.0, 1.0, 3.0)}
    phase = motion.Phase((0.1, 2.0), points=6)
    for problem in (
        motion.MotionProblem(torsor.library.two_link(), phase, motion.Time(), ends, path=path),
        motion.MotionProblem(model, phase, motion.Effort(), ends, numbers=numbers),
    ):
        problem.save(tmp_path / "made.toml")
        back = motion.load_problem(tmp_path / "made.toml")
        assert same(problem, back) and back.shared == problem.shared


def test_free_numbers_keep_their_own_names_and_shares(tmp_path: Path) -> None:
    robot, heavy, light = torsor.library.two_link(), "links.link2.mass", "links.link1.mass"
    for free in ({"mass": heavy}, {light: heavy}, {"both": {light: 1.0, heavy: -2.0}}, ["gravity"], {"g": "gravity"}):
        phase = motion.Phase(1.0, points=5)
        problem = motion.MotionProblem(robot.parametric(free), phase, motion.Effort(), [motion.Start(q=0.0)])
        problem.save(tmp_path / "made.toml")
        assert same(problem, motion.load_problem(tmp_path / "made.toml")), free


def test_paths_of_terms_are_written_too(tmp_path: Path) -> None:
    rng, phase = np.random.default_rng(0), motion.Phase((0.1, 2.0), points=6, nodes=5)
    cost = motion.Reference(values=motion.Path.through(rng.normal(size=(6, 2))))
    row = motion.Follow(frame="link2", curve=motion.Path.through(rng.normal(size=(6, 3))))
    one = motion.Velocities(upper=3.0, only="joint1")  # a name alone
    problem = motion.MotionProblem(torsor.library.two_link(), phase, cost, [row, one])
    problem.save(tmp_path / "made.toml")
    assert same(problem, motion.load_problem(tmp_path / "made.toml"))


def test_functions_cannot_be_written(tmp_path: Path) -> None:
    file = read(tmp_path, GOOD)
    odd = motion.Torques(upper=lambda t: t)
    problem = motion.MotionProblem(file.robot, file.stages, motion.Time(), [odd])
    with refused(where="Torques: upper", what="a function cannot be written to a file"):
        problem.save(tmp_path / "odd.toml")
    assert not (tmp_path / "odd.toml").exists()


def test_every_term_has_a_name_and_none_uses_the_keys_of_tables() -> None:
    known = term_registry(Cost, Constraint, Ends)
    assert {"time", "effort", "torques", "velocities", "start", "end", "linked", "periodic", "symmetric"} <= set(known)
    for cls in known.values():
        assert FORM not in [each.name for each in fields(cls)], cls


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("torsor = 1", "", "no format version"),
        ("torsor = 1", "torsor = true", "format version True"),
        ("torsor = 1", "torsor = 1\nspeed = 3", "unknown key 'speed'"),
        ("torsor = 1", 'torsor = 1\nunits.angle = "deg"', 'angle = "rad"'),
        ("torsor = 1", "torsor = 1\nfrozen = { joint9 = 1 }", "joint9"),
        ("torsor = 1", 'torsor = 1\nfrozen = { joint1 = "x" }', "a table of a number"),
        ("torsor = 1", "torsor = 1\npath = 3", "found 3"),
        ("torsor = 1", "torsor = 1\npath.through = [[1, 2], [3]]", "the rows have different lengths"),
        ("torsor = 1", "torsor = 1\npath.through = [[1, 2]]", "have shape"),
        ("torsor = 1", 'torsor = 1\nfree = ["links.link9.mass"]', "link9"),
        ("torsor = 1", "torsor = 1\nsolver.speed = 1", "unknown key 'speed'"),
        ("torsor = 1", 'torsor = 1\nsolver.iterations = "many"', "found 'many'"),
        ('"two_link"', '"two_lonk"', "there is no robot 'two_lonk'"),
        ('"two_link"', '"planar_chain"', "there is no robot"),
        ('"two_link"', '"\\u0000"', "there is no robot"),
        ('"two_link"', "3", "a string"),
        ('"two_link"', '"reach.toml"', "'reach.toml' is not a robot:"),
        ("[[phases]]", "[phases]", "write [[phases]]"),
        ("points = 6", "points = 3", "control points is 3"),
        ("points = 6", "points = 1000000000", "points is 1000000000"),
        ("points = 6", "nodes = 1000000000", "nodes is 1000000000"),
        ("points = 6", "points = 0x" + "f" * 6000, "not valid TOML"),
        ("points = 6", 'own.joint1.points = "x"', "a whole number"),
        ("points = 6", "own.joint1.degree = 99", "degree is 99"),
        ("points = 6", "own.joint9.points = 7", "contains 'joint9'"),
        ("torsor = 1", "torsor = 1\nsolver.tolerance = -1", "tolerance"),
        ("torsor = 1", 'torsor = 1\nsolver.name = "best"', "solver"),
        ("torsor = 1", "torsor = 1\nfree = { mass = 3 }", "found"),
        ('"two_link"', '"../../etc/hosts.toml"', "there is no robot '../../etc/hosts.toml'"),
        ('kind = "time"', 'kind = "effort"\nduring = [1, 0]', "during"),
        ('kind = "time"', 'kind = "effort"\nweight = inf', "weight"),
        ('kind = "time"', 'kind = "reference"\nvalues = [[1, 2], [3]]', "points"),
        ("upper = 10", "upper = true", "a number, or 2 of them"),
        ("points = 6", "own = 3", "own is 3"),
        ("points = 6", "points = 6.5", "a whole number"),
        ("duration = [0.1, 2.0]", "", "duration is missing"),
        ("duration = [0.1, 2.0]", "duration = nan", "found nan"),
        ("duration = [0.1, 2.0]", "duration = -1", "duration is -1"),
        ("duration = [0.1, 2.0]", "duration = [1, 2, 3]", "a number, or [a number, a number]"),
        ('kind = "time"', "", "kind is missing"),
        ('kind = "time"', 'kind = "tim"', "did you mean 'time'"),
        ('kind = "time"', 'kind = "torques"', "unknown kind 'torques'"),
        ('kind = "time"', 'kind = "time"\nwieght = 2', "'weight'"),
        ('kind = "time"', 'kind = "time"\nweight = "2"', "found '2'"),
        ('kind = "time"', 'kind = "time"\nduring = [0.5]', "[a number, a number]"),
        ('kind = "time"', 'kind = "time"\nname = "soon"\nat = "x"', "a number, or a list of a number"),
        ("q = [0, -2]", "q = [0, -2, 1]", "a number, or 2 of them"),
        ("q = [0, -2]", "q = [true, 1]", "found [True, 1]"),
        ("q = [0, -2]", "q = { joint7 = 1 }", "joint7"),
        ("upper = 10", "upper = 1979-05-27", "found datetime"),
        ("upper = 10", "upper = nan", "found nan"),
        ("upper = 10", "upper = [1, 2, 3]", "a number, or 2 of them"),
        ("[[objectives]]", "[[nothing]]", "unknown key 'nothing'"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert before in GOOD
    with refused(words) as caught:
        read(tmp_path, GOOD.replace(before, after))
    assert len(str(caught.value)) < 1500 and str(caught.value).startswith("reach.toml: ")


def test_lists_that_are_too_long_are_refused(tmp_path: Path) -> None:
    for before, key, count in (
        ("points = 6", "knots", 1001),
        ("points = 6", "nodes", 100_001),
        ("v = 0", "at", 10**5 + 1),
    ):
        text = GOOD.replace(before, f"{key} = {[0.5] * count}")
        with refused(key, where="reach.toml", allowed=f"{count - 1} or fewer"):
            read(tmp_path, text)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    for content in (b"\xff\xfe", b"[" * 100_000, b"a = " + b"[" * 5000, b"robot = 'two_link"):
        (tmp_path / "bad.toml").write_bytes(content)
        with refused(where="bad.toml", what="not valid TOML"):
            motion.load_problem(tmp_path / "bad.toml")
    with refused(what="No such file"):
        motion.load_problem(tmp_path / "none.toml")
    with refused(what="directory"):
        motion.load_problem(tmp_path)
    with refused(allowed=".toml", fix=".toml"):
        read(tmp_path, GOOD).save(tmp_path / "problem.json")


def test_robots_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "robots").mkdir()
    torsor.library.two_link().save(tmp_path / "robots" / "arm.toml")
    assert same(read(tmp_path, GOOD), read(tmp_path, GOOD.replace('"two_link"', '"robots/arm.toml"')))


@pytest.mark.parametrize("q", ["[[], -1]", "[[0], [-2]]", "[]", "['0', -2]", "{ joint1 = [] }"])
def test_positions_that_are_no_numbers_are_refused(q: str, tmp_path: Path) -> None:
    text = GOOD.replace("q = [0, -2]", f"q = {q}")
    assert text != GOOD
    with refused(where="reach.toml: Start: q", allowed="a number, or"):
        read(tmp_path, text)
