"""Scale the timing of a UR5 motion online, so that its motors stay within their torque and torque-rate bounds.

The program prints the torques and torque rates of the desired and the scaled motion, relative to these bounds, and
draws both:

    python examples/online_scaling.py online_scaling.png
"""

import sys
from typing import NamedTuple

import matplotlib
import numpy as np
from numpy.typing import NDArray

import torsor

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = NDArray[np.float64]

PERIOD, SPACING = 1e-3, 5e-3  # s: control period, and spacing of the samples of the desired motion
DESIRED = 0.4  # s: desired duration
DURATION = 0.8  # s: simulated time
START = np.array([0.0, -1.5, 1.0, -1.0, -1.5, 0.0])
WAY = np.array([1.5, 1.0, -0.5, -0.5, 0.5, 1.0])
RATE = 10.0  # 1/s: bound of the torque rate, relative to the torque limit
FEEDBACK = 0.05  # fraction of the bounds that is reserved for feedback
KP, KD = 900.0, 60.0  # 1/s^2, 1/s
BLEND = np.polynomial.Polynomial([0, 0, 0, 0, 35, -84, 70, -20])  # three derivatives vanish at both ends


class Result(NamedTuple):
    """Bounds (6), the scaled timing (steps, 3), the simulation, and the commanded positions."""

    torque: Array
    rate: Array
    timing: Array
    motion: torsor.Trajectory
    commands: Array


def desired(time: float) -> list[Array]:
    """Return the desired positions, velocities, accelerations and jerks, (6) each."""
    q, *derivatives = (BLEND.deriv(k)(time / DESIRED) / DESIRED**k * WAY for k in range(4))
    return [START + q, *derivatives]


def track(robot: torsor.Robot) -> Result:
    """Simulate a robot that receives samples of the desired motion as long as its buffer has room."""
    torque, rate, last = robot.effort_limit, RATE * robot.effort_limit, round(DESIRED / SPACING)
    reserve = 1 - FEEDBACK
    scaling = torsor.control.OnlineScaling(
        robot, SPACING, PERIOD, torque=reserve * torque, torque_rate=reserve * rate, speed=1.0
    )
    timing = [torsor.control.Timing(0.0, 0.0, 0.0)]
    commands = [(START, np.zeros(6), np.zeros(6))]

    def next_command() -> None:
        while scaling.room:
            if scaling.fed <= last:
                scaling.feed(*desired(scaling.fed * SPACING))
            else:
                scaling.close()
        timing.append(scaling.step())
        commands.append(scaling.command())

    def control(t: float, q: Array, v: Array) -> Array:
        k = round(t / PERIOD)
        while len(commands) <= k:
            next_command()
        q_d, v_d, a_d = commands[k]
        tau: Array = robot.inverse_dynamics(q, v, a_d + KD * (v_d - v) + KP * (q_d - q))
        return tau

    motion = torsor.simulate(robot, START, duration=DURATION, step=PERIOD, controller=control, control_period=PERIOD)
    return Result(torque, rate, np.array(timing), motion, np.array([positions for positions, *_ in commands]))


def use(torque: Array, rate: Array, tau: Array) -> tuple[Array, Array]:
    """Return torques and torque rates relative to their bounds, maximum over the joints, for each control period."""
    return (np.abs(tau) / torque).max(axis=1), (np.abs(np.diff(tau, axis=0)) / PERIOD / rate).max(axis=1)


def draw(path: str, times: Array, timing: Array, loads: dict[str, tuple[Array, Array]]) -> None:
    """Draw the timing, and torques and torque rates relative to their bounds."""
    figure, (first, *others) = plt.subplots(3, 1, figsize=(8, 9), sharex=True, layout="constrained")
    first.plot(times, np.minimum(times, DESIRED), "k--", linewidth=0.8, label="desired")
    first.plot(times[: len(timing)], timing[:, 0], label="scaled")
    first.set_ylabel("path parameter: desired time (s)")
    for axes, k, label in zip(others, (0, 1), ("torque", "torque rate"), strict=True):
        for (name, values), style in zip(loads.items(), ("k--", "C0-"), strict=True):
            axes.plot(times[: len(values[k])], values[k], style, linewidth=0.8 if style == "k--" else 1.5, label=name)
        axes.axhline(1.0, color="C3", linewidth=0.8)
        axes.set_ylabel(f"largest {label} / bound")
    others[-1].set_xlabel("time (s)")
    for axes in (first, *others):
        axes.grid(alpha=0.3)
        axes.legend(loc="upper right")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Print torques and torque rates relative to their bounds, and save the picture."""
    robot = torsor.library.ur5()
    result = track(robot)
    times = np.arange(round(DESIRED / PERIOD) + 1) * PERIOD
    q, v, a, _ = (np.array(values) for values in zip(*map(desired, times), strict=True))
    loads = {
        "desired": use(result.torque, result.rate, robot.inverse_dynamics(q, v, a)),
        "scaled, in the simulation": use(result.torque, result.rate, result.motion.tau[:-1]),
    }
    for name, (torque, rate) in loads.items():
        print(f"{name:26} largest torque {torque.max():.3f}, torque rate {rate.max():.3f} of the bounds")
    moving = result.timing[:, 0] < result.timing[-1, 0]
    error = np.abs(result.motion.q[: len(result.commands)] - result.commands).max()
    print(
        f"desired duration {DESIRED:.3f} s, scaled {PERIOD * (moving.sum() + 1):.3f} s; tracking error {error:.1e} rad"
    )
    draw(sys.argv[1] if len(sys.argv) > 1 else "online_scaling.png", result.motion.times, result.timing, loads)


if __name__ == "__main__":
    main()
