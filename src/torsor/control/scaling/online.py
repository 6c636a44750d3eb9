"""Online trajectory scaling: timing of a path that arrives sample by sample, within torque and torque-rate bounds."""

from bisect import bisect_left
from collections.abc import Generator, Iterator
from itertools import chain
from math import ceil, cos, cosh, sin, sinh, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import by_name, number, whole_number
from torsor.base.errors import ModelError
from torsor.compiler import compile
from torsor.control.partition import check_rigid, check_vector_space
from torsor.control.scaling.path_dynamics import Samples
from torsor.control.scaling.window import MIN_INTERVALS, PARTS_PER_CHECK, Window, kernels, solution
from torsor.robot.robot import Robot

# Closed-form motion in one interval of the path, where s'' is a linear function of s.

_SERIES_ANGLE = 1e-3  # angle below which a two-term series is exact to rounding
_MAX_NEWTON_STEPS = 20  # Newton steps to the end of an interval; three or four are enough


def _flow(w: float, time: float) -> tuple[float, float]:
    """Return (S, E) of s'' = w s: sinh(k t) / k and (cosh(k t) - 1) / w with k^2 = w, or sin and cos if w < 0."""
    half = time / 2
    angle = sqrt(abs(w)) * half
    if angle < _SERIES_ANGLE:
        square = w * half * half
        sine, cosine = half * (1 + square / 6 * (1 + square / 20)), 1 + square / 2 * (1 + square / 12)
    elif w > 0:
        sine, cosine = sinh(angle) * half / angle, cosh(angle)
    else:
        sine, cosine = sin(angle) * half / angle, cos(angle)
    return 2 * sine * cosine, 2 * sine * sine


class Spline:
    """An interval with s'' = u + w (s - s_k), and its state: distance covered (``way``), ``rate``, ``acceleration``."""

    def __init__(self, length: float, x: float, u: float, w: float, period: float):
        self.length, self.w = length, w
        self.way, self.rate, self.acceleration = 0.0, sqrt(x), u
        self._period, self._of_period = period, _flow(w, period)

    def advance(self, time: float) -> float:
        """Advance by a time (s); return the time left after the end of the interval, or a negative number before it."""
        S, E = self._of_period if time == self._period else _flow(self.w, time)
        v, a, w = self.rate, self.acceleration, self.w
        way = self.way + v * S + a * E
        if way < self.length:
            self.way, self.rate, self.acceleration = way, v + w * v * E + a * S, a + w * (a * E + v * S)
            return -1.0
        used, target = time * (self.length - self.way) / (way - self.way), self.length - self.way
        for _ in range(_MAX_NEWTON_STEPS):
            S, E = _flow(w, used)
            change = (v * S + a * E - target) / (v + w * v * E + a * S)
            used -= change
            if abs(change) <= 1e-15 * time:
                break
        return max(0.0, time - used)


class FromRest:
    """An interval that starts at rest, with constant jerk."""

    def __init__(self, length: float, x_end: float):
        self.length = length
        self._jerk: float = 2 * x_end**1.5 / (9 * length**2)
        self._time = 0.0
        self.way = self.rate = self.acceleration = 0.0

    def advance(self, time: float) -> float:
        """Advance by a time (s); return the time left after the end of the interval, or a negative number before it."""
        t = self._time = self._time + time
        J = self._jerk
        self.way, self.rate, self.acceleration = J * t**3 / 6, J * t**2 / 2, J * t
        return t - (6 * self.length / J) ** (1 / 3) if self.way >= self.length else -1.0


class ToRest:
    """An interval that ends at rest, with constant jerk."""

    def __init__(self, length: float, x: float):
        self.length = length
        self._jerk: float = 2 * x**1.5 / (9 * length**2)
        self._left: float = (6 * length / self._jerk) ** (1 / 3)
        self._state()

    def _state(self) -> None:
        t, J = self._left, self._jerk
        self.way, self.rate, self.acceleration = self.length - J * t**3 / 6, J * t**2 / 2, -J * t

    def advance(self, time: float) -> float:
        """Advance by a time (s); return the time left after the end of the interval, or a negative number before it."""
        self._left -= time
        if self._left <= 0:
            return -self._left
        self._state()
        return -1.0


Interval = Spline | FromRest | ToRest

