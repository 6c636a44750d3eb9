"""Closed and parallel mechanisms in C: their own algorithms, with the numbers of their methods."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.cli.main import main

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")


def called(folder: Path, name: str, function: ca.Function, *values: np.ndarray) -> list[np.ndarray]:
    """Compile the C of a folder and return the results of one of its functions."""
    code = folder / "torsor_kernels.so"
    if not code.exists():
        source = folder / "torsor_kernels.c"
        subprocess.run(["gcc", "-std=c99", "-O1", "-fPIC", "-shared", source, "-o", code, "-lm"], check=True)
    outputs = [np.full(function.size_out(k), np.nan) for k in range(function.n_out())]
    arrays = [*(np.ascontiguousarray(each, dtype=float) for each in values), *outputs]
    pointer = ctypes.POINTER(ctypes.c_double)
    getattr(ctypes.CDLL(str(code)), name)(*(each.ctypes.data_as(pointer) for each in arrays))
    return [each.ravel() if each.shape[1] == 1 else each for each in outputs]


def test_a_closed_mechanism_in_c_is_not_its_tree(tmp_path: Path) -> None:
    robot, names = torsor.library.four_bar(), ("constrained_inverse_dynamics", "closed_forward_dynamics")
    torsor.export.c(robot, tmp_path, names)
    q, rng = robot.closed.assemble([0.7]), np.random.default_rng(0)
    (tau,) = called(tmp_path, names[0], robot.function(names[0]), q, [1.1], [0.4], [1.0])
    np.testing.assert_allclose(tau, robot.closed.inverse_dynamics(q, [1.1], [0.4]), rtol=1e-12)
    v, forces = robot.closed.velocities(q, [1.1]), rng.normal(size=robot.nv)
    (a,) = called(tmp_path, names[1], robot.function(names[1]), q, v, forces)
    np.testing.assert_allclose(a, robot.closed.forward_dynamics(q, v, forces, coordinates="all"), rtol=1e-9)


def test_the_tree_of_a_closed_mechanism_is_exported_when_that_is_asked_for(tmp_path: Path) -> None:
    robot = torsor.library.four_bar()
    with refused(what="mass_matrix would cut"):
        torsor.export.c(robot, tmp_path, ["mass_matrix"])
    assert not list(tmp_path.iterdir())
    torsor.export.c(robot, tmp_path, ["mass_matrix"], loops="open")
    q = robot.closed.assemble([0.7])
    (M,) = called(tmp_path, "mass_matrix", robot.function("mass_matrix", loops="open"), q)
    np.testing.assert_allclose(M, robot.mass_matrix(q, loops="open"), rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["three_rrr", *(pytest.param(n, marks=pytest.mark.slow) for n in ("gough_stewart", "delta"))]
)
def test_the_command_exports_the_parallel_robots_own_dynamics(name: str, tmp_path: Path) -> None:
    names = ["inverse_dynamics", "forward_dynamics", "mass_matrix"]
    assert main(["export", name, str(tmp_path), "--names", *names]) == 0
    robot, rng = getattr(torsor.library, name)(), np.random.default_rng(2)
    u, u_rate, share = *rng.normal(size=(2, robot.dof)), np.ones(len(robot.driven_names))
    q = [] if robot.has_closed_form else [robot.leg_home]
    (tau,) = called(tmp_path, names[0], robot.function(names[0]), robot.home, *q, u, u_rate, share)
    np.testing.assert_allclose(tau, robot.inverse_dynamics(robot.home, u, u_rate), rtol=1e-10)
    (again,) = called(tmp_path, names[1], robot.function(names[1]), robot.home, *q, u, tau)
    np.testing.assert_allclose(again, u_rate, atol=1e-9)
    (M,) = called(tmp_path, names[2], robot.function(names[2]), robot.home, *q)
    np.testing.assert_allclose(M, robot.mass_matrix(robot.home), rtol=1e-10, atol=1e-14)


def test_the_command_exports_and_counts_what_closes_the_loops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = torsor.library.four_bar()
    assert main(["export", "four_bar", str(tmp_path)]) == 0
    assert "constrained_inverse_dynamics(" in (tmp_path / "torsor_kernels.h").read_text()
    assert main(["export", "four_bar", str(tmp_path), "--names", "inverse_dynamics"]) == 1
    assert "use robot.closed.inverse_dynamics for closed loops" in capsys.readouterr().err
    assert main(["count", "four_bar"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "constrained_inverse" in line)
    numbers = [int(word) for word in row.replace("│", " ").split()[1:]]
    assert numbers == list(robot.operation_count("constrained_inverse_dynamics"))


def test_the_command_counts_a_parallel_robot_leg_by_leg(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "three_rrr"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if " inverse_dynamics " in line)
    numbers = [int(word) for word in row.replace("│", " ").split()[1:]]
    assert numbers == list(torsor.library.three_rrr().operation_count("inverse_dynamics"))


def test_unknown_and_double_names_are_refused(tmp_path: Path) -> None:
    robot = torsor.library.three_rrr()
    with refused(value="dance", allowed="inverse_dynamics"):
        torsor.export.c(robot, tmp_path, ["dance"])
    with refused(value="mass_matrix"):
        torsor.export.c(robot, tmp_path, ["mass_matrix", "mass_matrix"])
    with refused(what="no algorithm is selected"):
        torsor.export.c(robot, tmp_path, [])
