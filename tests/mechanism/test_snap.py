"""Angles written with few digits: ``snap`` returns the same robot as exact angles, and changes nothing else."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from robots import robot_file
from torsor.cli.main import main
from torsor.mechanism.build import snapped_parts
from torsor.spatial import from_rpy, make_pose

BODY = '<inertial><origin rpy="{0} 0 0"/><mass value="2"/><inertia ixx="0.3" iyy="0.2" izz="0.4"/></inertial>'


def file(quarter: str, third: str) -> str:
    body = BODY.format(quarter)
    return f"""<robot name="arm"><link name="o"/><link name="a">{body}</link><link name="b">{body}</link>
    <link name="tip"/>
    <joint name="i" type="continuous"><parent link="o"/><child link="a"/><origin xyz="0 0 0.3" rpy="0 {quarter} 0.2"/>
    <axis xyz="0 0.00000001 1"/></joint>
    <joint name="j" type="continuous"><parent link="a"/><child link="b"/><origin rpy="-{quarter} 0 {third}"/>
    <axis xyz="0 1 0"/><mimic joint="i" offset="{third}"/></joint>
    <joint name="w" type="fixed"><parent link="b"/><child link="tip"/><origin rpy="0.1234 0 {quarter}"/></joint>
    </robot>"""


def test_a_file_with_few_digits_becomes_the_file_with_all(tmp_path: Path) -> None:
    (tmp_path / "short.urdf").write_text(file("1.5708", "1.0472"))
    (tmp_path / "long.urdf").write_text(file(repr(math.pi / 2), repr(math.pi / 3)))
    short = torsor.load(tmp_path / "short.urdf", snap=1e-5)
    exact = torsor.load(tmp_path / "long.urdf", snap=1e-5)
    for ours, theirs in zip(short.joints, exact.joints, strict=True):
        np.testing.assert_allclose(ours.placement, theirs.placement, rtol=0, atol=1e-14)
        assert ours.axis.tolist() == theirs.axis.tolist()
        assert ours.offset == pytest.approx(theirs.offset, abs=1e-15)
    for mine, other in zip(short.links, exact.links, strict=True):
        np.testing.assert_allclose(mine.inertia, other.inertia, rtol=0, atol=1e-11)
        assert np.count_nonzero(mine.inertia) == 3
    np.testing.assert_allclose(short.frames[0].pose, exact.frames[0].pose, rtol=0, atol=1e-14)
    # Without snap nothing moves.
    assert torsor.load(tmp_path / "short.urdf").joints[1].placement[2, 2] != 0


@pytest.mark.parametrize(
    "rpy", [(0.3, 1.57080, 0.2), (0.3, -1.57079, 0.2), (1.5708, 1.5708, 0), (3.14159, 0.1, 0), (0, 0, 0)]
)
def test_a_rotation_moves_by_no_more_than_the_tolerance(rpy: tuple[float, float, float]) -> None:
    R = from_rpy(rpy)
    frame = snapped_parts([], [], [torsor.Frame("f", "a", make_pose(R, [1, 2, 3]))], 1e-5)[2][0]
    assert np.abs(frame.pose[:3, :3] - R).max() <= 2e-5
    assert frame.pose[:3, 3].tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(frame.pose[:3, :3] @ frame.pose[:3, :3].T, np.eye(3), atol=1e-15)


def test_oblique_axes_and_skew_rotations_stay() -> None:
    joint = torsor.Joint("j", "revolute", "a", "b", make_pose(from_rpy([0.3, 0.2, 0.1])), axis=(0.48, 0.6, 0.64))
    again = snapped_parts([], [joint], [], 1e-5)[1][0]
    np.testing.assert_allclose(again.placement, joint.placement, atol=1e-15)
    assert again.axis.tolist() == joint.axis.tolist()


def test_a_published_arm_with_four_decimals_takes_fewer_operations(capsys: pytest.CaptureFixture[str]) -> None:
    path = robot_file("xarm7.urdf")
    plain, snapped = torsor.load(path), torsor.load(path, snap=1e-5)
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, plain.nv))
    near = snapped.to(device="casadi").inverse_dynamics(q, v, a)
    np.testing.assert_allclose(near, plain.to(device="casadi").inverse_dynamics(q, v, a), rtol=1e-3, atol=1e-4)
    before, after = (each.operation_count("inverse_dynamics").arithmetic for each in (plain, snapped))
    assert after < 0.8 * before
    assert main(["info", str(path)]) == 0
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert f"--snap 1e-5 reduces inverse dynamics from {before} to {after}" in shown
    assert main(["info", str(path), "--snap", "1e-5", "--strict"]) in (0, 1)
    assert "--snap" not in capsys.readouterr().out


@pytest.mark.parametrize("snap", [-1e-5, 0.5, "1", math.nan])
def test_a_tolerance_that_is_none_is_an_error(tmp_path: Path, snap: object) -> None:
    (tmp_path / "short.urdf").write_text(file("1.5708", "1.0472"))
    with refused(argument="snap", where="short.urdf", allowed="a finite number, 0 or more and 0.01 or less"):
        torsor.load(tmp_path / "short.urdf", snap=snap)
