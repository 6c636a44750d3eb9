"""C3D files: markers and all types of force plates become forces on the person, in the axes of the laboratory."""

import sys
from pathlib import Path

import numpy as np
import pytest

from refusals import refused, warned
from torsor.base.errors import ModelError
from torsor.human.recordings import Markers, example, load, save

pytest.importorskip("c3d")

from human.recordings.c3d_samples import CORNERS, Sample, cut, patched, plate, transcoded

K, PER = 12, 10
RNG = np.random.default_rng(5)
# On the person, in laboratory axes (N, mm, N mm): 700 N up with friction, at a place on the plate, and a free moment.
FORCE = np.array([30.0, -50.0, 700.0]) * (1 + 0.1 * RNG.normal(size=(K * PER, 1)))
CENTER = np.array([150.0, 420.0, 0.0]) + RNG.normal(size=(K * PER, 3)) * [20.0, 30.0, 0.0]
FREE = np.array([0.0, 0.0, 4000.0]) * (1 + 0.1 * RNG.normal(size=(K * PER, 1)))
AXES = np.diag([1.0, -1.0, -1.0])  # of the plate, as columns in laboratory axes
MIDDLE = CORNERS.mean(axis=0)


def _body() -> tuple[list[str], np.ndarray]:
    """Return markers of a person above the plate who walks along +y, in mm."""
    names = [f"M{k}" for k in range(10)]
    at = np.stack([200 + 100 * np.sin(np.arange(10)), 300 + 100 * np.cos(np.arange(10)), 30 + 170.0 * np.arange(10)], 1)
    return names, at + np.linspace(0, 1, K)[:, None, None] * [0.0, 800.0, 0.0]


def _measured(origin: tuple[float, float, float]) -> np.ndarray:
    """Return what a plate measures (K PER, 6) at its own origin, below the surface: the action on it, N and N mm."""
    force = -FORCE @ AXES
    place = (CENTER - MIDDLE) @ AXES
    moment = np.cross(place + np.array(origin), force) - FREE @ AXES
    return np.hstack([force, moment])


def _eight(a: float, b: float, depth: float) -> np.ndarray:
    """Return the eight channels of a plate with sensors at (±a, ±b, 0), depth below its surface."""
    wrench = _measured((0.0, 0.0, -depth))
    (fx, fy, fz), (mx, my, mz) = wrench[:, :3].T, wrench[:, 3:].T
    turn = mz / 2
    fx12, fx34 = fx / 2 - turn / (2 * b), fx / 2 + turn / (2 * b)
    fy14, fy23 = fy / 2 + turn / (2 * a), fy / 2 - turn / (2 * a)
    up = [fz / 4 + p * mx / (4 * b) + q * my / (4 * a) for p, q in ((1, -1), (1, 1), (-1, 1), (-1, -1))]
    return np.stack([fx12, fx34, fy14, fy23, *up], axis=1)


def _sample(kind: int, analog: np.ndarray, origin: tuple[float, float, float], **more: object) -> Sample:
    names, points = _body()
    return Sample(
        names, points, analog, [f"c{k}" for k in range(analog.shape[1])], parameters=plate(kind, origin, **more)
    )


def _check(path: Path, near: float = 2e-6) -> None:
    forces = load(path, check=False).forces
    assert forces.names == ("plate 1",) and forces.rate == 1000.0 and len(forces) == K * PER
    assert np.abs(forces.forces[:, 0] - FORCE).max() < near * 1000
    assert np.abs(forces.centers[:, 0] - CENTER / 1000).max() < near
    assert np.abs(forces.moments[:, 0] - FREE / 1000).max() < near * 1000
    assert forces.corners is not None and np.abs(forces.corners[0] - CORNERS / 1000).max() < 1e-7


def test_plates_of_type_two_give_the_force_on_the_person_and_its_place(tmp_path: Path) -> None:
    origin = (2.0, -3.0, -40.0)  # from the origin of the axes to the surface: negative z is up
    _check(_sample(2, _measured((2.0, -3.0, -40.0)), origin).write(tmp_path / "a.c3d"))


def test_an_origin_with_the_opposite_sign_is_understood(tmp_path: Path) -> None:
    _check(_sample(2, _measured((0.0, 0.0, -40.0)), (0.0, 0.0, 40.0)).write(tmp_path / "a.c3d"))


def test_files_that_hold_the_reaction_give_the_same_forces(tmp_path: Path) -> None:
    _check(_sample(2, -_measured((0.0, 0.0, -40.0)), (0.0, 0.0, -40.0)).write(tmp_path / "a.c3d"))


