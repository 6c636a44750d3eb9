"""Every result is drawn by one call, with units, limits, legends, titles, and colours that do not repeat."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from torsor import human, library
from torsor.base.figures import MAX_CURVES, Bound, Quantity, colours_of, plot_quantities
from torsor.human.body.drawing import landmarks
from torsor.human.tasks import figures as task_figures
from torsor.mechanism.friction import friction_jumps
from torsor.view import plot_motion

from . import small as made


@pytest.mark.parametrize("kind", made.KINDS)
def test_every_result_has_one_call_for_its_figure(kind: str, tmp_path: Path) -> None:
    figure = made.results()[kind].plot(tmp_path / "figure.png" if kind == "workspace" else None)
    assert kind != "workspace" or (tmp_path / "figure.png").stat().st_size > 5000
    title = figure.get_suptitle()
    assert any(name in title for name in ("two_link", "three_rrr"))  # who
    assert len(title) > 30  # what and how
    for axes in figure.axes:
        assert axes.get_ylabel(), axes.get_title()


def test_many_coordinates_become_panels_with_legends_and_different_colours() -> None:
    robot = library.random_tree(24, seed=3)  # 52 coordinates in rad and m, quaternions, motors
    T, rng = np.linspace(0.0, 1.0, 5), np.random.default_rng(0)
    samples = torsor.Trajectory(robot, T, *(rng.normal(size=(5, n)) for n in (robot.nq, *[robot.nv] * 3)))
    figure = samples.plot(what=("q", "v"))
    colours: dict[str, str] = {}
    for axes in figure.axes:
        texts = [text.get_text() for text in axes.get_legend().get_texts()]
        assert 0 < len(texts) <= MAX_CURVES
        own = {line.get_color() for line in axes.get_legend().get_lines()}
        assert len(own) == len(texts)
        for name, line in zip(texts, axes.get_legend().get_lines(), strict=True):
            assert colours.setdefault(name, line.get_color()) == line.get_color()
    assert len(set(colours.values())) == len(colours) >= robot.nq
    assert {axes.get_ylabel() for axes in figure.axes} == {"rad", "m", "1", "rad/s", "m/s"}


def test_the_colours_of_55_names_differ_and_those_of_a_panel_are_far_apart() -> None:
    names = [f"joint{k}" for k in range(55)]
    panels = [names[k : k + MAX_CURVES] for k in range(0, 55, MAX_CURVES)]
    found = colours_of(*panels)
    assert len(set(found.values())) == 55
    for panel in panels:
        rgb = np.array([[int(found[name][k : k + 2], 16) for k in (1, 3, 5)] for name in panel], dtype=float)
        apart = np.abs(rgb[:, None] - rgb[None]).sum(axis=-1)[np.triu_indices(len(panel), 1)]
        assert apart.min() > 60


def test_torque_rates_are_drawn_where_they_are_bounded() -> None:
    figure = made.results()["motion"].plot()
    panels = {axes.get_title(): axes for axes in figure.axes}
    rates = panels["Force rates"]
    assert rates.get_ylabel() == "N m/s"
    dotted = {float(line.get_ydata()[0]) for line in rates.lines if line.get_linestyle() == ":"}
    assert dotted == {-500.0, 500.0}
    for words in ("dotted lines: bounds", "minimise Time", "ipopt: optimal"):
        assert words in figure.get_suptitle()
    free = torsor.motion.MotionProblem(
        made.ARM, torsor.motion.Phase(1.0, points=6), torsor.motion.Effort(), made.problem().constraints[:2]
    )
    assert "Force rates" not in [axes.get_title() for axes in free.solve().plot().axes]


def test_limits_are_drawn_where_they_are_near() -> None:
    t, curve = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5)[:, None]
    for limit, drawn in ((1.2, True), (100.0, False)):
        bound = Bound(0.0, 1.0, np.array([-np.inf]), np.array([limit]))
        figure = plot_quantities([Quantity("Positions", ["a"], ["rad"], curve, (bound,), fits=False)], t, "arm")
        assert any(line.get_linestyle() == ":" for line in figure.axes[0].lines) is drawn
        assert ("bounds" in figure.get_suptitle()) is drawn


def test_friction_jumps_are_drawn_as_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = library.planar_chain(1).with_friction("joint1", 1.0)
    t = np.linspace(0.0, 1.0, 21)
    q, v, a = np.cos(9 * t), -9 * np.sin(9 * t), -81 * np.cos(9 * t)
    jumps = friction_jumps(robot, v[:, None])
    assert jumps[:, 0].nonzero()[0].tolist() == [0, 6, 13]  # from rest, and where the velocity changes its sign
    assert not friction_jumps(library.planar_chain(1), v[:, None]).any()
    seen: list[Any] = []
    monkeypatch.setattr("torsor.view.pictures.saved", lambda figure, path, dpi: seen.append(figure))
    plot_motion(robot, t, *(each[:, None] for each in (q, v, a)), tmp_path / "x.png")
    drives = next(axes for axes in seen[0].axes if axes.get_title().startswith("Drive forces"))
    curve, *dotted = drives.lines
    assert np.isnan(curve.get_ydata()).sum() == 3
    assert len(dotted) == 3 and all(line.get_linestyle() == ":" for line in dotted)
    assert "Coulomb friction" in seen[0].get_suptitle()


def test_names_that_matplotlib_would_read_are_drawn_as_they_are(tmp_path: Path) -> None:
    names = ["_hidden", "$x^{$", "<b>"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quantity = Quantity("Positions", names, ["rad"] * 3, np.zeros((4, 3)))
        figure = plot_quantities([quantity], np.arange(4.0), "$arm^{", tmp_path / "names.png")
    assert len(figure.axes[0].get_legend().get_texts()) == 3


# People


def test_a_backpack_is_behind_the_back_and_a_box_between_the_hands() -> None:
    body, q = library.human(), np.zeros((2, 55))
    pack = np.array([landmarks(body, q, human.Backpack(10.0, size=0.3))[f"load{k}"] for k in range(8)])
    assert pack.shape == (8, 2, 3)
    assert np.allclose(np.ptp(pack[:, 0], axis=0), 0.3) and pack[..., 2].max() < 0
    points = landmarks(body, q[0], human.Box(5.0))
    middle = np.mean([points[f"load{k}"] for k in range(8)], axis=0)
    assert np.allclose(middle, (points["right_knuckles"] + points["left_knuckles"]) / 2)
    plain, packed = (human.draw(body, load=each) for each in (None, human.Backpack(10.0)))
    assert len(packed.axes[0].patches) == len(plain.axes[0].patches) + 1
    assert packed.get_suptitle() == "human of 73 kg with a backpack of 10 kg"


def test_walks_and_tasks_know_their_load() -> None:
    assert human.walking(load=human.Backpack(10.0)).load == human.Backpack(10.0)
    assert human.lifting(box=human.Box(12.0)).load == human.Box(12.0)
    assert human.standing_up().load is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::torsor.base.errors.ModelWarning")  # optimal at the nodes only
def test_the_figure_of_a_task_shows_load_seat_and_strengths() -> None:
    lift = task_figures.plot_task(human.lifting().solve(check=False, iterations=5))
    assert "box of 10 kg" in lift.get_suptitle()
    up = task_figures.plot_task(human.standing_up().solve(check=False, iterations=5))
    for figure in (lift, up):
        assert len([text for text in figure.axes[0].texts if getattr(text, "arrow_patch", None)]) >= 2 * 9
    assert any("both sides" in text.get_text() for text in lift.axes[1].get_legend().get_texts())
    boxes, seats = ([each.get_facecolor() for each in figure.axes[0].patches] for figure in (lift, up))
    assert (0.75, 0.75, 0.75, 1.0) in seats and (0.75, 0.75, 0.75, 1.0) not in boxes
