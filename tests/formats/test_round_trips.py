"""Real robots are written as URDF, MJCF and SDF and read back with the same dynamics and shapes."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import torsor
from bench.copies import Copy
from bench.shape_copies import lost_shapes
from refusals import refused
from robots import robot_files
from torsor import ModelError, ModelWarning

FILES = robot_files()
FEW = [path for path in FILES if path.name in ("ur5_robot.urdf", "finger_edu.urdf")]
# Inertias that no body has: MuJoCo refuses them.
ODD = ("romeo_laas_small.urdf", "romeo_small.urdf")
SUFFIXES = (".urdf", ".xml", ".sdf")


def check(tmp_path: Path, path: Path, suffix: str, *bases: str) -> None:
    pytest.importorskip("mujoco")
    for base in bases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            robot = torsor.load(path, base=base)
            if suffix == ".xml" and path.name in ODD:
                with refused(where="MuJoCo rejects it"):
                    robot.save(tmp_path / "robot.xml")
                continue
            robot.save(tmp_path / f"robot{suffix}")
            again = torsor.load(tmp_path / f"robot{suffix}", base=base if suffix == ".sdf" else "fixed")
        assert Copy(robot, again).difference(np.random.default_rng(1)) < 1e-12
        assert not lost_shapes(robot, again)


# The .dae meshes of the UR5 take seconds to convert for MJCF: that is a slow test.
@pytest.mark.parametrize(
    ("path", "suffix"),
    [(path, suffix) for path in FEW for suffix in SUFFIXES if (path.stem, suffix) != ("ur5_robot", ".xml")],
    ids=lambda value: getattr(value, "stem", value),
)
def test_a_robot_comes_back_with_the_same_dynamics_and_shapes(tmp_path: Path, path: Path, suffix: str) -> None:
    check(tmp_path, path, suffix, "floating" if path.stem == "finger_edu" else "fixed")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_robots_come_back_with_the_same_dynamics_and_shapes(tmp_path: Path, path: Path, suffix: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            torsor.load(path)
    except ModelError:
        pytest.skip("this file is no robot")
    check(tmp_path, path, suffix, "fixed", "floating")
