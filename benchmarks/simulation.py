"""Measure accuracy and cost of the integrators on a falling arm; print the tables of docs/simulate/simulation.md."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import torsor
from torsor import motion

ARM = torsor.library.seven_axis_arm()
START = np.random.default_rng(0).normal(size=7)


def best(call: Callable[[], object], repeats: int = 7) -> float:
    """Return the shortest time (s) of a call, after a first call that compiles."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def fall(**settings: object) -> torsor.Trajectory:
    """Return a fall of 0.5 s from random velocities, sampled every 50 ms."""
    return torsor.simulate(ARM, v0=START, duration=0.5, record=0.05, **settings)  # type: ignore[arg-type]


def main() -> None:
    """Print the tables."""
    exact = fall(step=2e-5)
    print(f"largest speed {np.abs(exact.v).max():.0f} rad/s")
    print("| | largest error (rad) | energy drift (J) | time |\n|---|---|---|---|")
    cases: list[tuple[str, dict[str, object]]] = [
        ("`rk4`, step 2 ms", {"step": 2e-3}),
        ("`rk4`, step 1 ms", {"step": 1e-3}),
        ("`rk4`, step 0.5 ms", {"step": 5e-4}),
        ("`implicit`, step 1 ms", {"step": 1e-3, "method": "implicit"}),
        ("`implicit`, step 0.5 ms", {"step": 5e-4, "method": "implicit"}),
        ("`adaptive`", {"method": "adaptive"}),
        ("`adaptive`, rtol 1e-11, atol 1e-13", {"method": "adaptive", "rtol": 1e-11, "atol": 1e-13}),
    ]
    for title, settings in cases:
        drop = fall(**settings)
        error, drift = np.abs(drop.q - exact.q).max(), np.ptp(drop.energy)
        seconds = best(lambda settings=settings: fall(**settings))  # type: ignore[misc]
        print(f"| {title} | {error:.1e} | {drift:.1e} | {1e3 * seconds:.1f} ms |")
    many = np.tile(START, (1000, 1))
    print("\n| 7-dof arm, `rk4` | steps per second |\n|---|---|")
    for title, v0, settings in (
        ("1000 rollouts, sample every 100 steps", many, {"record": 0.1}),
        ("1000 rollouts, every step recorded", many, {}),
        ("one rollout", START, {"record": 0.1}),
        ("one rollout, controller in Python", START, {"record": 0.1, "controller": lambda t, q, v: -0.01 * v}),
    ):
        run = lambda v0=v0, settings=settings: torsor.simulate(ARM, v0=v0, duration=0.5, **settings)  # noqa: E731
        print(f"| {title} | {500 * len(np.atleast_2d(v0)) / best(run) / 1e6:.2g} million |")
    print("\n| `result.at(t)`, one time | q | q, v, a, tau |\n|---|---|---|")
    way = motion.retime(ARM, [np.zeros(7), np.ones(7), np.full(7, 0.5)], velocity=1.0, acceleration=2.0)
    ends = [motion.Start(q=np.zeros(7), v=0.0), motion.End(q=np.full(7, 0.5), v=0.0)]
    found = motion.MotionProblem(ARM, motion.Phase(1.0, points=8), motion.Effort(), ends).solve()
    for title, result in (("`Trajectory`", fall(step=1e-3)), ("`MotionResult`", found), ("`Retimed`", way)):
        costs = [best(lambda result=result, n=n: _many(result, n), 60) / 20 for n in (1, 4)]  # type: ignore[misc]
        print(f"| {title} | {1e6 * costs[0]:.1f} us | {1e6 * costs[1]:.1f} us |")


def _many(result: Any, quantities: int) -> None:
    """Ask for some quantities at one time, 20 times."""
    for _ in range(20):
        now = result.at(0.1234)
        for name in ("q", "v", "a", "tau")[:quantities]:
            getattr(now, name)


if __name__ == "__main__":
    main()
