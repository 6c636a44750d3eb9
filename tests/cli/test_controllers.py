"""``torsor simulate`` with a controller, and options of built-in problems: their effects, and rejected input."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.cli.main import main
from torsor.cli.predictions import NAMED
from torsor.simulation import Trajectory

SHORT = ["--duration", "0.5", "--step", "0.005"]


def simulated(tmp_path: Path, *arguments: str, robot: str = "two_link") -> Trajectory:
    output = tmp_path / "motion.npz"
    assert main(["simulate", robot, *SHORT, *arguments, "--output", str(output), "--force"]) == 0
    return Trajectory.load(output)


def test_pd_moves_the_arm_to_a_target(tmp_path: Path) -> None:
    motion = simulated(tmp_path, "--controller", "pd", "--kp", "9", "--kd", "2", "0.5", "--setpoint", "0.5", "-0.3")
    law = torsor.control.gravity_pd(torsor.library.two_link(), [0.5, -0.3], kp=9.0, kd=[2.0, 0.5])
    expected = torsor.simulate(torsor.library.two_link(), duration=0.5, step=0.005, controller=law)
    assert np.array_equal(motion.q, expected.q)
    assert np.abs(motion.q[-1] - [0.5, -0.3]).max() < 0.1


def test_without_a_target_the_initial_positions_are_held(tmp_path: Path) -> None:
    motion = simulated(
        tmp_path,
        "--controller",
        "computed-torque",
        "--bandwidth",
        "20",
        "--q0",
        "0.4",
        "0.2",
        "--control-period",
        "0.01",
    )
    assert np.abs(motion.q - [0.4, 0.2]).max() < 1e-12


def test_gravity_compensation_lets_the_arm_float(tmp_path: Path) -> None:
    chain = torsor.library.planar_chain(2)
    chain.save(tmp_path / "chain.toml")
    start = ["--q0", "0.4", "0.2"]
    motion = simulated(tmp_path, "--controller", "gravity", *start, robot=str(tmp_path / "chain.toml"))
    assert np.abs(motion.q - [0.4, 0.2]).max() < 1e-12
    damped = simulated(tmp_path, "--controller", "gravity", "--kd", "5", *start, "--v0", "1", "0")
    assert np.abs(damped.v[-1]).max() < 0.1


def test_no_controller_drives_a_floating_base(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd = ["--controller", "pd", "--kp", "60", "--kd", "2", "--contact", "hard", "--duration", "1"]
    motion = simulated(tmp_path, *pd, robot="quadruped")
    assert not motion.tau[:, :6].any() and motion.tau[:, 6:].any()
    push = motion.robot.poses(motion.q[-1])[:, 2, :3] * motion.external[-1, :, 3:]
    assert push.sum() == pytest.approx(9.81 * motion.robot.mass, rel=0.02)  # the feet carry it
    assert main(["simulate", "quadruped", "--controller", "gravity"]) == 1
    assert "the controller gravity would drive the floating base" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_recorded_motion_is_followed(tmp_path: Path, suffix: str) -> None:
    wished = torsor.simulate(torsor.library.two_link(), v0=[1.0, -0.5], duration=0.1, step=0.005)
    wished.save(tmp_path / f"wished{suffix}")
    motion = simulated(
        tmp_path,
        *("--controller", "computed-torque", "--bandwidth", "30", "--v0", "1", "-0.5"),
        *("--reference", str(tmp_path / f"wished{suffix}")),
    )
    assert np.abs(motion.q[: len(wished.q)] - wished.q).max() < 1e-6
    assert np.abs(motion.q[-1] - wished.q[-1]).max() < 1e-3  # it stays where the reference ends


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kp", "5"], "--kp needs a controller; fix: add --controller, one of pd, computed-torque, gravity"),
        (["--controller", "pd", "--tau", "1", "2"], "--tau and --controller are both given"),
        (["--controller", "pd", "--kp", "5"], "the controller pd needs --kd; fix: add --kd"),
        (
            ["--controller", "pd", "--bandwidth", "5"],
            "the controller pd does not use --bandwidth; allowed: --kp, --kd, --setpoint",
        ),
        (
            ["--controller", "gravity", "--setpoint", "0", "0"],
            "gravity does not use --setpoint; allowed: --kd",
        ),
        (["--controller", "computed-torque"], "the gains are missing"),
        (
            ["--controller", "computed-torque", "--kp", "5"],
            "the gains are --kp; allowed: --kp and --kd, or",
        ),
        (["--controller", "pd", "--kp", "-5", "--kd", "1"], "--kp is -5.0; allowed: positive numbers"),
        (["--controller", "pd", "--kp", "1", "2", "3", "--kd", "1"], "--kp has 3 numbers; allowed: 1, or 2"),
        (["--controller", "pd", "--kp", "1", "--kd", "nan"], "--kd is nan; allowed: finite numbers"),
        (["--controller", "pd", "--kp", "5", "--kd", "1", "--setpoint", "1"], "--setpoint has 1 number; allowed: 2"),
        (
            ["--controller", "pd", "--kp", "5", "--kd", "1", "--setpoint", "inf", "0"],
            "--setpoint is inf 0; allowed: finite",
        ),
        (["--tau", "inf", "0"], "--tau is inf 0; allowed: finite numbers"),
        (["--controller", "pd", "--kp", "5", "--kd", "1", "--reference", "no.csv"], "no.csv"),
        (
            ["--controller", "pd", "--kp", "5", "--kd", "1", "--setpoint", "0", "0", "--reference", "no.csv"],
            "--setpoint and --reference are both given",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "two_link", *SHORT, *arguments]) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_reference_needs_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torsor.simulate(torsor.library.two_link(), duration=0.01, step=0.005).save(tmp_path / "short.csv")
    lines = (tmp_path / "short.csv").read_text().splitlines()
    (tmp_path / "short.csv").write_text("\n".join(lines[:2]) + "\n")
    pd = ["--controller", "pd", "--kp", "5", "--kd", "1", "--reference", str(tmp_path / "short.csv")]
    assert main(["simulate", "two_link", *pd]) == 1
    assert "allowed: 2 or more increasing times" in capsys.readouterr().err


def test_a_reference_of_many_samples_is_followed_from_its_start(tmp_path: Path) -> None:
    times = np.linspace(0.0, 4.0, 4001)
    wave = np.sin(np.stack([10 * times, 15 * times + 1.0], axis=-1))  # more turns than 50 points can show
    rows = np.column_stack([times + 12.5, wave])  # a clock that runs since before
    np.savetxt(tmp_path / "wave.csv", rows, delimiter=",", header="time [s],joint1,joint2", comments="", fmt="%.12f")
    motion = simulated(
        tmp_path,
        *("--controller", "computed-torque", "--bandwidth", "40", "--duration", "4", "--step", "0.001"),
        *("--reference", str(tmp_path / "wave.csv")),
    )
    assert np.abs(motion.q - wave).max() < 1e-6


def test_options_of_built_in_problems_change_them() -> None:
    assert NAMED["two-link-time"].problem({"points": 8}).program.n == 9
    slide = NAMED["slide-link"].problem({"weight": 0.05, "variant": "reordered", "points": 8})
    assert [part.weight for part in slide.costs] == [0.95, 0.05]
    with refused(argument="weight", where="slide-link"):
        NAMED["slide-link"].problem({"weight": 2.0})
    ends = {"start": [0.0, -1.5, 1.0, -1.0, -1.5, 0.1], "end": [1.0, -0.5, 0.5, -1.5, -1.0, 1.0]}
    arm = NAMED["ur5-time"].problem({**ends, "torque_rate": [500.0]})
    assert arm.constraints[0].q == ends["start"]
    assert arm.constraints[-1].upper == 500.0
    assert NAMED["stanford-rates"].problem({"torque": 150.0, "torque_rate": [800.0]}).constraints[2].upper == 150.0
    assert NAMED["elastic-arm"].problem({"torque": 20.0, "points": 20}).stages[0].points == 20


def test_options_of_built_in_problems_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "two-link-time", "--points", "8"]) == 0
    assert "0.4054" in capsys.readouterr().out
    assert main(["predict", "two-link-time", "--variant", "reordered"]) == 1
    assert "--variant is an option of slide-link, not of two-link-time; allowed: --points, --nodes" in " ".join(
        capsys.readouterr().err.split()
    )
    assert main(["predict", "two-link-time", "--points", "2"]) == 1
    assert "points" in capsys.readouterr().err
