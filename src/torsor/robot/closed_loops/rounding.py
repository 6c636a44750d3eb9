"""Closure equations that are redundant up to rounding: they contradict others only in the last digits of a file.

Couplings are compared by their coefficients; cut joints are tested by closing the loops numerically.

A hinge that is defined by two points on its axis has six equations, of which five are independent. If the distances
between the points differ in the last digit of the file, no configuration satisfies all six. Such redundant equations
are detected numerically and dropped with a warning.
"""

from collections.abc import Callable, Sequence

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, warn
from torsor.mechanism.loops import Closure, Coupling
from torsor.robot.closed_loops.mobility import choose, null_space
from torsor.robot.closed_loops.search import CLOSURE_TOLERANCE, Space

ROUNDING_TOLERANCE = 1e-4  # largest contradiction, relative to the size of the mechanism: files have 5 digits or more
COEFFICIENT_TOLERANCE = 1e-12  # coefficients that differ by less, relative to the largest, are equal
TINY_COEFFICIENT = 1e-300  # used in place of zero as a divisor
STARTS = 3  # number of configurations from which loops are closed
PROBE_STEP = 0.3  # rad or mechanism sizes: motion that does not change the error of a redundant equation


def rows_left_out(
    space_of: Callable[[list[int]], Space], count: int, start: Array, units: Array
) -> tuple[tuple[int, ...], float]:
    """Return the equations to drop and their largest error; ``space_of(rows)`` is the space without these rows."""
    rng, whole, best = np.random.default_rng(0), space_of([]), (np.inf, start)
    for trial in range(STARTS):
        q, error = whole.closest(whole.integrate(start, 0.1 * trial * rng.normal(size=len(units)) * units))
        if error <= CLOSURE_TOLERANCE:
            return (), 0.0
        best = min(best, (error, q), key=lambda item: item[0])
    error, q = best
    if not error <= ROUNDING_TOLERANCE:
        return (), 0.0
    kept = choose(whole.jacobian(q), []).rows
    out = [k for k in range(count) if k not in kept]
    space = space_of(out)
    q, left = space.closest(q)
    if not out or left > CLOSURE_TOLERANCE:
        return (), 0.0
    motions = null_space(space.jacobian(q))
    along = rng.normal(size=len(motions)) @ motions
    along *= PROBE_STEP / max(float(np.linalg.norm(along)), 1e-300)
    there, left = space.closest(space.integrate(q, along * units))
    apart = np.maximum(*(np.abs(whole.error(at)) for at in (q, there)))
    # If bars are aligned and too short to meet, equations are dependent only there: after a motion they differ.
    if left > CLOSURE_TOLERANCE or apart.max() > ROUNDING_TOLERANCE:
        return (), 0.0
    return tuple(k for k in out if apart[k] > CLOSURE_TOLERANCE), float(apart.max())


def couplings_left_out(loops: Sequence[Closure], where: str) -> list[int]:
    """Return the coupling equations that repeat others up to rounding, and issue a warning for each.

    Two belts with ratios 2 and 2.00001 would lock each other, although both ratios are meant to be 2. If two couplings
    differ only in their offsets, ModelError is raised, because no position satisfies both.
    """
    couplings = [loop for loop in loops if isinstance(loop, Coupling)]
    if len(couplings) < 2:
        return []
    polynomials = [coupling.polynomials.items() for coupling in couplings]
    factors = [{(name, k): c for name, powers in item for k, c in enumerate(powers)} for item in polynomials]
    keys = list(dict.fromkeys(key for factor in factors for key in factor))
    terms = np.array([[factor.get(key, 0.0) for key in keys] for factor in factors])
    largest = np.abs(terms).max(axis=1)  # an equation may be multiplied by any number
    terms, offsets = terms / largest[:, None], np.array([coupling.offset for coupling in couplings]) / largest
    starts = np.cumsum([0, *(loop.count for loop in loops)])
    rows = [int(starts[k]) for k, loop in enumerate(loops) if isinstance(loop, Coupling)]
    kept, out = [0], list[int]()
    for k in range(1, len(couplings)):
        sizes = np.abs(terms[k])
        kept_sizes = np.maximum(np.abs(terms[kept]).max(axis=0), TINY_COEFFICIENT)
        scale = np.where(sizes > 0, sizes, kept_sizes)  # metres or radians
        shares = np.linalg.lstsq((terms[kept] / scale).T, terms[k] / scale, rcond=None)[0]
        apart = float(np.abs((terms[k] - shares @ terms[kept]) / scale).sum())
        shift = float((offsets[k] - shares @ offsets[kept]) / sizes[sizes > 0].min())  # for the joint that moves most
        if apart > ROUNDING_TOLERANCE or (apart > COEFFICIENT_TOLERANCE and abs(shift) > ROUNDING_TOLERANCE):
            kept.append(k)
            continue
        involved = (j for j, share in zip(kept, shares, strict=True) if abs(share) > ROUNDING_TOLERANCE)
        others = ", ".join(repr(couplings[j].name) for j in involved)
        name = couplings[k].name
        if abs(shift) > ROUNDING_TOLERANCE:
            message = f"couplings {name!r} and {others} contradict each other: their offsets differ by {abs(shift):.3g}"
            raise ModelError(message, value=name, where=where, fix=f"remove one: robot.without_loop({name!r})")
        if max(apart, abs(shift)) > COEFFICIENT_TOLERANCE:
            message = f"the coupling {name!r} repeats {others} up to {max(apart, abs(shift)):.2g} of its coefficients"
            message += ", and together they would lock the joints, so it was dropped"
            warn(message, where=where, fix=f"use equal ratios and offsets, or robot.without_loop({name!r})")
            out.append(rows[k])
    return out
