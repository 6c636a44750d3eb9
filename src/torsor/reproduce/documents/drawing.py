"""Shared drawing functions: panel style, and sketches of planar arms."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.reproduce.equations import barman, khalil
from torsor.reproduce.errata import DECISIONS
from torsor.reproduce.item import Outcome, numbers, only, same, zero
from torsor.reproduce.samples import modified, standard, tree
from torsor.robot.robot import Robot


def tidy(axes: Any, title: str, x: str = "", y: str = "", beside: bool = False) -> None:
    """Add a title, labels, a light grid and a legend to a panel. The legend may be next to the panel.

    The label "s" of the x axis means time.
    """
    axes.set_title(title, fontsize=10)
    axes.set(xlabel="time (s)" if x == "s" else x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if beside else {}
        axes.legend(fontsize="small", frameon=False, **place)


def curves(axes: Any, x: Array, y: Array, names: tuple[str, ...]) -> None:
    """Draw the columns of y (T, n) over x (T,)."""
    for column, name in zip(np.asarray(y).T, names, strict=True):
        axes.plot(x, column, label=name, linewidth=1.6)


def curve_panel(title: str, unit: str, x: Array, y: Array, names: tuple[str, ...]) -> Callable[[Any], None]:
    """Return a function that draws the columns of y (T, n) over times x (T,) in a figure."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        curves(axes, x, y, names)
        tidy(axes, title, "s", unit)

    return draw


def snapshots(figure: Any, x: Array, y: Array, shown: Array, title: str, across: str, up: str) -> None:
    """Draw polygons with corners x, y (K, corners), from dark (first) to light (last)."""
    import matplotlib

    axes, colours = figure.subplots(), matplotlib.colormaps["viridis"]
    for k, s in enumerate(shown):
        axes.plot(x[k], y[k], "o-", color=colours(0.9 * s), markersize=3.5, linewidth=1.8)
    axes.set_aspect("equal")
    tidy(axes, title, across, up)


def peaks(values: Array, least: float) -> int:
    """Return the number of maxima of a curve that exceed the adjacent minima by the fraction ``least`` of its range."""
    margin, count, low, high, is_rising = least * np.ptp(values), 0, values[0], values[0], True
    for value in values[1:]:
        low, high = min(low, value), max(high, value)
        if is_rising and value < high - margin:
            count, low, is_rising = count + 1, value, False
        elif not is_rising and value > low + margin:
            high, is_rising = value, True
    return count + int(is_rising and high > low + margin)


COLOURS = ("#c1403d", "#2c8c4a", "#2f6db3")  # of the axes x, y, z
TRIAD = 0.16  # m, length of a drawn axis
TICKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # m, distances between ticks
AXES = {"xlabel": "x (m)", "ylabel": "y (m)", "zlabel": "z (m)"}


def space(axes: Any, title: str) -> None:
    """Label the axes of a 3D panel, and scale them equally, with ticks at equal distances."""
    limits = np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()])
    spans = np.ptp(limits, axis=1)
    spans = np.maximum(spans, 0.3 * spans.max())  # a flat body would have no room for labels
    limits = limits.mean(axis=1)[:, None] + 0.5 * spans[:, None] * [-1, 1]
    step = next(size for size in TICKS if spans.max() / size <= 6)
    axes.set_title(title, fontsize=10)
    axes.set(**AXES, xlim=limits[0], ylim=limits[1], zlim=limits[2])
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(_multiples(step))
    axes.set_box_aspect(spans, zoom=0.85)  # room for the labels, which the layout ignores


def _multiples(step: float) -> Any:
    from matplotlib.ticker import MultipleLocator

    return MultipleLocator(step)


def _triad(axes: Any, pose: Array, name: str) -> None:
    origin = pose[:3, 3]
    for k, colour in enumerate(COLOURS):
        axes.plot(*np.array([origin, origin + TRIAD * pose[:3, k]]).T, color=colour, linewidth=2)
    axes.text(*(origin + 0.03), name, fontsize=9)


