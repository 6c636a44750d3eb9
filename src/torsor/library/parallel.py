"""Parallel robots: a Gough-Stewart platform, a Delta robot, and a planar robot with three arms."""

import math
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.library.shapes import BAR_COLOURS, ball, block, check_positive, cylinder, disc, plate, tube
from torsor.mechanism import Frame, Joint, Link
from torsor.robot.load import build
from torsor.robot.parallel import Leg, ParallelRobot
from torsor.spatial import about_z, make_pose


def _around(radius: float, angle: float, turn: float | None = None) -> Array:
    """Return a pose at ``angle`` on a circle in the x-y plane, with the x axis rotated about z by ``turn``."""
    R = np.asarray(about_z(angle if turn is None else turn), dtype=float)
    return make_pose(R, [radius * math.cos(angle), radius * math.sin(angle), 0.0])


def _unreachable(where: str, what: str) -> ModelError:
    return ModelError(what, where=where, allowed="sizes with which the legs reach the platform at home")


def gough_stewart(
    base_radius: float = 0.8,
    platform_radius: float = 0.4,
    spread: float = math.radians(20),
    height: float = 0.8,
    platform_mass: float = 10.0,
    cylinder_mass: float = 1.5,
    rod_mass: float = 1.0,
    legs: str = "UPS",
) -> ParallelRobot:
    """Return a Gough-Stewart platform: six telescopic legs, in pairs on two circles; lengths are in m, masses in kg.

    The legs of a pair are ``spread`` (rad) apart on both circles. The platform pairs are rotated by 60 degrees relative
    to the base pairs. At home, the platform is level at ``height`` (m). Each leg is a 0.5 m cylinder on a universal
    joint (swing about x, tilt about y, with a 0.3 kg cross) and a 0.5 m rod that slides in it. The driven coordinate is
    the leg length, and a ball joint connects the leg to the platform. With ``legs="SPS"`` there is also a ball joint at
    the base; the rotation of a leg about its own line is then free, and is set to zero. The robot does not represent a
    particular product.

    Example:
        >>> robot = gough_stewart()
        >>> robot.dof, robot.driven_names[0], robot.has_closed_form
        (6, 'leg1/stretch', True)
    """
    if legs not in ("UPS", "SPS"):
        raise ModelError(argument="legs", value=legs, where="gough_stewart", allowed="'UPS' or 'SPS'")
    check_positive("gough_stewart", base_radius=base_radius, platform_radius=platform_radius, height=height)
    tubes = tube((0, 0, 0.03), (0, 0, 0.58), 0.032, "dark"), disc((0, 0, 0.57), 2, 0.037, 0.03, "orange")
    barrel = Link("cylinder", cylinder_mass, np.array([0, 0, 0.25]), cylinder(cylinder_mass, 0.03, 0.5, 2), tubes)
    piston = tube((0, 0, -0.62), (0, 0, 0), 0.017, "steel"), ball((0, 0, 0), 0.03, "silver")
    rod = Link("rod", rod_mass, np.array([0.0, 0.0, -0.25]), cylinder(rod_mass, 0.015, 0.5, 2), piston)
    beam = block((-base_radius / 2, 0, -0.045), (base_radius + 0.1, 0.08, 0.03), "grey")
    socket = block((0, 0, -0.03), (0.1, 0.12, 0.03), "grey"), ball((0, 0, 0), 0.04, "silver")
    foot = Link("foot", visuals=(beam, *socket))
    limit = math.radians(75)
    stretch = Joint("stretch", "prismatic", "cylinder", "rod", lower=0.5, upper=1.2, effort_limit=2000.0)
    if legs == "UPS":
        pins = disc((0, 0, 0), 0, 0.015, 0.1, "dark"), disc((0, 0, 0), 1, 0.015, 0.1, "dark")
        cross = Link("cross", 0.3, np.zeros(3), np.diag([2e-4, 2e-4, 3e-4]), pins)
        joints = [
            Joint("swing", "revolute", "foot", "cross", axis=np.array([1.0, 0.0, 0.0]), lower=-limit, upper=limit),
            Joint("tilt", "revolute", "cross", "cylinder", axis=np.array([0.0, 1.0, 0.0]), lower=-limit, upper=limit),
            stretch,
        ]
        leg, start = build("leg", [foot, cross, barrel, rod], joints), np.array([0.0, 0.0, 0.9])
    else:
        joints = [Joint("ball", "spherical", "foot", "cylinder"), stretch]
        leg, start = build("leg", [foot, barrel, rod], joints), np.array([0.0, 0.0, 0.0, 1.0, 0.9])
    made = []
    for k in range(6):
        pair, side = k // 2, 1.0 if k % 2 else -1.0
        stand = _around(base_radius, 2 * math.pi / 3 * pair + side * spread / 2)
        at = _around(platform_radius, 2 * math.pi / 3 * pair + side * (math.pi / 3 - spread / 2))[:3, 3]
        made.append(Leg(f"leg{k + 1}", leg, "rod", at, "spherical", ("stretch",), stand, start))
    top = (
        disc((0, 0, 0.03), 2, platform_radius, 0.04, "blue"),
        disc((0, 0, 0.055), 2, 0.8 * platform_radius, 0.01, "silver"),
    )
    inertia = cylinder(platform_mass, platform_radius, 0.04, 2)
    platform = Link("platform", platform_mass, np.array([0.0, 0.0, 0.02]), inertia, top)
    name = "gough_stewart" if legs == "UPS" else "gough_stewart_sps"
    return ParallelRobot(platform, made, make_pose(p=[0.0, 0.0, height]), name=name)