def test_plates_of_type_one_have_computed_the_centre_of_pressure(tmp_path: Path) -> None:
    place = (CENTER - MIDDLE) @ AXES
    analog = np.hstack([-FORCE @ AXES, place[:, :2], (-FREE @ AXES)[:, 2:]])
    _check(_sample(1, analog, (0.0, 0.0, 0.0)).write(tmp_path / "a.c3d"))


def test_plates_of_type_three_combine_four_sensors(tmp_path: Path) -> None:
    _check(_sample(3, _eight(120.0, 200.0, 50.0), (120.0, 200.0, -50.0)).write(tmp_path / "a.c3d"))


def test_plates_of_type_four_have_a_calibration_matrix(tmp_path: Path) -> None:
    matrix = np.diag([2.0, 2.0, 3.0, 50.0, 60.0, 70.0]) + RNG.normal(size=(6, 6)) * 0.1
    channels = _measured((0.0, 0.0, -40.0)) @ np.linalg.inv(matrix).T
    sample = _sample(4, channels, (0.0, 0.0, -40.0), CAL_MATRIX=matrix.T[None])  # stored by columns
    _check(sample.write(tmp_path / "a.c3d"), near=2e-5)
    del sample.parameters["FORCE_PLATFORM:CAL_MATRIX"]
    with refused(where="b.c3d", what="plate 1, of type 4, has no calibration matrix"):
        load(sample.write(tmp_path / "b.c3d"))


def test_units_of_channels_are_converted(tmp_path: Path) -> None:
    analog = _measured((0.0, 0.0, -40.0)) * [1, 1, 1, 0.001, 0.001, 0.001]
    sample = _sample(2, analog, (0.0, 0.0, -40.0))
    sample.parameters["ANALOG:UNITS"] = ["N", "N", "N", "Nm", "N.m", "Nm"]
    _check(sample.write(tmp_path / "a.c3d"))


@pytest.mark.parametrize("processor", [85, 86])
def test_files_of_other_processors_hold_the_same_numbers(processor: int, tmp_path: Path) -> None:
    path = _sample(2, _measured((0.0, 0.0, -40.0)), (0.0, 0.0, -40.0)).write(tmp_path / "a.c3d")
    markers = load(path, check=False).markers
    path.write_bytes(transcoded(path.read_bytes(), processor))
    _check(path)
    again = load(path, check=False).markers
    assert again.names == markers.names and (again.positions == markers.positions).all()


def test_whole_numbers_with_scales_and_offsets_are_read(tmp_path: Path) -> None:
    sample = _sample(2, _measured((0.0, 0.0, -40.0)), (0.0, 0.0, -40.0))
    sample.scale = 0.1
    sample.parameters |= {
        "ANALOG:SCALE": np.array([0.01, 0.01, 0.1, 10.0, 10.0, 10.0]),
        "ANALOG:OFFSET": np.array([5, -7, 0, 100, 0, 0]),
    }
    found = load(sample.write(tmp_path / "a.c3d"), check=False)
    assert np.abs(found.markers.positions - _body()[1] / 1000).max() < 1.01e-4
    assert np.abs(found.forces.forces[:, 0] - FORCE).max() < 0.11
    assert np.abs(found.forces.centers[:, 0] - CENTER / 1000).max() < 3e-4


def test_markers_are_in_metres_with_gaps_and_axes_from_plate_and_way(tmp_path: Path) -> None:
    names, points = _body()
    points[3:5, 2] = np.nan
    sample = _sample(2, _measured((0.0, 0.0, -40.0)), (0.0, 0.0, -40.0))
    sample.points = points
    markers = load(sample.write(tmp_path / "a.c3d"), check=False).markers
    assert markers.names == tuple(names) and markers.rate == 100.0 and markers.unit == "mm"
    assert markers.axes == "right forward up"
    assert [gap[:3] for gap in markers.gaps()] == [("M2", 3, 4)]
    assert np.nanmax(np.abs(markers.positions - points / 1000)) < 1e-7
    assert load(tmp_path / "a.c3d", axes="forward left up", unit="m", check=False).markers.positions[0, 0, 2] == 30.0


def test_angles_and_moments_of_other_programs_are_no_markers(tmp_path: Path) -> None:
    names, points = _body()
    results = np.full((K, 2, 3), 60.0)
    sample = Sample([*names, "LKneeAngles", "LKneeMoment"], np.concatenate([points, results], axis=1))
    sample.parameters |= {"POINT:ANGLES": ["LKneeAngles", "RKneeAngles"], "POINT:MOMENTS": ["LKneeMoment"]}
    markers = load(sample.write(tmp_path / "a.c3d")).markers
    assert markers.names == tuple(names)
    np.testing.assert_allclose(markers.positions, points / 1000, atol=1e-7)


