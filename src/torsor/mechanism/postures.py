"""Postures: named configurations that are kept with a mechanism, such as the keyframes of MJCF.

They are stored by the names of positions, so that edits of the mechanism need not know of them: a posture has the
positions that still exist, and new ones are neutral.
"""

from collections.abc import Iterable, Mapping

from torsor.checks import name_of, number
from torsor.errors import ModelError, describe


def checked_postures(table: object, names: Iterable[str], where: str) -> dict[str, dict[str, float]]:
    """Return postures with finite numbers, without positions that do not exist; raise ModelError for other input."""
    known = set(names)
    if not isinstance(table, Mapping) or not all(isinstance(each, Mapping) for each in table.values()):
        raise ModelError(describe("postures are no table", where=where, allowed="{name: {position: number}}"))
    found = dict[str, dict[str, float]]()
    for name, positions in table.items():
        at = f"{where}: posture {name_of(name, 'posture', where)!r}"
        found[name] = {key: number(value, at, key) for key, value in positions.items() if key in known}
    return found
