"""Checks of a log against the model: delay between motion and forces, signs, scale, and what the model leaves."""

import math
from collections.abc import Iterator

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.identification.logs.delays import Delay, estimate
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.force_model import ForceModel, Motion

SURE = 5.0  # deviations by which an inertia or a friction must be negative
DOUBT = 3.0  # deviations by which the other one may be positive
PART_OF_STEP, LEAST, GAIN = 0.2, 5e-4, 0.1  # a delay that is named: steps, s, and the fall of the sum of log(variance)
MOVES = 1e-3  # rad/s or m/s: the fit of a joint that spans less says nothing of its inertia
FACTOR = 20.0  # between the measured and the expected forces
LIKE = 0.5  # of the variance of the forces, less friction, that the expected forces explain
UNEXPLAINED = 0.25  # of the variance of a force: half of its size
APART, TIMES = 0.1, 9.0  # of the variance of a force that one set of parameters leaves, and times what its own leave


def delay_findings(
    model: ForceModel, motion: tuple[Array, Array, Array], tau: Array, times: Array, source: str
) -> tuple[list[LogFinding], Delay | None]:
    """Return whether forces tau (T, n) are earlier or later than the motion (q, v, a) at times (T,), and the delay.

    Example:
        >>> robot, t, w = torsor.library.planar_chain(1), np.arange(2000) * 1e-3, 2 * np.pi
        >>> q, v, a = np.sin(w * t)[:, None], w * np.cos(w * t)[:, None], -(w**2) * np.sin(w * t)[:, None]
        >>> late = np.interp(t - 0.006, t, robot.inverse_dynamics(q, v, a)[:, 0])[:, None]
        >>> [str(each)[:33] for each in delay_findings(ForceModel(robot), (q, v, a), late, t, "log")[0]]
        ['log: forces are 6 ms later than t']
    """
    try:
        found = estimate(model, motion, tau, times, source)
    except ModelError:  # too short
        return [], None
    step = float(np.median(np.diff(times)))
    gain = float(np.log(np.maximum(found.before, 1e-20) / np.maximum(found.after, 1e-20)).sum())
    if abs(found.value) < max(PART_OF_STEP * step, LEAST, SURE * found.deviation) or gain < GAIN:
        return [], found
    way = "later" if found.value > 0 else "earlier"
    worst = int(np.argmax(found.before / np.maximum(found.after, 1e-20)))
    text = (
        f"forces are {1e3 * abs(found.value):.3g} ms {way} than the motion: then the model leaves "
        f"{100 * math.sqrt(found.after[worst]):.3g} % of the force of {model.robot.coordinate_names[worst]!r}, and "
        f"{100 * math.sqrt(found.before[worst]):.3g} % as it is"
    )
    fix = f'write delay = {found.value:.3g} (s) in the map, or delay = "estimate"'
    return [LogFinding("delay", source, text, fix, found.value)], found


