"""Figures of a motion (matplotlib, extra ``plot``)."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.figures import JUMPS, Quantity, colours_of, draw_panel, label_of_title, new_figure, saved, styled
from torsor.mechanism.friction import friction_jumps
from torsor.mechanism.mechanism import force_units
from torsor.robot.robot import Robot


def plot_motion(robot: Robot, times: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike, path: str | Path) -> None:
    """Save a figure of a motion with robot postures, drive forces and joint reactions.

    ``times`` is (T,), ``q`` (T, nq), ``v`` and ``a`` (T, nv). Each joint has its own colour. Dotted lines mark the
    force jumps of Coulomb friction, where a joint velocity changes sign.
    """
    times, q, v = (np.asarray(values, dtype=float) for values in (times, q, v))
    tau, wrenches, poses = robot.inverse_dynamics(q, v, a), robot.joint_wrenches(q, v, a), robot.poses(q)
    jumps, sizes = friction_jumps(robot, v), np.linalg.norm(wrenches[..., 3:], axis=-1)
    units = [*force_units(robot).values()]
    forces = Quantity("Drives: inverse dynamics", robot.coordinate_names, units, tau, (), jumps)
    title = "Bearings: magnitude of the joint reaction"
    reactions = Quantity(title, robot.joint_names, ["N"] * len(robot.joints), sizes)
    panels = [
        (quantity, unit, columns, k)
        for quantity in (forces, reactions)
        for k, (unit, columns) in enumerate(quantity.panels)
    ]
    colours = colours_of(*([quantity.names[i] for i in columns] for quantity, _, columns, _ in panels))
    figure = new_figure(13.0, max(6.5, 2.3 * len(panels)))
    grid = figure.add_gridspec(len(panels), 2, width_ratios=[1, 1.15])
    _draw_robot(figure.add_subplot(grid[:, 0], projection="3d"), robot, poses, colours)
    for row, (quantity, unit, columns, k) in enumerate(panels):
        axes = figure.add_subplot(grid[row, 1])
        draw_panel(axes, quantity, times, colours, columns)
        styled(axes, "" if k else quantity.title, f"{'torque' if unit == 'N m' else 'force'} ({unit})")
        axes.set_xlim(float(times[0]), float(times[-1]))
    axes.set_xlabel("time (s)")
    what = f"{robot.name}: {times[-1] - times[0]:.3g} s of motion, forces by inverse dynamics (recursive Newton-Euler)"
    figure.suptitle(label_of_title(what) + (f"\n{JUMPS}" if jumps.any() else ""))
    saved(figure, path, dpi=150)


def _draw_robot(axes: Any, robot: Robot, poses: Array, colours: dict[str, str]) -> None:
    """Draw the robot as a skeleton at five times, the last one in the darkest shade."""
    offsets = np.array([joint.frame[:, 3] for joint in robot.joints])  # a joint may be off the origin of its link
    points, tips = np.einsum("tlij,lj->tli", poses, offsets)[..., :3], poses[:, :, :3, 3]
    leaves = set(range(len(robot.links))) - set(robot.parents)
    for order, t in enumerate(np.linspace(0, len(points) - 1, 5).round().astype(int)):
        strength = 0.12 + 0.88 * (order / 4) ** 2
        for i, parent in enumerate(robot.parents):
            bone = [points[t, parent] if parent >= 0 else np.zeros(3), points[t, i]]
            bone += [tips[t, i]] if i in leaves else []
            axes.plot(*np.array(bone).T, color="0.3", alpha=strength, linewidth=4, solid_capstyle="round")
            colour = colours[robot.joint_names[i]]
            axes.scatter(*points[t, i], color=colour, s=45, alpha=strength, depthshade=False)
        axes.plot(*tips[: t + 1, -1].T, color="0.6", linewidth=0.8, linestyle=":")
    everything = np.concatenate([points.reshape(-1, 3), tips.reshape(-1, 3), np.zeros((1, 3))])
    middle, half = (everything.max(0) + everything.min(0)) / 2, np.ptp(everything, axis=0).max() / 2 or 1.0
    axes.set(**{f"{axis}lim": (m - half, m + half) for axis, m in zip("xyz", middle, strict=True)})
    axes.set(title="five postures, the last is the darkest", box_aspect=(1, 1, 1))
    axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
