"""Signal checks without a model: missing numbers, times, constant or stuck columns, and limits."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.errors import ModelError, ModelWarning, warn
from torsor.identification.bases import environment_forces, free_coordinates
from torsor.identification.closed_robot import MeasuredRobot
from torsor.identification.differentiation import differentiate
from torsor.identification.logs.log import Log, LogFinding
from torsor.identification.logs.log_map import LogMap
from torsor.identification.logs.preparing import Prepared
from torsor.identification.logs.sampling import longest_of, sampling_of, segments_of
from torsor.mechanism.mechanism import FORCES, units

MIN_SPAN = 1e-3  # rad or m; minimum span of a moving joint
MIN_ENCODER_STEPS = 4  # minimum span of a moving joint, in encoder steps
MAX_HELD_SAMPLES = 20  # number of equal samples of a moving joint above which its signal is stuck
JUMP_RATIO = 4.0  # multiple of the largest typical step above which a change is not motion
SPIKE_RATIO = 40.0  # multiple of the typical second difference above which a sample is a spike
# Minimum numbers of saturated samples: in a run, in total, and relative to samples next to the extreme.
SATURATION_RUN, SATURATION_COUNT, SATURATION_RATIO = 4, 8, 10.0
MAX_TIME_STEP = 0.5  # s; longer steps do not resolve accelerations
TIME_UNITS = {"ms": 500.0, "us": 500e3}  # likely unit of longer steps: the first with steps below 0.5 s
LIMIT_RATIO = 1.05  # multiple of a limit that is reported


def signal_findings(robot: MeasuredRobot, log: Log) -> list[LogFinding]:
    """Return the suspicious signals of a log, with lines and numbers."""
    findings = [*_missing(log), *_times(log)]
    log = log.kept(log.complete)
    if len(log) < 3:
        return [*findings, LogFinding("short", log.source, f"{len(log)} complete samples", "measure longer", len(log))]
    return [*findings, *_motions(robot, log), *_forces(robot, log), *_limits(robot, log)]


def motionless(robot: MeasuredRobot, log: Log) -> list[LogFinding]:
    """Return findings on joints that never move, constant forces, and steps that suggest a different time unit."""
    log = log.kept(log.complete)
    if len(log) < 3:
        return []
    still = [each for each in (*_motions(robot, log), *_forces(robot, log)) if each.kind in ("still", "constant")]
    return [*_slow(log), *still]


def quantum(values: Array) -> float:
    """Return the quantisation step of a signal (N,), or 0 if there is none."""
    levels = np.unique(values)
    span = float(levels[-1] - levels[0])
    if len(levels) < 3 or len(levels) > 0.5 * len(values):
        return 0.0
    steps = np.diff(levels)
    steps = steps[steps > 1e-9 * span]
    step = float(steps.min())
    step = float(np.mean(steps[steps < 1.5 * step]))
    ratios = steps / step
    return step if np.abs(ratios - np.round(ratios)).max() < 0.1 else 0.0


def _missing(log: Log) -> Iterator[LogFinding]:
    complete = log.complete
    if not complete.all():
        k, count = int(np.argmin(complete)), int(np.count_nonzero(~complete))
        cells = [cell for name in ("q", "tau") for cell in zip(log.heads[name], log.measured[name][k], strict=True)]
        heads = [f"column {head!r}" for head, x in cells if not np.isfinite(x)]
        message = f"{count} of {len(log)} rows have missing numbers, first in {', '.join([log.line(k), *heads[:1]])}"
        fix = 'complete the rows, or write missing = "skip" in the map'
        yield LogFinding("missing", log.source, message, fix, count)


def _times(log: Log) -> Iterator[LogFinding]:
    times = log.times[np.isfinite(log.times)]
    back = np.flatnonzero(np.diff(times) <= 0)
    if back.size:
        k = int(back[0]) + 1
        message = f"the time does not increase at {back.size} samples, first in {log.line(k)}: "
        message += f"{times[k]:.9g} s after {times[k - 1]:.9g} s"
        fix = "sort the lines, split the file at a second run, or set the rate if the time stamps are too coarse"
        yield LogFinding("time", log.source, message, fix, back.size)
    if len(times) < 3:
        return
    yield from _slow(log)
    sampling = sampling_of(times)
    steps = np.diff(times)[sampling.gaps - 1] if sampling.gaps.size else np.empty(0)
    if (steps > 0).any():
        k = int(sampling.gaps[int(np.argmax(steps))])
        message = f"{np.count_nonzero(steps > 0)} gaps, the longest of {steps.max():.4g} s before {log.line(k)} (usual "
        message = f"{message}step: {sampling.step:.4g} s)"
        fix = "none needed; each segment is differentiated separately"
        yield LogFinding("gap", log.source, message, fix, float(steps.max()))


def _slow(log: Log) -> Iterator[LogFinding]:
    step = float(np.median(np.diff(log.times[np.isfinite(log.times)])))
    if step >= MAX_TIME_STEP and (log.v is None or log.a is None):
        unit = next((unit for unit, longest in TIME_UNITS.items() if step < longest), "ns")
        message = f"the usual step is {step:.4g} s: is the time in {unit}?"
        fix = f'write units = {{time = "{unit}"}} in the map, or the header "time [{unit}]", unless it is this slow'
        yield LogFinding("time", log.source, message, fix, step)


def _motions(robot: MeasuredRobot, log: Log) -> Iterator[LogFinding]:
    for j, (name, unit) in enumerate(zip(robot.position_names, units(robot)[0], strict=True)):
        x, place = log.q[:, j], f"{log.source}: q of {name!r}"
        span, step = float(np.ptp(x)), quantum(x)
        if span <= max(MIN_SPAN, MIN_ENCODER_STEPS * step):
            message = f"it spans {span:.3g} {unit} in {len(x)} samples: the joint never moves"
            fix = "move this joint too, or its parameters cannot be identified"
            yield LogFinding("still", place, message, fix, span)
            continue
        yield from _spikes(log, x, step, place, unit)
        yield from _stuck_position(log, x, step, place, unit)


def _spikes(log: Log, x: Array, step: float, place: str, unit: str) -> Iterator[LogFinding]:
    steps = np.diff(log.times)
    even = (steps > 0) & (steps < 1.5 * np.median(steps))  # both steps next to a sample are typical
    bend = np.where(even[:-1] & even[1:], x[1:-1] - 0.5 * (x[:-2] + x[2:]), 0.0)
    size = np.abs(bend)
    # The thresholds account for noise, motion, encoder step and rounding.
    usual = max(float(np.median(size)), float(np.quantile(size, 0.98)) / 4, step, 1e-12 * float(np.ptp(x)))
    alone = size > SPIKE_RATIO * usual
    # Next to a single wrong sample, both neighbours have half of its second difference, with opposite sign.
    alone[0] = alone[-1] = False
    for side in (bend[:-2], bend[2:]):
        alone[1:-1] &= side * np.sign(bend[1:-1]) < -0.3 * size[1:-1]
    if alone.any():
        k = int(np.argmax(np.where(alone, np.abs(bend), 0.0))) + 1
        largest = abs(float(bend[k - 1]))
        message = f"{np.count_nonzero(alone)} single samples stand out, "
        message += f"the largest by {largest:.3g} {unit} in {log.line(k)}"
        yield LogFinding("spike", place, message, "remove or correct these rows", largest)


def _stuck_position(log: Log, x: Array, step: float, place: str, unit: str) -> Iterator[LogFinding]:
    changes = np.abs(np.diff(x))
    first, count = _longest_run(changes == 0)
    usual = max(float(np.quantile(changes, 0.99)), 2 * step)
    end, usual_step = first + count, 1.5 * float(np.median(np.diff(log.times)))
    if not MAX_HELD_SAMPLES <= count < len(changes) - first:
        return
    if changes[end] > JUMP_RATIO * usual and np.diff(log.times)[end] < usual_step:
        message = f"it stays {x[first]:.6g} {unit} from {log.line(first)} to {log.line(end)}, and then jumps by "
        message += f"{changes[end]:.3g} {unit}"
        yield LogFinding("stuck", place, message, "remove these rows, because the encoder or logger was stuck", count)


def _forces(robot: MeasuredRobot, log: Log) -> Iterator[LogFinding]:
    base = free_coordinates(robot)
    speed = np.abs(np.gradient(log.q, axis=0)) if log.q.shape == log.tau.shape else None
    for j, name in enumerate(robot.coordinate_names):
        if log.saturated[:, j].all() or j in base:  # not measured, or without a drive
            continue
        x, place = log.measured["tau"][:, j], f"{log.source}: force of {name!r} (column {log.heads['tau'][j]!r})"
        span = float(np.ptp(x))
        if span <= 1e-9 * max(1.0, abs(float(x[0]))):
            message = f"all {len(x)} samples from {log.line(0)} to {log.line(len(x) - 1)} are {x[0]:.6g}"
            fix = "check the column; a constant force carries no information"
            yield LogFinding("constant", place, message, fix, float(x[0]))
            continue
        moving = np.ones(len(x), dtype=bool) if speed is None else (speed > 0.02 * speed.max(axis=0)).any(axis=1)
        yield from _saturation(log, x, moving, place)
        fast = moving if speed is None else speed[:, j] > 0.1 * speed[:, j].max()
        first, count = _longest_run((np.diff(x) == 0) & fast[1:])
        if count >= MAX_HELD_SAMPLES and len(np.unique(x)) > 50 and x.min() < x[first] < x.max():
            message = f"it stays {x[first]:.6g} from {log.line(first)} to {log.line(first + count)} while the joint "
            message += "moves"
            yield LogFinding("stuck", place, message, "remove these rows, or log the forces more often", count)


def _saturation(log: Log, x: Array, moving: Flags, place: str) -> Iterator[LogFinding]:
    for side, end in (("largest", float(x.max())), ("smallest", float(x.min()))):
        at = (np.abs(x - end) <= 1e-9 * float(np.ptp(x))) & moving
        count = int(np.count_nonzero(at))
        first, run = _longest_run(at)
        near = np.count_nonzero(moving & ~at & (np.abs(x - end) < 0.01 * float(np.ptp(x))))
        if run >= SATURATION_RUN and count >= SATURATION_COUNT and count > SATURATION_RATIO * max(1.0, near / 10):
            message = f"{count} samples are exactly its {side} value {end:.6g}, "
            message += f"{run} of them from {log.line(first)} on: the drive saturates"
            fix = f"write saturation = {abs(end):.6g} for it in the map, so that these forces get weight 0"
            yield LogFinding("saturation", place, message, fix, end)


def _limits(robot: MeasuredRobot, log: Log) -> Iterator[LogFinding]:
    for j, (name, unit) in enumerate(zip(robot.position_names, units(robot)[0], strict=True)):
        low, high = float(robot.lower[j]), float(robot.upper[j])
        least, highest = float(log.q[:, j].min()), float(log.q[:, j].max())
        room = (LIMIT_RATIO - 1) * (high - low) / 2
        if math.isfinite(room) and room > 0 and (least < low - room or highest > high + room):
            message = f"it goes from {least:.4g} to {highest:.4g} {unit}, "
            message += f"but the limits are {low:.4g} and {high:.4g} {unit}"
            fix = "check the unit, gear side (drives.side), offsets and column order, or correct the limits"
            yield LogFinding("limit", f"{log.source}: q of {name!r}", message, fix, max(low - least, highest - high))
    largest = np.abs(log.tau - environment_forces(robot, log.q, log.external)).max(axis=0)  # of the drives
    for j, (name, kind) in enumerate(zip(robot.coordinate_names, units(robot)[1], strict=True)):
        limit = float(robot.effort_limit[j])
        if math.isfinite(limit) and limit > 0 and largest[j] > LIMIT_RATIO * limit:
            force = FORCES[kind]
            message = f"it reaches {largest[j]:.4g} {force}, but the drive limit is {limit:.4g} {force}"
            fix = "check the unit, gear side (drives.side) and torque constants, or correct the limit"
            yield LogFinding("limit", f"{log.source}: force of {name!r}", message, fix, float(largest[j]) / limit)


def _longest_run(flags: Flags) -> tuple[int, int]:
    """Return the first index and the length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    if not edges.size:
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    k = int(np.argmax(lengths))
    return int(edges[2 * k]), int(lengths[k])


