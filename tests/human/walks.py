"""A synthetic recording of a walk from human gait curves, with the names, signs and units of OpenSim's files."""

import numpy as np

from torsor.human import REFERENCES
from torsor.human.recordings import GroundForces, MotionTable

STRIDE, MASS, RATE = 1.1, 70.0, 200  # s, kg, Hz
ANGLES = {"hip_flexion": "hip_flexion", "knee_flexion": "knee_angle", "ankle_flexion": "ankle_angle"}
MOMENTS = {"hip_extension": "hip_flexion", "knee_extension": "knee_angle", "ankle_plantarflexion": "ankle_angle"}


def times(strides: float = 3.2) -> np.ndarray:
    """Return times (K,) from 0.1 strides before a right heel strike on."""
    return np.arange(round(strides * STRIDE * RATE)) / RATE


def curve(name: str, t: np.ndarray, side: str) -> np.ndarray:
    """Return a periodic curve of people at times (K,)."""
    mean = np.array(REFERENCES[name].mean)
    mean[-1] = mean[0]
    s = (t / STRIDE - 0.1 + (0.5 if side == "l" else 0.0)) % 1.0
    return np.interp(s, np.linspace(0.0, 1.0, len(mean)), mean)


def angles(t: np.ndarray, sign: float = 1.0, factor: float = 1.0, degrees: bool | None = True) -> MotionTable:
    """Return joint angles of both sides; the ``sign`` of the knee is that of flexion."""
    columns = {
        f"{other}_{side}": (sign if "knee" in other else 1.0) * factor * curve(own, t, side)
        for side in "rl"
        for own, other in ANGLES.items()
    }
    return MotionTable(tuple(columns), t, np.stack(list(columns.values()), axis=1), degrees, "", "angles.mot")


def moments(t: np.ndarray, sign: float = 1.0, factor: float = MASS) -> MotionTable:
    """Return joint moments of both sides, in the directions of the angles."""
    columns = {
        f"{other}_{side}_moment": -(sign if "knee" in other else 1.0) * factor * curve(own, t, side)
        for side in "rl"
        for own, other in MOMENTS.items()
    }
    return MotionTable(tuple(columns), t, np.stack(list(columns.values()), axis=1), False, "", "moments.sto")


def forces(t: np.ndarray, turned: float = 1.0) -> GroundForces:
    """Return ground forces on the right and left foot, in N; ``turned`` is -1 for a person who goes along -x."""
    found, zero = np.zeros((len(t), 2, 3)), np.zeros((len(t), 2, 3))
    weight = MASS * 9.81 / 100
    for k, side in enumerate("rl"):
        found[:, k, 1] = weight * curve("vertical", t, side)
        found[:, k, 0] = turned * weight * curve("forward", t, side)
        found[:, k, 2] = turned * (-1.0 if side == "r" else 1.0) * weight * curve("medial", t, side)
    return GroundForces(["right", "left"], t, found, zero, zero, axes="forward up right", source="forces.mot")
