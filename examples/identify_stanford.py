"""Identify the Stanford arm from simulated measurements.

An excitation trajectory is optimised and tracked by a controller with inaccurate masses. Encoders and torque sensors
record it with noise. Physically consistent parameters are identified and validated on a second motion. The program
prints the report and draws measured and predicted forces:

    python examples/identify_stanford.py identify_stanford.png
"""

import sys

import numpy as np

import torsor
from torsor.identification import Excitation, Measurements, excite

PERIOD, HARMONICS, STEP = 10.0, 5, 1e-3
LOWER, UPPER = np.array([-2, -2, 0.2, -2, -2, -2]), np.array([2, 2, 1.0, 2, 2, 2])
SPEED = np.array([2, 2, 1, 3, 3, 3])
ENCODER = 1e-5  # rad, m
NOISE = np.array([0.5, 1.0, 1.0, 0.1, 0.1, 0.05])  # N m, N


def real_arm() -> torsor.Robot:
    """Return the real arm, with plausible rotor inertia and friction in its joints."""
    robot = torsor.library.stanford()
    pi = robot.inertial.values
    pi[60:] = np.column_stack(
        [(0.95, 2.2, 0.78, 0.11, 0.1, 0.02), (2, 2, 3, 0.4, 0.3, 0.2), (3, 3, 5, 0.3, 0.2, 0.1)]
    ).ravel()  # rotor inertia, Coulomb and viscous friction of each joint
    robot = robot.inertial.replaced(pi)
    for name in robot.joint_names:
        robot = robot.with_friction(name, smooth=0.02)
    return robot


def assumed_arm(real: torsor.Robot) -> torsor.Robot:
    """Return the assumed arm: all parameters are 25 % too small, and there is no friction."""
    return real.inertial.replaced(0.75 * real.inertial.values).without_friction()


def measure(real: torsor.Robot, assumed: torsor.Robot, motion: Excitation, seed: int) -> Measurements:
    """Return encoder and torque measurements while a controller tracks the motion twice."""
    law = torsor.control.computed_torque(assumed, motion.law, bandwidth=40.0)
    run = torsor.simulate(real, motion.at(0.0).q, duration=2 * PERIOD, step=STEP, controller=law, control_period=STEP)
    rng = np.random.default_rng(seed)
    q = run.q + ENCODER * rng.normal(size=run.q.shape)
    tau = run.tau + NOISE * rng.normal(size=run.tau.shape)
    return Measurements.from_positions(run.times, q, tau, cutoff=10.0)


def main() -> None:
    """Print the report and the errors on a new motion, and save the picture."""
    real = real_arm()
    assumed = assumed_arm(real)
    motion, other = (
        excite(assumed, PERIOD, HARMONICS, lower=LOWER, upper=UPPER, velocity=SPEED, seed=seed) for seed in (0, 1)
    )
    print(f"condition number {motion.start_condition:.0f} -> {motion.condition:.0f}")
    identified = torsor.identify(assumed, measure(real, assumed, motion, seed=0), physical=True)
    print(identified.report())
    new = measure(real, assumed, other, seed=1)
    check = identified.validate(new)
    before = np.sqrt(np.mean((new.tau - assumed.inverse_dynamics(new.q, new.v, new.a)) ** 2, axis=0))
    print("RMS force error on a new motion (N m, N)")
    for title, values in (("assumed", before), ("identified", check.rms), ("sensor noise", NOISE)):
        print(f"{title:22}", *(f"{value:8.3f}" for value in values))
    check.plot(sys.argv[1] if len(sys.argv) > 1 else "identify_stanford.png")


if __name__ == "__main__":
    main()
