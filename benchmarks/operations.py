"""Count the operations of real robots: as described, after ``lean``, with motors, and for derivatives.

The script prints tables of the documentation as Markdown. Counts do not depend on the machine. The robots are those of
the package example-robot-data and the arms of the library.
"""

import sys
import warnings
from importlib.metadata import files
from pathlib import Path

import casadi as ca
import numpy as np

import torsor
from torsor.compiler import count_operations
from torsor.dynamics import ALGORITHMS, Tree
from torsor.spatial import axis_frame, make_pose

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
    """Return the path of a robot in the package."""
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
    drives()
    derivatives()
    motions()
    hessians()


def drives() -> None:
    """Print the table of docs/compute/drives.md: what motors and elastic joints add to the seven-axis arm."""
    bare = torsor.library.seven_axis_arm()
    geared, links, joints = bare, [bare.base, *bare.links], list(bare.joints)
    for joint in bare.joints:
        axis = joint.placement[:3, :3] @ joint.axis
        geared = geared.with_motor(joint.name, 1e-4, 100.0, joint.parent, axis)
        name, at = f"{joint.name}/rotor", make_pose(axis_frame(axis))
        links.append(torsor.Link(name, 0.3, np.zeros(3), 1e-4 * np.eye(3)))
        joints.append(torsor.Joint(name, "revolute", joint.parent, name, at, ratio=100.0))
    print("\n| seven-axis arm | inverse dynamics | forward dynamics | mass matrix |\n|---|---|---|---|")
    for title, robot in (
        ("no motors", bare),
        ("seven geared motors, rigid", geared),
        ("seven elastic joints, nv = 14", torsor.library.elastic_seven_axis_arm()),
        ("the same with rotors as links of their own", torsor.build("rotors", links, joints)),
    ):
        counts = [robot.operation_count(each) for each in ("inverse_dynamics", "forward_dynamics", "mass_matrix")]
        inverse, forward, matrix = (count.arithmetic for count in counts)
        print(f"| {title} | {inverse} ({counts[0].trigonometric}) | {forward} | {matrix} |")


def derivatives() -> None:
    """Print the table of docs/compute/sensitivities.md, with CasADi's own Jacobian for comparison."""
    print("\n| | inverse dynamics | its three derivatives | CasADi's own | forward dynamics' | force rate |")
    print("|---|---|---|---|---|---|")
    for title in ("UR5", "Talos"):
        robot = torsor.load(robot_file(ROBOTS[title])).without_friction()
        state = [ca.SX.sym(letter, robot.nv) for letter in "qva"]
        tau = robot.function("inverse_dynamics")(*state)
        own = ca.Function("own", state, ca.cse([ca.jacobian(tau, each) for each in state]))
        names = ("inverse_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "force_rate")
        inverse, three, forward, rate = (robot.operation_count(name).arithmetic for name in names)
        print(f"| {title} | {inverse} | {three} | {count_operations(own).arithmetic} | {forward} | {rate} |")


def motions() -> None:
    """Print the second table of docs/compute/sensitivities.md: derivatives of the motion of the last link."""
    print("\n| | velocity | CasADi's own | acceleration | CasADi's own |\n|---|---|---|---|---|")
    for title in ("UR5", "Panda with hand", "Talos"):
        robot = torsor.load(robot_file(ROBOTS[title]))
        place, counts = robot.link_names[-1], list[int]()
        for name, letters in (("velocity", "qv"), ("acceleration", "qva")):
            state = [ca.SX.sym(letter, robot.nv) for letter in letters]
            motion = robot.function(name, place)(*state)
            own = ca.Function("own", state, ca.cse([ca.jacobian(motion, each) for each in state]))
            counts += [robot.operation_count(f"{name}_derivatives", place).arithmetic, count_operations(own).arithmetic]
        print(f"| {title} | " + " | ".join(map(str, counts)) + " |")


def hessians() -> None:
    """Print the third table of docs/compute/sensitivities.md, with CasADi's own Hessians for comparison."""
    print("\n| | Hessian of weight . tau | CasADi's own | Jacobian of CasADi's own gradient |")
    print("|---|---|---|---|")
    for title in ("UR5", "Panda with hand", "Talos"):
        robot = torsor.load(robot_file(ROBOTS[title])).without_friction()
        *state, weight = (ca.SX.sym(letter, robot.nv) for letter in "qvaw")
        power, x = ca.dot(weight, robot.function("inverse_dynamics")(*state)), ca.vertcat(*state)
        ways = ca.hessian(power, x)[0], ca.jacobian(ca.cse(ca.gradient(power, x)), x)
        own = (ca.Function("own", [*state, weight], [ca.cse(each)]) for each in ways)
        counts = robot.operation_count("inverse_dynamics_hessian"), *map(count_operations, own)
        print(f"| {title} | " + " | ".join(str(count.arithmetic) for count in counts) + " |")


if __name__ == "__main__":
    main()
