"""Three tasks of a human: lifting a box, standing up from a seat, and reaching a point.

Prints effort and peak torques, and draws all of them in one picture:

    python examples/human.py tasks.png
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from torsor.human import TASKS, joint_torques
from torsor.human.body.drawing import landmarks, skeleton
from torsor.motion import MotionResult

SHOWN = {"spine1_flexion": "lower back", "right_hip_flexion": "hip", "right_knee_flexion": "knee"}
COUNT, APART = 7, 1.1  # number of postures, and their distance (m)


def draw(axes: object, result: MotionResult) -> None:
    """Draw postures side by side, seen from the right."""
    points = landmarks(result.robot, result.at(np.linspace(0.0, result.T, COUNT)).q)
    for k in range(COUNT):
        skeleton(axes, {name: each[k] for name, each in points.items()}, "side", APART * k, scale=0.6)
    axes.axhline(0.0, color="0.7", linewidth=0.8)
    axes.set(aspect="equal")
    axes.axis("off")


def main(path: str) -> None:
    """Print the numbers and draw the picture."""
    figure = Figure(figsize=(10, 9), layout="constrained")
    panels = figure.subplots(len(TASKS), 1)
    for axes, (name, task) in zip(panels, TASKS.items(), strict=True):
        result = task().solve()
        names, torques = result.robot.coordinate_names, joint_torques(result)
        peaks = {what: np.abs(torques[:, names.index(joint)]).max() for joint, what in SHOWN.items()}
        words = ", ".join(f"{what} {peak:.0f} N m" for what, peak in peaks.items())
        print(f"{name}: {result.status}, {result.iterations} iterations, effort {result.objective:.4f}; {words}")
        axes.set_title(f"{name}: {words}")
        draw(axes, result)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tasks.png")
