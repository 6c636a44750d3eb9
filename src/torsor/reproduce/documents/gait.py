"""Barman 2020, chapter V: the skeleton and the predicted walk, with its numbers and figures."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.human import REFERENCES, Stride, ground_reaction
from torsor.human.body.coordinates import GLOBAL, SIDES, frozen_joints, mirror
from torsor.human.body.drawing import landmarks, skeleton
from torsor.human.contact.support import support_sides
from torsor.human.terms.habits import MIN_HAND_DISTANCE
from torsor.human.terms.places import POINTS as POINTS_OF_FOOT
from torsor.human.terms.problem import sampled, walk_of
from torsor.motion import Phase
from torsor.motion.terms.term import TOUCHING
from torsor.reproduce.documents.drawing import peaks, tidy
from torsor.reproduce.documents.printed_walk import KNEE, POINTS, TOLERANCE, habitual_walk, printed_walk
from torsor.reproduce.item import Basis, Compute, Outcome, Row, claim, lacking, number, only, power, zero

JOINTS = ("hip", "knee", "ankle")
AXES = ("lateral", "vertical", "fore-aft")
# Figure 5.1: which links a group of frozen coordinates moves, and how the thesis names the group.
ENCLOSED: dict[str, tuple[str, ...]] = {"neck and head": ("neck", "head"), "upper spine": ("spine3", "spine4")}
for _side in SIDES:
    ENCLOSED |= {f"{_side} clavicle": (f"{_side}_clavicle", f"{_side}_upper_arm"), f"{_side} wrist": (f"{_side}_hand",)}
LIMBS = ("thigh", "shank", "foot", "upper_arm", "forearm")
ACTIVE = ("pelvis", "spine1", "spine2", "spine3", *(f"{side}_{each}" for side in SIDES for each in LIMBS))
SPREAD, ROOM, MARK = 0.6, np.array([0.09, 0.1]), "#d97a00"  # rad of the shoulders; m around a joint
POSTURES = 7
WALKS: dict[str, Callable[[], Stride]] = {"printed equations": printed_walk, "with habits": habitual_walk}


def _model() -> Outcome:
    body = library.human()
    frozen = frozen_joints(body, None, "walk")
    rows = [
        number("degrees of freedom", "55", body.nv),
        number("global coordinates", "6", body.link_names.index("pelvis") + 1),
        number("active coordinates", "38", body.nv - len(frozen)),
        only("frozen coordinates", ", ".join(frozen)),
    ]
    return Outcome(rows, _draw_model, (7.5, 7.0))


def _draw_model(figure: Any) -> None:
    """Draw the body from the front with its arms spread and frozen coordinates enclosed, as in the thesis."""
    from matplotlib.patches import Ellipse

    body = library.human()
    q = np.zeros(body.nq)
    q[[body.coordinate_names.index(f"{side}_shoulder_adduction") for side in ("right", "left")]] = -SPREAD
    points, axes = landmarks(body, q), figure.subplots()
    skeleton(axes, points, "front")
    for name, links in ENCLOSED.items():
        corners = np.array([points[link][:2] for link in links])
        place, width = corners.mean(axis=0), np.ptp(corners, axis=0) + ROOM
        style: dict[str, Any] = {"fill": False, "linestyle": "--", "linewidth": 1.6, "edgecolor": MARK, "zorder": 20}
        axes.add_patch(Ellipse(tuple(place), *width, **style))
        side = -1.0 if "right" in name else 1.0
        label, arrow = (0.62 * side, place[1] + 0.12), {"arrowstyle": "-", "color": MARK}
        axes.annotate(name, place, label, ha="left" if side > 0 else "right", va="center", fontsize=9, arrowprops=arrow)
    dots = np.array([points[joint] for joint in ACTIVE])
    style = {"color": "#2c8c4a", "markersize": 6, "zorder": 21, "label": "joints with active coordinates"}
    axes.plot(dots[:, 0], dots[:, 1], "o", **style)
    axes.plot([], [], "--", color=MARK, label="frozen for walking")
    axes.set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-0.1, 2.05))
    tidy(axes, "Figure 5.1: the skeleton with 55 degrees of freedom", "x, left (m)", "y, up (m)")


def _numbers() -> list[Row]:
    result = printed_walk().result
    program, frozen = result.problem.program, library.human().nv - len(result.problem.model.names)
    return [
        lacking("constraints", "1726", f"{program.m}"),
        lacking("active constraints", "244", f"{len(result.active)}, including bounds on variables"),
        only("variables", f"{program.n}; {program.n + POINTS * frozen} with those of the {frozen} frozen coordinates"),
        lacking("CPU time of the optimisation", f"{CPU} s", "depends on the computer"),
    ]


def _both(what: str, printed: str, judge: Callable[[Stride], tuple[str, bool]]) -> list[Row]:
    """Return the rows of a statement about the printed walk, which data missing in the thesis may explain.

    The walk with habits has other data, such as narrower joint limits. If the statement holds for it, such data explain
    why it does not hold for the printed walk.
    """
    (words, holds), (others, predicted) = (judge(walk()) for walk in WALKS.values())
    return [claim(what, printed, words, holds, predicted=predicted), only(f"{what}, with habits", others)]


def _snapshots() -> Outcome:
    def spine(walk: Stride) -> tuple[str, bool]:
        R, T = (walk.body.pose(walk.samples.q, link)[:, :3, :3] for link in ("pelvis", "spine4"))
        angle = float(np.degrees(np.arccos((np.einsum("kij,kij->k", R, T).min() - 1) / 2)))
        return f"bends by up to {angle:.0f} degrees", angle < STRAIGHT

    def draw(figure: Any) -> None:
        for axes, (name, walk) in zip(figure.subplots(2, 1), WALKS.items(), strict=True):
            places = np.linspace(0, np.searchsorted(walk().s, 0.5), POSTURES).round().astype(int)
            points = landmarks(walk().body, walk().samples.q[places])
            for k in range(POSTURES):
                skeleton(axes, {link: each[k] for link, each in points.items()}, "side", 0.6 * k, scale=0.6)
            axes.axhline(0.0, color="0.5", linewidth=1.0)
            axes.set(aspect="equal")
            tidy(axes, f"Figure 5.2: one step, {name}; postures moved apart by 0.6 m", "m", "m")

    return Outcome(_both("spine", "straight", spine), draw, (9.0, 7.5))


def _angles() -> Outcome:
    text = "not compared: no data"
    rows = [lacking("magnitudes and trends", "consistent with Xiang et al. 2009b", text, Basis.PROPERTY)]
    alike, apart = list[str](), list[str]()
    for name, walk in WALKS.items():
        likeness = walk().likeness()
        found = [likeness[f"{joint}_flexion"] for joint in JOINTS]
        alike.append(f"{name}: {', '.join(f'{each.correlation:.1f}' for each in found)}")
        apart.append(f"{name}: {', '.join(f'{each.rms:.0f}' for each in found)} degrees")
    rows += [
        only(f"correlation with human data ({', '.join(JOINTS)})", "; ".join(alike)),
        only(f"RMS difference from human data ({', '.join(JOINTS)})", "; ".join(apart)),
    ]
    panels = _three_panels(lambda walk: [walk.angle(f"{joint}_flexion") for joint in JOINTS], JOINTS, "5.3", "degrees")

    def draw(figure: Any) -> None:
        panels(figure)
        for axes, joint in zip(figure.axes, JOINTS, strict=True):
            people = REFERENCES[f"{joint}_flexion"].mean
            axes.plot(np.linspace(0, 100, len(people)), people, ":", color="0.4", label="people")
            axes.legend(fontsize="small", frameon=False)

    return Outcome(rows, draw, (11.0, 3.6))


def _three_panels(
    curves: Callable[[Stride], Sequence[Array]], titles: Sequence[str], number: str, unit: str
) -> Callable[[Any], None]:
    """Return a function that draws three curves of both walks over the stride."""

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 3)
        for name, style in zip(WALKS, ("-", "--"), strict=True):
            walk = WALKS[name]()
            for axes, letter, title, values in zip(panels, "abc", titles, curves(walk), strict=True):
                axes.plot(100 * walk.s, values, style, linewidth=1.6, label=name)
                tidy(axes, f"Figure {number}({letter}): {title}", "% of the stride", unit if letter == "a" else "")

    return draw


def _forces() -> Outcome:
    def stance(walk: Stride) -> Array:
        force = 100 * walk.force
        return np.asarray(force[force[:, 1] > 1.0])

    def vertical(walk: Stride) -> tuple[str, bool]:
        count = peaks(stance(walk)[:, 1], 0.05)
        return f"{count} peaks", count == 2

    def forward(walk: Stride) -> tuple[str, bool]:
        low, high = (int(find(stance(walk)[:, 2])) for find in (np.argmin, np.argmax))
        return "decelerates, then accelerates" if low < high else "accelerates first", low < high

    def lateral(walk: Stride) -> tuple[str, bool]:
        share = float(np.mean(stance(walk)[:, 0] > 0))
        return f"{100 * share:.0f} % of the stance in one direction", share > SAME_SIDE

    def jump(walk: Stride) -> str:
        start, end = sampled(walk.result, np.array([0.0, 1.0])).forces[:, :, 1].sum(axis=1) / walk.weight
        return f"{100 * abs(end - start):.0f} % of the weight"

    jumps = [f"{name}: {jump(walk())}" for name, walk in WALKS.items()]
    rows = [
        *_both("vertical force", "double peak", vertical),
        *_both("fore-aft force", "decelerating and accelerating", forward),
        *_both("lateral force", "during the entire stance", lateral),
        only("jump of the vertical force between steps (eq. 5.8 omits accelerations)", "; ".join(jumps)),
    ]
    titles = [f"{axis} ground force" for axis in AXES]
    return Outcome(
        rows, _three_panels(lambda walk: list(100 * walk.force.T), titles, "5.4", "% of the weight"), (11.0, 3.6)
    )


def _reactions() -> Outcome:
    def norms(walk: Stride) -> list[Array]:
        return [100 * np.linalg.norm(walk.reaction(joint), axis=1) for joint in JOINTS]

    def similar(k: int, walk: Stride) -> tuple[str, bool]:
        up, norm = walk.force[:, 1], norms(walk)[k]
        alike = float(np.corrcoef(norm[up > STANCE], up[up > STANCE])[0, 1])
        return f"correlation {alike:.2f}", alike > 0.8

    def swing(walk: Stride) -> tuple[str, bool]:
        means = [float(norm[walk.force[:, 1] <= STANCE].mean()) for norm in norms(walk)]
        return ", ".join(f"{each:.0f} %" for each in means), max(means) - min(means) > 2

    rows = list[Row]()
    for k, joint in enumerate(JOINTS):
        rows += _both(f"{joint}, stance phase", "similar to the vertical force", partial(similar, k))
    rows += _both("mean force in swing", "different at hip, knee and ankle", swing)
    return Outcome(
        rows, _three_panels(norms, [f"force in the {each}" for each in JOINTS], "5.5", "% of the weight"), (11.0, 3.6)
    )


# Eqs. 5.1 to 5.10, evaluated at the nodes of the printed walk without the terms of the problem.


def _equations() -> Outcome:
    walk = printed_walk()
    result, body = walk.result, walk.body
    s = _nodes(walk)
    at, names, first = sampled(result, s), body.coordinate_names, len(GLOBAL)
    used = np.abs(at.torques[:, first:]) / np.asarray(body.effort_limit)[first:]
    active = [k for k, name in enumerate(names[first:]) if name in result.problem.model.names]
    squares = (used[:, active] ** 2).sum(axis=1)
    effort = float((squares[1:] + squares[:-1]) @ np.diff(s)) / 2 * result.T
    contact, others = (
        max(map(np.max, _contact(each(), _nodes(each())).values())) / np.linalg.norm(each().result.x)
        for each in WALKS.values()
    )
    fine = _contact(walk, np.linspace(0.0, 1.0, FINE))
    rows = [
        zero("5.1: objective, minus the integral of squared relative torques", result.objective - effort),
        only("the integral", f"{effort:.3f}"),
        _within("5.2: coordinates within their limits", np.maximum(body.lower - at.q, at.q - body.upper).max()),
        _within("5.3: torques of active joints within their limits", used[:, active].max() - 1),
        _within("5.4: heights and velocities, relative to the norm of the variables", contact, TOLERANCE),
        only("5.4 for the walk with habits", power(others)),
        only("5.4 between the nodes", f"{1e3 * fine['height'].max():.0f} mm, {1e3 * fine['speed'].max():.0f} mm/s"),
        _within("5.4: other points above the ground", -_lowest(walk)),
        _within("5.5: zero-moment point within the support", _outside(walk)),
        *_postures(walk),
    ]

    def draw(figure: Any) -> None:
        for axes, (what, unit) in zip(figure.subplots(1, 2), (("height", "mm"), ("speed", "mm/s")), strict=True):
            for name, each in WALKS.items():
                axes.semilogy(100 * _nodes(each()), 1e3 * _contact(each(), _nodes(each()))[what], ".-", label=name)
            tidy(axes, f"Largest {what} of points in contact (eq. 5.4: 0)", "% of the step", unit)

    return Outcome(rows, draw, (10.0, 3.6))


def _nodes(walk: Stride) -> Array:
    """Return the times s at which the constraints are imposed."""
    phase = walk.result.problem.phases
    assert isinstance(phase, Phase)
    return np.asarray(phase.nodes)


def _within(what: str, excess: float, limit: float = 1e-6) -> Row:
    """Return the row of an equation that must hold to within a limit."""
    words = f"below {power(limit)}" if excess <= limit else f"violated by {power(excess)}"
    return claim(what, "yes" if limit < TOLERANCE else f"{limit:g}", words, bool(excess <= limit))


def _contact(walk: Stride, s: Array) -> dict[str, Array]:
    """Return the largest height (m) and velocity (m/s) of points in contact, each (K,), at times s (K,).

    The velocities are the independent ones, six for a foot that stands on several points.
    """
    at, (term, support) = sampled(walk.result, s), walk_of(walk.result.problem)
    largest = {"height": np.zeros(len(s)), "speed": np.zeros(len(s))}
    for stance in support.stances:
        inside = (s > stance.first - TOUCHING) & (s < stance.last + TOUCHING)
        for point, axes in stance.points:
            place, q, held = f"{stance.side}_{point}", at.q[inside], [3 + "xyz".index(axis) for axis in axes]
            speed = np.abs(term.body.velocity(q, at.v[inside], place, axes="aligned")[:, held]).max(axis=1)
            height = np.abs(term.body.pose(q, place)[:, 1, 3])
            for what, values in (("height", height), ("speed", speed)):
                largest[what][inside] = np.maximum(largest[what][inside], values)
    return largest


def _lowest(walk: Stride) -> float:
    """Return the smallest height (m) of heels, balls and toes that are not in contact, at the nodes."""
    s = _nodes(walk)
    q, support = sampled(walk.result, s).q, walk_of(walk.result.problem)[1]
    heights = [np.inf]
    for side in SIDES:
        for point in POINTS_OF_FOOT:
            for first, last in support.free(side, point):
                inside = (s > first + TOUCHING) & (s < last - TOUCHING)
                heights.append(walk.body.pose(q[inside], f"{side}_{point}")[:, 1, 3].min(initial=np.inf))
    return float(min(heights))


def _outside(walk: Stride) -> float:
    """Return the largest distance (m) of the zero-moment point from the support polygon, at the nodes."""
    s = _nodes(walk)
    at, (term, support) = sampled(walk.result, s), walk_of(walk.result.problem)
    zmp = ground_reaction(term.body, at.q, at.v, at.a).zmp
    sides = support_sides(term.body, support, s)
    return float(-(np.einsum("kei,ki->ke", sides[..., :2], zmp) + sides[..., 2]).min())


def _postures(walk: Stride) -> list[Row]:
    """Return the rows of eqs. 5.6 to 5.10."""
    result, body, names = walk.result, walk.body, walk.body.coordinate_names
    s, step = _nodes(walk), walk.step
    at, ends = sampled(result, s), sampled(result, np.array([0.0, 1.0]))
    points = landmarks(body, at.q)
    arm = points["left_hand"] - points["left_upper_arm"]
    leg = points["right_foot"] - points["right_thigh"]
    hips = [np.linalg.norm(points[f"{side}_hand"] - points[f"{side}_thigh"], axis=1).min() for side in SIDES]
    order, signs = mirror(names)
    ahead = np.zeros(len(names))
    ahead[names.index("tz")] = step.length
    apart = [ends.q[1][order] * signs - ends.q[0] - ahead, ends.v[1][order] * signs - ends.v[0]]
    knee = sampled(result, np.array([(step.toe_off + 1) / 2])).q[0, names.index("left_knee_flexion")]
    feet = landmarks(body, ends.q)
    strides = feet["left_heel"][1] - feet["right_heel"][0] - [step.width, 0.0, step.length]
    return [
        _within("5.6: left arm and right leg swing together", -(arm[:, 2] * leg[:, 2]).min()),
        _within("5.7: wrists at least 0.17 m from the hips", MIN_HAND_DISTANCE - min(hips)),
        _within("5.8: the end is the mirror image of the start", max(np.abs(each).max() for each in apart)),
        _within("5.9: knee at mid-swing 60 ± 5 degrees", max(KNEE[0] - knee, knee - KNEE[1])),
        _within("5.10: foot positions", np.abs(strides[[0, 2]]).max()),
    ]


CPU = "34.10"  # s
FINE = 181  # instants of a step, ten times the intervals between nodes
STRAIGHT, SAME_SIDE, STANCE = 15.0, 0.95, 0.01  # degrees; fraction of the stance; vertical force in body weights


ITEMS: dict[str, Compute] = {
    "barman/fig-5.1": _model,
    "barman/gait": _numbers,
    "barman/fig-5.2": _snapshots,
    "barman/fig-5.3": _angles,
    "barman/fig-5.4": _forces,
    "barman/fig-5.5": _reactions,
    "barman/gait-equations": _equations,
}
