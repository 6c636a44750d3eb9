"""Spatio-temporal parameters, joint powers and angles in the direction of progression of measured gaits."""

import csv
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.human import recorded_walk, recordings
from torsor.human.measured import MeasuredGait, marker_paths, marker_set, measured_gait
from torsor.human.measured.progression import Progression, progression
from torsor.human.measured.steps import Heel, SpatioTemporal, spatio_temporal
from torsor.human.recordings import Event
from torsor.human.recordings.contacts import Contact, contacts, foot_events

PARTS = ("ASI", "PSI", "TH1", "KNE", "SH1", "ANK", "HEE", "TOE")
SIDES = ("right", "left")


@pytest.fixture(scope="module")
def gait() -> MeasuredGait:
    """The recorded walk that ships with Torsor."""
    walk = recordings.example()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a foot misses the plates
        return measured_gait(walk.markers, walk.forces, mass=85.3, height=1.8)


def made(turn: float, seen: float) -> SpatioTemporal:
    """Return the parameters of a walk with known steps, turned by an angle (rad) in the laboratory.

    Strides take 1.1 s and 1.32 m. Left steps are 0.70 m long, right steps 0.62 m, and 0.11 m apart. The left foot lands
    0.5 s after the right one. Feet are loaded for 0.66 s; the plates measure from 0 to ``seen`` (s).
    """
    t = np.arange(600) / 100
    heels, feet = dict[str, Heel](), dict[str, list[Contact]]()
    for side, first, ahead, aside in (("right", 0.255, 0.0, 0.0), ("left", 0.755, 0.70, 0.11)):
        count = np.floor((t + 0.1 - first) / 1.1)  # the heel is in place before it lands
        forward = ahead + 1.32 * count
        left = np.full_like(t, aside)
        c, s = np.cos(turn), np.sin(turn)
        heels[side] = Heel(t, np.stack([c * left + s * forward, 0 * t, c * forward - s * left], axis=1))
        load = np.where((((t - first) % 1.1) < 0.66) & (t >= first) & (t < seen), 700.0, 0.0)
        feet[side] = contacts(t, load)
    return spatio_temporal(heels, feet)


@pytest.mark.parametrize("turn", [0.0, 0.4, np.pi])
def test_steps_of_a_known_walk_are_found_in_any_direction(turn: float) -> None:
    walk = made(turn, seen=5.0)
    assert walk.speed == pytest.approx(1.2) and walk.cadence == pytest.approx(120 / 1.1)
    assert walk.step_width == pytest.approx(0.11)
    for leg, step, lasts, both in ((walk.right, 0.62, 0.6, 6.0), (walk.left, 0.70, 0.5, 16.0)):
        assert leg.strides >= 3 and leg.stride_length == pytest.approx(1.32) and leg.stride_time == pytest.approx(1.1)
        assert leg.step_length == pytest.approx(step) and leg.step_time == pytest.approx(lasts)
        assert leg.foot_off == pytest.approx(60.0, abs=1.0)
        assert leg.double_support == pytest.approx(100 * both / 110, abs=1.0)
    assert walk.double_support == pytest.approx(20.0, abs=2.0)


def test_unknown_steps_are_none() -> None:
    walk = made(0.0, seen=1.2)  # one step of each foot
    assert walk.speed is None and walk.cadence is None and walk.right.step_length is None
    assert walk.left.step_time == pytest.approx(0.5) and walk.right.strides == 0


def test_steps_of_the_example_are_those_of_its_heel_markers(gait: MeasuredGait) -> None:
    """Values by hand: heel strikes where the vertical force exceeds 20 N, and the heel markers at these times."""
    markers, forces = recordings.example().markers, recordings.example().forces

    def strikes(side: str) -> list[float]:
        up = forces.vertical[:, forces.index(side)] > 20
        starts = np.flatnonzero(up[1:] & ~up[:-1]) + 1
        return [float(forces.times[k]) for k in starts if up[k : k + 20].all()]

    def heel(side: str, t: float) -> np.ndarray:
        return np.array([np.interp(t, markers.times, markers.position(f"{side}.Heel")[:, k]) for k in (0, 2)])

    (first, last), (middle,) = strikes("right"), strikes("left")
    start, end, other = heel("R", first), heel("R", last), heel("L", middle)
    stride = np.linalg.norm(end - start)
    ahead = (end - start) / stride
    steps = gait.steps
    assert steps is not None and steps.right.strides == 1 and steps.left.strides == 0
    assert steps.right.stride_time == pytest.approx(last - first, abs=0.005)
    assert steps.right.stride_length == pytest.approx(stride, abs=0.002)
    assert steps.left.step_length == pytest.approx((other - start) @ ahead, abs=0.005)
    assert steps.right.step_length == pytest.approx(stride - (other - start) @ ahead, abs=0.005)
    assert steps.step_width == pytest.approx(abs((other - start) @ [ahead[1], -ahead[0]]), abs=0.002)
    assert steps.speed == pytest.approx(stride / (last - first), abs=0.01)
    assert steps.cadence == pytest.approx(120 / (last - first), abs=0.5)
    assert steps.left.stride_length is None and "1.424" not in str(steps.left)


