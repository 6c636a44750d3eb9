"""Figures of tasks: postures with load and seat, and the torques closest to their strength limits."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.figures import Bound, Quantity, draw_panel, label_of_title, new_figure, saved, styled
from torsor.human.body.coordinates import GLOBAL, SIDES
from torsor.human.body.drawing import ARROW, WEIGHT_ARROW_LENGTH, landmarks, skeleton
from torsor.human.body.trunk_strength import SPINE
from torsor.human.contact.support import Sitting
from torsor.human.terms.forces import TrunkTorques
from torsor.human.terms.problem import grounded_term, hand_forces_of, joint_torques, load_of, presses, who
from torsor.motion import MotionResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SEAT_DEPTH = 0.4  # depth of a seat (m)
ARMREST_LENGTH = 0.25  # length of an armrest (m)


def draw_seat(axes: Any, seat: Sitting, shift: float) -> None:
    """Draw the seat in a panel, seen from the right, centred at its contact point, with an offset ``shift`` (m)."""
    front, back = shift - seat.back + SEAT_DEPTH / 2, shift - seat.back - SEAT_DEPTH / 2
    axes.fill([back, front, front, back], [seat.height] * 2 + [seat.height - 0.05] * 2, color="0.75", zorder=0)
    axes.plot([back + 0.03] * 2, [0.0, seat.height - 0.05], color="0.75", linewidth=2.0, zorder=0)
    if seat.rails is not None:  # draw an armrest below the hands
        front = shift + seat.rails.ahead + 0.05
        axes.plot([front - ARMREST_LENGTH, front], [seat.rails.height - 0.02] * 2, color="0.6", linewidth=3.0, zorder=0)


SAME_TORQUE_TOLERANCE = 1e-3  # largest relative difference between torques of both sides that share one curve
POSTURES, POSTURE_SPACING, TORQUES = 9, 1.1, 8  # number of postures, their distance (m), and number of torques


def plot_task(result: MotionResult, path: str | Path | None = None) -> "Figure":
    """Plot a task: postures from the right side, and torques (N m) with the ground and seat wrenches.

    The postures include the load and seat. The torques with the largest fractions of their strengths are shown. A
    dotted line shows a strength where it is close to the torque. The figure is returned and, with ``path``, also saved.
    """
    body, torques = result.robot, joint_torques(result)
    figure = new_figure(12.0, 6.4)
    upper, lower = figure.subplots(2, 1, height_ratios=[0.8, 1.0])
    draw_postures(upper, result)
    upper.set_title("postures, from the right side; arrows: forces of ground, seat and handle")
    strengths = _strengths(result)
    fractions = np.abs(torques[:, len(GLOBAL) :] / strengths[len(GLOBAL) :]).max(axis=0)
    names = _named(body.coordinate_names, torques, (len(GLOBAL) + np.argsort(-fractions)).tolist())
    shown = list(names.values())[:TORQUES]
    limits = strengths[shown]
    bounds = (Bound(0.0, result.T, -limits, limits),)
    quantity = Quantity("", list(names)[:TORQUES], ["N m"] * len(shown), torques[:, shown], bounds, fits=False)
    draw_panel(lower, quantity, result.times)
    title = "torques with ground and seat: largest fractions of strength (dotted where it is close)"
    styled(lower, title, "N m")
    lower.set(xlabel="time (s)", xlim=(0.0, result.T))
    how = f"{result.solver}: {result.status}, T = {result.T:.3g} s"
    figure.suptitle(label_of_title(f"{who(result.problem)}: {result.problem.name}, minimum effort; {how}"))
    return saved(figure, path, dpi=110)


def _strengths(result: MotionResult) -> Array:
    """Return the strengths (N m) of all coordinates; the trunk strength is that at the largest flexion."""
    strengths, names = np.array(result.robot.effort_limit), result.robot.coordinate_names
    for term in result.problem.terms:
        if isinstance(term, TrunkTorques):
            spine = [names.index(name) for name in SPINE]
            strengths[spine] = np.max(term.trunk.extend(result.q[:, spine].sum(axis=1)))
    return strengths


def _named(coordinates: Sequence[str], torques: Array, order: Sequence[int]) -> dict[str, int]:
    """Return coordinates by curve label; equal right and left coordinates share one curve."""
    named = dict[str, int]()
    for k in order:
        side, _, name = coordinates[k].partition("_")
        other = {"right": "left", "left": "right"}.get(side)
        twin = coordinates.index(f"{other}_{name}") if other else k
        same = (
            twin != k
            and np.abs(torques[:, k] - torques[:, twin]).max() <= SAME_TORQUE_TOLERANCE * np.abs(torques[:, k]).max()
        )
        words = f"{name}, both sides" if same else coordinates[k]
        named.setdefault(words.replace("_", " "), k)
    return named


def draw_postures(axes: Any, result: MotionResult, count: int = POSTURES) -> None:
    """Draw postures of a task side by side in a panel, seen from the right, with load, seat and forces."""
    support, times = grounded_term(result.problem).support, np.linspace(0.0, result.T, count)
    points = landmarks(result.robot, result.at(times).q, load_of(result.problem))
    pressed = presses(result, times / result.T)[..., [2, 1, 5, 4]]  # forward and upward components of points and forces
    pressed = np.concatenate([pressed, _handled(result, times)[:, None]], axis=1)
    weight = result.robot.mass * float(np.linalg.norm(result.robot.gravity))
    for k, time in enumerate(times):
        if isinstance(support, Sitting):
            draw_seat(axes, support, POSTURE_SPACING * k)
        skeleton(
            axes, {name: positions[k] for name, positions in points.items()}, "side", POSTURE_SPACING * k, scale=0.6
        )
        for place, force in pressed[k][np.isfinite(pressed[k]).all(axis=-1)].reshape(-1, 2, 2):
            at = place + np.array([POSTURE_SPACING * k, 0.0])
            axes.annotate("", at + WEIGHT_ARROW_LENGTH * force / weight, at, arrowprops=ARROW, zorder=9)
        axes.text(POSTURE_SPACING * k, -0.15, f"{time:.2f} s", ha="center", fontsize=8)
    axes.axhline(0.0, color="0.4", linewidth=1.0, zorder=0)
    axes.set_aspect("equal")
    axes.axis("off")


def _handled(result: MotionResult, times: Array) -> Array:
    """Return the midpoint of the hands and the prescribed force on them (forward, up), (K, 4); NaN without a force."""
    q, force = result.at(times).q, hand_forces_of(result.problem, times).sum(axis=1)
    place = np.mean([result.robot.pose(q, f"{side}_knuckles")[:, :3, 3] for side in SIDES], axis=0)
    arrows = np.concatenate([place[:, [2, 1]], force[:, [2, 1]]], axis=1)
    return np.where(force.any(axis=1, keepdims=True), arrows, np.nan)
