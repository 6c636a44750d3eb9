"""Pictures of a body in a posture: skeletons from three directions (matplotlib, extra ``plot``)."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array
from torsor.base.figures import label_of_title, new_figure, saved
from torsor.human.body.coordinates import SIDES
from torsor.human.body.loads import Backpack, Box
from torsor.human.contact.support import convex_hull
from torsor.robot.robot import Robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DEPTH = 0.3  # depth and height of a drawn box (m); the model includes only the width
CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
EDGES = [(a, b) for a in range(8) for b in range(a) if np.abs(CORNERS[a] - CORNERS[b]).sum() == 1]
COLOUR = "#a9794a"


def load_size(load: Backpack | Box) -> Array:
    """Return the drawn edge lengths (3,) of a load (m): lateral, vertical and forward."""
    return np.full(3, load.size) if isinstance(load, Backpack) else np.array([load.width, DEPTH, DEPTH])


def load_pose(body: Robot, poses: Array, load: Backpack | Box) -> Array:
    """Return the pose (..., 4, 4) of the centre of a load, from the link poses (..., L, 4, 4) of the body.

    The axes of the load point left, up and forward.
    """
    pose = np.zeros((*poses.shape[:-3], 4, 4))
    pose[..., 3, 3] = 1.0
    if isinstance(load, Backpack):
        trunk = poses[..., body.link_names.index("spine4"), :3, :]
        pose[..., :3, :3] = trunk[..., :3]
        pose[..., :3, 3] = trunk @ np.array([0.0, load.height, -load.behind, 1.0])
        return pose
    places = [body.place(f"{side}_knuckles") for side in SIDES]
    right, left = (poses[..., place.link, :3, :] @ place.pose[:, 3] for place in places)
    across = (left - right) / np.linalg.norm(left - right, axis=-1, keepdims=True)
    forward = np.cross(across, [0.0, 1.0, 0.0])
    forward = forward / np.linalg.norm(forward, axis=-1, keepdims=True)
    pose[..., :3, :3] = np.stack([across, np.cross(forward, across), forward], axis=-1)
    pose[..., :3, 3] = (right + left) / 2
    return pose


COLOURS = {"right": "#c1403d", "left": "#2f6db3", "": "#4a4a4a"}
ARROW = {"arrowstyle": "-|>", "color": "#2c8c4a", "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
WEIGHT_ARROW_LENGTH = 0.5  # length of the arrow of one body weight (m)
MIN_DOTTED_SCALE = 1.0  # smallest scale at which joints are drawn as dots

# Lines through links and landmarks of each side, and their line widths (points).
LIMBS = (
    (("pelvis", "thigh"), 3.0),
    (("thigh", "shank", "foot"), 4.5),
    (("spine4", "clavicle", "upper_arm"), 3.0),
    (("upper_arm", "forearm", "hand", "knuckles"), 3.5),
)
# Faces of a foot; "-" and "+" denote the medial and the lateral edge.
FACES = (
    ("heel-", "heel+", "ball+", "ball-"), ("heel-", "foot", "ball-"), ("heel+", "foot", "ball+"),
    ("heel-", "foot", "heel+"), ("ball-", "foot", "ball+"), ("ball-", "ball+", "toe+", "toe-"),
)  # fmt: skip
EDGE_FRACTIONS = {"heel": 0.6, "ball": 1.0, "toe": 0.7}  # positions of edges, as fractions of half the foot width
SIGNS = {"-": -1.0, "+": 1.0}
CHEST = ("right_upper_arm", "left_upper_arm", "left_thigh", "right_thigh")
TRUNK = ("pelvis", "spine1", "spine2", "spine3", "spine4", "neck", "head")
MIDDLE = (*TRUNK, "vertex")
LOAD = tuple(f"load{k}" for k in range(8))  # names of the corners of a load

# For each view: the axes (with signs) to the right, upwards and towards the viewer, and the axis labels.
VIEWS: dict[str, tuple[tuple[int, float], tuple[int, float], tuple[int, float], tuple[str, str]]] = {
    "front": ((0, 1.0), (1, 1.0), (2, 1.0), ("x, left (m)", "y, up (m)")),
    "side": ((2, 1.0), (1, 1.0), (0, -1.0), ("z, forward (m)", "y, up (m)")),
    "top": ((0, 1.0), (2, -1.0), (1, 1.0), ("x, left (m)", "z, forward is down (m)")),
}


def landmarks(body: Robot, q: ArrayLike, load: Backpack | Box | None = None) -> dict[str, Array]:
    """Return the positions (..., 3) of links and landmarks of a body by name, for postures q (..., 55).

    The edges of the feet are included (``right_heel-`` is the medial and ``right_heel+`` the lateral edge of the heel),
    as are the corners of a ``load``.
    """
    names = [link.name for link in body.links if "/" not in link.name and link.name != "ground"]
    names += [frame.name for frame in body.frames]
    places = [body.place(name) for name in names]
    poses = _drawn(body).poses(np.asarray(q, dtype=float))
    points = {name: poses[..., at.link, :3, :] @ at.pose[:, 3] for name, at in zip(names, places, strict=True)}
    for side in SIDES:
        half = points[f"{side}_ball"] - points[f"{side}_ball_medial"]
        for name, fraction in EDGE_FRACTIONS.items():
            points |= {
                f"{side}_{name}{end}": points[f"{side}_{name}"] + k * fraction * half for end, k in SIGNS.items()
            }
    if load is not None:
        pose = load_pose(body, poses, load)
        local = load_size(load) * CORNERS
        corners = np.asarray(local @ np.swapaxes(pose[..., :3, :3], -1, -2) + pose[..., None, :3, 3])
        points |= {name: corners[..., k, :] for k, name in enumerate(LOAD)}
    return points


@lru_cache(maxsize=8)
def _drawn(body: Robot) -> Robot:
    """Return the body with CasADi's virtual machine, because compilation would take too long for a few postures."""
    return body.to(device="casadi")


