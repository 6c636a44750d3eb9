"""``excite``: a periodic excitation trajectory for robot parameters, within the robot limits."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Flags
from torsor.base.checks import frozen_array, number, one_of, positive, several, whole_number
from torsor.base.documents import plain
from torsor.base.errors import ModelError, shortened
from torsor.base.progress import Bar
from torsor.geometry.pairs import Pairs
from torsor.identification.bases import environment_forces
from torsor.identification.closed_robot import ClosedRobot, MeasuredRobot
from torsor.identification.excitation.design import (
    CHECKS_PER_HARMONIC,
    CLEARANCE_MARGIN,
    CRITERIA,
    Clearance,
    Descent,
    Design,
    Limits,
    sizes_of,
)
from torsor.identification.excitation.fourier import Excitation, Series
from torsor.identification.logs.force_model import ForceModel
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.result import Identified
from torsor.robot.base_parameters import BaseParameters
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

BARRIERS = (0.1, 0.01, 0.001)  # barrier weights; each search starts from the previous solution
CANDIDATES = 30  # number of random motions; the best one is the initial guess
SCALES = (1.0, 0.5, 0.2)  # scales of each motion: smaller motions may need less force
CLEARANCE_SCALES = (*SCALES, 0.1, 0.05, 0.02)  # scales with a clearance
MAX_CENTRE_TRIALS = 100  # number of random centres in the search for one without collisions
PERIOD_RANGE = (1e-3, 1e6)  # minimum and maximum, s
RATE_RANGE = (1e-3, 1e9)  # minimum and maximum, Hz
NOISE_RANGE = (1e-12, 1e12)  # minimum and maximum, N m or N
FINAL_CHECK_RATIO = 8  # ratio of instants in the final check to instants in the search

# Information of earlier measurements on the base parameters: information matrix, noise and rate.
#
#     information = sum over samples of Y_t^T Y_t,       rows of Y_t are weighted and divided by the coordinate noise
#
# The noise is that of the estimate (``Identified``), or the residual of a model with free parameters
# (``Measurements``), which need not excite all parameters.

BLOCK_SIZE = 4096  # samples per block
DEFAULT_RATE = 100.0  # Hz, for measurements without times
NULL_TOLERANCE = 1e-13  # relative eigenvalue of the scaled information below which it counts as zero
MAX_NULL_PART = 1e-3  # maximum fraction of a parameter in unexcited directions
MIN_NOISE_RATIO = 1e-4  # minimum noise as a fraction of the forces, for noise-free measurements


class Measured(NamedTuple):
    """Samples of a robot: total forces ``acting`` (N, n) with wrenches, ``weights``, and ``residuals`` if known."""

    data: Measurements
    acting: Array
    weights: Array
    residuals: Array | None

    @property
    def measured(self) -> Flags:
        """Mask (n,) of the measured forces."""
        return np.asarray((self.weights > 0).any(axis=0))


def excite(
    robot: Robot,
    period: float = 10.0,
    harmonics: int = 5,
    *,
    criterion: str | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    clearance: float | None = None,
    pairs: Pairs = None,
    measured: Identified | Measurements | Trajectory | Sequence[Any] | None = None,
    noise: ArrayLike | None = None,
    rate: float | None = None,
    among: Sequence[str] = ("*",),
    rest: bool = True,
    iterations: int = 200,
    seed: int = 0,
    progress: bool | None = None,
) -> Excitation:
    """Return a periodic excitation trajectory for the base parameters of a robot: an optimised Fourier series.

    ``period`` (s) and ``harmonics`` determine the frequencies. With ``rest``, the motion starts and ends at rest.
    Limits are numbers or arrays (n,). Positions ``lower`` and ``upper`` (rad, m), which must be finite, and
    ``velocity`` (rad/s, m/s) default to the limits of the robot. ``acceleration`` and ``effort`` (N m, N, computed with
    the parameters of ``robot``) are unlimited by default. Robots with loops, elastic joints or quaternions raise
    ModelError. With a ``clearance`` (m), collision shapes stay at least that far apart; for ``pairs``, see
    ``robot.shapes.distances``.

    ``measured`` contains earlier data: ``identify`` results, ``Measurements`` or trajectories. Their noise-weighted
    information is added, so that the new motion excites the parameters that are still uncertain. The new motion is
    assumed to be sampled at ``rate`` (Hz), with force ``noise`` (standard deviation in N m and N, a number or (n,)).
    The defaults are the rate of the last data set and the noise of the residuals. Forces that are not measured in any
    data set are ignored. ``settings`` of the result contains the ``expected`` standard deviations before and after the
    new motion, for white noise, and the criterion values ``reached`` by the motion and by the initial guess.

    ``criterion`` selects the quantity that is minimised:

    - "condition": the condition number of the base-parameter regressor (default without ``measured``);
    - "determinant": the determinant of the base-parameter covariance (default with ``measured``);
    - "uncertainty": the largest standard deviation relative to the value in ``robot``, or to a tenth of the largest
      value of its kind.

    ``among`` names the unknown parameters as in ``robot.inertial.base``. The initial guess is the best of several
    random motions. BFGS with a logarithmic barrier at the limits improves it in at most ``iterations`` steps. After
    Ctrl-C, the best motion so far is returned. The same seed yields the same motion. ``progress`` is True, False, or
    None to show a progress bar only in a terminal.

    Example:
        >>> motion = excite(torsor.library.planar_chain(2), 4.0, 3, lower=-1.5, upper=1.5, velocity=3.0)
        >>> q, v, a = motion(np.linspace(0, 4, 1000))
        >>> bool(motion.condition < motion.start_condition), bool(abs(q).max() <= 1.5), bool(abs(v).max() <= 3.0)
        (True, True, True)
        >>> data = Measurements(q, v, a, motion.robot.inverse_dynamics(q, v, a))
        >>> limits = {"lower": -1.5, "upper": 1.5, "velocity": 3.0}
        >>> next_one = excite(motion.robot, 4.0, 3, **limits, measured=data, noise=0.1, rate=250.0)
        >>> expected = next_one.settings["expected"]
        >>> all(after < before for after, before in zip(expected["after"], expected["before"]))
        True
    """
    check_excitable(robot)
    where = f"{robot.name}: excite"
    measured = None if isinstance(measured, list | tuple) and not measured else measured
    usual = "condition" if measured is None else "determinant"
    criterion = usual if criterion is None else one_of(criterion, CRITERIA, where, "criterion")
    harmonics = whole_number(harmonics, where, "harmonics", least=2 if rest else 1)
    series = Series(_within(period, PERIOD_RANGE, where, "period"), harmonics, rest)
    seed = whole_number(seed, where, "seed", least=0)
    iterations = whole_number(iterations, where, "iterations", least=0)
    limit_arguments = {
        "lower": lower,
        "upper": upper,
        "velocity": velocity,
        "acceleration": acceleration,
        "effort": effort,
    }
    limits = _limits(robot, limit_arguments, where)
    sigma, (least, largest) = None if noise is None else _sizes(noise, robot.nv, where, "noise"), NOISE_RANGE
    if sigma is not None and not ((sigma >= least) & (sigma <= largest)).all():
        message = f"noise is {shortened(np.asarray(noise, dtype=float))}"
        raise ModelError(message, where=where, allowed=f"{least:g} to {largest:g} N m or N")
    robot = robot.to(dtype="float64")
    each_measured = measured if isinstance(measured, list | tuple) else [measured]
    earlier = [] if measured is None else [_samples(robot, data) for data in each_measured]
    flags = np.any([sample.measured for sample in earlier], axis=0) if earlier and sigma is None else np.array(True)
    names = None if flags.all() else [robot.coordinate_names[k] for k in np.flatnonzero(flags)]
    base = robot.inertial.base(among=among, measured=names)
    if not len(base):
        raise ModelError("no motion excites any of the unknown parameters", where=where)
    known, sigma, usual_rate = _known(robot, base, earlier, sigma)
    count = (usual_rate if rate is None else _within(rate, RATE_RANGE, where, "rate")) * series.period
    samples = max(8 * harmonics + 1, -(-3 * len(base) // max(robot.nv, 1)))
    sizes = sizes_of(tuple(robot.inertial.names[k] for k in base.columns), base.values)
    if clearance is None and pairs is not None:
        raise ModelError("needs a clearance", argument="pairs", where=where, fix="pass `clearance` in m")
    apart = None if clearance is None else Clearance.of(robot, clearance, pairs, where)
    problem = (limits, series, samples, criterion, known / count, sizes, apart)
    design = Design(robot, base.columns, sigma, *problem)
    start = _best_random(design, np.random.default_rng(seed), where)
    x, status = _descend(design, start, iterations, progress)
    first, last = (_scaled_into_limits(design, design.coefficients(each), where) for each in (start, x))
    settings = {name: getattr(limits, name).tolist() for name in limit_arguments} | {
        "criterion": criterion,
        "rest": rest,
    }
    settings |= {"noise": sigma.tolist(), "among": list(several(among)), "iterations": iterations, "seed": seed}
    if apart is not None:
        nearest = apart.distances(series.sampled(CHECKS_PER_HARMONIC * harmonics * FINAL_CHECK_RATIO)[0] @ last).min()
        settings |= {"clearance": apart.least, "distance": float(nearest)}
    if measured is not None:
        after = deviations_of(known + count * design.information(last))
        settings |= {"rate": count / series.period}
        settings["expected"] = {"parameters": base.names, "before": deviations_of(known), "after": after}
    settings["reached"] = [design.reached(last), design.reached(first)]
    conditions = design.condition(last), design.condition(first)
    return Excitation(robot, series.period, last, *conditions, status, plain(settings))


def check_excitable(robot: Any) -> None:
    """Raise ModelError if ``excite`` does not support a robot."""
    if not isinstance(robot, Robot | ParallelRobot):
        raise ModelError(argument="robot", value=robot, where="excite", allowed="a torsor.Robot")
    where = f"{robot.name}: excite"
    if isinstance(robot, ParallelRobot | ClosedRobot) or robot.loops:
        fix = "choose drive motions manually, and check them with first_look"
        raise ModelError("closed loops are not supported", where=where, fix=fix)
    if robot.nq != robot.nv:
        fix = "fix the base, or choose a motion manually"
        message = "positions with quaternions are not supported"
        raise ModelError(message, where=where, allowed="robots with nq = nv", fix=fix)
    if robot.elastic:
        message = f"joint {robot.elastic[0].name!r} is elastic: the motion of its motor cannot be prescribed"
        raise ModelError(message, where=where, fix="use robot.without_motor(...) to make the joints rigid")


def _within(value: float, ends: tuple[float, float], where: str, name: str) -> float:
    return number(positive(value, where, name), where, name, least=ends[0], most=ends[1])


def _sizes(value: ArrayLike, n: int, where: str, name: str) -> Array:
    """Return n positive numbers, possibly infinite, from one number or n numbers."""
    single = np.ndim(value) == 0
    sizes = frozen_array(value, () if single else (n,), where, name, finite=False)
    if not (sizes > 0).all():
        raise ModelError(argument=name, value=sizes, where=where, allowed="above 0")
    return np.array(np.broadcast_to(sizes, (n,)))


def _limits(robot: Robot, given: Mapping[str, ArrayLike | None], where: str) -> Limits:
    """Return the limits from the arguments of ``excite``; the defaults are those of the robot, or none."""
    n, ends = robot.nv, list[Array]()
    defaults = {"lower": robot.lower, "upper": robot.upper, "velocity": robot.velocity_limit}
    values = {name: defaults.get(name, np.inf) if value is None else value for name, value in given.items()}
    for name in ("lower", "upper"):
        end = frozen_array(values[name], () if np.ndim(values[name]) == 0 else (n,), where, name, finite=False)
        ends.append(np.array(np.broadcast_to(end, (n,))))
    for k, name in enumerate(robot.coordinate_names):
        low, high = ends[0][k], ends[1][k]
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            fix = "pass its range as `lower` and `upper`"
            message = f"coordinate {name!r} has the range {low} to {high}"
            raise ModelError(message, value=name, where=where, allowed="a finite range", fix=fix)
    return Limits(*ends, *(_sizes(values[name], n, where, name) for name in ("velocity", "acceleration", "effort")))


def _best_random(design: Design, rng: np.random.Generator, where: str) -> Array:
    """Return the best of several random motions that are scaled close to their limits."""
    best, least = None, np.inf
    n, basis = design.robot.nv, design.series.basis
    F = design.series.sampled(CHECKS_PER_HARMONIC * design.series.harmonics)
    for _ in range(CANDIDATES):
        free = basis @ rng.normal(size=(basis.shape[1], n))
        free[0] = _middle(design, rng)
        C = design.coefficients(np.asarray(basis.T @ free).ravel())
        C[1:] *= rng.uniform(0.5, 0.9, size=n) * _largest_scale(design, C, F)
        for scale in SCALES if design.clearance is None else CLEARANCE_SCALES:
            D = np.concatenate([C[:1], scale * C[1:]])
            cost, _ = design.cost(design.variables(D), BARRIERS[0])
            if cost < least:
                best, least = design.variables(D), cost
    if best is None:
        if design.clearance is None and not np.isfinite(design.limits.effort).any():
            message = f"none of {CANDIDATES} random motions excites all parameters together"
            fix = "change the period, widen the limits, use similar noise for all forces, or reduce the unknowns: "
            fix += "`among`"
            raise ModelError(message, where=where, fix=fix)
        fix = "widen the limits (effort first, because gravity alone may exceed them), or use a longer period"
        if design.clearance is not None:
            fix = "reduce the clearance, or pass `lower` and `upper` where shapes are apart; " + fix
        raise ModelError(f"none of {CANDIDATES} random motions is within the limits", where=where, fix=fix)
    return best


def _middle(design: Design, rng: np.random.Generator) -> Array:
    """Return the centre (n,) of a random motion relative to the half ranges, if possible without collisions."""
    n = design.robot.nv
    middle = rng.uniform(-0.3, 0.3, size=n)
    if design.clearance is None:
        return middle
    centre = (design.limits.upper + design.limits.lower) / 2
    others = np.linspace(0.3, 0.8, MAX_CENTRE_TRIALS)[:, None] * rng.uniform(-1.0, 1.0, size=(MAX_CENTRE_TRIALS, n))
    tried = np.concatenate([middle[None], others])
    free = design.clearance.distances(centre + design.half * tried) > design.clearance.least + CLEARANCE_MARGIN
    return np.asarray(tried[int(np.argmax(free))])


def _largest_scale(design: Design, C: Array, F: tuple[Array, Array, Array]) -> Array:
    """Return the largest factor (n,) of each series, except its constant, within the limits."""
    swing = F[0][:, 1:] @ C[1:]
    up, down = design.limits.upper - C[0], C[0] - design.limits.lower
    with np.errstate(divide="ignore"):
        scales = [up / np.maximum(swing.max(axis=0), 0), down / np.maximum(-swing.min(axis=0), 0)]
        for rates, limit in ((F[1], design.limits.velocity), (F[2], design.limits.acceleration)):
            scales.append(limit / np.abs(rates @ C).max(axis=0))
    return np.asarray(np.min(scales, axis=0))


def _descend(design: Design, x: Array, iterations: int, progress: bool | None) -> tuple[Array, str]:
    """Return the optimised motion, or the best motion before Ctrl-C, and the status."""
    descent = Descent(partial(design.cost, barrier=BARRIERS[0]), x)
    done = 0
    with Bar(iterations, progress, "exciting") as bar:
        try:
            for stage, barrier in enumerate(BARRIERS):
                if stage:
                    descent.restart(partial(design.cost, barrier=barrier))
                while done < iterations * (stage + 1) // len(BARRIERS) and descent.step():
                    done += 1
                    bar.at(done)
        except KeyboardInterrupt:
            return descent.x, "interrupted"
    return descent.x, "done"


def _scaled_into_limits(design: Design, C: Array, where: str) -> Array:
    """Return the motion, scaled down if it exceeds a limit between the instants of the search."""
    H = design.series.harmonics
    count = CHECKS_PER_HARMONIC * H * FINAL_CHECK_RATIO
    F = design.series.sampled(count)
    C = C.copy()
    # The maximum of a series of H harmonics is at most 1 / cos(pi H / M) times its maximum over M instants of a period
    # (Ehlich and Zeller 1964). It is applied about the middle of the range, which may differ from the constant C[0].
    up, down = design.limits.upper - C[0], C[0] - design.limits.lower
    reach = (up + down) / 2 / np.cos(np.pi * H / count) - np.abs(up - down) / 2
    C[1:] *= np.minimum(_largest_scale(design, C, F) * np.minimum(up, down) / reach, 1.0)
    bounded = bool(np.isfinite(design.limits.effort).any())
    for scale in np.linspace(1.0, 0.0, 101):
        D = np.concatenate([C[:1], scale * C[1:]])
        q, v, a = (feature @ D for feature in F)
        apart = design.clearance is None or design.clearance.distances(q).min() >= design.clearance.least
        if apart and (not bounded or (np.abs(design.robot.inverse_dynamics(q, v, a)) <= design.limits.effort).all()):
            return D
    message = "effort limits or the clearance are violated between the samples"
    raise ModelError(message, where=where, fix="use more harmonics")


def _known(
    robot: Robot, base: BaseParameters, samples: Sequence[Measured], noise: Array | None
) -> tuple[Array, Array, float]:
    """Return the information matrix (b, b) of earlier samples, the force noise (n,), and the rate (Hz).

    The noise of a coordinate without a measured force is infinite. ``noise`` replaces the estimate.
    """
    total, squares, count = np.zeros((len(base),) * 2), np.zeros(robot.nv), np.zeros(robot.nv)
    if not samples:
        return total, np.ones(robot.nv) if noise is None else noise, 1.0
    for sample in samples:
        sample_noise, data = _estimated_noise(robot, base, sample) if noise is None else noise, sample.data
        for k in range(0, len(data), BLOCK_SIZE):
            some = slice(k, k + BLOCK_SIZE)
            Y = robot.inertial.regressor(data.q[some], data.v[some], data.a[some])[..., base.columns]
            rows = (Y * (sample.weights[some] / sample_noise)[..., None]).reshape(-1, len(base))
            total += rows.T @ rows
        squares += len(sample.data) * np.where(sample.measured, sample_noise, 0.0) ** 2
        count += len(sample.data) * sample.measured
    mean = np.sqrt(np.divide(squares, count, out=np.full(robot.nv, np.inf), where=count > 0))
    times = samples[-1].data.times
    steps = np.empty(0) if times is None else np.diff(times)
    # The typical number of samples per second.
    rate = 1 / float(np.median(steps[steps > 0])) if (steps > 0).any() else DEFAULT_RATE
    return total, mean if noise is None else noise, rate


def _samples(robot: Robot, given: Any) -> Measured:
    """Return the samples of an ``Identified``, ``Measurements`` or a ``Trajectory``."""
    if not isinstance(given, Identified | Measurements | Trajectory):
        allowed = "identify results, Measurements or trajectories"
        raise ModelError(f"measured contains {given!r:.60}", where=f"{robot.name}: excite", allowed=allowed)
    if not isinstance(given, Measurements):
        _check_same(robot, given.prior if isinstance(given, Identified) else given.robot)
    data = measurements_of(robot, given.measurements if isinstance(given, Identified) else given)
    weights = np.ones_like(data.tau) if data.weights is None else data.weights
    # Weights are relative: the mean square of the positive weights of a coordinate is 1.
    weights = weights / np.maximum(weights.max(axis=0), 1e-300)
    squares = (weights**2).sum(axis=0) / np.maximum((weights > 0).sum(axis=0), 1)
    weights = weights / np.sqrt(np.where(squares > 0, squares, 1.0))
    residuals = given.residuals if isinstance(given, Identified) else None
    return Measured(data, data.tau + environment_forces(robot, data.q, data.external), weights, residuals)


def _check_same(robot: Robot, other: MeasuredRobot) -> None:
    """Raise ModelError if measurements belong to a robot with different parameters, geometry or gravity."""
    same = robot.inertial.names == other.inertial.names and (robot.nq, robot.nv) == (other.nq, other.nv)
    if same:
        q, a = np.random.default_rng(0).normal(size=(2, 3, robot.nv))
        regressors, others = (model.to(dtype="float64").inertial.regressor(q, 0 * a, a) for model in (robot, other))
        same = np.allclose(regressors, others, rtol=1e-6, atol=1e-6 * np.abs(regressors).max(initial=0.0))
    if not same:
        message = f"measured belongs to {other.name!r}, whose links, geometry or gravity differ from {robot.name!r}"
        fix = "pass the measured robot, or measurements of this robot"
        raise ModelError(message, where=f"{robot.name}: excite", fix=fix)


def _estimated_noise(robot: Robot, base: BaseParameters, given: Measured) -> Array:
    """Return the force noise (n,) from weighted residuals; infinite if nothing was measured."""
    model, data = ForceModel(robot), given.data
    some = slice(None, None, model.step(len(data)))
    q, v, a, tau = data.q[some], data.v[some], data.a[some], given.acting[some]
    if given.residuals is not None:
        squares = ((given.weights * given.residuals) ** 2).sum(axis=0)
        estimated = np.sqrt(squares / np.maximum((given.weights > 0).sum(axis=0), 1))
    else:
        fit = model.of(q, v, a, given.weights[some] > 0)
        free = fit.chosen.sum(axis=0) - [row.basis.shape[1] for row in fit.rows]
        squares = ((given.weights[some] * fit.residuals(tau)) ** 2).sum(axis=0)
        estimated = np.where(free > 1, np.sqrt(squares / np.maximum(free, 1)), np.std(tau, axis=0))
    # Forces due to all parameters are used, because total forces may cancel, as in free fall.
    parts = np.abs(robot.inertial.regressor(q, v, a)[..., base.columns] * base.values).sum(axis=-1)
    size = np.sqrt(np.mean(parts**2 + tau**2, axis=0))
    least = MIN_NOISE_RATIO * np.maximum(size, 1e-3 * max(float(size.max(initial=0.0)), 1e-9))
    return np.where(given.measured, np.maximum(estimated, least), np.inf)


def deviations_of(information: Array) -> Array:
    """Return the standard deviations (b,) of parameters with an information matrix; infinite if not excited."""
    sizes = np.sqrt(np.diagonal(information))
    scale = np.where(sizes > 0, sizes, 1.0)
    values, U = np.linalg.eigh(information / np.outer(scale, scale))
    shown = values > NULL_TOLERANCE * max(float(values[-1]), 1e-300)
    deviations = np.sqrt((U[:, shown] ** 2 / values[shown]).sum(axis=1)) / scale
    return np.where((U[:, ~shown] ** 2).sum(axis=1) > MAX_NULL_PART**2, np.inf, deviations)
