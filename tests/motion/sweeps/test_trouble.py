"""Full disks, damaged files, odd text and broken executors end with a message and lose no finished case."""

import pickle
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.motion import sweeps
from torsor.motion.sweeps.cases import Case, Row
from torsor.motion.sweeps.executors import Here, Parcel, _sendable, run_parcel
from torsor.motion.sweeps.store import SqliteStore

HALF = "\ud800"  # half of a character, as file names in another encoding have


def swept(function: Any, cases: Any = ({"a": 1}, {"a": 2}), **given: Any) -> sweeps.Results:
    return torsor.sweep(function, list(cases), **({"workers": 0, "progress": False} | given))


def raising(a: int) -> None:
    raise ValueError(HALF)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a: HALF, r"the result 'value' is '\ud800'; allowed: Unicode text"),
        (lambda a: {HALF: 1.0}, r"the name of a result is '\ud800'; allowed: Unicode text"),
        (raising, r"ValueError: \ud800"),
        (lambda a: {f"x{k}": 1.0 for k in range(2500)}, "there would be 2507 columns; allowed: 1900; fix: return"),
    ],
)
def test_what_no_file_can_hold_is_a_failed_case(function: Any, words: str, tmp_path: Path) -> None:
    found = swept(function, output=tmp_path / "x.sqlite")
    assert (found.done, found.failed) == (0, 2) and words in found.errors()[1]


def test_parameters_that_no_file_can_hold_are_refused() -> None:
    for case in ({"a": HALF}, {"a": ["x", HALF]}, {HALF: 1}):
        with refused(where="case 0", allowed="Unicode text"):
            swept(lambda **_: 1.0, [case])


def test_a_full_disk_ends_the_study_in_words_and_keeps_what_is_written(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.sqlite", {}, "f")
    store.append([Row(0, "00", {}, {"value": 1.0})])
    store._file.execute("PRAGMA max_page_count = 20")
    with refused(fix="free disk space"):
        store.append([Row(k, "00", {}, {"big": np.zeros(30000)}) for k in (1, 2)])
    assert store.counts() == {"done": 1, "failed": 0}
    store.close()


def test_the_workers_stop_where_the_results_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched(Here):
        stopped = False

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            Watched.stopped = True

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(SqliteStore, "_names", full)
    with refused(what="cannot be written"):
        swept(lambda a: a, executor=Watched, workers=None)
    assert Watched.stopped


def test_results_are_read_after_a_study_was_killed_while_it_wrote(tmp_path: Path) -> None:
    path, copy = tmp_path / "x.sqlite", tmp_path / "copy.sqlite"
    swept(lambda a: {"value": float(a), "text": "x" * 3000}, [{"a": k} for k in range(20)], output=path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")  # so that half of a transaction is in the file
    writer.execute("BEGIN")
    writer.execute("UPDATE cases SET value = -1, text = text || text")
    for suffix in ("", "-journal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    writer.close()
    assert sweeps.read(copy)["value"].tolist() == list(range(20))


def test_damaged_values_are_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    swept(lambda a: np.zeros(3), output=path)
    for bad in ("x'00'", "'text'"):
        with sqlite3.connect(path) as file:
            file.execute(f"UPDATE cases SET value = {bad}")
        with refused(where="x.sqlite", what="its values are damaged"):
            sweeps.read(path)["value"]


@pytest.mark.parametrize(("name", "words"), [("x.sqlite", "it is a folder"), ("a\0.db", "null char")])
def test_places_that_hold_no_file_are_refused(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").mkdir()
    with refused(words):
        swept(abs, output=tmp_path / name, resume=True)


def test_threads_take_functions_that_cannot_be_sent() -> None:
    with ThreadPoolExecutor(2) as threads:
        assert swept(lambda a: 2 * a, executor=threads, workers=None)["value"].tolist() == [2.0, 4.0]


def test_executors_that_take_no_cases_end_the_study_in_words() -> None:
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    with refused(fix="pass an open executor"):
        swept(lambda: 1.0, [{}], executor=closed, workers=None)
    with refused(allowed="an executor of concurrent.futures"):
        swept(lambda: 1.0, [{}], executor=lambda: None, workers=None)


class TwoWordsError(Exception):
    """It cannot be made again from its pickle."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


class Unpacked:
    """Its unpacking fails, as that of a module does which cannot be imported there."""

    def __reduce__(self) -> Any:
        return TwoWordsError.__new__, (dict,)


def test_a_function_that_cannot_be_unpacked_in_a_worker_is_a_failed_case() -> None:
    (row,) = run_parcel(Parcel("none", pickle.dumps(Unpacked())), [Case(3, {"a": 1})])
    assert row.number == 3 and row.error.startswith("the function cannot be unpacked in a worker: TypeError")
    assert pickle.loads(pickle.dumps(row)) == row


def test_errors_that_cannot_be_sent_are_sent_as_text() -> None:
    sent = _sendable(TwoWordsError("one", "two"))
    assert str(pickle.loads(pickle.dumps(sent))) == "TwoWordsError: one"
    assert isinstance(_sendable(ValueError("x")), ValueError)
