"""Foot contacts, from heel strike to toe-off, from the vertical force or from the events of a C3D file."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import real_array
from torsor.base.errors import ModelError
from torsor.human.recordings.recording import Event, runs

LOAD_FRACTION = 0.025  # of the largest vertical force; for 70 kg, this is 20 N, the usual threshold of gait events
STRIDE_TIMES = (0.4, 2.5)  # s; from a fast run to a very slow walk
MIN_CONTACT_TIME = 0.1  # s; shorter contacts are vibrations of a force plate
EVENT_TOLERANCE = 0.05  # s; largest difference between an event and the force, five frames at 100 Hz
# Names of events in C3D files, such as "Right Foot Strike", "Left Foot Off", "Left Heel Strike", RHS and LTO.
_EVENT = re.compile(
    r"(?:.*\b)?(right|left|r|l)[ _-]*"
    r"(?:((?:foot|heel)[ _-]?(?:strike|contact|on)|initial[ _-]?contact|[hf]s|on)|((?:foot|toe)[ _-]?off|[tf]o|off))",
    re.IGNORECASE,
)


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


class FootEvents(NamedTuple):
    """The times (s) of the ``strikes`` and ``offs`` of a foot, in increasing order."""

    strikes: tuple[float, ...] = ()
    offs: tuple[float, ...] = ()

    def contacts(self, measured: Sequence[Contact] = ()) -> list[Contact]:
        """Return the contacts that begin at the strikes; ``measured`` contacts provide missing foot offs.

        Example:
            >>> FootEvents((0.2, 1.3), (0.9,)).contacts()
            [Contact(strike=0.2, off=0.9), Contact(strike=1.3, off=None)]
        """
        offs = self.offs or [contact.off for contact in measured if contact.off is not None]
        ends = [*self.strikes[1:], np.inf]
        return [
            Contact(strike, next((off for off in offs if strike < off < end), None))
            for strike, end in zip(self.strikes, ends, strict=True)
        ]

    def contradicted(self, measured: Iterable[Contact]) -> Contact | None:
        """Return the first ``measured`` contact that contradicts the events, or None.

        Within a contact and next to it, there must be no other event than a strike at its beginning and an off at its
        end. Contacts before the first event and after the last one may have no event.
        """
        for contact in measured:
            first = -np.inf if contact.strike is None else contact.strike
            last = np.inf if contact.off is None else contact.off
            inside = [t for t in self.strikes if first + EVENT_TOLERANCE < t < last]
            inside += [t for t in self.offs if first < t < last - EVENT_TOLERANCE]
            missed = any(_misses(times, t) for times, t in zip(self, contact, strict=True) if t is not None)
            if inside or missed:
                return contact
        return None


def _misses(times: Sequence[float], t: float) -> bool:
    """Return whether there is no event at time ``t`` (s) although there are events around it, or a late one."""
    gap = min((abs(t - time) for time in times), default=np.inf)
    return gap > EVENT_TOLERANCE and (gap < STRIDE_TIMES[0] or any(a < t < b for a, b in pairwise(times)))


def foot_events(events: Iterable[Event]) -> dict[str, FootEvents]:
    """Return the foot strikes and foot offs of each side with such events; other events are omitted.

    Example:
        >>> foot_events([Event(0.2, "Right Foot Strike"), Event(0.9, "Right Foot Off"), Event(1.0, "LHS")])
        {'right': FootEvents(strikes=(0.2,), offs=(0.9,)), 'left': FootEvents(strikes=(1.0,), offs=())}
    """
    times = dict[str, tuple[list[float], list[float]]]()
    for time, name in sorted(events):
        matched = _EVENT.fullmatch(name.strip())
        if matched:
            side = "right" if matched[1][0] in "rR" else "left"
            times.setdefault(side, ([], []))[0 if matched[2] else 1].append(time)
    return {side: FootEvents(tuple(strikes), tuple(offs)) for side, (strikes, offs) in times.items()}


def strike_times(strikes: ArrayLike, where: str) -> list[float]:
    """Return the heel strikes of a foot (s), which must be two or more increasing times.

    Example:
        >>> strike_times([0.6, 1.7], "walk")
        [0.6, 1.7]
    """
    times = real_array(strikes, where, "strikes")
    if times.ndim != 1 or len(times) < 2 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        allowed = "two or more increasing times (s)"
        raise ModelError(f"is {times.tolist()}", argument="strikes", where=where, allowed=allowed)
    found: list[float] = times.tolist()
    return found
