"""Results: every case is in the file once and reads back unchanged, and a stopped study resumes where it ended."""

import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from study_functions import everything, twice
from torsor import motion
from torsor.motion import sweeps
from torsor.motion.sweeps import fingerprint

try:
    import pyarrow  # noqa: F401

    SUFFIXES = ["sqlite", "parquet"]
except ImportError:
    SUFFIXES = ["sqlite"]


@pytest.fixture(params=[*SUFFIXES, None])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return None if request.param is None else tmp_path / f"study.{request.param}"


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"study.{request.param}"


def test_values_read_back_as_they_were(output: Path | None) -> None:
    cases = [{"a": a, "sides": ["left", "right"], "t": 1} for a in (0, 1, 2, 3)]
    found = torsor.sweep(lambda a, sides, t: everything(a), cases, output=output, units={"a": "m"}, workers=0)
    if output is not None:
        found = sweeps.read(output)
    assert (found.done, found.failed, len(found)) == (3, 1, 4)
    assert found["case"].tolist() == [0, 1, 2, 3] and found["a"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(found["T"], [0, 1 / 3, np.nan, 1.0])
    assert found["is_even"].tolist() == [True, False, False, False] and found["is_even"].dtype == bool
    assert found["word"].tolist() == ["case 0", "case 1", "", "case 3"]
    np.testing.assert_array_equal(found["row"], [[0, 1, 2], [1, 2, 3], [np.nan] * 3, [3, 4, 5]])
    assert found["deep.x"][3] == 3 and found["t"][0] == 1 and found["sides"][0] == '["left", "right"]'
    assert found.errors() == {2: "ValueError: a is 2"} and found["state"][2] == "failed"
    assert found.units == {"elapsed": "s", "a": "m"} and found.parameters == ("a", "sides", "t")
    one = found.to_numpy(["a", "row"])[1]
    assert one["a"] == 1.0 and one["row"].tolist() == [1.0, 2.0, 3.0]
    assert next(found.rows(["word"])) == {"word": "case 0"}
    with refused(value="TT"):
        found["TT"]


def test_a_table_is_written_as_csv_with_units(tmp_path: Path) -> None:
    found = torsor.sweep(everything, [{"a": 1}, {"a": 2}], workers=0, units={"a": "m", "T": "s"})
    found.to_csv(tmp_path / "table.csv")
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0] == "case,state,error,warning,elapsed (s),a (m),T (s),is_even,word,deep.x" and len(lines) == 3
    assert found.to_dict()["rows"][1]["T"] is None


def test_what_is_done_is_not_computed_again(path: Path) -> None:
    computed = list[float]()

    def noted(a: float) -> float:
        computed.append(a)
        if a == 3 and computed.count(3) == 1:
            raise RuntimeError("once")
        return 2 * a

    cases = [{"a": a} for a in range(6)]
    torsor.sweep(noted, cases[:4], output=path, workers=0)
    with refused(where="study.", fix="resume=True"):
        torsor.sweep(noted, cases, output=path, workers=0)
    found = torsor.sweep(noted, cases, output=path, workers=0, resume=True)
    assert computed == [0, 1, 2, 3, 4, 5] and found.failed == 1
    found = torsor.sweep(noted, cases, output=path, workers=0, resume=True, retry_failed=True)
    assert computed == [0, 1, 2, 3, 4, 5, 3] and found["value"].tolist() == [0, 2, 4, 6, 8, 10]
    assert found["case"].tolist() == list(range(6))


def test_another_study_does_not_go_on_with_a_file(path: Path) -> None:
    torsor.sweep(twice, [{"a": 1}], output=path, workers=0)
    with refused(fix="pass the same cases"):
        torsor.sweep(twice, [{"a": 2}], output=path, workers=0, resume=True)
    with refused(what="it contains results of 'twice', not of 'everything'"):
        torsor.sweep(everything, [{"a": 1}], output=path, workers=0, resume=True)


STUDY = """
import sys
import torsor

FACTOR, ARM = {factor}, torsor.library.planar_chain({links})
def helper(a):
    return FACTOR * a {comment}
def figure(a):
    return helper(a) + len(ARM.links) * {{"a", "b", "c"}}.issuperset("a")
if __name__ == "__main__":
    torsor.sweep(figure, [{{"a": k}} for k in range({cases})], output=sys.argv[1], resume=True, workers=0, {options})
"""


