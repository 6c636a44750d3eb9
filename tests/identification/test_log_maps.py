"""A map defines the columns of a log: headers, units, gears, currents, files, clocks. Errors name line and fix."""

import json

import numpy as np
import pytest

import torsor
from identification.made_logs import truth
from refusals import refused, warned
from torsor.identification import LogMap, Measurements

ARM = torsor.library.planar_chain(2)
MADE = truth(ARM, duration=2.0)
R = np.array([[100.0, 0.0], [-40.0, -50.0]])  # motor 2 turns with joint 1 too
OFFSETS = np.array([0.3, -0.2])
KT = np.array([0.05, 0.08])
MOTORS, TORQUES = (MADE.q - OFFSETS) @ R.T, MADE.tau @ np.linalg.inv(R)
DRIVES = {"ratios": [100.0, -50.0], "coupling": [["joint2", "joint1", -40.0]], "offsets": OFFSETS.tolist()}


def write(path, head, *columns):
    np.savetxt(path, np.column_stack(columns), fmt="%.17g", delimiter=",", header=head, comments="")
    return path


def test_motors_and_currents_become_joints_by_the_power(tmp_path):
    """motor = R joint, and motor power is joint power: currents, couplings, offsets, degrees and milliamperes."""
    log = write(
        tmp_path / "log.csv",
        "ms,m1,m2,w1,w2,i1,i2",
        1e3 * MADE.t,
        np.degrees(MOTORS),
        MADE.v @ R.T,
        1e3 * TORQUES / KT,
    )
    columns = {"time": "ms", "q": ["m1", "m2"], "v": ["w1", "w2"], "current": ["i1", "i2"]}
    given = LogMap(
        columns,
        units={"time": "ms", "q": "deg", "current": "mA"},
        drives={"side": "motor", "torque_constants": KT.tolist(), **DRIVES},
        cutoff=30.0,
    )
    data = Measurements.load(log, ARM, given)
    inside = np.searchsorted(MADE.t, data.times - 1e-9)
    assert np.abs(data.tau - MADE.tau[inside]).max() < 1e-10
    assert np.abs(data.q - MADE.q[inside]).max() < 1e-5 and np.abs(data.v - MADE.v[inside]).max() < 1e-4
    assert np.sum(data.tau * data.v) == pytest.approx(np.sum(TORQUES[inside] * (data.v @ R.T)), rel=1e-9)


def test_a_full_matrix_is_ratios_with_couplings(tmp_path):
    log = write(tmp_path / "log.csv", "t,m1,m2,T1,T2", MADE.t, MOTORS, TORQUES)
    columns = {"time": "t", "q": ["m1", "m2"], "tau": ["T1", "T2"]}
    whole = {"side": "motor", "matrix": R.tolist(), "offsets": OFFSETS.tolist()}
    one = Measurements.load(log, ARM, LogMap(columns, drives=whole, cutoff=20.0))
    two = Measurements.load(log, ARM, LogMap(columns, drives={"side": "motor", **DRIVES}, cutoff=20.0))
    assert np.array_equal(one.q, two.q) and np.array_equal(one.tau, two.tau)
    assert np.abs(one.tau - MADE.tau[np.searchsorted(MADE.t, one.times - 1e-9)]).max() < 1e-10


def test_signals_of_a_run_may_be_in_two_files_with_two_clocks(tmp_path):
    write(tmp_path / "run1_pos.csv", "t,q1,q2", MADE.t, MADE.q)
    slow = MADE.t[::2] + 1e-3
    forces = np.stack([np.interp(slow, MADE.t, x) for x in MADE.tau.T], axis=1)
    write(tmp_path / "run1_pos_torque.csv", "stamp,T1,T2", 1e3 * slow, forces * 1e3)
    given = LogMap(
        {"time": {"q": "t", "tau": "stamp"}, "q": ["q1", "q2"], "tau": ["T1", "T2"]},
        files={"tau": "{stem}_torque.csv"},
        scale={"tau": [1e-3, 1e-3]},
        cutoff=20.0,
        missing="skip",
    )
    with refused(fix="give the unit of each clock, units = {time = {q ="):
        Measurements.load(tmp_path / "run1_pos.csv", ARM, given)
    data = Measurements.load(tmp_path / "run1_pos.csv", ARM, given, units={"time": {"tau": "ms"}})
    truth_there = np.stack([np.interp(data.times, MADE.t, x) for x in MADE.tau.T], axis=1)
    assert np.abs(data.tau - truth_there).max() < 0.02 * np.abs(MADE.tau).max()  # linear between samples of 8 ms


def test_the_map_is_the_same_in_every_kind_of_file(tmp_path):
    pytest.importorskip("yaml")
    text = """
rate = 250.0
cutoff = 20.0
[columns]
q = [0, 1]
tau = [2, 3]
[drives]
side = "motor"
ratios = [100.0, -50.0]
"""
    table = {"rate": 250.0, "cutoff": 20.0, "columns": {"q": [0, 1], "tau": [2, 3]}}
    table["drives"] = {"side": "motor", "ratios": [100.0, -50.0]}
    (tmp_path / "map.toml").write_text(text)
    (tmp_path / "map.json").write_text(json.dumps(table))
    (tmp_path / "map.yaml").write_text(json.dumps(table))  # JSON is YAML
    log = tmp_path / "log.csv"
    np.savetxt(log, np.column_stack([100 * MADE.q[:, :1], -50 * MADE.q[:, 1:], MADE.tau]), delimiter=",")
    found = [Measurements.load(log, ARM, tmp_path / f"map.{kind}") for kind in ("toml", "json", "yaml")]
    assert all(np.array_equal(each.tau, found[0].tau) for each in found)
    assert np.abs(found[0].tau[:, 0] / 100 - MADE.tau[np.searchsorted(MADE.t, found[0].times - 1e-9), 0]).max() < 1e-9


