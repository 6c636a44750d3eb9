"""What exported source says of a parallel robot."""

from collections.abc import Iterable

from torsor._version import __version__
from torsor.compiler.source import About
from torsor.mechanism.mechanism import FORCES, units
from torsor.robot.about import AXES, UNITS, listed, origin, results_of
from torsor.robot.parallel.kernels import Assembled

_ARGUMENTS = {
    "pose": "pose of the platform, m and rad, quaternions x y z w",
    "q": "positions of all legs, rad and m",
    "u": "twist of the platform, rad/s and m/s",
    "u_rate": "acceleration of the platform, rad/s^2 and m/s^2",
    "tau": "forces of the drives, N m and N",
    "external": "wrench of the environment on the platform, N m and N",
    "share": "positive weights: of redundant drives, the sum of tau^2 / share is least",
}


def about_parallel(robot: Assembled, names: Iterable[str], prefix: str) -> About:
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
    return About(lines, facts, results_of(type(robot), ((prefix + name, name) for name in names)), _ARGUMENTS)
