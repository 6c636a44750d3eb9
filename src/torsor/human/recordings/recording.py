"""All that one file of a recording holds."""

from dataclasses import dataclass
from typing import NamedTuple

from torsor.base.errors import ModelError, describe
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.markers import Markers
from torsor.human.recordings.motion_table import MotionTable


class Event(NamedTuple):
    """Something that happened at a ``time`` (s), such as "Right Foot Strike"."""

    time: float
    name: str


@dataclass(frozen=True, eq=False)
class Recording:
    """What a file holds: ``markers``, ground ``forces``, a ``table`` of columns over time, and ``events``.

    What a file does not hold raises an error that says so when it is asked for; ``has`` tells.

    Example:
        >>> markers = Markers(["toe"], [0.0], np.zeros((1, 1, 3)))
        >>> recording = Recording("walk.trc", markers)
        >>> recording.has("markers"), recording.has("forces")
        (True, False)
        >>> recording.forces
        Traceback (most recent call last):
        torsor.ModelError: walk.trc: it holds no ground forces; fix: load the file that has them, often a .mot \
or a .c3d file
    """

    source: str
    found_markers: Markers | None = None
    found_forces: GroundForces | None = None
    found_table: MotionTable | None = None
    events: tuple[Event, ...] = ()

    def has(self, what: str) -> bool:
        """Whether it holds "markers", "forces" or a "table"."""
        return getattr(self, f"found_{what}", None) is not None

    @property
    def markers(self) -> Markers:
        """The markers."""
        if self.found_markers is None:
            raise self._lacks("markers", "a .trc or a .c3d file")
        return self.found_markers

    @property
    def forces(self) -> GroundForces:
        """The forces of the ground."""
        if self.found_forces is None:
            raise self._lacks("ground forces", "a .mot or a .c3d file")
        return self.found_forces

    @property
    def table(self) -> MotionTable:
        """The columns of a .mot, .sto or .csv file."""
        if self.found_table is None:
            raise self._lacks("table of columns", "a .mot or a .sto file")
        return self.found_table

    def _lacks(self, what: str, files: str) -> ModelError:
        fix = f"load the file that has them, often {files}"
        return ModelError(describe(f"it holds no {what}", where=self.source, fix=fix))