def delta(
    base_radius: float = 0.2,
    platform_radius: float = 0.05,
    arm: float = 0.35,
    rods: float = 0.8,
    width: float = 0.1,
    payload: float = 0.5,
) -> ParallelRobot:
    """Return a Delta robot: three driven arms, each with two parallel rods to a platform that does not rotate.

    The platform hangs below the base, and z points up; lengths and radii are in m. Each arm rotates about a tangent to
    the base circle (``shoulder``: 0 is horizontal and outwards, positive is down). Its two rods, ``width`` apart, bend
    at the elbow and swing sideways together. They are thin, so their rotation about their own axes has no effect.
    ``payload`` (kg) is attached to the platform (0.2 kg). At home, the platform is one rod length below the base. The
    robot has the size of common picking robots, but does not represent a particular product.

    Example:
        >>> robot = delta()
        >>> robot.dof, robot.driven_names
        (3, ('leg1/shoulder', 'leg2/shoulder', 'leg3/shoulder'))
    """
    check_positive("delta", base_radius=base_radius, platform_radius=platform_radius, arm=arm, rods=rods, width=width)
    # At home, the platform is one rod length below the base: rods sin a - b cos a = (b^2 + arm^2)/(2 arm).
    b = base_radius - platform_radius
    sine = (b**2 + arm**2) / (2 * arm * math.hypot(rods, b))
    if sine >= 1:
        raise _unreachable("delta", f"arms of {arm} m and rods of {rods} m do not meet")
    shoulder = math.asin(sine) + math.atan2(b, rods)
    lean = math.atan2(b + arm * math.cos(shoulder), rods - arm * math.sin(shoulder))
    home, start = np.array([0.0, 0.0, -rods]), np.array([shoulder, lean - shoulder, 0.0])
    across, forward = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
    thin = np.diag([1.0, 1.0, 0.0]) * 0.12 * rods**2 / 12
    motor = (
        disc((0, 0, 0), 1, 0.05, 0.13, "dark"),
        block((-base_radius / 2, 0, 0.06), (base_radius + 0.06, 0.12, 0.05), "white"),
        disc((-base_radius, 0, 0.08), 2, 0.8 * base_radius, 0.06, "white"),
    )
    upper = tube((0.02, 0, 0), (arm, 0, 0), 0.024, "orange"), disc((0, 0, 0), 1, 0.04, 0.06, "orange")
    rod = (
        tube((0, 0, -rods), (0, 0, 0), 0.009, "dark"),
        ball((0, 0, 0), 0.016, "steel"),
        ball((0, 0, -rods), 0.016, "steel"),
    )
    links = [
        Link("motor", visuals=motor),
        Link("arm", 0.9, np.array([0.4 * arm, 0.0, 0.0]), cylinder(0.9, 0.025, arm, 0), upper),
        Link("elbow_bar", visuals=(disc((0, 0, 0), 1, 0.011, width, "steel"),)),
        *(Link(f"rod{k}", 0.12, np.array([0.0, 0.0, -rods / 2]), thin, rod) for k in (1, 2)),
    ]
    other = make_pose(p=[0.0, -width / 2, 0.0])
    limits: dict[str, Any] = {"lower": math.radians(-45), "upper": math.radians(95), "effort_limit": 120.0}
    joints = [
        Joint("shoulder", "revolute", "motor", "arm", axis=across, rotor_inertia=0.02, **limits),
        Joint("elbow", "revolute", "arm", "elbow_bar", make_pose(p=[arm, 0.0, 0.0]), across),
        Joint("swing", "revolute", "elbow_bar", "rod1", make_pose(p=[0.0, width / 2, 0.0]), forward),
        Joint("swing2", "revolute", "elbow_bar", "rod2", other, forward, coordinate="swing"),
    ]
    tip = Frame("tip", "rod1", make_pose(p=[0.0, 0.0, -rods]))
    leg, legs = build("leg", links, joints, [tip]), []
    for k in range(3):
        angle = 2 * math.pi / 3 * k
        at = _around(platform_radius, angle) @ make_pose(p=[0.0, width / 2, 0.0])
        stand = _around(base_radius, angle)
        legs.append(Leg(f"leg{k + 1}", leg, "tip", at[:3, 3], "spherical", ("shoulder",), stand, start))
    tool = [disc((0, 0, 0), 2, platform_radius + 0.03, 0.02, "white"), disc((0, 0, -0.03), 2, 0.02, 0.05, "dark")]
    ears = [_around(platform_radius, 2 * math.pi / 3 * k)[:3] for k in range(3)]
    pins = [tube(ear @ [0, -width / 2, 0, 1], ear @ [0, width / 2, 0, 1], 0.01, "steel") for ear in ears]
    inertia = cylinder(0.2 + payload, platform_radius, 0.05, 2)
    platform = Link("platform", 0.2 + payload, np.zeros(3), inertia, (*tool, *pins))
    return ParallelRobot(platform, legs, home, "translation", name="delta")


