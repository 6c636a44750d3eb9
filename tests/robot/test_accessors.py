"""Accessors of robots: the same names on all kinds of robots, made once, and as fast as methods of the robot."""

import pickle
import sys
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import ModelError
from torsor.cli.main import main
from torsor.identification.closed_robot import closed_robot
from torsor.robot.accessors import method_of
from torsor.robot.load import robot_names
from torsor.robot.method_names import ACCESSORS, PATHS

ARM = torsor.library.two_link()
LINKAGE = torsor.library.four_bar().to(device="casadi")
CRANK = LINKAGE.closed.assemble([0.5])


def frames_of(call) -> int:
    """Count the Python frames of the library that a warm call takes."""
    call()
    found = []
    sys.setprofile(lambda frame, event, _: found.append(frame) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sum(frame.f_code.co_filename.startswith(torsor.__path__[0]) for frame in found)


@pytest.mark.parametrize("name", ["mass_matrix", "center_of_mass_jacobian", "regressor", "inverse_dynamics_hessian"])
def test_a_warm_call_takes_two_frames(name: str) -> None:
    method, q = method_of(ARM, name), np.zeros(2)
    values = [q] * (len(torsor.dynamics.ALGORITHMS[name].inputs))
    assert frames_of(lambda: method(*values)) == 2


def test_accessors_are_made_once_and_are_frozen() -> None:
    for name in ("derivatives", "closed", "inertial", "centroidal", "shapes", "task"):
        assert getattr(ARM, name) is getattr(ARM, name)
    with pytest.raises(AttributeError):
        ARM.closed.closure = None  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(ARM)) == ARM  # they do not travel


def test_accessors_print_the_robot_and_their_methods() -> None:
    names = ("derivatives", "closed", "closed.derivatives", "inertial", "centroidal", "shapes", "task")
    texts = {name: repr(attrgetter(name)(ARM)) for name in names}
    assert texts["shapes"] == "<Shapes of 'two_link': allowed, distances>"
    for name, text in texts.items():
        assert "of 'two_link': " in text and "0x" not in text and "\n" not in text
        assert all(method in text for method in ACCESSORS.get(name, {}))


def test_what_makes_no_sense_for_all_coordinates_is_refused() -> None:
    v = LINKAGE.closed.velocities(CRANK, [1.0])
    with pytest.raises(ModelError, match='share is not supported with coordinates="all"'):
        LINKAGE.closed.inverse_dynamics(CRANK, v, [0.0], share=[1.0], coordinates="all")
    with pytest.raises(ModelError, match='share is not supported with coordinates="all"'):
        LINKAGE.closed.loop_forces(CRANK, v, 0 * v, share=[1.0], coordinates="all")
    with pytest.raises(ModelError, match='method is not supported with coordinates="all"'):
        LINKAGE.closed.forward_dynamics(CRANK, v, 0 * v, method="projection", coordinates="all")
    with pytest.raises(ModelError, match="coordinates is 'drives'; allowed: 'active', 'all'"):
        LINKAGE.closed.velocities(CRANK, v, coordinates="drives")


def test_a_parametric_robot_has_the_same_accessors() -> None:
    model = LINKAGE.parametric(["gravity"])
    p = model.values
    v = LINKAGE.closed.velocities(CRANK, [1.0])
    for found, expected in (
        (model.closed.velocities(CRANK, [1.0], p), v),
        (model.closed.velocities(CRANK, v, p, coordinates="all"), v),
        (model.closed.inverse_dynamics(CRANK, [1.0], [2.0], p), LINKAGE.closed.inverse_dynamics(CRANK, [1.0], [2.0])),
        (model.closed.derivatives.velocities(CRANK, [1.0], p)[1][:, 0], v),
        (model.centroidal.jacobian(CRANK, p), LINKAGE.centroidal.jacobian(CRANK)),
        (model.task.jacobian_rate(CRANK, v, p, place=0), LINKAGE.task.jacobian_rate(CRANK, v, 0)),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    with pytest.raises(ModelError, match='constrained_accelerations is not available with coordinates="all"'):
        model.closed.accelerations(CRANK, v, v, p, coordinates="all")
    with pytest.raises(AttributeError, match="closed of Parametric has no 'motion'; allowed: error, jacobian"):
        _ = model.closed.motion
    with pytest.raises(AttributeError, match="Parametric has no 'motion'"):
        _ = model.motion
    assert set(ACCESSORS["closed"]) <= set(dir(model.closed))


def test_parallel_robots_and_drives_have_parameters_too() -> None:
    robot = torsor.library.three_rrr().to(device="casadi")
    assert robot.closed.active == robot.driven_names
    heavy = robot.inertial.replaced(2 * robot.inertial.values)
    assert isinstance(heavy, torsor.ParallelRobot)
    np.testing.assert_allclose(heavy.mass_matrix(heavy.home), 2 * robot.mass_matrix(robot.home), rtol=1e-12)
    drives = closed_robot(robot)
    assert not isinstance(drives, torsor.Robot)
    assert drives.inertial.names == robot.inertial.names
    assert drives.inertial.base().names == robot.inertial.base().names


def test_load_finds_robots_of_the_library_by_name(tmp_path, monkeypatch) -> None:
    assert torsor.load("panda") == torsor.library.panda()
    assert {"panda", "ur5", "four_bar", "delta"} <= set(robot_names())
    with pytest.raises(ModelError, match=r"pandda: no such file or robot; .*fix: write 'panda'"):
        torsor.load("pandda")
    with pytest.raises(ModelError, match=r"delta: this is a parallel robot; .*torsor.library.delta\(\)"):
        torsor.load("delta")
    for name, fix in (("panda", "save it as .toml"), ("quadruped", "omit `base`")):
        with refused(argument="base", value="floating", where=name, allowed="'fixed'", fix=fix):
            torsor.load(name, base="floating")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "panda").mkdir()  # a folder, as that of an earlier export, is no file of a robot
    assert torsor.load("panda").nv == 7


def test_the_table_has_every_algorithm_once() -> None:
    listed = [each for names in ACCESSORS.values() for each in names.values()]
    assert len(set(listed)) == len(listed) and set(PATHS) <= set(torsor.dynamics.ALGORITHMS)


def test_robots_drives_and_parallel_robots_have_the_dynamics_that_identification_needs() -> None:
    parallel = torsor.library.three_rrr().to(device="casadi")
    dynamics = ("name", "nq", "nv", "coordinate_names", "inertial", "inverse_dynamics")
    parameters = ("names", "values", "regressor", "base", "replaced")
    for robot in (LINKAGE, closed_robot(LINKAGE), parallel):
        assert all(hasattr(robot, name) for name in dynamics)
        assert all(hasattr(robot.inertial, name) for name in parameters)


def test_names_of_methods_are_accepted_where_algorithms_are_named(tmp_path: Path) -> None:
    arm, loop = torsor.library.two_link(), torsor.library.four_bar()
    assert arm.function("derivatives.inverse_dynamics").name() == "inverse_dynamics_derivatives"
    assert loop.operation_count("closed.inverse_dynamics") == loop.operation_count("constrained_inverse_dynamics")
    written = torsor.export.c(loop, tmp_path, ["closed.inverse_dynamics"])
    assert "constrained_inverse_dynamics" in written[0].read_text()
    assert main(["dynamics", "four_bar", "closed.inverse_dynamics"]) == 0
