"""Retimed motions as files and figures, and reports of their bounds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.motion import Retimed, retime
from torsor.simulation.timeline import timeline

ARM = torsor.library.ur5()
WAYPOINTS = np.array([[0, -1.5, 1, 0, 0, 0], [1, -1, 0.5, 0.5, 1, 0], [1.5, -0.5, 1, 1, -0.5, 1.0]])


@pytest.fixture(scope="module")
def motion() -> Retimed:
    found: Retimed = retime(ARM, WAYPOINTS, knots=20)
    return found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none/motion{}", "its folder does not exist"),
        ("folder{}", "it is a folder"),
        ("motion.txt", ".txt"),
        ("a\0b{}", "contains a null character"),
    ],
)
def test_files_that_cannot_be_written_are_named(motion: Retimed, name: str, words: str, tmp_path: Path) -> None:
    writers: list[tuple[Any, str]] = [(motion.save, each) for each in (".npz", ".json", ".csv")]
    writers += [(motion.save_points, ".yaml"), (motion.plot, ".png"), (lambda path: motion.save(path, 50.0), ".csv")]
    for write, suffix in writers:
        if name.startswith("folder"):
            (tmp_path / name.format(suffix)).mkdir(exist_ok=True)
        before = list(tmp_path.iterdir())
        with refused(words):
            write(tmp_path / name.format(suffix))
        assert list(tmp_path.iterdir()) == before


def test_a_failing_figure_leaves_the_old_file(motion: Retimed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from torsor.base.figures import shown_figure

    (tmp_path / "motion.png").write_text("old")

    def half(_: Any, path: Path, **_options: Any) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shown_figure(), "savefig", half)
    with pytest.raises(OSError, match="No space left"):
        motion.plot(tmp_path / "motion.png")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


def test_jerks_and_rates_of_forces_are_drawn_where_they_are_bounded() -> None:
    """Their integrals are accelerations and forces."""
    pytest.importorskip("matplotlib")
    rod, bounds = torsor.library.planar_chain(1), {"velocity": 2.0, "acceleration": 8.0, "torque": 99.0}
    found = retime(rod, [[0.0], [1.0]], **bounds, jerk=80.0, torque_rate=900.0)
    axes = found.plot().axes
    assert [each.get_title() for each in axes][4:] == ["Jerks", "Force rates"]
    assert [each.get_ylabel() for each in axes][4:] == ["rad/s³", "N m/s"]
    t = axes[0].lines[0].get_xdata()
    now = found.at(t)
    for panel, known in zip(axes[4:], (now.a, rod.inverse_dynamics(now.q, now.v, now.a)), strict=True):
        rate = panel.lines[0].get_ydata()
        sums = np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(t))
        assert sums == pytest.approx(known[1:, 0] - known[0, 0], abs=0.02 * np.abs(known).max())


def test_reactions_are_drawn_where_they_are_bounded() -> None:
    pytest.importorskip("matplotlib")
    found = retime(ARM, WAYPOINTS, reactions={"elbow_joint": {"force": 70.0}}, knots=20)
    panel = found.plot().axes[-1]
    elbow = ARM.link_names.index(next(joint.child for joint in ARM.joints if joint.name == "elbow_joint"))
    curve, bound = panel.lines
    now = found.at(curve.get_xdata())
    known = np.linalg.norm(ARM.joint_wrenches(now.q, now.v, now.a)[:, elbow, 3:], axis=1)
    assert (panel.get_title(), panel.get_ylabel()) == ("Reactions", "N")
    assert curve.get_ydata() == pytest.approx(known, rel=1e-9)
    assert bound.get_ydata().tolist() == [70.0, 70.0]


def test_a_motion_is_retimed_along_the_same_path(motion: Retimed) -> None:
    again = retime(ARM, motion, knots=20)
    assert np.array_equal(again.times, motion.times) and np.array_equal(again.q, motion.q)
    document = retime(ARM, motion.to_dict())
    assert document.duration == pytest.approx(retime(ARM, motion).duration, rel=0.02)
    with refused(what="the motion of ur5 has the coordinates shoulder_pan_joint"):
        retime(torsor.library.planar_chain(6), motion, velocity=1.0, acceleration=1.0)
    with refused(allowed="the document of a trajectory"):
        retime(ARM, {"torsor": {}})


def test_excess_is_that_of_dense_samples_in_short_corners() -> None:
    """The largest torque rate is between a break of the path and the next knot."""
    chain, bounds = torsor.library.planar_chain(2), {"velocity": 3.0, "acceleration": 20.0, "torque": 200.0}
    points = np.random.default_rng(3).uniform(-1.5, 1.5, (4, 2))
    found = retime(chain, points, tolerance=0.02, **bounds, torque_rate=200.0)
    k = np.repeat(np.arange(len(found.times) - 1), 100)
    t = found.times[k] + np.tile(np.linspace(0.0, 1.0, 100), len(found.times) - 1) * np.diff(found.times)[k]
    now = found._in(t, k)
    largest = np.abs(chain.force_rate(now.q, now.v, now.a, now.jerk)[1]).max() / 200.0
    assert largest == pytest.approx(max(use for name, use in found.largest.items() if "rate" in name), abs=5e-4)
    assert found.excess < 1e-3


def test_a_retimed_path_plays_in_the_viewer(motion: Retimed) -> None:
    played = timeline(motion)
    np.testing.assert_array_equal(played.q, motion.q)
    assert played.driven == ARM.coordinate_names and played.tau is not None and played.tau.shape == motion.tau.shape