# A plan, x = s'^2 and u = s'' at the samples ahead, which ends at rest within the known path.

Ahead = tuple[list[float], list[float], list[float]]  # x and u at samples, and the times of all samples but the first


class Plan:
    """A timing from sample ``first`` to sample ``reach``; between samples, s'' is a linear function of s."""

    def __init__(self, spacing: float):
        self.spacing = spacing
        self.first, self.reach = 0, 0
        self._x, self._u = [0.0], [0.0]
        self._passed = [0.0]  # approximate passing times of samples

    def state(self, k: int) -> tuple[float, float]:
        """Return (x, u) at sample k."""
        return self._x[k - self.first], self._u[k - self.first]

    def interval(self, k: int, period: float) -> Interval:
        """Return the motion between samples k and k + 1."""
        (x, u), (x_end, u_end) = self.state(k), self.state(k + 1)
        if x == 0:
            return FromRest(self.spacing, x_end)
        if x_end == 0:
            return ToRest(self.spacing, x)
        return Spline(self.spacing, x, u, (u_end - u) / self.spacing, period)

    def ahead(self, k: int, time: float) -> int:
        """Return the first sample passed more than ``time`` (s) after sample k, or the last sample of the plan."""
        now = self._passed[k + 1 - self.first]
        return min(self.first + bisect_left(self._passed, now + time), self.reach)

    def time_between(self, first: int, last: int) -> float:
        """Return the approximate time (s) between two samples."""
        return self._passed[last - self.first] - self._passed[first - self.first]

    def ahead_of(self, m: int, points: Array, end: str) -> Generator[None, None, Ahead]:
        """Return x, u and times from sample m onwards for the control points of x; yield between steps."""
        x, u = points[1:] + points[:-1], points[1:] - points[:-1]
        x *= 0.5
        u /= 2 * self.spacing
        if x[0] <= 0:  # start at rest
            x[0] = u[0] = 0.0
        if end == "rest":
            x[-1] = u[-1] = 0.0
        yield
        rates = np.sqrt(x)
        times = 2 * self.spacing / np.maximum(rates[1:] + rates[:-1], 1e-12)
        times[0] += self._passed[m - self.first]
        yield
        ahead = x.tolist(), u.tolist(), np.cumsum(times).tolist()
        yield
        return ahead

    def adopt(self, k: int, m: int, ahead: Ahead) -> None:
        """Replace the plan from sample m onwards with a new timing, and drop the samples before k."""
        x, u, times = ahead
        first, last = min(k, m) - self.first, m - self.first
        self._x, self._u = self._x[first:last] + x, self._u[first:last] + u
        self._passed = self._passed[first : last + 1] + times
        self.first, self.reach = min(k, m), m + len(x) - 1

    def stretched(self, m: int, n: int, fastest: Array) -> Generator[None, None, Array]:
        """Return an initial guess of the control points (n + 2) from sample m onwards: the extended plan."""
        x, u = self.state(m)
        planned = self._x[m - self.first :]
        largest = max(planned)
        top = planned.index(largest)
        speeds = np.array(planned[:top] + [largest] * (n + 1 - len(planned)) + planned[top:])
        yield
        np.minimum(speeds[:-1], _GUESS_FRACTION * fastest, out=speeds[:-1])
        speeds[-1] = speeds[-2] / 3
        points = np.empty(n + 2)
        np.add(speeds[1:], speeds[:-1], out=points[1:-1])
        points[1:-1] *= 0.5
        points[0], points[1], points[-1] = x - self.spacing * u, x + self.spacing * u, speeds[-1]
        return points


_GUESS_FRACTION = 0.95  # fraction of the largest x that an initial guess does not exceed


def first_points(n: int, spacing: float, jerk: float, fastest: Array, start: str, end: str) -> Array:
    """Return control points (n + 2) with a given jerk from or to "rest", up to half the smallest x bound."""
    s = (np.arange(n + 2) - 0.5) * spacing
    way = np.full(n + 2, np.inf)
    if start == "rest":
        way = np.maximum(s, spacing / 2)
    if end == "rest":
        way = np.minimum(way, np.maximum(n * spacing - s, spacing / 2))
    result: Array = np.minimum(jerk ** (2 / 3) * (6 * way) ** (4 / 3) / 4, fastest.min() / 2)
    return result


