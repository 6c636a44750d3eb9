"""Files are written atomically, keep the old file if writing fails, and can be read on any machine."""

import os
import sys
import threading
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.base.documents import write_document
from torsor.base.files import reading_npz, replacing, write_npz

from . import small as made


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    made.results()["trajectory"].save(tmp_path / "fall.npz")
    return tmp_path / "fall.npz"


def changed(path: Path, **arrays: Any) -> Path:
    """The file with other arrays."""
    with np.load(path) as found:
        np.savez(path, **({name: found[name] for name in found.files} | arrays))
    return path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_or_a_device_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    pipe, seen = tmp_path / "pipe.json", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: seen.append(pipe.read_text()))
    reader.start()
    write_document(pipe, {"a": 1})
    reader.join()
    assert seen == ['{"a": 1}\n'] and pipe.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe.json"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "disk" / "real.json")
    write_document(tmp_path / "link.json", {})
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "disk" / "real.json").read_text() == "{}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_a_new_file_has_the_permissions_of_the_one_that_it_replaces(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("")
    secret.chmod(0o600)
    write_document(secret, {})
    assert secret.stat().st_mode & 0o777 == 0o600


def test_names_as_long_as_the_system_allows_can_be_written(tmp_path: Path) -> None:
    long = tmp_path / ("a" * 250 + ".json")
    write_document(long, {})
    assert long.read_text() == "{}\n"
    with refused(what="contains a null character"):
        write_document(tmp_path / "a\0.json", {})


def test_an_error_without_a_file_gets_the_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "full.json").write_text("old")
    with pytest.raises(OSError, match=r"No space left.*full\.json"), replacing(tmp_path / "full.json") as part:
        part.write_text("half")
        raise OSError(28, "No space left on device")
    assert (tmp_path / "full.json").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_a_file_of_a_machine_with_another_byte_order_is_read(saved: Path) -> None:
    before = torsor.load_result(saved)
    foreign = {name: getattr(before, name).astype(">f8") for name in ("times", "q", "v", "a", "tau")}
    again = torsor.load_result(changed(saved, **foreign))
    assert again.q.dtype == np.dtype(float) and again.q.dtype.isnative
    assert np.array_equal(again.q, before.q) and np.array_equal(again.energy, before.energy)


@pytest.mark.parametrize(
    "bad",
    [
        {"torsor": 2.7},
        {"torsor": np.array("2")},
        {"torsor": 1e300},
        {"header": np.frombuffer(b'{"kind": ["a"], "settings": {}}', np.uint8)},
    ],
)
def test_a_version_or_kind_of_another_type_is_refused(bad: dict[str, Any], saved: Path) -> None:
    with refused(where="fall.npz", what="not a Torsor result:") as caught:
        torsor.load_result(changed(saved, **bad))
    assert len(str(caught.value)) < 300


def test_numbers_that_other_machines_do_not_have_are_refused(saved: Path) -> None:
    if np.dtype(np.longdouble).itemsize == 8:
        pytest.skip("long double is double here")
    q = torsor.load_result(saved).q.astype(np.longdouble)
    with refused(what="q has shape"):
        torsor.load_result(changed(saved, q=q))


def test_members_that_are_no_arrays_or_there_twice_are_refused(saved: Path) -> None:
    content = saved.read_bytes()
    for name, words in (("../note.txt", "not an array"), ("q.npy", "appears twice")):
        saved.write_bytes(content)
        with warnings.catch_warnings(), zipfile.ZipFile(saved, "a") as archive:
            warnings.simplefilter("ignore")  # of the name that is appears twice
            archive.writestr(name, b"hello")
        with refused(words):
            torsor.load_result(saved)


def test_the_time_to_read_grows_with_the_number_of_arrays_not_with_its_square(tmp_path: Path) -> None:
    """Each member is opened once: NumPy searches the list of all names for each of them."""
    write_npz(tmp_path / "x.npz", {f"a{k}": k for k in range(300)})
    opened = list[str]()
    whole = zipfile.ZipFile.open

    def counted(self: zipfile.ZipFile, name: Any, *rest: Any, **more: Any) -> Any:
        opened.append(getattr(name, "filename", name))
        return whole(self, name, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "open", counted)
        patch.setattr(np, "load", lambda *_, **__: pytest.fail("np.load is used"))
        with reading_npz(tmp_path / "x.npz", "numbers") as found:
            assert len(found) == 300 and int(found["a299"]) == 299
    assert len(opened) == 300


def test_every_robot_of_the_library_reads_back_equal_with_its_samples_to_the_last_bit(tmp_path: Path) -> None:
    """Loops, elastic joints, motors, wheels, flexible links, the human: .npz and .csv."""
    rng = np.random.default_rng(0)
    for name in ("four_bar", "elastic_arm", "flexible_arm", "rolling_disc", "free_flying_arm", "eel", "human"):
        robot = getattr(torsor.library, name)()
        sizes = (robot.nq, robot.nv, robot.nv, robot.nv)
        states = [rng.normal(size=(2, n)) for n in sizes]
        states[0][0, 0], states[1][0, 0], states[2][0, 0] = -0.0, np.nan, np.inf
        loads = rng.normal(size=(2, len(robot.links), 6))
        given = torsor.Trajectory(robot, np.array([0.0, 0.1]), *states, external=loads, held=(True, False))
        given.save(tmp_path / "x.npz")
        given.save(tmp_path / "x.csv")
        with warned(what="NaN"):
            read = torsor.load_result(tmp_path / "x.npz")
        for again in (read, torsor.Trajectory.load(tmp_path / "x.csv", robot)):
            assert again.robot == robot and again.held == given.held
            for letter in ("times", "q", "v", "a", "tau", "external"):
                assert getattr(again, letter).tobytes() == getattr(given, letter).tobytes(), (name, letter)