MIN_CORRELATION = 0.9  # minimum correlation between a signal and the derivative of another
SWAP_RATIO = 0.8  # fraction of the correlation with another coordinate below which columns are swapped
KNOWN_FACTORS = {
    57.29578: "degrees",
    0.01745329: "radians, and the positions in degrees",
    9.549297: "revolutions per minute",
    0.1591549: "revolutions",
    1000.0: "millimetres",
}
FACTOR_TOLERANCE = 0.15  # relative deviation from a known factor
SCALE_TOLERANCE = 0.1  # relative deviation from 1 that is reported
MIN_DELAY_STEPS = 1.5  # minimum reported delay, in steps
MAX_DELAY_STEPS = 40  # maximum delay, in steps


def rate_findings(
    robot: MeasuredRobot, source: str, what: str, measured: Array, derived: Array, step: float
) -> Iterator[LogFinding]:
    """Yield findings on ``measured`` velocities or accelerations (T, n); ``derived`` ones are computed from positions.

    ``what`` is "v" or "a", and ``step`` is the sampling period in s.
    """
    x, y = measured - measured.mean(axis=0), derived - derived.mean(axis=0)
    sizes = np.outer(np.linalg.norm(x, axis=0), np.linalg.norm(y, axis=0))
    alike = (x.T @ y) / np.where(sizes > 0, sizes, 1.0)  # correlation of measured column i with derived coordinate j
    rate = {"v": "velocities", "a": "accelerations"}[what]
    for j, name in enumerate(robot.coordinate_names):
        place, own_correlation = f"{source}: {what} of {name!r}", float(alike[j, j])
        other = int(np.argmax(np.abs(alike[j])))
        if not sizes[j, j] > 0:
            continue
        if abs(own_correlation) < SWAP_RATIO * abs(alike[j, other]) and abs(alike[j, other]) > MIN_CORRELATION:
            message = f"its correlation with the derivative of {robot.coordinate_names[other]!r} is "
            message += f"{alike[j, other]:.3f}"
            message = f"{message}, and {own_correlation:.3f} with its own"
            fix = f"correct the order of the columns of {what}"
            yield LogFinding("swapped", place, message, fix, float(alike[j, other]))
            continue
        late, best = _delay(x[:, j], y[:, j])
        if abs(best) < MIN_CORRELATION:
            message = f"its correlation with the derivative of the positions is {own_correlation:.3f}"
            fix = f"check the column, or omit the columns of {what}: {rate} are then derived from positions"
            yield LogFinding("rate", place, message, fix, own_correlation)
            continue
        if best < 0:
            message = f"its correlation with the derivative of the positions is {best:.3f}"
            yield LogFinding("sign", place, message, f"write scale = {{{what} = ...}} with -1 for it in the map", best)
            continue
        factor = float(x[:, j] @ x[:, j]) ** 0.5 / float(y[:, j] @ y[:, j]) ** 0.5
        if abs(factor - 1) > SCALE_TOLERANCE:
            unit = next(
                (word for value, word in KNOWN_FACTORS.items() if abs(factor / value - 1) < FACTOR_TOLERANCE), ""
            )
            guess = f": are the {rate} in {unit}?" if unit else ""
            message = f"it is {factor:.4g} times the derivative of the positions{guess}"
            yield LogFinding("rate", place, message, f"write units = {{{what} = ...}} in the map, or a scale", factor)
        elif abs(late) >= MIN_DELAY_STEPS:
            message = f"it is {1e3 * late * step:.3g} ms later than the derivative of the positions, "
            message += "as after a drive filter"
            fix = f"omit the columns of {what}: {rate} are then derived from positions"
            yield LogFinding("delay", place, message, fix, late * step)


