"""The swing of a robot as a motion, and the simulated motion under a controller that tracks it."""

from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.control import computed_torque, drives, elastic_feed_forward, elastic_tracking
from torsor.geometry import placed_shapes
from torsor.robot.inverse_kinematics import Pose, Position, Target
from torsor.robot.inverse_kinematics.solve import inverse_kinematics
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Contact, Trajectory, simulate
from torsor.simulation.contact import points_at
from torsor.spatial import from_rpy
from torsor.view.live.postures import PERIOD, Posture
from torsor.view.scene.scene import weight

SPACING = 0.02  # s: of the samples of a reference
RECORD = 5e-3  # s: of those of a simulation; on hard ground, all steps are recorded
SAMPLES = 301  # of one period of a swing: 0.04 s apart at full speed
BANDWIDTH = 15.0  # rad/s
CONTROL_PERIOD = 1e-3  # s: of the controller of elastic joints
HEAVIER = 1.1  # inertial parameters of the simulated robot, relative to those of the controller's model
TITLE = "{}, 10 % heavier than its model"


def swing(robot: Robot | ParallelRobot) -> Trajectory:
    """Return one period of the swing of a robot, with the forces of its drives.

    Example:
        >>> motion = swing(torsor.library.two_link())
        >>> float(motion.times[-1]), bool(np.allclose(motion.q[0], motion.q[-1]))
        (12.0, True)
    """
    posture = Posture(robot)
    if not posture.slides:
        raise ModelError("no coordinate can swing", where=robot.name, allowed="a robot with sliders")
    times, tree = np.linspace(0.0, posture.period, SAMPLES), posture.robot
    if _moves_elastic_joints(posture):
        return _elastic_swing(posture, times, posture.period)
    q, v, a = posture.swing(posture.period + times)  # after the start from rest
    if not tree.loops:
        return Trajectory(tree, times, q, v, a, tree.inverse_dynamics(q, v, a))
    active, tau = [tree.coordinate_names.index(name) for name in tree.active], np.zeros_like(v)
    tau[:, active] = tree.closed.inverse_dynamics(q, v[:, active], a[:, active])
    return Trajectory(tree, times, q, v, a, tau)


def tracked_swing(robot: Robot) -> tuple[Trajectory, Trajectory]:
    """Return a simulated swing under a controller, and its reference.

    The simulated robot is 10 % heavier than the controller's model, which causes visible errors. Elastic joints have an
    ``elastic_tracking`` controller. A robot with a floating base and collision shapes stands on hard ground and moves
    its base; its joints have PD drives. All others have computed-torque control.

    Example:
        >>> run, reference = tracked_swing(torsor.library.two_link())
        >>> bool(0 < np.abs(run.q - reference.at(run.times).q).max() < 0.2)
        True
    """
    posture, times = Posture(robot), np.arange(0.0, PERIOD + SPACING / 2, SPACING)
    real = robot.inertial.replaced(HEAVIER * robot.inertial.values)
    if _stands(robot):
        return _standing(robot, real, posture)
    if _moves_elastic_joints(posture):
        return _tracked_by_motors(robot, real, posture, times)
    q, v, a = posture.swing(times)
    law = computed_torque(robot, (times, q, v, a), bandwidth=BANDWIDTH)
    plan = Trajectory(robot, times, q, v, a, posture.robot.inverse_dynamics(q, v, a))
    return simulate(real, q[0], v[0], duration=PERIOD, controller=law, record=RECORD), plan


# Elastic joints: the motors lead the joints by the deflections of the springs.


def _moves_elastic_joints(posture: Posture) -> bool:
    return (
        bool(posture.robot.elastic) and not posture.robot.loops and all(slide.turn is None for slide in posture.slides)
    )


def _elastic_swing(posture: Posture, times: Array, start: float = 0.0) -> Trajectory:
    """Return the swing at times (T,), in s after ``start``, with the motions and torques of the motors."""
    forward = elastic_feed_forward(posture.robot, posture.sliders_at)
    samples = [[np.array(value).ravel() for value in forward(start + time)[:4]] for time in times]
    q, v, a, tau = (np.stack(values) for values in zip(*samples, strict=True))
    return Trajectory(posture.robot, times, q, v, a, tau)


