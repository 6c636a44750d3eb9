"""Positions of all joints of a closed mechanism along a measured motion of its drives.

Positions of the drives alone may belong to several assembly modes; a motion keeps its mode. So samples that follow each
other closely are a run: its first sample is assembled from the posture ``start``, all others from those before them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe
from torsor.robot.closed_loops.inputs import check_driven
from torsor.robot.robot import Robot

STEP = 0.2  # rad or sizes of the mechanism: a longer step of a drive begins another run
REACH = 0.3  # path of the drives that is assembled at once, from the sample before it
KEPT = 500_000  # samples whose positions are kept


class UnclosedError(ModelError):
    """Raised where the loops cannot be closed at a measured ``sample``, or where the drives do not determine it."""

    def __init__(self, message: str, sample: int) -> None:
        super().__init__(message)
        self.sample = sample


def sample_at(sample: int, times: Array | None) -> str:
    """Return the words for a sample, with its time if ``times`` (N,) are known.

    Example:
        >>> sample_at(1, np.array([0.0, 0.1])), sample_at(1, None)
        ('sample 1 (t = 0.1 s)', 'sample 1')
    """
    return f"sample {sample}" if times is None else f"sample {sample} (t = {times[sample]:.6g} s)"


@dataclass(eq=False)
class Closing:
    """The assembly of a ``mechanism`` along motions of its drives, in the mode of the posture ``start`` (nq,).

    Positions that were found are kept, by those of the drives: parts of a motion have the mode that the whole has.

    Example:
        >>> robot = torsor.library.four_bar()
        >>> crank = np.linspace(0.0, 6.0, 50)[:, None]
        >>> q = Closing(robot, robot.assemble([0.0])).positions(crank)
        >>> q.shape, bool(abs(robot.closure_error(q)).max() < 1e-9)
        ((50, 3), True)
    """

    mechanism: Robot
    start: Array
    _found: dict[bytes, Array] = field(default_factory=dict, repr=False)

    def positions(self, drives: Array, times: Array | None = None) -> Array:
        """Return the positions (N, nq) of all joints from those of the drives (N, n), at ``times`` (N,), if known.

        A sample whose loops cannot be closed, or where the drives do not determine the other joints, is an error.
        """
        keys = [row.tobytes() for row in np.ascontiguousarray(drives, dtype=float)]
        if any(key not in self._found for key in keys):
            q = self._followed(drives, times)
            if len(self._found) + len(q) > KEPT:
                self._found.clear()
            self._found.update(zip(keys, q, strict=True))
            return q
        return np.stack([self._found[key] for key in keys]) if keys else np.empty((0, self.mechanism.nq))

    def _followed(self, drives: Array, times: Array | None) -> Array:
        closure = self.mechanism.closure
        units = closure.scales[2][closure.active]
        steps = np.abs(np.diff(drives, axis=0) / units).max(axis=1, initial=0.0)
        first = np.flatnonzero(np.append(True, steps > STEP))
        ends = [*first[1:].tolist(), len(drives)]
        q = np.empty((len(drives), self.mechanism.nq))
        q[first] = self._assembled(drives[first], self.start, first.tolist(), times)
        path = np.cumsum(np.append(0.0, steps))
        for begin, end in zip(first.tolist(), ends, strict=True):
            at = begin + 1
            while at < end:
                last = max(at + 1, int(np.searchsorted(path[:end], path[at - 1] + REACH, side="right")))
                q[at:last] = self._assembled(drives[at:last], q[at - 1], range(at, last), times)
                at = last
        self._check_regular(q, times)
        return q

    def _assembled(self, drives: Array, guess: Array, samples: Sequence[int], times: Array | None) -> Array:
        """Return positions (M, nq) near a guess; the first of the ``samples`` (M) that has none is an error."""
        q = self.mechanism.assemble(drives, guess, "nan")
        lost = np.flatnonzero(np.isnan(q).any(axis=1))
        if lost.size:
            k = int(lost[0])
            try:
                self.mechanism.assemble(drives[k], guess)
                why = f"the loops do not close with the drives at {drives[k].round(6).tolist()}"
            except ModelError as error:
                why = str(error).removeprefix(f"{self.mechanism.name}: ")
            raise self._error(why, samples[k], times)
        return q

    def _check_regular(self, q: Array, times: Array | None) -> None:
        """Raise ModelError at the first sample where the drives do not determine the motion of the other joints."""
        closure, low, high = self.mechanism.closure, 0, len(q)
        try:
            return check_driven(closure, q)
        except ModelError:
            while high - low > 1:  # q[:high] has a singular sample, q[:low] has none
                middle = (low + high) // 2
                low, high = (low, middle) if self._singular(q[:middle]) else (middle, high)
        raise self._error(self._singular(q[low:high]).removeprefix(f"{closure.name}: "), low, times)

    def _singular(self, q: Array) -> str:
        try:
            check_driven(self.mechanism.closure, q)
        except ModelError as error:
            return str(error)
        return ""

    def _error(self, why: str, sample: int, times: Array | None) -> UnclosedError:
        what, _, fix = why.partition("; fix: ")
        start = "check zeros, units and signs of the drives, and the posture 'home' from which the loops are closed"
        found = f"{sample_at(sample, times)}: {what}"
        return UnclosedError(describe(found, where=self.mechanism.name, fix=fix or start), sample)