def _delay(x: Array, y: Array) -> tuple[float, float]:
    """Return the delay of x (T,) relative to y (T,), in steps, with the largest correlation, and the correlation."""
    count = min(MAX_DELAY_STEPS, len(x) // 10)
    inside = slice(count, len(x) - count)
    kept, shifts = x[inside], []
    for shift in range(-count, count + 1):
        other = y[inside.start - shift : inside.stop - shift]
        shifts.append(float(kept @ other) / max(float(np.linalg.norm(kept) * np.linalg.norm(other)), 1e-300))
    sizes = np.abs(shifts)
    k = int(np.argmax(sizes))
    part = 0.0
    if 0 < k < len(sizes) - 1:
        bend = sizes[k - 1] - 2 * sizes[k] + sizes[k + 1]
        part = 0.5 * float(sizes[k - 1] - sizes[k + 1]) / float(bend) if bend < 0 else 0.0
    return k + part - count, shifts[k]


MAX_ENCODER_NOISE = 0.1  # maximum encoder noise as a fraction of the accelerations


def motion_findings(robot: MeasuredRobot, log: Log, prepared: Prepared) -> list[LogFinding]:
    """Return findings on units, encoder steps and rates of a ``prepared`` log."""
    return [*_degrees(robot, log, prepared), *_rates(robot, log, prepared), *_coarse(robot, log, prepared)]


def _degrees(robot: MeasuredRobot, log: Log, prepared: Prepared) -> Iterator[LogFinding]:
    """Yield a finding if the robot limits suggest positions or velocities in degrees."""
    q, v = prepared.samples.q, prepared.samples.v
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            check_radians(robot, q, v)
            texts = [str(warning.message) for warning in caught]
        except ModelError as error:
            texts = [str(error)]
    for text in texts[:1]:
        what, _, _ = text.removeprefix(f"{robot.name}: ").partition("; ")
        fix = 'write units = {q = "deg"} in the map, or correct the limits of the robot'
        yield LogFinding("degrees", log.source, what, fix, float(np.abs(q).max()))


def _rates(robot: MeasuredRobot, log: Log, prepared: Prepared) -> Iterator[LogFinding]:
    """Yield findings on measured velocities and accelerations."""
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


def _coarse(robot: MeasuredRobot, log: Log, prepared: Prepared) -> Iterator[LogFinding]:
    """Yield findings on encoders whose steps cause noisy accelerations."""
    if prepared.cutoff is None or robot.nq != robot.nv:
        return
    f, h = prepared.cutoff, prepared.segments[0].step
    size = np.sqrt(np.mean(prepared.samples.a**2, axis=0))
    for j, name in enumerate(robot.position_names):
        step = quantum(log.q[:, j])
        # The noise is white noise of step / sqrt(12), differentiated twice up to the cutoff.
        noise = step / math.sqrt(12) * (2 * math.pi * f) ** 2 * math.sqrt(2 * f * h / 5)
        if size[j] > 0 and noise > MAX_ENCODER_NOISE * size[j]:
            percent = 100 * noise / size[j]
            message = f"the encoder steps of {step:.3g} cause noise of {percent:.3g} % in the accelerations at {f:.3g} "
            message += "Hz"
            fix = "move faster or more, log more often, or lower the cutoff"
            yield LogFinding("quantisation", f"{log.source}: q of {name!r}", message, fix, step)


# Measurements in degrees instead of radians, detected by joint limits or by many turns.

ERROR_RATIO, WARNING_RATIO = 3.0, 2.0  # multiples of the largest limit that cause an error or a warning
MIN_ANGLE = 2 * math.pi  # minimum magnitude of suspected degrees
MAX_TURNS = 3.0  # largest span of a joint without limits, in turns, without a warning
DEGREE = math.pi / 180


def check_radians(robot: MeasuredRobot, q: Array, v: Array) -> None:
    """Raise ModelError if angles q (N, nq) or rates v (N, nv) are in degrees, and warn if they may be.

    The error is raised if a revolute joint exceeds three times its limits and one turn, but all joints would be within
    their limits if the numbers were degrees. An angle beyond twice its limits causes a warning. A joint without limits
    causes a warning if it spans more than three turns but would span at most one turn if the numbers were degrees.
    """
    angles = [  # angles of joints with one coordinate, and of their motors
        (at.q.start, at.v.start)
        for joint, at in zip(robot.joints, robot.coordinates, strict=True)
        if joint.nv == 1 and joint.nq == 1 and joint.kind.turns[0] and not joint.follows
    ]
    if not angles:
        return
    positions, rates = map(list, zip(*angles, strict=True))
    low, high = robot.lower[positions], robot.upper[positions]
    for name, values, least, most in (
        ("q", q[:, positions], low, high),
        ("v", v[:, rates], -robot.velocity_limit[rates], robot.velocity_limit[rates]),
    ):
        _check_limits(robot, name, [robot.coordinate_names[k] for k in rates], values, (least, most))
    free = ~np.isfinite(low) & ~np.isfinite(high)
    span = np.where(free, np.ptp(q[:, positions], axis=0), 0.0) / (2 * math.pi)
    if span.max(initial=0.0) > MAX_TURNS and (DEGREE * span <= 1).all():
        worst = int(np.argmax(span))
        message = f"q of {robot.position_names[positions[worst]]!r} spans {span[worst]:.3g} turns: "
        message += "are the numbers degrees?"
        fix = 'if so, convert positions and rates, np.radians(q), or write units = {q = "deg"} in the map of a log; '
        warn(message, where=robot.name, allowed="rad", fix=f"{fix}if not, set joint limits that allow these turns")


def _check_limits(
    robot: MeasuredRobot, what: str, names: list[str], values: Array, limits: tuple[Array, Array]
) -> None:
    least, allowed_limits = limits
    ends = values.min(axis=0), values.max(axis=0)
    largest = np.maximum(np.abs(least), np.abs(allowed_limits))
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(np.isfinite(largest) & (largest > 0), np.abs(values).max(axis=0) / largest, 0.0)
    outside = (ends[0] < least) | (ends[1] > allowed_limits)
    inside = bool(((DEGREE * ends[0] >= least) & (DEGREE * ends[1] <= allowed_limits)).all())
    worst = int(np.argmax(np.where(outside, reach, -1.0)))
    if not inside or not reach[worst] > WARNING_RATIO or not np.abs(values[:, worst]).max() > MIN_ANGLE:
        return
    unit, degrees = ("rad", "deg") if what == "q" else ("rad/s", "deg/s")
    size = float(np.abs(values[:, worst]).max())
    found = f"{what} of {names[worst]!r} reaches {size:.4g}, but its limit is {largest[worst]:.4g} {unit}"
    fix = f'convert them, np.radians({what}), with all rates; in the map of a log, units = {{{what} = "{degrees}"}}'
    fix += "; or correct the limits of the robot"
    if reach[worst] > ERROR_RATIO:
        message = f"{found}; all are within their limits if the numbers are degrees"
        raise ModelError(message, where=robot.name, allowed=unit, fix=fix)
    warn(f"{found}: are the numbers degrees?", where=robot.name, allowed=unit, fix=fix)
