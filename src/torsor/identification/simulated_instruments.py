"""Instruments from simulation: the simulated motion of the last estimate along the measured motion.

The controller of the real robot is unknown. It is replaced by a computed-torque controller with the bandwidth
w / (2 pi),

    tau = M0(q) (a_d + 2 w (v_d - v) + w^2 (q_d - q)) + h0(q, v)        M0, h0: first estimate
    M(q) a + h(q, v) = tau                                              M, h: last estimate

The reference (q_d, v_d, a_d) consists of the measured positions after a zero-phase filter with the same bandwidth. This
is the bandwidth at which the model, with any parameters, best explains the forces. The simulated motion therefore
contains neither force noise nor encoder noise above the bandwidth. Such noise causes the bias of least squares, because
acceleration noise grows with the square of the frequency. Estimation and simulation are repeated until convergence. If
the controller cannot stabilise an estimate, because its mass matrices are not positive definite, the estimate is
assumed to follow the reference exactly. In the original method of Janot, Vandanjon and Gautier (2014, IDIM-IV), the
controller is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.errors import ModelError, warn
from torsor.compiler import AnyKernel, compile
from torsor.identification.choice import Wanted, extended
from torsor.identification.closed_robot import ClosedRobot
from torsor.identification.differentiation import differentiate
from torsor.identification.drives import Term
from torsor.identification.estimation import Equations, Fit, Method, estimate
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.logs.sampling import Segment, linear, longest_of
from torsor.identification.measurements import Measurements
from torsor.identification.model import Filter, Model
from torsor.robot.robot import Robot

# The equations of motion of an estimate: a robot with changed base parameters, which need not be physical.
#
# tau = M(q) a + h(q, v) = inverse dynamics of the prior robot + Y(q, v, a) d        d: change of the base parameters


def symbolic_forces(robot: Robot, columns: Sequence[int]) -> tuple[list[ca.SX], ca.SX]:
    """Return symbols q, v, a (n,) and d (b,), and the forces (n,) with the parameters in ``columns`` changed by d."""
    q, v, a = (ca.SX.sym(name, robot.nv) for name in ("q", "v", "a"))
    d = ca.SX.sym("d", len(columns))
    tau = robot.function("inverse_dynamics")(q, v, a)
    return [q, v, a, d], ca.cse(tau + robot.function("regressor")(q, v, a)[:, list(columns)] @ d)


def estimated_dynamics(robot: Robot, columns: Sequence[int]) -> AnyKernel:
    """Return the function (q, v, d) -> (h, M): bias forces (W, n) and mass matrices (W, n, n) at states q, v (W, n).

    ``d`` (b,) is the change of the parameters in the ``columns`` (b) of the regressor.
    """
    n, b = robot.nv, len(columns)
    (q, v, a, d), tau = symbolic_forces(robot, columns)
    expressions = ca.cse([ca.substitute(tau, a, ca.SX.zeros(n)), ca.jacobian(tau, a)])
    function = ca.Function("estimated_dynamics", [q, v, d], [ca.densify(expression) for expression in expressions])
    return compile(function, inputs=[(n,), (n,), (b,)], outputs=[(n,), (n, n)])


CANDIDATES, BANDWIDTH_RATIO = 8, 0.6  # number of compared bandwidths, and their ratio
POWER_FRACTION = 0.9999  # fraction of the acceleration power that defines the band of the measurement filter
MIN_PERIODS = 8  # minimum number of periods of the lowest bandwidth in the longest part
MAX_STEP_FRACTION = 0.15  # maximum simulation step as a fraction of 1 / w
WINDOW_STEPS = 64  # steps per window; windows are simulated in parallel
SETTLING_STEPS = 40  # initial steps of a window that are discarded
TRACKING_TOLERANCE = 0.2  # maximum tracking error as a fraction of the joint span
MAX_SIMULATIONS = 8  # maximum number of simulations; two or three are typical
ESTIMATE_TOLERANCE = 0.1  # maximum change of an unknown at convergence, in standard deviations
Extended = tuple[Equations, tuple[Term, ...], dict[str, dict[str, float]]]


@dataclass(frozen=True, eq=False)
class Tracking:
    """A simulated robot that tracks measurements: ``reference`` q, v, a (3, N, n) with a ``bandwidth`` (Hz).

    ``parts`` are ranges with equal steps of ``step`` s. ``first`` (b,) are the base parameters of the controller.
    """

    model: Model
    first: Array
    parts: list[slice]
    step: float
    bandwidth: float
    reference: Array

    @classmethod
    def of(cls, model: Model, data: Measurements, parts: list[slice], first: Array) -> "Tracking":
        """Return the tracking simulation of measurements with the base parameters ``first`` (b,) in its controller."""
        robot, where = model.robot, model.robot.name
        if robot.nq != robot.nv or isinstance(robot, ClosedRobot) or model.external is not None:
            allowed = "robots with nq = nv, no loops and no environment wrenches"
            fix = "pass the motion without noise: `instruments=(q, v, a)`"
            message = "simulated instruments are not supported for this robot"
            raise ModelError(message, where=where, allowed=allowed, fix=fix)
        if data.times is None:
            fix = "pass the times of the samples: Measurements(..., times=t)"
            raise ModelError("simulated instruments need the times of the samples", where=where, fix=fix)
        none = np.zeros(data.tau.shape, dtype=bool)
        longest = longest_of([Segment(data.times[p], data.q[p], None, None, data.tau[p], none[p]) for p in parts])
        step = longest.step
        if not step > 0 or len(longest.q) < 8 * MIN_PERIODS:
            message = f"there are {len(longest.q)} samples at equal steps to simulate"
            raise ModelError(message, where=where, allowed=f"{8 * MIN_PERIODS} or more", fix="measure longer")
        bandwidth = _bandwidth(robot, longest)
        reference = np.zeros((3, *data.v.shape))
        for part in parts:
            if part.stop - part.start >= 8:
                reference[:, part] = differentiate(data.times[part], data.q[part], bandwidth, where=where)
        return cls(model, first, parts, step, bandwidth, reference)

    @cached_property
    def _dynamics(self) -> AnyKernel:
        robot = self.model.robot
        assert isinstance(robot, Robot)  # ``of`` raises ModelError for other robots
        return estimated_dynamics(robot, self.model.base.columns.tolist())

    @cached_property
    def _inside(self) -> Flags:
        """Mask (N,) of samples farther than 1 / bandwidth from the ends, where the reference is accurate."""
        ends, inside = int(np.ceil(1 / (self.bandwidth * self.step))), np.zeros(len(self.reference[0]), dtype=bool)
        for part in self.parts:
            inside[part.start + ends : max(part.start + ends, part.stop - ends)] = True
        return inside

    @property
    def _every(self) -> int:
        """Decimation factor of the simulation; samples in between are interpolated linearly."""
        return max(1, int(MAX_STEP_FRACTION / (2 * np.pi * self.bandwidth * self.step)))

    def motion(self, values: Array) -> tuple[Model, bool]:
        """Return the model along the simulated motion of base parameters (b,), and whether it follows the reference.

        The motion is at rest near the ends of each part. If the simulation does not follow the reference, the motion is
        the reference.
        """
        q, v, a = self.reference.copy()
        try:
            for part in self.parts:
                q[part], v[part], a[part] = self._simulated(part, values)
            missed = np.abs(q - self.reference[0])[self._inside].max(axis=0, initial=0.0)
            follows = bool((missed <= TRACKING_TOLERANCE * np.ptp(self.reference[0], axis=0)).all())
        except np.linalg.LinAlgError:  # singular mass matrix
            follows = False
        if not follows:
            q, v, a = self.reference
        moving = self._inside[:, None]
        return replace(self.model, q=q, v=np.where(moving, v, 0.0), a=np.where(moving, a, 0.0)), follows

    def _simulated(self, part: slice, values: Array) -> tuple[Array, Array, Array]:
        """Return q, v, a (T, n) of one part, simulated in parallel windows after settling on the reference."""
        rows = np.arange(part.start, part.stop, self._every)
        starts = np.arange(0, len(rows), WINDOW_STEPS)
        at = np.minimum(np.maximum(starts[:, None] + np.arange(-SETTLING_STEPS, WINDOW_STEPS), 0), len(rows) - 1)
        desired = self.reference[:, rows[at]]  # (3, W, SETTLING + WINDOW, n)
        # The reference is constant before the first and after the last sample.
        still = np.diff(at, axis=1, append=at[:, -1:] + 1)[..., None] == 0
        desired[1:] = np.where(still, 0.0, desired[1:])
        simulated_motion, (q, v) = np.empty_like(desired), desired[:2, :, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(at.shape[1]):
                now, after = desired[:, :, k], desired[:, :, min(k + 1, at.shape[1] - 1)]
                a = self._acceleration(q, v, now, values)
                simulated_motion[:, :, k] = q, v, a
                q, v = self._stepped(q, v, a, (now + after) / 2, after, values)
        instants = np.arange(float(part.start), part.stop)
        kept = simulated_motion[:, :, SETTLING_STEPS:].reshape(3, -1, q.shape[-1])[:, : len(rows)]
        q, v, a = (linear(rows.astype(float), each, instants) for each in kept)
        return q, v, a

    def _stepped(self, q: Array, v: Array, a: Array, middle: Array, after: Array, values: Array) -> tuple[Array, Array]:
        """Return the states (W, n) after a Runge-Kutta step whose first acceleration is a."""
        h = self._every * self.step
        v2 = v + h / 2 * a
        a2 = self._acceleration(q + h / 2 * v, v2, middle, values)
        v3 = v + h / 2 * a2
        a3 = self._acceleration(q + h / 2 * v2, v3, middle, values)
        v4 = v + h * a3
        a4 = self._acceleration(q + h * v3, v4, after, values)
        return q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a + 2 * a2 + 2 * a3 + a4)

    def _acceleration(self, q: Array, v: Array, wanted: Array, values: Array) -> Array:
        """Return the accelerations (W, n) of the controlled estimate; see the module docstring."""
        prior_values, w = self.model.base.values, 2 * np.pi * self.bandwidth
        h0, M0 = self._dynamics(q, v, self.first - prior_values)
        h, M = self._dynamics(q, v, values - prior_values)
        q_d, v_d, a_d = wanted
        command = a_d + 2 * w * (v_d - v) + w**2 * (q_d - q)
        tau = (M0 @ command[..., None])[..., 0] + h0
        return np.asarray(np.linalg.solve(M, (tau - h)[..., None])[..., 0])


def simulated(
    model: Model, data: Measurements, through: Filter, equations: Equations, wanted: Wanted, method: Method
) -> tuple[Extended, Fit]:
    """Return the equations with simulated instruments, their terms, and the resulting estimate."""
    b = len(model.base)
    whole = extended(model, None, equations, through, wanted, method)
    _, terms, changes = whole
    # All iterations use the same models, because selecting them takes longer than the estimation.
    laws = {term.drive: tuple(each.law for each in terms if each.drive == term.drive) for term in terms}
    wanted = replace(wanted, laws={drive: laws[drive] for drive in laws if drive not in wanted.motors}, chosen=())
    solution = estimate(whole[0], method)
    tracking = Tracking.of(model, data, through.parts, solution.values[:b])
    for _ in range(MAX_SIMULATIONS):
        reference, follows = tracking.motion(solution.values[:b])
        whole = extended(model, reference, replace(equations, Z=through(reference.Y)), through, wanted, method)
        previous, solution = solution, estimate(whole[0], method)
        if len(solution.values) == len(previous.values):
            moved = np.abs(solution.values - previous.values) / np.sqrt(np.diagonal(solution.covariance))
            if (moved <= ESTIMATE_TOLERANCE).all():
                break
    if not follows:
        message = "the simulated estimate does not follow the measured motion; the instruments are filtered positions"
        fix = "excite the robot more, or pass the motion without noise: `instruments=(q, v, a)`"
        warn(message, where=model.robot.name, fix=fix)
    return (whole[0], whole[1], changes), solution


def _bandwidth(robot: Robot, segment: Segment) -> float:
    """Return the cutoff (Hz) for which the motion of a segment best explains its forces."""
    t, step = segment.times, segment.step
    highest = 0.4 / step
    a = segment.motion(highest)[2]
    power = np.abs(np.fft.rfft(a - a.mean(axis=0), axis=0)) ** 2
    part = (np.cumsum(power, axis=0) / np.maximum(power.sum(axis=0), 1e-300)).min(axis=1)
    top = float(np.fft.rfftfreq(len(t), step)[int(np.searchsorted(part, POWER_FRACTION))]) if power.any() else highest
    cutoffs = min(1.5 * top, highest) * BANDWIDTH_RATIO ** np.arange(CANDIDATES)
    cutoffs = cutoffs[cutoffs * (t[-1] - t[0]) >= MIN_PERIODS]
    if not cutoffs.size:
        return highest
    return float(cutoffs[int(np.argmin(ForceModel(robot).scores(segment, cutoffs)))])
