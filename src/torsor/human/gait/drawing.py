"""Pictures of a human body: from three sides, and in motion (matplotlib, the extra ``plot``)."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.checks import positive
from torsor.errors import ModelError, describe
from torsor.human.contact.schedule import Walk
from torsor.human.gait.stride import Stride
from torsor.human.terms.forces import Grounded
from torsor.motion import MotionResult
from torsor.robot.robot import Robot

__all__ = ["ARROW", "LONG", "animate", "draw", "figure_of", "landmarks", "skeleton"]

Array = NDArray[np.float64]

COLOURS = {"right": "#c1403d", "left": "#2f6db3", "": "#4a4a4a"}
ARROW = {"arrowstyle": "-|>", "color": "#2c8c4a", "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
LONG = 0.5  # of an arrow that is a force of the whole weight (m)

MARKS = 0.2  # between marks on the ground (m)
DOTTED = 1.0  # of the scale, below which joints have no dots

# Lines through links and landmarks, and how thick they are (points): of each side, then of the middle.
LIMBS = (
    (("pelvis", "thigh"), 3.0),
    (("thigh", "shank", "foot"), 4.5),
    (("spine4", "clavicle", "upper_arm"), 3.0),
    (("upper_arm", "forearm", "hand", "knuckles"), 3.5),
)
# Faces of a foot: with "-" and "+" to the inner and outer side of the middle.
FACES = (
    ("heel-", "heel+", "ball+", "ball-"),
    ("heel-", "foot", "ball-"),
    ("heel+", "foot", "ball+"),
    ("heel-", "foot", "heel+"),
    ("ball-", "foot", "ball+"),
    ("ball-", "ball+", "toe+", "toe-"),
)
ASIDE = {"heel": 0.6, "ball": 1.0, "toe": 0.7}  # in parts of half the width
SIGNS = {"-": -1.0, "+": 1.0}
CHEST = ("right_upper_arm", "left_upper_arm", "left_thigh", "right_thigh")
TRUNK = ("pelvis", "spine1", "spine2", "spine3", "spine4", "neck", "head")
MIDDLE = (*TRUNK, "vertex")

# Of each view: which axes go to the right and up, of what is nearer to who looks, and the names of the axes.
VIEWS: dict[str, tuple[tuple[int, float], tuple[int, float], tuple[int, float], tuple[str, str]]] = {
    "front": ((0, 1.0), (1, 1.0), (2, 1.0), ("x, left (m)", "y, up (m)")),
    "side": ((2, 1.0), (1, 1.0), (0, -1.0), ("z, forward (m)", "y, up (m)")),
    "top": ((0, 1.0), (2, -1.0), (1, 1.0), ("x, left (m)", "z, forward is down (m)")),
}


def figure_of(width: float, height: float, tidy: bool = True) -> Any:
    """Return an empty figure of that size (inches); ``tidy``: its panels make room for their labels."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("figures need matplotlib; fix: pip install torsor[plot]") from None
    return Figure(figsize=(width, height), layout="constrained" if tidy else None)


def landmarks(body: Robot, q: ArrayLike) -> dict[str, Array]:
    """Return where links and landmarks of a body are, by name (..., 3), for postures q (..., 55).

    Of feet there are also edges: ``right_heel-`` is inside of the middle of the heel, ``right_heel+`` outside.

    Example:
        >>> import torsor
        >>> points = landmarks(torsor.library.human(), np.zeros(55))
        >>> points["right_thigh"].round(4).tolist(), bool(abs(points["left_heel"][1]) < 1e-12)
        ([-0.085, 0.9425, 0.0], True)
    """
    names = [link.name for link in body.links if "/" not in link.name and link.name != "ground"]
    names += [frame.name for frame in body.frames]
    places = [body.place(name) for name in names]
    poses = _drawn(body).poses(np.asarray(q, dtype=float))
    found = {name: poses[..., at.link, :3, :] @ at.pose[:, 3] for name, at in zip(names, places, strict=True)}
    for side in ("right", "left"):
        half = found[f"{side}_ball"] - found[f"{side}_ball_medial"]
        for name, share in ASIDE.items():
            found |= {
                f"{side}_{name}{end}": found[f"{side}_{name}"] + sign * share * half for end, sign in SIGNS.items()
            }
    return found


