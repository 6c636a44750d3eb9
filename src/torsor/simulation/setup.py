"""What is to be simulated, checked before anything is computed."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot
from torsor.simulation.dynamics import compiled
from torsor.simulation.held import closed_at_start
from torsor.simulation.methods import METHODS
from torsor.simulation.sources import Source, real_array

__all__ = ["WHOLE", "Setup", "normalised"]

Array = NDArray[np.float64]

# How far a quotient of two times may be from a whole number and still be one: 0.3 / 0.1 is not 3.
WHOLE = 1e-9
# More steps than end within days, and samples than fit into memory.
MOST_STEPS, MOST_SAMPLES = 1e11, 1e8


@dataclass(frozen=True, eq=False)
class Setup:
    """One simulation: ``q`` (..., nq) and ``v`` (..., nv) at the start, what acts, and how it is integrated.

    ``late`` is the delay of the controller in whole control periods.
    """

    robot: Robot
    q: Array
    v: Array
    duration: float
    controller: Source
    external: Source
    method: str
    step: float
    record: float | None
    control_period: float | None
    late: int
    rtol: float
    atol: float

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.v.shape[:-1]

    @property
    def segments(self) -> list[tuple[float, float]]:
        """Start and end of the intervals between which the controller is asked: one, if it has no period."""
        if self.control_period is None:
            return [(0.0, self.duration)]
        count = math.ceil(self.duration / self.control_period - WHOLE)
        edges = [*(k * self.control_period for k in range(count)), self.duration]
        return list(pairwise(edges))

    def rollout(self, index: tuple[int, ...]) -> "Setup":
        """Return the simulation of one rollout alone."""
        sources = {
            name: source._replace(array=np.broadcast_to(source.array, (*self.batch, *core))[index])
            for name, core in (("controller", (self.robot.nv,)), ("external", (len(self.robot.links), 6)))
            if (source := getattr(self, name)).array is not None
        }
        return replace(self, q=self.q[index], v=self.v[index], **sources)

    @classmethod
    def of(
        cls,
        robot: Robot,
        q0: ArrayLike | None,
        v0: ArrayLike | None,
        duration: float,
        controller: Any,
        external: Any,
        method: str,
        step: float,
        record: float | None,
        control_period: float | None,
        delay: float,
        rtol: float,
        atol: float,
    ) -> "Setup":
        """Return the setup of what a user gives, or raise an error that says what is wrong with it."""
        if not isinstance(robot, Robot):
            fix = "robot.as_robot()" if hasattr(robot, "as_robot") else "torsor.load(path)"
            raise ModelError(describe(f"robot is {robot!r}", allowed="a torsor.Robot", fix=fix))
        if method not in METHODS:
            raise ModelError(describe(f"method is {method!r}", where=robot.name, allowed=", ".join(METHODS)))
        if (method == "adaptive" or robot.loops) and robot.target.dtype != "float64":
            robot = robot.to(dtype="float64")  # no error estimate means anything in float32, and no loop closes
        duration, step = _positive(robot, "duration", duration), _positive(robot, "step", step)
        rtol, atol = _positive(robot, "rtol", rtol), _positive(robot, "atol", atol)
        record = None if record is None else _positive(robot, "record", record)
        for name, length, most in (("step", step, MOST_STEPS), ("record", record, MOST_SAMPLES)):
            if length is not None and duration / length > most:
                found = f"{duration:g} s with a {name} of {length:g} s"
                raise ModelError(describe(found, where=robot.name, allowed=f"at most {most:g} of them"))
        if record is not None and method != "adaptive" and record < step * (1 - WHOLE):
            found = f"record is {record:g} s, shorter than the step of {step:g} s"
            raise ModelError(describe(found, where=robot.name, allowed="the step or more", fix="a smaller step"))
        period = None if control_period is None else _positive(robot, "control_period", control_period)
        sources = (
            Source.of(robot, controller, "controller", (robot.nv,)),
            Source.of(robot, external, "external", (len(robot.links), 6)),
        )
        if period is not None and sources[0].is_zero:
            raise ModelError(describe("control_period without a controller", where=robot.name, fix="leave it out"))
        q = real_array(robot.neutral() if q0 is None else q0, "q0", (robot.nq,))
        v = real_array(np.zeros(robot.nv) if v0 is None else v0, "v0", (robot.nv,))
        arrays = {"q0": q.shape[:-1], "v0": v.shape[:-1]}
        for name, source, axes in (("controller", sources[0], 1), ("external", sources[1], 2)):
            if source.array is not None:
                arrays[name] = source.array.shape[:-axes]
        try:
            batch = np.broadcast_shapes(*arrays.values())
        except ValueError:
            found = ", ".join(f"{name} {shape}" for name, shape in arrays.items())
            found = f"leading axes do not broadcast: {found}"
            raise ModelError(describe(found, where=robot.name, allowed="equal lengths, or 1")) from None
        if 0 in batch:
            raise ModelError(
                describe(f"no rollout: the leading axes are {batch}", where=robot.name, allowed="1 or more")
            )
        q = np.ascontiguousarray(np.broadcast_to(normalised(robot, q), (*batch, robot.nq)))
        v = np.ascontiguousarray(np.broadcast_to(v, (*batch, robot.nv)))
        if robot.loops:
            q, v = closed_at_start(robot, q, v)
        late = _periods(robot, delay, period)
        return cls(robot, q, v, duration, *sources, method, step, record, period, late, rtol, atol)


def normalised(robot: Robot, q: Array) -> Array:
    """Return the positions with quaternions of length 1, or raise an error if one has none."""
    if robot.nq == robot.nv:
        return q
    kernel = compiled(robot, "chart", (), lambda: robot.function("chart"))
    found: Array = np.asarray(kernel(q, np.zeros(robot.nv)), dtype=float)
    if not np.isfinite(found).all():
        at = np.argwhere(~np.isfinite(found))[0]
        what = f"q0 has a quaternion of length 0 at {robot.position_names[at[-1]]}"
        raise ModelError(describe(what, where=robot.name, fix="begin with robot.neutral()"))
    return found


def _positive(robot: Robot, what: str, value: Any) -> float:
    """Return a positive, finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (0 < number < math.inf) or isinstance(value, bool):
        raise ModelError(describe(f"{what} is {value!r}", where=robot.name, allowed="a finite number above 0"))
    return number


def _periods(robot: Robot, delay: Any, period: float | None) -> int:
    """Return a delay in whole control periods."""
    if isinstance(delay, (int, float)) and delay == 0:
        return 0
    delay = _positive(robot, "delay", delay)
    if period is None:
        raise ModelError(describe(f"delay is {delay:g} s without a control_period", where=robot.name, fix="give both"))
    count: int = round(delay / period)
    if abs(delay / period - count) > WHOLE * max(count, 1):
        found = f"delay is {delay:g} s, {delay / period:.6g} control periods"
        raise ModelError(describe(found, where=robot.name, allowed=f"whole multiples of {period:g} s"))
    return count
