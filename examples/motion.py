"""Reproduce the minimum-time motion of Barman 2020, section 4.1 (figures 4.2 to 4.4), with the bang-bang solution.

The program prints durations and switching times, and draws one figure:

    python examples/motion.py motion.png
"""

import sys

import matplotlib
import numpy as np
from numpy.typing import NDArray

from torsor import motion
from torsor.motion.problems import two_link_time

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = NDArray[np.float64]

LENGTH = 0.4  # of each link (m)


def arm(q: Array) -> tuple[Array, Array]:
    """Return x and y (..., 3) of base, elbow and tip."""
    angles = np.cumsum(q, axis=-1)
    x, y = (np.cumsum(LENGTH * of(angles), axis=-1) for of in (np.cos, np.sin))
    return np.insert(x, 0, 0.0, axis=-1), np.insert(y, 0, 0.0, axis=-1)


def main(path: str) -> None:
    """Print the results and draw the figure."""
    result = two_link_time(points=30).solve()
    best = motion.switching(result)
    print(f"30 control points: {result.T:.5f} s, {result.iterations} iterations; Barman 2020: 0.392 s")
    print(f"bang-bang: {best.T:.9f} s, margin of the switching functions {best.margin:.3f}")
    for name, times in zip(best.robot.coordinate_names, best.switches, strict=True):
        print(f"  {name} switches at {', '.join(f'{time:.6f}' for time in times)} s")
    forces = np.linalg.norm(result.reactions[..., 3:], axis=-1)
    figure, (top, middle, bottom) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    t = np.linspace(0.0, best.T, 2001)
    for k, name in enumerate(best.robot.coordinate_names):
        (line,) = top.plot(result.times, result.tau[:, k], label=name)
        top.plot(t, best.torques(t)[:, k], "--", color=line.get_color(), linewidth=0.8)
        middle.plot(result.times, forces[:, k], label=name)
    top.set(title="Torques (4.2); dashed: bang-bang", xlabel="s", ylabel="N m")
    middle.set(title="Joint forces, norm (4.3)", xlabel="s", ylabel="N")
    for axes in (top, middle):
        axes.legend()
    shown = np.linspace(0.0, 1.0, 11)
    x, y = arm(result.at(shown * result.T).q)
    for k, s in enumerate(shown):
        bottom.plot(x[k], y[k], "o-", color=plt.get_cmap("viridis")(0.9 * s), markersize=3)
    tip_x, tip_y = arm(result.q)
    bottom.plot(tip_x[:, 2], tip_y[:, 2], "k:", linewidth=0.8)
    bottom.set(title="Motion (4.4), dark to light", xlabel="m", ylabel="m", aspect="equal")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "motion.png")
