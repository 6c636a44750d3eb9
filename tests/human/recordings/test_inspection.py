"""Mistakes of recordings are found, and named with frame, marker or plate and the fix; good recordings have none."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from human.recordings import walkers
from refusals import refused, warned
from torsor.base.errors import ModelWarning
from torsor.human.recordings import (
    GroundForces,
    Markers,
    MotionTable,
    Recording,
    by_foot,
    inspect,
    likely_axes,
    load,
    save,
    standing,
)
from torsor.human.recordings.inspection import swapped

MARKERS, FORCES = walkers.markers(), walkers.forces()


def _changed(change: Callable[[np.ndarray], None]) -> Markers:
    positions = np.array(MARKERS.positions)
    change(positions)
    return MARKERS.with_positions(positions)


def _messages(*parts: Recording | Markers | GroundForces | MotionTable) -> dict[str, str]:
    return {each.kind: each.message for each in inspect(*parts)}


def test_a_good_recording_has_no_findings() -> None:
    assert inspect(MARKERS, FORCES) == []
    assert inspect(Recording("walk.c3d", MARKERS, FORCES)) == []


def test_two_markers_that_exchange_places_are_named_with_the_frame() -> None:
    def swap(x: np.ndarray) -> None:
        x[50:90, [0, 3]] = x[50:90, [3, 0]]

    found = _messages(_changed(swap))
    assert list(found) == ["swap"]
    assert found["swap"].startswith(
        "walk.trc: markers exchange places: 'R.Heel' and 'L.Toe' at frame 51 (0.5 s); 'R.Heel' and 'L.Toe' at "
        "frame 91 (0.9 s); fix: exchange them in these frames"
    )


@pytest.mark.parametrize("side", ["{}.{}", "{}{}", "{1}_{0}", "Ann:{}{}"])
def test_a_right_and_a_left_marker_that_are_exchanged_in_all_frames_are_named(side: str) -> None:
    names = {name: side.format(*(name.upper() if "." in name else name).split(".")) for name in MARKERS.names[:-1]}
    renamed = MARKERS.renamed(names)
    assert inspect(renamed) == []
    right, left = names["R.Heel"], names["L.Heel"]
    found = _messages(renamed.renamed({right: left, left: right}))
    assert list(found) == ["sides"] and f"compared with others: {left!r} and {right!r}" not in found["sides"]
    assert f"compared with others: {right!r} and {left!r}; fix: exchange" in found["sides"]


def test_every_pair_of_markers_is_seen_to_exchange() -> None:
    for k, (a, b) in enumerate(combinations(range(len(MARKERS.names)), 2)):
        frame = 20 + 2 * k
        x = np.array(MARKERS.positions[frame - 5 : frame + 5])
        x[5:, [a, b]] = x[5:, [b, a]]
        found = swapped(Markers(MARKERS.names, MARKERS.times[:10], x))
        assert found == [(5, MARKERS.names[a], MARKERS.names[b])]


def test_a_jump_is_named_with_its_size() -> None:
    def jump(x: np.ndarray) -> None:
        x[40:, 8] += [0.2, 0.0, 0.0]

    found = _messages(_changed(jump))
    assert list(found) == ["jump"] and "'R.Shoulder' at frame 41 (0.4 s) by 200 mm; fix: remove" in found["jump"]


def test_gaps_and_markers_that_are_never_seen_are_named() -> None:
    def hide(x: np.ndarray) -> None:
        x[20:30, 1] = np.nan
        x[:, 6] = np.nan

    found = _messages(_changed(hide))
    assert found["gap"].startswith("walk.trc: markers are missing: 'R.Toe' frames 21 to 30 (0.11 s); fix: ")
    assert found["missing"].startswith("walk.trc: markers are never seen: 'R.ASIS'; fix: omit them")


@pytest.mark.parametrize(("said", "real", "factor"), [("m", "mm", 1000.0), ("mm", "m", 0.001)])
def test_a_wrong_unit_is_named_with_the_right_one(said: str, real: str, factor: float, tmp_path: Path) -> None:
    wrong = replace(MARKERS, positions=MARKERS.positions * factor, unit=said)
    save(wrong, tmp_path / "walk.trc")
    with pytest.warns(ModelWarning, match=rf'which is implausible; the stated unit is {said}; fix.*unit="{real}"'):
        load(tmp_path / "walk.trc")
    right = load(tmp_path / "walk.trc", unit=real)
    assert np.abs(right.markers.positions - MARKERS.positions).max() < 1e-12


def test_swapped_feet_are_named_with_the_time_and_both_distances() -> None:
    swapped_feet = FORCES.renamed({"right": "left", "left": "right"})
    found = _messages(MARKERS, swapped_feet)
    assert list(found) == ["feet"]
    assert found["feet"].startswith(
        "grf.mot: feet are swapped: 'left' from 0.101 to 0.799 s is below the right foot (0."
    )
    assert found["feet"].endswith('fix: use forces.renamed({"right": "left", "left": "right"})')


def _on_plates(*shares: float) -> GroundForces:
    """Return the forces of both feet, that of the right foot shared by several plates."""
    parts = [FORCES.forces[:, 0] * share for share in shares] + [FORCES.forces[:, 1]]
    centers = [FORCES.centers[:, 0]] * len(shares) + [FORCES.centers[:, 1]]
    moments = [FORCES.moments[:, 0] * share for share in shares] + [FORCES.moments[:, 1]]
    names = [f"plate {k + 1}" for k in range(len(parts))]
    stacked = (np.stack(each, axis=1) for each in (parts, centers, moments))
    return GroundForces(names, FORCES.times, *stacked, axes=FORCES.axes, source="walk.c3d")


def test_one_foot_on_two_plates_is_named_and_both_are_added() -> None:
    plates = _on_plates(0.3, 0.7)
    found = _messages(MARKERS, plates)
    assert list(found) == ["shared"]
    assert found["shared"].startswith("walk.c3d: the right foot is on plate 1 and plate 2 from 0.102 to 0.798 s; fix: ")
    feet = by_foot(plates, MARKERS)
    on = FORCES.vertical > 100.0  # below it, one of the plates has less than its threshold
    assert feet.names == ("right", "left") and on[:, 0].sum() > 600
    for name in ("forces", "centers", "moments"):
        assert np.abs(getattr(feet, name) - getattr(FORCES, name))[on].max() < 1e-9


def test_a_plate_far_from_both_feet_is_named() -> None:
    moved = replace(FORCES, centers=FORCES.centers + np.array([0.0, 0.0, 1.0]), names=("plate 1", "plate 2"))
    assert "plate 1 is loaded from 0.101 to 0.799 s, 1.00 m from the nearer foot" in _messages(MARKERS, moved)["place"]
    with warned(what="0 m from the nearer foot"):
        assert not by_foot(moved, MARKERS).forces.any()
    nameless = MARKERS.renamed({name: f"m{k}" for k, name in enumerate(MARKERS.names)})
    with refused(fix="name them: feet="):
        by_foot(FORCES, nameless)
    feet = {"right": ["m0", "m1"], "left": ["m2", "m3"]}
    assert np.abs(by_foot(FORCES, nameless, feet).forces - FORCES.without_unloaded().forces).max() == 0


def test_wrong_axes_and_signs_of_forces_are_named() -> None:
    turned = replace(FORCES, forces=FORCES.forces[:, :, [0, 2, 1]])
    assert (
        "right: the mean force" in _messages(turned)["axes"] and "is along z, but up is y" in _messages(turned)["axes"]
    )
    assert "is along -y, but up is y" in _messages(replace(FORCES, forces=-FORCES.forces))["axes"]
    other = MARKERS.in_axes("left up forward")
    assert "forces are in axes 'forward up right', markers in 'left up forward'" in _messages(other, FORCES)["axes"]


def test_markers_of_a_person_who_lies_across_the_vertical_are_named() -> None:
    up_is_z = replace(MARKERS.in_axes("forward left up"), axes="forward up right")
    assert _messages(up_is_z)["axes"] == (
        "walk.trc: the person extends along z, but the stated vertical axis is y; fix: pass the axes: "
        'torsor.human.recordings.load(path, axes="forward left up")'
    )


def test_the_offset_of_a_plate_is_named_and_removed() -> None:
    wrench = FORCES.wrench() + np.array([0.0, 3.0, -1.0, 2.0, 15.0, -4.0])
    shifted = FORCES.with_wrench(wrench)
    assert "right: 16 N while the plate is empty (x, y, z: 2.0, 15.0, -4.0)" in _messages(shifted)["offset"]
    clean = shifted.without_offset(0.0, 0.09)
    on = FORCES.loaded()
    for name in ("forces", "centers", "moments"):
        assert np.abs(getattr(clean, name) - getattr(FORCES, name))[on].max() < 1e-9
    with refused(allowed="within the recording, 0 to 1.499 s"):
        shifted.without_offset(5.0, 6.0)


def test_centres_of_pressure_off_the_plate_or_in_mm_are_named() -> None:
    square = np.array([[0.2, 0, 0.2], [-0.2, 0, 0.2], [-0.2, 0, -0.2], [0.2, 0, -0.2]])
    plates = replace(FORCES, corners=np.stack([square, square]))
    assert "left: its centre of pressure is 0.50 m outside its corners" in _messages(plates)["place"]
    in_mm = replace(FORCES, centers=FORCES.centers * 1000)
    assert "its centre of pressure is at 700 m; fix: positions are in m" in _messages(in_mm)["unit"]


def test_forces_and_markers_of_other_times_are_named() -> None:
    later = replace(FORCES, times=FORCES.times + 9.0)
    assert (
        "forces from 9 to 10.499 s and markers from 0 to 1.49 s do not overlap in time"
        in _messages(MARKERS, later)["times"]
    )


def test_angles_in_the_wrong_unit_are_named() -> None:
    names = ["knee_angle_r", "knee_angle_r_beta", "hip_flexion_r", "pelvis_tx"]
    table = MotionTable(names, [0.0, 0.1], [[0.5, 40.0, 1.0, 99.0], [0.6, 72.0, 1.1, 99.0]], False, source="ik.sto")
    assert _messages(table)["degrees"].startswith(
        "ik.sto: the stated angle unit is radians, but 'knee_angle_r_beta' reaches 72; fix: convert these columns"
    )
    small = MotionTable(names, [0.0], [[0.5, 0.4, 1.0, 99.0]], True)
    assert "the stated angle unit is degrees, but no angle is above 1" in _messages(small)["degrees"]
    assert _messages(replace(small, in_degrees=None)) == {}


def test_a_walk_has_no_standing_trial_and_says_how_fast_its_slowest_moment_is() -> None:
    with refused(where="walk.trc", fix="load the standing"):
        standing(MARKERS)
    still = np.repeat(MARKERS.positions[:1], 100, axis=0) + 1e-4 * np.random.default_rng(0).normal(size=(100, 11, 3))
    both = np.concatenate([MARKERS.positions, MARKERS.positions[-1] + still - still[0]])
    found = standing(Markers(MARKERS.names, np.arange(250) / 100, both))
    assert 1.4 < found.times[0] < 1.6 and found.times[-1] == 2.49


def test_axes_are_guessed_from_height_and_way() -> None:
    assert likely_axes(MARKERS) == "forward up right"
    for axes in ("right forward up", "back right up", "left up forward", "forward left up"):
        assert likely_axes(replace(MARKERS.in_axes(axes), axes="")) == axes
    assert likely_axes(MARKERS.only(["R.Heel", "L.Heel"])) == ""


def test_things_of_another_kind_cannot_be_inspected() -> None:
    with refused(where="inspect", allowed="Recording, Markers"):
        inspect("walk.trc")  # type: ignore[arg-type]
