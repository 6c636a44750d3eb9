"""Measure one call of TSID on the problem of ``whole_body.py``: Talos on both feet; print a row as Markdown.

TSID needs its own version of Pinocchio, so it runs in a separate environment: ``pip install tsid==1.7.1 pin==3.4.0
'cmeel-urdfdom<5'``, then ``python benchmarks/whole_body_tsid.py talos_reduced.urdf``. Tasks, gains, contacts, friction
and limits are the same; TSID uses four forces at the corners of each sole instead of a wrench.
"""

import sys
import time

import numpy as np
import pinocchio as pin
import tsid

if not hasattr(tsid, "RobotWrapper"):  # the wheel of 1.7.1 has its module one folder too deep
    sys.path.insert(0, next(iter(tsid.__path__)))
    import tsid_pywrap as tsid

SOLES, HAND, TRUNK = ("left_sole_link", "right_sole_link"), "arm_left_7_link", "base_link"
KNEES = {"3": -0.41, "4": 0.86, "5": -0.45}
LENGTH, WIDTH, FRICTION = 0.1, 0.06, 0.7
BANDWIDTH, HORIZON = 10.0, 0.05
KP, KD = BANDWIDTH**2, 2 * BANDWIDTH
CALLS, TIMES = 10, 1000


def standing(model: pin.Model) -> np.ndarray:
    """Return positions with bent knees."""
    q = pin.neutral(model)
    for side in ("left", "right"):
        for number, angle in KNEES.items():
            q[model.joints[model.getJointId(f"leg_{side}_{number}_joint")].idx_q] = angle
        q[model.joints[model.getJointId(f"arm_{side}_4_joint")].idx_q] = -0.8
    return q


def controller(robot: tsid.RobotWrapper, q: np.ndarray) -> tuple[tsid.InverseDynamicsFormulationAccForce, list]:
    """Return the formulation, and the objects that it needs but does not keep alive."""
    v = np.zeros(robot.nv)
    law = tsid.InverseDynamicsFormulationAccForce("law", robot, False)
    law.computeProblemData(0.0, q, v)
    data, kept = law.data(), []

    def at_rest(value: np.ndarray, size: int) -> tsid.TrajectorySample:
        sample = tsid.TrajectorySample(value.size, size)
        sample.value(value)
        kept.append(sample)
        return sample

    corners = np.array([[x, y, 0.0] for x in (-LENGTH, LENGTH) for y in (-WIDTH, WIDTH)]).T
    for sole in SOLES:
        contact = tsid.Contact6d(sole, robot, sole, corners, np.array([0.0, 0, 1]), FRICTION, 0.0, 1e4)
        contact.setKp(np.zeros(6))
        contact.setKd(20 * np.ones(6))
        contact.setReference(robot.framePosition(data, robot.model().getFrameId(sole)))
        law.addRigidContact(contact, 1e-9, 1.0, 0)
        kept.append(contact)

    com = tsid.TaskComEquality("com", robot)
    com.setKp(KP * np.ones(3))
    com.setKd(KD * np.ones(3))
    com.setReference(at_rest(robot.com(data), 3))
    law.addMotionTask(com, 10.0, 1, 0.0)

    for name, frame, mask in (("trunk", TRUNK, [0, 0, 0, 1, 1, 1]), ("hand", HAND, [1] * 6)):
        task = tsid.TaskSE3Equality(name, robot, frame)
        task.setKp(KP * np.ones(6))
        task.setKd(KD * np.ones(6))
        task.setMask(np.array(mask, dtype=float))
        sample = tsid.TrajectorySample(12, 6)
        pose = robot.framePosition(data, robot.model().getFrameId(frame))
        sample.value(np.concatenate([pose.translation, pose.rotation.T.ravel()]))
        task.setReference(sample)
        law.addMotionTask(task, 1.0, 1, 0.0)
        kept += [task, sample]

    momentum = tsid.TaskAMEquality("momentum", robot)
    momentum.setKp(BANDWIDTH * np.ones(3))
    momentum.setKd(np.zeros(3))
    momentum.setReference(at_rest(np.zeros(3), 3))
    law.addMotionTask(momentum, 0.1, 1, 0.0)

    posture = tsid.TaskJointPosture("posture", robot)
    posture.setKp(KP * np.ones(robot.nv - 6))
    posture.setKd(KD * np.ones(robot.nv - 6))
    posture.setReference(at_rest(q[7:], robot.nv - 6))
    law.addMotionTask(posture, 0.1, 1, 0.0)

    model = robot.model()
    effort = tsid.TaskActuationBounds("effort", robot)
    effort.setBounds(-model.effortLimit[6:], model.effortLimit[6:])
    law.addActuationTask(effort, 1.0, 0, 0.0)
    limits = tsid.TaskJointPosVelAccBounds("limits", robot, HORIZON, False)
    limits.setPositionBounds(model.lowerPositionLimit[7:], model.upperPositionLimit[7:])
    limits.setVelocityBounds(model.velocityLimit[6:])
    limits.setAccelerationBounds(1e4 * np.ones(robot.nv - 6))
    law.addMotionTask(limits, 1.0, 0, 0.0)
    return law, [*kept, com, momentum, posture, effort, limits]


def main() -> None:
    """Print the row."""
    robot = tsid.RobotWrapper(sys.argv[1], [], pin.JointModelFreeFlyer(), False)
    q, v = standing(robot.model()), np.zeros(robot.nv)
    law, kept = controller(robot, q)
    solver = tsid.SolverHQuadProgFast("solver")
    solver.resize(law.nVar, law.nEq, law.nIn)

    def call() -> tuple[object, np.ndarray]:
        data = law.computeProblemData(0.0, q, v)
        found = solver.solve(data)
        return found, law.getActuatorForces(found)

    found, tau = call()
    assert found.status == 0, found.status
    times = []
    for _ in range(TIMES):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    print(f"| TSID 1.7.1, {law.nVar} variables, {law.nEq} + {law.nIn} rows | {min(times) * 1e6:.0f} |")
    assert kept and np.isfinite(tau).all()


if __name__ == "__main__":
    main()
