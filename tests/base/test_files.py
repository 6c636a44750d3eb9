"""A saved result contains its problem, robot and settings, and loads on any machine; malicious files are rejected."""

import csv
import json
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import human, motion
from torsor.base.archive import FORMAT, Archive, result_kinds, write_archive
from torsor.base.documents import schema_of
from torsor.base.registry import registered
from torsor.human.terms.problem import HumanProblem
from torsor.motion.encoding import decoded, encoded

from . import small as made
from .schemas import faults

SOLVED = ("motion", "multistart")


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return made.results()


def numbers(result: Any) -> dict[str, Any]:
    """The arrays and numbers of a result, by name."""
    kept = np.ndarray | float | int | str | bool
    return {name: value for name, value in vars(result).items() if isinstance(value, kept)}


@pytest.mark.parametrize("kind", made.KINDS)
def test_a_result_reads_back_equal_with_its_robot_and_settings(
    kind: str, results: dict[str, Any], tmp_path: Path
) -> None:
    result = results[kind]
    result.save(tmp_path / "result.npz")
    again = torsor.load_result(tmp_path / "result.npz")
    assert type(again) is type(result)
    assert repr(again) == repr(result)
    for name, value in numbers(result).items():
        assert np.array_equal(value, getattr(again, name), equal_nan=isinstance(value, np.ndarray)), name
    again.save(tmp_path / "again.npz")
    with np.load(tmp_path / "result.npz") as first, np.load(tmp_path / "again.npz") as second:
        assert sorted(first.files) == sorted(second.files)
        header = json.loads(first["header"].tobytes())
        assert header["kind"] == result.kind and header["version"] == torsor.__version__ and header["units"]
        for name in first.files:
            assert first[name].tobytes() == second[name].tobytes(), name


def test_motions_keep_their_problem_and_their_settings(results: dict[str, Any], tmp_path: Path) -> None:
    result = results["motion"]
    result.save(tmp_path / "reach.npz")
    again = torsor.load_result(tmp_path / "reach.npz")
    assert repr(again.problem) == repr(result.problem)
    assert again.problem.model.robot == made.ARM
    assert again.settings["solver"] == "ipopt" and again.settings["iterations"] == 500
    assert np.array_equal(again.tau, result.tau)
    fall = results["trajectory"].settings
    assert (fall["method"], fall["controller"], fall["duration"]) == ("rk4", "constant force", 0.003)


def test_a_file_needs_nothing_else(results: dict[str, Any], tmp_path: Path) -> None:
    """Another process in an empty folder has only the content of the files."""
    look = torsor.Visual("mesh", (1.0, 1.0, 1.0), mesh="arm", path="/nowhere/arm.stl")
    links = tuple(torsor.Link(each.name, each.mass, each.com, each.inertia, visuals=(look,)) for each in made.ARM.links)
    looks = torsor.Robot(made.ARM.name, made.ARM.base, links, made.ARM.joints)
    torsor.simulate(looks.to(device="casadi"), duration=0.002).save(tmp_path / "0.npz")
    for kind in ("motion", "workspace"):
        results[kind].save(tmp_path / f"{kind}.npz")
    script = """
import sys, torsor
for name in sys.argv[1:]:
    print(type(torsor.load_result(name)).__name__)
"""
    (tmp_path / "elsewhere").mkdir()
    names = [str(path) for path in sorted(tmp_path.glob("*.npz"))]
    done = subprocess.run(
        [sys.executable, "-c", script, *names], cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["Trajectory", "MotionResult", "Workspace"]


# Problems of the human


def test_problems_of_the_human_are_kept_whole() -> None:
    problem = human.walking(load=human.Backpack(12.0), curves=human.StrengthCurves())
    again = decoded(encoded(problem))
    assert type(again) is type(problem)
    assert encoded(again) == encoded(problem)
    assert repr(again) == repr(problem)
    assert isinstance(again, HumanProblem) and again.load == human.Backpack(12.0)


@pytest.mark.slow
@pytest.mark.parametrize("make", [human.lifting, human.standing_up, human.reaching, human.walking])
def test_all_tasks_of_the_human_are_kept_whole(make: Callable[[], motion.MotionProblem]) -> None:
    problem = make()
    again = decoded(encoded(problem))
    assert encoded(again) == encoded(problem)
    assert (again.program.n, again.program.m) == (problem.program.n, problem.program.m)
    assert np.array_equal(again.program.lower, problem.program.lower)
    assert np.array_equal(again.guess(), problem.guess())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"function": "os.system"}, "no function 'os.system'"),
        ({"function": "motion.Time"}, "no function 'motion.Time'"),
        ({"class": "motion.Nothing", "fields": {}}, "no class 'motion.Nothing'"),
        ({"class": "human.hand_clearance", "fields": {}}, "no class"),
        (
            {"class": "Time", "module": "torsor.motion.terms.objectives", "fields": {}},
            "version of Torsor that wrote it",
        ),
        ({"number": "1e9"}, "1e9"),
        (10**9, "too large"),
        ({"robot": 7}, "range"),
    ],
)
def test_a_problem_in_a_file_can_name_data_of_torsor_only(change: Any, message: str, tmp_path: Path) -> None:
    data = json.loads(encoded(made.problem()))
    data["problem"]["fields"]["objective"] = change
    with pytest.raises((ValueError, KeyError, IndexError), match=message):
        decoded(json.dumps(data))


