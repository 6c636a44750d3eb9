"""Postures: named configurations that are kept with a mechanism, such as the keyframes of MJCF.

They are stored by the names of positions, so that edits of the mechanism need not know of them: a posture has the
positions that still exist, and new ones are neutral.
"""

from collections.abc import Iterable, Iterator, Mapping

from torsor.base.arrays import Array
from torsor.base.checks import LARGEST, name_of, number
from torsor.base.errors import ModelError, describe
from torsor.mechanism.parts import Joint


class Postures(Mapping[str, Array]):
    """Named configurations (nq,), which cannot be changed; unlike a mappingproxy they can be pickled.

    Example:
        >>> Postures({"home": np.zeros(2)})
        {'home': array([0., 0.])}
    """

    def __init__(self, table: Mapping[str, Array]):
        self._table = dict(table)

    def __getitem__(self, name: str) -> Array:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return repr(self._table)


def checked_postures(
    table: object, joints: Iterable[Joint], names: Iterable[str], where: str
) -> dict[str, dict[str, float]]:
    """Return postures with finite numbers, without positions that do not exist; raise ModelError for other input.

    ``names`` are those of all positions, of ``joints`` and of motors.
    """
    turning = [(joint, joint.position_names[-4:]) for joint in joints if joint.nq > joint.nv and not joint.follows]
    known = set(names)
    if not isinstance(table, Mapping) or not all(isinstance(each, Mapping) for each in table.values()):
        raise ModelError(describe("postures are no table", where=where, allowed="{name: {position: number}}"))
    found = dict[str, dict[str, float]]()
    for name, positions in table.items():
        at = f"{where}: posture {name_of(name, 'posture', where)!r}"
        found[name] = {
            key: number(value, at, key, least=-LARGEST, most=LARGEST)
            for key, value in positions.items()
            if key in known
        }
        for joint, quaternion in turning:
            neutral = dict(zip(quaternion, joint.kind.neutral[-4:], strict=True))
            if not any((neutral | found[name])[key] for key in quaternion):
                text = f"the quaternion of joint {joint.name!r} is 0"
                raise ModelError(describe(text, where=at, allowed="any other", fix="identity: 0 0 0 1"))
    return found
