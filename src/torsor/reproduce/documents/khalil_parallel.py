"""Khalil 2010, section 5: the inverse dynamics of a Gough-Stewart platform, leg by leg."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.mechanism import Link
from torsor.reproduce.documents.drawing import curves, tidy
from torsor.reproduce.equations.khalil import hat
from torsor.reproduce.equations.khalil_recursive import spatial_inertia, velocity_wrench
from torsor.reproduce.item import Item, Kind, Outcome, same
from torsor.reproduce.samples import about_origin
from torsor.robot.parallel import ParallelRobot
from torsor.spatial import from_quaternion

TWIST = np.array([0.4, 0.2, -0.3, 0.2, -0.3, 0.15])  # (angular, linear) of the platform, in its axes
ACCELERATION = np.array([-0.6, 0.9, 0.7, 1.0, 0.5, -0.8])
SHIFT = np.array([0.05, -0.04, 0.06, 0.1, -0.05, 0.08])  # pose, from home


class Parallel(NamedTuple):
    """What eqs. 59 to 66 give: forces of the drives, the wrench on the platform, and the Jacobian J_p."""

    Gamma: Array
    F: Array
    J_p: Array


@cache
def platform() -> ParallelRobot:
    """Return the robot of the library."""
    return library.gough_stewart().to(device="casadi")


def _rotation(pose: Array) -> Array:
    return np.asarray(from_quaternion(pose[3:]), dtype=float)


def equations(robot: ParallelRobot, pose: Array, twist: Array, acceleration: Array) -> Parallel:
    """Evaluate eqs. 59 to 66 in world axes, leg by leg; twists are (V, w), wrenches (f, m).

    Example:
        >>> robot = platform()
        >>> equations(robot, robot.home, np.zeros(6), np.zeros(6)).J_p.shape
        (6, 6)
    """
    R, gravity = _rotation(pose), np.asarray(robot.gravity)
    w = R @ twist[:3]
    wd, Vd = R @ acceleration[:3], R @ (acceleration[3:] + np.cross(twist[:3], twist[3:]))  # of the origin
    body = robot.platform
    assert isinstance(body, Link)
    mass, com = float(body.mass), np.asarray(body.com)
    MS, J = mass * R @ com, R @ about_origin(mass, com, np.asarray(body.inertia)) @ R.T
    moved = np.concatenate([Vd - gravity, wd])
    F_p = spatial_inertia(mass, MS, J) @ moved - velocity_wrench(w, MS, J)  # (9)
    q = robot.inverse_kinematics(pose)
    qd, qdd = robot.leg_accelerations(pose, twist, acceleration)
    total, drives = F_p, []
    for k, leg in enumerate(robot.legs):
        own = slice(3 * k, 3 * k + 3)
        base = leg.base[:3, :3]
        arm = leg.robot.with_gravity(base.T @ gravity).to(device="casadi")
        Gamma_i = arm.inverse_dynamics(q[own], qd[own], qdd[own])
        tip = base @ arm.poses(q[own])[-1, :3, :3]
        J_i = tip @ arm.jacobian(q[own], leg.tip)[3:]  # (63)
        J_vi = np.hstack([np.eye(3), -hat(R @ np.asarray(leg.at)[:3, 3])])  # (65)
        total = total + J_vi.T @ np.linalg.solve(J_i.T, Gamma_i)  # the bracket of (66)
        drives.append(np.linalg.solve(J_i, J_vi)[2])  # the leg stretches by its third joint
    J_p = np.linalg.inv(np.array(drives))  # (60)
    return Parallel(J_p.T @ total, total, J_p)  # (66)


def _gough_stewart() -> Outcome:
    robot = platform()
    pose = robot.carriage.integrate(robot.home, SHIFT)
    found = equations(robot, pose, TWIST, ACCELERATION)
    ours = robot.inverse_dynamics(pose, TWIST, ACCELERATION)
    R = _rotation(pose)
    jacobian = robot.jacobian(pose)  # (angular, linear) in the axes of the platform
    in_world = np.vstack([R @ jacobian[3:], R @ jacobian[:3]])
    rows = [
        same("Γ, eq. 66", found.Gamma, ours, 1e-10, "N"),
        same("J_p, eq. 60", found.J_p, in_world, 1e-10),
    ]

    def draw(figure: Any) -> None:
        picture, forces = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        t = np.linspace(0.0, 2 * np.pi / 6.0, 61)
        poses, twists, accelerations = _circle(robot, t)
        _draw(picture, robot, poses[10])
        curves(forces, t, robot.inverse_dynamics(poses, twists, accelerations), tuple(f"leg {k + 1}" for k in range(6)))
        tidy(forces, "forces of the legs on a circle of 0.1 m", "s", "N", beside=True)

    return Outcome(rows, draw, (10.0, 4.5))


def _structure() -> Outcome:
    robot = platform()

    def draw(figure: Any) -> None:
        _draw(figure.add_subplot(projection="3d"), robot, robot.home)

    return Outcome([], draw, (5.5, 4.5))


def _circle(robot: ParallelRobot, t: Array, radius: float = 0.1, rate: float = 6.0) -> tuple[Array, Array, Array]:
    pose = np.tile(robot.home, (len(t), 1))
    wave = np.stack([np.cos(rate * t), np.sin(rate * t)], axis=-1)
    pose[:, :2] += radius * wave
    twist, acceleration = np.zeros((2, len(t), 6))
    twist[:, 3:5] = radius * rate * np.stack([-wave[:, 1], wave[:, 0]], axis=-1)
    acceleration[:, 3:5] = -radius * rate**2 * wave
    return pose, twist, acceleration


def _draw(axes: Any, robot: ParallelRobot, pose: Array) -> None:
    """Draw base, legs and platform, as in the figure separated at the ball joints."""
    R, place = _rotation(pose), pose[:3]
    feet = np.array([leg.base[:3, 3] for leg in robot.legs])
    tops = np.array([place + R @ np.asarray(leg.at)[:3, 3] for leg in robot.legs])
    ring = [0, 1, 2, 3, 4, 5, 0]
    axes.plot(*feet[ring].T, color="0.4")
    axes.plot(*tops[ring].T, color="C0", linewidth=2.5)
    for k, (foot, top) in enumerate(zip(feet, tops, strict=True)):
        axes.plot(*np.array([foot, top]).T, color=f"C{k}", linewidth=2)
        axes.scatter(*top, color="k", s=14)
    axes.set(
        title="Figure 4: legs and platform", xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", box_aspect=(1, 1, 0.7)
    )


PARALLEL_ITEMS = [
    Item(
        "khalil/gough-stewart",
        "a Gough-Stewart platform",
        Kind.ALGORITHM,
        "section 5, eqs. 59 to 66",
        _gough_stewart,
        seconds=2,
    ),
    Item("khalil/fig-4", "parallel structure", Kind.FIGURE, "Figure 4", _structure, seconds=2),
]
