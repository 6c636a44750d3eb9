"""Count the operations of inverse dynamics of real robots, as described and after ``lean``; print a Markdown table.

Counts do not depend on the machine. Robots: the wheel example-robot-data, and the arms of the library.
"""

import sys
import warnings
from importlib.metadata import files
from pathlib import Path

import casadi as ca

import torsor
from torsor.compiler import count_operations
from torsor.dynamics import ALGORITHMS, Tree

ROBOTS = {
    "UR5": "ur5_robot.urdf",
    "Panda with hand": "panda.urdf",
    "xArm7": "xarm7.urdf",
    "Solo12": "solo12.urdf",
    "G1": "g1_29dof_rev_1_0.urdf",
    "iCub": "icub_reduced.urdf",
    "Talos": "talos_reduced.urdf",
    "PR2": "pr2.urdf",
}


def robot_file(name: str) -> Path:
    """Return the path of a robot of the wheel."""
    return next(Path(str(each.locate())) for each in files("example-robot-data") or [] if each.name == name)


def as_described(robot: torsor.Robot) -> int:
    """Return the additions and multiplications of inverse dynamics without any simplification of the tree."""
    q, v, a = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv), ca.SX.sym("a", robot.nv)
    tau = ca.cse(ALGORITHMS["inverse_dynamics"].rule(Tree.of(robot), q, v, a))
    return count_operations(ca.Function("plain", [q, v, a], [tau])).arithmetic


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", torsor.ModelWarning)
    print("| robot | base | dof | as described | lean | saved | sin, cos | mass matrix |")
    print("|---|---|---|---|---|---|---|---|")
    for title, name in ROBOTS.items():
        for base in ("fixed", "floating"):
            robot = torsor.load(robot_file(name), base=base)
            before, after = as_described(robot), robot.operation_count("inverse_dynamics")
            saved = f"{1 - after.arithmetic / before:.0%}"
            matrix = robot.operation_count("mass_matrix").arithmetic
            row = (title, base, robot.nv, before, after.arithmetic, saved, after.trigonometric, matrix)
            print("| " + " | ".join(map(str, row)) + " |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
