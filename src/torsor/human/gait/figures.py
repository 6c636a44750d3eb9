"""The figure of a stride (postures, and curves with measured curves), and animations (extra ``plot``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import norm

from torsor.base.arrays import Array
from torsor.base.checks import positive, whole_number
from torsor.base.figures import label_of_title, new_figure, saved
from torsor.human.body.drawing import ARROW, VIEWS, WEIGHT_ARROW_LENGTH, landmarks, skeleton
from torsor.human.comparison.table import DIGITS, LikenessTable
from torsor.human.contact.schedule import Walk, described, stairs_of
from torsor.human.contact.support import Sitting
from torsor.human.gait.curves import COUNT, CurveSpread, StrideCurves
from torsor.human.gait.references import REFERENCES, SOURCES, Reference, in_words
from torsor.human.tasks.figures import draw_seat
from torsor.human.terms.forces import Grounded
from torsor.human.terms.problem import REACTION_JOINTS, load_of, presses, pressure, who
from torsor.motion import MotionResult
from torsor.robot.robot import Robot
from torsor.simulation.movie import movie_path, write_movie

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FIRST_TREAD, LAST_TREAD = -3, 6  # numbers of the first and last drawn tread
TOE_OFF = {"color": "0.75", "linewidth": 0.9, "zorder": 0}
LINE = {"color": "0.4", "linewidth": 1.2, "zorder": 0}


UP = np.array([0.0, 1.0, 0.0])
MARK_SPACING = 0.2  # spacing of the ground marks (m)


def _frames(result: MotionResult | StrideCurves, term: Grounded | None, rate: float) -> tuple[Robot, Array, Array]:
    """Return a body, postures (K, 55), and points and forces (K, P, 6) of ground, seat and rails."""
    if isinstance(result, MotionResult) and (term is None or not isinstance(term.support, Walk)):
        times = np.linspace(0.0, result.T, max(2, round(result.T * rate)))
        pressed = np.zeros((len(times), 0, 6)) if term is None else presses(result, times / result.T)
        return result.robot if term is None else term.body, result.at(times).q, pressed
    stride = StrideCurves(result) if isinstance(result, MotionResult) else result
    kept = np.linspace(0, COUNT - 1, round(stride.duration * rate), endpoint=False).round().astype(int)
    pressed = np.concatenate([pressure(stride.samples, stride.body), stride.samples.forces], axis=-1)
    return stride.body, stride.samples.q[kept], pressed[kept]


def animate(
    result: MotionResult | StrideCurves,
    path: str | Path,
    rate: int = 25,
    slower: float = 1.0,
    progress: bool | None = None,
) -> Path:
    """Write a human motion as a .gif or .mp4, seen from the right side and the front, and return its path.

    A walk is shown as one stride in an endless loop; any other motion is shown from start to end. Arrows show the
    ground and seat forces. On stairs the camera climbs with the body. ``rate`` is the number of frames per second,
    and ``slower`` the slow-motion factor. An .mp4 file requires ffmpeg. ``progress`` is True, False, or None to show a
    progress bar only in a terminal.
    """
    target = movie_path(path)
    whole_number(rate, "animate", "rate")
    positive(slower, "animate", "slower")
    figure = new_figure(8.0, 5.2, tidy=False)
    figure.subplots_adjust(0.02, 0.02, 0.98, 0.93)
    problem = (result.result if isinstance(result, StrideCurves) else result).problem
    term = next((term for term in problem.terms if isinstance(term, Grounded)), None)
    body, q, pressed = _frames(result, term, rate * slower)
    points, weight = landmarks(body, q, load_of(problem)), body.mass * float(norm(body.gravity))
    seat = term.support if term is not None and isinstance(term.support, Sitting) else None
    panels = figure.subplots(1, 2, width_ratios=[1.5, 1.0])
    stairs = None if term is None else stairs_of(term.support, term.body)
    # On stairs the view follows the climb.
    lift = np.zeros(len(q)) if stairs is None else -stairs.rise / stairs.length * points["pelvis"][..., 2]
    points = {name: positions + np.multiply.outer(lift, UP) for name, positions in points.items()}
    top = 1.08 * float(max(positions[..., 1].max() for positions in points.values()))
    for axes, title, half in zip(panels, ("right side", "front"), (0.9, 0.6), strict=True):
        low = -0.1 if stairs is None else -0.1 - 1.5 * abs(stairs.rise)
        axes.set(title=title, aspect="equal", xlim=(-half, half), ylim=(low, top))
        axes.axis("off")

    def show(k: int) -> None:
        here = {name: positions[k] for name, positions in points.items()}
        for axes, view in zip(panels, ("side", "front"), strict=True):
            for old in (*axes.lines, *axes.patches, *axes.texts):
                old.remove()
            shift = -float(here["pelvis"][2]) if view == "side" else 0.0
            if seat is not None and view == "side":
                draw_seat(axes, seat, shift)
            skeleton(axes, here, view, shift, scale=0.9)
            (across, right), (along, up), *_ = VIEWS[view]
            for arrow in pressed[k][np.isfinite(pressed[k]).all(axis=-1)]:
                at, force = (np.array([right, up]) * part[[across, along]] for part in (arrow[:3], arrow[3:]))
                foot = at + np.array([shift, lift[k]])
                axes.annotate("", foot + WEIGHT_ARROW_LENGTH / weight * force, foot, arrowprops=ARROW, zorder=9)
            corners = np.zeros((1, 2))  # level ground: one height, 0
            if stairs is not None:
                corners = stairs.profile(FIRST_TREAD, LAST_TREAD) + np.array([shift, lift[k]])
            if stairs is not None and view == "side":
                axes.plot(*corners.T, **LINE)
                continue
            for height in np.unique(corners[:, 1]):
                axes.plot([-2.0, 2.0], [height, height], **LINE)
            if view == "side":  # marks on the ground show the progress
                marks = (
                    MARK_SPACING
                    * np.arange(np.ceil((-1.0 - shift) / MARK_SPACING), np.floor((1.0 - shift) / MARK_SPACING) + 1)
                    + shift
                )
                axes.plot(marks, np.full(len(marks), -0.02), "|", color="0.4", markersize=6)

    return write_movie(figure, show, len(q), target, rate, progress=progress)


OWN_COLOUR, PEOPLE_COLOURS = "#1f4e8c", ("0.45", "#d98b2b", "#4c9a5f", "#a8527a", "#7a5c3a")
SHOWN_CURVES = (
    *("hip_flexion", "knee_flexion", "ankle_flexion", "hip_adduction"),
    *("hip_extension", "knee_extension", "ankle_plantarflexion", "hip_abduction"),
    *("hip_power", "knee_power", "ankle_power", "hip_rotation"),
    *("vertical", "forward", "medial", "list"),
    *("shoulder_flexion", "elbow_flexion", "yaw"),
)
TITLES = {"list": "pelvis list", "yaw": "pelvis yaw"} | {name: f"{name} force" for name in SHOWN_CURVES[12:15]}
SAGITTAL_CURVES = (
    *("hip_flexion", "knee_flexion", "ankle_flexion", "vertical"),
    *("hip_extension", "knee_extension", "ankle_plantarflexion", "forward"),
    *("hip_power", "knee_power", "ankle_power"),
)
COLUMNS = 4  # of panels
POSTURES, POSTURE_SPACING = 9, 0.75  # number of postures and their distance (m)
# Characters per legend line, and number of sources from which it has two columns.
LEGEND_CHARACTERS, NARROW_LEGEND, MAX_SOURCES = 78, 34, 6


def plot(
    stride: StrideCurves,
    path: str | Path | None,
    references: Any = None,
    spreads: Mapping[str, CurveSpread] | None = None,
    sagittal: bool = False,
) -> "Figure":
    """Return a figure of the curves with measured bands, the joint reactions, and postures.

    ``spreads`` are drawn as blue bands: the minimum and maximum of near-optimal walks. If ``sagittal`` is true, only
    the eleven sagittal curves are drawn.
    """
    curves, panels = (SAGITTAL_CURVES, ()) if sagittal else (SHOWN_CURVES, (_joints, _pressure, _energy))
    rows = -(-(len(curves) + len(panels) + 1) // COLUMNS)
    figure = new_figure(14.0, 2.45 * rows + (1.0 if sagittal else 4.0))
    grid = figure.add_gridspec(rows + (not sagittal), COLUMNS, height_ratios=[1.0] * rows + [1.6] * (not sagittal))
    places = [grid[divmod(k, COLUMNS)] for k in range(rows * COLUMNS)]
    shown = stride.references(references).references
    colours = _colours(shown)
    for place, name in zip(places, curves, strict=False):
        axes = figure.add_subplot(place)
        if spreads is not None:
            spread = spreads[name]
            at = np.linspace(0.0, 100.0, len(spread.best))
            axes.fill_between(at, spread.least, spread.most, color=OWN_COLOUR, alpha=0.3, linewidth=0)
        _compare(axes, stride, name, [reference for reference in shown if reference.curve == name], colours)
        own = axes.get_legend()
        if sagittal and own is not None:
            own.remove()  # the legend of the figure has all lines
    for place, panel in zip(places[len(curves) :], panels, strict=False):
        panel(figure.add_subplot(place), stride)
    for axes in figure.axes[-3 if sagittal else -COLUMNS :]:
        axes.set_xlabel("gait cycle (%)", fontsize=9)
    last = figure.add_subplot(grid[rows - 1, (len(curves) + len(panels)) % COLUMNS :])
    _legend(last, stride, shown, colours, NARROW_LEGEND if sagittal else LEGEND_CHARACTERS)
    if not sagittal:
        _postures(figure.add_subplot(grid[rows, :]), stride)
    result = stride.result
    what = f"{who(result.problem)}: {stride.side} stride at {described(stride.step)}"
    aims = " + ".join(part.title for part in result.problem.costs)
    how = f"minimise {aims}; {result.solver}: {result.status}"
    legend = "blue: predicted" if spreads is None else "blue: the best walk, light blue: all near-optimal walks"
    people = "; dashed and shaded: people, mean and standard deviation" if shown else ""
    figure.suptitle(label_of_title(f"{what}\n{how}\n{legend}{people}; vertical line: toe-off"))
    return saved(figure, path, dpi=70 if sagittal else 80)


def plot_bands(curves: Mapping[str, Reference], strides: Sequence[StrideCurves], path: str | Path | None) -> "Figure":
    """Return a figure of the sagittal curves of several strides, with their means and standard deviations."""
    rows = -(-len(SAGITTAL_CURVES) // COLUMNS)
    figure = new_figure(14.0, 2.45 * rows + 0.6)
    for k, name in enumerate(SAGITTAL_CURVES):
        axes, spread = figure.add_subplot(rows, COLUMNS, k + 1), curves[name]
        for stride in strides:
            own = stride.curve(spread)
            axes.plot(np.linspace(0.0, 100.0, len(own)), own, color="0.6", linewidth=0.6)
        at, sd = np.linspace(0.0, 100.0, len(spread.mean)), np.zeros(1) if spread.sd is None else spread.sd
        axes.fill_between(at, spread.mean - sd, spread.mean + sd, color=OWN_COLOUR, alpha=0.3, linewidth=0)
        axes.plot(at, spread.mean, color=OWN_COLOUR, linewidth=1.8)
        _style(axes, in_words(name, spread.kind), spread.unit)
    for axes in figure.axes[-COLUMNS:]:
        axes.set_xlabel("% of stride", fontsize=9)
    side = strides[0].side
    figure.suptitle(f"{len(strides)} {side} strides\nblue: mean and standard deviation, grey: each walk")
    return saved(figure, path, dpi=80)


def _style(axes: Any, title: str, unit: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(unit, fontsize=9)
    axes.set_xlim(0.0, 100.0)
    axes.set_xticks([0, 25, 50, 75, 100])
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _colours(references: Sequence[Reference]) -> dict[str, str]:
    """Return the colour of each source; if there are many sources, some share a colour."""
    sources = dict.fromkeys(reference.source for reference in references)
    return {source: PEOPLE_COLOURS[k % len(PEOPLE_COLOURS)] for k, source in enumerate(sources)}


def _compare(
    axes: Any, stride: StrideCurves, name: str, references: Sequence[Reference], colours: Mapping[str, str]
) -> None:
    """Draw a curve over the band of its first reference that has one; further references are dotted."""
    wide = next((reference for reference in references if reference.sd is not None), None)
    for k, reference in enumerate(references):
        at, colour = np.linspace(0.0, 100.0, len(reference.mean)), colours[reference.source]
        axes.plot(
            at, reference.mean, ":" if k else "--", color=colour, linewidth=1.3, label=label_of_title(reference.label)
        )
        if reference is wide and reference.sd is not None:
            axes.fill_between(
                at, reference.mean - reference.sd, reference.mean + reference.sd, color=colour, alpha=0.2, linewidth=0
            )
    first = references[0] if references else REFERENCES[name]
    axes.plot(100 * stride.s, stride.curve(first), color=OWN_COLOUR, linewidth=2.0)
    axes.axvline(100 * stride.stance, **TOE_OFF)
    title = TITLES.get(name, in_words(name, "angle"))
    if references:
        likeness = LikenessTable([(first, stride.curve(first))])[name]
        title += f": r {likeness.correlation:.2f}, rms {likeness.rms:.{DIGITS[first.kind]}f}"
        axes.legend(fontsize=7, frameon=False, loc="best", handlelength=1.6)
    _style(axes, title, first.unit)


def _legend(
    axes: Any,
    stride: StrideCurves,
    references: Sequence[Reference],
    colours: Mapping[str, str],
    width: int = LEGEND_CHARACTERS,
) -> None:
    """List the sources, each with the mean similarity of its sagittal curves."""
    axes.plot([], [], color=OWN_COLOUR, linewidth=2.0, label="predicted")
    table = LikenessTable([(reference, stride.curve(reference)) for reference in references])
    dashed = {
        reference.source for reference in {reference.curve: reference for reference in reversed(references)}.values()
    }  # first in a panel
    for source, colour in colours.items():
        label = next(reference.label for reference in references if reference.source == source)
        mean = table.means[label]
        words = shorten(SOURCES.get(source, source), LEGEND_CHARACTERS, placeholder=" ...")
        words = fill(words, width)
        if mean.curves:
            sd = "" if mean.rms_sd is None else f", RMSE {mean.rms_sd:.2f} SD"
            facts = f"r {mean.correlation:.2f}{sd}, mean of {mean.curves} sagittal curve{'s' * (mean.curves > 1)}"
            words += "\n" + fill(facts, width, initial_indent="    ", subsequent_indent="    ")
        axes.plot([], [], "--" if source in dashed else ":", color=colour, linewidth=1.3, label=label_of_title(words))
    axes.axis("off")
    axes.legend(fontsize=8, frameon=False, loc="center left", ncols=1 if len(colours) < MAX_SOURCES else 2)


def _joints(axes: Any, stride: StrideCurves) -> None:
    for joint in REACTION_JOINTS:
        axes.plot(100 * stride.s, norm(stride.reaction(joint), axis=1), label=joint, linewidth=1.6)
    axes.axvline(100 * stride.stance, **TOE_OFF)
    _style(axes, "joint reactions (without muscles)", "body weights")
    axes.legend(fontsize=8, frameon=False)


def _pressure(axes: Any, stride: StrideCurves) -> None:
    axes.plot(100 * stride.s, stride.pressure[:, 0, 1], color=OWN_COLOUR, linewidth=1.8)
    axes.axvline(100 * stride.stance, **TOE_OFF)
    _style(axes, "centre of pressure in front of the heel", "m")


def _energy(axes: Any, stride: StrideCurves) -> None:
    parts = ("kinetic", stride.kinetic, "C4", 1.6), ("potential", stride.potential, "C5", 1.6)
    for name, curve, colour, width in (*parts, ("both", stride.kinetic + stride.potential, "0.2", 1.2)):
        axes.plot(100 * stride.s, (curve - curve.mean()) / stride.body.mass, color=colour, label=name, linewidth=width)
    _style(axes, f"energy; work {stride.energy.mechanical_work:.2f} J/(kg m)", "J/kg, about the mean")
    axes.legend(fontsize=8, frameon=False)


def _postures(axes: Any, stride: StrideCurves) -> None:
    """Draw postures of the stride from the right side, with ground forces and, on stairs, the treads."""
    kept = np.linspace(0, len(stride.s) - 1, POSTURES).round().astype(int)
    load, stairs = load_of(stride.result.problem), stairs_of(stride.walk, stride.body)
    points, forces = landmarks(stride.body, stride.samples.q[kept], load), stride.forces[kept]
    pressed = pressure(stride.samples, stride.body)[kept]
    for k, percent in enumerate(100 * stride.s[kept]):
        ahead = float(points["pelvis"][k, 2])
        shift, lift = POSTURE_SPACING * k - ahead, 0.0 if stairs is None else -stairs.rise / stairs.length * ahead
        here = {name: positions[k] + lift * UP for name, positions in points.items()}
        skeleton(axes, here, "side", shift, scale=0.6)
        for at, force in zip(pressed[k], forces[k], strict=True):
            if np.isfinite(at).all():
                foot = np.array([at[2] + shift, at[1] + lift])
                axes.annotate("", foot + WEIGHT_ARROW_LENGTH * force[[2, 1]], foot, arrowprops=ARROW, zorder=9)
        if stairs is None:
            axes.text(POSTURE_SPACING * k, -0.13, f"{percent:.0f} %", ha="center", fontsize=8)
            continue
        corners = stairs.profile(FIRST_TREAD, LAST_TREAD) + np.array([shift, lift])
        near = corners[abs(corners[:, 0] - POSTURE_SPACING * k) < POSTURE_SPACING / 2]
        ends = [[POSTURE_SPACING * (k - 0.48), near[0, 1]], *near, [POSTURE_SPACING * (k + 0.48), near[-1, 1]]]
        axes.plot(*np.array(ends).T, **LINE)
    if stairs is None:
        axes.axhline(0.0, color="0.4", linewidth=1.0, zorder=0)
    heights = (-0.2, 1.85) if stairs is None else (-0.45, 1.95)
    axes.set(aspect="equal", xlim=(-0.6, POSTURE_SPACING * (POSTURES - 1) + 0.6), ylim=heights)
    axes.axis("off")
