"""Forces that a simulation asks of drives beyond their limits: simulations do not enforce limits, so they are told."""

from typing import NamedTuple

import numpy as np

from torsor.base.errors import describe, warn
from torsor.mechanism.units import force_units
from torsor.simulation.samples import Samples

BEYOND = 2e-2  # fraction of its limit by which a force may exceed it: less is rounding, or a bound held at nodes only


class Overload(NamedTuple):
    """The largest force (N m, N) of a ``coordinate`` that its drive cannot give, when it acts (s), and the limit."""

    coordinate: str
    time: float
    force: float
    limit: float


def overloads(samples: Samples) -> tuple[Overload, ...]:
    """Return the coordinates whose forces exceed their ``effort_limit`` by more than 2 %, the worst first.

    Of all rollouts and samples, the largest force of each coordinate. A limit of 0 marks a coordinate without a drive.
    """
    limits, found = samples.robot.effort_limit, list[Overload]()
    for k, name in enumerate(samples.robot.coordinate_names):
        force = np.abs(np.nan_to_num(samples.tau[..., k]))
        if not 0 < limits[k] < np.inf or not force.max(initial=0.0) > (1 + BEYOND) * limits[k]:
            continue
        place = np.unravel_index(int(np.argmax(force)), force.shape)
        value = float(samples.tau[(*place, k)])
        found.append(Overload(name, float(samples.times[place[-1]]), value, float(limits[k])))
    return tuple(sorted(found, key=lambda each: -abs(each.force) / each.limit))


def warn_of_overloads(samples: Samples, found: tuple[Overload, ...]) -> None:
    """Give one warning for all coordinates; the worst one is named with its force."""
    if not found:
        return
    worst, unit = found[0], force_units(samples.robot)[found[0].coordinate]
    others = f" ({len(found)} drives in all: {', '.join(each.coordinate for each in found)})" if len(found) > 1 else ""
    text = f"{worst.coordinate} is asked for {worst.force:.4g} {unit} at t = {worst.time:.4g} s"
    text += f", beyond the limit of {worst.limit:.4g} {unit} of its drive{others}"
    fix = "limits are not enforced: use smaller gains or a slower reference, or correct the effort limit"
    warn(describe(text, where=samples.robot.name, fix=fix))