def near_desired(points: Array, desired: float, end: str) -> Iterator[Array]:
    """Yield guesses with control points at the desired x: all before the final braking, fewer, and only those near it.

    A search ends slightly below the desired value, but points exactly at this value may also be within the bounds.
    """
    if points.max() <= _RAISED_FROM * desired:
        return
    near = np.clip((points / desired - _RAISED_FROM) / (_RAISED_TO - _RAISED_FROM), 0.0, 1.0)
    if end == "free":
        yield np.full(len(points), desired)
    last = int((near > 0).nonzero()[0].max(initial=0))
    for part in (1.0, 0.75, 0.5):
        ahead = np.clip((part * last - np.arange(len(points))) / (_BLEND_FRACTION * last + 1), 0.0, 1.0)
        yield _raised(points, desired, ahead)
    yield _raised(points, desired, near)


def _raised(points: Array, desired: float, part: Array) -> Array:
    """Return a smooth blend of control points: ``points`` where ``part`` is 0, the desired x where it is 1."""
    result: Array = np.where(part == 1, desired, points + part * part * (3 - 2 * part) * (desired - points))
    return result


# Fractions of the desired x: points above the first are raised towards it, and points above the second to it.
_RAISED_FROM, _RAISED_TO = 0.97, 0.99
# Fraction of the way to the last braking over which points blend from the desired x to the search result.
_BLEND_FRACTION = 0.25


NO_TORQUE_BOUND = 1e9  # N m, N: bound used for joints without a torque bound
PIECE_SIZE = 132  # joints times intervals of the look-ahead that one step computes
MIN_ITERATIONS = 12  # smallest number of iterations for which time is planned in a search
# Step limit of a search, relative to the steps that it needs with one piece and with the most pieces per step.
ONE_PIECE_MARGIN, MOST_PIECES_MARGIN = 1.2, 1.8
MIN_REMAINING_FRACTION = 0.2  # smallest number of remaining pieces to expect, relative to the initial expectation
ADOPTION_PIECES = 6  # steps between the check of a plan and its use
MAX_KEPT_FRACTION = 0.6  # largest fraction of a plan that is kept, because it brakes at its end
LATE_FACTOR, TIMELY_FACTOR = 1.2, 0.9  # factors for the expected pieces after late and timely searches
MAX_PATIENCE_RATIO = 4.0  # largest number of expected pieces, relative to the smallest
ROUNDING_FACTOR = 1 + 1e-9
BETWEEN_FRACTION = 0.2  # fraction of the margin that a check reserves for loads between the checked points
MAX_ATTEMPTS = 4  # searches in one window, each with tighter bounds where the previous one exceeded them
FIRST_JERK_FRACTION = 0.3
FIRST_USE = 3.0  # largest ratio to a bound for the initial guess of a search from rest
MAX_ITERATIONS = 25  # maximum number of iterations of a search; six times as many while the robot is at rest


class Timing(NamedTuple):
    """The timing at one moment: the path coordinate ``s``, its ``rate`` ds/dt and its ``acceleration``."""

    s: float
    rate: float
    acceleration: float


