"""Mistakes of columns that a fit of the forces shows: another order, sign, offset or unit explains much more.

Each hypothesis changes the motion or the forces; each coordinate is then fitted with unknown parameters
(``force_model``). The best one is named if what is left of the forces falls clearly, and the search goes on with it.
"""

import math
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from torsor.arrays import Array
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
        if chosen.kind == "offset":
            after, chosen = _refined(model, now, after, chosen)
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
    clear: list[tuple[float, Array, Hypothesis]] = []
    for each in hypotheses(model.robot):
        changed = each.apply(now)
        if (np.ptp(changed.tau, axis=0) > 0).tolist() != changes.tolist():
            continue
        try:
            fitted = fits.fit(changed.tau) if changed.q is now.q else model.fit(*changed)
        except UnclosedError:
            continue  # its loops have no such positions
        after = np.maximum(fitted.left, FLOOR)
        fall = float(np.log(before / after)[changes].sum())
        if fall > TOTAL and (before / after)[changes].max() > SINGLE:
            clear.append((fall, after, each))
    if not clear:
        return None
    most = max(fall for fall, _, _ in clear)
    near = [each for each in clear if each[0] > most - ALIKE * changes.sum()]
    if len(near) > 1:
        near.sort(key=lambda each: (len(list(sign_findings(model, each[2].apply(now), ""))), -each[0]))
    _, after, chosen = near[0]
    return before, after, chosen


def _refined(model: ForceModel, now: Motion, after: Array, chosen: Hypothesis) -> tuple[Array, Hypothesis]:
    """Return what is left (n,) with the zero near an offset that explains the forces best, and this hypothesis.

    Zeros that are wrong by other angles than multiples of pi/2 are so corrected as a whole: what is left of them would
    look like other mistakes, such as a delay.
    """
    changes = np.ptp(now.tau, axis=0) > 0

    def left(shift: float) -> Array:
        try:
            return np.maximum(model.fit(*_shifted(chosen.coordinate, shift)(now)).left, FLOOR)
        except UnclosedError:
            return np.full(len(after), 1.0)

    def score(shift: float) -> float:
        return float(np.log(left(shift))[changes].sum())

    best, step = chosen.shift, math.pi / 16
    for _ in range(REFINEMENTS):
        near = best + step * np.arange(-4, 5)
        best, step = float(near[int(np.argmin([score(float(each)) for each in near]))]), step / 4
    if abs(best - chosen.shift) < EXACT or score(best) > float(np.log(after)[changes].sum()) - TOTAL:
        return after, chosen
    text, fix = f"is its zero elsewhere, by about {best:.3g} rad?", f"add {best:.3g} to drives.offsets"
    apply = _shifted(chosen.coordinate, best)
    return left(best), chosen._replace(words=text, fix=fix, apply=apply, shift=best)


def hypotheses(robot: Robot) -> Iterator[Hypothesis]:
    """Yield the changes of columns that are tried for a robot.

    Example:
        >>> [each.kind for each in hypotheses(torsor.library.planar_chain(1))]
        ['degrees', 'sign', 'offset', 'offset', 'offset']
    """
    n, names = robot.nv, robot.coordinate_names
    angles = np.array([turns for joint in robot.joints if not joint.follows for turns in joint.kind.turns][:n])
    if angles.any():
        factor = np.where(np.resize(angles, n), math.pi / 180, 1.0)
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
        if n <= MANY and np.resize(angles, n)[j]:
            for offset, words in ((math.pi / 2, "pi/2"), (-math.pi / 2, "-pi/2"), (math.pi, "pi")):
                text = f"is its zero elsewhere, by {words} rad?"
                fix = f"add {words} to drives.offsets"
                yield Hypothesis("offset", f"q of {name!r}", text, fix, _shifted(j, offset), j, offset)


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
