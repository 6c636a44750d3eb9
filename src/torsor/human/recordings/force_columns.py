"""Ground forces as columns of a table: found by their names, and written in those of OpenSim."""

import re
from collections.abc import Sequence

import numpy as np

from torsor.human.recordings.axes import OPENSIM
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.motion_table import MotionTable

_SIDES = {"r": "right", "l": "left", "right": "right", "left": "left"}
_SHORT = {"right": "r", "left": "l"}


def forces_of(table: MotionTable, axes: str = OPENSIM) -> GroundForces | None:
    """Return the ground forces in a table, or None where it has none.

    A plate or foot is nine columns: one name with vx, vy, vz (N) and px, py, pz (m) at its end, and the same name with
    "torque" or "moment" in place of "force" and x, y, z at its end (N m): ground_force_r_vx and ground_torque_r_x,
    1_ground_force_vx and 1_ground_torque_x. Without torques the free moments are 0.

    Example:
        >>> names = [f"ground_force_r_{each}" for each in ("vx", "vy", "vz", "px", "py", "pz")]
        >>> forces_of(MotionTable(names, [0.0], [[0.0, 700.0, 0.0, 0.1, 0.0, 0.2]])).names
        ('right',)
    """
    stems = [name[:-2] for name in table.names if name.endswith("vx") and "force" in name.lower()]
    stems = [stem for stem in stems if all(f"{stem}{end}" in table.names for end in _ENDS)]
    if not stems:
        return None
    at = {name: k for k, name in enumerate(table.names)}

    def triple(names: Sequence[str]) -> list[int] | None:
        return [at[name] for name in names] if all(name in at for name in names) else None

    arrays: list[list[np.ndarray]] = [[], [], []]
    for stem in stems:
        torque = next((found for names in _torques(stem) if (found := triple(names))), None)
        places = [triple([f"{stem}{kind}{axis}" for axis in "xyz"]) for kind in "vp"]
        for kind, columns in enumerate([*places, torque]):
            arrays[kind].append(np.zeros((len(table), 3)) if columns is None else table.values[:, columns])
    forces, centers, moments = (np.stack(each, axis=1) for each in arrays)
    return GroundForces(_names(stems), table.times, forces, centers, moments, axes=axes, source=table.source)


def table_of(forces: GroundForces) -> MotionTable:
    """Return ground forces as the columns of OpenSim: ground_force_r_vx, ..., ground_torque_r_z; NaN becomes 0.

    Example:
        >>> zero = np.zeros((1, 1, 3))
        >>> table_of(GroundForces(["left"], [0.0], zero, zero, zero)).names[:2]
        ('ground_force_l_vx', 'ground_force_l_vy')
    """
    names, columns = list[str](), []
    for k, name in enumerate(forces.names):
        short = _SHORT.get(name, re.sub(r"\W+", "_", name))
        names += [f"ground_force_{short}_{kind}{axis}" for kind in "vp" for axis in "xyz"]
        names += [f"ground_torque_{short}_{axis}" for axis in "xyz"]
        columns += [each[:, k] for each in (forces.forces, forces.centers, forces.moments)]
    # OpenSim does not read NaN; without a force, the centre of pressure has no effect.
    return MotionTable(tuple(names), forces.times, np.nan_to_num(np.hstack(columns)), False, "ground forces")


_ENDS = tuple(f"{kind}{axis}" for kind in "vp" for axis in "xyz")


def _torques(stem: str) -> list[list[str]]:
    """Return the names that torques may have."""
    others = [re.sub("force", word, stem, flags=re.IGNORECASE) for word in ("torque", "moment")]
    return [[f"{other}{kind}{axis}" for axis in "xyz"] for other in (*others, stem) for kind in ("", "m", "t")]


def _names(stems: Sequence[str]) -> tuple[str, ...]:
    found = list[str]()
    for stem in stems:
        bare = re.sub(r"ground|force|grf|calcn", "", stem, flags=re.IGNORECASE).strip("_ .").lower()
        bare = _SIDES.get(bare, f"plate {bare}" if bare.isdigit() else bare or "plate")
        found.append(bare)
    if sorted(found) == ["left", "plate"]:  # in older files of OpenSim, the right foot has no prefix
        found[found.index("plate")] = "right"
    return tuple(found) if len(set(found)) == len(found) else tuple(stem.strip("_ .") for stem in stems)
