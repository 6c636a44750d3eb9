"""Predict six human tasks: lifting a box, pushing, pulling, reaching, standing up and sitting down.

The program prints effort and peak torques, and draws all tasks in one picture:

    python examples/human.py tasks.png
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from torsor.human import TASKS, joint_torques
from torsor.human.tasks.figures import draw_postures

SHOWN = {"spine1_flexion": "lower back", "right_hip_flexion": "hip", "right_knee_flexion": "knee"}


def main(path: str) -> None:
    """Print the results and draw the picture."""
    figure = Figure(figsize=(14, 7), layout="constrained")
    panels = figure.subplots(len(TASKS) // 2, 2)
    for axes, (name, task) in zip(panels.T.ravel(), TASKS.items(), strict=True):
        result = task().solve()
        names, torques = result.robot.coordinate_names, joint_torques(result)
        peaks = {what: np.abs(torques[:, names.index(joint)]).max() for joint, what in SHOWN.items()}
        peak_text = ", ".join(f"{what} {peak:.0f} N m" for what, peak in peaks.items())
        print(f"{name}: {result.status}, {result.iterations} iterations, effort {result.objective:.4f}; {peak_text}")
        axes.set_title(f"{name}: {peak_text}")
        draw_postures(axes, result, count=7)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tasks.png")