def test_functions_of_python_have_to_be_given(tmp_path: Path) -> None:
    own = motion.ExpressionCost(function=lambda node: node.tau[0] ** 2)
    ends = [motion.Start(q=0.0, v=0.0), motion.End(q=0.5, v=0.0)]
    problem = motion.MotionProblem(made.ARM, motion.Phase(1.0, points=6), own, ends)
    result = problem.solve()
    result.save(tmp_path / "own.npz")
    with refused(what="does not contain its problem ("):
        torsor.load_result(tmp_path / "own.npz")
    assert np.array_equal(torsor.load_result(tmp_path / "own.npz", problem=problem).x, result.x)
    with pytest.raises(pickle.PicklingError, match=r"function is .*<lambda>.*; fix: define the function at the top"):
        pickle.dumps(problem)


@pytest.mark.parametrize(
    ("kind", "name"), [("trajectory", "q"), ("batch", "tau"), ("rollout", "v"), ("identification", "values")]
)
def test_nan_in_a_file_is_named_in_a_warning(kind: str, name: str, results: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    results[kind].save(path)
    with np.load(path) as file:
        array = file[name].copy()
    array.flat[1] = np.nan
    with pytest.warns(torsor.ModelWarning, match=rf"NaN.* {name} \(1 of {array.size} values\)") as caught:
        torsor.load_result(spoilt(path, **{name: array}))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("kind", made.KINDS)
def test_results_without_failures_load_without_a_warning(kind: str, results: dict[str, Any], tmp_path: Path) -> None:
    results[kind].save(tmp_path / "result.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torsor.load_result(tmp_path / "result.npz")  # poses that cannot be reached are NaN in a workspace


# Versions, and files that are no results


def spoilt(path: Path, **changes: Any) -> Path:
    with np.load(path) as file:
        content = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: value for name, value in content.items() if value is not None})
    return path


