"""Compare ``motion.retime`` with toppra in one process: the UR5 of example-robot-data through 10 random waypoints.

    python benchmarks/retiming.py

The script prints the table of docs/plan/retiming.md: the time from waypoints to a timed motion (best of several
repeats) and the duration of the motion, as medians over seeds. toppra uses the same cubic spline, the same 91 knots and
the same constraints at both ends of each interval (``DiscretizationType.Interpolation``); its torques are those of
Pinocchio's ``rnea``. The script needs toppra, pin and example-robot-data.
"""

import time
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio
import toppra
from toppra import algorithm, constraint

import torsor
from torsor.motion import retime

SEEDS, REPEATS, WAYPOINTS, BATCH = range(8), 30, 10, 200
KNOTS = np.linspace(0.0, 1.0, 91)
S = np.linspace(0.0, 1.0, WAYPOINTS)
ACCELERATION, JERK, TORQUE_RATE = 10.0, 100.0, 1000.0


def robot_file() -> str:
    """Return the path of the UR5."""
    listed = files("example-robot-data") or []
    return str(next(Path(str(each.locate())) for each in listed if each.name == "ur5_robot.urdf"))


def best(function: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the shortest time of several calls (ms), and the result of the last one."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = function()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times), found


def peer(model: Any, data: Any, q: Any, torque: bool) -> Any:
    """Return the trajectory computed by toppra."""
    both = constraint.DiscretizationType.Interpolation
    speed, effort = (np.stack([-each, each], axis=1) for each in (model.velocityLimit, model.effortLimit))
    rows = [constraint.JointVelocityConstraint(speed)]
    if torque:
        forces = lambda *state: pinocchio.rnea(model, data, *state)  # noqa: E731 - as its users write it
        rows.append(constraint.JointTorqueConstraint(forces, effort, np.zeros(model.nv), both))
    else:
        rows.append(constraint.JointAccelerationConstraint(np.tile([-ACCELERATION, ACCELERATION], (model.nv, 1)), both))
    path = toppra.SplineInterpolator(S, q)
    options = {"gridpoints": KNOTS, "solver_wrapper": "seidel", "parametrizer": "ParametrizeConstAccel"}
    return algorithm.TOPPRA(rows, path, **options).compute_trajectory(0, 0)


def main() -> None:
    """Print the table."""
    toppra.setup_logging("ERROR")
    robot, model = torsor.load(robot_file()), pinocchio.buildModelFromUrdf(robot_file())
    data = model.createData()
    paths = [np.random.default_rng(seed).uniform(-2.0, 2.0, (WAYPOINTS, robot.nv)) for seed in SEEDS]
    kinds: dict[str, dict[str, Any]] = {
        "velocity, acceleration": {"acceleration": ACCELERATION, "torque": np.inf},
        "velocity, torque": {},
    }
    print("| bounds | toppra (ms) | torsor (ms) | faster | duration beside toppra | beyond bounds between knots |")
    print("|---|---|---|---|---|---|")
    for name, bounds in kinds.items():
        rows = []
        for q in paths:
            other, known = best(lambda q=q, torque=not bounds: peer(model, data, q, torque))
            own, found = best(lambda q=q, bounds=bounds: retime(robot, (S, q), knots=KNOTS, **bounds))
            rows.append((other, own, other / own, found.excess, found.duration / known.duration - 1))
        other, own, ratio, excess, _ = np.median(rows, axis=0)
        longest = max((row[-1] for row in rows), key=abs)
        shares = f"at most {100 * longest:+.4f} % | {100 * excess:.1f} %"
        print(f"| {name} | {other:.2f} | {own:.2f} | {ratio:.0f} x | {shares} |")
    more = kinds | {
        "velocity, acceleration, jerk": {"acceleration": ACCELERATION, "torque": np.inf, "jerk": JERK},
        "velocity, torque, torque rate": {"torque_rate": TORQUE_RATE},
    }
    print("\n| bounds | one path (ms) | duration (s) | beyond bounds between knots |")
    print("|---|---|---|---|")
    for name, bounds in more.items():
        rows = []
        for q in paths:
            own, found = best(lambda q=q, bounds=bounds: retime(robot, q, **bounds), 5)
            rows.append((own, found.duration, found.excess))
        own, duration, excess = np.median(rows, axis=0)
        print(f"| {name} | {own:.1f} | {duration:.3f} | {100 * excess:.2f} % |")
    batch = np.stack([np.random.default_rng(k).uniform(-2.0, 2.0, (WAYPOINTS, robot.nv)) for k in range(BATCH)])
    for name, bounds in kinds.items():
        own, _ = best(lambda bounds=bounds: retime(robot, batch, knots=10, **bounds), 5)
        print(f"{BATCH} paths at once, {name}: {own / BATCH:.3f} ms a path")


if __name__ == "__main__":
    main()
