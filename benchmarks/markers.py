"""Inverse kinematics from 41 markers of a noisy walk: frames per second on one core, and accuracy.

Motion and markers are synthetic: a man of 1.80 m with the marker set of a gait laboratory, at 100 frames per second.
Results are the best of several runs, each of which includes everything that ``inverse_kinematics`` does, from positions
to residuals. If the machine has other work, frames per second of processor time are more reliable than frames per
second of wall-clock time.
"""

import sys
import time
import warnings

import numpy as np

import torsor
from torsor.human.measured import MarkerSet, inverse_kinematics, marker_set
from torsor.human.measured.fitting import SPINE
from torsor.human.recordings import Markers

FRAMES, RUNS, NOISE = 4000, 5, 0.005  # noise in m
STRIDE = 1.1  # s
# Amplitudes (degrees) of a walk; the left side is half a stride later.
SWING = {"hip_flexion": 25, "hip_adduction": 5, "hip_rotation": 5, "ankle_flexion": 12, "shoulder_flexion": 15}


def person() -> tuple[torsor.Robot, MarkerSet]:
    """Return a body and its 41 markers; cluster markers are scattered on their segments."""
    body = torsor.library.human(1.80, 80.0)
    names = ["S2"]
    for side in "RL":
        parts = ("Shoulder", "Clavicle", "Biceps", "Elbow", "Forearm", "Wrist", "ASIS", "PSIS")
        names += [f"{side}.{part}" for part in (*parts, "Knee", "Ankle", "Heel", "MT5", "Toe", "TH1", "TH2", "TH3")]
        names += [f"{side}.SH{k}" for k in (1, 2, 3, 4)]
    markers = marker_set(body, names)
    scatter = np.random.default_rng(0).normal(size=(len(names), 3)) * 0.04
    local = markers.local + np.where([[name in markers.free] for name in names], scatter, 0.0)
    return body, markers.moved(local)


def walk(body: torsor.Robot) -> np.ndarray:
    """Return a walk-like motion (FRAMES, 55)."""
    t, names = np.arange(FRAMES) / 100, body.coordinate_names
    q = np.zeros((FRAMES, body.nq))
    for side, late in (("right", 0.0), ("left", np.pi)):
        phase = 2 * np.pi * t / STRIDE + late
        for name, size in SWING.items():
            q[:, names.index(f"{side}_{name}")] = np.radians(size) * np.sin(phase + size)
        q[:, names.index(f"{side}_knee_flexion")] = np.radians(35 - 30 * np.cos(phase))
        q[:, names.index(f"{side}_elbow_flexion")] = np.radians(35 + 10 * np.sin(phase))
        q[:, names.index(f"{side}_pronation")] = np.radians(20)
    q[:, names.index("tz")], q[:, names.index("ty")] = 1.3 * t, 0.02 * np.sin(4 * np.pi * t / STRIDE)
    for name, size in (("yaw", 5), ("list", 3), ("spine1_axial", 2), ("spine1_lateral", 1)):
        q[:, names.index(name)] = np.radians(size) * np.sin(2 * np.pi * t / STRIDE + size)
    for name, leader in SPINE.items():
        q[:, names.index(name)] = q[:, names.index(leader)]
    return q


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", torsor.ModelWarning)
    body, markers = person()
    q = walk(body)
    poses = body.poses(q)[:, list(markers.links(body))]
    exact = np.einsum("kmij,mj->kmi", poses[..., :3, :3], markers.local) + poses[..., :3, 3]
    noisy = exact + NOISE * np.random.default_rng(1).normal(size=exact.shape)
    print(f"{len(markers.names)} markers, {FRAMES} frames, {body.nq} coordinates")
    print("| recording | smoothness | frames a second | of processor time | RMS error (degrees) | all converged |")
    print("|---|---|---|---|---|---|")
    for title, positions, smooth in (("exact", exact, 0.0), ("5 mm noise", noisy, 0.0), ("5 mm noise", noisy, 0.1)):
        seen = Markers(markers.names, np.arange(FRAMES) / 100, positions)
        took = busy = np.inf
        inverse_kinematics(body, markers, seen, smooth=smooth)
        for _ in range(RUNS if not smooth else 2):
            start, worked = time.perf_counter(), time.process_time()
            found = inverse_kinematics(body, markers, seen, smooth=smooth)
            took, busy = min(took, time.perf_counter() - start), min(busy, time.process_time() - worked)
        error = np.degrees(np.sqrt(np.mean((found.q - q)[:, 6:] ** 2)))
        speeds = f"{FRAMES / took:,.0f} | {FRAMES / busy:,.0f}"
        print(f"| {title} | {smooth:g} | {speeds} | {error:.2g} | {bool(found.converged.all())} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