@lru_cache(maxsize=8)
def _drawn(body: Robot) -> Robot:
    """Return the body in CasADi's virtual machine: pictures have few postures, for which nothing need be compiled."""
    return body.to(device="casadi")


def skeleton(axes: Any, points: dict[str, Array], view: str, shift: float = 0.0, scale: float = 1.0) -> None:
    """Draw one posture into a panel, seen from the "front", its right "side" or the "top", moved aside by a shift."""
    (across, right), (along, up), (depth, near), _ = VIEWS[view]

    def flat(names: Sequence[str]) -> tuple[Array, Array]:
        at = np.array([points[name] for name in names])
        return right * at[:, across] + shift, up * at[:, along]

    def order(names: Sequence[str]) -> float:
        """Return how near a line is to who looks."""
        return 3.0 + near * float(np.mean([points[name][depth] for name in names]))

    style: dict[str, Any] = {"solid_capstyle": "round", "solid_joinstyle": "round"}
    for side in ("right", "left"):
        colour = COLOURS[side]
        for names, width in LIMBS:
            own = [name if name in MIDDLE else f"{side}_{name}" for name in names]
            axes.plot(*flat(own), color=colour, linewidth=width * scale, zorder=order(own), **style)
            if scale >= DOTTED:
                axes.plot(*flat(own[1:]), "o", color="white", markersize=1.5 * scale, zorder=order(own) + 0.01)
        for face in FACES:
            foot = [f"{side}_{name}" for name in face]
            axes.fill(*flat(foot), color=colour, linewidth=1.0 * scale, joinstyle="round", zorder=order(foot))
    axes.fill(*flat(CHEST), color=COLOURS[""], alpha=0.13, linewidth=0, zorder=1)
    axes.plot(*flat(TRUNK), color=COLOURS[""], linewidth=5.0 * scale, zorder=order(TRUNK), **style)
    if scale >= DOTTED:
        axes.plot(*flat(TRUNK[1:-1]), "o", color="white", markersize=1.5 * scale, zorder=order(TRUNK) + 0.01)
    from matplotlib.patches import Circle

    x, y = flat(("head", "vertex"))
    size = float(np.linalg.norm(points["vertex"] - points["head"])) / 2
    middle = float(x.mean()), float(y.mean())
    axes.add_patch(
        Circle(middle, size, facecolor=COLOURS[""], edgecolor="white", zorder=order(("head", "vertex")) + 0.02)
    )


def _panel(axes: Any, view: str, title: str) -> None:
    axes.set(title=title, aspect="equal", xlabel=VIEWS[view][3][0], ylabel=VIEWS[view][3][1])
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw(body: Robot, q: ArrayLike | None = None, path: str | Path | None = None) -> Any:
    """Return a figure of a body (``library.human``) in a posture q (55,), from the front, its right side and the top.

    Without a posture it stands. The right side is red, the left blue; ``path`` saves the figure.

    Example:
        >>> import torsor
        >>> figure = draw(torsor.library.human())
        >>> [axes.get_title() for axes in figure.axes]
        ['front', 'right side', 'top']
    """
    posture = body.neutral() if q is None else np.asarray(q, dtype=float)
    if posture.shape != (body.nq,):
        raise ModelError(describe(f"q has shape {posture.shape}", where=body.name, allowed=f"one posture ({body.nq},)"))
    figure, points = figure_of(11.0, 6.4), landmarks(body, posture)
    all_ = np.array(list(points.values()))
    middle, ends = (all_.min(axis=0) + all_.max(axis=0)) / 2, np.ptp(all_, axis=0) / 2 + 0.08
    half, (low, high) = max(0.5, ends[0], ends[2]), (min(0.0, all_[:, 1].min()) - 0.08, all_[:, 1].max() + 0.12)
    titles = {"front": "front", "side": "right side", "top": "top"}
    for axes, view in zip(figure.subplots(1, 3), VIEWS, strict=True):
        (across, _), (along, up), *_ = VIEWS[view]
        skeleton(axes, points, view)
        _panel(axes, view, titles[view])
        axes.set_xlim(middle[across] - half, middle[across] + half)
        if view == "top":
            axes.set_ylim(up * middle[along] - half, up * middle[along] + half)
            axes.yaxis.set_major_formatter(lambda value, _: f"{0.0 - round(value, 6):g}")
        else:
            axes.set_ylim(low, high)
            axes.axhline(0.0, color="0.6", linewidth=1.0, zorder=0)
    if path is not None:
        figure.savefig(path, dpi=110)
    return figure


