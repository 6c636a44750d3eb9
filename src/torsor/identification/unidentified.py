"""What an identification does not determine, and why: each parameter with a reason in words.

Base parameters are combinations of the parameters of a robot (``Robot.base_parameters``). A parameter that is none of
them either acts on no force, or only together with others; a base parameter may be too small for the noise, or the
motion may not show it. ``found`` is an ``Identified``, whose file imports this one.
"""

from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.identification.closed_robot import is_excitable, whole
from torsor.identification.excitation.criteria import sizes_of
from torsor.mechanism.units import force_units
from torsor.robot.robot import Robot

KINDS = {
    "not shown": "The motion does not show them",
    "below noise": "They are below their noise",
    "regrouped": "They act only together with others",
    "no effect": "No motion shows them",
    "given": "They were taken as known",
}
ROUNDING = 1e-9  # of the largest factor of a combination
CERTAIN = 3.0  # deviations from zero, from which on a value tells the likely size of others of its kind
HALF_INTERVAL = 1.96  # standard deviations to each end of a 95 % interval
_UNITS = {"m": "kg", "mx": "kg m", "my": "kg m", "mz": "kg m"}
_TURNING = {"rotor_inertia": "kg m²", "coulomb": "N m", "viscous": "N m s"}
_SLIDING = {"rotor_inertia": "kg", "coulomb": "N", "viscous": "N s/m"}


class Unidentified(NamedTuple):
    """A ``parameter`` that was not identified on its own: the ``kind`` of reason, and ``why`` in words.

    Kinds are "not shown" (by this motion), "below noise", "regrouped" (with others), "no effect" and "given".

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 1))
        >>> found = torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)))
        >>> {each.parameter: each.kind for each in found.unidentified}["link1.Jxx"]
        'no effect'
    """

    parameter: str
    kind: str
    why: str


def unidentified(found: Any) -> tuple[Unidentified, ...]:
    """Return the parameters that an identification does not determine on their own, by kind of reason."""
    base, names = found.base, found.prior.parameter_names
    representative = {int(column): k for k, column in enumerate(base.columns)}
    own_names = tuple(names[k] for k in base.columns)
    certain = np.where(np.abs(found.values) > CERTAIN * found.deviations, np.abs(found.values), 0.0)
    sizes = sizes_of(own_names, np.maximum(np.abs(base.values), certain))
    rows = []
    for p, name in enumerate(names):
        parts = np.abs(base.matrix[:, p])
        within = [own_names[k] for k in np.flatnonzero(parts > ROUNDING * max(float(parts.max()), 1e-300))]
        if not base.unknown[p]:
            rows.append(Unidentified(name, "given", "it is the value of the given robot, which was not to be changed"))
        elif p in representative:
            weak = _weak(found, representative[p], sizes, unit_of(whole(found.prior), name))
            rows += [] if weak is None else [weak]
        elif within:
            text = f"no motion tells it from others: it is part of the combinations of {', '.join(within)}"
            rows.append(Unidentified(name, "regrouped", text))
        else:
            rows.append(Unidentified(name, "no effect", "no measured force depends on it, whatever the motion"))
    rows += _weak_terms(found)
    order = list(KINDS)
    return tuple(sorted(rows, key=lambda row: order.index(row.kind)))


def _weak(found: Any, k: int, sizes: Array, unit: str) -> Unidentified | None:
    """Return why a base parameter is not determined, or None if it is."""
    name, value, deviation = found.names[k], float(found.values[k]), float(found.deviations[k])
    if name not in found.undetermined:
        return None
    ends = f"95 % interval {_interval(value, deviation)} {unit}"
    if deviation > sizes[k]:
        text = f"its deviation, {deviation:.2g} {unit}, exceeds its likely size, {sizes[k]:.2g} {unit} ({ends}): "
        hint = "torsor excite finds a motion" if is_excitable(found.prior) else "another motion may show it"
        return Unidentified(name, "not shown", text + hint)
    return Unidentified(name, "below noise", f"zero, or too small for the noise of the forces ({ends})")


def _weak_terms(found: Any) -> list[Unidentified]:
    """Return the terms of drives whose deviations exceed their values."""
    if found.drives is None:
        return []
    rows = zip(found.drives.names, found.drives.values, found.drives.deviations, strict=True)
    weak = [(name, float(value), float(deviation)) for name, value, deviation in rows if deviation > abs(value) > 0]
    text = "zero, or too small for the noise of the forces (95 % interval {})"
    return [Unidentified(name, "below noise", text.format(_interval(*own))) for name, *own in weak]


def _interval(value: float, deviation: float) -> str:
    half = HALF_INTERVAL * deviation
    return f"{value - half:.3g} to {value + half:.3g}"


def unit_of(robot: Robot, name: str) -> str:
    """Return the unit of a parameter of a robot.

    Example:
        >>> [unit_of(torsor.library.stanford(), name) for name in ("link2.mx", "link2.Jxy", "joint3.viscous")]
        ['kg m', 'kg m²', 'N s/m']
    """
    part, _, kind = name.rpartition(".")
    if kind in _TURNING:
        return (_SLIDING if force_units(robot).get(part) == "N" else _TURNING)[kind]
    return _UNITS.get(kind, "kg m²")
