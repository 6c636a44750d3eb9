"""Commercial arms in the least time: from point to point, and along a given joint path."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torsor import library
from torsor.base.checks import real_array
from torsor.base.errors import ModelError, describe
from torsor.motion.problem import MotionProblem
from torsor.motion.terms.distances import Capsule, Clearance, Sphere
from torsor.motion.terms.ends import End, Start
from torsor.motion.terms.limits import TorqueRates, Torques, Velocities
from torsor.motion.terms.objectives import Time
from torsor.motion.transcription.paths import Path
from torsor.motion.transcription.phase import Phase
from torsor.robot.robot import Robot

_UR5_BODIES = (
    Capsule(link="upper_arm_link", start=(0, 0, 0), end=(0, 0, 0.425), radius=0.075),
    Capsule(link="forearm_link", start=(0, 0, 0), end=(0, 0, 0.39225), radius=0.06),
    Capsule(link="wrist_1_link", start=(0, 0, 0), end=(0, 0.093, 0), radius=0.05),
    Sphere(link="ee_link", radius=0.06),
)
_PANDA_BODIES = (
    Capsule(link="panda_link2", start=(0, 0, 0), end=(0, -0.316, 0), radius=0.08),
    Capsule(link="panda_link4", start=(-0.0825, 0, 0), end=(-0.0825, 0.384, 0), radius=0.08),
    Capsule(link="panda_link7", start=(0, 0, -0.05), end=(0, 0, 0.15), radius=0.08),
)
_WAY = (
    (0.0, -1.5, 1.5, -1.5, -1.5, 0.0),
    (0.2, -1.3, 1.4, -1.6, -1.4, 0.1),
    (0.5, -1.2, 1.2, -1.5, -1.2, 0.2),
    (0.8, -1.3, 1.0, -1.3, -1.1, 0.4),
    (1.1, -1.5, 0.9, -1.1, -1.1, 0.5),
    (1.3, -1.7, 1.0, -1.0, -1.2, 0.7),
    (1.4, -1.8, 1.2, -1.1, -1.4, 0.8),
)


def ur5_time(
    start: Any = (0.0, -1.5, 1.0, -1.0, -1.5, 0.0),
    end: Any = (1.5, -0.5, 0.5, -1.5, -1.0, 1.0),
    points: int = 12,
    torque_rates: Any = None,
    obstacles: Sequence[Any] = (),
) -> MotionProblem:
    """Return the minimum-time motion of a UR5 from ``start`` to ``end`` (6,) in rad, both at rest.

    Torques and velocities stay within the robot's limits. ``torque_rates`` (N m/s: a number, or one for each joint)
    bounds torque rates too; the manufacturer publishes none. Accelerations are then zero at both ends and splines have
    degree 5, otherwise they are cubic. ``obstacles`` are spheres, capsules and half-spaces of the world (see
    ``motion.Clearance``); upper arm, forearm, wrist and tool, covered by capsules and a sphere, keep clear of them.

    Example:
        >>> from torsor import motion
        >>> lamp = motion.Sphere(center=(0.45, 0.55, 0.5), radius=0.1)
        >>> ur5_time(obstacles=[lamp]).constraints[-1].title
        'Clearance'
    """
    clear = _clear(_UR5_BODIES, obstacles)
    return _from_rest_to_rest("ur5-time", library.ur5(), (start, end), points, torque_rates, clear)


def panda_time(
    start: Any = (0.0, -0.8, 0.0, -2.4, 0.0, 1.6, 0.8),
    end: Any = (1.2, 0.3, -0.3, -1.5, 0.4, 1.9, 0.2),
    points: int = 12,
    torque_rates: Any = 1000.0,
    obstacles: Sequence[Any] = (),
) -> MotionProblem:
    """Return the minimum-time motion of a Panda with its hand from ``start`` to ``end`` (7,) in rad, both at rest.

    As ``ur5_time``; torque rates stay within the manufacturer's 1000 N m/s by default.

    Example:
        >>> panda_time(points=8).model.names[0]
        'panda_joint1'
    """
    clear = _clear(_PANDA_BODIES, obstacles)
    return _from_rest_to_rest("panda-time", library.panda(), (start, end), points, torque_rates, clear)


def _clear(bodies: Sequence[Any], obstacles: Sequence[Any]) -> list[Clearance]:
    return [Clearance(first=bodies, second=tuple(obstacles), least=0.01)] if obstacles else []


def _positive(bounds: Any, where: str, what: str) -> Any:
    """Return bounds, or raise ModelError if one of them is not above 0."""
    given = list(bounds.values()) if isinstance(bounds, Mapping) else bounds
    if not (real_array(given, where, what) > 0).all():
        raise ModelError(describe(f"{what} is {bounds}", where=where, allowed="numbers above 0"))
    return bounds


def _from_rest_to_rest(
    name: str,
    robot: Robot,
    ends: tuple[Any, Any],
    points: int,
    torque_rates: Any,
    clear: Sequence[Any] = (),
    path: Path | None = None,
) -> MotionProblem:
    """Return the minimum-time problem from rest to rest, within limits and with further constraints ``clear``."""
    still: dict[str, Any] = {"v": 0.0} if torque_rates is None else {"v": 0.0, "a": 0.0}
    limits: list[Any] = [Start(q=ends[0], **still), End(q=ends[1], **still), Torques()]
    if np.isfinite(robot.velocity_limit).any():
        limits.append(Velocities())
    if torque_rates is not None:
        limits.append(TorqueRates(upper=_positive(torque_rates, name, "torque_rates")))
    phase = Phase((0.1, 5.0), points=points, degree=3 if torque_rates is None else 5)
    return MotionProblem(robot, phase, Time(), [*limits, *clear], path=path, name=name)


def path_time(
    waypoints: Any = _WAY, robot: Robot | None = None, points: int = 30, torque_rates: Any = None
) -> MotionProblem:
    """Return the minimum-time motion along a joint path, from rest to rest: only the progress along it is free.

    The path is the spline through ``waypoints`` (six or more, nv), of a ``robot`` (by default a UR5). Torques and
    velocities stay within the robot's limits, and torque rates within ``torque_rates`` (N m/s: a number, or one for
    each joint; None: free), in which case the progress has a spline of degree 5 and no acceleration at the ends,
    otherwise a cubic one. ``points`` is the number of control points of the progress.

    Example:
        >>> path_time().model.names
        ('progress',)
    """
    arm = library.ur5() if robot is None else robot
    return _from_rest_to_rest("path-time", arm, (0.0, 1.0), points, torque_rates, path=Path.through(waypoints))
