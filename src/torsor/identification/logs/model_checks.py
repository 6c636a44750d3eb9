"""Comparison of a log with the model: delay between motion and forces, signs, scale, and unexplained forces."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.errors import ModelError
from torsor.identification.closed_robot import MeasuredRobot, UnclosedError
from torsor.identification.logs.force_model import STILL_FRACTION, Fitted, ForceModel, Motion
from torsor.identification.logs.log import LogFinding
from torsor.identification.logs.preparing import Delay, Prepared, Samples, estimate
from torsor.identification.logs.sampling import linear, longest_of

NEGATIVE_DEVIATIONS = 5.0  # standard deviations by which an inertia or friction must be below zero
POSITIVE_DEVIATIONS = 3.0  # standard deviations by which the other one may be above zero
# A delay is reported if it exceeds all three thresholds: fraction of a step, s, decrease of the sum of log(variance).
MIN_DELAY_STEPS, MIN_DELAY, MIN_DELAY_GAIN = 0.2, 5e-4, 0.1
MIN_SPEED_SPAN = 1e-3  # rad/s or m/s; minimum speed span for an inertia estimate
MAX_FORCE_RATIO = 20.0  # ratio of measured to expected forces, or its inverse, that is reported
MIN_EXPLAINED_PART = 0.5  # minimum fraction of the frictionless force variance that the expected forces explain
MAX_UNEXPLAINED_PART = 0.25  # maximum fraction of a force variance, which is half of the force magnitude
# Unexplained variance fraction with common parameters: absolute, and relative to that with separate ones.
MAX_COMMON_RESIDUAL, MAX_COMMON_RATIO = 0.1, 9.0


def delay_findings(
    model: ForceModel, motion: tuple[Array, Array, Array], tau: Array, times: Array, source: str
) -> tuple[list[LogFinding], Delay | None]:
    """Return the findings on the force delay, and the delay.

    The delay is that of the forces tau (T, n) relative to the motion (q, v, a) at times (T,).
    """
    try:
        delay = estimate(model, motion, tau, times, source)
    except ModelError:  # the log is too short
        return [], None
    step = float(np.median(np.diff(times)))
    gain = float(np.log(np.maximum(delay.before, 1e-20) / np.maximum(delay.after, 1e-20)).sum())
    if (
        abs(delay.value) < max(MIN_DELAY_STEPS * step, MIN_DELAY, NEGATIVE_DEVIATIONS * delay.deviation)
        or gain < MIN_DELAY_GAIN
    ):
        return [], delay
    way = "later" if delay.value > 0 else "earlier"
    worst = int(np.argmax(delay.before / np.maximum(delay.after, 1e-20)))
    left = _left(delay.after[worst], delay.before[worst], model.robot.coordinate_names[worst])
    message = f"forces are {1e3 * abs(delay.value):.3g} ms {way} than the motion: {left}"
    fix = f'write delay = {delay.value:.3g} (s) in the map, or delay = "estimate"'
    return [LogFinding("delay", source, message, fix, delay.value)], delay


def _left(after: float, before: float, name: str) -> str:
    """Return the residual variance fractions of a force ``after`` and ``before`` a correction as text."""
    text = f"with this correction, the model leaves {100 * math.sqrt(after):.3g} % of the force of {name!r}"
    return f"{text}, without it {100 * math.sqrt(before):.3g} %"


def sign_findings(model: ForceModel, motion: Motion, source: str) -> Iterator[LogFinding]:
    """Yield coordinates whose force has the wrong sign, because the fitted inertia or friction is negative."""
    q, v, a, tau = motion.every(model.step(len(motion.q)))
    fits = model.of(q, v, a)
    fitted = fits.fit(tau)
    inertia, friction = model.inertia_rows(q[:: max(1, len(q) // 100)]), model.friction_rows(v)
    sure_inertia, sure_friction = (fits.significance(tau, fitted, rows) for rows in (inertia, friction))
    values = (inertia * fitted.x).sum(axis=1), (friction * fitted.x).sum(axis=1)
    for j, name in enumerate(model.robot.coordinate_names):
        heavy = sure_inertia[j] < -NEGATIVE_DEVIATIONS and sure_friction[j] < POSITIVE_DEVIATIONS
        rough = sure_friction[j] < -NEGATIVE_DEVIATIONS and sure_inertia[j] < POSITIVE_DEVIATIONS
        if (heavy or rough) and fitted.left[j] < MAX_UNEXPLAINED_PART and np.ptp(v[:, j]) > MIN_SPEED_SPAN:
            message = f"the fit has the inertia {values[0][j]:.3g} and the friction {values[1][j]:.3g} at the usual "
            message += "speed"
            message += "; both are positive for every robot"
            fix = "write scale = {tau = ...} with -1 for it (or for its q), or a negative gear ratio"
            place = f"{source}: force of {name!r}"
            yield LogFinding("sign", place, message, fix, float(values[0][j] if heavy else values[1][j]))


def scale_findings(model: ForceModel, motion: Motion, source: str) -> Iterator[LogFinding]:
    """Yield coordinates whose force differs by a large factor from that of the robot's parameters.

    The fitted model is tau_j = k (frictionless forces of the robot) + friction + offset, and k should be close to 1.
    """
    q, v, a, tau = motion.every(model.step(len(motion.q)))
    expected = model.robot.inverse_dynamics(q, v, a)
    for j, name in enumerate(model.robot.coordinate_names):
        rub = np.column_stack([np.sign(v[:, j]), v[:, j], np.ones(len(v))])
        rest, detrended = ((x - rub @ np.linalg.lstsq(rub, x, rcond=None)[0]) for x in (tau[:, j], expected[:, j]))
        size, power = float(detrended @ detrended), float(rest @ rest)
        if not size > 0 or not power > 0:
            continue
        k = float(detrended @ rest) / size
        like = k * k * size / power
        if like > MIN_EXPLAINED_PART and not 1 / MAX_FORCE_RATIO < abs(k) < MAX_FORCE_RATIO:
            message = f"it is {k:.3g} times the force of the given parameters (correlation {math.sqrt(like):.3f})"
            fix = "check the unit, gear ratio, torque constant and robot parameters"
            yield LogFinding("scale", f"{source}: force of {name!r}", message, fix, k)


def unexplained_findings(model: ForceModel, left: Array, source: str) -> Iterator[LogFinding]:
    """Yield coordinates for which the model does not explain most of the force with any parameters."""
    for name, part in zip(model.robot.coordinate_names, left, strict=True):
        if part > MAX_UNEXPLAINED_PART:
            percent = 100 * math.sqrt(part)
            message = f"the model leaves {percent:.3g} % of it unexplained with any parameters"
            fix = "check the column, gear couplings (drives.coupling), and friction or loads that the model lacks"
            yield LogFinding("unexplained", f"{source}: force of {name!r}", message, fix, percent)


def together_findings(model: ForceModel, motion: Motion, left: Array, source: str) -> Iterator[LogFinding]:
    """Yield the force that common parameters explain far worse than separate ones (residuals ``left`` (n,))."""
    common = model.of(motion.q, motion.v, motion.a).together(motion.tau)
    worst = int(np.argmax(common / np.maximum(left, 1e-12) * (common > MAX_COMMON_RESIDUAL)))
    if common[worst] > max(MAX_COMMON_RESIDUAL, MAX_COMMON_RATIO * left[worst]):
        name = model.robot.coordinate_names[worst]
        message = f"one set of parameters for all joints leaves {100 * math.sqrt(common[worst]):.3g} % of the force of "
        message += f"{name!r} unexplained, separate parameters {100 * math.sqrt(left[worst]):.3g} %"
        fix = "check the joint zeros, the direction of gravity, the force units and the robot geometry"
        yield LogFinding("together", source, message, fix, float(common[worst]))


# Column errors detected by force fits: a different order, sign, offset or unit explains far more.
#
# Each hypothesis changes the motion or the forces, and each coordinate is fitted with unknown parameters
# (``force_model``). The best hypothesis is reported if the residual decreases clearly, and the search continues from
# there.

TRIAL_SAMPLES = 800
MAX_COLUMN_ERRORS = 3  # maximum number of successive column errors
# Minimum decrease of the sum of log(residual variance), and of one residual variance.
MIN_TOTAL_GAIN, MIN_SINGLE_GAIN = 1.5, 2.5
EQUIVALENCE_TOLERANCE = 0.1  # hypotheses are equivalent if their mean log(residual variance) differs by less
MAX_COORDINATES = 10  # with more coordinates, only neighbours are swapped and no offsets are tried
REFINEMENTS = 4  # refinements of an offset, with nine trials each, the last in steps of pi/1024
QUARTER_TOLERANCE = 0.02  # rad; offsets closer to a multiple of pi/2 are rounded to it
QUARTER_OFFSETS = {math.pi / 2: "pi/2", -math.pi / 2: "-pi/2", math.pi: "pi"}  # trial offsets
REFINED_OFFSETS = {k * math.pi / 8: "" for k in range(-7, 8, 2)}  # trial offsets for refinement
MIN_OFFSET_GAIN = 0.3  # minimum decrease for the refinement of an intermediate offset
ROUNDING_FLOOR = 1e-9  # fraction of the variance below which residuals are rounding errors


class Hypothesis(NamedTuple):
    """A change of columns, its kind, and the corresponding map entry.

    An offset also has its ``coordinate`` and its ``shift`` (rad).
    """

    kind: str
    place: str
    words: str
    fix: str
    apply: Callable[[Motion], Motion]
    coordinate: int = 0
    shift: float = 0.0


class _Tried(NamedTuple):
    """A tested hypothesis: decrease ``fall`` of the sum of log(residual variance), residuals (n,), and ``clear``."""

    fall: float
    after: Array
    what: Hypothesis
    clear: bool


def column_findings(model: ForceModel, motion: Motion, source: str) -> tuple[list[LogFinding], Motion]:
    """Return the column errors whose correction clearly improves the fit, and the corrected motion."""
    if motion.q.shape != motion.v.shape:
        return [], motion
    now, whole, findings = motion.every(max(1, len(motion.q) // TRIAL_SAMPLES)), motion, list[LogFinding]()
    for _ in range(MAX_COLUMN_ERRORS):
        best = _best(model, now)
        if best is None:
            break
        before, after, chosen = best
        worst = int(np.argmax(before / after))
        name = model.robot.coordinate_names[worst]
        message = f"{chosen.words}: {_left(after[worst], before[worst], name)}"
        place, value = f"{source}: {chosen.place}", float(after[worst] / before[worst])
        findings.append(LogFinding(chosen.kind, place, message, chosen.fix, value))
        now, whole = chosen.apply(now), chosen.apply(whole)
    return findings, whole


def _best(model: ForceModel, now: Motion) -> tuple[Array, Array, Hypothesis] | None:
    """Return the residual variances (n,) without and with the best hypothesis, and the hypothesis; None if unclear.

    Among equivalent hypotheses, such as the two signs of a mirror image, the one with the fewest wrong signs is best.
    """
    fits = model.of(now.q, now.v, now.a)
    before = np.maximum(fits.fit(now.tau).left, ROUNDING_FLOOR)
    changes = np.ptp(now.tau, axis=0) > 0  # a constant force carries no information

    def tried(those: Iterable[Hypothesis]) -> Iterator[_Tried]:
        for each in those:
            changed = each.apply(now)
            if (np.ptp(changed.tau, axis=0) > 0).tolist() != changes.tolist():
                continue
            try:
                fitted = fits.fit(changed.tau) if changed.q is now.q else model.fit(*changed)
            except UnclosedError:
                continue  # the loops cannot be closed at such positions
            after = np.maximum(fitted.left, ROUNDING_FLOOR)
            falls = np.log(before / after)[changes]
            clear = bool(falls.sum() > MIN_TOTAL_GAIN and np.exp(falls.max()) > MIN_SINGLE_GAIN)
            yield _Tried(float(falls.sum()), after, each, clear)

    candidates = [trial for trial in tried(hypotheses(model.robot)) if trial.clear]
    if not candidates:
        candidates = [each for each in tried(_offsets(model.robot, REFINED_OFFSETS)) if each.fall > MIN_OFFSET_GAIN]
    best = max(candidates, key=lambda each: each.fall, default=None)
    if best is not None and best.what.kind == "offset":
        shift = _refined(best, lambda those: max((each.fall for each in tried(those)), default=-math.inf))
        words = QUARTER_OFFSETS.get(shift, f"about {shift:.3g}")
        offsets = tried(_offsets(model.robot, {shift: words}))  # zeros of parallel axes are difficult to distinguish
        candidates = [each for each in candidates if each.what.kind != "offset"]
        candidates += [offset for offset in offsets if offset.clear]
        best = max(candidates, key=lambda each: each.fall, default=None)
    if best is None:
        return None
    near = [each for each in candidates if each.fall > best.fall - EQUIVALENCE_TOLERANCE * changes.sum()]
    if len(near) > 1:
        near.sort(key=lambda each: (len(list(sign_findings(model, each.what.apply(now), ""))), -each.fall))
    return before, near[0].after, near[0].what


def _refined(first: _Tried, fall: Callable[[Iterable[Hypothesis]], float]) -> float:
    """Return the offset (rad) near an initial one with the largest ``fall`` of the residual.

    Offsets that are not multiples of pi/2 are corrected completely, because a remainder would look like a different
    error, such as a delay.
    """
    described = first.what

    def gain(shift: float) -> float:
        return fall([described._replace(apply=_shifted(described.coordinate, shift))])

    best, step = described.shift, math.pi / 16
    for _ in range(REFINEMENTS):
        best, step = max((best + k * step for k in range(-4, 5)), key=gain), step / 4
    exact = described.shift in QUARTER_OFFSETS and (
        abs(best - described.shift) < QUARTER_TOLERANCE or gain(best) < first.fall + MIN_TOTAL_GAIN
    )
    return described.shift if exact else math.remainder(best, 2 * math.pi)


def hypotheses(robot: MeasuredRobot) -> Iterator[Hypothesis]:
    """Yield the hypotheses to test for a robot."""
    n, names = robot.nv, robot.coordinate_names
    if (angles := _angles(robot)).any():
        factor = np.where(angles, math.pi / 180, 1.0)
        yield Hypothesis("degrees", "q", "are the positions in degrees?", 'write units = {q = "deg"}', _scaled(factor))
    for i, k in combinations(range(n), 2):
        if n > MAX_COORDINATES and k > i + 1:
            continue
        words = "are the columns swapped?", "correct the order of the columns"
        for what, apply in (("forces", _swapped(i, k, forces=True)), ("q", _swapped(i, k))):
            yield Hypothesis("swapped", f"{what} of {names[i]!r} and {names[k]!r}", *words, apply)
    for j, name in enumerate(names):
        sign = np.where(np.arange(n) == j, -1.0, 1.0)
        fix = "write scale = {q = ...} with -1 for it, or a negative ratio"
        yield Hypothesis("sign", f"q of {name!r}", "is its sign wrong?", fix, _scaled(sign))
    yield from _offsets(robot, QUARTER_OFFSETS)


def _angles(robot: MeasuredRobot) -> Flags:
    """Return a mask (n,) of the coordinates that are angles."""
    turns = [turns for joint in robot.joints if not joint.follows for turns in joint.kind.turns]
    return np.resize(np.array(turns[: robot.nv], dtype=bool), robot.nv)


def _offsets(robot: MeasuredRobot, shifts: Mapping[float, str]) -> Iterator[Hypothesis]:
    """Yield hypotheses with shifted zeros of angles; ``shifts`` maps rad to text."""
    for j, name in enumerate(robot.coordinate_names):
        if robot.nv <= MAX_COORDINATES and _angles(robot)[j]:
            for shift, words in shifts.items():
                text = f"is its zero off by {words} rad?"
                fix = f"add {words.removeprefix('about ')} to drives.offsets"
                yield Hypothesis("offset", f"q of {name!r}", text, fix, _shifted(j, shift), j, shift)


def _scaled(factor: Array) -> Callable[[Motion], Motion]:
    return lambda m: Motion(m.q * factor, m.v * factor, m.a * factor, m.tau)


def _shifted(j: int, offset: float) -> Callable[[Motion], Motion]:
    return lambda m: m._replace(q=m.q + offset * (np.arange(m.q.shape[1]) == j))


def _swapped(i: int, k: int, forces: bool = False) -> Callable[[Motion], Motion]:
    """Return a function that swaps two columns of positions and rates, or of forces."""

    def apply(m: Motion) -> Motion:
        order = np.arange(m.tau.shape[1])
        order[[i, k]] = k, i
        if forces:
            return m._replace(tau=m.tau[:, order])
        return Motion(m.q[:, order], m.v[:, order], m.a[:, order], m.tau)

    return apply


NULL_TOLERANCE = 1e-10  # relative singular value of the scaled, weighted regressor below which it counts as zero
MAX_NULL_PART = 1e-3  # maximum fraction of a parameter in unexcited directions
GOOD_PERCENT, WEAK_PERCENT = 10.0, 100.0  # %: limits of relative deviations


class Excited(NamedTuple):
    """Base parameters ``names`` (b): least-squares ``values`` (b,) and standard ``deviations`` (b,).

    Deviations are infinite for unexcited parameters, and assume white noise with the variance of the residuals.
    ``condition`` is the condition number of the weighted regressor, and ``forces`` is the number of forces.
    """

    names: tuple[str, ...]
    values: Array
    deviations: Array
    condition: float
    forces: int

    @property
    def percents(self) -> Array:
        """Standard deviations in percent of the values (b,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(100 * self.deviations / np.abs(self.values), nan=np.inf, posinf=np.inf)

    def graded(self) -> tuple[list[int], list[int], list[int]]:
        """Return the indices of well determined, weakly determined, and undetermined parameters."""
        shown = self.percents
        good = np.flatnonzero(shown <= GOOD_PERCENT).tolist()
        weak = np.flatnonzero((shown > GOOD_PERCENT) & (shown <= WEAK_PERCENT)).tolist()
        return good, weak, np.flatnonzero(~(shown <= WEAK_PERCENT)).tolist()


def excited(model: ForceModel, samples: Samples, fitted: Fitted) -> Excited:
    """Return the parameters that the samples excite; ``fitted`` provides the noise of each coordinate."""
    Y, known = model.regressor(samples.q, samples.v, samples.a)
    tau = samples.tau - known
    weights = np.ones_like(tau) if samples.weights is None else samples.weights
    spread = np.std(tau, axis=0)
    noise = np.maximum(np.sqrt(fitted.left) * spread, 1e-9 * max(float(spread.max(initial=0.0)), 1e-300))
    A = (Y * (weights / noise)[..., None]).reshape(-1, Y.shape[-1])
    y = (tau * weights / noise).reshape(-1)
    lengths = np.linalg.norm(A, axis=0)
    scale = np.where(lengths > 0, lengths, 1.0)
    R = np.linalg.qr(np.column_stack([A / scale, y]), mode="r")
    b = Y.shape[-1]
    padded = np.zeros((b, b + 1))
    padded[: min(len(R), b)] = R[:b]
    U, sizes, V = np.linalg.svd(padded[:, :b])
    kept = sizes > NULL_TOLERANCE * max(float(sizes[0]), 1e-300)
    values = V[kept].T @ ((U[:, kept].T @ padded[:, b]) / sizes[kept]) / scale
    deviations = np.sqrt(((V[kept] / sizes[kept, None]) ** 2).sum(axis=0)) / scale
    hidden = ((V[~kept] ** 2).sum(axis=0) > MAX_NULL_PART**2) | (lengths == 0)
    forces = int(np.count_nonzero(weights))
    condition = float(np.linalg.cond(padded[:, :b] * scale)) if kept.all() else float("inf")
    return Excited(model.base.names, values, np.where(hidden, np.inf, deviations), condition, forces)


MAX_SAMPLES = 5000  # maximum number of samples for deviations, which are then scaled to all samples


class ModelLook(NamedTuple):
    """Model-based ``findings``, the unexplained part ``left`` (n,) of the force, ``delay`` and ``excited`` parameters.

    ``fit`` (T, 1 + n) contains times and model forces with the best parameters, NaN near rest. ``rest`` (n,) is the
    root mean square of the residuals, in N m or N.
    """

    findings: list[LogFinding]
    left: Array
    delay: Delay | None = None
    excited: Excited | None = None
    fit: Array | None = None
    rest: Array | None = None


def model_look(robot: MeasuredRobot, prepared: Prepared, source: str) -> ModelLook:
    """Return the model-based checks of ``prepared`` logs."""
    model, samples = ForceModel(robot), prepared.samples
    forces = len(samples.q) * robot.nv
    if forces <= len(model.base):
        message = f"there are {forces} measured forces for {len(model.base)} base parameters"
        short = LogFinding(
            "short", source, message, "measure longer, or reduce the unknown parameters: `among`", forces
        )
        return ModelLook([short], np.full(robot.nv, np.nan))
    times, motion = _longest(prepared)
    findings, corrected = column_findings(model, motion, source)
    late, delay = delay_findings(model, corrected[:3], corrected.tau, times, source)
    if late and delay is not None:
        tau = np.stack([np.interp(times + delay.value, times, x) for x in corrected.tau.T], axis=1)
        corrected = corrected._replace(tau=tau)
    findings += [*late, *sign_findings(model, corrected, source), *scale_findings(model, corrected, source)]
    step = model.step(len(times))
    q, v, a, tau = corrected.every(step)
    fitted = model.fit(q, v, a, tau)
    changes = np.ptp(tau, axis=0) > 0
    findings += unexplained_findings(model, np.where(changes, fitted.left, 0.0), source)
    if not findings:
        findings += together_findings(model, Motion(q, v, a, tau), fitted.left, source)
    made = model.forces(fitted.x, q, v, a)
    made[np.abs(v) < STILL_FRACTION * np.abs(v).max(axis=0)] = np.nan  # the sign of friction is unknown there
    every = max(1, len(samples.q) // MAX_SAMPLES)
    some = samples.every(every)
    shown = excited(model, some, model.fit(some.q, some.v, some.a, some.tau))
    shown = shown._replace(deviations=shown.deviations / math.sqrt(every), forces=shown.forces * every)
    rest = np.sqrt(np.nanmean((tau - made) ** 2, axis=0))
    left = np.where(changes, fitted.left, np.nan)  # a constant force has no residual fraction
    return ModelLook(findings, left, delay, shown, np.column_stack([times[::step], made]), rest)


def _longest(prepared: Prepared) -> tuple[Array, Motion]:
    """Return the times, motion and forces of the longest segment, without its ends."""
    longest = longest_of(prepared.segments)
    ends = 0 if prepared.cutoff is None else math.ceil(1 / (prepared.cutoff * longest.step))
    inside = slice(ends, max(ends, len(longest.q) - ends))
    times = longest.times[inside]
    q, v, a = (x[inside] for x in longest.motion(prepared.cutoff))
    return times, Motion(q, v, a, linear(longest.times, longest.tau, times, prepared.delay))
