"""Measured motions as signals: what inverse kinematics and inverse dynamics return."""

from typing import Any

import numpy as np

from torsor.human.comparison.signals import Signals, of_forces, places
from torsor.human.comparison.strides import Signal
from torsor.human.comparison.units import G, Scale


def of_measured(measured: Any, side: str) -> Signals | None:
    """Return the signals of a ``MeasuredDynamics`` or a ``MeasuredMotion``; None if it is neither."""
    from torsor.human.measured import MeasuredDynamics, MeasuredMotion

    if isinstance(measured, MeasuredMotion):
        at, times = places(measured.body.coordinate_names, side), measured.times
        return Signals(angles={name: Signal(times, np.degrees(measured.q[:, k])) for name, k in at.items()})
    if not isinstance(measured, MeasuredDynamics):
        return None
    at, times = places(measured.names, side), measured.times
    found = Signals(mass=measured.weight / G)
    for name, k in at.items():
        found.angles[name] = Signal(times, np.degrees(measured.q[:, k]))
        found.rates[name] = Signal(times, measured.v[:, k])
        found.moments[name] = Signal(times, measured.forces[:, k])
    found.scales["moment"] = Scale("moment", 1.0, absolute=True)
    if measured.ground is not None:
        found = found.with_more(of_forces(measured.ground, side), measured.ground.source)
    return found
