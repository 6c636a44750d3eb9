"""Descriptions in exported source code: coordinate names and order, units, axes, limits and sampling periods."""

from collections.abc import Iterable, Mapping, Sequence

from torsor._version import __version__
from torsor.compiler.source import About
from torsor.mechanism import Mechanism
from torsor.mechanism.mechanism import FORCES, units
from torsor.robot.accessors import summary_of
from torsor.robot.parallel import ParallelRobot

AXES = (
    "Spatial vectors have the angular part first. Twists, wrenches, accelerations and Jacobians of a link or frame"
    " refer to its origin and its axes. Poses are 4 x 4 matrices that map link coordinates to base coordinates. Gravity"
    " is in base axes. A floating base has positions x y z and a quaternion x y z w; its velocities are in its axes."
)
LOOPS = (
    "The robot has closed loops. Positions q must satisfy the loop closure, and velocities its derivative. This code"
    " does not check this; results at other positions are meaningless. Compute q with robot.closed.assemble in Python."
)
AFTER_GEARS = "Positions, velocities and forces refer to the output side of the gears"
UNITS = {"length": "m", "angle": "rad", "mass": "kg", "time": "s", "force": "N", "moment": "N m"}

_ARGUMENTS = {
    "q": "positions, rad and m",
    "v": "velocities, rad/s and m/s",
    "a": "accelerations, rad/s^2 and m/s^2",
    "j": "jerks, rad/s^3 and m/s^3",
    "tau": "forces, N m and N",
    "q_end": "final positions, rad and m",
    "dv": "velocities applied for a unit of time, rad/s and m/s",
    "v_active": "active velocities, rad/s and m/s",
    "a_active": "active accelerations, rad/s^2 and m/s^2",
    "tau_active": "active forces, N m and N",
    "p": "robot parameters, in the order above",
    "share": "positive weights (usually 1) of redundant drives, which minimise the sum of tau^2 / share",
}

_CONTROLLER_ARGUMENTS = {
    "t": "time, s",
    "k": "number of the sample: 0, 1, 2 and so on",
    "q": "measured positions, rad and m",
    "v": "measured velocities, rad/s and m/s",
    "window": "law.reference.window(t) in Python: time (s) at which the polynomials begin, then their coefficients",
    "tau": "forces to apply, N m and N",
}

_PARALLEL_ARGUMENTS = {
    "pose": "platform pose, m and rad, quaternions x y z w",
    "q": "leg positions, rad and m",
    "u": "platform twist, rad/s and m/s",
    "u_rate": "platform acceleration, rad/s^2 and m/s^2",
    "tau": "drive forces, N m and N",
    "external": "external wrench on the platform, N m and N",
    "share": "positive weights of redundant drives, which minimise the sum of tau^2 / share",
}


def origin(kind: str, name: str) -> str:
    """Return the line that names the exported robot and the Torsor version."""
    return f"{kind} {name}, by Torsor {__version__} (licence Apache-2.0). SI units, radians."


