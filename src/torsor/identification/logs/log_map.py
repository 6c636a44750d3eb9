"""The map of a log: which columns are what, in which units, at which side of the gears, and how they are prepared."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from torsor.base.checks import one_of, positive, table, whole_number
from torsor.base.errors import ModelError, describe
from torsor.base.files import check_file, read_limited
from torsor.base.yaml_text import parse_yaml
from torsor.identification.logs.gears import Gears
from torsor.robot.robot import Robot

LARGEST_MAP = 1_000_000  # bytes
ESTIMATED = "estimate"


@dataclass(frozen=True)
class LogMap:
    """Where the signals of a log are, and how they become measurements.

    ``columns`` maps "time", "q", "v", "a", "tau" or "current" to heads, or to numbers of columns from 0, in the order
    of the coordinates; the time may be a table {"q": head, "tau": head}. "temperature" is one column, or one for each
    drive. ``rate`` (Hz) stands for a column of times.
    ``units`` as in ``Trajectory.load``, and "A" or "mA"; ``scale`` are further factors, such as -1 for a sign.
    ``files`` names other files of the same run, beside the log: {"tau": "{stem}_torques.csv"}.

    ``drives`` has the ``side`` ("motor" or "joint", or a table by quantity), ``ratios`` (n,) with ``coupling`` [[motor,
    joint, ratio], ...] or a ``matrix`` R (n, n), motor = R joint, ``offsets`` (n,) that are added to the positions of
    the joints (rad, m), and ``torque_constants`` (n,) of currents (N m/A).

    ``delay`` (s) is what the forces are late by, one for all or one for each coordinate, or "estimate": the shift with
    which the model explains the forces best. ``cutoff`` (Hz) is that of the filter which differentiates (chosen from
    the spectrum, if it is not given), ``force_cutoff`` (Hz) that of a filter for forces (none, if it is not given).
    ``every`` keeps every so many samples after filtering. Steps longer than ``gap`` (s; five usual steps by default)
    separate segments that are differentiated alone. Rows with a cell that has no number are refused, or left out
    (``missing="skip"``). Forces of at least ``saturation`` (n,), as the log has them in SI units, get the weight 0.

    ``wrenches`` {link or frame: {"force": 3 columns, "moment": 3 columns, "axes": "local" or "world", "origin": [x, y,
    z]}} are measured wrenches of the environment, N and N m; without "moment" (sensors of three axes) it is zero about
    the place, or the origin. The columns of tau of a free base may be left out, or all of tau.

    Example:
        >>> LogMap({"time": "t", "q": ["j1", "j2"], "tau": ["i1", "i2"]}, units={"time": "ms"}).delay
        0.0
    """

    columns: Mapping[str, Any]
    units: Mapping[str, Any] | None = None
    scale: Mapping[str, Any] | None = None
    files: Mapping[str, str] | None = None
    delimiter: str | None = None
    rate: float | Mapping[str, float] | None = None
    drives: Mapping[str, Any] | None = None
    delay: Any = 0.0
    cutoff: float | None = None
    force_cutoff: float | None = None
    every: int = 1
    gap: float | None = None
    missing: str = "refuse"
    saturation: Any = None
    wrenches: Mapping[str, Any] | None = None
    source: str = "map"

    def __post_init__(self) -> None:
        where = self.source
        if self.columns is None:
            raise ModelError(describe("columns is None", where=where, allowed="a table {'q': heads, 'tau': heads}"))
        for name in ("columns", "units", "scale", "files", "drives", "wrenches"):
            table(getattr(self, name), where, name)
        for name in ("cutoff", "force_cutoff", "gap"):
            if getattr(self, name) is not None:
                positive(getattr(self, name), where, name)
        whole_number(self.every, where, "every")
        one_of(self.missing, ("refuse", "skip"), where, "missing")

    @classmethod
    def load(cls, path: str | Path) -> LogMap:
        r"""Return the map in a file: .toml, .json, or .yaml (extra ``yaml``); its keys are the fields.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = Path(folder, "map.toml")
            ...     _ = file.write_text('rate = 1000.0\n[columns]\nq = [0, 1]\ntau = [2, 3]\n', encoding="utf-8")
            ...     LogMap.load(file).rate
            1000.0
        """
        file = Path(path)
        return cls._of_table(_content(file), file.name)

    @classmethod
    def of(cls, given: Any, **settings: Any) -> LogMap:
        """Return a map from a map, a path or a table of columns; settings that are given (not None) replace its own.

        Example:
            >>> LogMap.of({"q": [0, 1]}, rate=500.0).rate
            500.0
        """
        if isinstance(given, (str, Path)):
            found = cls.load(given)
        elif isinstance(given, LogMap):
            found = given
        elif isinstance(given, Mapping):
            found = cls._of_table(dict(given), "map") if "columns" in given else cls(dict(given))
        else:
            allowed = "a LogMap, the path of one, or a table {'q': heads, ...}"
            raise ModelError(describe(f"{given!r}", where="map of the log", allowed=allowed))
        return replace(found, **{name: value for name, value in settings.items() if value is not None})

    def couplings(self, robot: Robot) -> dict[str, dict[str, float]]:
        """Return the motors that turn with several joints, by ``drives``: for ``couplings`` of ``identify``.

        Example:
            >>> drives = {"side": "motor", "ratios": [50, 40], "coupling": [["joint2", "joint1", 40]]}
            >>> LogMap({"q": [0, 1], "tau": [2, 3]}, rate=100.0, drives=drives).couplings(torsor.library.two_link())
            {'motor of joint2': {'joint1': 1.0, 'joint2': 1.0}}
        """
        return Gears.of(self.drives, robot, self.source).couplings(robot.coordinate_names) if self.drives else {}

    @classmethod
    def _of_table(cls, data: dict[str, Any], where: str) -> LogMap:
        keys = [each.name for each in fields(cls) if each.name != "source"]
        unknown = [key for key in data if key not in keys]
        if unknown or "columns" not in data:
            found = f"unknown key {unknown[0]!r}" if unknown else "no table 'columns'"
            raise ModelError(describe(found, where=where, allowed=", ".join(keys)))
        return cls(**data, source=where)


def _content(file: Path) -> dict[str, Any]:
    """Return the table in a file, or raise ModelError."""
    readers = {".toml": _toml, ".json": _json, ".yaml": _yaml, ".yml": _yaml}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise ModelError(describe(f"the suffix is {file.suffix!r}", where=file.name, allowed=", ".join(readers)))
    check_file(file, f"the map of a log: {', '.join(readers)}")
    try:
        text = read_limited(file, LARGEST_MAP).decode("utf-8-sig")
        data = reader(text, file.name)
    except UnicodeDecodeError:
        raise ModelError(describe("it is no text", where=file.name, allowed="UTF-8 text")) from None
    return table(data, file.name, "the map")


def _toml(text: str, where: str) -> Any:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ModelError(describe(f"not valid TOML: {error}", where=where)) from None


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ModelError(describe(f"not valid JSON: {error}", where=where)) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a table of JSON; raise ValueError for a key that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _yaml(text: str, where: str) -> Any:
    return parse_yaml(text, where, instead="write the map as .toml")