def frames(robot: Robot, q: Array, title: str) -> Outcome:
    """Return a figure of all link frames and the lines between them, with x red, y green and z blue."""

    def draw(figure: Any) -> None:
        axes, poses = figure.add_subplot(projection="3d"), robot.poses(q)
        _triad(axes, np.eye(4), "0")
        for k, parent in enumerate(robot.parents):
            before = np.zeros(3) if parent < 0 else poses[parent, :3, 3]
            axes.plot(*np.array([before, poses[k, :3, 3]]).T, color="0.5", linewidth=3, alpha=0.6)
            _triad(axes, poses[k], str(k + 1))
        _cube(axes, np.vstack([poses[:, :3, 3], np.zeros((1, 3))]), TRIAD)
        axes.set_title(title, fontsize=10)

    return Outcome([], draw, (6.5, 6.0))


def _cube(axes: Any, corners: Array, room: float) -> None:
    """Set equal axis scales around points (n, 3), and axis labels."""
    middle, half = (corners.max(axis=0) + corners.min(axis=0)) / 2, np.ptp(corners, axis=0).max() / 2 + room
    axes.set(**{f"{axis}lim": (m - half, m + half) for axis, m in zip("xyz", middle, strict=True)})
    axes.set(box_aspect=(1, 1, 1), **AXES)


def standard_frames() -> Outcome:
    """Return Figure 2.2 of Barman 2020: frame j is at the far end of link j."""
    title = "Figure 2.2: standard Denavit-Hartenberg frames of a random arm"
    return frames(standard().robot, standard().state[0], title)


def modified_frames() -> Outcome:
    """Return Fig. 1 of Guarino Lo Bianco 2009: frame i is on the axis of joint i."""
    return frames(modified().robot, modified().motion[0], "Fig. 1: modified Denavit-Hartenberg frames of a random arm")


def tree_frames() -> Outcome:
    """Return Figure 1 of Khalil 2010: six parameters, for branches."""
    return frames(tree().robot, tree().state[0], "Figure 1: frames of a random tree in six parameters")


def free_body(link: int = 1) -> Outcome:
    """Return Figure 2.1 of Barman 2020: the forces on a link, and their balance (eqs. 2.1 and 2.2)."""
    data, robot, (q, v, a), *_ = standard()
    wrenches, here, after = robot.joint_wrenches(q, v, a), *(barman.Link(data, k, q) for k in (link, link + 1))
    moved, w = robot.accelerations(q, v, a)[link], robot.velocities(q, v)[link, :3]
    r, inertia = data.r[link], data.I[link]
    gravity = robot.poses(q)[link, :3, :3].T @ data.g
    centre = moved[3:] + np.cross(moved[:3], r) + np.cross(w, np.cross(w, r))
    F_G = data.m[link] * (centre - gravity)
    tau_G = inertia @ moved[:3] + np.cross(w, inertia @ w)
    F_p, F_d = wrenches[link, 3:], after.R @ wrenches[link + 1, 3:]
    tau_p = wrenches[link, :3] + np.cross(here.Dx, F_p)  # about the proximal end
    tau_d = after.R @ (wrenches[link + 1, :3] + np.cross(after.Dx, wrenches[link + 1, 3:]))
    rows = [
        same("F_p = F_G + F_d, eq. 2.1", F_G + F_d, F_p, unit="N"),
        same("τ_p, eq. 2.2", tau_G + tau_d - np.cross(F_G, here.DxG) - np.cross(F_d, here.Dx), tau_p, unit="N m"),
    ]

    def draw(figure: Any) -> None:
        axes = figure.add_subplot(projection="3d")
        ends = np.array([np.zeros(3), here.Dx])  # in the axes of the link, from its proximal end
        axes.plot(*ends.T, color="0.6", linewidth=5)
        arrows = [(ends[0], F_p, "F_p", COLOURS[2]), (ends[1], -F_d, "-F_d", COLOURS[0])]
        _arrows(axes, [*arrows, (here.DxG, -F_G, "-F_G", COLOURS[1])], float(np.linalg.norm(here.Dx)))
        axes.scatter(*here.DxG, color="k", s=20)
        axes.set_title("Figure 2.1: forces on link 2, in balance (its axes; dot: centre of mass)", fontsize=10)

    return Outcome(rows, draw, (6.0, 5.5))


