"""Likely mistakes in recordings, of one file or of several of the same trial."""

import re

import numpy as np

from torsor.base.errors import ModelError, describe
from torsor.human.recordings.findings import Finding, finding
from torsor.human.recordings.force_inspection import foot_findings, force_findings
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.marker_inspection import marker_findings
from torsor.human.recordings.markers import Markers
from torsor.human.recordings.motion_table import MotionTable, is_no_angle
from torsor.human.recordings.recording import Recording

_ANGLE = re.compile(r"angle|flex|ext(ension)?_|rotation|adduction|abduction|tilt|_list|bending|_add|_rot|pro_sup", re.I)
TURNS = 4 * np.pi  # rad: no joint turns twice
SPOILING = ("unit", "axes", "offset")  # findings that make those of feet on plates meaningless
MAX_RADIANS = 1.6  # the largest number in a table of angles that are in radians, most often


def inspect(*parts: Recording | Markers | GroundForces | MotionTable) -> list[Finding]:
    """Return the likely mistakes in recordings of one trial: each says where it is, and the fix.

    Kinds: "unit", "swap" (two markers exchange places, or lie in the wrong order), "sides" (right and left in all
    frames), "jump", "frozen", "missing", "gap", "treadmill", "axes", "offset" (of a plate that nobody is on), "place"
    (a centre of pressure off its plate or foot), "times", "feet" (swapped), "shared" (one foot on two plates, or two
    feet on one), "degrees". What needs markers and forces is looked for where both are given.

    Example:
        >>> inspect(Markers(["toe"], [0.0, 0.01, 0.02], [[[0.1, 0.2, 0.3]]] * 3))
        []
    """
    markers, forces, tables = list[Markers](), list[GroundForces](), list[MotionTable]()
    for part in parts:
        if isinstance(part, Recording):
            markers += [] if part.found_markers is None else [part.found_markers]
            forces += [] if part.found_forces is None else [part.found_forces]
            tables += [] if part.found_table is None else [part.found_table]
        elif isinstance(part, Markers):
            markers.append(part)
        elif isinstance(part, GroundForces):
            forces.append(part)
        elif isinstance(part, MotionTable):
            tables.append(part)
        else:
            allowed = "Recording, Markers, GroundForces or MotionTable"
            raise ModelError(describe(f"a {type(part).__name__}", where="inspect", allowed=allowed))
    found = [each for part in markers for each in marker_findings(part)]
    found += [each for part in forces for each in force_findings(part)]
    if not any(each.kind in SPOILING for each in found):
        found += [each for force in forces for marker in markers for each in foot_findings(force, marker)]
    return found + [each for part in tables for each in _angles(part)]


def _angles(table: MotionTable) -> list[Finding]:
    """Angles in degrees in a table of radians, or the other way round."""
    angles = [k for k, name in enumerate(table.short_names) if _ANGLE.search(name) and not is_no_angle(name)]
    if table.in_degrees is None or not angles:
        return []
    largest = {k: float(np.nanmax(np.abs(table.values[:, k]), initial=0.0)) for k in angles}
    if not table.in_degrees:
        places = [f"{table.names[k]!r} reaches {size:.4g}" for k, size in largest.items() if size > TURNS]
        fix = "convert these columns (np.deg2rad), or correct inDegrees in the file"
        return finding("degrees", places, table.source, fix, "angles are said to be in radians, but ")
    if len(angles) > 2 and 0 < max(largest.values()) < MAX_RADIANS:
        place = f"angles are said to be in degrees, but none is above {max(largest.values()):.3g}"
        return finding("degrees", [place], table.source, "correct inDegrees in the file if they are in radians")
    return []
