"""Inverse kinematics of the Panda: success rate and speed for random reachable poses, solved to 1e-9.

Two peers are measured if they are installed: a damped loop around Pinocchio (forward kinematics, logarithm, Jacobian,
step), and the compiled solver of the Robotics Toolbox (``ik_LM`` with its restarts). Everything runs in one process.
Times are the best of several runs, in processor time, so that other work on the machine does not count. The poses are
those of random postures within the limits. Run ``python benchmarks/inverse_kinematics.py [COUNT]``.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import torsor

PLACE, TOLERANCE, RUNS, FEW = "panda_hand_tcp", 1e-9, 5, 300


def best(call: Callable[[], object], runs: int = RUNS) -> float:
    """Return the shortest processor time (s) of several calls."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def reached(robot: torsor.Robot, q: np.ndarray, poses: np.ndarray) -> float:
    """Return the fraction of postures that are within the limits and reach the poses, by forward kinematics."""
    off = np.abs(robot.pose(q, PLACE) - poses).max(axis=(1, 2))
    inside = (q >= robot.lower - 1e-9).all(axis=1) & (q <= robot.upper + 1e-9).all(axis=1)
    return float(((off < 2 * TOLERANCE) & inside).mean())


def pinocchio_loop(robot: torsor.Robot, poses: np.ndarray, starts: np.ndarray) -> Callable[[], np.ndarray]:
    """Return a loop as in Pinocchio's examples, with error-dependent damping, clipped steps and one start per pose."""
    import pinocchio as pin

    with tempfile.TemporaryDirectory() as folder:
        robot.save(Path(folder) / "panda.urdf")
        model = pin.buildModelFromUrdf(str(Path(folder) / "panda.urdf"))
    data, frame = model.createData(), model.getFrameId(PLACE)

    def call() -> np.ndarray:
        found = np.empty_like(starts)
        for k, (T, q) in enumerate(zip(poses, starts, strict=True)):
            goal = pin.SE3(T)
            for _ in range(60):
                pin.computeJointJacobians(model, data, q)
                pin.updateFramePlacement(model, data, frame)
                away = goal.actInv(data.oMf[frame])
                error = pin.log6(away).vector
                if np.abs(error).max() < TOLERANCE:
                    break
                J = pin.Jlog6(away) @ pin.getFrameJacobian(model, data, frame, pin.LOCAL)
                step = -J.T @ np.linalg.solve(J @ J.T + (1e-2 * (error @ error) + 1e-12) * np.eye(6), error)
                q = np.clip(q + step, model.lowerPositionLimit, model.upperPositionLimit)
            found[k] = q
        return found

    return call


def toolbox(count: int, restarts: int) -> tuple[Callable[[], list[np.ndarray]], Callable[[list[np.ndarray]], float]]:
    """Return functions that call the compiled Robotics Toolbox solver for its Panda, and rate the solutions."""
    import roboticstoolbox

    arm = roboticstoolbox.models.Panda().ets()
    lower, upper = arm.qlim
    targets = [arm.eval(q) for q in np.random.default_rng(1).uniform(lower, upper, (count, arm.n))]
    options = {"ilimit": 60, "slimit": restarts, "tol": TOLERANCE**2 / 2, "joint_limits": True}

    def call() -> list[np.ndarray]:
        return [arm.ik_LM(T, **options).q for T in targets]

    def solved(found: list[np.ndarray]) -> float:
        off = [np.abs(arm.eval(q) - T).max() for q, T in zip(found, targets, strict=True)]
        inside = [(q >= lower).all() and (q <= upper).all() for q in found]
        return float(np.mean((np.array(off) < 2 * TOLERANCE) & inside))

    return call, solved


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    robot = torsor.library.panda()
    postures = np.random.default_rng(0).uniform(robot.lower, robot.upper, (count, 7))
    poses = robot.pose(postures, PLACE)
    rows = []
    for restarts in (0, 100):
        found = torsor.inverse_kinematics(
            robot, {PLACE: poses}, restarts=restarts
        )  # compiles, and makes the table of starts

        def call(restarts: int = restarts) -> object:
            return torsor.inverse_kinematics(robot, {PLACE: poses}, restarts=restarts)

        name = "one start" if restarts == 0 else f"{restarts} restarts"
        rows.append((f"Torsor, {name}, {count} poses", reached(robot, found.q, poses), count / best(call)))
    few = poses[:FEW]

    def one_by_one() -> np.ndarray:
        return np.array([torsor.inverse_kinematics(robot, {PLACE: pose}).q for pose in few])

    rows.append(("Torsor, one pose a call", reached(robot, one_by_one(), few), FEW / best(one_by_one)))
    try:
        starts = np.random.default_rng(1).uniform(robot.lower, robot.upper, (FEW, 7))
        loop = pinocchio_loop(robot, few, starts)
        rows.append(("Pinocchio, loop, one start", reached(robot, loop(), few), FEW / best(loop, 3)))
    except ImportError:
        print("Pinocchio is not installed")
    try:
        for tries in (1, 100):
            solve, solved_by = toolbox(FEW, tries)
            rows.append((f"Robotics Toolbox, ik_LM, {tries} starts", solved_by(solve()), FEW / best(solve, 3)))
    except ImportError:
        print("the Robotics Toolbox is not installed")
    print(f"{'solver':45s} {'solved':>9s} {'poses/s':>10s} {'solutions/s':>12s}")
    for name, solved, rate in rows:
        print(f"{name:45s} {100 * solved:8.3f}% {rate:10.0f} {solved * rate:12.0f}")


if __name__ == "__main__":
    main()
