"""Workers: if one is killed, no case is lost or repeated, and Ctrl-C keeps the finished cases."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

import torsor
from refusals import refused
from study_functions import compiles, dies, twice
from torsor.motion import sweeps
from torsor.motion.sweeps.executors import Parcel, WorkerDiedError
from torsor.motion.sweeps.subjects import Subject

CASES = [{"a": a} for a in range(6)]


class Fragile(Executor):
    """An executor whose workers are lost with some cases; ``together``: all of them, and the executor is broken."""

    def __init__(self, deaths: dict[int, int], error: BaseException, together: bool = False) -> None:
        self.deaths, self.error, self.together, self.waiting = deaths, error, together, list[tuple[Any, Any]]()
        self.submitted = list[int]()
        self._max_workers = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future, number = Future[Any](), args[1][0].number
        self.submitted.append(number)
        if self.deaths.get(number, 0) > 0:
            self.deaths[number] -= 1
            future.set_exception(self.error)
            for other, _ in self.waiting if self.together else []:
                other.set_exception(self.error)
            self.waiting.clear()
        elif self.together and number + 1 in self.deaths:
            self.waiting.append((future, number))  # it is still computed when its neighbour breaks the executor
        else:
            future.set_result(fn(*args))
        return future


class KilledWorker(Exception):  # noqa: N818 - the name that dask.distributed gives it
    pass


@pytest.mark.parametrize("error", [WorkerDiedError("killed"), KilledWorker("killed")], ids=["process", "cluster"])
def test_a_case_that_lost_its_worker_is_computed_again_and_given_up_after_five_times(error: Exception) -> None:
    executor = Fragile({1: 4, 4: 5}, error)
    found = torsor.sweep(twice, CASES, executor=executor)
    assert found["case"].tolist() == [0, 1, 2, 3, 4, 5] and found.failed == 1 and found["twice"][1] == 2
    assert found.errors() == {4: "its worker was lost 5 times, the last time: killed"}
    assert executor.submitted.count(1) == 5 and executor.submitted.count(4) == 5


def test_the_cases_of_a_broken_executor_are_computed_alone_by_new_ones() -> None:
    deaths, made = {3: 6}, list[Fragile]()

    def make() -> Executor:
        made.append(Fragile(deaths, BrokenProcessPool("broken"), together=not made))
        return made[-1]

    found = torsor.sweep(twice, CASES, executor=make)
    assert found["case"].tolist() == [0, 1, 2, 3, 4, 5] and list(found.errors()) == [3]
    assert len(made) == 7 and found["twice"][2] == 4  # the neighbour that was lost with it is innocent


def test_a_given_executor_that_breaks_ends_the_study_in_words(tmp_path: Path) -> None:
    executor = Fragile({3: 1}, BrokenProcessPool("broken"))
    with refused(fix="pass a function"):
        torsor.sweep(twice, CASES, executor=executor, output=tmp_path / "x.sqlite")
    found = torsor.sweep(twice, CASES, workers=0, output=tmp_path / "x.sqlite", resume=True)
    assert found.done == 6


def test_executors_that_never_work_end_the_study() -> None:
    with refused(what="new workers end immediately"):
        torsor.sweep(twice, CASES * 9, executor=lambda: Fragile(dict.fromkeys(range(99), 9), BrokenExecutor()))


def test_threads_of_an_executor_compute() -> None:
    with ThreadPoolExecutor(2) as executor:
        assert torsor.sweep(twice, CASES, executor=executor)["twice"].tolist() == [0, 2, 4, 6, 8, 10]


@pytest.mark.slow
def test_a_killed_process_is_replaced_and_its_case_computed_again(tmp_path: Path) -> None:
    found = torsor.sweep(dies, [{"a": 1}, {"a": 2}], fixed={"folder": str(tmp_path), "times": 1}, workers=1)
    assert found["value"].tolist() == [1, 4] and (tmp_path / "1").read_text() == ".."


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, ctrl_c: Callable[[], None]) -> None:
    pressed = list[bool]()

    def pressing(a: float) -> float:
        if a == 3 and not pressed:
            pressed.append(True)
            ctrl_c()
        return a

    found = torsor.sweep(pressing, CASES, output=tmp_path / "x.sqlite", workers=0)
    assert found.status == "stopped by Ctrl-C" and found["a"].tolist() == [0, 1, 2]
    found = torsor.sweep(pressing, CASES, output=tmp_path / "x.sqlite", workers=0, resume=True)
    assert found.status == "complete" and found["value"].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"executor": 3}, "executor"),
        ({"executor": ThreadPoolExecutor, "workers": 2}, "executor"),
        ({"workers": -1}, "workers"),
        ({"workers": 1, "attempts": 0}, "attempts"),
    ],
)
def test_wrong_arguments_are_refused(given: dict[str, Any], words: str) -> None:
    with refused(words):
        torsor.sweep(twice, CASES, **given)


def test_a_function_that_cannot_travel_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    with refused(fix="define the function in a module"):
        Parcel.of(Subject("local", lambda a: a))


def test_a_missing_cluster_is_an_error_in_words() -> None:
    pytest.importorskip("distributed")
    with refused(value="nonsense://x"):
        torsor.sweep(twice, CASES, executor="nonsense://x")


@pytest.mark.slow
def test_a_process_that_is_killed_twenty_times_loses_and_doubles_no_case(tmp_path: Path) -> None:
    cases = [{"a": a} for a in range(40)]
    fixed = {"folder": str(tmp_path), "times": 1}
    # Every second case kills its process once: twenty processes are killed with SIGKILL.
    found = torsor.sweep(
        dies,
        ({**each, "times": int(each["a"] % 2)} for each in cases),
        fixed=fixed,
        workers=2,
        output=tmp_path / "x.db",
    )
    assert found["case"].tolist() == list(range(40)) and found.failed == 0
    assert found["value"].tolist() == [a * a for a in range(40)]
    assert sum(len((tmp_path / f"{a}").read_text()) for a in range(40)) == 60


@pytest.mark.slow
def test_a_case_that_always_kills_its_process_is_a_failed_one(tmp_path: Path) -> None:
    fixed = {"folder": str(tmp_path), "times": 99}
    found = torsor.sweep(dies, [{"a": 1}, {"a": 2, "times": 0}], fixed=fixed, workers=1)
    assert found.errors() == {0: "its worker was lost 5 times, the last time: its process was ended by SIGKILL"}
    assert found["value"][1] == 4


@pytest.mark.slow
def test_a_pool_of_concurrent_futures_is_made_again(tmp_path: Path) -> None:
    fixed = {"folder": str(tmp_path), "times": 0}
    cases = [{"a": a, "times": int(a == 3)} for a in range(8)]
    found = torsor.sweep(dies, cases, fixed=fixed, executor=lambda: ProcessPoolExecutor(2))
    assert found["value"].tolist() == [a * a for a in range(8)] and found.failed == 0


@pytest.mark.slow
def test_processes_can_be_seen_and_killed_from_outside(tmp_path: Path) -> None:
    with sweeps.Processes(1) as pool:
        assert pool.submit(pow, 2, 3).result() == 8
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)
        lost = pool.submit(pow, 2, 4)
        if lost.exception() is not None:
            assert isinstance(lost.exception(), WorkerDiedError)
        assert pool.submit(pow, 2, 5).result() == 32 and pool.pids != [pid]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "killed"])
def test_a_study_on_the_command_line_goes_on_after_it_was_stopped(tmp_path: Path, how: signal.Signals) -> None:
    study, output = tmp_path / "study.toml", tmp_path / "study.sqlite"
    study.write_text(f'torsor = 1\nproblem = "two-link-time"\nworkers = 2\ngrid.points = {list(range(6, 46))}')
    command = [sys.executable, "-m", "torsor", "sweep", str(study)]
    first = subprocess.Popen(command, start_new_session=True, preexec_fn=_default_interrupt)
    while not output.exists() or not _count(output) >= 3:
        assert first.poll() is None
        time.sleep(0.1)
    first.send_signal(how)
    assert first.wait() == (130 if how == signal.SIGINT else -signal.SIGKILL)
    assert 3 <= len(sweeps.read(output)) < 40
    subprocess.run([*command, "--resume"], check=True)
    found = sweeps.read(output)
    assert found["case"].tolist() == list(range(40)) and found.failed == 0
    assert found["points"].tolist() == list(range(6, 46))


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it


def _count(output: Path) -> int:
    try:
        return len(sweeps.read(output))
    except ValueError:  # the file is made in this moment
        return 0


@pytest.mark.slow
def test_two_processes_compile_a_function_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path / "cache"))
    cases = [{"a": 0.1 * k, "log": str(tmp_path / "log")} for k in range(4)]
    found = torsor.sweep(compiles, cases, workers=2)
    assert len(found) == 4
    log = (tmp_path / "log").read_text().splitlines()
    assert 1 <= len(log) <= 2  # the function, and its sines and cosines
