"""Measure the improvement of ``excite`` over random motions, and the identification time.

    python benchmarks/excitation.py

The script prints the condition numbers of the base regressor of the Stanford arm (10 s, 5 harmonics) for several seeds,
and the time (s) of an identification of six axes from 20,000 samples, without and with physical consistency
constraints.
"""

import time

import numpy as np

import torsor
from torsor.identification import excite

SEEDS, SAMPLES = range(4), 20_000
LOWER, UPPER = np.array([-2, -2, 0.2, -2, -2, -2]), np.array([2, 2, 1.0, 2, 2, 2])
SPEED = np.array([2, 2, 1, 3, 3, 3])


def main() -> None:
    """Print condition numbers and times."""
    arm = torsor.library.stanford()
    motions = [excite(arm, 10.0, 5, lower=LOWER, upper=UPPER, velocity=SPEED, seed=seed) for seed in SEEDS]
    print("best of 30 random motions:", ", ".join(f"{motion.start_condition:.0f}" for motion in motions))
    print("after optimisation:       ", ", ".join(f"{motion.condition:.0f}" for motion in motions))
    q, v, a = motions[0](np.linspace(0, 20, SAMPLES, endpoint=False))
    tau = arm.inverse_dynamics(q, v, a) + np.random.default_rng(0).normal(size=v.shape)
    for physical in (False, True):
        torsor.identify(arm, (q[:1000], v[:1000], a[:1000], tau[:1000]), physical=physical)  # compiles
        start = time.perf_counter()
        torsor.identify(arm, (q, v, a, tau), physical=physical)
        print(f"{SAMPLES} samples, physical={physical}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
