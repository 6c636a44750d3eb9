"""Figures of a motion (matplotlib, the extra ``plot``)."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.arrays import Array
from torsor.robot.robot import Robot


def plot_motion(robot: Robot, times: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike, path: str | Path) -> None:
    """Save a figure of a motion: postures of the robot, forces of its drives, and reactions in its joints.

    ``times`` is (T,), ``q`` (T, nq), ``v`` and ``a`` (T, nv). The curves and dots of one joint have the same colour.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("figures need matplotlib; fix: pip install torsor[plot]") from None
    times, q = np.asarray(times, dtype=float), np.asarray(q, dtype=float)
    tau, wrenches, poses = robot.inverse_dynamics(q, v, a), robot.joint_wrenches(q, v, a), robot.poses(q)
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=[1, 1.1])
    _draw_robot(figure.add_subplot(grid[:, 0], projection="3d"), robot, poses)
    forces, reactions = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    for k, name in enumerate(robot.coordinate_names):
        forces.plot(times, tau[:, k], label=name)
    forces.set(title="Drives: inverse dynamics", ylabel="torque (N m) or force (N)")
    forces.legend(fontsize="small", ncols=4, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.08))
    for i in range(len(robot.links)):
        reactions.plot(times, np.linalg.norm(wrenches[:, i, 3:], axis=-1))
    reactions.set(title="Bearings: size of the joint reaction", xlabel="time (s)", ylabel="force (N)")
    for axes in (forces, reactions):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _draw_robot(axes: Any, robot: Robot, poses: Array) -> None:
    """Draw the robot as a skeleton of its joints, at five times; the last one is the darkest."""
    offsets = np.array([joint.frame[:, 3] for joint in robot.joints])  # a joint may be off the origin of its link
    points, tips = np.einsum("tlij,lj->tli", poses, offsets)[..., :3], poses[:, :, :3, 3]
    leaves = set(range(len(robot.links))) - set(robot.parents)
    for order, t in enumerate(np.linspace(0, len(points) - 1, 5).round().astype(int)):
        strength = 0.12 + 0.88 * (order / 4) ** 2
        for i, parent in enumerate(robot.parents):
            bone = [points[t, parent] if parent >= 0 else np.zeros(3), points[t, i]]
            bone += [tips[t, i]] if i in leaves else []
            axes.plot(*np.array(bone).T, color="0.3", alpha=strength, linewidth=4, solid_capstyle="round")
            axes.scatter(*points[t, i], color=f"C{i % 10}", s=45, alpha=strength, depthshade=False)
        path = tips[: t + 1, -1]
        axes.plot(*path.T, color="0.6", linewidth=0.8, linestyle=":")
    everything = np.concatenate([points.reshape(-1, 3), tips.reshape(-1, 3), np.zeros((1, 3))])
    middle, half = (everything.max(0) + everything.min(0)) / 2, np.ptp(everything, axis=0).max() / 2 or 1.0
    axes.set(**{f"{axis}lim": (m - half, m + half) for axis, m in zip("xyz", middle, strict=True)})
    axes.set(title=f"{robot.name}: the motion", xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", box_aspect=(1, 1, 1))
