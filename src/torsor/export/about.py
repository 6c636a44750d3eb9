"""The description in exported source: names and order of the coordinates, units, axes, limits."""

from collections.abc import Iterable, Mapping, Sequence

from torsor._version import __version__
from torsor.compiler.source import About
from torsor.mechanism import Mechanism
from torsor.mechanism.mechanism import FORCES, units
from torsor.robot.accessors import summary_of
from torsor.robot.parallel import ParallelRobot

AXES = (
    "Spatial vectors have the angular part first. Twists, wrenches, accelerations and Jacobians of a link or frame are"
    " at its origin, in its axes. Poses are 4 x 4, from the axes of the link to those of the base. Gravity is in base"
    " axes. A floating base has positions x y z and a quaternion x y z w, its velocities are in its own axes."
)
LOOPS = (
    "The robot has closed loops: q must close them, and the velocities keep them closed. This code does not check it;"
    " other positions give meaningless numbers. Find q with robot.closed.assemble in Python."
)
UNITS = {"length": "m", "angle": "rad", "mass": "kg", "time": "s", "force": "N", "moment": "N m"}

_ARGUMENTS = {
    "q": "positions, rad and m",
    "v": "velocities, rad/s and m/s",
    "a": "accelerations, rad/s^2 and m/s^2",
    "j": "jerks, rad/s^3 and m/s^3",
    "tau": "forces, N m and N",
    "q_end": "positions at the end, rad and m",
    "dv": "velocities of a unit of time, rad/s and m/s",
    "v_active": "velocities of the active coordinates, rad/s and m/s",
    "a_active": "accelerations of the active coordinates, rad/s^2 and m/s^2",
    "tau_active": "forces of the active coordinates, N m and N",
    "p": "numbers of the robot, in the order above",
    "share": "positive weights, mostly 1: of redundant drives, the sum of tau^2 / share is least",
}


_PARALLEL_ARGUMENTS = {
    "pose": "pose of the platform, m and rad, quaternions x y z w",
    "q": "positions of all legs, rad and m",
    "u": "twist of the platform, rad/s and m/s",
    "u_rate": "acceleration of the platform, rad/s^2 and m/s^2",
    "tau": "forces of the drives, N m and N",
    "external": "wrench of the environment on the platform, N m and N",
    "share": "positive weights: of redundant drives, the sum of tau^2 / share is least",
}


def origin(kind: str, name: str) -> str:
    """Return the line that says what was exported, and by what."""
    return f"{kind} {name}, by Torsor {__version__} (licence Apache-2.0). SI units, radians."


def results_of(owner: type, titles: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return what exported functions return, by name: the first line of the method's docstring, for one state.

    ``titles`` are pairs of the name of the function and of the algorithm.
    """
    found = {}
    for title, method in titles:
        text = summary_of(owner, method)
        text = text.replace("(..., ", "(").replace(" (...)", "").removeprefix("Return ").removeprefix("the ")
        if text:
            found[title] = text[0].upper() + text[1:]
    return found


def listed(names: Sequence[str], own: Sequence[str]) -> str:
    """Return names with their units."""
    return ", ".join(f"{name} ({unit})" for name, unit in zip(names, own, strict=True))


def about_robot(
    robot: Mechanism, titles: Iterable[tuple[str, str]], numbers: Mapping[str, float] | None = None
) -> About:
    """Return what the source of a robot's functions says; ``titles`` as in ``results_of``.

    ``numbers`` are those of a parametric robot that are inputs, with the values of the robot itself.
    """
    given = numbers or {}
    positions, rates = units(robot)
    speeds = [f"{unit}/s" for unit in rates]
    lines = (
        origin("Robot", robot.name),
        f"Positions q: {listed(robot.position_names, positions)}.",
        f"Velocities v: {listed(robot.coordinate_names, speeds)}. Accelerations and forces are in the same order.",
        f"Moving links: {', '.join(robot.link_names)}.",
        *((f"Numbers p: {', '.join(f'{name} = {value!r}' for name, value in given.items())}.",) if given else ()),
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
        "forceUnits": [FORCES[each] for each in rates],
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
        **({"numbers": list(given), "values": list(given.values())} if given else {}),
        "units": UNITS,
        "axes": AXES,
    }
    return About(lines, facts, results_of(type(robot), titles), _ARGUMENTS)


def about_parallel(robot: ParallelRobot, names: Iterable[str], prefix: str) -> About:
    """Return what the source of a parallel robot's functions says; they are named as methods, with a prefix."""
    poses, twists = units(robot.carriage)
    legs = [unit for leg in robot.legs for unit in units(leg.robot)[0]]
    drives = [FORCES[dict(zip(robot.position_names, legs, strict=True))[name]] for name in robot.driven_names]
    lines = (
        origin("Parallel robot", robot.name),
        f"Pose of the platform: {listed(robot.carriage.position_names, poses)}.",
        f"Twist of the platform: {listed(robot.carriage.coordinate_names, [f'{unit}/s' for unit in twists])}.",
        f"Positions q of the legs: {listed(robot.position_names, legs)}.",
        f"Forces of the drives: {listed(robot.driven_names, drives)}.",
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
