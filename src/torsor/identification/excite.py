"""``excite``: a periodic motion along which the parameters of a robot show best, within its limits."""

from collections.abc import Sequence
from functools import partial
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.identification.descent import Descent
from torsor.identification.design import CRITERIA, Design, Limits
from torsor.identification.fourier import Excitation, features, resting
from torsor.mechanism.values import frozen_array
from torsor.robot.robot import Robot
from torsor.simulation.progress import Bar

__all__ = ["excite"]

Array = NDArray[np.float64]

BARRIERS = (0.1, 0.01, 0.001)  # each begins where the one before ended
CANDIDATES = 30
FINER = 8  # the last check has as many times more instants than the search


def excite(
    robot: Robot,
    period: float = 10.0,
    harmonics: int = 5,
    *,
    criterion: str = "condition",
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    noise: ArrayLike = 1.0,
    among: Sequence[str] = ("*",),
    rest: bool = True,
    iterations: int = 200,
    seed: int = 0,
    progress: bool | None = None,
) -> Excitation:
    """Return a periodic motion that shows the base parameters of a robot, by optimisation of a Fourier series.

    ``period`` (s) and ``harmonics`` give the frequencies; ``rest`` starts and ends the motion at rest. ``criterion`` is
    "condition", the condition number of the regressor of the base parameters, or "determinant", that of their
    covariance. Limits are numbers or (n,): positions ``lower`` and ``upper`` (rad, m) and ``velocity`` are the robot's
    own unless they are given, ``acceleration`` and ``effort`` (forces of the robot as it is described) only if they
    are. ``noise`` is the standard deviation of the forces, N m and N, beside each other. ``among`` names the unknown
    parameters as in ``base_parameters``. The best of some random motions goes down the criterion by BFGS behind a
    barrier at the limits, ``iterations`` steps at most; Ctrl-C keeps what is reached. Equal seeds give equal motions.

    Example:
        >>> import torsor
        >>> motion = excite(torsor.library.planar_chain(2), 4.0, 3, lower=-1.5, upper=1.5, velocity=3.0)
        >>> q, v, a = motion(np.linspace(0, 4, 1000))
        >>> bool(motion.condition < motion.start_condition), bool(abs(q).max() <= 1.5), bool(abs(v).max() <= 3.0)
        (True, True, True)
    """
    if not isinstance(robot, Robot):
        raise ModelError(describe(f"excite for {robot!r}", allowed="a torsor.Robot"))
    where = f"{robot.name}: excite"
    _refuse(robot, criterion, period, harmonics, rest, iterations, seed, where)
    limits = _limits(robot, lower, upper, velocity, acceleration, effort, where)
    robot = robot.to(dtype="float64")
    base = robot.base_parameters(among=among)
    if not len(base):
        raise ModelError(describe("no motion shows any of the parameters", where=where))
    sigma = _sizes(noise, robot.nv, where, "noise")
    samples = max(8 * harmonics + 1, -(-3 * len(base) // max(robot.nv, 1)))
    basis = resting(harmonics) if rest else np.eye(2 * harmonics + 1)
    design = Design(robot, base.columns, sigma, limits, period, harmonics, samples, basis, criterion)
    start = _best_random(design, np.random.default_rng(seed), where)
    x, status = _descend(design, start, iterations, progress)
    first, last = (_within(design, design.coefficients(each), where) for each in (start, x))
    return Excitation(robot, period, last, design.condition(last), design.condition(first), status)


def _refuse(
    robot: Robot, criterion: str, period: float, harmonics: int, rest: bool, iterations: int, seed: int, where: str
) -> None:
    if robot.nq != robot.nv:
        fix = "hold the base, or choose a motion of your own"
        raise ModelError(describe("positions are quaternions", where=where, allowed="series of positions", fix=fix))
    if robot.elastic:
        found = f"joint {robot.elastic[0].name!r} is elastic: its motor does not follow a motion of its own"
        raise ModelError(describe(found, where=where, fix="without_motor(...), for the arm with stiff joints"))
    if criterion not in CRITERIA:
        raise ModelError(describe(f"criterion is {criterion!r}", where=where, allowed=", ".join(CRITERIA)))
    if not (isinstance(period, Real) and 0 < period < np.inf):
        raise ModelError(describe(f"period is {period!r} s", where=where, allowed="above 0"))
    least = 2 if rest else 1
    if type(harmonics) is not int or harmonics < least:
        raise ModelError(describe(f"harmonics is {harmonics!r}", where=where, allowed=f"a whole number from {least}"))
    if type(seed) is not int or seed < 0:
        raise ModelError(describe(f"seed is {seed!r}", where=where, allowed="a whole number from 0"))
    if type(iterations) is not int or iterations < 0:
        raise ModelError(describe(f"iterations is {iterations!r}", where=where, allowed="a whole number from 0"))


def _sizes(value: ArrayLike, n: int, where: str, name: str) -> Array:
    """Return n sizes above 0, which may be infinite, from one number or n of them."""
    single = np.ndim(value) == 0
    sizes = frozen_array(value, () if single else (n,), where, name, finite=False)
    if not (sizes > 0).all():
        raise ModelError(describe(f"{name} is {sizes.tolist()}", where=where, allowed="above 0"))
    return np.array(np.broadcast_to(sizes, (n,)))


def _limits(
    robot: Robot,
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    velocity: ArrayLike | None,
    acceleration: ArrayLike | None,
    effort: ArrayLike | None,
    where: str,
) -> Limits:
    n = robot.nv
    ends = []
    for value, own, name in ((lower, robot.lower, "lower"), (upper, robot.upper, "upper")):
        given = own if value is None else value
        end = frozen_array(given, () if np.ndim(given) == 0 else (n,), where, name, finite=False)
        ends.append(np.array(np.broadcast_to(end, (n,))))
    for k, name in enumerate(robot.coordinate_names):
        low, high = ends[0][k], ends[1][k]
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            fix = "give lower= and upper=, the range that it may move in"
            found = f"coordinate {name!r} has the range {low} to {high}"
            raise ModelError(describe(found, where=where, allowed="a finite range", fix=fix))
    speed = _sizes(robot.velocity_limit if velocity is None else velocity, n, where, "velocity")
    rest = [
        np.full(n, np.inf) if value is None else _sizes(value, n, where, name)
        for value, name in ((acceleration, "acceleration"), (effort, "effort"))
    ]
    return Limits(ends[0], ends[1], speed, *rest)


def _best_random(design: Design, rng: np.random.Generator, where: str) -> Array:
    """Return the best of random motions that reach to most of their limits."""
    best, least = None, np.inf
    n, H = design.robot.nv, design.harmonics
    t = np.arange(40 * H) * design.period / (40 * H)
    F = features(t, design.period, H)
    for _ in range(CANDIDATES):
        x = rng.normal(size=(design.basis.shape[1], n))
        free = design.basis @ x
        free[0] = rng.uniform(-0.3, 0.3, size=n)
        C = design.coefficients(np.asarray(design.basis.T @ free).ravel())
        C[1:] *= rng.uniform(0.5, 0.9, size=n) * _room(design, C, F)
        for share in (1.0, 0.5, 0.2):  # smaller motions may need less force
            D = np.concatenate([C[:1], share * C[1:]])
            cost, _ = design.cost(design.shares(D), BARRIERS[0])
            if cost < least:
                best, least = design.shares(D), cost
    if best is None:
        fix = "widen the limits (of effort first: gravity alone may pass them), or take a longer period"
        raise ModelError(describe(f"none of {CANDIDATES} random motions is within the limits", where=where, fix=fix))
    return best


def _room(design: Design, C: Array, F: tuple[Array, Array, Array]) -> Array:
    """Return by how much (n,) the series of each coordinate, less its constant, may grow within its limits."""
    swing = F[0][:, 1:] @ C[1:]
    up, down = design.limits.upper - C[0], C[0] - design.limits.lower
    with np.errstate(divide="ignore"):
        rooms = [up / np.maximum(swing.max(axis=0), 0), down / np.maximum(-swing.min(axis=0), 0)]
        for rates, limit in ((F[1], design.limits.velocity), (F[2], design.limits.acceleration)):
            rooms.append(limit / np.abs(rates @ C).max(axis=0))
    return np.asarray(np.min(rooms, axis=0))


def _descend(design: Design, x: Array, iterations: int, progress: bool | None) -> tuple[Array, str]:
    """Return the motion after the descent, the best so far where it is interrupted, and the status."""
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


def _within(design: Design, C: Array, where: str) -> Array:
    """Return the motion, made smaller where it passes a limit between the instants of the search."""
    count = 40 * design.harmonics * FINER
    F = features(np.arange(count) * design.period / count, design.period, design.harmonics)
    C = C.copy()
    # Between M instants of a period, a series of H harmonics is at most 1 / cos(pi H / M) of what it is at them (Ehlich
    # and Zeller 1964); about the middle of its range, where the ends are not equally far from the constant.
    up, down = design.limits.upper - C[0], C[0] - design.limits.lower
    reach = (up + down) / 2 / np.cos(np.pi * design.harmonics / count) - np.abs(up - down) / 2
    C[1:] *= np.minimum(_room(design, C, F) * np.minimum(up, down) / reach, 1.0)
    if not np.isfinite(design.limits.effort).any():
        return C
    for share in np.linspace(1.0, 0.0, 101):
        D = np.concatenate([C[:1], share * C[1:]])
        if (np.abs(design.robot.inverse_dynamics(*(each @ D for each in F))) <= design.limits.effort).all():
            return D
    raise ModelError(describe("the limits of effort are passed between the samples", where=where, fix="more harmonics"))
