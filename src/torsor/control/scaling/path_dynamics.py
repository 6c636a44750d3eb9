"""Dynamics of a robot on a path q(s): forces and force rates as functions of the timing s(t).

With x = s'^2, u = s'' (time derivatives) and w = du/ds, so that dx/ds = 2 u,

    tau  = a u + b x + c + d sqrt(x)          a = M q',  b = M q'' + C q',  c = gravity and springs,  d = D q'
    tau' = sqrt(x) (a w + (a_s + 2 b) u + b_s x + c_s) + d u + d_s x

where primes of q and the index s denote derivatives with respect to s (Bobrow, Dubowsky and Gibson 1985; for the rate,
see Guarino Lo Bianco 2009).
"""

import casadi as ca
import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import arrays
from torsor.base.errors import ModelError
from torsor.compiler import compile
from torsor.robot.robot import Robot

MIN_RELATIVE_SLOPE = 1e-9  # |q'| relative to a velocity bound: slower joints count as being at rest on the path


def coefficients(robot: Robot) -> ca.Function:
    """Return (q, q', q'', q''', torque bounds, velocity bounds) -> (coefficients / torque bounds, x, hold).

    The coefficients (6 nv) are a, b, c, a_s, b_s, c_s or, with viscous friction (8 nv), a, b, c, d, a_s, b_s, c_s, d_s.
    x is the value at which the first velocity reaches its bound. ``hold`` is the largest fraction of a torque bound
    that is required at rest.
    """
    n = robot.nv
    q, d1, d2, d3, torque, velocity = (ca.SX.sym(name, n) for name in ("q", "d1", "d2", "d3", "torque", "velocity"))
    forces, friction, none = robot.function("inverse_dynamics"), robot.function("friction_force"), ca.SX.zeros(n, 1)
    c, d = forces(q, none, none), friction(d1)
    parts = [forces(q, none, d1) - c, forces(q, d1, d2) - c - d, c, *([d] if is_damped(robot) else [])]
    slopes = [ca.jtimes(part, ca.vertcat(q, d1, d2), ca.vertcat(d1, d2, d3)) for part in parts]
    scaled = ca.vertcat(*(term / torque for term in (*parts, *slopes)))
    fastest = ca.mmin(1 / ca.fmax(ca.fabs(d1) / velocity, MIN_RELATIVE_SLOPE) ** 2)
    # The last term is zero for finite numbers, and NaN or infinite otherwise.
    hold = ca.mmax(ca.fabs(c / torque)) + 1e-300 * ca.sum1(ca.fabs(ca.vertcat(q, d1, d2, d3)))
    result = ca.densify(ca.cse(ca.vertcat(scaled, fastest, hold)))  # one array, because calls with several are slower
    inputs, names = [q, d1, d2, d3, torque, velocity], ["q", "d1", "d2", "d3", "torque", "velocity"]
    return ca.Function("path_dynamics", inputs, [result], names, ["coefficients"])


def is_damped(robot: Robot) -> bool:
    """Return whether the robot has viscous friction or dampers; raise ModelError if it has Coulomb friction."""
    at_one, at_two = (np.asarray(robot.friction_force(np.full(robot.nv, speed))) for speed in (1.0, 2.0))
    dry = np.flatnonzero(np.abs(at_two - 2 * at_one) > 1e-12 * np.abs(at_one))
    if len(dry):
        message = f"{robot.coordinate_names[dry[0]]!r} has friction that is not viscous, such as Coulomb friction"
        fix = "use robot.without_friction() and subtract the friction from the torque bounds"
        raise ModelError(message, where=f"{robot.name}: online scaling", allowed="viscous friction", fix=fix)
    return bool(at_one.any())


def loads(
    parts: list[ca.SX], ratio: ca.SX, w: ca.SX, u: ca.SX, x: ca.SX
) -> tuple[ca.SX, ca.SX, list[ca.SX], list[ca.SX]]:
    """Return torques and torque rates relative to their bounds (nv each), and their derivatives by w, u and x.

    ``ratio`` (nv) is the torque bound divided by the torque-rate bound.
    """
    half = len(parts) // 2
    (a, b, c, *damping), (a_s, b_s, c_s, *damping_s) = parts[:half], parts[half:]
    root, mixed = ca.sqrt(x), a_s + 2 * b
    torque, slope = a * u + b * x + c, a * w + mixed * u + b_s * x + c_s
    rate, by_rate = ratio * root * slope, [ratio * root * a, ratio * root * mixed]
    by_rate.append(ratio * (root * b_s + slope / (2 * root)))
    by_torque = [ca.SX.zeros(*a.shape), a, b]
    for d, d_s in zip(damping, damping_s, strict=True):
        torque, by_torque[2] = torque + d * root, b + d / (2 * root)
        rate, by_rate[1] = rate + ratio * (d * u + d_s * x), by_rate[1] + ratio * d
        by_rate[2] = by_rate[2] + ratio * d_s
    return torque, rate, by_torque, by_rate


