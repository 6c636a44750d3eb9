"""The units of coordinates."""

from torsor.mechanism.mechanism import Mechanism

FORCES = {"rad": "N m", "m": "N"}
"""The unit of a force, by that of its coordinate."""


def units(mechanism: Mechanism) -> tuple[list[str], list[str]]:
    """Return the unit of each position and of each velocity times s: rad, m, or 1 for quaternions.

    The angle of a motor is taken after the gear, so it has the unit of its joint.

    Example:
        >>> units(torsor.library.stanford())[0]
        ['rad', 'rad', 'm', 'rad', 'rad', 'rad']
    """
    positions: list[str] = []
    rates: list[str] = []
    for joint in mechanism.joints:
        if not joint.follows:
            own = ["rad" if turns else "m" for turns in joint.kind.turns]
            rates += own
            positions += own if joint.nq == joint.nv else [*["m"] * (joint.nq - 4), *["1"] * 4]
    motors = ["rad" if joint.kind.turns[0] else "m" for joint in mechanism.elastic]
    return positions + motors, rates + motors


def force_units(mechanism: Mechanism) -> dict[str, str]:
    """Return the unit of the force of each coordinate, by its name: N m or N.

    Example:
        >>> force_units(torsor.library.stanford())["joint3"]
        'N'
    """
    return {name: FORCES[unit] for name, unit in zip(mechanism.coordinate_names, units(mechanism)[1], strict=True)}
