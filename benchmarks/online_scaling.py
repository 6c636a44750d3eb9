"""Online scaling of the UR5 against the offline optimum: lost time, values relative to bounds, and cost per sample.

Run: ``OMP_NUM_THREADS=1 python benchmarks/online_scaling.py [repeats]``. Torques and velocities are within the robot's
limits, and torque rates are within ten times the torque limits per second. The offline optimum is ``path_time`` with 60
control points, refined until bounds hold between its nodes. A control period is 1 ms. The same motion is repeated. The
cost of each sample (feed, step and search) is the least of all repeats, because other processes disturb individual
repeats.
"""

import sys
import time

import numpy as np

import torsor
from torsor.control import OnlineScaling
from torsor.motion import MotionProblem
from torsor.motion.problems import path_time

PERIOD = 1e-3
REPEATS = 20
PASS = 5e-3  # s: about the time between two samples of a path


def paths() -> dict[str, np.ndarray | None]:
    """Return joint paths as waypoints (K, 6); None stands for the path of ``path_time``."""
    x = np.linspace(0, 1, 9)
    start, way = np.array([0.0, -1.5, 1.0, -1.0, -1.5, 0.0]), np.array([1.5, 1.0, -0.5, -0.5, 0.5, 1.0])
    turn = 2 * np.pi * x
    center, loop = np.array([0.3, -1.2, 1.4, -1.6, -1.4, 0.1]), [0.8 * np.sin(turn), 0.4 * np.cos(turn)]
    loop += [0.5 * np.sin(2 * turn), 0.6 * np.cos(turn), 0.5 * np.sin(turn), 1.5 * x]
    random, t = np.random.default_rng(0), np.linspace(0, 1, 25)
    waves = [
        (random.uniform(0, 0.4, 6) * np.sin(np.multiply.outer(t, random.uniform(2, 9, 6)) + random.uniform(0, 6, 6)))
        for _ in range(2)
    ]
    return {
        "bow (path_time)": None,
        "straight": start + np.multiply.outer(x, way),
        "loop": center + np.column_stack(loop),
        "waves": center + sum(waves),
    }


def samples(problem: MotionProblem, count: int) -> np.ndarray:
    """Return q and its first three derivatives at equidistant points of a path, (count + 1, 4, 6)."""
    assert problem.path is not None
    s, path = np.linspace(0, 1, count + 1), problem.path
    return np.stack([path.spline.matrix(s, order) @ path.points for order in range(4)], axis=1)


def follow(robot: torsor.Robot, table: np.ndarray) -> tuple[OnlineScaling, np.ndarray, np.ndarray]:
    """Return the timing (steps, 3) of a path, and the time (s) of each step."""
    count = len(table) - 1
    scaling = OnlineScaling(robot, 1 / count, PERIOD, torque_rate=10 * robot.effort_limit, speed=100.0)
    timing, seconds = [], []
    for sample in table[: scaling.room]:
        scaling.feed(*sample)
    scaling.prepare()
    while not scaling.finished:
        begin = time.perf_counter()
        while scaling.room:
            if scaling.fed <= count:
                scaling.feed(*table[scaling.fed])
            else:
                scaling.close()
        timing.append(scaling.step())
        seconds.append(time.perf_counter() - begin)
    return scaling, np.array(timing), np.array(seconds)


def use(scaling: OnlineScaling, problem: MotionProblem, timing: np.ndarray) -> tuple[float, float]:
    """Return the largest torque, and torque rate over a period, relative to their bounds."""
    assert problem.path is not None
    s, rate, acceleration = timing[:, :1], timing[:, 1:2], timing[:, 2:]
    q, d1, d2 = (problem.path.spline.matrix(s[:, 0], order) @ problem.path.points for order in range(3))
    tau = scaling.robot.inverse_dynamics(q, d1 * rate, d2 * rate**2 + d1 * acceleration)
    change = np.abs(np.diff(tau, axis=0))[:-1] / PERIOD
    return float((np.abs(tau) / scaling.torque).max()), float((change / scaling.torque_rate).max())


def main() -> None:
    """Print one row for each path."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    robot = torsor.library.ur5()
    head = "| path | offline (s) | online (s) | lost | largest torque, rate |"
    print(f"{head} one sample: median, mean, 99 %, largest (us) |")
    print("|---|---|---|---|---|---|")
    for name, way in paths().items():
        given = {} if way is None else {"waypoints": way}
        problem = path_time(**given, robot=robot, points=60, torque_rates=10 * robot.effort_limit)
        best = problem.solve(refine=True).T
        table = samples(problem, round(best / PASS))
        scaling, timing, cost = follow(robot, table)
        for _ in range(repeats - 1):
            cost = np.minimum(cost, follow(robot, table)[2])
        lost, (torque, rate), cost = PERIOD * len(timing) / best - 1, use(scaling, problem, timing), 1e6 * cost
        online = f"{PERIOD * len(timing):.3f} | {100 * lost:.1f} % | {torque:.3f}, {rate:.3f}"
        costs = np.median(cost), cost.mean(), np.percentile(cost, 99), cost.max()
        print(f"| {name} | {best:.4f} | {online} | {', '.join(f'{each:.1f}' for each in costs)} |")


if __name__ == "__main__":
    main()
