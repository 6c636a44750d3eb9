"""Files of markers and tables are read as they are written, with every kind of header, and read back bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from refusals import refused, warned
from torsor.base.errors import ModelError, ModelWarning
from torsor.human.recordings import GroundForces, Markers, MotionTable, example, load, save

# As some programs write it: blanks and a bare folder in the first line, two tabs between values, tabs at line ends.
TRC = (
    "PathFileType  4\t(X/Y/Z) C:\\trials\\\n"
    "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames\n"
    "  100.0\t\t  100.0\t\t    3\t\t     2\t\t mm\t  100.0\t      1\t    3\n"
    "Frame#\tTime\tR.Heel\t\t\tR.Toe\t\t\t\n"
    "\t\tX1\tY1\tZ1\tX2\tY2\tZ2\t\n"
    "\n"
    "1\t0.00000\t-652.630\t1529.542\t-94.520\t1.5e2\t0\t3\n"
    "2\t0.01000\t\t\t\t151\t0\t3\n"
    "3\t0.02000\t-650.1\t1529\t-94\t\t\t\n"
)


def _written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_bytes(text.encode())
    return folder / name


def test_a_trc_file_with_all_oddities_is_read_exactly(tmp_path: Path) -> None:
    markers = load(_written(tmp_path, "a.trc", TRC), check=False).markers
    assert markers.names == ("R.Heel", "R.Toe") and markers.rate == 100.0 and markers.unit == "mm"
    assert markers.axes == "forward up right"
    assert markers.times.tolist() == [0.0, 0.01, 0.02]
    assert markers.positions[0].tolist() == [[-0.65263, 1.529542, -0.09452], [0.15, 0.0, 0.003]]
    assert np.isnan(markers.positions[1, 0]).all() and markers.positions[1, 1].tolist() == [0.151, 0.0, 0.003]
    assert np.isnan(markers.positions[2, 1]).all()
    for other in (TRC.replace("\n", "\r\n"), TRC.replace("\n", "\r"), TRC.replace("\n\n", "\n"), "\ufeff" + TRC):
        again = load(_written(tmp_path, "b.trc", other), check=False).markers
        assert np.array_equal(again.positions, markers.positions, equal_nan=True)


@pytest.mark.parametrize("missing", ["0\t0\t0", "0.000\t0.000\t-0.0", "NaN\tNaN\tNaN", "9999999\t1\t2", "1\t\t"])
def test_a_missing_marker_has_many_spellings(missing: str, tmp_path: Path) -> None:
    markers = load(_written(tmp_path, "a.trc", TRC.replace("2\t0.01000\t\t\t", f"2\t0.01000\t{missing}")), check=False)
    assert np.isnan(markers.markers.positions[1, 0]).all() and not np.isnan(markers.markers.positions[1, 1]).any()
    in_cm = load(tmp_path / "a.trc", unit="cm", check=False).markers
    assert np.isnan(in_cm.positions[1, 0]).all()


@pytest.mark.parametrize("unit", ["m", "cm", "mm"])
def test_markers_read_back_bit_for_bit_in_every_unit(unit: str, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0)
    positions = numbers.normal(size=(40, 3, 3)) * 10.0 ** numbers.integers(-12, 3, size=(40, 3, 1))
    positions[5:9, 1] = np.nan
    markers = Markers(["a", "b c", "d:é"], np.arange(40) / 120, positions, axes="forward up right", unit=unit)
    save(markers, tmp_path / "a.trc")
    again = load(tmp_path / "a.trc", check=False).markers
    assert again.names == markers.names and again.unit == unit
    assert np.array_equal(again.positions, positions, equal_nan=True) and (again.times == markers.times).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("mm\t", "ell\t"), "a.trc: the unit is 'ell'; allowed: m, cm, mm; fix: pass it"),
        (("Frame#", "Picture"), "a.trc: no line begins with Frame#; allowed: a .trc file"),
        (("151", "15i"), "a.trc: line 8, column 'R.Toe x': '15i' is not a number"),
        (("0.02000", "0.005"), "a.trc: frame 3: time 0.005 s follows 0.01 s; allowed: increasing times"),
        (("\t151\t0\t3", "\t151\t0\t3\t4"), "a.trc: line 8 has 9 columns, but the table has 8; allowed: 8"),
        (("R.Heel\t\t\tR.Toe", "\t\t\t"), "a.trc: line 4: there are no marker names"),
    ],
)
def test_a_damaged_trc_file_is_an_error_that_names_the_line(
    change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError) as caught:
        load(_written(tmp_path, "a.trc", TRC.replace(*change)))
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("    3\t\t ", "   30\t\t "),
            "the header declares 30 frames, but the table has 3, which are used; fix: copy or export",
        ),
        (
            ("  100.0\t\t  100", "  50.0\t\t  100"),
            "the header declares 50 Hz, but times step by 0.01 s, 100 Hz, which is",
        ),
        (("R.Toe", "R.Heel"), "two markers are named 'R.Heel'; the later one is now 'R.Heel_2'"),
        (("-650.1\t1529\t-94\t\t\t", "-650.1"), "a.trc: line 9: the file ends within this frame"),
    ],
)
@pytest.mark.filterwarnings("always")
def test_what_can_be_read_all_the_same_is_a_warning(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    with pytest.warns(ModelWarning) as caught:
        load(_written(tmp_path, "a.trc", TRC.replace(*change)), check=False)
    assert any(words in str(each.message) for each in caught)


OLD = "name gait\ndatacolumns 3\ndatarows 2\nrange 0.0 0.5\nendheader\n\n"
HEADERS = {
    "OpenSim 4": "Coordinates\ninDegrees=no\nnColumns=40\nnRows=2\nDataType=double\nversion=3\nOpenSimVersion=4.5\n"
    "endheader\n",
    "OpenSim 3": "Coordinates\nversion=1\nnRows=2\nnColumns=3\ninDegrees=yes\n\nUnits are S.I. units (second, meters)\n"
    "If the header above contains a line with 'inDegrees', this indicates\nendheader\n",
    "no first line": "version=1\nnRows=2\nnColumns=3\ninDegrees=no\nendheader\n\n\n",
    "SIMM": OLD,
    "none": "",
}


@pytest.mark.parametrize("kind", HEADERS)
def test_every_header_of_a_motion_file_is_read(kind: str, tmp_path: Path) -> None:
    rows = "time\tknee_angle_r\tpelvis_tx\n0.0\t30\t0.5\n0.5\t31.5\t0.75\n"
    table = load(_written(tmp_path, "a.mot", HEADERS[kind] + rows), check=False).table
    assert table.names == ("knee_angle_r", "pelvis_tx") and table.times.tolist() == [0.0, 0.5]
    assert table.values.tolist() == [[30.0, 0.5], [31.5, 0.75]]
    assert table.in_degrees is {"OpenSim 3": True, "SIMM": None, "none": None}.get(kind, False)
    blanks = load(_written(tmp_path, "b.sto", HEADERS[kind] + rows.replace("\t", "   ")), check=False).table
    assert (blanks.values == table.values).all()


def test_a_table_of_simm_without_times_takes_them_from_its_range(tmp_path: Path) -> None:
    table = load(_written(tmp_path, "a.mot", OLD + "hip knee\n1 2\n3 4\n"), check=False).table
    assert table.times.tolist() == [0.0, 0.5] and table.column("knee").tolist() == [2.0, 4.0]
    with refused(what="does not state whether angles are in degrees"):
        table.to_radians()


def test_columns_of_vectors_become_three(tmp_path: Path) -> None:
    head = "DataType=Vec3\nversion=3\nendheader\ntime\theel\ttoe\n"
    table = load(_written(tmp_path, "a.sto", head + "0\t1,2,3\t4,5,6\n0.1\t~[1,2,3]\tnan,nan,nan\n")).table
    assert table.names == ("heel_x", "heel_y", "heel_z", "toe_x", "toe_y", "toe_z")
    assert table.values[0].tolist() == [1, 2, 3, 4, 5, 6] and np.isnan(table.values[1, 3:]).all()
    with refused(what="line 5: '1,2' is not 3 numbers"):
        load(_written(tmp_path, "b.sto", head + "0\t1,2\t4,5,6\n"))


@pytest.mark.parametrize("suffix", [".mot", ".sto", ".csv"])
def test_tables_read_back_bit_for_bit(suffix: str, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(20, 3)) * [1e-9, 1.0, 1e12]
    table = MotionTable(["/jointset/knee_r/knee_angle_r/value", "a", "b"], np.arange(20) / 70, values, True)
    save(table, tmp_path / f"a{suffix}")
    again = load(tmp_path / f"a{suffix}", check=False).table
    assert again.names == table.names and (again.values == values).all() and (again.times == table.times).all()
    assert (again.column("knee_angle_r") == values[:, 0]).all()
    assert again.in_degrees is (None if suffix == ".csv" else True)


@pytest.mark.parametrize("plan", ["ground_force_{}_", "{}_ground_force_", "ground_force{}_"])
def test_ground_forces_are_found_by_names_and_written_in_those_of_opensim(plan: str, tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=(5, 18))
    names = [
        f"{plan.format(side)}{kind}{axis}" if kind else f"{plan.format(side).replace('force', 'torque')}{axis}"
        for side in "rl"
        for kind in ("v", "p", "")
        for axis in "xyz"
    ]
    save(MotionTable(names, np.arange(5) / 10, values, False), tmp_path / "a.mot")
    forces = load(tmp_path / "a.mot", check=False).forces
    assert forces.names == ("right", "left") and forces.axes == "forward up right"
    assert (forces.forces[:, 1] == values[:, 9:12]).all() and (forces.centers[:, 0] == values[:, 3:6]).all()
    save(forces, tmp_path / "b.mot")
    again = load(tmp_path / "b.mot", check=False)
    assert again.table.names[0] == "ground_force_r_vx" and (again.forces.moments == forces.moments).all()


@pytest.mark.parametrize("axes", ["forward left up", "back up left", "left up forward"])
def test_markers_and_forces_are_written_in_the_axes_of_opensim(axes: str, tmp_path: Path) -> None:
    walk = example()
    markers, forces = walk.markers.in_axes(axes), walk.forces.in_axes(axes)
    save(markers, tmp_path / "a.trc")
    assert np.abs(load(tmp_path / "a.trc").markers.positions - walk.markers.positions).max() < 1e-12
    for suffix in (".mot", ".sto", ".csv"):
        save(forces, tmp_path / f"a{suffix}")
        again = load(tmp_path / f"a{suffix}").forces
        assert again.axes == walk.forces.axes == "forward up right"
        for values, expected in ((again.forces, walk.forces.forces), (again.moments, walk.forces.moments)):
            assert np.abs(values - expected).max() < 1e-10
        loaded = walk.forces.loaded()
        assert np.abs(again.centers[loaded] - walk.forces.centers[loaded]).max() < 1e-12


def test_unknown_axes_are_reported_and_kept(tmp_path: Path) -> None:
    positions = np.random.default_rng(3).normal(size=(4, 1, 3))
    with warned(what="the axes of the data are unknown; they are read as 'forward up right'", where="a.trc"):
        save(Markers(["toe"], np.arange(4) / 100, positions), tmp_path / "a.trc")
    assert (load(tmp_path / "a.trc", check=False).markers.positions == positions).all()
    still = np.zeros((4, 1, 3))
    with warned(where="a.mot"):
        save(GroundForces(["right"], np.arange(4) / 100, still, still, still), tmp_path / "a.mot")


def test_a_foot_without_a_prefix_beside_a_left_one_is_the_right_one(tmp_path: Path) -> None:
    ends = [f"{kind}{axis}" for kind in "vp" for axis in "xyz"]
    names = [f"ground_force_{end}" for end in ends] + [f"l_ground_force_{end}" for end in ends]
    save(MotionTable(names, [0.0], np.zeros((1, 12)), False), tmp_path / "a.mot")
    assert load(tmp_path / "a.mot").forces.names == ("right", "left")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\nworld\n", "a.mot: there is neither endheader nor a line of names"),
        ("x\nendheader\n\n", "a.mot: endheader is not followed by data"),
        ("x\nendheader\ntime\ta\n", "a.mot: there are no rows"),
        ("x\nendheader\ntime\ta\n0\t1\t2\n", "a.mot: line 4 has 3 columns, but the table has 2; allowed: 2"),
        ("x\nendheader\ntime\ta\n0\n1\t2\n", "a.mot: line 4 has 1 columns, but none for 'a'; allowed: 2"),
        ("x\nendheader\ntime\ta\n0\t1 2\n", "a.mot: line 4, column 'a': '1 2' is not a number"),
        ("x\nendheader\ntime\ta\n0\tx\n", "a.mot: line 4, column 'a': 'x' is not a number; allowed: a finite number"),
        ("x\nendheader\ntime\ta\n1\t2\n1\t3\n", "a.mot: frame 2: time 1 s follows 1 s"),
        ("x\nendheader\na\tb\n1\t2\n", "a.mot: there is no time column"),
        ("x\nDataType=Cat\nendheader\ntime\ta\n1\t2\n", "a.mot: DataType is 'cat'; allowed: double, vec3"),
        ("x\nendheader\ntime\n1\n2\n", "a.mot: there are no columns except time"),
        ("\n\n", "a.mot: it is empty"),
    ],
)
def test_a_damaged_table_is_an_error_that_names_the_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        load(_written(tmp_path, "a.mot", text))
    assert str(caught.value).startswith(words)


def test_a_table_that_was_cut_off_is_used_up_to_there_with_a_warning(tmp_path: Path) -> None:
    text = "x\nnRows=9\nendheader\ntime\ta\n0\t1\n1\t2\n2"
    with pytest.warns(ModelWarning) as caught:
        assert len(load(_written(tmp_path, "a.mot", text)).table) == 2
    messages = [str(each.message) for each in caught]
    assert (
        "line 7: the file ends within this row" in messages[0] and "declares 9 rows, but the table has 2" in messages[1]
    )


def test_columns_of_a_csv_file_are_named_by_a_map(tmp_path: Path) -> None:
    text = "t (s);Heel X;Heel Y;Heel Z;Knie\n0;1,5;2;3;10\n0,1;;;;11\n"
    path = _written(tmp_path, "a.csv", text)
    names = {"t (s)": "time", "Heel X": "R.Heel x", "Heel Y": "R.Heel y", "Heel Z": "R.Heel z", "Knie": "knee_angle_r"}
    found = load(path, columns=names, unit="mm", check=False)
    assert found.markers.names == ("R.Heel",) and found.markers.positions[0, 0].tolist() == [0.0015, 0.002, 0.003]
    assert np.isnan(found.markers.positions[1]).all() and found.table.column("knee_angle_r").tolist() == [10.0, 11.0]
    with refused(argument="columns", fix='unit="mm"'):
        load(path, columns=names)
    with refused(value="Hip", allowed="t (s), Heel X"):
        load(path, columns={"Hip": "hip"})
    with refused(fix="name the column in the map"):
        load(path, columns={"Knie": "knee"})
    assert load(path, columns={"Knie": "knee"}, rate=10.0).table.times.tolist() == [0.0, 0.1]


def test_suffixes_and_kinds_that_do_not_fit_are_errors(tmp_path: Path) -> None:
    table = MotionTable(["a"], [0.0], [[1.0]])
    for words, call in {
        "a file: .trc, .mot": lambda: load(tmp_path / "no.trc"),
        "a folder": lambda: load(tmp_path),
        ".osim": lambda: load(_written(tmp_path, "a.osim", "x")),
        "rate": lambda: load(_written(tmp_path, "a.mot", "time\ta\n0\t1\n"), rate=1.0),
        "MotionTable cannot be written as '.trc'": lambda: save(table, tmp_path / "a.trc"),
        "a b": lambda: save(MotionTable(["a b"], [0.0], [[1.0]]), tmp_path / "a.mot"),
    }.items():
        with refused(words):
            call()


def test_a_recording_says_what_it_does_not_hold(tmp_path: Path) -> None:
    found = load(_written(tmp_path, "a.mot", "time\ta\n0\t1\n"))
    with refused(where="a.mot", fix="load the file that has them"):
        _ = found.markers
    with refused(what="the recording has no ground forces"):
        _ = found.forces


def test_data_of_the_wrong_shape_are_errors() -> None:
    zero = np.zeros((2, 1, 3))
    for words, call in {
        "positions": lambda: Markers(["a"], [0, 1], np.zeros((2, 2, 3))),
        "two markers are named 'a': numbers 1 and 2": lambda: Markers(["a", "a"], [0], np.zeros((1, 2, 3))),
        "axes": lambda: Markers(["a"], [0, 1], zero, axes="up up up"),
        "unit": lambda: Markers(["a"], [0, 1], zero, unit="inch"),
        "positions[0, 0, 1] is infinite": lambda: Markers(["a"], [0], [[[0.0, np.inf, 0.0]]]),
        "frame 2: the time is nan": lambda: Markers(["a"], [0, np.nan], zero),
        "no marker 'b'": lambda: Markers(["a"], [0, 1], zero).position("b"),
        "the axes of the recording are unknown": lambda: Markers(["a"], [0, 1], zero).in_axes("left up forward"),
        "forces": lambda: GroundForces(["a"], [0.0], zero, zero, zero),
        "no plate 'b'": lambda: GroundForces(["a"], [0, 1], zero, zero, zero).only(["b"]),
    }.items():
        with refused(words):
            call()


def test_axes_turn_markers_and_forces_alike() -> None:
    x = np.random.default_rng(3).normal(size=(4, 2, 3))
    t = np.arange(4) / 10
    markers = Markers(["a", "b"], t, x, axes="forward left up").in_axes("left up forward")
    assert (markers.positions == x[:, :, [1, 2, 0]]).all()
    forces = GroundForces(["a", "b"], t, x, x, x, axes="forward left up")
    turned = forces.in_axes("left up forward").in_axes("forward left up")
    assert (turned.wrench() == forces.wrench()).all()


def test_degrees_become_radians_but_for_translations_and_forces() -> None:
    names = ["hip_flexion_r", "pelvis_tx", "ground_force_vx", "knee_moment"]
    table = MotionTable(names, [0.0], [[180.0, 2.0, 3.0, 4.0]], in_degrees=True)
    assert table.to_radians().values[0].tolist() == [np.pi, 2.0, 3.0, 4.0]
    assert table.to_radians().to_degrees().values[0].tolist() == [180.0, 2.0, 3.0, 4.0]
    assert table.to_radians(["pelvis_tx"]).values[0, 0] == 180.0