def _on_path(before: ca.SX, after: ca.SX, part: ca.SX, h: ca.SX) -> list[ca.SX]:
    """Return q and its first three derivatives (n each) at a fraction of an interval between two samples (4, n).

    The interval has length h. q is the polynomial of degree 7 that matches q and its three derivatives at both samples.
    """
    n, powers = before.size2(), np.arange(8)
    at_ends = np.zeros((8, 8))  # maps power coefficients to derivatives at 0 and 1
    for order in range(4):
        factor = np.prod([powers - k for k in range(order)], axis=0) if order else np.ones(8)
        at_ends[order, order], at_ends[4 + order] = factor[order], factor
    scales = ca.vertcat(*(h**order for order in range(4)))
    # Positions are relative to the first one, because accelerations are small differences over h^2.
    from_first = [sample - ca.vertcat(before[0, :], ca.SX.zeros(3, n)) for sample in (before, after)]
    ends = ca.vertcat(*(sample * ca.repmat(scales, 1, n) for sample in from_first))
    curve = ca.DM((6 * np.linalg.inv(at_ends)).round() / 6) @ ends  # the inverse consists of multiples of 1 / 6
    basis, result = ca.horzcat(*(part**k for k in range(8))), []
    for order in range(4):
        result.append((basis @ curve).T / h**order)
        basis = ca.jtimes(basis, part, 1)
    result[0] += before[0, :].T
    return result


def interpolation(n: int) -> ca.Function:
    """Return the function (samples before, after (4, n), interval fraction, spacing, s', s'') -> (q, v, a)."""
    part, h, rate, acceleration = (ca.SX.sym(name) for name in ("part", "h", "rate", "acceleration"))
    before, after = ca.SX.sym("before", 4, n), ca.SX.sym("after", 4, n)
    q, d1, d2, _ = _on_path(before, after, part, h)
    result = ca.vertcat(q, d1 * rate, d2 * rate**2 + d1 * acceleration)
    inputs = [before, after, part, h, rate, acceleration]
    names = ["before", "after", "part", "h", "rate", "acceleration"]
    return ca.Function("on_path", inputs, [ca.cse(result)], names, ["motion"])


def refinement(robot: Robot) -> ca.Function:
    """Return (two samples (8, nv), interval fraction, h, torque and velocity bounds) -> ``coefficients``."""
    n = robot.nv
    ends, part, fixed = ca.SX.sym("ends", 8, n), ca.SX.sym("part"), ca.SX.sym("fixed", 1 + 2 * n)
    h, torque, velocity = ca.vertsplit(fixed, [0, 1, 1 + n, 1 + 2 * n])
    result = coefficients(robot)(*_on_path(ends[:4, :], ends[4:, :], part, h), torque, velocity)
    names = ["ends", "part", "fixed"]
    return ca.Function("refinement", [ends, part, fixed], [ca.cse(result)], names, ["coefficients"])


# The known samples of a path: a ring buffer with the dynamics at and between the samples.

CHECKED_FRACTIONS = 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875  # interval fractions at which loads are checked
# Eight states fill two or four SIMD vectors.
_MIDDLE_INDEX, _FRACTIONS = CHECKED_FRACTIONS.index(0.5), np.array([*CHECKED_FRACTIONS, 1.0])


