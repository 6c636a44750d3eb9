"""The error of a simulation."""

from typing import Any


class SimulationError(RuntimeError):
    """A simulation that cannot continue; ``trajectory`` is the ``Trajectory`` until then, None without any sample."""

    trajectory: Any = None
