"""Why a path has no timing within the bounds: in words, with the place and the numbers."""

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import describe
from torsor.mechanism.units import force_units
from torsor.motion.retiming.reachability import Profile
from torsor.motion.retiming.rows import RowKernel


def cause(
    rows: RowKernel, table: Array, most: Array, found: Profile, s: Array, speeds: tuple[float, float], where: str
) -> str:
    """Return the message for a path without a timing: ``table`` (G + 1, 4, r) and all else are of this path."""
    if len(found.u) == 1 and not any(speeds):
        return describe("a grid of one interval, from rest to rest", where=where, allowed="2 or more", fix="more knots")
    low, high = table[:, 2], table[:, 3]
    held = np.maximum(low, -high)
    if (held > 0).any():
        k, row = (int(each) for each in np.unravel_index(np.argmax(held / np.maximum(high - low, 1e-300)), held.shape))
        kind, name = rows.names[row]
        place = f"at {name!r}, at s = {s[k]:.4g} of {s[-1]:.4g}"
        fix = "a larger bound, a smaller load or another path"
        if kind != "torque":  # a row is one side of a polygon within the circle of the magnitude
            return describe(f"standing still takes more than the bound of {kind} {place}", where=where, fix=fix)
        unit = force_units(rows.robot).get(name, "N m")
        takes, allowed = abs(held[k, row]) + (high[k, row] - low[k, row]) / 2, (high[k, row] - low[k, row]) / 2
        text = f"standing still takes {takes:.4g} {unit} of torque {place}"
        return describe(text, where=where, allowed=f"{allowed:.4g} {unit}", fix=fix)
    if found.x[-1] > most[-1]:
        fastest = speeds[1] * np.sqrt(most[-1] / found.x[-1])
        return describe(f"end is {speeds[1]:g}", where=where, allowed=f"0 to {fastest:.6g}, by the velocity bounds")
    if found.x[0] > found.high[0] >= found.low[0]:
        fastest = speeds[0] * np.sqrt(max(found.high[0], 0.0) / found.x[0])
        allowed = f"0 to {fastest:.6g}: faster, it cannot brake in time"
        return describe(f"start is {speeds[0]:g}", where=where, allowed=allowed)
    if found.x[0] < found.low[0] <= found.high[0]:
        allowed = "more: slower, it does not reach the end within the bounds"
        return describe(f"start is {speeds[0]:g}", where=where, allowed=allowed)
    empty = np.flatnonzero(~(found.low <= found.high))
    k = int(empty[-1]) if len(empty) else int(np.argmin(found.x[1:] + found.x[:-1]))
    text = f"no speed is within the bounds at s = {s[k]:.4g} of {s[-1]:.4g}"
    return describe(text, where=where, fix="wider bounds, a lower speed at the end, or another path")
