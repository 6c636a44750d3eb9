"""Logs of a walking robot: force plates, sensors at the feet, and a base without drives, with positions alone."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.identification import LogMap, Measurements, first_look
from torsor.identification.closed_robot import measured_robot
from torsor.identification.logs.log import external_of, of_arrays, read, wrench_columns
from torsor.identification.logs.preparing import prepare
from torsor.identification.logs.signal_checks import signal_findings

PLATE = np.array([0.4, -0.2, 0.0])
JOINTS = 12


@pytest.fixture(scope="module")
def robot():
    return torsor.library.quadruped()


@pytest.fixture(scope="module")
def log(robot, tmp_path_factory):
    """Return the path of a log: the base rides on a plate under its foot; quaternions change their sign."""
    t = np.arange(1200) * 5e-3
    rng = np.random.default_rng(2)
    u = np.zeros((len(t), 18))
    for k in range(18):
        for w in rng.uniform(1.0, 8.0, 3):
            u[:, k] += rng.uniform(0.1, 0.2) * np.sin(w * t + rng.uniform(0, 6))
    exact = torsor.identification.Measurements.from_positions(
        t, robot.integrate(robot.neutral(), u), np.zeros((len(t), 18)), 60.0, robot=robot, trim=False
    )
    q, v, a = exact.q, exact.v, exact.a
    foot = rng.normal(size=(len(t), 6))
    sensor = robot.wrench_at(q, "hr_foot", foot[:, :3], foot[:, 3:], axes="local")
    need = robot.inverse_dynamics(q, v, a, sensor)[:, :6]
    J = robot.jacobian(q, "fl_foot")[:, :, :6]
    wrench = np.linalg.solve(np.swapaxes(J, 1, 2), need[..., None])[..., 0]
    pose = robot.pose(q, "fl_foot")
    moment, force = (np.einsum("tij,tj->ti", pose[:, :3, :3], x) for x in (wrench[:, :3], wrench[:, 3:]))
    about_plate = moment + np.cross(pose[:, :3, 3] - PLATE, force)
    external = sensor + robot.wrench_at(q, "fl_foot", moment, force)
    tau = robot.inverse_dynamics(q, v, a, external)
    assert np.abs(tau[:, :6]).max() < 1e-9
    shown = q.copy()
    shown[::7, 3:7] *= -1
    path = tmp_path_factory.mktemp("logs") / "walk.csv"
    heads = ["t", *(f"q{k}" for k in range(19)), *(f"tau{k}" for k in range(JOINTS)), *"ABCDEF", *"GHIJKL"]
    table = np.column_stack([t, shown, tau[:, 6:], force, about_plate, foot])
    np.savetxt(path, table, delimiter=",", header=",".join(heads), comments="", fmt="%.12g")
    return path


def _map(**changes):
    plate = {"force": ["A", "B", "C"], "moment": ["D", "E", "F"], "axes": "world", "origin": PLATE.tolist()}
    sensor = {"moment": ["G", "H", "I"], "force": ["J", "K", "L"]}
    columns = {"time": "t", "q": [f"q{k}" for k in range(19)], "tau": [f"tau{k}" for k in range(JOINTS)]}
    return LogMap(**({"columns": columns, "wrenches": {"fl_foot": plate, "hr_foot": sensor}, "cutoff": 60.0} | changes))


@pytest.mark.slow
def test_a_plate_and_a_sensor_give_the_parameters_of_a_walking_robot(robot, log):
    data = Measurements.load(log, robot, _map())
    assert np.abs(data.tau[:, :6]).max() < 1e-3 * np.abs(data.tau).max()
    found = torsor.identify(robot, data, physical=True)
    M = robot.mass_matrix(robot.neutral())
    assert np.abs(found.robot.mass_matrix(robot.neutral()) - M).max() < 2e-3 * np.abs(M).max()
    look = first_look(robot, log, _map())
    assert look.kinds == ("limit",)  # one leg carries all
    assert [each.name for each in look.signals] == list(robot.coordinate_names)
    assert np.isnan(look.signals[0].least) and look.signals[6].left < 0.01
    assert "for the drives alone, the model leaves at most 0.00" in look.notes[-1]


def test_limits_of_drives_are_compared_with_their_own_forces_and_not_with_all_that_acts(robot, log):
    found = signal_findings(robot, read(log, robot, _map(), look=True))
    largest = np.abs(np.loadtxt(log, delimiter=",", skiprows=1)[:, 20:32]).max(axis=0)
    above = [(name, x / 25) for name, x in zip(robot.coordinate_names[6:], largest, strict=True) if x > 1.05 * 25]
    assert [(each.place.split("'")[1], pytest.approx(each.value)) for each in found] == above and len(above) == 2


def test_a_log_without_torques_shows_the_links(robot, log):
    columns = {name: heads for name, heads in _map().columns.items() if name != "tau"}
    data = Measurements.load(log, robot, _map(columns=columns))
    assert data.weights[0].tolist() == [1.0] * 6 + [0.0] * 12
    found = torsor.identify(robot, data, physical=True, mass=robot.mass)
    M = robot.mass_matrix(robot.neutral())
    assert np.abs(found.robot.mass_matrix(robot.neutral()) - M)[:6, :6].max() < 2e-3 * np.abs(M).max()


@pytest.mark.parametrize(
    ("wrenches", "words"),
    [
        ({"paw": {"force": ["A", "B", "C"], "moment": ["D", "E", "F"]}}, "paw"),
        ({"fl_foot": {"moment": ["A", "B", "C"]}}, "the force columns are missing"),
        ({"fl_foot": {"force": ["A", "B"], "moment": ["D", "E", "F"]}}, "three column headers"),
        ({"fl_foot": {"force": ["A", "B", "C"], "moment": ["A", "E", "F"]}}, "twice"),
        ({"fl_foot": {"force": ["A", "B", "C"], "moment": ["D", "E", "F"], "frame": "x"}}, "unknown key"),
        ({"fl_foot": {"force": ["A", "B", "C"], "moment": ["D", "E", "F"], "axes": "plate"}}, "axes"),
        ({"fl_foot": {"force": ["A", "B", "C"], "moment": ["D", "E", "F"], "origin": [0, 0, 0]}}, "origin"),
        ({"fl_foot": {"force": ["A", "B", "nothing"], "moment": ["D", "E", "F"]}}, "nothing"),
    ],
)
def test_mistakes_in_the_table_of_wrenches_are_named(robot, log, wrenches, words):
    with refused(words):
        Measurements.load(log, robot, _map(wrenches=wrenches))


def test_a_sensor_of_three_axes_has_no_moment(robot):
    sensors = {"fl_foot": {"force": [3, 4, 5]}, "hr_foot": {"moment": [6, 7, 8], "force": [9, 10, 11]}}
    given = LogMap({}, wrenches=sensors)
    assert wrench_columns(given, robot) == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    q, values = robot.neutral()[None], np.arange(1.0, 10.0)[None]
    expected = robot.wrench_at(q, "fl_foot", np.zeros((1, 3)), values[:, :3], axes="local")
    expected = expected + robot.wrench_at(q, "hr_foot", values[:, 3:6], values[:, 6:], axes="local")
    assert np.allclose(external_of(robot, q, values, given), expected)


def test_units_of_wrenches_are_scales(robot, log):
    with refused(value="wrenches", fix="scale"):
        Measurements.load(log, robot, _map(units={"wrenches": "N"}))


def test_wrenches_of_closed_loops_are_given_as_arrays():
    given = LogMap({}, wrenches={"crank": {"force": [1, 2, 3]}})
    with refused(fix="external"):
        wrench_columns(given, measured_robot(torsor.library.four_bar()))


def test_logs_without_wrenches_have_none_beside_others_that_do():
    arm, t = torsor.library.two_link(), np.arange(50) * 1e-2
    q = np.sin(np.outer(t, [1.0, 2.0]))
    plain = of_arrays("plain", t, q, q, q, q, arm)
    pushed = replace(plain, external=np.ones((50, 2, 6)))
    found = prepare(arm, [plain, pushed], LogMap({})).samples.external
    assert found.shape == (100, 2, 6) and not found[:50].any() and found[50:].all()
    warm = replace(plain, source="warm", temperature=np.full((50, 1), 30.0))
    with refused(where="plain", what="the log has no temperatures, but other logs have"):
        prepare(arm, [warm, plain], LogMap({}))


def test_a_delay_is_not_estimated_without_the_forces(robot, log):
    columns = {name: heads for name, heads in _map().columns.items() if name != "tau"}
    with refused(what="some forces were not measured"):
        Measurements.load(log, robot, _map(columns=columns, delay="estimate"))
