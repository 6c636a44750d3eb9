"""Pictures of robots, and animations and figures of motions (matplotlib, extra ``plot``)."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array
from torsor.base.checks import number, positive, whole_number
from torsor.base.figures import (
    JUMPS,
    Quantity,
    colours_of,
    draw_panel,
    label,
    label_of_title,
    new_figure,
    saved,
    styled,
)
from torsor.mechanism.friction import friction_jumps
from torsor.mechanism.mechanism import force_units
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation.movie import movie_path, write_movie
from torsor.view.scene import Scene, Timeline, home, timeline, upwards
from torsor.view.scene.detail import within
from torsor.view.scene.scene import arrows

MAX_TRIANGLES = 9000  # triangles of a picture
MAX_MOVIE_TRIANGLES = 2500  # triangles of each picture of an animation
INSTANTS = 5  # postures in a picture of a motion
LIGHT_DIRECTION = np.array([-0.35, -0.5, 0.8])  # to the light: two horizontal axes, then up
AXES = "xyz"
MIN_EDGE_RATIO = 0.5  # shortest edge of the drawn box, as a fraction of the longest
MIN_SIMPLIFIED = 60  # surfaces with more triangles are simplified: five boxes
GROUND_COLOUR, EXTERNAL_COLOUR = "#2c8c4a", "#c8202c"  # of forces
BOX_POSTURES = 40  # postures from which the size of an animation is computed


def draw(
    what: Robot | ParallelRobot | Any,
    q: ArrayLike | None = None,
    path: str | Path | None = None,
    *,
    elevation: float = 20.0,
    azimuth: float = -50.0,
) -> Any:
    """Return a figure of a robot in the posture ``q`` (nq,), by default home, and save it to ``path`` if given.

    ``path`` is a .png, .svg or .pdf file. A motion (trajectory, motion, stride, identification) is drawn at five
    instants. The last posture is the most opaque, and has arrows for ground reaction forces (green) and external forces
    (red). The arrow of a force equal to the weight is as long as a third of the robot's size. Links are drawn as in the
    viewer; meshes require trimesh (extra ``view``). ``elevation`` and ``azimuth`` are the camera angles in degrees.

    Example:
        >>> figure = draw(torsor.library.two_link(), [0.3, 0.6])
        >>> figure.axes[0].get_xlabel()
        'x (m)'
    """
    if isinstance(what, Robot | ParallelRobot):
        scene = Scene.of(what, has_meshes())
        postures, title, forces = home(what, q)[None], label(scene.robot.name), None
    else:
        line = timeline(what).every(INSTANTS)
        scene, postures = Scene.of(line.robot, has_meshes(), line.things), line.q
        title = f"{label(line.title)}\n{len(line)} instants from {line.times[0]:.3g} to {line.times[-1]:.3g} s"
        forces = arrows(line, scene)
    angles = number(elevation, "draw", "elevation"), number(azimuth, "draw", "azimuth")
    figure = new_figure(7.0, 6.4)
    drawing = Drawing(figure, scene, postures, MAX_TRIANGLES // len(postures), angles)
    figure.axes[0].set_title(title)
    drawing.show(postures, None if forces is None else forces[-1])
    return saved(figure, path)


def animate(
    result: Any,
    path: str | Path,
    rate: int = 25,
    slower: float = 1.0,
    progress: bool | None = None,
    *,
    elevation: float = 20.0,
    azimuth: float = -50.0,
) -> Path:
    """Write an animation of a motion as .gif, or as .mp4 if ffmpeg is installed, and return the path.

    ``result`` is a trajectory, a motion, a stride or an identification. ``rate`` is the number of frames per second,
    and ``slower`` the slow-motion factor. ``progress`` is True, False, or None to show a progress bar only in a
    terminal. ``elevation`` and ``azimuth`` are the camera angles, in degrees. Human motions are drawn from the side
    and the front, as by ``torsor.human.animate``.

    Example:
        >>> import tempfile
        >>> fall = torsor.simulate(torsor.library.planar_chain(2), duration=0.2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     animate(fall, folder + "/fall.gif", rate=10).name
        'fall.gif'
    """
    target = movie_path(path)
    whole_number(rate, "animate", "rate")
    positive(slower, "animate", "slower")
    angles = number(elevation, "animate", "elevation"), number(azimuth, "animate", "azimuth")
    line = timeline(result)
    if line.movie is not None:
        return line.movie(path, rate, slower, progress)
    scene, figure = Scene.of(line.robot, has_meshes(), line.things), new_figure(6.4, 5.6)
    times, kept = _frames(line, rate * slower)
    postures, forces = line.q[kept], arrows(line, scene)
    few = postures[np.linspace(0, len(postures) - 1, min(BOX_POSTURES, len(postures))).round().astype(int)]
    drawing = Drawing(figure, scene, few, MAX_MOVIE_TRIANGLES, angles)

    def show(k: int) -> None:
        drawing.show(postures[k : k + 1], None if forces is None else forces[kept[k]])
        figure.axes[0].set_title(f"{label(line.title)}, {times[k]:.2f} s")

    return write_movie(figure, show, len(postures), target, rate, progress=progress)


def has_meshes() -> bool:
    """Return whether meshes can be read. Without trimesh, rods are drawn instead."""
    return find_spec("trimesh") is not None


def _frames(line: Timeline, rate: float) -> tuple[Array, NDArray[np.int64]]:
    """Return times at ``rate`` per second, and the indices of the nearest samples."""
    count = max(2, round(float(line.times[-1] - line.times[0]) * rate))
    times = np.linspace(line.times[0], line.times[-1], count)
    before = np.searchsorted(line.times, times).clip(1, max(len(line) - 1, 1)) - 1
    after = np.minimum(before + 1, len(line) - 1)
    return times, np.where(times - line.times[before] <= line.times[after] - times, before, after)


class Drawing:
    """Three-dimensional axes at a ``place`` in a figure, large enough for a robot in the postures (K, nq)."""

    def __init__(
        self, figure: Any, scene: Scene, postures: Array, triangles: int, angles: tuple[float, float], place: Any = 111
    ) -> None:
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        self.scene = scene
        drawn = [part.surface for part in scene.shown]
        coarse = iter(within([surface for surface in drawn if len(surface.faces) > MIN_SIMPLIFIED], triangles))
        surfaces = [next(coarse) if len(surface.faces) > MIN_SIMPLIFIED else surface for surface in drawn]
        self.corners = [surface.vertices[surface.faces] for surface in surfaces]
        up = upwards(scene.robot)
        self.sun = np.roll(LIGHT_DIRECTION, int(np.argmax(np.abs(up))) - 2) * (np.sign(up.sum()) or 1.0)
        self.axes = figure.add_subplot(place, projection="3d", computed_zorder=False)
        self.surface = Poly3DCollection(np.zeros((0, 3, 3)))
        self.axes.add_collection3d(self.surface)
        self.quivers = list[Any]()
        self._frame(postures, AXES[int(np.argmax(np.abs(up)))], angles)

    def _frame(self, postures: Array, vertical: str, angles: tuple[float, float]) -> None:
        low, high = self.scene.corners(postures)
        middle, half = (low + high) / 2, 0.53 * np.maximum(high - low, MIN_EDGE_RATIO * (high - low).max())
        limits = {f"{axis}lim": (m - h, m + h) for axis, m, h in zip(AXES, middle, half, strict=True)}
        self.axes.set(**limits, **{f"{axis}label": f"{axis} (m)" for axis in AXES})
        for axis in AXES:
            self.axes.locator_params(axis=axis, nbins=5)
        self.axes.view_init(elev=angles[0], azim=angles[1], vertical_axis=vertical)
        self.axes.set_box_aspect(half, zoom=0.92)
        for axis in (self.axes.xaxis, self.axes.yaxis, self.axes.zaxis):
            axis.set_pane_color((0.96, 0.97, 0.98, 1.0))
            axis.line.set_color("0.75")
        self.axes.tick_params(labelsize="small", colors="0.4")

    def show(self, postures: Array, forces: Array | None = None) -> None:
        """Draw the surfaces in postures (K, nq), the last one most opaque, and the arrows (n, 7) from ``arrows``."""
        triangles, colors = self.placed(postures)
        self.surface.set_verts(triangles)
        self.surface.set_facecolor(colors)
        while self.quivers:
            self.quivers.pop().remove()
        for arrow in () if forces is None else forces[np.isfinite(forces).all(axis=-1)]:
            color = GROUND_COLOUR if arrow[6] else EXTERNAL_COLOUR
            quiver = self.axes.quiver(*arrow[:6], color=color, linewidth=2.0, arrow_length_ratio=0.2, zorder=5)
            self.quivers.append(quiver)

    def placed(self, postures: Array) -> tuple[Array, Array]:
        """Return the triangles (n, 3, 3) of all surfaces in postures (K, nq), in base axes, with colours (n, 4)."""
        poses = self.scene.poses(postures)
        polygons, colors = [np.zeros((0, 3, 3))], [np.zeros((0, 4))]  # a base alone has nothing to draw
        for count, pose in enumerate(poses, start=1):
            strength = (count / len(poses)) ** 1.5
            for part, corners in zip(self.scene.shown, self.corners, strict=True):
                T = pose[part.link + 1]
                placed = corners @ T[:3, :3].T + T[:3, 3]
                polygons.append(placed)
                colors.append(_lit(placed, part.color, strength, self.sun))
        return np.concatenate(polygons), np.concatenate(colors)


def _lit(triangles: Array, color: tuple[float, float, float, float], strength: float, sun: Array) -> Array:
    """Return the colours (n, 4) of triangles (n, 3, 3) in directional light."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    light = np.abs((normals / np.where(lengths > 0, lengths, 1.0)) @ (sun / np.linalg.norm(sun)))
    shade = np.clip((0.55 + 0.55 * light)[:, None] * np.array(color[:3]), 0.0, 1.0)
    return np.column_stack([shade, np.full(len(shade), color[3] * strength)])


# Figures of a motion

POSTURES = 3
ANGLES = 20.0, -50.0  # elevation and azimuth of the camera, in degrees


def plot_motion(robot: Robot, times: ArrayLike, q: ArrayLike, v: ArrayLike, a: ArrayLike, path: str | Path) -> None:
    """Save a figure of a motion with robot postures, drive forces and joint reactions.

    ``times`` is (T,), ``q`` (T, nq), ``v`` and ``a`` (T, nv). Each joint has a colour. Dotted lines mark the jumps of
    Coulomb friction when a joint velocity changes sign.
    """
    times, q, v = (np.asarray(values, dtype=float) for values in (times, q, v))
    tau, wrenches = robot.inverse_dynamics(q, v, a), robot.joint_wrenches(q, v, a)
    jumps, sizes = friction_jumps(robot, v), np.linalg.norm(wrenches[..., 3:], axis=-1)
    units = [*force_units(robot).values()]
    forces = Quantity("Drive forces", robot.coordinate_names, units, tau, (), jumps)
    title = "Joint reactions (magnitude of the force)"
    reactions = Quantity(title, robot.joint_names, ["N"] * len(robot.joints), sizes)
    panels = [(each, *panel, k) for each in (forces, reactions) for k, panel in enumerate(each.panels)]
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
