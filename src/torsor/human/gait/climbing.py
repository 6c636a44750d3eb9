"""The problem of climbing stairs: its initial guess is a climb, so that the search need not find the way over edges."""

from dataclasses import dataclass

import numpy as np

from torsor.base.arrays import Array
from torsor.human.body.coordinates import SIDES
from torsor.human.body.postures import landmark
from torsor.human.contact.schedule import Step
from torsor.human.contact.support import smoothstep
from torsor.human.terms.problem import HumanProblem
from torsor.human.terms.samples import walk_of
from torsor.motion.starts import fit
from torsor.robot.robot import Robot

SAMPLES = 61
LONGEST = 0.97  # of the straight leg: the longest leg of the guess
ABOVE = 0.08  # m: the swinging foot of the guess passes the edges by about this
ROLLS, LANDS = 0.6, 0.3  # rad: how far the heel of the guess is up at toe-off, and where the foot lands downstairs


@dataclass(frozen=True, eq=False, repr=False)
class StairProblem(HumanProblem):
    """A walk on stairs."""

    def guess(self) -> Array:
        """Return the variables of a climb: hips move along the stairs, and legs follow the feet on level soles."""
        x, program, (term, walk) = super().guess(), self.program, walk_of(self)
        course, s = climb(term.body, walk.step.nominal, SAMPLES), np.linspace(0.0, 1.0, SAMPLES)
        names = self.model.names
        values = np.full((SAMPLES, len(names)), np.nan)
        for name, curve in course.items():
            if name in names:
                values[:, names.index(name)] = curve
        for phase_layout in program.layout.phases:
            fit(phase_layout, x, s, values)
        return np.clip(x, program.lower, program.upper)


def climb(body: Robot, step: Step, count: int) -> dict[str, Array]:
    """Return {coordinate: positions (count,)} of a climb in the sagittal plane, over one step from s = 0 to 1.

    The trailing foot rolls over its ball. Downstairs the leading foot lands with its heel up.

    Example:
        >>> course = climb(torsor.library.human(), Step(length=0.29, rise=0.17, speed=0.5), 11)
        >>> round(float(course["ty"][-1] - course["ty"][0]), 9), bool(course["left_knee_flexion"].max() > 1.0)
        (0.17, True)
    """
    s = np.linspace(0.0, 1.0, count)
    hip, knee, ankle, ball, heel = (
        landmark(body, f"right_{name}") for name in ("thigh", "shank", "foot", "ball", "heel")
    )
    thigh, shank = float(hip[1] - knee[1]), float(knee[1] - ankle[1])
    feet, pitches = _feet(step, s)
    hips = np.stack([step.length * (s - 0.5) + ankle[2] - heel[2], step.rise * (s - 0.5) + hip[1] - heel[1]], axis=1)
    ways = {}
    for side in SIDES:
        c, d, (y, z) = np.cos(pitches[side]), np.sin(pitches[side]), (ankle - ball)[1:]
        turned = np.stack([z * c + y * d, y * c - z * d], axis=1)
        ways[side] = feet[side] + (ball - heel)[[2, 1]] + turned - hips
    longest = LONGEST * (thigh + shank)
    lower = max(float((-way[:, 1] - np.sqrt(longest**2 - way[:, 0] ** 2)).max()) for way in ways.values())
    found = {"tz": hips[:, 0] - float(hip[2]), "ty": hips[:, 1] - float(hip[1]) - lower}
    for side, way in ways.items():
        z, y = way[:, 0], way[:, 1] + lower
        square = z**2 + y**2
        bent = np.pi - np.arccos(np.clip((thigh**2 + shank**2 - square) / (2 * thigh * shank), -1.0, 1.0))
        inside = np.arccos(np.clip((thigh**2 + square - shank**2) / (2 * thigh * np.sqrt(square)), -1.0, 1.0))
        found[f"{side}_knee_flexion"] = bent
        found[f"{side}_hip_flexion"] = np.arctan2(z, -y) + inside
        found[f"{side}_ankle_flexion"] = bent - found[f"{side}_hip_flexion"] - pitches[side]
        found[f"{side}_toe_extension"] = pitches[side]
    return found


def _feet(step: Step, s: Array) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the places (z, y) (K, 2) that the heels would have on flat feet, and how far the heels are up (rad)."""
    swing = np.clip((s - step.toe_off) / (1 - step.toe_off), 0.0, 1.0)
    lifted = smoothstep(swing / 0.6) if step.rise > 0 else smoothstep((swing - 0.4) / 0.6)  # up before, down after it
    left_z = step.length * (2 * smoothstep(swing) - 1)
    left_y = step.rise * (2 * lifted - 1) + ABOVE * np.sin(np.pi * swing) ** 2
    feet = {"right": np.zeros((len(s), 2)), "left": np.stack([left_z, left_y], axis=1)}
    lands = 0.0 if step.rise > 0 else LANDS
    right = lands * (1 - smoothstep(s / step.flat)) + ROLLS * smoothstep((s - step.heel_off) / (1 - step.heel_off))
    left = ROLLS * (1 - smoothstep(2 * swing)) + lands * smoothstep(2 * swing - 1)
    return feet, {"right": right, "left": left}