def test_events_replace_the_heel_strikes_of_the_forces(gait: MeasuredGait) -> None:
    """The left foot strikes the plates at 0.84 s and the floor at 1.98 s."""
    left = [Event(0.84, "Left Foot Strike"), Event(1.50, "Left Foot Off"), Event(1.98, "LHS"), Event(0.3, "Event")]
    marked = replace(gait, events=tuple(left))
    with refused(what="too short for one stride of the left foot", fix="`strikes`"):
        recorded_walk(gait, side="left")
    walk = recorded_walk(marked, side="left")
    assert walk.strides == walk.on_plates == ((0.84, 1.98),) and walk.toe_off == pytest.approx(0.66 / 1.14)
    assert "right 0.27, 1.41 (plates); left 0.84, 1.98 (events)" in marked.facts["heel strikes, s"]
    steps = marked.steps
    assert steps is not None and steps.right.strides == steps.left.strides == 1
    assert steps.left.stride_time == pytest.approx(1.14) and steps.left.foot_off == pytest.approx(100 * 0.66 / 1.14)
    with refused(what="the events contain no stride of the left foot, with heel strikes at 0.84, 0.9"):
        recorded_walk(replace(gait, events=(left[0], Event(0.9, "Left Foot Strike"))), side="left")
    single = replace(gait, events=(Event(1.0, "Right Foot Strike"),))  # is not sufficient for a stride
    assert single.contacts("right") == gait.contacts("right")


def test_moments_are_those_of_strides_on_the_plates(gait: MeasuredGait) -> None:
    """A stride that begins on the floor has angles, but its moments would lack the ground force."""
    both = recorded_walk(gait, side="left", strikes=[0.84, 1.60, 2.30])
    assert len(both.strides) == 2 and both.on_plates == both.strides[:1]
    one = recorded_walk(gait, side="left", strikes=[0.84, 1.60])
    np.testing.assert_allclose(both.curves["knee_extension"].mean, one.curves["knee_extension"].mean, atol=1e-12)
    assert both.curves["knee_extension"].sd is None and both.curves["knee_flexion"].sd is not None
    assert "moments, powers and forces of 1 of these strides" in str(both)
    floor = recorded_walk(gait, side="left", strikes=[1.60, 2.30])
    assert "knee_flexion" in floor.curves and not {"knee_extension", "knee_power", "vertical"} & set(floor.curves)


@pytest.mark.parametrize(
    ("strikes", "offs", "is_wrong"),
    [
        ((1.02, 2.1), (), False),  # within the tolerance
        ((2.1, 3.2), (0.6,), False),  # other strides are marked
        ((0.7, 2.1), (), True),  # too early
        ((1.3, 2.4), (), True),  # in stance
        ((0.2, 2.1), (), True),  # a strike is missing
        ((1.0, 2.1), (1.2,), True),  # the foot leaves the ground in stance
    ],
)
def test_events_that_contradict_a_contact_are_found(
    strikes: tuple[float, ...], offs: tuple[float, ...], is_wrong: bool
) -> None:
    events = [Event(t, "Left Foot Strike") for t in strikes] + [Event(t, "Left Foot Off") for t in offs]
    contact = Contact(1.0, 1.6)
    assert foot_events(events)["left"].contradicted([contact]) == (contact if is_wrong else None)


def test_tables_per_kilogram_have_names_of_variables(gait: MeasuredGait, tmp_path: Path) -> None:
    gait.save(tmp_path / "walk.csv", per_kg=True)
    with (tmp_path / "walk.csv").open() as file:
        heads, *rows = csv.reader(file)
    assert all(head.isidentifier() and len(head) < 64 for head in heads) and len(set(heads)) == len(heads)
    moment = np.array([float(row[heads.index("tau_right_knee_flexion_Nm_per_kg")]) for row in rows])
    np.testing.assert_allclose(moment, gait.moment("right", "knee_flexion"), rtol=1e-12)
    assert {"time_s", "valid", "power_left_ankle_flexion_W_per_kg", "force_left_foot_up_N_per_kg"} < set(heads)
    with refused(argument="per_kg"):
        gait.save(tmp_path / "walk.mot", per_kg=True)


