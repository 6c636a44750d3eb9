"""Three tasks of a human: lifting a box, standing up from a seat, and reaching for something.

Prints efforts and peak torques, and draws all as one picture:

    python examples/human.py human.png
"""

import sys

import matplotlib
import numpy as np

from torsor.human import TASKS, joint_torques
from torsor.human.stride import SEGMENTS
from torsor.motion import MotionResult

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SHOWN = {"spine1_flexion": "lower back", "right_hip_flexion": "hip", "right_knee_flexion": "knee"}
HANDS = [(f"{side}_wrist", f"{side}_knuckles") for side in ("right", "left")]
COUNT, APART = 7, 1.1  # figures, and metres between them


def draw(axes: plt.Axes, result: MotionResult) -> None:
    """Draw the body from its left, at moments beside each other."""
    body = result.robot
    for index, t in enumerate(np.linspace(0.0, result.T, COUNT)):
        q = result.at(t).q
        for first, last in (*SEGMENTS, *HANDS):
            ends = np.stack([body.pose(q, each)[:3, 3] for each in (first, last)])
            colour = "C3" if "right" in last else "C0" if "left" in last else "0.2"
            axes.plot(ends[:, 2] + APART * index, ends[:, 1], color=colour, linewidth=1.3)
    axes.axhline(0.0, color="0.7", linewidth=0.8)
    axes.set_aspect("equal")
    axes.axis("off")


def main(path: str) -> None:
    """Print figures and draw the picture."""
    figure, panels = plt.subplots(len(TASKS), 1, figsize=(10, 9), layout="constrained")
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
    main(sys.argv[1] if len(sys.argv) > 1 else "human.png")
