"""Reading and writing of recording files; the suffix selects the format."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from torsor.base.errors import ModelError, warn
from torsor.base.files import check_file
from torsor.human.recordings import text_files
from torsor.human.recordings.axes import OPENSIM
from torsor.human.recordings.c3d_files import read_c3d, write_c3d
from torsor.human.recordings.inspection import inspect
from torsor.human.recordings.recording import GroundForces, Markers, MotionTable, Recording

Placed = TypeVar("Placed", Markers, GroundForces)
KINDS = ".trc, .mot, .sto, .c3d, .csv"
EXAMPLE, EXAMPLE_MASS, EXAMPLE_HEIGHT = Path(__file__).with_name("example"), 85.3, 1.8  # kg, m
EXAMPLE_STRIKES = ("left", "0.84", "1.98")  # side and times (s); the second one is on the floor beside the plates
EXAMPLE_FILES = tuple(str(EXAMPLE / name) for name in ("walk.trc", "walk_grf.mot"))


def load(
    path: str | Path,
    *,
    unit: str | None = None,
    axes: str | None = None,
    columns: Mapping[str, str] | None = None,
    rate: float | None = None,
    check: bool = True,
) -> Recording:
    """Return the content of a recording file in SI units: markers, ground forces, a table over time, and events.

    The suffix selects the format: .trc (markers), .mot and .sto (tables; columns of ground forces are recognised by
    name), .c3d (markers, force plates, events; extra ``mocap``) or .csv. ``unit`` ("m", "cm", "mm") and ``axes``
    replace those of the file; the axes "forward up right" of OpenSim are assumed, except for .c3d. ``columns`` {column:
    name} and ``rate`` (Hz) apply to .csv files. Unless ``check`` is False, warnings are issued for likely errors
    (``inspect``).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     toe = np.zeros((2, 1, 3)) + 0.1
        ...     save(Markers(["toe"], [0.0, 0.01], toe, axes="forward up right"), folder + "/walk.trc")
        ...     load(folder + "/walk.trc").markers.names
        ('toe',)
    """
    path = Path(path)
    suffix = path.suffix.lower()
    check_file(path, f"a file: {KINDS}")
    if suffix != ".csv" and (columns is not None or rate is not None):
        argument = "rate" if columns is None else "columns"
        raise ModelError("is only for .csv files", argument=argument, where=path.name, fix=f"omit {argument}")
    if suffix == ".trc":
        recording = Recording(path.name, text_files.read_trc(path, unit=unit, axes=OPENSIM if axes is None else axes))
    elif suffix in (".mot", ".sto"):
        table = text_files.read_mot(path)
        recording = Recording(path.name, None, text_files.forces_of(table, OPENSIM if axes is None else axes), table)
    elif suffix == ".c3d":
        recording = read_c3d(path, unit=unit, axes=axes)
    elif suffix == ".csv":
        recording = text_files.read_csv(path, columns, unit=unit, axes=OPENSIM if axes is None else axes, rate=rate)
    else:
        fix = "read an .osim file with torsor.human.recordings.read_osim" if suffix == ".osim" else ""
        raise ModelError(f"unknown file type {suffix!r}", value=suffix, where=path.name, allowed=KINDS, fix=fix)
    if check:
        for finding in inspect(recording):
            warn(str(finding))
    return recording


def example() -> Recording:
    """Return markers and ground forces of the recorded walk of a man of 85.3 kg and 1.80 m.

    The recording, which is included in Torsor, is from OpenSim Moco's example3DWalking (Apache License 2.0).

    Example:
        >>> walk = example()
        >>> len(walk.markers.names), walk.markers.rate, walk.forces.names
        (41, 100.0, ('right', 'left'))
    """
    markers, forces = (load(path, check=False) for path in EXAMPLE_FILES)
    return Recording(markers.source, markers.markers, forces.forces)


def save(data: Markers | GroundForces | MotionTable, path: str | Path, *, unit: str | None = None) -> None:
    """Write markers (.trc, .c3d), ground forces or a table (.mot, .sto, .csv).

    ``unit`` ("m", "cm", "mm") is the unit of markers in the file, by default the unit in which they were read. Markers
    and forces in text files are rotated to the axes of OpenSim, "forward up right"; if their axes are unknown, a
    warning is issued. C3D files keep the axes, and have single precision. Other numbers read back exactly as float64.
    Ground forces have OpenSim names.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(MotionTable(["knee_angle_r"], [0.0], [[0.1]], in_degrees=False), folder + "/walk.mot")
        ...     load(folder + "/walk.mot").table.column("knee_angle_r").tolist()
        [0.1]
    """
    path = Path(path)
    suffix = path.suffix.lower()
    writers: dict[str, Any] = {".mot": text_files.write_mot, ".sto": text_files.write_mot, ".csv": text_files.write_csv}
    if isinstance(data, Markers) and suffix in (".trc", ".c3d"):
        if suffix == ".trc":
            text_files.write_trc(_in_opensim_axes(data, path), path, unit=unit)
        else:
            write_c3d(data, path, unit=unit)
    elif isinstance(data, (GroundForces, MotionTable)) and suffix in writers and unit is None:
        if isinstance(data, GroundForces):
            data = text_files.table_of(_in_opensim_axes(data, path))
        writers[suffix](data, path)
    else:
        allowed = "Markers as .trc or .c3d; GroundForces or a MotionTable as .mot, .sto or .csv, without a unit"
        what = f"{type(data).__name__} cannot be written as {suffix!r}"
        what += "" if unit is None else f" with the unit {unit!r}"
        raise ModelError(what, where=path.name, allowed=allowed)


def _in_opensim_axes(data: Placed, path: Path) -> Placed:
    """Return markers or ground forces in the axes that text files have when they are read."""
    if not data.axes:
        fix = f'set them, as in `dataclasses.replace(data, axes="{OPENSIM}")`'
        warn(f"the axes of the data are unknown; they are read as {OPENSIM!r}", where=path.name, fix=fix)
    return data if data.axes in ("", OPENSIM) else data.in_axes(OPENSIM)
