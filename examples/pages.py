"""Write the offline pages of the documentation: a walk, a platform, and a UR5 and a quadruped under control.

python examples/pages.py docs/pages             # all; the first walk on a machine takes about a minute
python examples/pages.py docs/pages platform
"""

import sys
from pathlib import Path

import numpy as np

import torsor
from torsor.human import Stride, walking
from torsor.spatial import quaternion_exp, right_jacobian
from torsor.spatial.rotations import from_quaternion
from torsor.cli.tracking import TITLE, tracked_swing
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


PAGES = {"walking": walk, "platform": platform, "tracking": tracking, "quadruped": quadruped}

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name in sys.argv[2:] or PAGES:
        shown = PAGES[name]()
        print(shown, shown.save(folder / f"{name}.html"))
