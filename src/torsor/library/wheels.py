"""Wheeled robots: a differential drive, a mobile manipulator, a single-track car, a rolling disc, and a caster."""

from dataclasses import replace

import numpy as np

from torsor.base.arrays import Array
from torsor.library.arms import ur5
from torsor.library.shapes import block, check_positive, cylinder, disc, tube
from torsor.mechanism import Frame, Joint, Link
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.spatial import make_pose

_AXLE = np.array([0.0, 1.0, 0.0])  # points to the left, so that a positive rate rolls forwards


def _wheel(name: str, mass: float, radius: float, width: float) -> Link:
    tyre = disc((0, 0, 0), 1, radius, width, "dark"), disc((0, 0, 0), 1, 0.6 * radius, 1.06 * width, "silver")
    spoke = block((0, 0, 0), (0.16 * radius, 1.1 * width, 1.1 * radius), "grey")  # makes the rotation visible
    return Link(name, mass, np.zeros(3), cylinder(mass, radius, width, 1), (*tyre, spoke))


def _at(x: float, y: float, z: float) -> Array:
    return make_pose(p=[x, y, z])


def caster(radius: float = 0.05, trail: float = 0.05, mass: float = 0.5) -> Robot:
    """Return a caster to attach to a robot: a wheel in a swivelling fork, ``trail`` (m) behind the swivel axis.

    The base is the ground point below the swivel, whose axis is z. ``radius`` (m) is the wheel radius, and ``mass``
    (kg) the total mass of fork and wheel. The joints are "swivel" and "roll".

    Example:
        >>> at = torsor.spatial.make_pose(p=[-0.3, 0, 0])
        >>> cart = torsor.library.differential_drive().with_frame("rear", "chassis", at)
        >>> cart.attach(caster(), at="rear", prefix="rear_caster/").closed.mobility().dof
        2
    """
    check_positive("caster", radius=radius, trail=trail, mass=mass)
    light = 0.4 * mass
    sides = (-0.25 * radius, 0.25 * radius)
    prongs = (tube((0, y, 1.15 * radius), (-trail, y, 0), 0.1 * radius, "grey") for y in sides)
    fork = disc((0, 0, 1.25 * radius), 2, 0.45 * radius, 0.3 * radius, "grey"), *prongs
    links = [
        Link("mount"),
        Link("fork", light, np.array([-trail / 2, 0.0, 0.0]), cylinder(light, radius / 4, trail, 0), fork),
        _wheel("wheel", mass - light, radius, radius / 4),
    ]
    joints = [
        Joint("swivel", "continuous", "mount", "fork", _at(0.0, 0.0, radius)),
        Joint("roll", "continuous", "fork", "wheel", _at(-trail, 0.0, 0.0), _AXLE),
    ]
    return build("caster", links, joints).with_wheel("contact", "wheel", radius, axis=_AXLE)


def differential_drive(radius: float = 0.1, track: float = 0.5, trail: float = 0.05) -> Robot:
    """Return a mobile robot with two driven wheels on one axle and a caster in front; x points forward.

    ``radius`` (m) is the wheel radius, ``track`` (m) the distance between the wheels, and ``trail`` (m) the trail of
    the ``caster``, whose wheel has half the radius. The 10 kg chassis moves in the plane (joint "planar"). Its origin
    is on the ground between the wheels, and its centre of mass is 0.1 m ahead of it. The active coordinates are "left"
    and "right".

    Example:
        >>> robot = differential_drive()
        >>> robot.nv, robot.closed.mobility().dof, robot.closed.mobility().position_dof
        (7, 2, 7)
        >>> v = robot.closed.velocities(robot.neutral(), [1.0, 1.0])  # 0.1 m/s; the wheel of the caster is smaller
        >>> bool(np.allclose(v, [0.1, 0.0, 0.0, 1.0, 1.0, 0.0, 2.0]))
        True
    """
    check_positive("differential_drive", radius=radius, track=track, trail=trail)
    body = [
        block((0.12, 0, 1.2 * radius), (0.5, 0.8 * track, 0.9 * radius), "blue"),
        block((0.12, 0, 1.7 * radius), (0.44, 0.7 * track, 0.14 * radius), "dark"),
        disc((0.2, 0, 2.0 * radius), 2, 0.05, 0.5 * radius, "orange"),
        disc((0, 0, radius), 1, 0.15 * radius, track, "grey"),
    ]
    links = [
        Link("ground"),
        Link("chassis", 10.0, np.array([0.1, 0.0, radius]), np.diag([0.2, 0.4, 0.5]), tuple(body)),
        _wheel("left_wheel", 1.0, radius, 0.04),
        _wheel("right_wheel", 1.0, radius, 0.04),
    ]
    joints = [
        Joint("planar", "planar", "ground", "chassis"),
        Joint("left", "continuous", "chassis", "left_wheel", _at(0.0, track / 2, radius), _AXLE),
        Joint("right", "continuous", "chassis", "right_wheel", _at(0.0, -track / 2, radius), _AXLE),
    ]
    frames = [Frame("front", "chassis", _at(0.3, 0.0, 0.0))]
    robot = build("differential_drive", links, joints, frames).with_active(["left", "right"])
    for side in ("left", "right"):
        robot = robot.with_wheel(side, f"{side}_wheel", radius, axis=_AXLE)
    return robot.attach(caster(radius / 2, trail), at="front", prefix="caster/")


