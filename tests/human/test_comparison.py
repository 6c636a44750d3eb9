"""Walks are compared with recorded people in the same signs and units; a walk agrees with its own files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from human import walks
from human.test_stride import _moved
from refusals import refused, warned
from torsor.human import REFERENCES, LikenessTable, Reference, Stride, recorded_walk, recordings, write_opensim
from torsor.human.comparison.given import given_references
from torsor.human.comparison.recorded import CYCLE_TITLES, SIDE_COLOURS
from torsor.human.comparison.table import SAGITTAL
from torsor.human.gait import figures
from torsor.human.gait.curves import Energy
from torsor.human.gait.references import LABELS, SOURCES, in_words
from torsor.human.measured import MeasuredDynamics
from torsor.human.terms.problem import Samples

T = walks.times()


@pytest.fixture(scope="module")
def stride() -> Stride:
    """A stride whose curves are smooth ones near those of people; nothing is solved or compiled."""
    stride = Stride(_moved(1, 0))
    names, s, body = stride.body.coordinate_names, stride.s, stride.body
    q, v, torques = np.zeros((3, len(s), len(names)))
    forces = np.zeros((len(s), 2, 3))

    def smooth(name: str, side: str) -> tuple[np.ndarray, np.ndarray]:
        spectrum = np.fft.rfft(walks.curve(name, walks.STRIDE * (s[:-1] + 0.1), side))
        spectrum[12:] = 0.0
        k = 2j * np.pi * np.arange(len(spectrum)) / stride.duration
        x, rate = np.fft.irfft(spectrum, 400), np.fft.irfft(k * spectrum, 400)
        return np.append(x, x[0]), np.append(rate, rate[0])

    for k, side in enumerate("rl"):
        word = {"r": "right", "l": "left"}[side]
        for name in walks.ANGLES:
            x, rate = smooth(name, side)
            q[:, names.index(f"{word}_{name}")], v[:, names.index(f"{word}_{name}")] = np.radians(x), np.radians(rate)
        for name, against in (("hip_extension", "hip"), ("knee_extension", "knee"), ("ankle_plantarflexion", "ankle")):
            torques[:, names.index(f"{word}_{against}_flexion")] = -body.mass * smooth(name, side)[0]
        up = np.maximum(smooth("vertical", side)[0], 0.0)
        forces[:, k, 1] = up * stride.weight / 100
        forces[:, k, 2] = np.where(up > 0, smooth("forward", side)[0], 0.0) * stride.weight / 100
    empty = np.zeros((len(s), 2, 3, 3))
    stride.__dict__["energy"] = Energy(0.6, body.mass, {}, 0.0, 0.0, 0.0)
    stride.__dict__["samples"] = Samples(
        q, v, 0 * v, torques, forces, 0 * forces, empty, s, s, *np.zeros((2, len(s), 2))
    )
    return stride


def _same(found: LikenessTable, names: Any, rms: float = 1e-6) -> None:
    for name in names:
        assert found[name].rms < rms, name
        assert found[name].r2 > 1 - 1e-6, name


def test_a_walk_is_like_its_own_files(stride: Stride, tmp_path: Path) -> None:
    files = write_opensim(stride, tmp_path / "walk.mot")
    again = recorded_walk(files.motion, files.forces, files.moments, mass=stride.body.mass)
    found = stride.likeness(again)
    _same(found, [name for name in SAGITTAL if not name.endswith("power")])
    _same(found, ("hip_power", "knee_power", "ankle_power"), rms=1e-4)  # rates of 401 samples
    assert again.strides == ((0.0, stride.duration),)
    # The other leg strikes in the middle of these files.
    middle = recorded_walk(files.motion, files.forces, side="left")
    assert middle.strides[0][0] == pytest.approx(0.5 * stride.duration, abs=0.02)
    assert "joined where the file ends" in str(middle)
    late = middle.strides[0][0] / stride.duration - 0.5  # the force needs a while to pass the threshold
    expected = np.interp((stride.s + late) % 1.0, stride.s, again.curves["knee_flexion"].mean)
    assert np.abs(middle.curves["knee_flexion"].mean - expected).max() < 0.01
    stride.save(tmp_path / "walk.csv")
    whole = stride.likeness(tmp_path / "walk.csv")
    _same(whole, SAGITTAL)
    _same(stride.likeness(stride), SAGITTAL)
    assert whole.mean.correlation == pytest.approx(1.0, abs=1e-12)
    assert whole.mean.curves == 11 and whole.mean.rms_sd is None


def test_the_table_of_a_walk_has_both_legs_and_both_feet(stride: Stride, tmp_path: Path) -> None:
    stride.save(tmp_path / "walk.csv")
    table = np.genfromtxt(tmp_path / "walk.csv", delimiter=",", names=True, deletechars="")
    knee, other = (table[f"angle_{word}knee_flexion_[degrees]"] for word in ("", "other_"))
    assert (knee == stride.angle("knee_flexion")).all()
    np.testing.assert_allclose(other[:201], knee[200:], atol=1e-9)  # half a stride later
    moment = table["moment_other_knee_extension_[N_m/kg]"]
    np.testing.assert_allclose(moment[:201], stride.moment("knee_extension")[200:], atol=1e-9)
    for foot in ("own", "other"):
        assert f"force_{foot}_foot_up_[body_weights]" in table.dtype.names
        assert f"pressure_{foot}_foot_z_[m]" in table.dtype.names


def test_strides_of_a_recording_are_cut_at_heel_strikes_and_averaged() -> None:
    walk = recorded_walk(walks.angles(T), walks.moments(T), walks.forces(T), label="Someone 2020")
    assert [round(first / walks.STRIDE, 2) for first, _ in walk.strides] == [0.1, 1.1, 2.1]
    knee = walk.curves["knee_flexion"]
    assert knee.label == "Someone 2020" and knee.sd is not None and knee.sd.max() < 0.01
    assert knee.mean[0] == pytest.approx(3.9, abs=0.1) and knee.mean.max() == pytest.approx(57.8, abs=0.1)
    # The mass is what the ground carries: of the curves taken here a little more than 70 kg.
    assert walk.mass == pytest.approx(walks.MASS, rel=0.02)
    given = recorded_walk(walks.angles(T), walks.moments(T), walks.forces(T), mass=walks.MASS)
    for name in ("hip_extension", "knee_extension", "ankle_plantarflexion", "vertical", "forward", "medial"):
        found = LikenessTable([(REFERENCES[name], given.curves[name].mean)])[name]
        assert found.r2 > 0.999, name
        assert found.rms < 0.02 * np.ptp(REFERENCES[name].mean), name
    left = recorded_walk(walks.angles(T), walks.forces(T), side="left")
    assert np.abs(left.curves["knee_flexion"].mean - knee.mean).max() < 0.2
    assert "3 strides of 1.1 s" in str(walk)


def test_the_gait_cycle_is_drawn_over_the_band_of_people_with_toe_off() -> None:
    sides = [recorded_walk(walks.angles(T), walks.moments(T), walks.forces(T), side=side) for side in ("right", "left")]
    figure = sides[0].plot(None, sides[1])
    titles = [axes.get_title() for axes in figure.axes]
    assert len(titles) == 9 and titles[3:6] == ["knee flexion", "knee extension moment", "knee power"]  # a row
    knee = figure.axes[titles.index("knee flexion")]
    band, lines = knee.collections[-1], knee.lines
    middle = REFERENCES["knee_flexion, children"]
    assert middle.sd is not None
    top = band.get_paths()[0].vertices[:, 1].max()
    np.testing.assert_allclose(top, (middle.mean + middle.sd).max())
    for line, side in zip(lines, sides, strict=False):
        np.testing.assert_allclose(line.get_ydata(), side.curves["knee_flexion"].mean)
        assert line.get_linestyle() == "-" and line.get_color() == SIDE_COLOURS[side.side]
    toe_off, force = float(lines[2].get_xdata()[0]) / 100, sides[0].curves["vertical"]
    assert 0.5 < toe_off < 0.75
    assert force.at(toe_off + 0.02) < 0.025 * force.mean.max() < force.at(toe_off - 0.02)
    assert knee.get_xlim() == (0.0, 100.0) and figure.axes[-1].get_xlabel() == "gait cycle (%)"
    assert {"toe-off, left", "children, mean ± SD (Schwartz 2008)"} < {
        text.get_text() for text in figure.legends[0].texts
    }


def test_a_walk_without_joint_curves_has_no_gait_cycle() -> None:
    with refused("there are no joint curves to plot (sagittal)", allowed="hip_flexion"):
        recorded_walk(walks.forces(T)).plot()


def test_signs_and_units_of_other_files_become_ours() -> None:
    plain = recorded_walk(walks.angles(T), walks.moments(T), walks.forces(T))
    extended = recorded_walk(walks.angles(T, sign=-1.0), walks.moments(T, sign=-1.0), walks.forces(T))
    radians = walks.angles(T, factor=np.pi / 180, degrees=False)
    per_kg = recorded_walk(radians, walks.moments(T, factor=1.0), walks.forces(T))
    with warned(what="the person moves backwards in these axes"):
        turned = recorded_walk(walks.angles(T), walks.forces(T, turned=-1.0))
    for other in (extended, per_kg, turned):
        for name, curve in other.curves.items():
            scale = plain.mass / walks.MASS if name.endswith(("extension", "plantarflexion", "power")) else 1.0
            expected = plain.curves[name].mean * (scale if other is per_kg else 1.0)
            assert np.abs(curve.mean - expected).max() < 1e-9 * np.abs(expected).max(), name


def test_a_recording_that_begins_within_a_stride_is_joined_from_two() -> None:
    late = T[(T > 0.3 * walks.STRIDE) & (T < 1.35 * walks.STRIDE)]
    short = T[T < 1.4 * walks.STRIDE]
    walk = recorded_walk(walks.angles(late), walks.forces(short))
    assert walk.curves["knee_flexion"].mean.max() == pytest.approx(57.8, abs=0.2)
    assert "joined where the file ends: hip_flexion" in str(walk)


def test_measured_dynamics_are_compared_with_their_ground_forces(stride: Stride) -> None:
    names = tuple(f"right_{name}" for name in walks.ANGLES)
    q = np.stack([np.radians(walks.curve(name, T, "r")) for name in walks.ANGLES], axis=1)
    tau = np.stack([-walks.MASS * walks.curve(name, T, "r") for name in walks.MOMENTS], axis=1)
    zero, rates = np.zeros((len(T), 3)), np.gradient(q, T, axis=0)
    weight = walks.MASS * 9.81
    measured = MeasuredDynamics(names, T, q, rates, rates, tau, zero, zero, weight, walks.forces(T))
    found = stride.likeness(measured)
    assert found.mean.curves == 11 and found["knee_flexion"].r2 > 0.99 and found["vertical"].r2 > 0.95
    with refused(fix="pass the files of one"):
        stride.likeness(replace(measured, ground=None))


def test_references_are_given_by_name_mapping_file_and_list(stride: Stride, tmp_path: Path) -> None:
    knee = REFERENCES["knee_flexion"]
    mean, sd = knee.mean, np.full(11, 6.0)
    assert list(stride.likeness("knee_flexion")) == ["knee_flexion"]
    assert {row.source for row in stride.likeness("Schwartz 2008").values()} == {"children"}
    for given in ({"knee_flexion": (mean, sd)}, {"knee_flexion": mean, "knee_flexion_sd": sd}, {"mine": knee}, knee):
        assert stride.likeness(given)["knee_flexion"].rms_sd == stride.likeness("knee_flexion")["knee_flexion"].rms_sd
    strides = stride.likeness({"knee_flexion": np.stack([mean - 2.0, mean + 2.0])})["knee_flexion"]
    assert strides.width == pytest.approx(2 * np.sqrt(2))
    np.savez(tmp_path / "mean.npz", knee_flexion=mean)
    rows = "\n".join(f"{10 * k},{angle},6" for k, angle in enumerate(mean.tolist()))
    (tmp_path / "mean.csv").write_text(f"percent,knee_flexion [degrees],knee_flexion_sd\n{rows}\n")
    several = stride.likeness([tmp_path / "mean.npz", str(tmp_path / "mean.csv"), tmp_path / "mean.csv", stride])
    names = ["knee_flexion", "knee_flexion, mean.csv", "knee_flexion, mean.csv (2)"]
    assert list(several)[:3] == names and several[names[1]].width == pytest.approx(6.0)
    assert list(several.means) == ["mean.npz", "mean.csv", "mean.csv (2)", "predicted, 1.2 m/s"]


def test_correlations_keep_their_sign() -> None:
    knee = REFERENCES["knee_flexion"]
    found = LikenessTable([(knee, -knee.mean)])
    assert found.mean.correlation == pytest.approx(-1.0) and found["knee_flexion"].r2 == pytest.approx(1.0)
    assert "-1.000" in str(found) and "-1.000" in found._repr_html_()


def test_the_table_prints_shows_and_becomes_json(stride: Stride) -> None:
    found = stride.likeness(["Schwartz 2008", {"vertical": np.ones(11)}])
    text, html = str(found), found._repr_html_()
    for words in ("Compared with Schwartz 2008 and", "mean of 9 sagittal", "hip extension moment", "vertical force"):
        assert words in text, words
        assert words in html, words
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["curves"]["vertical"]["r2"] == 0 and plain["curves"]["vertical"]["rms_sd"] is None
    assert plain["means"]["Schwartz 2008"]["curves"] == 9
    odd = LikenessTable([(Reference("force", "vertical", "[red]x\x1b.csv", np.ones(3)), np.ones(3))])
    assert "[red]x" in str(odd) and "\x1b" not in str(odd)
    assert stride.likeness().title == LikenessTable([]).title == "Compared with people"
    assert stride.likeness("list")["list"].title == "pelvis list"


def test_sagittal_curves_all_have_a_reference_and_legends_name_author_and_year() -> None:
    assert set(SAGITTAL) <= set(REFERENCES) and set(LABELS) == set(SOURCES)
    power = REFERENCES["ankle_power"]
    assert power.unit == "W/kg" and power.label == "Schwartz 2008" and power.mean.max() == pytest.approx(2.8)
    # Ankles of these children do work: the mean of their power over the stride is positive, that of knees negative.
    assert power.mean.mean() > 0 > REFERENCES["knee_power"].mean.mean()


def test_a_panel_shows_the_references_with_author_and_year(stride: Stride) -> None:
    matplotlib = pytest.importorskip("matplotlib.figure")
    walk = recorded_walk(walks.angles(T), walks.forces(T), label="Someone 2020")
    given = stride.references([walk, "Schwartz 2008"]).references
    for name, labels in (("knee_flexion", ["Someone 2020", "Schwartz 2008"]), ("ankle_power", ["Schwartz 2008"])):
        axes = matplotlib.Figure().subplots()
        figures._compare(axes, stride, name, [each for each in given if each.curve == name], figures._colours(given))
        assert [each.get_text() for each in axes.get_legend().get_texts()] == labels
        assert len(axes.collections) == 1  # the band of the first reference that has one
    axes = matplotlib.Figure().subplots()
    built_in = stride.references().references
    figures._legend(axes, stride, built_in, figures._colours(built_in))
    styles = {str(line.get_label()).split(",")[0]: line.get_linestyle() for line in axes.get_lines()}
    assert styles["Falisse 2019"] == ":"  # never the first of a panel
    assert styles["Schwartz 2008"] == "--" and styles["predicted"] == "-"


def _swapped() -> recordings.GroundForces:
    return walks.forces(T).renamed({"right": "left", "left": "right"})


def _broken() -> recordings.GroundForces:
    forces = np.array(walks.forces(T).forces)
    forces[100] = np.nan
    return replace(walks.forces(T), forces=forces)


@pytest.mark.parametrize(
    ("sources", "options", "words"),
    [
        ([walks.angles(T)], {}, "there are no ground forces from which to detect strides"),
        (
            [walks.angles(T, factor=np.pi / 180), walks.forces(T)],
            {},
            "is 0.9669 degrees",
        ),
        (
            [walks.angles(T, degrees=False), walks.forces(T)],
            {},
            "these are degrees: set",
        ),
        (
            [walks.angles(T[:150]), walks.forces(T[:150])],
            {},
            "too short for one stride of the right foot, with heel strikes",
        ),
        ([walks.angles(T[:2])], {}, "0 to 0.005 s is too short for one stride"),
        (
            [walks.angles(T), walks.forces(T)],
            {"mass": 50.0},
            "50.0 kg, but the ground carries 70.9 kg",
        ),
        ([walks.angles(T), walks.moments(T)], {"strikes": [0.11, 1.21]}, "hip_extension"),
        (
            [walks.moments(T, factor=1000.0)],
            {},
            "the largest moment is 1186, which is implausible for walking in any unit",
        ),
        ([walks.angles(T), _swapped()], {}, "knee flexes most while the right foot is loaded"),
        ([_broken()], {}, "the vertical force is missing at 0.5 s (row 101)"),
        (
            [walks.forces(T).renamed({"right": "plate 1"})],
            {},
            "no ground force of the right foot",
        ),
        ([walks.angles(T), walks.angles(T)], {}, "a second curve of hip_flexion"),
        ([walks.angles(T)], {"strikes": [1.0, 0.5]}, "strikes"),
        ([3], {}, "a path, a recording"),
        ([], {}, "no file or result is given"),
    ],
)
def test_recordings_that_cannot_be_compared_say_why(sources: list[Any], options: dict[str, Any], words: str) -> None:
    with refused(words):
        recorded_walk(*sources, **options)


def test_gaps_leave_out_strides_and_then_curves() -> None:
    angles = walks.angles(T)
    values = np.array(angles.values)
    values[60:70, 1] = np.nan  # in the first stride
    walk = recorded_walk(replace(angles, values=values), walks.forces(T))
    assert walk.curves["knee_flexion"].mean.max() == pytest.approx(57.8, abs=0.2)
    values[::50, 1] = np.nan
    with warned(what="omitted because of gaps or other times: knee_flexion"):
        walk = recorded_walk(replace(angles, values=values), walks.forces(T))
    assert "knee_flexion" not in walk.curves and "hip_flexion" in walk.curves


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("walk.txt", "a", "a recording: .mot, .sto, .csv"),
        ("walk.trc", "a", "torsor.human.measured"),
        ("walk.csv", "a,b\n1,2\n", "no column is named time"),
        ("walk.csv", "percent,knee_flexion [furlong]\n0,1\n100,2\n", "furlong"),
        ("walk.csv", "time,a\n0,1\n1,2\n", "no column is a known curve of the right side: a"),
        ("walk.mot", "hello", "neither endheader nor a line of names"),
        ("walk.npz", "hello", "not curves of a walk"),
    ],
)
def test_files_that_are_no_recording_say_why(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with refused(words):
        given_references(tmp_path / name, "right", Stride)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "names of built-in references"),
        ([], "the list is empty"),
        ({}, "the mapping is empty"),
        ("childrn", "childrn"),
        ("missing.mot", "no such file"),
        ({"knee": np.ones(11)}, "knee"),
        ({"knee_flexion": [1.0, 2.0]}, "values"),
        ({"knee_flexion": [np.nan] * 11}, "values"),
        ({"knee_flexion": (np.ones(11), -np.ones(11))}, "11 non-negative numbers"),
    ],
)
def test_wrong_references_say_what_is_allowed(given: Any, words: str) -> None:
    with refused(words):
        given_references(given, "right", Stride)


def test_the_gait_cycle_is_drawn_over_given_norms(tmp_path: Path) -> None:
    walk = recorded_walk(walks.angles(T), walks.moments(T), walks.forces(T))
    mean, sd = np.linspace(0.0, 60.0, 51), np.full(51, 4.0)
    rows = np.stack([np.linspace(0.0, 100.0, 51), mean, sd], axis=1)
    head = "percent,knee_flexion [deg],knee_flexion_sd [deg]"
    np.savetxt(tmp_path / "norms.csv", rows, delimiter=",", header=head, comments="")
    for norms in ({"knee_flexion": (mean, sd)}, str(tmp_path / "norms.csv")):
        figure = walk.plot(None, norms)
        knee = next(axes for axes in figure.axes if axes.get_title() == "knee flexion")
        assert len(knee.collections) == 2  # of the strides and the norms, which replace the band of the children
        assert knee.collections[1].get_paths()[0].vertices[:, 1].max() == pytest.approx(64.0)
        assert any(max(line.get_ydata()) == pytest.approx(60.0) for line in knee.lines)
    assert "mean ± SD (norms.csv)" in {text.get_text() for text in figure.legends[0].texts}
    with refused(value="knee", what="there is no curve 'knee'"):
        walk.plot(None, {"knee": mean})
    for heading, factor, fault in (("[rad]", 1, "is in rad, and its curve in deg"), ("[deg]", -1, "is -4")):
        table = tmp_path / "wrong.csv"
        np.savetxt(table, rows * [1, 1, factor], delimiter=",", header=head[:-5] + heading, comments="")
        with refused(what=fault, where="wrong.csv"):
            walk.plot(None, str(table))
    np.savetxt(table, rows[5:-10], delimiter=",", header=head, comments="")
    with refused(what="percent is from 10 to 80", allowed="the whole stride: 0 to 100"):
        walk.plot(None, str(table))


def test_a_table_with_times_and_shares_of_the_stride_is_one_stride(tmp_path: Path) -> None:
    table, shares = tmp_path / "stride.csv", np.linspace(0.0, 1.0, 401)
    times, knee = 3.0 + walks.STRIDE * shares, walks.curve("knee_flexion", walks.STRIDE * (shares + 0.1), "r")

    def save(heading: str, column: np.ndarray) -> None:
        header = f"time [s],{heading},angle knee_flexion [degrees]"
        np.savetxt(table, np.stack([times, column, knee], axis=1), delimiter=",", header=header, comments="")

    for heading, column in (("share of the stride [1]", shares), ("percent", 100 * shares)):
        save(heading, column)
        walk = recorded_walk(table)
        assert walk.strides == ((3.0, 3.0 + walks.STRIDE),)
        np.testing.assert_allclose(walk.curves["knee_flexion"].mean, knee, atol=1e-9)
    for column, fault in (
        (0.9 * shares, "percent is from 0 to 0.9"),
        (80 * shares + 20, "percent is from 20 to 100"),
        (200 * shares % 100, "percent does not rise"),
    ):
        save("percent", column)
        with refused(what=fault, where="stride.csv"):
            recorded_walk(table)


def test_a_table_of_gait_cycles_has_names_of_variables_and_reads_back(tmp_path: Path) -> None:
    right, left = (
        recorded_walk(walks.angles(T), walks.moments(T), walks.forces(T), side=side) for side in ("right", "left")
    )
    right.save(tmp_path / "cycle.csv", left)
    heads = (tmp_path / "cycle.csv").read_text().splitlines()[0].split(",")
    assert all(head.isidentifier() for head in heads) and len(set(heads)) == len(heads)
    assert {"percent", "left_knee_extension_Nm_per_kg", "right_vertical_sd_percent_of_weight"} < set(heads)
    for walk in (right, left):
        back = recorded_walk(tmp_path / "cycle.csv", side=walk.side)
        assert set(back.curves) == set(walk.curves)
        for name, curve in walk.curves.items():
            np.testing.assert_allclose(back.curves[name].mean, curve.mean, atol=1e-9)
            np.testing.assert_allclose(back.curves[name].sd, curve.sd, atol=1e-9)


def test_the_band_of_hip_flexion_has_the_zero_of_the_body() -> None:
    walk, children = recorded_walk(walks.angles(T), walks.forces(T)), REFERENCES["hip_flexion, children"]
    lowered = "band of hip flexion lowered by 11.6° (pelvic tilt)"
    for is_opensim, shift in ((False, 0.0), (True, 11.6)):
        figure = replace(walk, is_opensim=is_opensim).plot()
        top = figure.axes[0].collections[-1].get_paths()[0].vertices[:, 1].max()
        assert children.sd is not None and top == pytest.approx((children.mean + children.sd).max() + shift)
        assert (lowered in {text.get_text() for text in figure.legends[0].texts}) is not is_opensim


def test_a_band_has_the_mean_and_the_deviation_of_the_same_people() -> None:
    """The tutorial has only means; the widths beside them are those of the children."""
    means = {name: REFERENCES[name] for name in ("hip_adduction", "hip_rotation", "list", "yaw")}
    assert {each.sd_source for each in means.values()} == {"children"}
    plain = {name: each._replace(sd=None) for name, each in means.items()}
    walk = recorded_walk(walks.angles(T), walks.moments(T), walks.forces(T))
    walk = replace(walk, curves=walk.curves | plain)
    children = "children, mean ± SD (Schwartz 2008)"
    for others in ((), ("OpenSim tutorial",)):
        figure = walk.plot(None, *others, planes="all")
        labels = {text.get_text() for text in figure.legends[0].texts}
        assert children in labels and not any("SD" in label and "tutorial" in label for label in labels)
        for axes in figure.axes:
            bands = [band.get_label() for band in axes.collections if band.get_label().startswith(("children", "mean"))]
            no_band = axes.get_title() in [CYCLE_TITLES.get(name, in_words(name, "angle")) for name in plain]
            no_band |= "force" in axes.get_title()
            assert bands == ([] if no_band else [children]), axes.get_title()
    rotation = next(axes for axes in walk.plot(planes="other").axes if axes.get_title() == "hip internal rotation")
    [line] = [line for line in rotation.lines if line.get_label() == "mean (OpenSim tutorial)"]
    np.testing.assert_array_equal(line.get_ydata(), means["hip_rotation"].mean)
