"""Figures and animations: they show the robot at its positions, and files are written atomically."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import torsor
from refusals import refused
from torsor.simulation import movie
from torsor.view.pictures import Drawing, animate, draw
from torsor.view.scene import Scene, Timeline


def swing(count: int = 6) -> Timeline:
    robot = torsor.library.planar_chain(2)
    q = np.linspace([0.0, 0.0], [0.5, 1.0], count)
    return Timeline(robot, "swing", np.linspace(0.0, 0.5, count), q, q, q)


def test_a_figure_shows_the_surfaces_where_the_links_are(tmp_path: Path) -> None:
    robot, q = torsor.library.planar_chain(2), np.array([0.3, 0.8])
    draw(robot, q, tmp_path / "arm.png")
    assert (tmp_path / "arm.png").read_bytes().startswith(b"\x89PNG")
    scene = Scene.of(robot)
    found = Drawing(Figure(), scene, q[None], 4000, (20.0, -50.0)).placed(q[None])[0].reshape(-1, 3)
    low, high = scene.corners(q)
    inside = (found >= low - 1e-9).all(axis=1) & (found <= high + 1e-9).all(axis=1)
    assert inside.all()
    tip = scene.poses(q)[2] @ [2 * robot.links[1].com[0], 0.0, 0.0, 1.0]
    assert np.linalg.norm(found - tip[:3], axis=1).min() < 0.1


def test_a_figure_of_a_motion_shows_five_instants() -> None:
    line = swing(20)
    drawing = Drawing(Figure(), Scene.of(line.robot), line.q, 500, (20.0, -50.0))
    (one, _), (five, colors) = drawing.placed(line.q[:1]), drawing.placed(line.every(5).q)
    assert len(five) == 5 * len(one) and np.ptp(five[..., 1]) > np.ptp(one[..., 1])
    assert colors[0, 3] < colors[-1, 3] == 1.0  # the last one is the most solid
    assert draw(line).axes[0].get_title() == "swing\n5 instants from 0 to 0.5 s"


def test_closed_loops_are_drawn_closed() -> None:
    assert draw(torsor.library.four_bar()).axes[0].get_title() == "four_bar"


def test_an_animation_has_its_pictures_and_its_rate(tmp_path: Path) -> None:
    path = animate(swing(), tmp_path / "swing.gif", rate=10)
    with Image.open(path) as found:
        assert found.n_frames == 5 and found.info["duration"] == 100 and found.info["loop"] == 0
        first = np.asarray(found.convert("RGB"), dtype=int)
        found.seek(4)
        assert np.abs(np.asarray(found.convert("RGB"), dtype=int) - first).max() > 60  # it moves


def test_an_interrupted_animation_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "old.gif"
    path.write_bytes(b"old")

    def show(k: int) -> None:
        if k == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        movie.write_movie(Figure(figsize=(1, 1)), show, 5, path, 10)
    assert path.read_bytes() == b"old" and [each.name for each in tmp_path.iterdir()] == ["old.gif"]


def test_progress_is_shown_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    movie.write_movie(Figure(figsize=(1, 1)), lambda k: None, 3, tmp_path / "x.gif", 10, progress=True)
    assert "drawing x.gif" in capsys.readouterr().err


def test_mp4_without_ffmpeg_names_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(movie.shutil, "which", lambda name: None)
    with refused(where="animate", fix="install ffmpeg, or write a .gif"):
        animate(swing(), tmp_path / "swing.mp4")


@pytest.mark.skipif(not movie.shutil.which("ffmpeg"), reason="ffmpeg is not installed")
def test_mp4_is_written_where_ffmpeg_is(tmp_path: Path) -> None:
    found = animate(swing(), tmp_path / "swing.mp4", rate=10).read_bytes()
    assert found[4:8] == b"ftyp" and len(found) > 1000


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: animate(swing(), path / "x.avi"), "x.avi"),
        (lambda path: animate(swing(), path / "x.gif", rate=0), "rate"),
        (lambda path: animate(swing(), path / "x.gif", slower=-1.0), "slower"),
        (lambda path: animate(torsor.library.two_link(), path / "x.gif"), "cannot play Robot"),
        (lambda path: draw(torsor.library.two_link(), [0.0]), "q"),
    ],
)
def test_bad_input_raises(call: object, words: str, tmp_path: Path) -> None:
    with refused(words):
        call(tmp_path)  # type: ignore[operator]
