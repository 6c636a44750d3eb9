"""Odd but legal files: what Pinocchio or MuJoCo reads is read with the same result, or rejected with a reason."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import torsor
from bench.twins import MujocoTwin, PinocchioTwin

from .corpus import mjcf_files, urdf_files

pin = pytest.importorskip("pinocchio")

mujoco = pytest.importorskip("mujoco")

TOLERANCE = 1e-10
FEW = 25  # files, in the default tests
MANY = 1500  # files, in the slow tests: about a minute for each format; half of it is the time that hypothesis takes


def drawn(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def read(path: Path, text: str) -> torsor.Robot | None:
    """Return the robot of a text, or None if it is rejected; the error must then name the file."""
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torsor.ModelWarning)
        try:
            return torsor.load(path).to(device="casadi")
        except torsor.ModelError as error:
            assert str(error).startswith(f"{path.name}: ") and len(str(error)) > len(path.name) + 10
            return None


def compare_with_pinocchio(folder: Path, text: str) -> bool:
    """Compare inverse dynamics; return whether both read the file."""
    robot = read(folder / "odd.urdf", text)
    try:
        model = pin.buildModelFromXML(text.strip())
    except ValueError:
        return False
    if robot is None:
        return False
    assert robot.nv == model.nv
    twin = PinocchioTwin(robot, model)
    ((q, v, a, _),) = twin.states(1)
    expected = twin.inverse_dynamics(q, v, a)
    # Rounding is in proportion to the wrenches in the joints, of which the force along an axis can be a small part.
    scale = max([1e-3, *(np.abs(each.vector).max() for each in twin.data.f)])
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), expected, rtol=0, atol=TOLERANCE * scale)
    return True


def compare_with_mujoco(folder: Path, text: str) -> bool:
    """Compare inverse dynamics, springs and dampers included; return whether both read the file."""
    robot = read(folder / "odd.xml", text)
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        assert robot is None
        return False
    if robot is None:
        return False
    assert robot.nv == model.nv
    twin = MujocoTwin(robot, model)
    ((q, v, a, _),) = twin.states(1)
    expected = twin.inverse_dynamics(q, v, a)
    forces = np.abs(expected).max(initial=0.0), np.abs(twin.data.cfrc_int).max(initial=0.0)
    scale = max(1e-3, *forces, robot.mass * 10)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), expected, rtol=0, atol=TOLERANCE * scale)
    return True


COMPARED = {"urdf": (urdf_files, compare_with_pinocchio), "mjcf": (mjcf_files, compare_with_mujoco)}


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("format", COMPARED)
def test_a_file_that_its_own_program_reads_is_read_alike_or_refused(tmp_path: Path, format: str, examples: int) -> None:
    files, compare = COMPARED[format]
    counts = {True: 0, False: 0}

    @drawn(examples)
    @given(files())
    def check(text: str) -> None:
        counts[compare(tmp_path, text)] += 1

    check()
    assert counts[True] > examples / 2, counts  # most files are legal, or nothing is tested


@pytest.mark.parametrize("format", COMPARED)
def test_a_robot_of_the_corpus_is_saved_and_read_back_equal(tmp_path: Path, format: str) -> None:
    files, _ = COMPARED[format]

    @drawn(FEW)
    @given(files())
    def check(text: str) -> None:
        robot = read(tmp_path / f"odd.{'urdf' if format == 'urdf' else 'xml'}", text)
        if robot is not None:
            robot.save(tmp_path / "again.toml")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", torsor.ModelWarning)
                again = torsor.load(tmp_path / "again.toml", strict=False)
            assert again == replace(torsor.Robot.of(robot), name=again.name) or again == torsor.Robot.of(robot)

    check()
