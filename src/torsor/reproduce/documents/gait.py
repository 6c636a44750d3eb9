"""Barman 2020, chapter V: the skeleton and the predicted walk, with its numbers and figures."""

import math
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.base.errors import ModelWarning
from torsor.human import Stride, joint_torques, printed_gait, walking
from torsor.human.body.coordinates import GLOBAL, SIDES, frozen_joints, mirror
from torsor.human.body.drawing import landmarks, skeleton
from torsor.human.gait.printed_constraints import TOLERANCE
from torsor.human.gait.settings import VERSIONS
from torsor.reproduce.documents.drawing import peaks, tidy
from torsor.reproduce.item import Item, Kind, Outcome, Row, claim, number, only

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


@cache
def stride() -> Stride:
    """Return the stride of the walk, starting from q = 0 in the two phases of the thesis."""
    return Stride(walking(version="thesis").solve(feasible_first=True))


def _model() -> Outcome:
    body = library.human()
    frozen = frozen_joints(body, None, "walk")
    rows = [
        number("degrees of freedom", "55", body.nv),
        number("global coordinates", "6", len(GLOBAL)),
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
    result = stride().result
    body, problem = library.human(), result.problem
    points = VERSIONS["thesis"].points
    return [
        number("design variables, 55 x 6", "330", body.nv * points),
        only("design variables that are not frozen", f"{problem.program.n}"),
        number("constraints", "1726", problem.program.m, explained=0.3),
        number("active constraints", "244", len(result.active), explained=1.0),
        number("walking velocity", "1.2", stride().step.speed, "m/s"),
        number("step length", "0.6", stride().step.length, "m"),
        number("CPU time of the optimisation", "34.10", result.solve_seconds, "s", explained=math.inf),
        only("iterations", f"{result.iterations}, {result.status}"),
    ]


def _snapshots() -> Outcome:
    walk = stride()
    half = np.searchsorted(walk.s, 0.5)
    places = np.linspace(0, half, POSTURES).round().astype(int)
    q = walk.samples.q
    step = float(landmarks(walk.body, q[half])["pelvis"][2] - landmarks(walk.body, q[0])["pelvis"][2])
    knee = float(np.interp((1 + walk.step.knee) / 2, walk.s, walk.angle("knee_flexion")))  # of the second step
    rows = [
        number("pelvis advance per step", "0.6", step, "m", 1e-3),
        claim("knee flexion in mid-swing", "60 ± 5 degrees (5.9)", f"{knee:.1f} degrees", 54.99 <= knee <= 65.01),
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        points = landmarks(walk.body, q[places])
        for k in range(POSTURES):
            skeleton(axes, {name: each[k] for name, each in points.items()}, "side", 0.6 * k, scale=0.6)
        axes.axhline(0.0, color="0.5", linewidth=1.0)
        axes.set(aspect="equal")
        tidy(axes, "Figure 5.2: one step, postures moved apart by 0.6 m", "m", "m")

    return Outcome(rows, draw, (9.0, 4.0))


def _angles() -> Outcome:
    walk, rows = stride(), list[Row]()
    likeness = walk.likeness()
    for joint in JOINTS:
        comparison = likeness[f"{joint}_flexion"]
        words = f"correlation {comparison.correlation:.2f}, RMS {comparison.rms:.1f} degrees"
        rows.append(claim(f"{joint} angle", "consistent with the literature", words, comparison.correlation > 0.8))
    return _three_panels(rows, {f"{joint} angle": walk.angle(f"{joint}_flexion") for joint in JOINTS}, "5.3", "degrees")


def _three_panels(rows: list[Row], shown: Mapping[str, Array], number: str, unit: str) -> Outcome:
    """Return an outcome with a figure of three curves over the stride, by title."""

    def draw(figure: Any) -> None:
        for axes, letter, (title, values) in zip(figure.subplots(1, 3), "abc", shown.items(), strict=True):
            axes.plot(100 * stride().s, values, linewidth=1.8)
            tidy(axes, f"Figure {number}({letter}): {title}", "% of the stride", unit if letter == "a" else "")

    return Outcome(rows, draw, (11.0, 3.4))


def _forces() -> Outcome:
    force = 100 * stride().force
    stance = force[:, 1] > 1.0
    count, forward = peaks(force[stance, 1], 0.05), force[stance, 2]
    signs = "decelerates, then accelerates" if np.argmin(forward) < np.argmax(forward) else "accelerates first"
    side = float(np.mean(force[stance, 0] > 0))
    rows = [
        claim("vertical force", "double peak", f"{count} peaks, {force[:, 1].max():.0f} % of the weight", count == 2),
        claim("fore-aft force", "decelerating and accelerating", signs, signs.startswith("decel")),
        claim("lateral force", "during the entire stance", f"{100 * side:.0f} % of it to one side", side > 0.8),
    ]
    shown = {f"{axis} ground force": column for axis, column in zip(AXES, force.T, strict=True)}
    return _three_panels(rows, shown, "5.4", "% of the weight")


def _reactions() -> Outcome:
    walk, rows = stride(), list[Row]()
    up = walk.force[:, 1]
    norms = {joint: 100 * np.linalg.norm(walk.reaction(joint), axis=1) for joint in JOINTS}
    stance = up > 0.01
    for joint, norm in norms.items():
        alike = float(np.corrcoef(norm[stance], up[stance])[0, 1])
        words = f"correlation {alike:.2f} with the vertical force"
        rows.append(claim(f"{joint}, stance phase", "similar to the vertical force", words, alike > 0.8))
    swing = [float(norm[~stance].mean()) for norm in norms.values()]
    words = ", ".join(f"{each:.0f} %" for each in swing)
    rows.append(claim("in swing", "different at hip, knee and ankle", words, max(swing) - min(swing) > 2))
    return _three_panels(rows, {f"force in the {each}": norms[each] for each in JOINTS}, "5.5", "% of the weight")


def _printed() -> Outcome:
    """Narrow the bounds of eq. 5.4, with all other equations as printed, until no motion is found."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of violations between the nodes, which the last row has
        gait = printed_gait()
    program = walking(version="printed").program
    equations = int((program.row_lower == program.row_upper).sum())
    conflict = ", ".join(f"{name}: {share:.2g}" for name, share in list(gait.conflict.items())[1:4])
    near = f"{1e3 * VERSIONS['nearest'].slack:g} mm and {1e3 * VERSIONS['nearest'].slip:g} mm/s"
    words = f"5.4 to {gait.least_violation:g} (m, m/s), all others to rounding"
    is_accepted = gait.least_violation <= TOLERANCE
    feasible = [stage for stage in gait.stages if stage.is_feasible]
    fine = f" (between the nodes, violated by {gait.nearest.max_violation_fine:.2g} of a scale)"
    between = fine if gait.nearest.is_only_at_nodes else ""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.loglog([1e3 * each.slip for each in feasible], [each.outcome.objective for each in feasible], "o-")
        tidy(axes, "Effort of walks with a band for eq. 5.4", "largest velocity in contact (mm/s)", "effort (eq. 5.1)")

    return Outcome(
        [
            claim("eqs. 5.2 to 5.10 hold together", f"to {TOLERANCE:g}", words, is_accepted, is_explained=True),
            only("narrower bands for 5.4", "no motion found" if not gait.stages[-1].is_feasible else "not tried"),
            number("constraints", "1726", program.m, explained=0.05),
            only("equations, variables", f"{equations}, {program.n}"),
            only("constraints that conflict with 5.4 (5.4 itself: 1)", conflict),
            only(f"effort with 5.4 within {near}", f"{gait.nearest.parts[0].value:.4f}{between}"),
        ],
        draw,
        (6.0, 3.6),
    )


DATA = (
    "inertias, lengths, limits, strengths and contact points of the body are not given; the library uses those of "
    "de Leva 1996"
)
COUNTED = (
    "the thesis does not state which rows it counts; the library also bounds friction and slip of each foot, at "
    "more instants. Computer and solver (SNOPT) differ"
)
A, F, N, PLACE = Kind.ALGORITHM, Kind.FIGURE, Kind.NUMBER, "eqs. 5.1 to 5.10"
LONG: dict[str, Any] = {"seconds": 6.0, "first": 60.0}
ITEMS = [
    Item("barman/fig-5.1", "the skeleton and its frozen coordinates", F, "Figure 5.1, section 5.1", _model, seconds=1),
    Item("barman/gait", "size and results of the walking problem", N, "section 5.2.2", _numbers, COUNTED, **LONG),
    Item("barman/fig-5.2", "snapshots of the walk", F, "Figure 5.2", _snapshots, missing=DATA, **LONG),
    Item("barman/fig-5.3", "joint angles", F, "Figure 5.3", _angles, missing=DATA, **LONG),
    Item("barman/fig-5.4", "ground reaction forces", F, "Figure 5.4", _forces, missing=DATA, **LONG),
    Item("barman/fig-5.5", "internal joint forces", F, "Figure 5.5", _reactions, missing=DATA, **LONG),
]
DIFFERENT = (
    "six cubic control points cannot keep points at rest on the ground: no motion is known that satisfies eq. 5.4 with "
    "eqs. 5.8 and 5.10 exactly. The smallest violation results from searches for local optima, and rounding varies it "
    "between 0.001 and 0.0014. Contact times, node times, limits and the body are not printed"
)
ITEMS.append(
    Item("barman/gait-printed", "the walk of eqs. 5.1 to 5.10 alone", A, PLACE, _printed, DIFFERENT, "", 170.0, 200.0)
)


# Barman 2020, eqs. 5.1 to 5.10: objective and constraints of the walking problem, measured on the predicted walk.
TIGHT = 1e-4  # scaled violation below which a constraint holds, as the solver has it


def _equations() -> list[Row]:
    walk = stride()
    result, body = walk.result, walk.body
    torques, q = joint_torques(result), result.at(result.times).q
    limits, first = np.asarray(body.effort_limit), len(GLOBAL)
    used = np.abs(torques[:, first:]) / limits[first:]
    squares = (used**2).sum(axis=1)
    effort = float((squares[1:] + squares[:-1]) @ np.diff(result.times)) / 2
    parts = {part.title: part.weighted for part in result.parts}
    version = VERSIONS["thesis"]
    outside = float(np.maximum(body.lower - q, q - body.upper).max())
    within = "all" if outside <= 0 else f"outside by {outside:.1e} rad"
    bands = f"±{1e3 * version.slack:g} mm, at most {version.slip:g} m/s"
    rows = [
        only("5.1: integral of squared torques relative to their limits", f"{parts['effort']:.4f}"),
        only("the same with the torques of the frozen joints", f"{effort:.4f}"),
        only("posture term, not in eq. 5.1", f"{parts['posture']:.4f}"),
        only("objective of the walk, sum of the first and third", f"{result.objective:.4f}"),
        claim("5.2: coordinates within their limits", "all", within, outside <= 1e-6),
        claim("5.3: torques within their limits", "yes", f"at most {100 * used.max():.0f} %", bool(used.max() <= 1)),
        claim("5.4: height and velocity of contact points", "0, 0", bands, False, is_explained=True),
        _family("5.4: other points above the ground", "above the ground"),
        _family("5.5: zero-moment point within the support", "balance"),
    ]
    points = landmarks(body, q)
    arm = points["left_hand"] - points["left_upper_arm"]
    leg = points["right_foot"] - points["right_thigh"]
    together = float(np.mean(arm[:, 2] * leg[:, 2] >= 0))
    words = f"in {100 * together:.0f} % of the step"
    rows.append(claim("5.6: left arm and right leg swing together", "always", words, together == 1, is_explained=True))
    hips = [np.linalg.norm(points[f"{side}_hand"] - points[f"{side}_thigh"], axis=1) for side in ("right", "left")]
    rows.append(only("5.7: minimum distance between wrist and hip", f"{np.min(hips):.3f} m"))
    return [*rows, *_ends()]


def _family(what: str, title: str) -> Row:
    """Return the largest violation, at the nodes, of the constraints whose names contain these words."""
    constraints = [each for name, each in stride().result.constraints.items() if title in name]
    worst = max(constraint.scaled for constraint in constraints)
    return claim(what, "yes", f"{sum(each.count for each in constraints)} rows, violated by {worst:.0e}", worst < TIGHT)


def _ends() -> list[Row]:
    """Compare the last posture with the mirror image of the first, eqs. 5.8 to 5.10."""
    walk = stride()
    result, names = walk.result, walk.body.coordinate_names
    order, signs = mirror(names)
    ends = result.at(np.array([0.0, result.T]))
    ahead = np.zeros(len(names))
    ahead[names.index("tz")] = walk.step.length
    apart = [float(np.abs(ends.q[1][order] * signs - ends.q[0] - ahead).max())]
    apart.append(float(np.abs(ends.v[1][order] * signs - ends.v[0]).max()))
    words = ", ".join(f"{each:.0e}" for each in apart)
    flexion = result.at(result.times).q[:, result.robot.coordinate_names.index("left_knee_flexion")]
    knee = float(np.degrees(np.interp(walk.step.knee * result.T, result.times, flexion)))
    feet = landmarks(walk.body, ends.q)
    step = float(feet["left_heel"][1, 2] - feet["right_heel"][0, 2])
    return [
        claim("5.8: the end is the mirror image of the start", "yes", f"to {words} (rad, rad/s)", max(apart) < 1e-6),
        claim("5.9: knee at mid-swing", "60 ± 5 degrees", f"{knee:.1f} degrees", 54.99 <= knee <= 65.01),
        number("5.10: from heel strike to heel strike", "0.6", step, "m", 0.01),
    ]


BANDS = (
    "contacts are bands, because six control points cannot keep points at rest on the ground, and the arms follow "
    "the legs within a band. The objective has a posture weight in addition to eq. 5.1"
)
EQUATION_ITEMS = [
    Item("barman/gait-equations", "objective and constraints of the walk", A, PLACE, _equations, BANDS, **LONG)
]
