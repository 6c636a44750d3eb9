"""Trajectories on disk, in figures, and on the command line."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.cli.main import main

ARM = torsor.library.two_link()


@pytest.fixture(scope="module")
def motion() -> torsor.Trajectory:
    return torsor.simulate(
        ARM, [0.1, 0.2], [1.0, -1.0], 0.02, controller=[0.3, 0.1], events=[lambda t, q, v: t - 0.0105]
    )


@pytest.fixture(scope="module")
def batch() -> torsor.Trajectory:
    wrenches = np.ones((2, 6))
    return torsor.simulate(
        ARM, np.zeros((2, 3, 2)), duration=0.01, external=wrenches, events=[lambda t, q, v: t - 0.005]
    )


def assert_same(one: torsor.Trajectory, other: torsor.Trajectory) -> None:
    assert one.robot == other.robot
    assert one.status == other.status
    for name in ("times", "q", "v", "a", "tau"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("which", ["motion", "batch"])
def test_npz_reads_back_equal(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    given = request.getfixturevalue(which)
    given.save(tmp_path / "motion.npz")
    read = torsor.Trajectory.load(tmp_path / "motion.npz")
    assert_same(read, given)
    assert (read.external is None) == (given.external is None)
    for one, other in zip(read.events, given.events, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert np.array_equal(read.reactions, given.reactions)
    assert [path.name for path in tmp_path.iterdir()] == ["motion.npz"]


def test_csv_reads_back_equal_and_names_its_columns(motion: torsor.Trajectory, tmp_path: Path) -> None:
    motion.save(tmp_path / "motion.csv")
    assert_same(torsor.Trajectory.load(tmp_path / "motion.csv", robot=ARM), motion)
    header = (tmp_path / "motion.csv").read_text().splitlines()[0].split(",")
    assert header[:3] == ["time [s]", "q joint1 [rad]", "q joint2 [rad]"]
    assert header[-1] == "held tau joint2 [N m]"
    tree = torsor.library.random_tree(7, 0)
    torsor.simulate(tree.without_friction().to(device="casadi"), duration=0.002).save(tmp_path / "tree.csv")
    header = (tmp_path / "tree.csv").read_text().splitlines()[0].split(",")
    assert len(header) == 1 + tree.nq + 3 * tree.nv == len(set(header))
    assert sum("[1]" in each for each in header) == 4 * (tree.nq - tree.nv)


def test_errors_of_saving(motion: torsor.Trajectory, batch: torsor.Trajectory, tmp_path: Path) -> None:
    with refused(value=".txt", allowed=".npz, .csv"):
        motion.save(tmp_path / "motion.txt")
    with refused(what="(2, 3) rollouts"):
        batch.save(tmp_path / "batch.csv")
    with refused(fix="create the folder first"):
        motion.save(tmp_path / "nowhere" / "motion.npz")
    assert not list(tmp_path.iterdir())


def spoil(path: Path, **changes: object) -> None:
    with np.load(path) as file:
        content = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: value for name, value in content.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "there is no 'q"),
        ({"torsor": 7}, "version is 7"),
        ({"status": "dancing"}, "status 'dancing'"),
        ({"events": 99}, "99 events"),
        ({"v": np.zeros((4, 2))}, "v has shape (4, 2)"),
        ({"tau": np.full((21, 2), "a")}, "tau has shape"),
        ({"times": np.zeros(21)}, "times do not increase"),
        ({"times": np.array(3.0)}, "times has shape"),
        ({"q": np.array(3.0)}, "q has shape"),
        ({"robot": np.frombuffer(b"nonsense", np.uint8)}, "not valid TOML"),
        ({"event0_rollouts": np.ones((1, 3), int)}, "event0_rollouts has shape"),
    ],
)
def test_damaged_npz(changes: dict[str, object], message: str, motion: torsor.Trajectory, tmp_path: Path) -> None:
    motion.save(tmp_path / "motion.npz")
    spoil(tmp_path / "motion.npz", **changes)
    with refused(message):
        torsor.Trajectory.load(tmp_path / "motion.npz")


def test_hostile_npz(motion: torsor.Trajectory, tmp_path: Path) -> None:
    path = tmp_path / "motion.npz"
    path.write_bytes(b"PK nothing")
    with refused(what="not a trajectory"):
        torsor.Trajectory.load(path)
    np.savez_compressed(path, q=np.zeros(10**6))
    with refused(what="compressed"):
        torsor.Trajectory.load(path)
    np.savez(path, torsor=np.array([{}], dtype=object))
    with refused(what="not a trajectory"):
        torsor.Trajectory.load(path)
    motion.save(path)
    whole = path.read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(torsor.ModelError):
            torsor.Trajectory.load(path)
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torsor.npy", header.ljust(127) + b"\n")
    with refused(what="not a trajectory"):
        torsor.Trajectory.load(path)
    with pytest.raises(FileNotFoundError):
        torsor.Trajectory.load(tmp_path / "nothing.npz")


def test_damaged_csv(motion: torsor.Trajectory, tmp_path: Path) -> None:
    path = tmp_path / "motion.csv"
    motion.save(path)
    with refused(what="does not contain its robot"):
        torsor.Trajectory.load(path)
    with refused(what="not those of stanford"):
        torsor.Trajectory.load(path, robot=torsor.library.stanford())
    text = path.read_text()
    for spoiled in (text + "1,2\n", text.replace("0.001", "x", 1), "", text + text.splitlines()[1] + "\n"):
        path.write_text(spoiled)
        with pytest.raises(torsor.ModelError):
            torsor.Trajectory.load(path, robot=ARM)
    path.write_bytes(b"\xff\xfe\x00")
    with refused(what="not a trajectory"):
        torsor.Trajectory.load(path, robot=ARM)


def test_figures(motion: torsor.Trajectory, batch: torsor.Trajectory, tmp_path: Path) -> None:
    motion.plot(tmp_path / "motion.png", what=("q", "v", "a", "tau", "energy", "reactions"))
    assert (tmp_path / "motion.png").read_bytes().startswith(b"\x89PNG")
    assert len(batch.plot(what="q").axes[0].lines) == 6 * 2
    for what in (("speed",), ()):
        with refused(allowed="q, v, a, tau, energy, reactions"):
            motion.plot(what=what)


def test_rollouts_are_selected_by_index(batch: torsor.Trajectory, motion: torsor.Trajectory) -> None:
    assert batch[1].q.shape == (3, 11, 2)
    assert batch[1, 2].external.shape == (11, 2, 6)
    assert batch[:, 1].events[0].rollouts.ravel().tolist() == [0, 1]
    assert len(list(batch)) == 2
    assert repr(batch) == "<Trajectory of 'two_link': 2 x 3 x 11 samples, 0.01 s, done>"
    for index in (2, (0, 3), (0, 0, 0), ..., None):
        with pytest.raises(IndexError):
            batch[index]
    with pytest.raises(IndexError, match="single rollout"):
        motion[0]


def test_the_command_line_simulates(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    npz, png = str(tmp_path / "arm.npz"), str(tmp_path / "arm.png")
    options = ["--v0", "1", "-1", "--duration", "0.2", "--step", "0.002", "--output", npz, "--plot", png]
    assert main(["simulate", "two_link", *options]) == 0
    shown = capsys.readouterr().out
    assert "energy change (J)" in shown
    assert "largest speed" in shown
    assert torsor.Trajectory.load(npz).q.shape == (101, 2)
    assert Path(png).stat().st_size > 1000
    assert main(["simulate", "two_link", "--q0", "1"]) == 1
    assert "--q0 has 1 number; allowed: 2" in capsys.readouterr().err
    assert main(["simulate", "two_link", "--tau", "1e30", "0"]) == 3
    assert "the speed of joint" in capsys.readouterr().err


def test_a_csv_file_keeps_the_wrenches_of_the_environment(tmp_path: Path) -> None:
    robot = torsor.library.two_link()
    motion = torsor.simulate(robot, duration=0.01, external=np.arange(12.0).reshape(2, 6))
    motion.save(tmp_path / "motion.csv")
    found = torsor.Trajectory.load(tmp_path / "motion.csv", robot=robot)
    assert np.array_equal(found.external, motion.external)
    np.testing.assert_allclose(found.reactions, motion.reactions, rtol=1e-14)


def test_interpolated_velocities_use_the_held_force() -> None:
    robot = torsor.library.planar_chain(1, gravity=(0, 0, 0))

    def to_and_fro(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([10.0 if round(t / 0.1) % 2 == 0 else -10.0])

    motion = torsor.simulate(robot, duration=1.0, controller=to_and_fro, control_period=0.1, record=0.1)
    assert motion.at(0.0666).v == pytest.approx(0.0666 * 30.0)


@pytest.mark.parametrize("header", ["(", "'''open", "{'descr': '<f8', 'fortran_order': False, 'shape': (21, 1), "])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_damaged_headers_of_arrays_are_refused_with_the_name_of_the_file(
    header: str, version: int, tmp_path: Path
) -> None:
    torsor.simulate(torsor.library.planar_chain(1), duration=0.01).save(tmp_path / "fall.npz")
    text = header.ljust(117).encode() + b"\n"
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    with zipfile.ZipFile(tmp_path / "fall.npz") as whole, zipfile.ZipFile(tmp_path / "bad.npz", "w") as damaged:
        for name in whole.namelist():
            content = whole.read(name)
            if name == "q.npy":
                content = b"\x93NUMPY" + bytes([version, 0]) + size + text + content[128:]
            damaged.writestr(name, content)
    with refused(where="bad.npz", what="not a trajectory:"):
        torsor.Trajectory.load(tmp_path / "bad.npz")
    with refused(where="bad.npz", what="not a result of a motion problem:"):
        torsor.motion.MotionResult.load(tmp_path / "bad.npz")


def test_names_that_are_no_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    for name, words in (("folder.npz", "not a trajectory"), ("n" * 300 + ".npz", "too long")):
        with refused(words):
            torsor.Trajectory.load(tmp_path / name)
    with refused(what="null"):
        torsor.Trajectory.load(f"{tmp_path}/a\0b.npz")
