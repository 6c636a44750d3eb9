"""Velocities and accelerations from sampled positions, by a zero-phase low-pass filter."""

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import frozen_array, number, one_of, real_array, whole_number
from torsor.base.errors import ModelError
from torsor.identification.closed_robot import MeasuredRobot

FILTER_ORDER = 6  # filter order; the gain is 1/2 at the cutoff and 1/4097 one octave above it


def uniform_step(times: Array, where: str) -> float:
    """Return the sampling period (s) of times (T,), which must be equally spaced and increasing."""
    step = float((times[-1] - times[0]) / (len(times) - 1)) if len(times) > 1 else 0.0
    if step <= 0 or np.abs(np.diff(times) - step).max() > 1e-3 * step:
        fix = "resample the positions at equal steps"
        raise ModelError("the times are not equally spaced", where=where, allowed="equal, positive steps", fix=fix)
    return step


def differentiate(
    t: ArrayLike,
    x: ArrayLike,
    cutoff: float,
    *,
    periodic: bool = False,
    order: int = FILTER_ORDER,
    ends: str = "cubic",
    where: str = "differentiate",
) -> tuple[Array, Array, Array]:
    """Return filtered samples and their first two derivatives (x, x', x''), each (T, n).

    ``t`` (T,) are equally spaced times in s, and ``x`` (T, n) are the samples. The filter has zero phase and the gain
    |H(f)| = 1 / (1 + (f / cutoff)^(2 order)), with ``cutoff`` in Hz. This is the gain of a Butterworth filter of this
    ``order`` that is applied forward and backward. Derivatives are exact in the frequency domain: X' = 2 pi i f H X.

    ``periodic`` samples cover one or more whole periods, without the first sample of the next period. Other samples are
    extended by point reflection at both ends, after subtraction of a cubic with the same values and curvatures there.
    With ``ends="straight"``, the line through the first and last sample is subtracted instead. Results within about 1 /
    cutoff of the ends are less accurate.

    Example:
        >>> t = np.arange(200) * 0.01
        >>> x, v, a = differentiate(t, np.sin(2 * np.pi * t)[:, None], cutoff=20.0, periodic=True)
        >>> bool(np.allclose(a, -(2 * np.pi) ** 2 * x))
        True
    """
    times = frozen_array(t, (np.size(t),), where, "t")
    samples = real_array(x, where, "samples")
    if samples.ndim != 2 or len(samples) != len(times) or len(times) < 8:
        allowed = f"(samples, n) with one sample per time, {len(times)}, and at least 8"
        raise ModelError(f"samples have shape {samples.shape}", where=where, allowed=allowed)
    samples = frozen_array(samples, samples.shape, where, "samples")
    step = uniform_step(times, where)
    order = whole_number(order, where, "order", most=12)
    cutoff = number(cutoff, where, "cutoff (Hz, up to half the sampling rate)", above=0.0, most=0.5 / step)
    elapsed = (times - times[0])[:, None]
    if periodic:
        trend = [np.zeros_like(samples)] * 3
    elif one_of(ends, ("cubic", "straight"), where, "ends") == "cubic":
        trend = _trend(elapsed, samples, cutoff)
    else:
        slope = (samples[-1] - samples[0]) / elapsed[-1]
        trend = [samples[0] + slope * elapsed, slope + 0.0 * elapsed, np.zeros_like(samples)]
    rest = samples - trend[0]
    # The remainder has zero value and curvature at the ends, so its point reflection is smooth.
    whole = rest if periodic else np.concatenate([rest, -rest[-2:0:-1]])
    f = np.fft.rfftfreq(len(whole), step)[:, None]
    spectrum = np.fft.rfft(whole, axis=0) / (1 + (f / cutoff) ** (2 * order))
    rates = (spectrum * (2j * np.pi * f) ** k for k in range(3))
    derivatives = (np.fft.irfft(rate, len(whole), axis=0)[: len(samples)] for rate in rates)
    x0, x1, x2 = (each + own for each, own in zip(derivatives, trend, strict=True))
    return x0, x1, x2


def _trend(t: Array, x: Array, cutoff: float) -> list[Array]:
    """Return a cubic over times t (T, 1) with the end values and curvatures of x (T, n), and its two derivatives.

    Value and curvature at an end come from a cubic fitted to the samples within 1 / cutoff of that end.
    """
    duration = float(t[-1, 0])
    near = t[:, 0] <= max(1 / cutoff, t[min(7, len(t) - 1), 0])
    powers = np.vander(t[near, 0], 4, increasing=True)
    (x0, _, half0, _), (x1, _, half1, _) = (np.linalg.lstsq(powers, side[near], rcond=None)[0] for side in (x, x[::-1]))
    cubic = (half1 - half0) / (3 * duration)
    slope = (x1 - x0) / duration - half0 * duration - cubic * duration**2
    return [
        x0 + slope * t + half0 * t**2 + cubic * t**3,
        slope + 2 * half0 * t + 3 * cubic * t**2,
        2 * half0 + 6 * cubic * t,
    ]


