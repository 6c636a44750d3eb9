"""Mistakes of columns that a fit of the forces shows: another order, sign, offset or unit explains much more.

Each hypothesis changes the motion or the forces; each coordinate is then fitted with unknown parameters
(``force_model``). The best one is named if what is left of the forces falls clearly, and the search goes on with it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.identification.closing import UnclosedError
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.force_model import ForceModel, Motion
from torsor.identification.logs.model_checks import sign_findings
from torsor.robot.robot import Robot

SAMPLES = 800
ROUNDS = 3  # mistakes that are looked for, one after the other
TOTAL, SINGLE = 1.5, 2.5  # least fall of the sum of log(variance left), and of the variance left of one coordinate
ALIKE = 0.1  # of the mean of log(variance left): hypotheses that differ by less explain the forces alike
MANY = 10  # coordinates: of more, only neighbours may be swapped, and no offsets are tried
REFINEMENTS = 4  # of an offset: each tries nine, the last ones in steps of pi/1024
EXACT = 0.02  # rad: an offset that is nearer to a multiple of pi/2 is this multiple
QUARTERS = {math.pi / 2: "pi/2", -math.pi / 2: "-pi/2", math.pi: "pi"}  # offsets that are tried
BETWEEN = {k * math.pi / 8: "" for k in range(-7, 8, 2)}  # and those from which others are looked for
HINT = 0.3  # the fall of an offset between, from which on it is refined
FLOOR = 1e-9  # of the variance: what is left below it is rounding


class Hypothesis(NamedTuple):
    """A change of the columns, its kind, and what it means for the map.

    ``shift`` (rad) is that of the ``coordinate``, for an offset.
    """

    kind: str
    place: str
    words: str
    fix: str
    apply: Callable[[Motion], Motion]
    coordinate: int = 0
    shift: float = 0.0


class _Tried(NamedTuple):
    """A hypothesis: the ``fall`` of the sum of log(variance left), what it leaves (n,), whether it is ``clear``."""

    fall: float
    after: Array
    what: Hypothesis
    clear: bool


def column_findings(model: ForceModel, motion: Motion, source: str) -> tuple[list[LogFinding], Motion]:
    """Return the mistakes of columns that explain the forces clearly better, and the motion without them.

    Example:
        >>> robot, rng = torsor.library.planar_chain(2), np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 400, 2))
        >>> tau = robot.inverse_dynamics(q, v, a) + 0.1 * rng.normal(size=(400, 2))
        >>> found, _ = column_findings(ForceModel(robot), Motion(q, v, a, tau[:, ::-1]), "log")
        >>> [each.kind for each in found]
        ['swapped']
    """
    if motion.q.shape != motion.v.shape:
        return [], motion
    now, whole, found = motion.every(max(1, len(motion.q) // SAMPLES)), motion, list[LogFinding]()
    for _ in range(ROUNDS):
        best = _best(model, now)
        if best is None:
            break
        before, after, chosen = best
        worst = int(np.argmax(before / after))
        name = model.robot.coordinate_names[worst]
        text = (
            f"{chosen.words}: then the model leaves {100 * math.sqrt(after[worst]):.3g} % of the force of {name!r}, "
            f"and {100 * math.sqrt(before[worst]):.3g} % as it is"
        )
        place, value = f"{source}: {chosen.place}", float(after[worst] / before[worst])
        found.append(LogFinding(chosen.kind, place, text, chosen.fix, value))
        now, whole = chosen.apply(now), chosen.apply(whole)
    return found, whole


def _best(model: ForceModel, now: Motion) -> tuple[Array, Array, Hypothesis] | None:
    """Return what is left (n,) now and with the best hypothesis, and this hypothesis; None where none is clear.

    Of hypotheses that explain the forces alike, such as the two signs of a mirror image, the one with the fewest wrong
    signs is the best.
    """
    fits = model.of(now.q, now.v, now.a)
    before = np.maximum(fits.fit(now.tau).left, FLOOR)
    changes = np.ptp(now.tau, axis=0) > 0  # a constant force says nothing

    def tried(those: Iterable[Hypothesis]) -> Iterator[_Tried]:
        for each in those:
            changed = each.apply(now)
            if (np.ptp(changed.tau, axis=0) > 0).tolist() != changes.tolist():
                continue
            try:
                fitted = fits.fit(changed.tau) if changed.q is now.q else model.fit(*changed)
            except UnclosedError:
                continue  # its loops have no such positions
            after = np.maximum(fitted.left, FLOOR)
            falls = np.log(before / after)[changes]
            yield _Tried(float(falls.sum()), after, each, bool(falls.sum() > TOTAL and np.exp(falls.max()) > SINGLE))

    found = [each for each in tried(hypotheses(model.robot)) if each.clear]
    found = found or [each for each in tried(_offsets(model.robot, BETWEEN)) if each.fall > HINT]
    best = max(found, key=lambda each: each.fall, default=None)
    if best is not None and best.what.kind == "offset":
        shift = _refined(best, lambda those: max((each.fall for each in tried(those)), default=-math.inf))
        words = QUARTERS.get(shift, f"about {shift:.3g}")
        offsets = tried(_offsets(model.robot, {shift: words}))  # zeros of parallel axes are much alike
        found = [*(each for each in found if each.what.kind != "offset"), *(each for each in offsets if each.clear)]
        best = max(found, key=lambda each: each.fall, default=None)
    if best is None:
        return None
    near = [each for each in found if each.fall > best.fall - ALIKE * changes.sum()]
    if len(near) > 1:
        near.sort(key=lambda each: (len(list(sign_findings(model, each.what.apply(now), ""))), -each.fall))
    return before, near[0].after, near[0].what


def _refined(first: _Tried, fall: Callable[[Iterable[Hypothesis]], float]) -> float:
    """Return the offset (rad) near a first one with the largest ``fall`` of what is left.

    Zeros that are wrong by other angles than multiples of pi/2 are so corrected as a whole: what is left of them would
    look like other mistakes, such as a delay.
    """
    given = first.what

    def gain(shift: float) -> float:
        return fall([given._replace(apply=_shifted(given.coordinate, shift))])

    best, step = given.shift, math.pi / 16
    for _ in range(REFINEMENTS):
        best, step = max((best + k * step for k in range(-4, 5)), key=gain), step / 4
    exact = given.shift in QUARTERS and (abs(best - given.shift) < EXACT or gain(best) < first.fall + TOTAL)
    return given.shift if exact else math.remainder(best, 2 * math.pi)


def hypotheses(robot: Robot) -> Iterator[Hypothesis]:
    """Yield the changes of columns that are tried for a robot.

    Example:
        >>> [each.kind for each in hypotheses(torsor.library.planar_chain(1))]
        ['degrees', 'sign', 'offset', 'offset', 'offset']
    """
    n, names = robot.nv, robot.coordinate_names
    if (angles := _angles(robot)).any():
        factor = np.where(angles, math.pi / 180, 1.0)
        yield Hypothesis("degrees", "q", "are the positions in degrees?", 'write units = {q = "deg"}', _scaled(factor))
    for i, k in combinations(range(n), 2):
        if n > MANY and k > i + 1:
            continue
        pair = f"{names[i]!r} and {names[k]!r}"
        yield Hypothesis(
            "swapped",
            f"forces of {pair}",
            "are the columns swapped?",
            "correct the order of the columns",
            _forces_swapped(i, k),
        )
        yield Hypothesis(
            "swapped", f"q of {pair}", "are the columns swapped?", "correct the order of the columns", _swapped(i, k)
        )
    for j, name in enumerate(names):
        sign = np.where(np.arange(n) == j, -1.0, 1.0)
        fix = "write scale = {q = ...} with -1 for it, or a negative ratio"
        yield Hypothesis("sign", f"q of {name!r}", "has it the wrong sign?", fix, _scaled(sign))
    yield from _offsets(robot, QUARTERS)


def _angles(robot: Robot) -> Flags:
    """Return which coordinates (n,) are angles."""
    turns = [turns for joint in robot.joints if not joint.follows for turns in joint.kind.turns]
    return np.resize(np.array(turns[: robot.nv], dtype=bool), robot.nv)


def _offsets(robot: Robot, shifts: Mapping[float, str]) -> Iterator[Hypothesis]:
    """Yield other zeros of the angles of a robot, by the ``shifts`` (rad: its words)."""
    for j, name in enumerate(robot.coordinate_names):
        if robot.nv <= MANY and _angles(robot)[j]:
            for shift, words in shifts.items():
                text = f"is its zero elsewhere, by {words} rad?"
                fix = f"add {words.removeprefix('about ')} to drives.offsets"
                yield Hypothesis("offset", f"q of {name!r}", text, fix, _shifted(j, shift), j, shift)


def _scaled(factor: Array) -> Callable[[Motion], Motion]:
    return lambda m: Motion(m.q * factor, m.v * factor, m.a * factor, m.tau)


def _shifted(j: int, offset: float) -> Callable[[Motion], Motion]:
    def apply(m: Motion) -> Motion:
        q = m.q.copy()
        q[:, j] += offset
        return m._replace(q=q)

    return apply


def _order(x: Array, i: int, k: int) -> Array:
    order = np.arange(x.shape[1])
    order[[i, k]] = k, i
    return x[:, order]


def _swapped(i: int, k: int) -> Callable[[Motion], Motion]:
    return lambda m: Motion(_order(m.q, i, k), _order(m.v, i, k), _order(m.a, i, k), m.tau)


def _forces_swapped(i: int, k: int) -> Callable[[Motion], Motion]:
    return lambda m: m._replace(tau=_order(m.tau, i, k))
