"""Figures that define symbols: frames of random robots in each convention, and the forces on a link, in balance."""

from typing import Any

import numpy as np

from torsor import library
from torsor.arrays import Array
from torsor.reproduce.documents.drawing import tidy
from torsor.reproduce.equations import barman
from torsor.reproduce.errata import by_name
from torsor.reproduce.item import Outcome, claim, same
from torsor.reproduce.samples import modified, standard, tree
from torsor.robot.robot import Robot

COLOURS = ("#c1403d", "#2c8c4a", "#2f6db3")  # of the axes x, y, z
TRIAD = 0.16  # m, length of a drawn axis


def _triad(axes: Any, pose: Array, name: str) -> None:
    origin = pose[:3, 3]
    for k, colour in enumerate(COLOURS):
        axes.plot(*np.array([origin, origin + TRIAD * pose[:3, k]]).T, color=colour, linewidth=2)
    axes.text(*(origin + 0.03), name, fontsize=9)


def _frames(figure: Any, robot: Robot, q: Array, title: str) -> None:
    """Draw the frames of all links and the lines between them, x red, y green, z blue."""
    axes, poses = figure.add_subplot(projection="3d"), robot.poses(q)
    _triad(axes, np.eye(4), "0")
    for k, parent in enumerate(robot.parents):
        before = np.zeros(3) if parent < 0 else poses[parent, :3, 3]
        axes.plot(*np.array([before, poses[k, :3, 3]]).T, color="0.5", linewidth=3, alpha=0.6)
        _triad(axes, poses[k], str(k + 1))
    _cube(axes, np.vstack([poses[:, :3, 3], np.zeros((1, 3))]), TRIAD)
    axes.set_title(title, fontsize=10)


def _cube(axes: Any, corners: Array, room: float) -> None:
    """Set equal scales around points (n, 3), and labels."""
    middle, half = (corners.max(axis=0) + corners.min(axis=0)) / 2, np.ptp(corners, axis=0).max() / 2 + room
    axes.set(**{f"{axis}lim": (m - half, m + half) for axis, m in zip("xyz", middle, strict=True)})
    axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", box_aspect=(1, 1, 1))


def standard_frames() -> Outcome:
    """Figure 2.2 of Barman 2020: frame j is at the far end of link j."""
    _, robot, (q, _, _), *_ = standard()
    title = "Figure 2.2: standard Denavit-Hartenberg frames of a random arm"
    return Outcome([], lambda figure: _frames(figure, robot, q, title), (6.5, 6.0))


def modified_frames() -> Outcome:
    """Fig. 1 of Guarino Lo Bianco 2009: frame i is on the axis of joint i."""
    _, robot, (q, *_) = modified()
    title = "Fig. 1: modified Denavit-Hartenberg frames of a random arm"
    return Outcome([], lambda figure: _frames(figure, robot, q, title), (6.5, 6.0))


def tree_frames() -> Outcome:
    """Figure 1 of Khalil 2010: six parameters, for branches."""
    _, robot, (q, _, _), *_ = tree()
    title = "Figure 1: frames of a random tree in six parameters"
    return Outcome([], lambda figure: _frames(figure, robot, q, title), (6.5, 6.0))


def free_body(link: int = 1) -> Outcome:
    """Figure 2.1 of Barman 2020: the forces on a link, and their balance (eqs. 2.1 and 2.2)."""
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
        scale = np.linalg.norm(here.Dx) / max(np.linalg.norm(each) for each in (F_p, F_d, F_G))
        tips = [*ends, here.DxG]
        for place, force, name, colour in (
            (ends[0], F_p, "F_p", COLOURS[2]),
            (ends[1], -F_d, "-F_d", COLOURS[0]),
            (here.DxG, -F_G, "-F_G", COLOURS[1]),
        ):
            axes.quiver(*place, *(scale * force), color=colour, linewidth=2, arrow_length_ratio=0.12)
            axes.text(*(place + 1.1 * scale * force), name, color=colour)
            tips.append(place + scale * force)
        axes.scatter(*here.DxG, color="k", s=20)
        _cube(axes, np.array(tips), 0.05)
        axes.set_title("Figure 2.1: forces on link 2, in balance (its axes; dot: centre of mass)", fontsize=10)

    return Outcome(rows, draw, (6.0, 5.5))


def link_of_a_tree() -> Outcome:
    """Figure 3 of Khalil 2010: forces and moments on a link with children, in balance (eq. 25)."""
    left = by_name["khalil/eq-25"].decide().corrected
    return Outcome([claim("forces and moments on a link with children", "in balance", f"to {left:.0e}", left < 1e-12)])


def two_link_arm() -> Outcome:
    """Figure 4.1 of Barman 2020: the arm, its angles and centres of mass."""

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
    """Figure 2 of Khalil 2010: frames k and k + B of a cut joint, which coincide."""
    robot = library.five_bar().to(device="casadi")
    q = robot.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.33])
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

    return Outcome([same("origins of the frames k and k + B", pins[0], pins[1], 1e-10, "m")], draw, (6.0, 5.0))
