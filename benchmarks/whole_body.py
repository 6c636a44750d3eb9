"""Measure one call of whole-body control of Talos: the kernel, the solver and all of it; print a table as Markdown.

Talos stands on both feet (surface contacts) with tasks for its centre of mass, trunk, left hand, angular momentum and
posture, and limits of torques, velocities and positions. If TSID is installed, its inverse dynamics with the same
contacts and the tasks that it has runs beside it.
"""

from collections.abc import Callable

import numpy as np

import torsor
from torsor.bench.measure import best_small, has, robot_file
from torsor.control import (
    AngularMomentum,
    CenterOfMass,
    FrameOrientation,
    FramePose,
    Posture,
    SurfaceContact,
    WholeBody,
)
from torsor.control.whole_body.solver import Problem, solve

SOLES, HAND = ("left_sole_link", "right_sole_link"), "arm_left_7_link"
KNEES = {"3": -0.41, "4": 0.86, "5": -0.45}
LENGTH, WIDTH, FRICTION = 0.1, 0.06, 0.7
CALLS = 20  # of one measurement: short, so that some of them are not disturbed


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


def tsid_call(path: str, robot: torsor.Robot, q: np.ndarray) -> Callable[[], None]:
    """Return a function that computes TSID's problem and solves it."""
    import pinocchio as pin
    import tsid

    wrapper = tsid.RobotWrapper(path, [], pin.JointModelFreeFlyer(), False)
    model = wrapper.model()
    from torsor.bench.coordinates import PinocchioCoordinates

    q_p = PinocchioCoordinates(robot, model).positions(q)
    v_p = np.zeros(model.nv)
    formulation = tsid.InverseDynamicsFormulationAccForce("tsid", wrapper, False)
    formulation.computeProblemData(0.0, q_p, v_p)
    corners = np.array([[-LENGTH, -LENGTH, LENGTH, LENGTH], [-WIDTH, WIDTH, -WIDTH, WIDTH], [0.0] * 4])
    for sole in SOLES:
        contact = tsid.Contact6d(sole, wrapper, sole, corners, np.array([0.0, 0, 1]), FRICTION, 0.0, 1e4)
        contact.setKp(np.zeros(6))
        contact.setKd(20.0 * np.ones(6))
        contact.setReference(wrapper.framePosition(formulation.data(), model.getFrameId(sole)))
        formulation.addRigidContact(contact, 1e-9)
    com = tsid.TaskComEquality("com", wrapper)
    com.setKp(100.0 * np.ones(3))
    com.setKd(20.0 * np.ones(3))
    formulation.addMotionTask(com, 10.0, 1, 0.0)
    com.setReference(tsid.TrajectoryEuclidianConstant("com", wrapper.com(formulation.data())).computeNext())
    posture = tsid.TaskJointPosture("posture", wrapper)
    posture.setKp(100.0 * np.ones(wrapper.na))
    posture.setKd(20.0 * np.ones(wrapper.na))
    formulation.addMotionTask(posture, 0.1, 1, 0.0)
    posture.setReference(tsid.TrajectoryEuclidianConstant("posture", q_p[7:]).computeNext())
    for name in ("base_link", HAND):
        task = tsid.TaskSE3Equality(name, wrapper, name)
        task.setKp(100.0 * np.ones(6))
        task.setKd(20.0 * np.ones(6))
        formulation.addMotionTask(task, 1.0, 1, 0.0)
        at = wrapper.framePosition(formulation.data(), model.getFrameId(name))
        task.setReference(tsid.TrajectorySE3Constant(name, at).computeNext())
    effort = robot.effort_limit[6:]
    bounds = tsid.TaskActuationBounds("torques", wrapper)
    bounds.setBounds(-effort, effort)
    formulation.addActuationTask(bounds, 1.0, 0, 0.0)
    solver = tsid.SolverHQuadProgFast("qp")
    solver.resize(formulation.nVar, formulation.nEq, formulation.nIn)

    def call() -> None:
        problem = formulation.computeProblemData(0.0, q_p, v_p)
        found = solver.solve(problem)
        assert found.status == 0
        formulation.getActuatorForces(found)

    return call


def main() -> None:
    """Print the table."""
    path = robot_file("talos_reduced.urdf")
    robot = torsor.load(path, base="floating").without_friction()
    q, v = standing(robot), np.zeros(robot.nv)
    law = controller(robot, q)
    assert law.solve(q, v).status == "solved"
    matrices = law._kernel(0.0, q, v)
    problem = Problem(*matrices[:5], law.program.kinds)
    size = f"{len(problem.g)} variables, {len(problem.lower)} rows"
    rows = {
        "kernel: all matrices": lambda: law._kernel(0.0, q, v),
        f"solver: {size}": lambda: solve(problem),
        "one call of `WholeBody.solve`": lambda: law.solve(q, v),
    }
    if has("tsid"):
        rows["TSID: problem, solver, torques"] = tsid_call(str(path), robot, q)
    print("| Talos on two feet, one state | us |")
    print("|---|---|")
    for name, call in rows.items():
        print(f"| {name} | {best_small(call, CALLS) * 1e6:.0f} |")


if __name__ == "__main__":
    main()