def results_of(owner: type, titles: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return {function name: description of the result}, from the first docstring line of each method.

    ``titles`` are (function name, algorithm name) pairs. Batch axes are removed from the shapes.
    """
    results = {}
    for title, method in titles:
        text = summary_of(owner, method)
        text = text.replace("(..., ", "(").replace(" (...)", "").removeprefix("Return ").removeprefix("the ")
        if text:
            results[title] = text[0].upper() + text[1:]
    return results


def listed(names: Sequence[str], own: Sequence[str]) -> str:
    """Return names and units as text."""
    return ", ".join(f"{name} ({unit})" for name, unit in zip(names, own, strict=True))


def about_robot(
    robot: Mechanism, titles: Iterable[tuple[str, str]], numbers: Mapping[str, float] | None = None
) -> About:
    """Return the description for the exported source code of a robot; for ``titles`` see ``results_of``.

    ``numbers`` maps the input parameters of a parametric robot to their values in the original robot.
    """
    parameters = numbers or {}
    values = ", ".join(f"{name} = {value!r}" for name, value in parameters.items())
    positions, rates = units(robot)
    speeds = [f"{unit}/s" for unit in rates]
    lines = (
        origin("Robot", robot.name),
        f"Positions q: {listed(robot.position_names, positions)}.",
        f"Velocities v: {listed(robot.coordinate_names, speeds)}. Accelerations and forces are in the same order.",
        f"Moving links: {', '.join(robot.link_names)}.",
        *((f"Parameters p: {values}.",) if values else ()),
        AXES,
        *((LOOPS,) if robot.loops else ()),
    )
    facts = {
        "name": robot.name,
        "torsor": __version__,
        "positions": list(robot.position_names),
        "positionUnits": positions,
        "coordinates": list(robot.coordinate_names),
        "coordinateUnits": rates,
        "forceUnits": [FORCES[rate] for rate in rates],
        "joints": list(robot.joint_names),
        "links": list(robot.link_names),
        "parents": list(robot.parents),
        "frames": [frame.name for frame in robot.frames],
        "active": list(robot.active),
        "gravity": robot.gravity.tolist(),
        "neutral": robot.neutral().tolist(),
        "lower": robot.lower.tolist(),
        "upper": robot.upper.tolist(),
        "velocityLimit": robot.velocity_limit.tolist(),
        "effortLimit": robot.effort_limit.tolist(),
        **({"numbers": list(parameters), "values": list(parameters.values())} if parameters else {}),
        "units": UNITS,
        "axes": AXES,
    }
    return About(lines, facts, results_of(type(robot), titles), _ARGUMENTS)


def about_controller(
    robot: Mechanism,
    title: str,
    results: Mapping[str, str],
    timing: Iterable[str],
    dtype: str = "float64",
    unread: Sequence[str] = (),
) -> About:
    """Return the description for the exported source code of a controller.

    The first line begins with ``title``. ``results`` describes the functions, and ``timing`` the sampling and memory.
    ``unread`` lists the entries of q and v on which the control law does not depend.
    """
    positions, rates = units(robot)
    gears = [f"{joint.name} {joint.motor.ratio:.6g}" for joint in robot.joints if joint.motor is not None]
    unknown = "" if gears else ", whose ratios the robot does not contain"
    springs = ", ".join(joint.name for joint in robot.elastic)
    lines = (
        origin(f"{title} of robot", robot.name),
        f"Positions q: {listed(robot.position_names, positions)}.",
        f"Velocities v: {listed(robot.coordinate_names, [f'{unit}/s' for unit in rates])}.",
        f"Forces tau: {listed(robot.coordinate_names, [FORCES[rate] for rate in rates])}.",
        f"{AFTER_GEARS}{unknown}.",
        *((f"Ratios: {', '.join(gears)}. The torque of the rotor is tau / ratio.",) if gears else ()),
        *((f"Entries of tau that are always 0, because a spring drives the joint: {springs}.",) if springs else ()),
        *((f"Inputs that are not read: {', '.join(unread)}.",) if unread else ()),
        *((AXES,) if robot.nq != robot.nv else ()),
        *timing,
        f"All numbers have {'double precision (64 bits)' if dtype == 'float64' else 'single precision (32 bits)'}.",
    )
    return About(lines, {}, results, _CONTROLLER_ARGUMENTS)


def about_parallel(robot: ParallelRobot, names: Iterable[str], prefix: str) -> About:
    """Return the description for the exported source code of a parallel robot.

    Functions are named like the methods ``names``, after ``prefix``.
    """
    poses, twists = units(robot.carriage)
    legs = [unit for leg in robot.legs for unit in units(leg.robot)[0]]
    drives = [FORCES[dict(zip(robot.position_names, legs, strict=True))[name]] for name in robot.driven_names]
    lines = (
        origin("Parallel robot", robot.name),
        f"Platform pose: {listed(robot.carriage.position_names, poses)}.",
        f"Platform twist: {listed(robot.carriage.coordinate_names, [f'{unit}/s' for unit in twists])}.",
        f"Leg positions q: {listed(robot.position_names, legs)}.",
        f"Drive forces: {listed(robot.driven_names, drives)}.",
        AXES,
    )
    facts = {
        "name": robot.name,
        "torsor": __version__,
        "pose": list(robot.carriage.position_names),
        "poseUnits": poses,
        "twist": list(robot.carriage.coordinate_names),
        "twistUnits": twists,
        "legs": [leg.name for leg in robot.legs],
        "positions": list(robot.position_names),
        "positionUnits": legs,
        "drives": list(robot.driven_names),
        "forceUnits": drives,
        "gravity": robot.gravity.tolist(),
        "home": robot.home.tolist(),
        "legHome": robot.leg_home.tolist(),
        "units": UNITS,
        "axes": AXES,
    }
    return About(lines, facts, results_of(type(robot), ((prefix + name, name) for name in names)), _PARALLEL_ARGUMENTS)
