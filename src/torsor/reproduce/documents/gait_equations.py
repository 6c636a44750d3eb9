"""Barman 2020, eqs. 5.1 to 5.10: objective and constraints of the walking problem, measured on the predicted walk."""

import numpy as np

from torsor.base.arrays import Array
from torsor.human import joint_torques
from torsor.human.body.coordinates import GLOBAL, mirror
from torsor.human.body.drawing import landmarks
from torsor.human.gait.settings import VERSIONS
from torsor.reproduce.documents.gait import stride
from torsor.reproduce.item import Item, Kind, Outcome, Row, claim, number, only

TIGHT = 1e-4  # scaled violation below which a constraint holds, as the solver has it


def _equations() -> Outcome:
    walk = stride()
    result, body = walk.result, walk.body
    torques, q = joint_torques(result), result.at(result.times).q
    limits, first = np.asarray(body.effort_limit), len(GLOBAL)
    used = np.abs(torques[:, first:]) / limits[first:]
    squares = (used**2).sum(axis=1)
    effort = float((squares[1:] + squares[:-1]) @ np.diff(result.times)) / 2
    parts = {each.title: each.weighted for each in result.parts}
    version = VERSIONS["thesis"]
    rows = [
        only("5.1: integral of the squared torques over their limits", f"{parts['effort']:.4f}"),
        only("the same with the torques that hold the frozen joints", f"{effort:.4f}"),
        only("posture, which eq. 5.1 does not have", f"{parts['posture']:.4f}"),
        only("objective of the walk, the first and the third", f"{result.objective:.4f}"),
        _limits(q, np.asarray(body.lower), np.asarray(body.upper)),
        claim("5.3: torques within their limits", "yes", f"at most {100 * used.max():.0f} %", bool(used.max() <= 1)),
        claim(
            "5.4: height and velocity of contacting points",
            "0, 0",
            f"±{1e3 * version.slack:g} mm, at most {version.slip:g} m/s",
            False,
            is_explained=True,
        ),
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
    rows.append(only("5.7: least distance of a wrist from its hip", f"{np.min(hips):.3f} m"))
    return Outcome([*rows, *_ends()])


def _limits(q: Array, lower: Array, upper: Array) -> Row:
    outside = float(np.maximum(lower - q, q - upper).max())
    words = "all" if outside <= 0 else f"outside by {outside:.1e} rad"
    return claim("5.2: coordinates within their limits", "all", words, outside <= 1e-6)


def _family(what: str, title: str) -> Row:
    """Return the largest violation of the constraints whose name has these words, at the nodes."""
    own = [each for name, each in stride().result.constraints.items() if title in name]
    worst = max(each.scaled for each in own)
    return claim(what, "yes", f"{sum(each.count for each in own)} rows, violated by {worst:.0e}", worst < TIGHT)


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
    knee = float(np.degrees(np.interp(walk.step.knee * result.T, result.times, _left_knee())))
    feet = landmarks(walk.body, ends.q)
    step = float(feet["left_heel"][1, 2] - feet["right_heel"][0, 2])
    return [
        claim("5.8: the end is the mirror image of the start", "yes", f"to {words} (rad, rad/s)", max(apart) < 1e-6),
        claim("5.9: knee at mid-swing", "60 ± 5 degrees", f"{knee:.1f} degrees", 54.99 <= knee <= 65.01),
        number("5.10: from heel strike to heel strike", "0.6", step, "m", 0.01),
    ]


def _left_knee() -> Array:
    result = stride().result
    index = result.robot.coordinate_names.index("left_knee_flexion")
    return np.asarray(result.at(result.times).q[:, index])


BANDS = (
    "contacts are bands, since six control points cannot hold points at rest on the ground, and arms follow the legs "
    "in a band. The objective has a weight of relaxed postures besides eq. 5.1"
)
EQUATION_ITEMS = [
    Item(
        "barman/gait-equations",
        "objective and constraints of the walk",
        Kind.ALGORITHM,
        "eqs. 5.1 to 5.10",
        _equations,
        BANDS,
        seconds=6.0,
        first=60.0,
    )
]
