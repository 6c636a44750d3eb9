"""``torsor view`` shows its arguments, on this machine only, and reports errors."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
import torsor.view.live
from pages import decoded
from torsor.cli.main import main
from torsor.view.scene import Scene, timeline

URDF = """<robot name="arm"><link name="hand"><visual><geometry><mesh filename="package://hands/hand.stl"/></geometry>
</visual></link></robot>"""


class Fake:
    """A viewer that records the arguments of ``show``."""

    url = "http://localhost:8080"

    def __init__(self) -> None:
        self.what: tuple[Any, ...] = ()
        self.options: dict[str, Any] = {}

    def __call__(self, *what: Any, **options: Any) -> "Fake":
        self.what, self.options = what, options
        return self

    def wait(self) -> None:
        pass


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    found = Fake()
    monkeypatch.setattr(torsor.view.live, "show", found)
    monkeypatch.setenv("TORSOR_MESHES", "")
    return found


def test_robots_and_saved_results_are_shown_together(fake: Fake, tmp_path: Path, capsys: Any) -> None:
    arm = torsor.library.two_link().to(device="casadi")
    torsor.simulate(arm, duration=0.02, step=0.01).save(tmp_path / "fall.npz")
    fall = str(tmp_path / "fall.npz")
    arguments = ["view", "two_link", "gough_stewart", fall, "--no-browser", "--swing", "--reference", fall]
    assert main(arguments) == 0
    assert type(fake.options.pop("reference")).__name__ == "Trajectory"
    assert [type(each).__name__ for each in fake.what] == ["Robot", "ParallelRobot", "Trajectory"]
    place = {"host": "localhost", "port": 8080, "open": False, "block": False}
    assert fake.options == {**place, "swing": True, "names": None}
    assert "Ctrl-C" in capsys.readouterr().out


def test_a_swing_is_tracked_by_a_controller_with_a_model_that_is_too_light(fake: Fake) -> None:
    arm = torsor.library.two_link()
    assert main(["view", "two_link", "--track"]) == 0
    (run,), plan = fake.what, fake.options["reference"]
    np.testing.assert_allclose(run.robot.mass, 1.1 * arm.mass)
    assert plan.robot == arm and plan.times[-1] == run.times[-1] == 12.0
    error = np.abs(run.q - plan.at(run.times).q).max()
    assert 1e-4 < error < 0.05 < np.ptp(plan.q, axis=0).min()


def test_elastic_joints_are_tracked_by_their_motors(fake: Fake) -> None:
    assert main(["view", "elastic_arm", "--track"]) == 0
    (run,), plan = fake.what, fake.options["reference"]
    assert 1e-4 < np.abs(run.q - plan.at(run.times).q)[:, :3].max() < 0.01
    twist = plan.q[:, 3] - plan.q[:, 2]
    assert np.abs(twist).max() > 1e-3 and np.abs(plan.tau[:, 2]).max() < 1e-9  # no drive beside the motor


def test_a_legged_robot_moves_its_base_on_hard_ground(fake: Fake) -> None:
    assert main(["view", "quadruped", "--track"]) == 0
    (run,), plan = fake.what, fake.options["reference"]
    feet = [plan.robot.pose(plan.q, f"{leg}_foot")[:, :3, 3] for leg in ("fl", "hr")]
    assert max(np.ptp(foot, axis=0).max() for foot in feet) < 1e-8  # the reference holds the feet
    assert np.ptp(plan.q[:, 2]) > 0.1 and np.abs(run.at(plan.times).q[:, :3] - plan.q[:, :3]).max() < 0.02
    line = timeline(run)
    assert line.ground is not None and line.ground.shape[1] == 4
    weight = 9.81 * run.robot.mass
    np.testing.assert_allclose(np.median(line.ground[500:, :, 5].sum(axis=1)), weight, rtol=0.02)
    np.testing.assert_allclose(line.ground[500:, :, 2], 0.0, atol=1e-9)


def test_only_one_robot_is_tracked(fake: Fake, capsys: Any) -> None:
    assert main(["view", "two_link", "stanford", "--track"]) == 1
    assert "allowed: one robot, without --reference" in capsys.readouterr().err
    assert fake.what == ()


def test_a_page_of_a_tracked_swing_plays_it_beside_its_reference(fake: Fake, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    assert main(["view", "two_link", "--track", "-o", str(path)]) == 0
    actors = decoded(path.read_text(encoding="utf-8"))["actors"]
    assert [actor["title"] for actor in actors] == ["two_link, 10 % heavier than its model", "reference"]
    assert [actor["times"][-1] for actor in actors] == [12.0, 12.0]
    track, plan = (np.stack([np.interp(range(13), a["times"], x) for x in a["com"].T]) for a in actors)
    assert 1e-4 < np.abs(track - plan).max() < 0.05
    assert fake.what == ()


@pytest.mark.parametrize("name", ["ur5", "four_bar", "free_flying_arm"])
def test_a_page_of_a_swing_plays_one_period(name: str, tmp_path: Path) -> None:
    path = tmp_path / "swing.html"
    assert main(["view", name, "--swing", "-o", str(path)]) == 0
    (actor,) = decoded(path.read_text(encoding="utf-8"))["actors"]
    assert np.abs(actor["poses"][0] - actor["poses"][-1]).max() < 1e-6
    assert np.ptp(actor["poses"], axis=0).max() > 0.05 and actor["drives"]["names"]


def test_a_robot_without_sliders_has_no_swing(tmp_path: Path, capsys: Any) -> None:
    arm = torsor.library.four_bar().with_active([])
    arm.save(tmp_path / "bar.toml")
    assert main(["view", str(tmp_path / "bar.toml"), "--swing", "-o", str(tmp_path / "bar.html")]) == 1
    assert "no coordinate can swing" in capsys.readouterr().err


def test_folders_of_meshes_are_allowed_by_name(fake: Fake, tmp_path: Path) -> None:
    assert main(["view", "two_link", "--meshes", str(tmp_path)]) == 0
    assert os.environ["TORSOR_MESHES"] == str(tmp_path)


def test_what_is_no_robot_and_no_result_is_an_error(fake: Fake, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "no.npz").write_text("no archive")
    for arguments in (["no_such_robot"], [str(tmp_path / "no.npz")], ["two_link", "--meshes", str(tmp_path / "none")]):
        assert main(["view", *arguments]) == 1
        assert capsys.readouterr().err.startswith("error: ")
    assert fake.what == ()


def test_a_page_is_written_without_a_viewer(tmp_path: Path) -> None:
    path = tmp_path / "robots.html"
    assert main(["view", "two_link", "stanford", "-o", str(path)]) == 0
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_page_shows_a_result_and_its_reference(tmp_path: Path) -> None:
    run, plan, path = tmp_path / "run.npz", tmp_path / "plan.npz", tmp_path / "both.html"
    for file, q in ((run, 0.1), (plan, 0.2)):
        fall = torsor.simulate(torsor.library.two_link().to(device="casadi"), [q, 0.0], duration=0.02, step=0.01)
        fall.save(file)
    assert main(["view", str(run), "--reference", str(plan), "-o", str(path)]) == 0
    shown = decoded(path.read_text(encoding="utf-8"))["actors"]
    assert [(actor["title"], actor.get("reference")) for actor in shown] == [(str(run), None), ("reference", True)]


@pytest.mark.parametrize("output", [True, False])
def test_missing_meshes_name_the_option_that_finds_them(
    fake: Fake, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, output: bool
) -> None:
    def show(robot: Any, **_: Any) -> Fake:
        Scene.of(robot)
        return fake

    monkeypatch.setattr(torsor.view.live, "show", show)
    file = tmp_path / "arm.urdf"
    file.write_text(URDF)
    assert main(["view", str(file), *(["-o", str(tmp_path / "arm.html")] if output else [])]) == 0
    said = capsys.readouterr().err
    assert "package://hands/hand.stl" in said and "fix: pass its folder, --search FOLDER" in said


def test_a_saved_retimed_motion_is_played(tmp_path: Path) -> None:
    arm, path = torsor.library.planar_chain(1), tmp_path / "line.html"
    line = torsor.motion.retime(arm, [[0.0], [1.0]], velocity=1.0, acceleration=2.0)
    played = timeline(line)
    assert played.times[-1] == line.duration and np.array_equal(played.q, line.q) and played.driven == ("joint1",)
    line.save(tmp_path / "line.npz")
    assert main(["view", str(tmp_path / "line.npz"), "-o", str(path)]) == 0
    assert path.stat().st_size > 0
