"""Tables from any laboratory: named columns, units and times; errors name the file, column and line."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.identification import Measurements

ARM = torsor.library.two_link()
T = np.arange(50) * 2e-3
Q = np.column_stack([np.sin(3 * T), np.cos(2 * T)])
V = np.column_stack([3 * np.cos(3 * T), -2 * np.sin(2 * T)])
A = np.column_stack([-9 * np.sin(3 * T), -4 * np.cos(2 * T)])
TAU = ARM.inverse_dynamics(Q, V, A)


@pytest.fixture
def log(tmp_path):
    """A table in ms and degrees, with columns that nobody needs, and in another order."""
    path = tmp_path / "log.csv"
    table = np.column_stack([T * 1e3, np.degrees(Q[:, 1]), np.degrees(Q[:, 0]), np.zeros(len(T)), V, A, TAU])
    np.savetxt(path, table, fmt="%.17g", delimiter=";", header="t;j2;j1;mode;v1;v2;a1;a2;T1;T2")
    return path


NAMES = {"time": "t", "q": ["j1", "j2"], "v": ["v1", "v2"], "a": ["a1", "a2"], "tau": ["T1", "T2"]}
UNITS = {"time": "ms", "q": "deg"}


def test_a_trajectory_has_the_named_columns_in_si_units(log) -> None:
    found = torsor.Trajectory.load(log, ARM, columns=NAMES, units=UNITS)
    for value, truth in ((found.times, T), (found.q, Q), (found.v, V), (found.a, A), (found.tau, TAU)):
        assert np.abs(value - truth).max() < 1e-14
    numbers = {"time": 0, "q": [2, 1]}
    again = torsor.Trajectory.load(log, ARM, columns=numbers, units=UNITS, delimiter=";")
    assert np.array_equal(again.q, found.q)
    assert np.abs(again.v - V).max() < 1e-4  # differences over 2 ms
    assert np.abs(again.a - A)[2:-2].max() < 1e-3  # at the ends of first order


def test_a_rate_stands_for_the_times(log) -> None:
    columns = {name: value for name, value in NAMES.items() if name != "time"}
    found = torsor.Trajectory.load(log, ARM, columns=columns, units={"q": ["deg", "deg"]}, rate=500.0)
    assert np.abs(found.times - T).max() < 1e-15


def test_measurements_of_a_log(log) -> None:
    data = Measurements.load(log, ARM, NAMES, units=UNITS)
    assert np.abs(data.tau - TAU).max() < 1e-14 and np.abs(data.times - T).max() < 1e-15
    short = {name: value for name, value in NAMES.items() if name not in "va"}
    filtered = Measurements.load(log, ARM, short, units=UNITS, cutoff=100.0)
    truth = Measurements.from_positions(T, Q, TAU, 100.0)
    assert np.abs(filtered.a - truth.a).max() < 1e-8 * np.abs(truth.a).max()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": {**NAMES, "q": ["j1", "elbow"]}}, "elbow"),
        ({"columns": {**NAMES, "q": ["j1"]}}, "1 columns for 'q'"),
        ({"columns": {**NAMES, "torque": ["T1", "T2"]}}, "'torque' is not a quantity"),
        ({"columns": {"time": 0, "q": [1, 99]}}, "line 2 has 10 columns, but none for 99"),
        ({"columns": {"time": 0, "q": [1, 1.5]}}, "column 1.5 of 'q'"),
        ({"columns": NAMES, "units": {"q": "grad"}}, "the unit 'grad' of 'q'"),
        (
            {"columns": NAMES, "units": {"q": "mm"}},
            "the unit 'mm' of 'q' at 'joint1'",
        ),
        ({"columns": NAMES, "units": {"q": None}}, "the unit None of 'q'"),
        ({"columns": {**NAMES, "q": None}}, "1 columns for 'q'"),
        ({"columns": {**NAMES, "q": ["j1", "j1"]}}, "a column for 'q' is named twice"),
        ({"columns": NAMES, "rate": 100.0}, "both a time column and a rate"),
        ({"columns": {"q": [1, 2]}}, "there is no time column and no rate"),
        ({"columns": NAMES, "delimiter": "ab"}, "ab"),
        ({"units": UNITS}, "units needs `columns`"),
    ],
)
def test_wrong_arguments_name_the_file_and_the_column(log, options, words) -> None:
    with refused(words):
        torsor.Trajectory.load(log, ARM, **options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t,a,b\n0,1,2\n1,x,2\n", "line 3, column 'a': 'x'"),
        ("t,a,b\n0,1,2\n1,nan,2\n", "line 3, column 'a': 'nan'"),
        ("t,a,b\n0,1,2\n1,2\n", "line 3 has 2 columns, but none for 'b'"),
        ("t,a,b\n0,1,2\n\n0,1,2\n", "line 4: the time does not increase"),
        ("t,a,a\n0,1,2\n", "several columns 'a'"),
        ("t,a,b\n", "no rows of numbers"),
        ("", "it is empty"),
    ],
)
def test_bad_tables_name_the_line(tmp_path, text, words) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text)
    with refused(words):
        torsor.Trajectory.load(path, ARM, columns={"time": "t", "q": ["a", "b"], "v": ["a", "b"], "a": ["a", "b"]})


def test_a_quaternion_of_zeros_is_refused(tmp_path) -> None:
    walker, path = torsor.library.quadruped(), tmp_path / "log.csv"
    np.savetxt(path, np.column_stack([np.arange(4), np.zeros((4, 37))]), delimiter=",")
    columns = {"time": 0, "q": list(range(1, 20)), "v": list(range(20, 38))}
    with refused(what="sample 0 contains a quaternion of length 0"):
        torsor.Trajectory.load(path, walker, columns=columns)


def test_numbers_of_columns_may_be_integers_of_numpy(log) -> None:
    by_numpy = {"time": np.int64(0), "q": np.array([1, 2])}
    one, other = (torsor.Trajectory.load(log, ARM, columns=each) for each in (by_numpy, {"time": 0, "q": [1, 2]}))
    np.testing.assert_array_equal(one.q, other.q)