def link_of_a_tree(link: int = 0) -> Outcome:
    """Return Figure 3 of Khalil 2010: forces and moments on a link with children, in balance (eq. 25)."""
    rows = [zero("forces and moments on a link with children", DECISIONS["khalil/eq-25"]().corrected)]

    def draw(figure: Any) -> None:
        data, _, state, fe, *_ = tree()
        f, axes = khalil.inverse_dynamics(data, *state, fe, tree().me).f, figure.add_subplot(projection="3d")
        children = [k for k, i in enumerate(data.antecedent) if i == link]
        places = khalil.placements(data, state[0])
        pushed = [(places[k][1], -places[k][0] @ f[k], f"-f_{k + 1}", COLOURS[0]) for k in children]
        inertial = sum((force for _, force, *_ in pushed), f[link] - fe[link])  # -F_j closes the polygon
        arrows = [(np.zeros(3), f[link], f"f_{link + 1}", COLOURS[2]), *pushed]
        arrows += [(data.MS[link] / data.M[link], -inertial, f"-F_{link + 1}", COLOURS[1])]
        arrows += [(np.zeros(3), -fe[link], f"-f_e{link + 1}", "0.4")]
        for place, *_ in pushed:
            axes.plot(*np.array([np.zeros(3), place]).T, color="0.6", linewidth=5)
        _arrows(axes, arrows, max(float(np.linalg.norm(place)) for place, *_ in pushed))
        axes.set_title(f"Figure 3: forces on link {link + 1} of a random tree (its axes)", fontsize=10)

    return Outcome(rows, draw, (6.0, 5.5))


def _arrows(axes: Any, arrows: Sequence[tuple[Array, Array, str, str]], size: float) -> None:
    """Draw forces (place, force, name, colour), scaled so that the largest arrow has the length ``size``."""
    scale = size / max(float(np.linalg.norm(force)) for _, force, *_ in arrows)
    ends = [np.zeros(3)]
    for place, force, name, colour in arrows:
        axes.quiver(*place, *(scale * force), color=colour, linewidth=2, arrow_length_ratio=0.12)
        axes.text(*(place + 1.1 * scale * force), name, color=colour)
        ends += [place, place + scale * force]
    _cube(axes, np.array(ends), 0.05)


def drives() -> Outcome:
    """Return Fig. 1 of Hua et al. 2022: a rigid joint, and an elastic one with a spring after its gear."""

    def draw(figure: Any) -> None:
        for axes, is_elastic in zip(figure.subplots(1, 2), (False, True), strict=True):
            axes.plot([0, 2.2], [0, 0], color="0.4", linewidth=6, solid_capstyle="round")
            axes.text(0.5, -0.35, "link i, with the motor")
            axes.add_patch(_box(0.7, 0.1, 0.7, 0.5, "C0"))
            axes.text(0.75, 0.7, "motor j", color="C0")
            axes.plot([1.4, 1.7], [0.35, 0.35], color="C0", linewidth=3)
            axes.add_patch(_box(1.7, 0.1, 0.25, 0.5, "C1"))
            axes.text(1.62, 0.7, "gear η", color="C1")
            x = np.linspace(1.95, 2.75, 200)
            wave = 0.12 * np.sin(2 * np.pi * 5 * (x - 1.95) / 0.8) if is_elastic else 0 * x
            axes.plot(x, 0.35 + wave, color="C3" if is_elastic else "k", linewidth=2)
            if is_elastic:
                axes.text(2.05, 0.55, "K (θ - q)", color="C3")
                axes.text(1.98, 0.12, "θ")
            axes.plot([2.75, 4.2], [0.35, 0.35], color="0.2", linewidth=6, solid_capstyle="round")
            axes.text(3.0, 0.5, "driven link")
            axes.text(2.85, 0.05, "q")
            axes.set(xlim=(-0.2, 4.4), ylim=(-0.6, 1.1))
            axes.set_axis_off()
            axes.set_title(f"Fig. 1{'b: an elastic' if is_elastic else 'a: a rigid'} joint", fontsize=10)

    return Outcome([], draw, (9.0, 2.6))


def _box(x: float, y: float, width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=colour, alpha=0.4, edgecolor=colour)


