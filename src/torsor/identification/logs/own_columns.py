"""The map of a log whose heads are those of Torsor: 'time', 'q NAME', 'v NAME', 'a NAME', 'tau NAME' with [unit].

There may also be a column 'temperature', or 'temperature NAME' of each coordinate.
"""

import re
from pathlib import Path
from typing import Any

from torsor.base.errors import ModelError, describe, listing
from torsor.base.files import check_file
from torsor.identification.logs.log_map import LogMap
from torsor.mechanism.units import FORCES
from torsor.mechanism.units import units as units_of
from torsor.robot.robot import Robot
from torsor.simulation.log_tables import LOGS, heads_of
from torsor.simulation.logs import UNITS

_HEAD = re.compile(r"(?:held )?(time|temperature|\S+ .*?)(?: \[([^]]*)\])?")
FIX = "name the columns so, or say which they are in a map: --map FILE (docs: identify from a log)"


def own_map(path: Path, robot: Robot) -> LogMap:
    r"""Return the map of a log by its heads, with the units that they name in brackets.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "log.csv")
        ...     _ = file.write_text("time [ms],q joint1 [deg],tau joint1\n0,0,0\n", encoding="utf-8")
        ...     own_map(file, torsor.library.planar_chain(1)).units
        {'time': 'ms', 'q': ['deg'], 'tau': ['N m']}
    """
    check_file(path, LOGS)
    if path.suffix.lower() == ".npz":
        return LogMap({"q": list(robot.position_names)}, source=path.name)
    places: dict[str, tuple[str, str]] = {}
    heads = heads_of(path)
    if not any(_HEAD.fullmatch(head) for head in heads):
        heads = heads_of(path, ",")  # a single column, whose head has a space
    for head in heads:
        match = _HEAD.fullmatch(head)
        if match and match[1] in places:
            raise ModelError(describe(f"the column {head!r} is there twice", where=path.name))
        if match:
            places[match[1]] = head, match[2] or ""
    columns: dict[str, Any] = {}
    units: dict[str, Any] = {}
    for letter in ("time", "q", "v", "a", "tau"):
        names = robot.position_names if letter == "q" else robot.coordinate_names
        wanted = ["time"] if letter == "time" else [f"{letter} {name}" for name in names]
        missing = [each for each in wanted if each not in places]
        if len(missing) == len(wanted) and letter != "q":
            continue
        if missing:
            text = f"no column {missing[0]!r}, the columns are {listing(heads)}"
            raise ModelError(describe(text, where=path.name, allowed=listing(wanted), fix=FIX))
        columns[letter] = [places[each][0] for each in wanted]
        own = ["s"] if letter == "time" else [kind if kind != "1" else "rad" for kind in units_of(robot)[letter != "q"]]
        units[letter] = [_unit(places[each], letter, kind, path.name) for each, kind in zip(wanted, own, strict=True)]
    warm = [f"temperature {name}" for name in robot.coordinate_names]
    present = ["temperature"] if "temperature" in places else warm if warm[0] in places else []
    if present:
        missing = [each for each in present if each not in places]
        if missing:
            found = f"no column {missing[0]!r}"
            raise ModelError(describe(found, where=path.name, allowed=listing(present), fix=FIX))
        columns["temperature"] = [places[each][0] for each in present]
    if "tau" not in columns:
        fix = "add columns 'tau NAME', or say in a map which columns the forces or currents are: --map FILE"
        raise ModelError(describe("no columns of forces", where=path.name, fix=fix))
    if "time" not in columns and "v" in columns and "a" in columns:
        return LogMap(columns, units=units, rate=1.0, source=path.name)  # samples in any order
    if "time" not in columns:
        fix = "add a column 'time', or give the rate in a map: --map FILE"
        raise ModelError(describe("no column 'time'", where=path.name, fix=fix))
    return LogMap({**columns, "time": columns["time"][0]}, units={**units, "time": units["time"][0]}, source=path.name)


def _unit(column: tuple[str, str], letter: str, kind: str, where: str) -> str:
    """Return the unit of a column; N·m, Nm and N m are the same, so are s² and s^2; SI and radians without one."""
    head, unit = column
    if not unit:
        return FORCES[kind] if letter == "tau" else kind + {"v": "/s", "a": "/s^2"}.get(letter, "")
    plain = re.sub(r"[\s·*]", "", unit).replace("²", "^2")
    found = next((each for each in UNITS[letter] if each.replace(" ", "") == plain), None)
    if found is None:
        allowed = ", ".join(UNITS[letter])
        raise ModelError(describe(f"the column {head!r} has another unit", where=where, allowed=allowed))
    return found
