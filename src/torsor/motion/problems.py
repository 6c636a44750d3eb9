"""Built-in motion problems by name: ``torsor predict two-link-time``, or ``PROBLEMS["two-link-time"]()``.

Example:
    >>> PROBLEMS["two-link-time"](points=8).program.n  # 4 free control points of each joint, and the duration
    9
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.checks import number, one_of, positive, real_array
from torsor.base.errors import ModelError
from torsor.motion.declaration import Argument, NamedProblem
from torsor.motion.problem import MotionProblem
from torsor.motion.terms.distances import Capsule, Clearance, Sphere
from torsor.motion.terms.ends import End, Start
from torsor.motion.terms.limits import TorqueRates, Torques, Unactuated, Velocities
from torsor.motion.terms.objectives import Effort, Time
from torsor.motion.transcription.motion_model import Path
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline
from torsor.robot.robot import Robot

# Motions from Barman 2020, Guarino Lo Bianco 2009 and Hua et al. 2022 (elastic arm).

VARIANTS = ("printed", "reordered", "without-offset")


def two_link_time(points: int | None = None, nodes: Any = None) -> MotionProblem:
    """Return the minimum-time motion of the two-link arm of Barman 2020 from (0, -2) to (1, -1) rad.

    The arm is at rest at both ends, and its torques are at most 10 N m. See tables 4.1 and 4.2, and eqs. 4.16 and 4.17.
    ``points`` is the number of control points of each joint (cubic splines; see ``Phase``), and ``nodes`` is the number
    of times at which torques are bounded (by default ten per point). With 30 points, the shortest time is 0.39231 s.
    The exact optimum, with torque jumps, is 0.391854540 s (``motion.switching``).
    """
    ends = Start(q=[0.0, -2.0], v=0.0), End(q=[1.0, -1.0], v=0.0)
    phase = Phase((0.1, 2.0), points=points, nodes=nodes)
    return MotionProblem(library.two_link(), phase, Time(), [*ends, Torques(upper=10.0)], name="two-link-time")


def slide_link(u: float = 0.01, points: int | None = None, variant: str = "printed") -> MotionProblem:
    """Return the motion of Barman's slide with a hinged link, which minimises a combination of time and effort.

    See tables 4.3 and 4.4, and eqs. 4.18 and 4.19. The motion minimises the integral of (1 - u) + u (f1^2 + tau2^2),
    with ``u`` from 0 to 1. It starts at rest at q = (0.1, 0.6) (m, rad) and ends at rest at (pi/4, -pi/4), with at most
    10 N and 10 N m. For ``points`` see ``Phase``. The optimum of the printed data is T = 0.64626 s and J = 0.853063,
    not the published 0.5585 s. Two other interpretations are available. With ``variant="reordered"``, the four numbers
    belong to q1 and then to q2 (q1 from 0.1 to 0.6, q2 from pi/4 to -pi/4), which results in 0.56714 s and 0.748623.
    With "without-offset", the link angle is q2 instead of pi/2 + q2, which results in 0.58578 s and 0.773235; q2 then
    has a different zero and is smaller than printed by pi/2. The intended interpretation is unknown; ``torsor reproduce
    barman/slide-time`` compares further ones. ``motion.continuation(slide_link, [0.01, 0.02, 0.05])`` computes the
    front of time and effort over u.
    """
    one_of(variant, VARIANTS, "slide-link", "variant")
    number(u, "slide-link", "u", least=0.0, most=1.0)
    quarter = math.pi / 4
    start, end = {
        "printed": ([0.1, 0.6], [quarter, -quarter]),
        "reordered": ([0.1, quarter], [0.6, -quarter]),
        "without-offset": ([0.1, 0.6 - 2 * quarter], [quarter, -3 * quarter]),
    }[variant]
    limits: list[Any] = [Start(q=start, v=0.0), End(q=end, v=0.0), Torques(upper=10.0)]
    costs = [term for term in (Time(weight=1 - u), Effort(weight=u)) if term.weight]
    return MotionProblem(library.slide_link(), Phase((0.1, 2.0), points=points), costs, limits, name="slide-link")


def stanford_rates(points: int = 10, force: float = 200.0, rate: float = 1000.0) -> MotionProblem:
    """Return the minimum-time move of Guarino Lo Bianco 2009, Table III (Stanford arm), with limited force rates.

    Guarino Lo Bianco 2009 studies the limited torque rates of real drives. ``force`` (N m, or N for the slide) bounds
    all six forces, and ``rate`` (N m/s, N/s) bounds their rates. The arm starts and ends at rest without acceleration,
    so forces start and end at their static values. Splines have ``points`` control points and the degree 5, which makes
    force rates smooth.
    """
    for what, bound in (("force", force), ("rate", rate)):
        positive(bound, "stanford-rates", what)
    half = math.pi / 2
    ends = (
        Start(q=[half, 0.0, 0.0, half, half / 2, half], v=0.0, a=0.0),
        End(q=[half / 2, half, 2.0, half / 2, half, 0.0], v=0.0, a=0.0),
    )
    phase = Phase((0.3, 4.0), points=points, degree=5)
    limits: list[Any] = [*ends, Torques(upper=force), TorqueRates(upper=rate)]
    return MotionProblem(library.stanford(), phase, Time(), limits, name="stanford-rates")


def elastic_arm(
    start: Any = (0.0, 0.3, 0.5), end: Any = (1.0, 0.9, -0.4), points: int = 24, torque: float = 30.0
) -> MotionProblem:
    """Return the minimum-time motion of the elastic arm of Hua et al. 2022 with almost no residual vibration.

    ``start`` and ``end`` are the link positions (3,) in rad. A spring connects the last motor to its link: the link is
    unactuated, and its equation of motion is a constraint (``Unactuated``). At both ends, all coordinates are at rest
    without acceleration, and the spring balances gravity on the link. Motor torques are at most ``torque`` (N m).
    Splines have degree 7, except that of the last motor, which has degree 5 because its position depends on the link's
    acceleration. With more ``points``, the link vibrates less after the end.
    """
    positive(torque, "elastic-arm", "torque")
    names = ("joint1", "joint2", "joint3")
    still: dict[str, Any] = {"v": 0.0, "a": 0.0}
    places = [dict(zip(names, map(float, positions), strict=True)) for positions in (start, end)]
    ends = Start(q=places[0], **still), End(q=places[1], **still)
    drives = Torques(upper={"joint1": torque, "joint2": torque, "joint3/motor": torque})
    shape = Spline.uniform(points, 7)
    phase = Phase((0.2, 4.0), points=points, degree=7, own={"joint3/motor": Spline(5, shape.inner)})
    return MotionProblem(library.elastic_arm(), phase, Time(), [*ends, Unactuated(), drives], name="elastic-arm")


# Minimum-time motions of commercial arms, from point to point and along a prescribed joint path.

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
    (0.0, -1.5, 1.5, -1.5, -1.5, 0.0), (0.2, -1.3, 1.4, -1.6, -1.4, 0.1), (0.5, -1.2, 1.2, -1.5, -1.2, 0.2),
    (0.8, -1.3, 1.0, -1.3, -1.1, 0.4), (1.1, -1.5, 0.9, -1.1, -1.1, 0.5), (1.3, -1.7, 1.0, -1.0, -1.2, 0.7),
    (1.4, -1.8, 1.2, -1.1, -1.4, 0.8),
)  # fmt: skip


@cache
def _arm(name: str) -> Robot:
    """Return an arm of the library; all problems get the same object and share its compiled functions."""
    robot: Robot = getattr(library, name)()
    return robot


def ur5_time(
    start: Any = (0.0, -1.5, 1.0, -1.0, -1.5, 0.0),
    end: Any = (1.5, -0.5, 0.5, -1.5, -1.0, 1.0),
    points: int | None = None,
    torque_rates: Any = None,
    obstacles: Sequence[Any] = (),
) -> MotionProblem:
    """Return the minimum-time motion of a UR5 from ``start`` to ``end`` (6,) in rad, both at rest.

    Torques and velocities stay within the robot's limits. ``torque_rates`` (N m/s: one number, or one per joint) also
    bounds torque rates, for which the manufacturer publishes no limits. Accelerations are then zero at both ends, and
    splines have degree 5 instead of 3. ``obstacles`` are spheres, capsules and half-spaces in the world frame (see
    ``motion.Clearance``). The upper arm, forearm, wrist and tool avoid them; their geometry is covered by capsules and
    a sphere. For ``points`` see ``Phase``.
    """
    clear = _UR5_BODIES, tuple(obstacles)
    return _from_rest_to_rest("ur5-time", _arm("ur5"), (start, end), points, torque_rates, clear)


def panda_time(
    start: Any = (0.0, -0.8, 0.0, -2.4, 0.0, 1.6, 0.8),
    end: Any = (1.2, 0.3, -0.3, -1.5, 0.4, 1.9, 0.2),
    points: int | None = None,
    torque_rates: Any = 1000.0,
    obstacles: Sequence[Any] = (),
) -> MotionProblem:
    """Return the minimum-time motion of a Panda with its hand from ``start`` to ``end`` (7,) in rad, both at rest.

    The arguments are those of ``ur5_time``. By default, torque rates stay within the manufacturer's limit of 1000 N
    m/s.
    """
    clear = _PANDA_BODIES, tuple(obstacles)
    return _from_rest_to_rest("panda-time", _arm("panda"), (start, end), points, torque_rates, clear)


def _from_rest_to_rest(
    name: str,
    robot: Robot,
    ends: tuple[Any, Any],
    points: int | None,
    torque_rates: Any,
    clear: tuple[Sequence[Any], Sequence[Any]] = ((), ()),
    path: Path | None = None,
) -> MotionProblem:
    """Return the minimum-time problem from rest to rest within limits.

    ``clear`` contains bodies of the robot and the obstacles that they avoid.
    """
    still: dict[str, Any] = {"v": 0.0} if torque_rates is None else {"v": 0.0, "a": 0.0}
    limits: list[Any] = [Start(q=ends[0], **still), End(q=ends[1], **still), Torques()]
    if np.isfinite(robot.velocity_limit).any():
        limits.append(Velocities())
    if torque_rates is not None:
        rate_bounds = list(torque_rates.values()) if isinstance(torque_rates, Mapping) else torque_rates
        if not (real_array(rate_bounds, name, "torque_rates") > 0).all():
            raise ModelError(argument="torque_rates", value=torque_rates, where=name, allowed="positive numbers")
        limits.append(TorqueRates(upper=torque_rates))
    if clear[1]:
        limits.append(Clearance(first=clear[0], second=clear[1], least=0.01))
    phase = Phase((0.1, 5.0), points=points, degree=3 if torque_rates is None else 5)
    return MotionProblem(robot, phase, Time(), limits, path=path, name=name)


def path_time(
    waypoints: Any = _WAY, robot: Robot | None = None, points: int = 30, torque_rates: Any = None
) -> MotionProblem:
    """Return the minimum-time motion along a joint path from rest to rest; only the progress along the path is free.

    The path is the spline through ``waypoints`` (six or more, nv) of a ``robot`` (by default a UR5). Torques and
    velocities stay within the robot's limits, and torque rates within ``torque_rates`` (N m/s: one number, or one per
    joint; None: unbounded). With ``torque_rates``, the progress is a spline of degree 5 without acceleration at the
    ends; otherwise, it is a cubic spline. ``points`` is the number of control points of the progress.
    """
    arm = _arm("ur5") if robot is None else robot
    return _from_rest_to_rest("path-time", arm, (0.0, 1.0), points, torque_rates, path=Path.through(waypoints))


__all__ = [
    "PROBLEMS", "elastic_arm", "panda_time", "path_time", "slide_link", "stanford_rates", "two_link_time", "ur5_time",
]  # fmt: skip

_TEXT = "control points of each joint (if there is no default, the solver refines them)"
POINTS = Argument("points", int, _TEXT, metavar="N")
_START, _END = (
    Argument(name, float, f"joint positions at the {name} (rad)", "rad", "Q", count="+", data=f"{name.title()}.q")
    for name in ("start", "end")
)
_TORQUE_OPTION: dict[str, Any] = {"metavar": "TAU", "option": "torque"}
_RATE_OPTION: dict[str, Any] = {"metavar": "RATE", "option": "torque_rate", "count": "1+"}
_RATES = Argument("torque_rates", float, "torque rate limits, one for all or for each joint", "N m/s", **_RATE_OPTION)
_WAYPOINTS = Argument("waypoints", list, "positions of the joints along the path", "rad")
_NODES = Argument("nodes", int, "nodes at which bounds hold (default: ten per control point)", metavar="N")
_WEIGHT: dict[str, Any] = {"metavar": "U", "option": "weight", "bounds": {"least": 0.0, "most": 1.0}}
_U = Argument("u", float, "weight of the effort, from 0 to 1", **_WEIGHT)
_VARIANT = Argument("variant", str, "interpretation of the printed data", choices=VARIANTS)
_FORCE = Argument("force", float, "torque limits of all joints", "N m", **_TORQUE_OPTION)
_RATE = Argument("rate", float, "torque rate limits, one for all or for each joint", "N m/s", **_RATE_OPTION)
_TORQUE = Argument("torque", float, "torque limits of all joints", "N m", **_TORQUE_OPTION)
PROBLEMS: dict[str, NamedProblem] = {
    problem.name: problem
    for problem in (
        NamedProblem("two-link-time", two_link_time, (POINTS, _NODES)),
        NamedProblem("slide-link", slide_link, (POINTS, _VARIANT, _U)),
        NamedProblem("stanford-rates", stanford_rates, (POINTS, _FORCE, _RATE)),
        NamedProblem("ur5-time", ur5_time, (POINTS, _START, _END, _RATES)),
        NamedProblem("panda-time", panda_time, (POINTS, _START, _END, _RATES)),
        NamedProblem("path-time", path_time, (_WAYPOINTS, POINTS, _RATES)),
        NamedProblem("elastic-arm", elastic_arm, (POINTS, replace(_START, data=""), replace(_END, data=""), _TORQUE)),
    )
}
