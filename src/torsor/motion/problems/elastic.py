"""An arm with an elastic joint, moved so that it does not vibrate after its arrival."""

from typing import Any

from torsor import library
from torsor.motion.problem import MotionProblem
from torsor.motion.terms.ends import End, Start
from torsor.motion.terms.limits import Torques, Unactuated
from torsor.motion.terms.objectives import Time
from torsor.motion.transcription.phase import Phase
from torsor.motion.transcription.splines import Spline


def elastic_arm(
    start: Any = (0.0, 0.3, 0.5), end: Any = (1.0, 0.9, -0.4), points: int = 24, torque: float = 30.0
) -> MotionProblem:
    """Return the minimum-time motion of the elastic arm of Hua et al. 2022 with almost no residual vibration.

    ``start`` and ``end`` are the positions (3,) of the links (rad). There is a spring between the last motor and its
    link: the link is unactuated and its equation of motion must hold (``Unactuated``). At both ends all coordinates are
    at rest without acceleration; the motor is where the spring then holds the link against gravity. Motor torques are
    at most ``torque`` (N m). Splines have degree 7, that of the elastic motor two degrees less, since its position
    depends on the link's acceleration. The more ``points``, the less the link vibrates after the end.

    Example:
        >>> elastic_arm().model.names
        ('joint1', 'joint2', 'joint3', 'joint3/motor')
    """
    names = ("joint1", "joint2", "joint3")
    still: dict[str, Any] = {"v": 0.0, "a": 0.0}
    places = [dict(zip(names, map(float, each), strict=True)) for each in (start, end)]
    ends = Start(q=places[0], **still), End(q=places[1], **still)
    drives = Torques(upper={"joint1": torque, "joint2": torque, "joint3/motor": torque})
    shape = Spline.uniform(points, 7)
    phase = Phase((0.2, 4.0), points=points, degree=7, own={"joint3/motor": Spline(5, shape.inner)})
    return MotionProblem(library.elastic_arm(), phase, Time(), [*ends, Unactuated(), drives], name="elastic-arm")