def skeleton(axes: Any, points: dict[str, Array], view: str, shift: float = 0.0, scale: float = 1.0) -> None:
    """Draw a posture in a panel, seen from the "front", the right "side" or the "top", with an offset ``shift`` (m)."""
    (across, right), (along, up), (depth, near), _ = VIEWS[view]

    def flat(names: Sequence[str]) -> tuple[Array, Array]:
        at = np.array([points[name] for name in names])
        return right * at[:, across] + shift, up * at[:, along]

    def order(names: Sequence[str]) -> float:
        """Return the drawing order of a line; lines closer to the viewer are drawn later."""
        return 3.0 + near * float(np.mean([points[name][depth] for name in names]))

    style: dict[str, Any] = {"solid_capstyle": "round", "solid_joinstyle": "round"}
    for side in SIDES:
        colour = COLOURS[side]
        for names, width in LIMBS:
            line = [name if name in MIDDLE else f"{side}_{name}" for name in names]
            axes.plot(*flat(line), color=colour, linewidth=width * scale, zorder=order(line), **style)
            if scale >= MIN_DOTTED_SCALE:
                axes.plot(*flat(line[1:]), "o", color="white", markersize=1.5 * scale, zorder=order(line) + 0.01)
        for face in FACES:
            foot = [f"{side}_{name}" for name in face]
            axes.fill(*flat(foot), color=colour, linewidth=1.0 * scale, joinstyle="round", zorder=order(foot))
    axes.fill(*flat(CHEST), color=COLOURS[""], alpha=0.13, linewidth=0, zorder=1)
    axes.plot(*flat(TRUNK), color=COLOURS[""], linewidth=5.0 * scale, zorder=order(TRUNK), **style)
    if scale >= MIN_DOTTED_SCALE:
        axes.plot(*flat(TRUNK[1:-1]), "o", color="white", markersize=1.5 * scale, zorder=order(TRUNK) + 0.01)
    if LOAD[0] in points:
        corners, near_the_eye = np.column_stack(flat(LOAD)), order(LOAD) + 0.1
        axes.fill(*convex_hull(corners).T, color=COLOUR, alpha=0.55, linewidth=0, zorder=near_the_eye)
        for ends in EDGES:
            axes.plot(*corners[list(ends)].T, color=COLOUR, linewidth=0.9 * scale, zorder=near_the_eye)
    from matplotlib.patches import Circle

    x, y = flat(("head", "vertex"))
    size = float(np.linalg.norm(points["vertex"] - points["head"])) / 2
    middle, above = (float(x.mean()), float(y.mean())), order(("head", "vertex")) + 0.02
    axes.add_patch(Circle(middle, size, facecolor=COLOURS[""], edgecolor="white", zorder=above))


def draw(
    body: Robot, q: ArrayLike | None = None, path: str | Path | None = None, load: Backpack | Box | None = None
) -> "Figure":
    """Return a figure of a body (``library.human``) in a posture q (55,), from the front, the right side and the top.

    The default is the standing posture. The right side is red, the left side is blue, and a ``load`` is brown. With
    ``path``, the figure is also saved.

    Example:
        >>> figure = draw(torsor.library.human())
        >>> [axes.get_title() for axes in figure.axes]
        ['front', 'right side', 'top']
    """
    posture = frozen_array(body.neutral() if q is None else q, (body.nq,), body.name, "q")
    figure, points = new_figure(11.0, 6.4), landmarks(body, posture, load)
    all_ = np.array(list(points.values()))
    middle, ends = (all_.min(axis=0) + all_.max(axis=0)) / 2, np.ptp(all_, axis=0) / 2 + 0.08
    half, (low, high) = max(0.5, ends[0], ends[2]), (min(0.0, all_[:, 1].min()) - 0.08, all_[:, 1].max() + 0.12)
    titles = {"front": "front", "side": "right side", "top": "top"}
    for axes, view in zip(figure.subplots(1, 3), VIEWS, strict=True):
        (across, _), (along, up), _, (right_label, up_label) = VIEWS[view]
        skeleton(axes, points, view)
        axes.set(title=titles[view], aspect="equal", xlabel=right_label, ylabel=up_label)
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(middle[across] - half, middle[across] + half)
        if view == "top":
            axes.set_ylim(up * middle[along] - half, up * middle[along] + half)
            axes.yaxis.set_major_formatter(lambda value, _: f"{0.0 - round(value, 6):g}")
        else:
            axes.set_ylim(low, high)
            axes.axhline(0.0, color="0.6", linewidth=1.0, zorder=0)
    carried = "" if load is None else f" with a {type(load).__name__.lower()} of {load.mass:g} kg"
    figure.suptitle(label_of_title(f"{body.name} of {body.mass:.4g} kg{carried}"))
    return saved(figure, path, dpi=110)