def test_the_power_of_a_joint_is_the_same_everywhere(gait: MeasuredGait) -> None:
    """Figures, tables and gait cycles have total joint powers, like the reference curves."""
    walk, dynamics = recorded_walk(gait), gait.dynamics
    assert dynamics is not None
    names = list(dynamics.names)
    for joint, axes in (("hip", ("flexion", "adduction", "rotation")), ("ankle", ("flexion", "inversion"))):
        at = [names.index(f"right_{joint}_{axis}") for axis in axes]
        total = (dynamics.forces * dynamics.v)[:, at].sum(axis=1) / gait.mass
        np.testing.assert_allclose(gait.power("right", joint), total)
        axis = gait.moment("right", f"{joint}_flexion") * dynamics.v[:, at[0]]
        np.testing.assert_allclose(gait.power("right", f"{joint}_flexion"), axis)
        assert np.abs(axis - total).max() > 0.1
        over = np.linspace(*walk.strides[0], 401)
        np.testing.assert_allclose(walk.curves[f"{joint}_power"].mean, np.interp(over, gait.times, total), atol=1e-9)
        panel = next(axes for axes in gait.plot().axes if axes.get_title() == f"{joint} power")
        drawn = np.asarray(panel.lines[0].get_ydata())
        np.testing.assert_allclose(drawn[gait.valid], total[gait.valid])


def test_files_flag_the_valid_interval(gait: MeasuredGait) -> None:
    valid = next(column for column in gait.columns() if column.name == "valid")
    np.testing.assert_array_equal(valid.values, gait.valid)
    assert "from 0.27 to 0.39 s" in gait.outside(0.27, 1.41) and not gait.outside(0.5, 1.5)


def test_pelvis_and_feet_are_measured_in_the_direction_of_progression() -> None:
    """A person walks stiffly in an oblique direction, with the right side low, leaning and turned."""
    body, t = torsor.library.human(1.80, 80.0), np.arange(100) / 100
    way = np.radians(35.0)  # to the left
    path = {"tx": 1.2 * t * np.sin(way), "tz": 1.2 * t * np.cos(way)}

    def found(yaw: float, **angles: float) -> Progression:
        q, turned = np.zeros((100, 55)), {"yaw": way + np.radians(yaw)}
        turned |= {name: np.radians(angle) for name, angle in angles.items()}
        for name, values in (path | turned).items():
            q[:, body.coordinate_names.index(name)] = values
        return progression(body, t, q)

    leaning = found(4.0, tilt=7.0, list=3.0)
    for name, sign, value in (("rotation", -1, 4.0), ("tilt", 1, 7.0), ("obliquity", -1, 3.0)):
        for side, expected in (("right", value), ("left", sign * value)):
            np.testing.assert_allclose(leaning.angle(side, f"pelvis_{name}"), expected, atol=1e-9)
    upright = found(4.0, right_hip_rotation=-10.0)
    np.testing.assert_allclose(upright.angle("right", "foot_progression"), -6.0, atol=1e-9)  # toes outward
    np.testing.assert_allclose(upright.angle("left", "foot_progression"), -4.0, atol=1e-9)


def test_gait_cycles_have_pelvis_and_foot_angles(gait: MeasuredGait) -> None:
    walk = recorded_walk(gait)
    titles = [axes.get_title() for axes in walk.plot(planes="other").axes]
    assert titles == [
        *("pelvis tilt (forward)", "pelvis obliquity (this side low)", "pelvis rotation (this side in front)"),
        *("hip adduction", "hip internal rotation", "hip abduction moment"),
        *("foot progression (toes inward)", "vertical force", "forward force"),
    ]
    over = np.linspace(*walk.strides[0], 401)
    expected = np.interp(over, gait.times, gait.angle("right", "pelvis_obliquity"))
    np.testing.assert_allclose(walk.curves["list"].mean, expected, atol=1e-9)
    assert len(walk.plot(planes="all").axes) == 18


def test_a_saved_gait_is_a_reference(gait: MeasuredGait, tmp_path: Path) -> None:
    gait.save(tmp_path / "walk.npz")
    figure = recorded_walk(gait).plot(None, tmp_path / "walk.npz")
    own, saved = figure.axes[0].lines[:2]
    np.testing.assert_allclose(saved.get_ydata(), own.get_ydata(), atol=1e-12)
    assert saved.get_label() == "walk.npz"


def test_a_missing_height_is_a_finding() -> None:
    body, t = torsor.library.human(1.80, 80.0), np.arange(20) / 100
    markers = marker_set(body, [side + part for part in PARTS for side in "RL"])
    recording = marker_paths(body, markers, t, np.zeros((20, 55)))
    with warned(what="the height is not given: 1.741 m"):
        gait = measured_gait(recording, mass=80.0)
    assert [finding.kind for finding in gait.findings] == ["height"]
    assert not measured_gait(recording, mass=80.0, standing=recording).findings


def test_events_of_no_foot_are_findings() -> None:
    body, t = torsor.library.human(1.80, 80.0), np.arange(20) / 100
    markers = marker_set(body, [side + part for part in PARTS for side in "RL"])
    recording = marker_paths(body, markers, t, np.zeros((20, 55)))
    with warned(what="no event is a foot strike or foot off of a side: Right Event"):
        measured_gait(recording, mass=80.0, height=1.8, events=[Event(0.1, "Right Event")])
