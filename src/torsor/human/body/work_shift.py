"""A work shift: the frequency and duration of a repeated task, and the coupling between hands and load."""

from dataclasses import dataclass

from torsor.base.checks import number, one_of
from torsor.base.errors import ModelError

SHIFT_HOURS = 8.0  # hours
MIN_FREQUENCY = 0.2  # lifts per minute; the lowest frequency of the lifting equation
DURATIONS = {"short": 60.0, "moderate": 120.0, "long": 60.0 * SHIFT_HOURS}  # longest continuous work (minutes)
COUPLINGS = ("good", "fair", "poor")
_TOLERANCE = 1e-9  # relative rounding error of a duration


@dataclass(frozen=True)
class WorkShift:
    """The repetitions of a task in a shift, from which the lifting equation and the cumulative load are computed.

    The task is repeated ``repetitions`` times per shift, with a ``frequency`` per minute. The default frequency is 0.2
    or, if larger, the repetitions divided by the time of ``work_duration`` (8 hours without one). ``work_duration`` is
    "short" (up to 1 hour, followed by rest), "moderate" (2 hours) or "long" (8 hours); the default is the shortest one
    that permits the repetitions. ``coupling`` between hands and load is "good" (handles), "fair" or "poor".

    Example:
        >>> shift = WorkShift(repetitions=200.0, frequency=1.0)
        >>> shift.frequency_per_minute, shift.duration
        (1.0, 'long')
        >>> WorkShift(repetitions=1000.0, frequency=1.0)
        Traceback (most recent call last):
        torsor.ModelError: work shift: 1000 repetitions at 1 per minute take 16.7 hours; allowed: at most 8 hours
    """

    repetitions: float = 1.0
    frequency: float | None = None
    coupling: str = "fair"
    work_duration: str | None = None

    def __post_init__(self) -> None:
        number(self.repetitions, "work shift", "repetitions", above=0.0)
        one_of(self.coupling, COUPLINGS, "work shift", "coupling")
        if self.frequency is not None:
            number(self.frequency, "work shift", "frequency", above=0.0)
        if self.work_duration is not None:
            one_of(self.work_duration, tuple(DURATIONS), "work shift", "work_duration")
        limit = DURATIONS[self.work_duration or "long"]
        if self.minutes > limit * (1 + _TOLERANCE):
            what = f"{self.repetitions:g} repetitions at {self.frequency_per_minute:.3g} per minute take"
            allowed = f"at most {limit / 60:g} {'hour' if limit == 60 else 'hours'}"
            raise ModelError(f"{what} {self.minutes / 60:.3g} hours", where="work shift", allowed=allowed)

    @property
    def frequency_per_minute(self) -> float:
        """The repetitions per minute."""
        if self.frequency is not None:
            return self.frequency
        return max(MIN_FREQUENCY, self.repetitions / DURATIONS[self.work_duration or "long"])

    @property
    def minutes(self) -> float:
        """The duration of the work (minutes)."""
        return self.repetitions / self.frequency_per_minute

    @property
    def duration(self) -> str:
        """The duration class of the work: "short", "moderate" or "long"."""
        fits = (name for name, most in DURATIONS.items() if self.minutes <= most * (1 + _TOLERANCE))
        return self.work_duration or next(fits)
