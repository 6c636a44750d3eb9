"""Simulate and analyse three closed mechanisms: a slider-crank, a four-bar linkage and a Gough-Stewart platform.

The program prints the energy drift, the closure error and the largest forces, and draws one figure:

    python examples/closed_loops.py closed_loops.png
"""

import sys

import matplotlib
import numpy as np
from numpy.typing import NDArray

import torsor

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = NDArray[np.float64]


def engine() -> torsor.Trajectory:
    """Return the free motion of a slider-crank through its dead points."""
    robot = torsor.library.slider_crank()
    q = robot.closed.assemble([0.5])
    return torsor.simulate(robot, q, robot.closed.velocities(q, [60.0]), duration=0.3)


def bearings(turns: Array) -> tuple[Array, Array]:
    """Return drive torque and bearing forces of a four-bar linkage at constant crank speed."""
    robot = torsor.library.four_bar()
    q = robot.closed.assemble(turns[:, None], guess=[0.5, 0.24, 1.55])
    torque = robot.closed.inverse_dynamics(q, [8.0], [0.0])
    joints = np.linalg.norm(robot.closed.joint_wrenches(q, [8.0], [0.0])[..., 3:], axis=-1)
    pin = np.linalg.norm(robot.closed.loop_wrenches(q, [8.0], [0.0])[..., 3:], axis=-1)
    return torque, np.concatenate([joints, pin], axis=-1)


def platform(t: Array, radius: float = 0.1, rate: float = 6.0) -> tuple[Array, Array]:
    """Return leg lengths and leg forces of a Gough-Stewart platform on a horizontal circle."""
    robot = torsor.library.gough_stewart()
    pose = np.tile(robot.home, (len(t), 1))
    wave = np.stack([np.cos(rate * t), np.sin(rate * t)], axis=-1)
    turned = np.stack([-wave[:, 1], wave[:, 0]], axis=-1)
    pose[:, :2] += radius * wave
    twist, acceleration = np.zeros((2, len(t), 6))
    twist[:, 3:5], acceleration[:, 3:5] = radius * rate * turned, -radius * rate**2 * wave
    driven = [robot.position_names.index(name) for name in robot.driven_names]
    return robot.inverse_kinematics(pose)[:, driven], robot.inverse_dynamics(pose, twist, acceleration)


def main(path: str) -> None:
    """Print the results and draw the figure."""
    run, turns, t = engine(), np.linspace(0.0, 2 * np.pi, 361), np.linspace(0.0, 2 * np.pi / 6.0, 201)
    torque, forces = bearings(turns)
    lengths, legs = platform(t)
    print(f"slider-crank: energy drift {np.ptp(run.energy):.1e} J of {run.energy[0]:.3g} J")
    print(f"slider-crank: closure error {np.abs(run.closure_error).max():.1e} m")
    print(f"four-bar linkage: crank torque {torque.min():.1f} to {torque.max():.1f} N m")
    print(f"four-bar linkage: largest bearing force {forces.max():.0f} N")
    print(f"platform: leg forces {legs.min():.0f} to {legs.max():.0f} N, stroke {np.ptp(lengths):.2f} m")
    figure, panels = plt.subplots(3, 1, figsize=(7, 9), layout="constrained")
    panels[0].plot(run.times, run.v[:, 0], label="crank (rad/s)")
    panels[0].plot(run.times, 10 * run.v[:, 2], label="piston (0.1 m/s)")
    panels[0].set(xlabel="time (s)", title="Free motion of a slider-crank")
    for k, name in enumerate(("crank", "coupler", "rocker", "pin")):
        panels[1].plot(np.degrees(turns), forces[:, k], label=name)
    panels[1].set(
        xlabel="crank (degrees)", ylabel="force (N)", title="Bearing forces of a four-bar linkage, crank at 8 rad/s"
    )
    for k in range(legs.shape[1]):
        panels[2].plot(t, legs[:, k], label=f"leg {k + 1}")
    panels[2].set(xlabel="time (s)", ylabel="force (N)", title="Leg forces of a platform on a circle")
    for panel in panels:
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
        panel.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "closed_loops.png")