def _tracked_by_motors(robot: Robot, real: Robot, posture: Posture, times: Array) -> tuple[Trajectory, Trajectory]:
    plan, M = _elastic_swing(posture, times), np.diag(robot.mass_matrix(posture.home)).copy()
    motors = robot.motor_coordinates
    for joint, slot in zip(robot.joints, robot.coordinates, strict=True):
        if joint.name in motors:
            M[slot.v] += M[motors[joint.name].v]
    inertia = M[: robot.nv - len(motors)]
    law = elastic_tracking(robot, posture.sliders_at, kp=BANDWIDTH**2 * inertia, kd=2 * BANDWIDTH * inertia)
    steps: dict[str, Any] = {"method": "linearly_implicit", "control_period": CONTROL_PERIOD, "record": RECORD}
    return simulate(real, plan.q[0], plan.v[0], duration=PERIOD, controller=law, **steps), plan


# Robots that stand on their feet: the base moves, and the feet stay in place.

STEP = 2e-3  # s
STIFFNESS, DAMPING = 5.0, 0.03  # of the drives: in moments of the weight at the size of the robot, and s
DEPTH = 1e-3  # m: shapes at most this far above the ground are feet
ADVANCE, DESCENT, TURN = 0.1, 0.2, 0.2  # amplitudes of the base: in sizes of the robot, and rad
SQUATS = 6  # in one period; the base moves forward and back four times
SHARES = (1.0, 0.5, 0.25)  # of these amplitudes, the first that the legs can reach
RISE_TIME = 1.0  # s


def _stands(robot: Robot) -> bool:
    free = bool(robot.joints) and robot.joints[0].type == "free"
    return free and not robot.loops and not robot.elastic and any(link.shapes for link in robot.links)


def _standing(robot: Robot, real: Robot, posture: Posture) -> tuple[Trajectory, Trajectory]:
    """Return the simulation of a robot that moves its base while it stands on the ground, and the reference."""
    contact, home, size = Contact(kind="hard"), posture.home.copy(), posture.scene.size
    start = points_at(robot, contact, home[None])
    lowest = int(np.argmin(start.distance[0]))
    home[:3] -= start.distance[0, lowest] * start.normal[0, lowest]
    gaps = start.distance[0] - start.distance.min()
    low = [name for (_, name), gap in zip(start.names, gaps, strict=True) if gap < DEPTH]
    times = np.arange(0.0, PERIOD + SPACING / 2, SPACING)
    begin, phase = 1 - np.exp(-((times / RISE_TIME) ** 2)), 2 * np.pi * SQUATS * times / PERIOD
    first, up, feet = robot.poses(home)[0], start.normal[0, lowest], list[Target]()
    for placed in placed_shapes(robot):
        if placed.name in low:
            link, body, point = robot.links[placed.link].name, robot.poses(home)[placed.link], placed.shape.pose[:3, 3]
            at = body[:3, :3] @ point + body[:3, 3]
            feet.append(Position(link, at, point) if placed.shape.shape == "sphere" else Pose(link, body))
    q = np.tile(home, (len(times), 1))
    for share in SHARES:
        base, part = np.tile(first, (len(times), 1, 1)), share * begin
        base[:, :3, 3] += ADVANCE * size * (part * np.sin(2 * phase / 3))[:, None] * first[:3, 0]
        base[:, :3, 3] -= DESCENT * size * (part * (1 - np.cos(phase)) / 2)[:, None] * up
        turns = TURN * part[:, None] * np.stack([np.sin(2 * phase / 3), np.sin(phase), 0 * phase], axis=-1)
        base[:, :3, :3] = np.stack([from_rpy(turn) for turn in turns]) @ first[:3, :3]
        found = inverse_kinematics(robot, [Pose(robot.links[0].name, base), *feet], q0=home)
        if found.solved.all():
            q = found.q
            break
    v = np.gradient(robot.difference(np.broadcast_to(q[0], q.shape), q), times, axis=0)
    plan = Trajectory(robot, times, q, v, np.gradient(v, times, axis=0), np.full_like(v, np.nan))
    kp = STIFFNESS * weight(robot) * size
    law = drives(robot, (times, q), kp=kp, kd=DAMPING * kp)
    return simulate(real, q[0], duration=PERIOD, controller=law, contact=contact, step=STEP), plan
