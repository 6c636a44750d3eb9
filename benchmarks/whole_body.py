"""Measure one call of whole-body control of Talos: kernel, solver and total; print a Markdown table.

Talos stands on both feet (surface contacts) with tasks for its centre of mass, trunk, left hand, angular momentum and
posture, and limits on torques, velocities and positions. ``whole_body_tsid.py`` measures a peer on the same problem.
"""

import numpy as np

import torsor
from bench.measure import best_small, robot_file
from torsor.control import (
    AngularMomentum,
    CenterOfMass,
    FrameOrientation,
    FramePose,
    Posture,
    SurfaceContact,
    WholeBody,
)
from torsor.control.whole_body.program import Problem, solve

SOLES, HAND = ("left_sole_link", "right_sole_link"), "arm_left_7_link"
KNEES = {"3": -0.41, "4": 0.86, "5": -0.45}
LENGTH, WIDTH, FRICTION = 0.1, 0.06, 0.7
STATES = 64  # of a batch
CALLS, ROUNDS = 10, 3  # of one measurement: short, so that some of them are not disturbed


def standing(robot: torsor.Robot) -> np.ndarray:
    """Return positions with bent knees, so that no leg is singular."""
    q, names = robot.neutral(), list(robot.position_names)
    for side in ("left", "right"):
        for number, angle in KNEES.items():
            q[names.index(f"leg_{side}_{number}_joint")] = angle
        q[names.index(f"arm_{side}_4_joint")] = -0.8
    return q


def controller(robot: torsor.Robot, q: np.ndarray) -> WholeBody:
    """Return the controller."""
    tasks = [
        CenterOfMass(robot.center_of_mass(q), weight=10.0),
        FrameOrientation("base_link", np.eye(3)),
        FramePose(HAND, robot.pose(q, HAND)),
        AngularMomentum(weight=0.1),
        Posture(q, weight=0.1),
    ]
    return WholeBody(robot, tasks, [SurfaceContact(each, LENGTH, WIDTH, friction=FRICTION) for each in SOLES])


def main() -> None:
    """Print the table."""
    path = robot_file("talos_reduced.urdf")
    robot = torsor.load(path, base="floating").without_friction()
    q, v = standing(robot), np.zeros(robot.nv)
    law = controller(robot, q)
    assert law.solve(q, v).status == "solved"
    matrices = law._kernel(np.array(0.0), q, v)
    problem = Problem(*matrices[:5], law.program.kinds)
    size = f"{len(problem.g)} variables, {len(problem.lower)} rows"
    rows = {
        "kernel: all matrices": lambda: law._kernel(np.array(0.0), q, v),
        f"solver: {size}": lambda: solve(problem),
        "one call of `WholeBody.solve`": lambda: law.solve(q, v),
    }
    print("| Talos on two feet, one state | us |")
    print("|---|---|")
    for name, call in rows.items():
        print(f"| {name} | {min(best_small(call, CALLS) for _ in range(ROUNDS)) * 1e6:.0f} |")
    states, still = np.tile(q, (STATES, 1)), np.zeros((STATES, robot.nv))
    for name, call in {
        f"kernel, a state of {STATES}": lambda: law._kernel(0.0, states, still),
        f"`WholeBody.solve`, a state of {STATES}": lambda: law.solve(states, still),
    }.items():
        print(f"| {name} | {min(best_small(call, 1) for _ in range(ROUNDS)) / STATES * 1e6:.0f} |")


if __name__ == "__main__":
    main()