def test_a_newer_format_is_refused_in_words(results: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "new.npz"
    results["trajectory"].save(path)
    spoilt(path, torsor=FORMAT + 1)
    with refused(where="new.npz", allowed="1 to 2", fix="read it with a newer Torsor"):
        torsor.load_result(path)


def test_files_of_the_first_format_are_read(results: dict[str, Any], tmp_path: Path) -> None:
    for kind, cls in (("trajectory", torsor.Trajectory), ("motion", torsor.MotionResult)):
        results[kind].save(tmp_path / "old.npz")
        spoilt(tmp_path / "old.npz", torsor=1, header=None)
        assert isinstance(torsor.load_result(tmp_path / "old.npz"), cls)


@pytest.mark.parametrize("kind", made.KINDS)
def test_a_truncated_file_or_a_pickle_is_a_model_error(kind: str, results: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    results[kind].save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with refused(what="not a Torsor result"):
        torsor.load_result(path)
    with zipfile.ZipFile(path, "w") as file:  # an array of objects: a pickle
        file.writestr("torsor.npy", pickle.dumps(print))
    with refused(what="not a Torsor result"):
        torsor.load_result(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", made.KINDS)
def test_every_array_of_a_file_is_checked(kind: str, results: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    results[kind].save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    free = {"external", "parameters", "measured_weights", "measured_times", "lag"}  # they may be left out
    for name in arrays:
        is_solved = results[kind].kind in SOLVED or "/" in name  # parts of a sequence are 0/status and the like
        if name.endswith("robot") and is_solved:
            continue  # the problem has it too
        is_status = name.endswith("status") and is_solved
        for bad in (None, np.zeros((2, 3, 1, 1)), np.array("nothing")):
            if (bad is None and name in free) or (is_status and bad is not None):
                continue  # the status of a solver is any text
            np.savez(path, **{key: each for key, each in (arrays | {name: bad}).items() if each is not None})
            with pytest.raises(torsor.ModelError):
                torsor.load_result(path)


def test_a_file_of_another_kind_says_what_it_is(results: dict[str, Any], tmp_path: Path) -> None:
    results["workspace"].save(tmp_path / "map.npz")
    with refused(where="map.npz", what="not a trajectory: it is a workspace"):
        torsor.Trajectory.load(tmp_path / "map.npz")
    with refused(value=".csv", allowed=".npz", fix="torsor.Trajectory.load"):
        torsor.load_result(tmp_path / "map.csv")


# Tables, documents, pickles


@pytest.mark.parametrize("kind", [each for each in made.KINDS if each != "batch"])
def test_tables_have_units_in_their_heads(kind: str, results: dict[str, Any], tmp_path: Path) -> None:
    results[kind].save(tmp_path / "result.csv")
    with (tmp_path / "result.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    words = {"parameter", "status", "solved"}
    assert all(each in words or each.endswith("]") for each in head), head
    assert rows and all(len(row) == len(head) for row in rows)
    numbers_ = [[cell for cell, name in zip(row, head, strict=True) if name not in words] for row in rows]
    assert np.array(numbers_, dtype=float).size


@pytest.mark.parametrize("kind", made.KINDS)
def test_documents_follow_their_schema(kind: str, results: dict[str, Any], tmp_path: Path) -> None:
    result = results[kind]
    result.save(tmp_path / "result.json")
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["torsor"] == {"format": FORMAT, "kind": result.kind, "version": torsor.__version__}
    schema = schema_of(result.kind)
    assert faults(document, schema) == []
    assert set(document) <= set(schema["properties"])
    document["torsor"]["format"] = FORMAT + 1
    assert faults(document, schema)
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        return
    Draft202012Validator.check_schema(schema)
    assert not list(Draft202012Validator(schema).iter_errors(result.to_dict()))


def test_bench_and_reproduce_follow_their_schemas() -> None:
    from bench.figures import document as bench
    from bench.measure import Row
    from torsor.reproduce.item import run
    from torsor.reproduce.registry import find
    from torsor.reproduce.report import document as reproduced

    assert faults(bench([Row("one", 1.0, 2.0, "peer"), Row("two", 1.0)], []), schema_of("bench")) == []
    assert faults(reproduced([run(find(["lie/two-link"])[0])]), schema_of("reproduce")) == []


def test_every_kind_has_a_schema_and_a_class() -> None:
    assert len(result_kinds()) == 13
    for kind in result_kinds():
        cls, _ = registered("result", kind)
        assert cls.kind == kind and hasattr(cls, "load") and hasattr(cls, "plot")
        assert schema_of(kind)["properties"]["torsor"]["properties"]["kind"] == {"const": kind}


@pytest.mark.parametrize("kind", made.KINDS)
def test_results_are_pickled(kind: str, results: dict[str, Any]) -> None:
    assert repr(pickle.loads(pickle.dumps(results[kind]))) == repr(results[kind])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::torsor.base.errors.ModelWarning")  # optimal at the nodes only
def test_walks_strides_and_lifts_read_back_equal(tmp_path: Path) -> None:
    walk = human.walking(load=human.Backpack(10.0)).solve()
    stride = human.Stride(walk, "left")
    for result in (walk, stride, human.lifting().solve()):
        result.save(tmp_path / "result.npz")
        again = torsor.load_result(tmp_path / "result.npz")
        assert repr(again) == repr(result)
        assert np.array_equal(getattr(again, "result", again).tau, getattr(result, "result", result).tau)
    assert np.array_equal(torsor.human.Stride.load(_saved(stride, tmp_path)).force, stride.force)
    stride.save(tmp_path / "stride.json")
    assert faults(json.loads((tmp_path / "stride.json").read_text()), schema_of("stride")) == []
    stride.save(tmp_path / "stride.csv")
    assert "angle knee_flexion [degrees]" in (tmp_path / "stride.csv").read_text()


def _saved(result: Any, folder: Path) -> Path:
    result.save(folder / "stride.npz")
    return folder / "stride.npz"


def test_a_kind_that_no_package_knows_is_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "poem.npz", Archive("poem", {}, {}))
    with pytest.raises(torsor.ModelError, match="no installed package reads results of the kind 'poem'"):
        torsor.load_result(tmp_path / "poem.npz")
