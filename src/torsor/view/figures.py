"""Figures of a motion (matplotlib, extra ``plot``)."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.figures import JUMPS, Quantity, colours_of, draw_panel, label_of_title, new_figure, saved, styled
from torsor.mechanism.friction import friction_jumps
from torsor.mechanism.mechanism import force_units
from torsor.robot.robot import Robot
from torsor.view.pictures import MAX_TRIANGLES, Drawing, has_meshes
from torsor.view.scene import Scene

POSTURES = 3
ANGLES = 20.0, -50.0  # elevation and azimuth of the camera, in degrees


def plot_motion(robot: Robot, times: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike, path: str | Path) -> None:
    """Save a figure of a motion with robot postures, drive forces and joint reactions.

    ``times`` is (T,), ``q`` (T, nq), ``v`` and ``a`` (T, nv). Each joint has its own colour. Dotted lines mark the
    force jumps of Coulomb friction, where a joint velocity changes sign.
    """
    times, q, v = (np.asarray(values, dtype=float) for values in (times, q, v))
    tau, wrenches = robot.inverse_dynamics(q, v, a), robot.joint_wrenches(q, v, a)
    jumps, sizes = friction_jumps(robot, v), np.linalg.norm(wrenches[..., 3:], axis=-1)
    units = [*force_units(robot).values()]
    forces = Quantity("Drive forces", robot.coordinate_names, units, tau, (), jumps)
    title = "Joint reactions (magnitude of the force)"
    reactions = Quantity(title, robot.joint_names, ["N"] * len(robot.joints), sizes)
    panels = [
        (quantity, unit, columns, k)
        for quantity in (forces, reactions)
        for k, (unit, columns) in enumerate(quantity.panels)
    ]
    colours = colours_of(*([quantity.names[i] for i in columns] for quantity, _, columns, _ in panels))
    figure = new_figure(13.0, max(6.5, 2.3 * len(panels)))
    grid = figure.add_gridspec(len(panels), 2, width_ratios=[1, 1.15])
    postures = q[np.linspace(0, len(q) - 1, POSTURES).round().astype(int)]
    drawing = Drawing(figure, Scene.of(robot, has_meshes()), postures, MAX_TRIANGLES, ANGLES, grid[:, 0])
    drawing.show(postures)
    drawing.axes.set_title(f"{POSTURES} postures (opaque: the last)")
    for row, (quantity, unit, columns, k) in enumerate(panels):
        axes = figure.add_subplot(grid[row, 1])
        draw_panel(axes, quantity, times, colours, columns)
        styled(axes, "" if k else quantity.title, f"{'torque' if unit == 'N m' else 'force'} ({unit})")
        axes.set_xlim(float(times[0]), float(times[-1]))
    axes.set_xlabel("time (s)")
    what = f"{robot.name}: {times[-1] - times[0]:.3g} s of motion, inverse dynamics"
    figure.suptitle(label_of_title(what) + (f"\n{JUMPS}" if jumps.any() else ""))
    saved(figure, path, dpi=150)
