"""A real cluster: a dask scheduler and workers in separate processes; a worker and the client are killed."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import torsor
from study_functions import slowly
from torsor.motion import sweeps

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # those of the libraries of the cluster
]
TESTS = Path(__file__).parents[2]


class Cluster:
    """A scheduler and workers with one thread each."""

    def __init__(self) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}
        self.environment, self.workers = environment, list[subprocess.Popen[bytes]]()
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        options = {"env": environment, "stderr": subprocess.PIPE}
        self.scheduler = subprocess.Popen([*command, "--no-dashboard"], **options)  # type: ignore[call-overload]
        assert self.scheduler.stderr is not None
        for line in self.scheduler.stderr:
            if found := re.search(rb"Scheduler at:\s*(tcp://[\d.:]+)", line):
                self.address = found[1].decode()
                break

    def start_worker(self) -> None:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command += ["--no-dashboard", "--memory-limit", "0", "--death-timeout", "120"]
        self.workers.append(subprocess.Popen(command, env=self.environment, **silent))  # type: ignore[call-overload]

    def kill_worker(self) -> None:
        worker = self.workers.pop(0)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def close(self) -> None:
        for each in (*self.workers, self.scheduler):
            each.kill()
            each.wait()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    found = Cluster()
    yield found
    found.close()


@pytest.mark.parametrize("suffix", ["sqlite", "parquet"])
def test_a_killed_worker_and_a_killed_client_lose_and_double_no_case(
    cluster: Cluster, tmp_path: Path, suffix: str
) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    output = tmp_path / f"study.{suffix}"
    for _ in range(2):
        cluster.start_worker()
    client = f"""
import torsor
from study_functions import slowly
from torsor.motion.sweeps.store import ParquetStore
ParquetStore.patience = 1.0
cases = [{{"a": a, "seconds": 0.2}} for a in range(120)]
torsor.sweep(slowly, cases, executor={cluster.address!r}, output={str(output)!r}, resume=True)
"""
    first = subprocess.Popen([sys.executable, "-c", client], env=cluster.environment)

    def wait_for(count: int) -> None:
        while not output.exists() or not _count(output) >= count:
            assert first.poll() is None
            time.sleep(0.1)

    wait_for(5)
    cluster.kill_worker()
    cluster.start_worker()
    wait_for(20)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = len(sweeps.read(output))
    assert 20 <= before < 120
    second = subprocess.run([sys.executable, "-c", client], env=cluster.environment, check=False)
    found = sweeps.read(output)
    assert second.returncode == 0 and found.failed == 0
    assert found["case"].tolist() == list(range(120)) and found["value"].tolist() == [a * a for a in range(120)]


def _count(output: Path) -> int:
    try:
        return len(sweeps.read(output))
    except ValueError:  # the file is made in this moment
        return 0


def test_workers_killed_twenty_times_lose_and_double_no_case(cluster: Cluster, tmp_path: Path) -> None:
    import threading

    from distributed import Client

    for _ in range(2):
        cluster.start_worker()
    with Client(cluster.address) as client:
        client.wait_for_workers(2)
        cases = ({"a": a, "seconds": 0.3} for a in range(400))
        done = threading.Event()

        def kill() -> None:
            for _ in range(20):
                cluster.start_worker()
                while len(client.nthreads()) < 3:
                    time.sleep(0.1)
                cluster.kill_worker()
            done.set()

        killer = threading.Thread(target=kill)
        killer.start()

        def until_all_are_killed() -> Iterator[dict[str, float]]:
            for case in cases:
                yield case
                if done.is_set() and case["a"] > 50:
                    return

        found = torsor.sweep(slowly, until_all_are_killed(), executor=client, output=tmp_path / "x.sqlite")
        killer.join()
    assert found.failed == 0 and done.is_set()
    count = len(found)
    assert found["case"].tolist() == list(range(count)) and found["value"].tolist() == [a * a for a in range(count)]
