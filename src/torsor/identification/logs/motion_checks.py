"""Checks of the prepared motion of a log: degrees, coarse encoders, and measured velocities that are none."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from torsor.base.errors import ModelError, ModelWarning
from torsor.identification.differentiation import differentiate
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.log import Log
from torsor.identification.logs.log_map import LogMap
from torsor.identification.logs.preparing import Prepared
from torsor.identification.logs.rate_checks import rate_findings
from torsor.identification.logs.segments import longest_of, segments_of
from torsor.identification.logs.signal_checks import quantum
from torsor.identification.units import check_radians
from torsor.robot.robot import Robot

COARSE = 0.1  # of the accelerations: noise of encoder steps that is named


def motion_findings(robot: Robot, log: Log, prepared: Prepared) -> list[LogFinding]:
    """Return what is suspicious in the motion of a log that is ``prepared``: units, encoder steps, rates.

    Example:
        >>> from torsor.identification.logs.log import of_arrays
        >>> from torsor.identification.logs.preparing import prepare
        >>> arm, t = torsor.library.ur5(), np.arange(2000) * 1e-3
        >>> q = 90 * np.sin(2 * np.pi * np.outer(t, np.linspace(0.5, 1.0, 6)))
        >>> log = of_arrays("log", t, q, q, None, None, arm)
        >>> [each.kind for each in motion_findings(arm, log, prepare(arm, [log], LogMap({}, cutoff=20.0)))]
        ['degrees']
    """
    return [*_degrees(robot, log, prepared), *_rates(robot, log, prepared), *_coarse(robot, log, prepared)]


def _degrees(robot: Robot, log: Log, prepared: Prepared) -> Iterator[LogFinding]:
    """Yield a finding where positions or velocities are in degrees by the limits of the robot."""
    q, v = prepared.samples.q, prepared.samples.v
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            check_radians(robot, q, v)
            texts = [str(each.message) for each in caught]
        except ModelError as error:
            texts = [str(error)]
    for text in texts[:1]:
        what, _, _ = text.removeprefix(f"{robot.name}: ").partition("; ")
        fix = 'write units = {q = "deg"} in the map, or correct the limits of the robot'
        yield LogFinding("degrees", log.source, what, fix, float(np.abs(q).max()))


def _rates(robot: Robot, log: Log, prepared: Prepared) -> Iterator[LogFinding]:
    """Yield what is suspicious in measured velocities and accelerations."""
    if robot.nq != robot.nv:
        return
    for what, order, measured in (("v", 1, log.v), ("a", 2, log.a)):
        if measured is None or len(log) < 16:
            continue
        segment = longest_of(segments_of(robot, replace(log, v=measured, a=None), LogMap({}), []))
        cutoff = min(prepared.cutoff or 0.1 / segment.step, 0.4 / segment.step)
        derived = differentiate(segment.times, segment.q, cutoff)[order]
        own = differentiate(segment.times, np.asarray(segment.v), cutoff)[0]
        ends = min(math.ceil(1 / (cutoff * segment.step)), len(own) // 4)
        inside = slice(ends, len(own) - ends)
        yield from rate_findings(robot, log.source, what, own[inside], derived[inside], segment.step)


def _coarse(robot: Robot, log: Log, prepared: Prepared) -> Iterator[LogFinding]:
    """Yield encoders whose steps make the accelerations noisy."""
    if prepared.cutoff is None or robot.nq != robot.nv:
        return
    f, h = prepared.cutoff, prepared.segments[0].step
    size = np.sqrt(np.mean(prepared.samples.a**2, axis=0))
    for j, name in enumerate(robot.position_names):
        step = quantum(log.q[:, j])
        # White noise of step / sqrt(12), differentiated twice up to the cutoff.
        noise = step / math.sqrt(12) * (2 * math.pi * f) ** 2 * math.sqrt(2 * f * h / 5)
        if size[j] > 0 and noise > COARSE * size[j]:
            percent = 100 * noise / size[j]
            text = f"the encoder has steps of {step:.3g}: noise of {percent:.3g} % in the accelerations at {f:.3g} Hz"
            fix = "move faster or more, log more often, or lower the cutoff"
            yield LogFinding("quantisation", f"{log.source}: q of {name!r}", text, fix, step)