def test_own_heads_with_units_need_no_map(tmp_path):
    log = write(
        tmp_path / "log.csv",
        "time [ms],q joint1 [deg],q joint2 [rad],tau joint1 [mN m],tau joint2 [N·m]",
        1e3 * MADE.t,
        np.degrees(MADE.q[:, 0]),
        MADE.q[:, 1],
        1e3 * MADE.tau[:, 0],
        MADE.tau[:, 1],
    )
    data = Measurements.load(log, ARM, cutoff=20.0)
    assert np.abs(data.tau - MADE.tau[np.searchsorted(MADE.t, data.times - 1e-9)]).max() < 1e-9


COLUMNS = {"time": "t", "q": ["a", "b"], "tau": ["c", "d"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns": {**COLUMNS, "current": ["c", "d"]}}, "columns for both 'tau' and 'current'"),
        ({"columns": {"time": "t", "q": ["a", "b"], "current": ["c", "d"]}}, "columns"),
        ({"columns": {**COLUMNS, "q": ["a"]}}, "1 columns for 'q'"),
        ({"units": {"q": "mm"}}, "the unit 'mm' of 'q' at 'joint1'"),
        ({"scale": {"v": -1}}, "'v' has a scale but no columns"),
        ({"scale": {"tau": [1, 0]}}, "a nonzero number, or 2 of them"),
        ({"files": {"current": "x.csv"}}, "there is a file for 'current', which has no columns"),
        ({"rate": 100.0}, "there are both a time column and a rate for 'q'"),
        ({"drives": {"ratios": [1, 2]}}, "gear ratios are given without `side`"),
        ({"drives": {"side": "gear"}}, "side"),
        ({"drives": {"side": "motor", "ratios": [100, 0]}}, "is singular"),
        ({"drives": {"side": "motor", "coupling": [["joint2", "arm", 1]]}}, "arm"),
        ({"drives": {"side": "motor", "gears": [1, 2]}}, "unknown key 'gears'"),
        ({"delay": "soon"}, "soon"),
        ({"missing": "fill"}, "missing"),
        ({"every": 0}, "every"),
    ],
)
def test_mistakes_of_a_map_are_named(tmp_path, change, words):
    log = write(tmp_path / "log.csv", "t,a,b,c,d", MADE.t, MADE.q, MADE.tau)
    with refused(words):
        Measurements.load(log, ARM, LogMap(**{"columns": COLUMNS, "cutoff": 20.0, **change}))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("map.toml", "rate = ", "not valid TOML"),
        ("map.json", "{", "not valid JSON"),
        ("map.ini", "", ".ini"),
        ("map.toml", "rate = 5.0", "columns is missing"),
        ("map.toml", "[columns]\nq = [0]\n[gears]\n", "unknown key 'gears'"),
    ],
)
def test_mistakes_of_a_map_file_are_named(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with refused(words):
        LogMap.load(tmp_path / name)


HEAD = "time,q joint1,q joint2,tau joint1,tau joint2\n"
ROWS = [f"{0.01 * k:.2f},{0.1 * k:.3f},{0.2 * k:.3f},{k % 7}.5,{k % 5}.25\n" for k in range(40)]


def changed(k, text):
    return HEAD + "".join([*ROWS[:k], text, *ROWS[k + 1 :]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (changed(9, "0.09,nan,1,2,3\n"), "line 11, column 'q joint1': 'nan' is not a number"),
        (changed(9, "0.09,,1,2,3\n"), "line 11, column 'q joint1': '' is not a number"),
        (changed(9, "0.07,1,1,2,3\n"), "line 11: the time does not increase: 0.07 s follows 0.08 s"),
        (changed(9, "0,09,1,1,2,3\n"), "line 11 has 6 columns, but the table has 5"),
        (changed(9, "0.09,1,1\n"), "line 11 has 3 columns, but none for 'tau joint1'"),
        (HEAD + "".join(ROWS[:5]), "measure longer"),
        ("time,q joint1,tau joint1,tau joint2\n0,0,0,0\n", "column 'q joint2' is missing; the columns are time,"),
    ],
)
def test_bad_rows_are_named_with_their_line_and_the_fix(tmp_path, text, words):
    (tmp_path / "log.csv").write_text(text)
    with refused(words):
        Measurements.load(tmp_path / "log.csv", ARM, cutoff=20.0)


def test_joints_that_never_move_and_constant_forces_are_warnings(tmp_path):
    still = write(tmp_path / "still.csv", HEAD.strip(), MADE.t, MADE.q * [1, 0], MADE.tau)
    with warned(what="still.csv: q of 'joint2': it spans 0 rad"):
        Measurements.load(still, ARM, cutoff=20.0)
    flat = write(tmp_path / "flat.csv", HEAD.strip(), MADE.t, MADE.q, MADE.tau * [0, 1] + [1.5, 0])
    with warned(what="'joint1' (column 'tau joint1'): all 500 samples"):
        Measurements.load(flat, ARM, cutoff=20.0)
