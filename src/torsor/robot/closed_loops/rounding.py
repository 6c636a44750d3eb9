"""Closure equations that are redundant up to rounding: they contradict the others by the last digits of a file.

A hinge that is made of two points on its axis has six equations, of which five are independent. If the distances
between the points, as written in the file, differ in their last digit, no configuration satisfies all six. The
redundant equations are found with numbers, and left out with a warning.
"""

from collections.abc import Callable

import numpy as np

from torsor.arrays import Array
from torsor.robot.closed_loops.mobility import choose, null_space
from torsor.robot.closed_loops.search import CLOSED, Space

ROUNDED = 1e-4  # largest contradiction, relative to the size of the mechanism: files have 5 digits or more
STARTS = 3  # configurations from which loops are closed
ASIDE = 0.3  # rad or sizes: motion after which an equation that is redundant is still as open as before


def rows_left_out(
    space_of: Callable[[list[int]], Space], count: int, start: Array, units: Array
) -> tuple[tuple[int, ...], float]:
    """Return the equations to leave out, and by how much they are open (of the mechanism's size); mostly none.

    ``space_of`` returns the configuration space without some of the ``count`` equations, ``units`` (nv) are the scales
    of the coordinates.
    """
    rng, whole, best = np.random.default_rng(0), space_of([]), (np.inf, start)
    for trial in range(STARTS):
        q, error = whole.closest(whole.integrate(start, 0.1 * trial * rng.normal(size=len(units)) * units))
        if error <= CLOSED:
            return (), 0.0
        best = min(best, (error, q), key=lambda each: each[0])
    error, q = best
    if not error <= ROUNDED:
        return (), 0.0
    kept = choose(whole.jacobian(q), []).rows
    out = [k for k in range(count) if k not in kept]
    space = space_of(out)
    q, left = space.closest(q)
    if not out or left > CLOSED:
        return (), 0.0
    motions = null_space(space.jacobian(q))
    along = rng.normal(size=len(motions)) @ motions
    along *= ASIDE / max(float(np.linalg.norm(along)), 1e-300)
    there, left = space.closest(space.integrate(q, along * units))
    apart = np.maximum(*(np.abs(whole.error(at)) for at in (q, there)))
    # Where bars are in one line and too short to meet, equations are dependent there only: after a motion they differ.
    if left > CLOSED or apart.max() > ROUNDED:
        return (), 0.0
    return tuple(k for k in out if apart[k] > CLOSED), float(apart.max())