def _frames(result: MotionResult, rate: float) -> tuple[Robot, Array, Callable[[int, str], list[tuple[Array, Array]]]]:
    """Return a body, postures (K, 55), and what gives the ground's forces (m) of one of them with where they act."""
    problem = result.problem
    term = next((each for each in problem.terms if isinstance(each, Grounded)), None)
    if term is None or not isinstance(term.support, Walk):
        times = np.linspace(0.0, result.T, max(2, round(result.T * rate)))
        return (result.robot if term is None else term.body), result.at(times).q, lambda k, view: []
    stride = Stride(result)
    kept = np.linspace(0, len(stride.share) - 1, round(stride.duration * rate), endpoint=False).round().astype(int)
    forces, pressure = stride.forces[kept], stride.pressure[kept]

    def arrows(k: int, view: str) -> list[tuple[Array, Array]]:
        (across, right), (along, up), *_ = VIEWS[view]
        found = []
        for foot in range(2):
            if np.isfinite(pressure[k, foot]).all():
                at, way = np.insert(pressure[k, foot], 1, 0.0), LONG * forces[k, foot]
                found.append(
                    (np.array([right * at[across], up * at[along]]), np.array([right * way[across], up * way[along]]))
                )
        return found

    return stride.body, stride.samples.q[kept], arrows


def animate(result: MotionResult, path: str | Path, rate: int = 25, slower: float = 1.0) -> Path:
    """Write a motion of a body as a .gif from its right side and the front, and return where.

    A walk is one stride, which goes on for ever, with the ground's forces; any other motion of a body is shown once
    from start to end. ``rate`` is that of pictures (1/s), ``slower`` how many times slower than in truth it runs.
    """
    target = Path(path)
    if target.suffix.lower() != ".gif":
        raise ModelError(
            describe(f"cannot write {target.name!r}", where="animate", allowed="a name that ends with .gif")
        )
    if isinstance(rate, bool) or not isinstance(rate, int) or rate < 1:
        raise ModelError(describe(f"rate is {rate!r}", where="animate", allowed="a whole number from 1"))
    positive(slower, "animate", "slower")
    figure = figure_of(8.0, 5.2, tidy=False)
    figure.subplots_adjust(0.02, 0.02, 0.98, 0.93)
    try:
        from matplotlib.animation import FuncAnimation, PillowWriter
    except ImportError:
        raise ImportError("animations need matplotlib and pillow; fix: pip install torsor[plot]") from None
    body, q, arrows = _frames(result, rate * slower)
    points = landmarks(body, q)
    panels = figure.subplots(1, 2, width_ratios=[1.5, 1.0])
    top = 1.08 * float(max(each[..., 1].max() for each in points.values()))
    for axes, title, half in zip(panels, ("right side", "front"), (0.9, 0.6), strict=True):
        axes.set(title=title, aspect="equal", xlim=(-half, half), ylim=(-0.1, top))
        axes.axis("off")

    def show(k: int) -> list[Any]:
        here = {name: each[k] for name, each in points.items()}
        for axes, view in zip(panels, ("side", "front"), strict=True):
            for old in (*axes.lines, *axes.patches, *axes.texts):
                old.remove()
            shift = -float(here["pelvis"][2]) if view == "side" else 0.0
            skeleton(axes, here, view, shift, scale=0.9)
            for at, way in arrows(k, view):
                foot = at + np.array([shift, 0.0])
                axes.annotate("", foot + way, foot, arrowprops=ARROW, zorder=9)
            axes.plot([-2.0, 2.0], [0.0, 0.0], color="0.4", linewidth=1.2, zorder=0)
            if view == "side":  # marks on the ground tell how far it goes
                marks = MARKS * np.arange(np.ceil((-1.0 - shift) / MARKS), np.floor((1.0 - shift) / MARKS) + 1) + shift
                axes.plot(marks, np.full(len(marks), -0.02), "|", color="0.4", markersize=6)
        return []

    movie = FuncAnimation(figure, show, frames=len(q), blit=False)
    movie.save(target, writer=PillowWriter(fps=rate), dpi=70)
    return target
