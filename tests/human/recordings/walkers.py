"""A person who walks over force plates, made of formulas: markers and ground forces for tests."""

import numpy as np

from torsor.human.recordings import GroundForces, Markers

FEET = ("R.Heel", "R.Toe", "L.Heel", "L.Toe")
UPPER = ("R.Knee", "L.Knee", "R.ASIS", "L.ASIS", "R.Shoulder", "L.Shoulder", "C7")
HEIGHTS = {"Knee": 0.5, "ASIS": 1.0, "Shoulder": 1.45, "C7": 1.5}
SIDE = {"R": 0.1, "L": -0.1, "C": 0.0}  # z, to the right
STEP, STAND = 0.6, 0.7  # m, s: the right foot stands at 0, the left at STEP, each for STAND, half a second apart


def markers(rate: float = 100.0, duration: float = 1.5) -> Markers:
    """Return eleven markers of a person who walks along x: y is up, z to the right."""
    t = np.arange(round(duration * rate)) / rate
    places = []
    for name in (*FEET, *UPPER):
        z = np.full_like(t, SIDE[name[0]])
        if name in FEET:
            x0, start = (0.0, 0.1) if name[0] == "R" else (STEP, 0.6)
            swing = np.clip((t - start - STAND) / 0.5, 0, 1)
            before = np.clip((start - t) / 0.5, 0, 1)
            x = x0 + (0.2 if "Toe" in name else 0.0) + 2 * STEP * (_ramp(swing) - _ramp(before))
            y = 0.04 + 0.1 * np.sin(np.pi * swing) ** 2 + 0.1 * np.sin(np.pi * before) ** 2
        else:
            x, y = -0.1 + 1.2 * t, HEIGHTS[name.split(".")[-1]] + 0.02 * np.sin(2 * np.pi * t)
        places.append(np.stack([x, y, z], axis=1))
    return Markers((*FEET, *UPPER), t, np.stack(places, axis=1), rate, "forward up right", "m", "walk.trc")


def forces(rate: float = 1000.0, duration: float = 1.5) -> GroundForces:
    """Return the ground forces on the right and left foot, from heel to toe."""
    t = np.arange(round(duration * rate)) / rate
    force, center, moment = (np.zeros((len(t), 2, 3)) for _ in range(3))
    for k, (start, x0, z) in enumerate(((0.1, 0.0, 0.1), (0.6, STEP, -0.1))):
        s = (t - start) / STAND
        on = (s > 0) & (s < 1)
        force[on, k, 1] = 800 * np.sin(np.pi * s[on]) ** 0.5
        force[on, k, 0] = -100 * np.sin(2 * np.pi * s[on])
        center[on, k, 0], center[on, k, 2] = x0 + 0.2 * s[on], z
        moment[on, k, 1] = 2.0
    return GroundForces(("right", "left"), t, force, center, moment, rate, "forward up right", None, "grf.mot")


def _ramp(s: np.ndarray) -> np.ndarray:
    return s**2 * (3 - 2 * s)
