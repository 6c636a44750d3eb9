"""Malicious and randomly damaged files are rejected with a message, quickly and without exhausting memory."""

from pathlib import Path

import numpy as np
import pytest

from human.recordings.test_osim import OSIM
from human.recordings.test_text_files import TRC
from refusals import refused
from torsor.base.errors import ModelError
from torsor.human.recordings import load, read_osim

MOT = "x\nversion=1\nnRows=2\nnColumns=3\ninDegrees=no\nendheader\ntime\ta\tb\n0\t1\t2\n1\t3\t4\n"
CSV = "time,a x,a y\n0,1,2\n1,2,3\n"


@pytest.mark.parametrize("suffix", [".trc", ".mot", ".sto", ".csv", ".osim"])
def test_binary_data_are_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    with refused(where=f"a{suffix}"):
        (read_osim if suffix == ".osim" else load)(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.trc", TRC.replace("    3\t\t ", "99999999999999999\t\t ")),
        ("a.mot", MOT.replace("nRows=2", "nRows=99999999999999999").replace("nColumns=3", "nColumns=999999999")),
    ],
)
def test_huge_declared_sizes_need_no_memory(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert len((load(tmp_path / name, check=False).found_markers or load(tmp_path / name).table).times) <= 3


def test_a_table_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mot").write_text("endheader\ntime" + "\ta" * 19_000 + "\n" + "0\n" * 10_000)
    with refused(where="a.mot", allowed="20000 columns and 100000000"):
        load(tmp_path / "a.mot")
    (tmp_path / "a.trc").write_text("Frame#\tTime" + "\ta\t\t" * 9_000 + "\n1\t0\n")
    with refused(what="the unit is missing"):
        load(tmp_path / "a.trc")
    with refused(what="1 rows of 27002 columns"):
        load(tmp_path / "a.trc", unit="mm")


def test_names_cannot_command_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.mot").write_text("endheader\ntime\ta\x1b[2J\ta\x1b[2J\n0\t1\tx\n")
    with pytest.raises(ModelError) as caught:
        load(tmp_path / "a.mot")
    assert "\x1b" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::torsor.ModelWarning")
@pytest.mark.parametrize(("name", "text"), [("a.trc", TRC), ("a.mot", MOT), ("a.csv", CSV)], ids=["trc", "mot", "csv"])
def test_random_changes_never_raise_another_error(name: str, text: str, tmp_path: Path) -> None:
    whole, numbers = text.encode(), np.random.default_rng(1)
    for _ in range(60):
        content = bytearray(whole)
        for at in numbers.integers(0, len(whole), size=3):
            content[at] = numbers.integers(0, 256)
        (tmp_path / name).write_bytes(bytes(content[: numbers.integers(1, len(whole) + 1)]))
        try:
            load(tmp_path / name)
        except ModelError:
            continue


def test_random_changes_of_a_skeleton_never_raise_another_error(tmp_path: Path) -> None:
    whole, numbers = OSIM.encode(), np.random.default_rng(2)
    for _ in range(40):
        content = bytearray(whole)
        for at in numbers.integers(0, len(whole), size=2):
            content[at] = numbers.integers(32, 127)
        (tmp_path / "a.osim").write_bytes(bytes(content))
        try:
            read_osim(tmp_path / "a.osim")
        except ModelError:
            continue