def mobile_manipulator(radius: float = 0.1, track: float = 0.5, payload: float = 0.0) -> Robot:
    """Return a mobile manipulator: a UR5 arm on the deck of a differential drive that carries a 40 kg battery.

    For ``radius`` and ``track`` (m) see ``differential_drive``. ``payload`` (kg) is attached to the arm's flange. Joint
    names of the arm have the prefix "arm/". The active coordinates are "left", "right" and the six arm joints.

    Example:
        >>> robot = mobile_manipulator()
        >>> robot.closed.mobility().dof, robot.active[:3]
        (8, ('left', 'right', 'arm/shoulder_pan_joint'))
    """
    battery = cylinder(40.0, 0.15, 0.1, 2)
    drive = differential_drive(radius, track).with_payload("chassis", 40.0, np.array([0.1, 0.0, radius]), battery)
    arm = ur5().with_payload("ee_link", payload)
    robot = drive.with_frame("deck", "chassis", _at(0.1, 0.0, 1.8 * radius)).attach(arm, at="deck", prefix="arm/")
    joints = [joint.name for joint in robot.joints if joint.name.startswith("arm/")]
    return replace(robot, name="mobile_manipulator").with_active(["left", "right", *joints])


def bicycle_car(radius: float = 0.3, wheelbase: float = 2.5) -> Robot:
    """Return a single-track car model with a driven rear wheel and a steered front wheel; x points forward.

    ``radius`` (m) is the wheel radius. ``wheelbase`` (m) is the distance between the axles. The 1000 kg chassis moves
    in the plane (joint "planar"). Its origin is on the ground below the rear axle, and its centre of mass is midway
    between the axles. The active coordinates are "rear" (the drive) and "steer".

    Example:
        >>> car = bicycle_car()
        >>> q = car.closed.assemble([0.0, np.arctan(0.25)])
        >>> v = car.closed.velocities(q, [1 / 0.3, 0.0])  # at 1 m/s on a circle of 10 m
        >>> bool(np.allclose(v[:3], [1.0, 0.0, 0.1]))
        True
    """
    check_positive("bicycle_car", radius=radius, wheelbase=wheelbase)
    middle = np.array([wheelbase / 2, 0.0, 0.5])
    size = np.array([wheelbase, wheelbase, radius])  # the body scales with the wheelbase, its height with the wheels
    body = [
        block(size * (0.5, 0, 1.75), (1.0 * wheelbase, 0.42 * wheelbase, 0.9 * radius), "blue"),
        block(size * (0.5, 0, 2.4), (1.56 * wheelbase, 0.42 * wheelbase, 0.7 * radius), "blue"),
        block(size * (0.45, 0, 3.3), (0.8 * wheelbase, 0.38 * wheelbase, 1.2 * radius), "dark"),
        block(size * (0.45, 0, 3.95), (0.7 * wheelbase, 0.38 * wheelbase, 0.14 * radius), "blue"),
    ]
    links = [
        Link("ground"),
        Link("chassis", 1000.0, middle, np.diag([300.0, 1200.0, 1400.0]), tuple(body)),
        _wheel("rear_wheel", 30.0, radius, 0.2),
        Link("kingpin", 10.0, np.zeros(3), np.diag([0.1, 0.1, 0.1])),
        _wheel("front_wheel", 30.0, radius, 0.2),
    ]
    joints = [
        Joint("planar", "planar", "ground", "chassis"),
        Joint("rear", "continuous", "chassis", "rear_wheel", _at(0.0, 0.0, radius), _AXLE),
        Joint("steer", "revolute", "chassis", "kingpin", _at(wheelbase, 0.0, radius), lower=-1.0, upper=1.0),
        Joint("front", "continuous", "kingpin", "front_wheel", axis=_AXLE),
    ]
    robot = build("bicycle_car", links, joints).with_active(["rear", "steer"])
    for end in ("rear", "front"):
        robot = robot.with_wheel(end, f"{end}_wheel", radius, axis=_AXLE)
    return robot


def rolling_disc(radius: float = 0.3, mass: float = 1.0, thickness: float = 0.0) -> Robot:
    """Return a homogeneous disc, such as a coin, that rolls on its edge without slipping; its axle is its y axis.

    ``radius`` and ``thickness`` are in m, and ``mass`` is in kg; the thickness affects only the inertia. The base is
    floating, and the contact leaves three of its six velocities free. The disc is upright at
    ``q = disc.closed.positions(disc.neutral())``.

    Example:
        >>> disc = rolling_disc()
        >>> q = disc.closed.positions(disc.neutral())
        >>> q[:3].round(12).tolist(), disc.closed.mobility(q).dof, disc.closed.mobility(q).position_dof
        ([0.0, 0.0, 0.3], 3, 5)
    """
    check_positive("rolling_disc", radius=radius, mass=mass)
    width = max(thickness, 0.06 * radius)
    faces = (
        disc((0, 0, 0), 1, radius, width, "silver"),
        block((0, 0, 0), (1.3 * radius, 1.05 * width, 0.3 * radius), "orange"),
    )
    body = Link("disc", mass, np.zeros(3), cylinder(mass, radius, thickness, 1), faces)
    return build("rolling_disc", [body], [], base="floating").with_wheel("rim", "disc", radius, axis=_AXLE)