def test_a_resumed_study_notices_changed_code_and_nothing_else(path: Path, tmp_path: Path) -> None:
    def resumed(**changes: object) -> str:
        given = {"factor": 2.0, "links": 1, "comment": "", "cases": 2, "options": ""} | changes
        (tmp_path / "study.py").write_text(STUDY.format(**given))
        command = [sys.executable, str(tmp_path / "study.py"), str(path)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stderr

    assert resumed() == "" and resumed(cases=3, comment="# the same") == ""
    for change in ({"factor": 3.0}, {"links": 2}, {"options": "settings={'tolerance': 1e-9}"}):
        assert "before the code, data or settings of 'figure' changed; fix: choose another file" in resumed(**change)
    assert len(sweeps.read(path)) == 3


def test_a_resumed_study_notices_a_changed_problem_or_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reach(limit: float) -> motion.MotionProblem:
        ends = [motion.Start(q=[0.0], v=0.0), motion.End(q=[1.0], v=0.0), motion.Torques(upper=limit)]
        return motion.MotionProblem(torsor.library.planar_chain(1), motion.Phase(1.0, 6), motion.Effort(), ends)

    cases = [{"Torques.upper": 20.0}]
    torsor.sweep(reach(20.0), cases, output=path, workers=0)
    torsor.sweep(reach(20.0), cases, output=path, workers=0, resume=True)
    with pytest.warns(torsor.ModelWarning, match="before the code, data or settings of .* changed"):
        torsor.sweep(reach(30.0), cases, output=path, workers=0, resume=True)
    monkeypatch.setattr(fingerprint, "__version__", "99.0")
    with pytest.warns(torsor.ModelWarning, match=f"by Torsor {torsor.__version__} \\(this is 99.0\\); fix"):
        torsor.sweep(reach(20.0), cases, output=path, workers=0, resume=True)


def test_one_study_at_a_time_writes_to_a_file_and_others_read(path: Path) -> None:
    def other(a: float) -> int:
        if a == 0:
            with refused(what="another study is writing to it"):
                torsor.sweep(twice, [{"a": 1}], output=path, workers=0, resume=True)
        return len(sweeps.read(path))

    found = torsor.sweep(other, [{"a": 0}, {"a": 1}], output=path, workers=0)
    assert found.done == 2 and not path.with_name(f".{path.name}.lock").exists()


def test_values_that_do_not_fit_their_column_make_a_failed_case(output: Path | None) -> None:
    found = torsor.sweep(lambda a: "word" if a else 1.0, [{"a": 0}, {"a": 1}], output=output, workers=0)
    assert found.errors() == {1: "result 'value' is text; in other cases it is a result and a number"}
    found = torsor.sweep(lambda a: {"a": a}, [{"a": 0}], workers=0)
    assert "the result 'a' has the same name as another column" in found.errors()[0]


def test_names_that_differ_in_case_are_different_columns(output: Path | None) -> None:
    found = torsor.sweep(lambda t: {"T": 2 * t, 'a "b"; c': t}, [{"t": 1}, {"t": 2}], output=output, workers=0)
    assert found["T"].tolist() == [2, 4] and found["t"].tolist() == [1, 2] and found['a "b"; c'].tolist() == [1, 2]


@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough to be read as one" * 20])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(content)
    with refused(what="it is not a results file"):
        sweeps.read(tmp_path / "x.sqlite")
    with refused(value=".txt", allowed=".sqlite"):
        sweeps.read("x.txt")
    with refused(what="its folder does not exist"):
        torsor.sweep(twice, [], output=tmp_path / "no" / "x.db")


def test_anybody_can_read_the_sqlite_file(tmp_path: Path) -> None:
    torsor.sweep(twice, [{"a": 1.5}], output=tmp_path / "x.db", workers=0)
    with sqlite3.connect(tmp_path / "x.db") as file:
        assert file.execute('SELECT "case", a, twice, state FROM cases').fetchall() == [(0, 1.5, 3.0, "done")]
    file.close()


def peak_memory(work: Callable[[], Any]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_number_of_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torsor.motion.sweeps.store.Store.most", 32)

    def long_text(a: int) -> dict[str, str]:
        return {"text": f"{a:05d}" * 1000}

    def swept(count: int) -> float:
        cases = ({"a": a} for a in range(count))
        return peak_memory(lambda: torsor.sweep(long_text, cases, output=tmp_path / f"{count}.sqlite", workers=0))

    swept(10)
    # Python keeps up to 2,000 freed tuples of each length, about 100 bytes a case; a row takes more than 5,000.
    assert swept(700) - swept(100) < 600 * 1000


def test_a_study_is_drawn_as_results_over_the_parameters_that_vary(tmp_path: Path) -> None:
    cases = torsor.motion.sweeps.grid(a=[1.0, 2.0, 3.0], b=[10.0, 20.0], c=[5.0])
    found = torsor.sweep(lambda a, b, c: {"sum": a + b + c, "product": a * b, "word": "x"}, cases, workers=0)
    figure = found.plot(tmp_path / "study.png")
    assert [axes.get_ylabel() for axes in figure.axes] == ["sum", "", "product", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "a", "b"]  # c does not vary
    assert np.allclose(figure.axes[3].collections[0].get_offsets(), np.stack([found["b"], found["product"]], axis=1))
    assert len(found.plot(results=["sum"], parameters=["b"]).axes) == 1
    for wrong in ({"results": ["word"]}, {"parameters": ["d"]}):
        with refused(what="has no numbers"):
            found.plot(**wrong)
    with refused(what="there is no varying parameter"):
        torsor.sweep(lambda a: {"b": a}, [{"a": 1.0}], workers=0).plot()
