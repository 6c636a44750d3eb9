"""What all sampled data share: times that increase, names that differ, a rate."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import indices_of, name_of, real_array, rows
from torsor.base.errors import ModelError, describe


def checked_names(names: object, where: str, what: str) -> tuple[str, ...]:
    """Return the names of markers, plates or columns; none may be empty or occur twice.

    Example:
        >>> checked_names(["heel", "heel"], "walk.trc", "marker")
        Traceback (most recent call last):
        torsor.ModelError: walk.trc: two markers are named 'heel': numbers 1 and 2; fix: rename one of them
    """
    found = tuple(name_of(each, what, where) for each in rows(names, where, f"names of {what}s"))
    seen: dict[str, int] = {}
    for k, name in enumerate(found, start=1):
        if name in seen:
            text = f"two {what}s are named {name!r}: numbers {seen[name]} and {k}"
            raise ModelError(describe(text, where=where, fix="rename one of them"))
        seen[name] = k
    return found


def checked_times(times: ArrayLike, where: str) -> Array:
    """Return times (K,) in s, finite and increasing.

    Example:
        >>> checked_times([0.0, 0.02, 0.01], "walk.trc")
        Traceback (most recent call last):
        torsor.ModelError: walk.trc: frame 3: time 0.01 s follows 0.02 s; allowed: times that increase; fix: \
sort the frames, or remove those that are repeated
    """
    found = real_array(times, where, "times")
    if found.ndim != 1 or not len(found):
        allowed = "one time for each frame, 1 frame or more"
        raise ModelError(describe(f"times have shape {found.shape}", where=where, allowed=allowed))
    if not np.isfinite(found).all():
        frame = int(np.argmin(np.isfinite(found)))
        text = f"frame {frame + 1}: the time is {found[frame]}"
        raise ModelError(describe(text, where=where, allowed="finite numbers"))
    falls = np.diff(found) <= 0
    if falls.any():
        k = int(np.argmax(falls)) + 1
        text = f"frame {k + 1}: time {found[k]:g} s follows {found[k - 1]:g} s"
        fix = "sort the frames, or remove those that are repeated"
        raise ModelError(describe(text, where=where, allowed="times that increase", fix=fix))
    found.setflags(write=False)
    return found


def rate_of(times: Array) -> float:
    """Return the rate (Hz) of times (K,): of all steps if they are alike, of the median step otherwise; 0 for one time.

    Example:
        >>> round(rate_of(np.array([0.0, 0.017, 0.033, 0.05])), 9), round(rate_of(np.array([0.0, 0.01, 0.02, 0.5])), 9)
        (60.0, 100.0)
    """
    if len(times) < 2:
        return 0.0
    steps = np.diff(times)
    alike = np.abs(steps - steps.mean()).max() < 0.5 * steps.mean()  # times of few digits differ by some of a step
    return float(1 / (steps.mean() if alike else np.median(steps)))


def checked_values(values: ArrayLike, shape: tuple[int, ...], where: str, what: str) -> Array:
    """Return a read-only array of a shape; NaN says that a value is missing, infinity is refused.

    Example:
        >>> checked_values([[1.0, float("nan")]], (1, 2), "walk.mot", "values").shape
        (1, 2)
    """
    array = real_array(values, where, what)
    if array.shape != shape:
        raise ModelError(describe(f"{what} have shape {array.shape}", where=where, allowed=str(shape)))
    if np.isinf(array).any():
        at = [int(k) for k in np.argwhere(np.isinf(array))[0]]
        raise ModelError(describe(f"{what}{at} is infinite", where=where, allowed="finite numbers, NaN where missing"))
    array.setflags(write=False)
    return array


def short_text(data: Any, what: str) -> str:
    """Return one line about markers, plates or columns, in place of all their numbers.

    Example:
        >>> from torsor.human.recordings import Markers
        >>> Markers(["toe"], [0.0, 0.01], np.zeros((2, 1, 3)), source="walk.trc")
        <Markers: 1 markers, 2 frames at 100 Hz, 0 to 0.01 s, of 'walk.trc'>
    """
    times = f"{len(data.times)} frames at {data.rate:g} Hz, {data.times[0]:g} to {data.times[-1]:g} s"
    return f"<{type(data).__name__}: {len(data.names)} {what}, {times}, of {data.source!r}>"


def index_of(name: object, names: Sequence[str], where: str, what: str) -> int:
    """Return the index of a name; the error lists those that resemble it.

    Example:
        >>> index_of("R.Toe", ["R.Heel", "R.Toe"], "walk.trc", "marker")
        1
    """
    return indices_of([str(name)], names, where, what)[0]