class Samples:
    """The last ``capacity`` samples of a path, ``spacing`` apart.

    Sample k is stored in row k % capacity of each array and again ``capacity`` rows later, so that the rows of a window
    form one view. ``near`` contains the coefficients at a sample, in the middle of the next interval and at the next
    sample. ``inner`` contains the coefficients at the checked points of the interval, each with the x at which a
    velocity reaches its bound. ``fastest`` is the largest x in the interval, and ``tight`` scales its loads.
    """

    def __init__(
        self, robot: Robot, spacing: float, torque: Array, velocity: Array, speed: float, margin: float, capacity: int
    ):
        n = robot.nv
        self.robot, self.spacing, self.capacity = robot, spacing, capacity
        self.where = f"{robot.name}: online scaling"
        self._torque, self._velocity, self._margin = torque, velocity, margin
        self._most, self._slower, self._tightness = speed**2, (1 - margin) ** 2, 1 / (1 - margin)
        self._fixed = np.array([spacing, *torque, *velocity])
        traced = coefficients(robot)
        self.width = width = traced.size1_out(0) - 2
        self._coefficients = compile(traced, inputs=6 * [(n,)], outputs=[(width + 2,)])
        self._refinement = compile(refinement(robot), inputs=[(8, n), (), (1 + 2 * n,)], outputs=[(width + 2,)])
        shapes = [*2 * [(4, n)], *4 * [()]]
        self._interpolation = compile(interpolation(n), inputs=shapes, outputs=[(3 * n,)])
        self._given = np.zeros((2 * capacity, 4, n))
        strides = self._given.strides
        self._pairs = as_strided(self._given, (2 * capacity - 1, 8, n), strides, writeable=False)
        data = np.zeros((2 * capacity, 2 * width))  # coefficients at the samples and in the middle of intervals
        self._at, self._middle = data[:, :width], data[:, width:]
        self.near = as_strided(data, (2 * capacity - 1, 3 * width), data.strides, writeable=False)
        self._between = np.zeros((2 * capacity, len(_FRACTIONS), width + 2))
        self.inner = self._between.reshape(2 * capacity, -1)
        self.fastest, self.tight = np.zeros(2 * capacity), np.zeros(2 * capacity)
        self.fed, self._largest = 0, 0.0  # the latter: x at which a velocity reaches its bound, at the last sample

    def add(self, *sample: ArrayLike) -> None:
        """Add a sample: q and its first three derivatives with respect to s, each (nv)."""
        row, before, turn = self.fed % self.capacity, (self.fed - 1) % self.capacity, self.capacity
        stored = self._given[row]
        try:
            stored[0], stored[1], stored[2], stored[3] = sample
        except (ValueError, TypeError):
            self._explain(sample)
            raise
        self._given[row + turn] = stored
        if self.fed == 0:
            blocks = self._coefficients(*stored, self._torque, self._velocity)[None]
        else:
            blocks = self._refinement(self._pairs[before], _FRACTIONS, self._fixed)
        last = blocks[-1]
        if not last[-1] < 1 - self._margin:  # also for NaN
            self._explain(sample)
        self._at[row] = self._at[row + turn] = last[:-2]
        largest = blocks[:, -2].tolist()
        if self.fed > 0:
            self._between[before] = self._between[before + turn] = blocks
            self._middle[before] = self._middle[before + turn] = blocks[_MIDDLE_INDEX, :-2]
            fastest = min(self._slower * min(self._largest, *largest), self._most)
            self.fastest[before] = self.fastest[before + turn] = fastest
            self.tight[before] = self.tight[before + turn] = self._tightness
        self._largest = largest[-1]
        self.fed += 1

    def _explain(self, sample: tuple[ArrayLike, ...]) -> None:
        """Raise an error that states why a sample cannot be used."""
        n, where = self.robot.nv, f"{self.where}: sample {self.fed}"
        for value, name in zip(sample, ("q", "d1", "d2", "d3"), strict=True):
            array = arrays(value, (n,), where, name)
            if array.ndim > 1:
                raise ModelError(f"has shape {array.shape}", argument=name, where=where, allowed=f"({n},)")
        force = np.abs(self.robot.inverse_dynamics(sample[0], np.zeros(n), np.zeros(n)))
        worst = int(np.argmax(force / self._torque))
        message = f"standing still needs {force[worst]:.4g} at {self.robot.coordinate_names[worst]!r}"
        allowed = f"less than {self._torque[worst] * (1 - self._margin):.4g}, the torque bound minus the margin"
        fix = "use a larger bound or another path; no timing satisfies this bound"
        raise ModelError(message, where=where, allowed=allowed, fix=fix)

    def stands(self, k: int) -> bool:
        """Return whether q' is zero at a sample, so that the rate of s is arbitrary there."""
        return not self._given[k % self.capacity, 1:3].any()

    def tighten(self, m: int, tight: Array) -> None:
        """Store the load factors of the intervals from sample m onwards."""
        for turn in (0, self.capacity):
            rows = (np.arange(m, m + len(tight)) % self.capacity) + turn
            self.tight[rows] = tight

    def motion(self, k: int, part: float, rate: float, acceleration: float) -> Array:
        """Return q, v and a (3, nv) at a fraction of the interval after sample k."""
        ends = (self._given[index % self.capacity] for index in (k, k + 1))
        result: Array = self._interpolation(*ends, part, self.spacing, rate, acceleration)
        return result.reshape(3, self.robot.nv)
