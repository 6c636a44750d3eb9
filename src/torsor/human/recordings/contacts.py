"""Detection of foot contacts, from heel strike to toe-off, from the vertical force."""

from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.human.recordings.recording import runs

LOAD_FRACTION = 0.025  # of the largest vertical force; for 70 kg, this is 20 N, the usual threshold of gait events
STRIDE_TIMES = (0.4, 2.5)  # s; from a fast run to a very slow walk
MIN_CONTACT_TIME = 0.1  # s; shorter contacts are vibrations of a force plate


class Contact(NamedTuple):
    """A foot contact: times (s) of heel strike and toe-off, None if the recording begins or ends in the contact."""

    strike: float | None
    off: float | None


def contacts(times: Array, vertical: Array) -> list[Contact]:
    """Return the contacts in a vertical force (K,), in any unit, whose largest value is positive.

    Example:
        >>> t = np.arange(200) / 100
        >>> [contact] = contacts(t, np.where((t > 0.495) & (t < 1.095), 700.0, 0.0))
        >>> round(contact.strike, 5), round(contact.off, 5)
        (0.49025, 1.09975)
    """
    level = LOAD_FRACTION * float(vertical.max())

    def crossing(k: int) -> float:
        """Return the time between samples k - 1 and k at which the force crosses the threshold."""
        (t0, t1), (f0, f1) = times[k - 1 : k + 1].tolist(), vertical[k - 1 : k + 1].tolist()
        return float(t0 + (t1 - t0) * (level - f0) / (f1 - f0))

    loaded = [run for run in runs(np.asarray(vertical > level)) if times[run[1]] - times[run[0]] >= MIN_CONTACT_TIME]
    final = len(times) - 1
    return [
        Contact(crossing(first) if first else None, crossing(last + 1) if last < final else None)
        for first, last in loaded
    ]
