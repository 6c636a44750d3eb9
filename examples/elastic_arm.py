"""Reproduce the simulation of Hua et al. 2022, section V: an arm with two rigid joints and one elastic joint.

The program prints the RMS tracking errors and draws figures 3 to 8 of the paper as one picture:

    python examples/elastic_arm.py elastic_arm.png
"""

import math
import sys

import casadi as ca
import matplotlib
import numpy as np
from numpy.typing import NDArray

import torsor

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = NDArray[np.float64]

STEP, SECONDS = 1e-3, 10.0
START = np.array([0.0, 0.0, -0.4363, -0.4363])  # joints 1 to 3, motor of joint 3
# Vertical tip force (N). With the sign convention of the paper, its payload acts upwards (docs/simulate/control.md).
LOADS = {"no payload": 0.0, "payload as printed": 3.0, "payload as weight": -3.0}
PAPER = {"no payload": (0.0026819, 0.003619, 0.052678), "payload as printed": (0.0026903, 0.0061066, 0.052422)}


def controller(robot: torsor.Robot) -> torsor.control.Controller:
    """Return the controller of the paper; the paper states no gains, so they are fitted to its published errors."""
    return torsor.control.mixed(
        robot,
        lambda t: 3 * [0.5 * ca.sin(0.5 * math.pi * t)],
        K_D=(38.0, 33.5, 16.0),
        Lambda=(10.8, 10.2, 7.05),
        K_D_motor=20.0,
        Lambda_motor=40.0,
    )


def simulate(robot: torsor.Robot, law: torsor.control.Controller, loads: Array) -> torsor.Trajectory:
    """Return a batch of motions under vertical tip forces that the controller does not measure."""
    arm = robot.places["tip"].pose[:3, 3]

    def push(t: float, q: Array, v: Array) -> Array:
        force = robot.pose(q, "tip")[:, 2, :3] * loads[:, None]  # base z in the tip's axes, which are the link's
        external = np.zeros((len(loads), len(robot.links), 6))
        external[:, -1] = np.concatenate([np.cross(arm, force), force], axis=1)
        return external

    start = np.tile(START, (len(loads), 1))
    return torsor.simulate(
        robot, start, duration=SECONDS, step=STEP, controller=law, external=push, control_period=STEP
    )


def draw(path: str, times: Array, q_d: Array, q: Array, tau: Array) -> None:
    """Draw joint and motor positions and torques, without and with the payload."""
    figure, axes = plt.subplots(3, 2, figsize=(11, 10), sharex=True, sharey="row", layout="constrained")
    for column, (case, k) in zip(axes.T, (("no payload", 0), ("payload as printed", 1)), strict=True):
        joints, motor, torque = column
        joints.set_title(f"{case}: joints")
        for j, width in enumerate((4.0, 2.2, 1.0)):  # the curves coincide
            joints.plot(times, q[k, :, j], linewidth=width, label=f"joint {j + 1}")
        joints.plot(times, q_d[:, 0], "k--", linewidth=0.8, label="desired")
        motor.set_title(f"{case}: joint 3 and its motor")
        motor.plot(times, q[k, :, 2], color="C2", label="joint 3")
        motor.plot(times, q[k, :, 3], color="C3", label="motor 3")
        torque.set_title(f"{case}: motor torques")
        for j, row in enumerate((0, 1, 3)):
            torque.plot(times, tau[k, :, row], label=f"motor {j + 1}")
        torque.set_xlabel("time (s)")
        peak = f"motor 3 starts with {tau[k, 0, 3]:.0f} N m"
        torque.annotate(peak, (0.06, 11.0), (0.6, 11.0), arrowprops={"arrowstyle": "->"}, fontsize="small")
    axes[0, 0].set_ylim(-0.6, 0.75)
    axes[1, 0].set_ylim(-0.6, 0.75)
    axes[2, 0].set_ylim(-12.0, 16.0)
    for row, label in zip(axes, ("angle (rad)", "angle (rad)", "torque (N m)"), strict=True):
        row[0].set_ylabel(label)
        for panel in row:
            panel.grid(alpha=0.3)
            panel.legend(loc="upper right", fontsize="small", ncols=4)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Print the error table and save the picture."""
    robot = torsor.library.elastic_arm()
    law = controller(robot)
    motion = simulate(robot, law, np.array(list(LOADS.values())))
    assert law.reference is not None
    times, q, tau, q_d = motion.times, motion.q, motion.tau, law.reference(motion.times)[0]
    rms = np.sqrt(np.mean((q[:, :, :3] - q_d) ** 2, axis=1))
    print("RMS error (rad)         joint 1   joint 2   joint 3")
    for case, row in zip(LOADS, rms, strict=True):
        print(f"{case:22}", *(f"{value:9.5f}" for value in row))
        if case in PAPER:
            print(f"{'  in the paper':22}", *(f"{value:9.5f}" for value in PAPER[case]))
    draw(sys.argv[1] if len(sys.argv) > 1 else "elastic_arm.png", times, q_d, q, tau)


if __name__ == "__main__":
    main()