def unified_body() -> Outcome:
    """Return Fig. 2 of Hua et al. 2022: link 1 of the arm and two motors as one rigid body, with rotors locked."""
    link, heights = library.elastic_arm().links[0], (0.15, 0.3)  # m, of the link's centre of mass and of the motors

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot([0, 0], [0, 2 * heights[0]], color="0.6", linewidth=8, solid_capstyle="round")
        for x, name in ((-0.05, "motor 2"), (0.02, "motor 3")):
            axes.add_patch(_box(x, heights[1] - 0.015, 0.03, 0.03, "C0"))
            axes.text(x - 0.005, heights[1] + 0.022, name, color="C0", fontsize=9)
        axes.plot(0, heights[0], "k+", markersize=12, label="centre of mass of the link")
        axes.plot(0, link.com[1], "C3o", markersize=8, label="of link and motors")
        axes.set_xlim(-0.15, 0.15)
        axes.set_aspect("equal")
        tidy(axes, "Fig. 2: link 1 and its motors, one body", "m", "m", beside=True)

    rows = [
        numbers("mass of link 1 (2.5 kg) with motors 2 and 3 (1.0 kg each; Table I)", ["4.5"], [link.mass], "kg"),
        only("height of its centre of mass", f"{link.com[1]:.4f} m"),
    ]
    return Outcome(rows, draw, (5.5, 4.0))


def two_link_arm() -> Outcome:
    """Return Figure 4.1 of Barman 2020: the arm, its angles and centres of mass."""

    def draw(figure: Any) -> None:
        robot, axes = library.two_link().to(device="casadi"), figure.subplots()
        q = np.array([0.5, 0.7])
        poses = robot.poses(q)
        corners = np.vstack([np.zeros(3), poses[:, :3, 3]])
        axes.plot(corners[:, 0], corners[:, 1], "o-", color="0.4", linewidth=4)
        centres = np.array([(pose @ [*link.com, 1.0])[:2] for pose, link in zip(poses, robot.links, strict=True)])
        axes.plot(centres[:, 0], centres[:, 1], "k+", markersize=12, label="centres of mass")
        for k, (corner, angle) in enumerate(zip(corners, q, strict=False)):
            start = 0.0 if k == 0 else q[0]
            turn = np.linspace(start, start + angle, 30)
            axes.plot(corner[0] + 0.1 * np.cos(turn), corner[1] + 0.1 * np.sin(turn), color=f"C{k}", label=f"q_{k + 1}")
            far = corner[:2] + 0.25 * np.array([np.cos(start), np.sin(start)])
            axes.plot([corner[0], far[0]], [corner[1], far[1]], "--", color="0.7", linewidth=1)
        axes.set_aspect("equal")
        tidy(axes, "Figure 4.1: links of 0.4 m, 0.5 kg each", "x (m)", "y (m)")

    return Outcome([], draw, (5.0, 4.2))


def cut_joint() -> Outcome:
    """Return Figure 2 of Khalil 2010: frames k and k + B of a cut joint, which coincide."""
    robot = library.five_bar().to(device="casadi")
    q = robot.closed.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.33])
    poses, far = robot.poses(q), np.array([0.4, 0.0, 0.0, 1.0])
    pins = [(poses[k] @ far)[:2] for k in (1, 3)]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for chain, name in (((0, 1), "links 1 and 2"), ((2, 3), "links 3 and 4")):
            corners = np.vstack([poses[list(chain), :2, 3], (poses[chain[-1]] @ far)[:2]])
            axes.plot(corners[:, 0], corners[:, 1], "o-", linewidth=4, label=name)
        for k, style, label in ((1, "-", "frame k, on link 2"), (3, "--", "frame k + B, on link 4")):
            for axis, colour in zip(range(2), COLOURS, strict=False):
                end = pins[0] + 0.1 * poses[k, :2, axis]
                axes.plot(*np.array([pins[0], end]).T, style, color=colour, label=label if axis == 0 else None)
        axes.set_aspect("equal")
        tidy(axes, "Figure 2: the cut joint of a five-bar, and its two frames", "x (m)", "y (m)")

    return Outcome([], draw, (6.0, 5.0))