# Velocities and accelerations of sampled robot positions, including quaternions.
#
# Components of quaternions p are filtered and differentiated like other positions. The rotation is given by p / |p|,
# and
#
#     omega = 2 vec(p* p') / |p|^2,      omega' = 2 vec(p* p'') / |p|^2 - 2 omega (p . p') / |p|^2
#
# in the moved axes (p*: the conjugate; vec: the first three components). A free joint has v = R^T x' and
# a = R^T x'' - omega x v of its origin x.

NORM_TOLERANCE = 0.1  # accepted deviation of a quaternion norm from 1


def motion_of(
    robot: MeasuredRobot, t: ArrayLike, q: ArrayLike, cutoff: float, *, periodic: bool = False, where: str = "motion_of"
) -> tuple[Array, Array, Array]:
    """Return filtered positions (T, nq), velocities and accelerations (T, nv) from positions q (T, nq) at times t (T,).

    For the filter and the arguments, see ``differentiate``. Quaternions may change sign between samples.
    """
    positions = real_array(q, where, "q")
    if positions.ndim != 2 or positions.shape[1] != robot.nq:
        raise ModelError(f"has shape {positions.shape}", argument="q", where=where, allowed=f"(samples, {robot.nq})")
    positions = continuous(robot, positions)
    for four, _, _ in _turning(robot):
        _check_quaternions(positions[:, four], periodic, where)
    x, dx, ddx = differentiate(t, positions, cutoff, periodic=periodic, where=where)
    v, a = np.zeros((2, len(x), robot.nv))
    plain = [at for joint, at in zip(robot.joints, robot.coordinates, strict=True) if joint.nq == joint.nv]
    for at in (*plain, *robot.motor_coordinates.values()):
        v[:, at.v], a[:, at.v] = dx[:, at.q], ddx[:, at.q]
    for four, three, free in _turning(robot):
        p, dp, ddp = x[:, four], dx[:, four], ddx[:, four]
        square = np.sum(p * p, axis=1, keepdims=True)
        omega = 2 * _product(p, dp) / square
        v[:, three] = omega
        a[:, three] = 2 * (_product(p, ddp) - omega * np.sum(p * dp, axis=1, keepdims=True)) / square
        x[:, four] = p / np.sqrt(square)
        if free:
            place, angular = slice(four.start - 3, four.start), slice(three.stop, three.stop + 3)
            v[:, angular] = _back(x[:, four], dx[:, place])
            a[:, angular] = _back(x[:, four], ddx[:, place]) - np.cross(omega, v[:, angular])
    return x, v, a


def continuous(robot: MeasuredRobot, q: Array) -> Array:
    """Return positions q (T, nq) whose quaternions do not change sign between samples."""
    positions = q.copy()
    for four, _, _ in _turning(robot):
        flips = np.where(np.sum(q[1:, four] * q[:-1, four], axis=1) < 0, -1.0, 1.0)
        positions[:, four] *= np.concatenate([[1.0], np.cumprod(flips)])[: len(q), None]
    return positions + 0.0


def _turning(robot: MeasuredRobot) -> list[tuple[slice, slice, bool]]:
    """Return slices of quaternions in q and of their rates in v, and whether they belong to free joints."""
    return [
        (slice(at.q.stop - 4, at.q.stop), slice(at.v.start, at.v.start + 3), joint.nv == 6)
        for joint, at in zip(robot.joints, robot.coordinates, strict=True)
        if joint.nq != joint.nv
    ]


def _check_quaternions(p: Array, periodic: bool, where: str) -> None:
    """Raise ModelError if quaternions (T, 4) do not have norm 1, or change their sign after a period."""
    lengths = np.linalg.norm(p, axis=1)
    wrong = ~(np.abs(lengths - 1) < NORM_TOLERANCE)
    if wrong.any():
        k = int(np.argmax(wrong))
        message = f"the quaternion of sample {k} has norm {lengths[k]:.3g}"
        raise ModelError(message, where=where, allowed="1", fix="check the order of the columns: x, y, z, w")
    if periodic and float(p[-1] @ p[0]) < 0:
        fix = "pass two periods, or periodic=False"
        raise ModelError("a quaternion changes its sign after one period", where=where, fix=fix)


def _product(p: Array, r: Array) -> Array:
    """Return vec(p* r) (T, 3) of quaternions (x, y, z, w)."""
    return np.asarray(p[:, 3:] * r[:, :3] - r[:, 3:] * p[:, :3] - np.cross(p[:, :3], r[:, :3]))


def _back(p: Array, u: Array) -> Array:
    """Return R^T u (T, 3) for the rotations R of unit quaternions p (T, 4)."""
    across = np.cross(p[:, :3], u)
    return np.asarray(u - 2 * p[:, 3:] * across + 2 * np.cross(p[:, :3], across))