def three_rrr(
    base_radius: float = 0.5, platform_radius: float = 0.1, upper: float = 0.3, lower: float = 0.3, mass: float = 1.5
) -> ParallelRobot:
    """Return a planar robot with three arms of two bars (3-RRR), whose platform moves in the x-y plane.

    The arms are driven at their bases, ``base_radius`` (m) from the centre. The bars, of length ``upper`` and ``lower``
    (m), have a mass of 2 kg/m. The platform is a disc of ``mass`` (kg), hinged to the arms at ``platform_radius`` (m).
    Gravity is along -z, normal to the plane.

    Example:
        >>> robot = three_rrr()
        >>> robot.dof, robot.carriage.position_names
        (3, ('platform/x', 'platform/y', 'platform/angle'))
    """
    check_positive("three_rrr", base_radius=base_radius, platform_radius=platform_radius, upper=upper, lower=lower)
    far = base_radius - platform_radius  # distance from a leg's base to its joint on the platform, at home
    if not abs(upper - lower) < abs(far) < upper + lower:
        raise _unreachable("three_rrr", f"bars of {upper} m and {lower} m do not reach over {abs(far):.6g} m")
    elbow = -math.acos((far**2 - upper**2 - lower**2) / (2 * upper * lower))
    shoulder = math.atan2(0.0, far) - math.atan2(lower * math.sin(elbow), upper + lower * math.cos(elbow))

    def bar(name: str, length: float, level: int) -> Link:
        flat = plate((0, 0, 0), (length, 0, 0), 0.05, BAR_COLOURS[level], level=level)
        inertia = cylinder(2 * length, 0.015, length, 0)
        return Link(name, 2 * length, np.array([length / 2, 0.0, 0.0]), inertia, tuple(flat))

    joints = [
        Joint("shoulder", "revolute", "stand", "upper", rotor_inertia=0.01, effort_limit=30.0),
        Joint("elbow", "revolute", "upper", "lower", make_pose(p=[upper, 0.0, 0.0])),
    ]
    tip = Frame("tip", "lower", make_pose(p=[lower, 0.0, 0.0]))
    stand = Link("stand", visuals=(disc((0, 0, -0.03), 2, 0.05, 0.04, "dark"),))
    leg = build("leg", [stand, bar("upper", upper, 0), bar("lower", lower, 1)], joints, [tip])
    legs = []
    for k in range(3):
        angle = 2 * math.pi / 3 * k
        place = _around(base_radius, angle, angle + math.pi)  # x points to the centre
        at = _around(platform_radius, angle)[:3, 3]
        legs.append(Leg(f"leg{k + 1}", leg, "tip", at, "revolute", ("shoulder",), place, np.array([shoulder, elbow])))
    top = disc((0, 0, 0.035), 2, platform_radius + 0.025, 0.018, "silver"), disc((0, 0, 0.05), 2, 0.02, 0.03, "dark")
    platform = Link("platform", mass, np.zeros(3), cylinder(mass, platform_radius, 0.02, 2), top)
    return ParallelRobot(platform, legs, np.zeros(3), "planar", name="three_rrr")