class OnlineScaling:
    """Path following at the desired timing where torque and torque-rate bounds permit, and more slowly elsewhere.

    The path arrives sample by sample (``feed``): positions q and their first three derivatives with respect to the path
    coordinate s, at s = 0, ``spacing``, 2 ``spacing``, ... If s is the time (in seconds) of a desired motion, these are
    its velocities, accelerations and jerks, and ``speed=1`` means that the motion is never faster than desired. For a
    path without a timing, s has any unit and ``speed`` is the largest ds/dt. ``step`` returns the timing (s, ds/dt,
    d2s/dt2) one ``period`` (in seconds) later, and ``command`` returns the joint motion at that time. The motion starts
    and ends at rest.

    Bounds are one number, one per coordinate, or {name: number}: ``torque`` (N m or N) and ``velocity`` (rad/s or m/s),
    by default the limits of the robot, and ``torque_rate`` (N m/s or N/s), by default unbounded. ``margin`` is the
    fraction of the bounds that is reserved for the motion between two samples.

    Up to ``preview`` samples ahead are used (``room`` is the number that may be fed now). At any time, there is a plan
    that stops within the known samples. The dynamics on the commanded path are checked against the bounds at all
    samples of this plan and at seven points between adjacent samples. A better plan replaces it after passing the same
    check. If the preview is too short or samples arrive too late, the motion slows down, but no bound is exceeded. The
    search for a better plan is distributed over the steps: each step computes one piece, or up to ``pieces`` if the
    search would be late or the robot is at rest. A short preview needs more pieces. If even the slowest motion exceeds
    a bound, ``prepare`` or ``step`` raises ModelError.

    Example:
        >>> arm = torsor.library.two_link()
        >>> scaling = OnlineScaling(arm, spacing=0.02, period=1e-3, torque=10.0, torque_rate=200.0, speed=20.0)
        >>> for s in 0.02 * np.arange(51):
        ...     scaling.feed([s, s - 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0])
        >>> scaling.close()
        >>> steps = 0
        >>> while not scaling.finished:
        ...     timing, steps = scaling.step(), steps + 1
        >>> timing.s, round(1e-3 * steps, 2)
        (1.0, 0.55)
    """

    def __init__(
        self,
        robot: Robot,
        spacing: float,
        period: float,
        *,
        torque: Any = None,
        torque_rate: Any = None,
        velocity: Any = None,
        speed: float = 1.0,
        preview: int = 128,
        margin: float = 0.01,
        pieces: int = 2,
    ):
        check_vector_space(robot, "OnlineScaling")
        check_rigid(robot, "OnlineScaling", "use the robot without springs: robot.without_motor(...)")
        self._where = f"{robot.name}: online scaling"
        self.robot, self.joints = robot, robot.nv
        self.spacing = number(spacing, self._where, "spacing", above=0)
        self.period = number(period, self._where, "period", above=0)
        self.speed = number(speed, self._where, "speed", above=0)
        self.margin = number(margin, self._where, "margin", above=0, below=0.5)
        self.pieces = whole_number(pieces, self._where, "pieces", least=1)
        self.preview = whole_number(preview, self._where, "preview", least=4 * MIN_INTERVALS)
        self.torque = np.minimum(
            self._bound(robot.effort_limit if torque is None else torque, "torque"), NO_TORQUE_BOUND
        )
        self.torque_rate = self._bound(np.inf if torque_rate is None else torque_rate, "torque_rate")
        self.velocity = self._bound(robot.velocity_limit if velocity is None else velocity, "velocity")
        self._ratio = self.torque / self.torque_rate
        bounds = self.torque, self.velocity, self.speed, self.margin
        self._samples = Samples(robot, self.spacing, *bounds, self.preview + MIN_INTERVALS + 2)
        functions = kernels(self.joints, self._samples.width // self.joints, compile(solution(self.preview)))
        piece, spare = max(8, PIECE_SIZE // self.joints), 1 / (1 - BETWEEN_FRACTION * self.margin)
        self._window = Window(functions, self._samples, self._ratio, self.preview, piece, spare)
        self._least_patience = MIN_ITERATIONS * (2 * -(-self.preview // self._window.piece) + 1)
        self.closed, self.finished = False, False
        self.plan = Plan(self.spacing)
        self._k = 0  # the last sample passed
        self._interval: Interval | None = None
        self._search: Iterator[None] | None = None
        self._patience, self._limit = float(self._least_patience), 0.0  # expected pieces and step limit of a search
        self._pace, self._is_slow = 1, True  # pieces in one step, and whether the plan is only a slow one
        self._was_fed, self._skipped = False, False
        self._spent, self._elapsed = 0, 0  # pieces and steps of the current search
        self._began, self._timing = False, Timing(0.0, 0.0, 0.0)

    def _bound(self, value: Any, what: str) -> Array:
        result = np.array(by_name(value, self.robot.coordinate_names, np.inf, f"{self._where}: {what}"))
        if (result <= 0).any():
            raise ModelError(f"is {result.min()}", argument=what, where=self._where, allowed="positive numbers")
        return result

    @property
    def fed(self) -> int:
        """The number of samples fed so far."""
        return self._samples.fed

    @property
    def room(self) -> int:
        """The number of samples that ``feed`` accepts now."""
        return 0 if self.closed else self._k + self._samples.capacity - self._samples.fed

    def feed(self, q: ArrayLike, d1: ArrayLike, d2: ArrayLike, d3: ArrayLike) -> None:
        """Add the next sample of the path: q (nv) and its first three derivatives with respect to s, each (nv)."""
        if not self.room:
            message = "the path is closed" if self.closed else "the preview is full"
            fix = "do not call feed after close()" if self.closed else "call feed only while scaling.room is above 0"
            raise ModelError(message, where=self._where, fix=fix)
        self._samples.add(q, d1, d2, d3)
        self._was_fed = True

    def close(self) -> None:
        """Declare that the last sample was the end of the path."""
        if self.fed <= MIN_INTERVALS:
            message = f"the path has {self.fed} samples"
            raise ModelError(message, where=self._where, allowed=f"{MIN_INTERVALS + 1} or more")
        self.closed = True

    def _last_usable(self) -> int:
        """Return the last sample for plans; an open path reserves samples for a plan that starts after a stop."""
        return self.fed - 1 if self.closed else self.fed - 1 - MIN_INTERVALS

    def _improve(self) -> Iterator[None]:
        """Search for a plan from a sample ahead to the last known sample, and adopt it if the search ends in time."""
        plan, window = self.plan, self._window
        m = self._k
        if self._began and m < plan.reach:  # start after the search, with a window at least as long as the plan
            first = m
            quickly = plan.ahead(first, MOST_PIECES_MARGIN * self._patience / self.pieces * self.period)
            m = max(first + int(MAX_KEPT_FRACTION * (plan.reach - first)), quickly)
            m = min(plan.ahead(first, ONE_PIECE_MARGIN * self._patience * self.period), m, plan.reach - 1)
            m = max(m, plan.reach - self.preview)
            self._limit = plan.time_between(first + 1, m) / self.period
            if m <= self._k + 1:  # too late, the robot will stop
                return
        last = self._last_usable()
        n = min(last - m, self.preview)
        if self.closed and 0 < last - m - n < MIN_INTERVALS:  # the remaining path would be too short for a plan
            n -= MIN_INTERVALS
        if n < MIN_INTERVALS or (m + n <= plan.reach and not self._is_slow):  # too little of the path is new
            return
        yield
        samples = self._samples
        is_moving = plan.state(m)[0] > 0
        start = "given" if is_moving else "free" if m == 0 and samples.stands(0) else "rest"
        end = "free" if self.closed and m + n == self.fed - 1 and samples.stands(m + n) else "rest"
        row = m % samples.capacity
        fastest = samples.fastest[row : row + n]
        if is_moving:
            guess = yield from plan.stretched(m, n, fastest)
        else:
            guess = first_points(n, self.spacing, self._jerk(samples.near[row : row + n]), fastest, start, end)
        yield
        yield from window.fill(m, n, start, end)
        window.begin(guess)
        if not is_moving:
            yield from window.slow_down(FIRST_USE)
        is_found = False
        for _ in range(MAX_ATTEMPTS):
            is_found = yield from self._searched(m, is_moving)
            if is_found or (is_moving and self._k >= m):
                break
            samples.tighten(m, window.tight)
        if not is_found and not is_moving:
            window.take(guess)
            uses = yield from window.slow_down()
            if uses.max() > ROUNDING_FACTOR:
                k = m + int(np.argmax(uses))
                message = f"between samples {k} and {k + 1} even the slowest motion needs {uses.max():.4g} times a "
                message += "bound"
                raise ModelError(
                    message, where=self._where, fix="use a larger bound, another path, or a smaller spacing"
                )
        if not is_moving or (is_found and self._k < m):
            ahead = yield from plan.ahead_of(m, window.points, end)
            if not is_moving or self._k < m:
                plan.adopt(self._k, m, ahead)
                self._patience = max(self._spent, TIMELY_FACTOR * self._patience, self._least_patience)
                self._is_slow = not is_found

    def _searched(self, m: int, given: bool) -> Generator[None, None, bool]:
        """Search in the window until sample m at the latest; return whether the result is within the bounds."""
        window = self._window
        ready = self._limit - PARTS_PER_CHECK * len(window.pieces) - ADOPTION_PIECES
        self._pace = 1 if given else self.pieces
        for _ in window.improve(MAX_ITERATIONS if given else 6 * MAX_ITERATIONS):
            if given and self._elapsed >= ready and window.feasible is not None:
                window.take(window.feasible)  # little time is left, so a suboptimal plan is taken
                break
            if given and self._k >= m:
                self._patience = min(LATE_FACTOR * self._patience, MAX_PATIENCE_RATIO * self._least_patience)
                return False
            if given:
                missing = max(self._patience - self._spent, MIN_REMAINING_FRACTION * self._patience)
                left = self._limit - self._elapsed
                self._pace = min(self.pieces, max(1, ceil(missing / max(left, 1))))
            yield
        best = window.clipped()
        yield
        for points in chain(near_desired(best, self.speed**2, window.end), [best]):
            window.take(points)
            yield
            uses = yield from window.uses()
            if given and self._k >= m:
                return False
            if uses.max() <= ROUNDING_FACTOR:
                return True
        window.tighten(uses)  # a bound is exceeded between two samples
        return False

    def _jerk(self, data: Array) -> float:
        """Return d3s/dt3 of an initial guess: a fraction of the value at which inertia alone reaches a rate bound."""
        inertia = float((np.abs(data[:, : self.joints]).max(axis=0) * self._ratio).max())
        return FIRST_JERK_FRACTION / max(inertia, 1e-9)

    def prepare(self) -> None:
        """Plan the first motion, which takes a few milliseconds and would otherwise be part of the first ``step``."""
        if self.fed <= 2 * MIN_INTERVALS and not self.closed:
            message = f"the open path has {self.fed} samples"
            fix = f"feed at least {2 * MIN_INTERVALS + 1}, or close the path"
            raise ModelError(message, where=self._where, fix=fix)
        for _ in self._improve():
            pass
        self._began, self._pace = True, 1

    @property
    def waits(self) -> bool:
        """Whether the robot is at rest because there are no samples ahead or no plan yet."""
        return self._interval is None and not self.finished

    def step(self) -> Timing:
        """Return the timing one period later, and compute one piece of the search for a better plan.

        Example:
            >>> scaling = OnlineScaling(torsor.library.two_link(), 0.1, 1e-3, torque=30.0, torque_rate=500.0)
            >>> for s in 0.1 * np.arange(11):
            ...     scaling.feed([s, -2.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0])
            >>> scaling.close()
            >>> scaling.step().s < 1e-3
            True
        """
        if not self._began:
            self.prepare()
        self._elapsed += 1
        if self._was_fed and not self._skipped:  # a step computes either a sample or a piece of the search
            self._skipped = True
            self._spent += 1
        elif self._search is not None:
            self._skipped = False
            for _ in range(self._pace):
                self._spent += 1
                if next(self._search, self) is self:
                    self._search, self._pace = None, 1
                    break
        elif self._last_usable() > self.plan.reach or self._is_slow:
            self._search, self._skipped, self._spent, self._elapsed = self._improve(), False, 0, 0
        self._was_fed = False
        left = self.period
        while self._k < self.plan.reach:
            if self._interval is None:
                self._interval = self.plan.interval(self._k, self.period)
            now = self._interval
            left = now.advance(left)
            if left < 0:
                self._timing = Timing(self._k * self.spacing + now.way, now.rate, now.acceleration)
                return self._timing
            self._k, self._interval = self._k + 1, None
        self.finished = self.closed and self._k == self.fed - 1
        self._timing = Timing(self._k * self.spacing, 0.0, 0.0)
        return self._timing

    def command(self) -> tuple[Array, Array, Array]:
        """Return joint positions, velocities and accelerations, each (nv), at the last step.

        Between two samples, the path is the polynomial of degree 7 that matches both samples and their derivatives.

        Example:
            >>> scaling = OnlineScaling(torsor.library.two_link(), 0.1, 1e-3, torque=30.0, torque_rate=500.0)
            >>> for s in 0.1 * np.arange(11):
            ...     scaling.feed([s, -2.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0])
            >>> scaling.close()
            >>> timing = [scaling.step() for _ in range(100)][-1]
            >>> q, v, a = scaling.command()
            >>> bool(abs(q[0] - timing.s) < 1e-12), bool(abs(v[0] - timing.rate) < 1e-12)
            (True, True)
        """
        s, rate, acceleration = self._timing
        k = min(self._k, self.fed - 2)
        q, v, a = self._samples.motion(k, s / self.spacing - k, rate, acceleration)
        return q, v, a
