"""Write the offline pages of the documentation: a walk, a platform, and two UR5s and a quadruped under control.

python examples/pages.py docs/pages             # all; the first walk on a machine takes about a minute
python examples/pages.py docs/pages platform
"""

import sys
from pathlib import Path
from typing import Any

import casadi
import numpy as np

import torsor
from torsor.cli.tracking import TITLE, tracked_swing
from torsor.human import Stride, walking
from torsor.spatial import quaternion_exp, right_jacobian
from torsor.spatial.rotations import from_quaternion
from torsor.view.pages import Page, page

PERIOD = 4.0  # s
COUNT = 200  # samples per period


def rate(values: np.ndarray) -> np.ndarray:
    """Return the time derivative of samples (COUNT, n) of a smooth periodic motion, exact up to rounding (by FFT)."""
    turns = 2j * np.pi * np.fft.fftfreq(len(values), PERIOD / len(values))
    return np.fft.ifft(turns[:, None] * np.fft.fft(values, axis=0), axis=0).real


def platform_motion() -> torsor.Trajectory:
    """Return one period of a platform that circles, rises and tilts, with its leg forces."""
    robot = torsor.library.gough_stewart()
    s = 2 * np.pi * np.arange(COUNT) / COUNT
    place = np.stack([0.12 * np.cos(s), 0.12 * np.sin(s), 0.8 + 0.05 * np.sin(2 * s)], axis=-1)
    turn = np.stack([0.22 * np.sin(s), 0.22 * np.cos(s), 0.2 * np.sin(s)], axis=-1)  # a rotation vector
    quaternion = np.array([quaternion_exp(vector) for vector in turn])
    rotation = np.array([from_quaternion(value) for value in quaternion])
    spin = np.einsum("tij,tj->ti", np.array([right_jacobian(vector) for vector in turn]), rate(turn))
    twist = np.concatenate([spin, np.einsum("tji,tj->ti", rotation, rate(place))], axis=-1)
    acceleration, pose = rate(twist), np.concatenate([place, quaternion], axis=-1)
    legs = robot.inverse_kinematics(pose)
    q = np.concatenate([pose, legs], axis=-1)
    v = np.concatenate([twist, robot.leg_velocities(pose, twist)], axis=-1)
    a = np.concatenate([acceleration, robot.leg_accelerations(pose, twist, acceleration)[1]], axis=-1)
    tree = robot.as_robot()
    tau = np.zeros_like(v)
    tau[:, [tree.coordinate_names.index(name) for name in tree.active]] = robot.inverse_dynamics(
        pose, twist, acceleration
    )
    closed = np.r_[0:COUNT, 0]  # repeat the first sample, so that the motion loops without a gap
    times = PERIOD * np.arange(COUNT + 1) / COUNT
    return torsor.Trajectory(tree, times, q[closed], v[closed], a[closed], tau[closed])


def platform() -> Page:
    """Return the platform page."""
    return page(platform_motion(), title="A Gough-Stewart platform", rate=30.0)


def walk() -> Page:
    """Return the page of a predicted walk, one stride at 1.25 m/s."""
    return page(Stride(walking().solve()), title="A predicted walk: 73 kg, 1.25 m/s")


def tracking() -> Page:
    """Return the page of a UR5 that is heavier than the model of its controller, and of its reference."""
    run, reference = tracked_swing(torsor.load("ur5"))
    shown, title = {TITLE.format("UR5"): run}, "A UR5 under computed-torque control"
    return page(shown, title=title, reference=reference, rate=20.0, triangles=8000)


def quadruped() -> Page:
    """Return the page of a quadruped that moves its trunk, with the contact forces of its feet."""
    run, _ = tracked_swing(torsor.load("quadruped"))
    return page({TITLE.format("quadruped"): run}, title="A quadruped on hard ground", rate=20.0)


def elastic_motion() -> tuple[torsor.Trajectory, torsor.Trajectory]:
    """Return a fast motion of a UR5 with three elastic joints and an unknown load of 1 kg, and its reference."""
    arm = torsor.load("ur5")
    for name in arm.joint_names[:3]:
        arm = arm.with_motor(name, inertia=2e-4, ratio=101.0, stiffness=2e3)

    def path(t: Any) -> list[Any]:  # rad
        s = casadi.sin(3 * t) ** 2
        return [1.0 * s, 0.5 * s - 1.4, 1.6 - 0.7 * s, 0.4 * s - 1.2, -1.5, s]

    times = np.linspace(0.0, 2 * np.pi / 3, 421)  # two periods, 5 ms apart
    forward = torsor.control.elastic_feed_forward(arm, path)
    samples = [[np.array(value).ravel() for value in forward(time)[:4]] for time in times]
    plan = torsor.Trajectory(arm, times, *map(np.array, zip(*samples, strict=True)))
    M = np.diag(arm.mass_matrix(plan.q[0]))
    inertia = np.append(M[:3] + M[6:], M[3:6])  # of links and motors
    law = torsor.control.elastic_tracking(arm, path, kp=400 * inertia, kd=40 * inertia)
    heavier, end = arm.with_payload("wrist_3_link", mass=1.0), float(times[-1])
    steps = {"control_period": 1e-3, "record": 5e-3}
    run = torsor.simulate(heavier, plan.q[0], plan.v[0], duration=end, controller=law, **steps)
    return run, plan


def elastic() -> Page:
    """Return the page of this UR5, with charts of its links, motors and springs."""
    run, plan = elastic_motion()
    shown, title = {"UR5, 1 kg heavier than its model": run}, "A UR5 with elastic joints"
    return page(shown, title=title, reference=plan, rate=40.0, triangles=8000)


PAGES = {"walking": walk, "platform": platform, "tracking": tracking, "elastic": elastic, "quadruped": quadruped}

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name in sys.argv[2:] or PAGES:
        shown = PAGES[name]()
        print(shown, shown.save(folder / f"{name}.html"))