def sign_findings(model: ForceModel, motion: Motion, source: str) -> Iterator[LogFinding]:
    """Yield coordinates whose force has the wrong sign: the fit has a negative inertia or friction.

    Example:
        >>> robot, rng = torsor.library.planar_chain(1), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 400, 1))
        >>> tau = robot.inverse_dynamics(q, v, a) + 0.1 * rng.normal(size=(400, 1))
        >>> [each.kind for each in sign_findings(ForceModel(robot), Motion(q, v, a, -tau), "log")]
        ['sign']
    """
    q, v, a, tau = motion.every(model.step(len(motion.q)))
    fits = model.of(q, v, a)
    fitted = fits.fit(tau)
    inertia, friction = model.inertia_rows(q[:: max(1, len(q) // 100)]), model.friction_rows(v)
    sure_inertia, sure_friction = (fits.significance(tau, fitted, rows) for rows in (inertia, friction))
    values = (inertia * fitted.x).sum(axis=1), (friction * fitted.x).sum(axis=1)
    for j, name in enumerate(model.robot.coordinate_names):
        heavy = sure_inertia[j] < -SURE and sure_friction[j] < DOUBT
        rough = sure_friction[j] < -SURE and sure_inertia[j] < DOUBT
        if (heavy or rough) and fitted.left[j] < UNEXPLAINED and np.ptp(v[:, j]) > MOVES:
            text = (
                f"the fit has the inertia {values[0][j]:.3g} and the friction {values[1][j]:.3g} at the usual speed, "
                "and both are positive of every robot"
            )
            fix = "write scale = {tau = ...} with -1 for it (or for its q), or a negative gear ratio"
            place = f"{source}: force of {name!r}"
            yield LogFinding("sign", place, text, fix, float(values[0][j] if heavy else values[1][j]))


def scale_findings(model: ForceModel, motion: Motion, source: str) -> Iterator[LogFinding]:
    """Yield coordinates whose force is many times more or less than the given parameters make it.

    tau_j = k (forces of the given robot without friction) + friction + offset is fitted; k should be about 1.

    Example:
        >>> robot, rng = torsor.library.planar_chain(1), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 400, 1))
        >>> tau = robot.inverse_dynamics(q, v, a)
        >>> [round(each.value, 3) for each in scale_findings(ForceModel(robot), Motion(q, v, a, tau / 100), "log")]
        [0.01]
    """
    q, v, a, tau = motion.every(model.step(len(motion.q)))
    expected = model.robot.inverse_dynamics(q, v, a)
    for j, name in enumerate(model.robot.coordinate_names):
        rub = np.column_stack([np.sign(v[:, j]), v[:, j], np.ones(len(v))])
        rest, own = ((x - rub @ np.linalg.lstsq(rub, x, rcond=None)[0]) for x in (tau[:, j], expected[:, j]))
        size = float(own @ own)
        if not size > 0 or not rest.any():
            continue
        k = float(own @ rest) / size
        like = k**2 * size / float(rest @ rest)
        if like > LIKE and not 1 / FACTOR < abs(k) < FACTOR:
            text = f"it is {k:.3g} times what the given parameters make it (correlation {math.sqrt(like):.3f})"
            fix = "check unit, gear ratio and torque constant; or the parameters of the robot"
            yield LogFinding("scale", f"{source}: force of {name!r}", text, fix, k)


def unexplained_findings(model: ForceModel, left: Array, source: str) -> Iterator[LogFinding]:
    """Yield coordinates of whose force the model leaves more than half, whatever its parameters are.

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> [each.value for each in unexplained_findings(ForceModel(robot), np.array([0.64]), "log")]
        [80.0]
    """
    for name, part in zip(model.robot.coordinate_names, left, strict=True):
        if part > UNEXPLAINED:
            percent = 100 * math.sqrt(part)
            text = f"the model leaves {percent:.3g} % of it, whatever its parameters are"
            fix = "check the column; couplings of gears (drives.coupling); friction and loads that the model has not"
            yield LogFinding("unexplained", f"{source}: force of {name!r}", text, fix, percent)


def together_findings(model: ForceModel, motion: Motion, left: Array, source: str) -> Iterator[LogFinding]:
    """Yield the force that one set of parameters leaves far more of than its own, which leave the part ``left`` (n,).

    Example:
        >>> robot, rng = torsor.library.planar_chain(2), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 400, 2))
        >>> tau = robot.inverse_dynamics(q, v, a) * [1.0, -1.0]
        >>> found = together_findings(ForceModel(robot), Motion(q, v, a, tau), np.full(2, 1e-6), "log")
        >>> [each.kind for each in found]
        ['together']
    """
    fit = model.of(motion.q, motion.v, motion.a)
    common = fit.together(motion.tau)
    worst = int(np.argmax(common / np.maximum(left, 1e-12) * (common > APART)))
    if common[worst] > max(APART, TIMES * left[worst]):
        name = model.robot.coordinate_names[worst]
        text = (
            f"one set of parameters for all joints leaves {100 * math.sqrt(common[worst]):.3g} % of the force of "
            f"{name!r}, and parameters for it alone {100 * math.sqrt(left[worst]):.3g} %"
        )
        fix = "check zeros of several joints, the direction of gravity, units of forces, and the geometry of the robot"
        yield LogFinding("together", source, text, fix, float(common[worst]))