def test_events_are_read_with_their_sides(tmp_path: Path) -> None:
    sample = Sample(*_body())
    sample.parameters |= {
        "EVENT:USED": 2,
        "EVENT:LABELS": ["Foot Off", "Foot Strike"],
        "EVENT:CONTEXTS": ["Left", "Right"],
        "EVENT:TIMES": np.array([[0.0, 0.75], [0.0, 0.25]]),
    }
    assert load(sample.write(tmp_path / "a.c3d")).events == ((0.25, "Right Foot Strike"), (0.75, "Left Foot Off"))


def test_markers_are_written_with_the_precision_of_the_format(tmp_path: Path) -> None:
    positions = _body()[1] / 1000
    positions[2, 3] = np.nan
    markers = Markers([f"M{k}" for k in range(10)], 0.5 + np.arange(K) / 100, positions, unit="mm")
    save(markers, tmp_path / "a.c3d")
    again = load(tmp_path / "a.c3d", check=False).markers
    assert again.names == markers.names and again.unit == "mm"
    assert np.abs(again.times - markers.times).max() < 1e-9
    assert np.nanmax(np.abs(again.positions / positions - 1)) < 2**-23
    assert (np.isnan(again.positions) == np.isnan(positions)).all()


def test_a_recording_with_z_up_is_written_for_opensim(tmp_path: Path) -> None:
    walk = example()
    save(walk.markers.in_axes("forward left up"), tmp_path / "lab.c3d")
    markers = load(tmp_path / "lab.c3d", axes="forward left up").markers
    assert markers.axes == "forward left up"
    save(markers, tmp_path / "walk.trc")
    again = load(tmp_path / "walk.trc").markers
    assert again.axes == "forward up right"
    assert np.abs(again.positions - walk.markers.positions).max() < 1e-6  # m; a C3D file has single precision


def test_damaged_files_are_errors_or_warnings(tmp_path: Path) -> None:
    path = _sample(2, _measured((0.0, 0.0, -40.0)), (0.0, 0.0, -40.0)).write(tmp_path / "a.c3d")
    whole = path.read_bytes()
    with warned(what="the header declares 12 frames, but the file ends after 7, which are used"):
        assert len(load(cut(path, len(whole) - 2100), check=False).markers) == 7
    for size in (0, 1, 300, 512, 700, 1024):
        path.write_bytes(whole[:size])
        with refused(where="a.c3d", allowed="a .c3d file"):
            load(path)
    path.write_bytes(b"\x02\x50" + bytes(510))
    with refused(where="a.c3d", what="the parameters cannot be read"):
        load(path)
    path.write_bytes(whole)
    with warned(what="the header declares 60000 frames"):
        load(patched(path, 8, "<H", 60000), check=False)


@pytest.mark.filterwarnings("ignore::torsor.ModelWarning")
def test_random_changes_of_a_file_never_raise_another_error(tmp_path: Path) -> None:
    path = _sample(2, _measured((0.0, 0.0, -40.0)), (0.0, 0.0, -40.0)).write(tmp_path / "a.c3d")
    whole, numbers = path.read_bytes(), np.random.default_rng(7)
    refused = 0
    for _ in range(60):
        content = bytearray(whole)
        for at in numbers.integers(0, 3000, size=4):
            content[at] = numbers.integers(0, 256)
        path.write_bytes(bytes(content))
        try:
            load(path)
        except ModelError:
            refused += 1
    assert 0 < refused < 60


def test_plates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    analog = _measured((0.0, 0.0, -40.0))
    cases = {
        "plate 1": {"FORCE_PLATFORM:TYPE": np.array([7])},
        "plate 1: the corners enclose no area": {"FORCE_PLATFORM:CORNERS": np.zeros((1, 4, 3))},
        "plate 1 has incomplete CHANNEL": {"FORCE_PLATFORM:ORIGIN": np.zeros((1, 2))},
    }
    for words, change in cases.items():
        sample = _sample(2, analog, (0.0, 0.0, -40.0))
        sample.parameters |= change
        with warned(words):
            assert not load(sample.write(tmp_path / "a.c3d"), check=False).has("forces")
    sample = _sample(2, analog, (0.0, 0.0, -40.0))
    sample.parameters["FORCE_PLATFORM:CHANNEL"] = np.arange(5, 11)[None]
    with refused(allowed="1 to 6"):
        load(sample.write(tmp_path / "a.c3d"))
    with refused(value="ell", allowed="m, cm, mm", fix="pass the unit"):
        load(Sample(*_body(), unit="ell ").write(tmp_path / "a.c3d"))


def test_without_the_package_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Sample(*_body()).write(tmp_path / "a.c3d")
    monkeypatch.setitem(sys.modules, "c3d", None)
    words = r'a.c3d: C3D files need the package c3d; fix: pip install "torsor\[mocap\]"'
    with pytest.raises(ImportError, match=words):
        load(path)
