"""The log map: columns, units, gears and preparation of a log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import frozen_array, indices_of, number, one_of, positive, real_array, rows, table, whole_number
from torsor.base.decoding import check_keys, file_table, filled
from torsor.base.errors import ModelError, listing
from torsor.base.files import check_file, check_suffix
from torsor.base.number_tables import read_table
from torsor.identification.closed_robot import MeasuredRobot
from torsor.mechanism.mechanism import FORCES
from torsor.mechanism.mechanism import units as units_of
from torsor.simulation.logs import LOGS, UNITS

# Gears: joint positions and forces from motor measurements.
#
#     motor = R joint        R (n, n): gear ratios, and couplings off the diagonal
#     q = R^-1 (motor positions) + offsets        v = R^-1 (motor velocities)        tau = R^T (motor forces)
#
# The last equation follows from equal power at the motors and the joints. Motor forces are measured forces, or currents
# times torque constants.

SIDES = ("joint", "motor")
DRIVE_KEYS = ("side", "ratios", "coupling", "matrix", "offsets", "torque_constants")
MAX_CONDITION = 1e9


@dataclass(frozen=True, eq=False)
class Gears:
    """The drives of a robot: ``matrix`` R (n, n), joint ``offsets`` (n,) in rad or m, and the measured ``sides``.

    ``sides`` is "motor" or "joint" for each of q, v, a and tau. ``constants`` (n,) are torque constants (N m/A), or
    None.

    Example:
        >>> arm = torsor.library.two_link()
        >>> drives = Gears.of({"side": "motor", "ratios": [100.0, -50.0], "offsets": [0.0, 0.5]}, arm, "map.toml")
        >>> drives.positions(np.array([[100.0, 50.0]])).tolist(), drives.forces(np.array([[0.1, 0.2]])).tolist()
        ([[1.0, -0.5]], [[10.0, -10.0]])
    """

    matrix: Array
    offsets: Array
    sides: Mapping[str, str]
    constants: Array | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, robot: MeasuredRobot, where: str) -> Gears:
        """Return the drives defined by a map table; without a table, all signals are joint signals."""
        data, place, n = table(given, where, "drives"), f"{where}: drives", robot.nv
        check_keys(data, DRIVE_KEYS, place)
        if data and robot.nq != robot.nv:
            message = f"{robot.name} has {robot.nq} positions and {robot.nv} velocities"
            raise ModelError(message, where=place, allowed="joints with nq = nv")
        if ("ratios" in data or "matrix" in data) and "side" not in data:
            fix = 'write side = "motor", or side = {q = "joint", tau = "motor"}'
            raise ModelError("gear ratios are given without `side`", where=place, fix=fix)
        offsets = frozen_array(data.get("offsets", np.zeros(n)), (n,), place, "offsets")
        constants = data.get("torque_constants")
        if constants is not None:
            constants = _each(constants, n, place, "torque_constants")
            if not constants.all():
                message = f"is {constants.tolist()}"
                raise ModelError(message, argument="torque_constants", where=place, allowed="nonzero numbers")
        made = cls(_matrix(data, robot, place), offsets, _sides(data.get("side", "joint"), place), constants)
        geared = any(key in data for key in ("ratios", "coupling", "matrix"))
        if geared != ("motor" in made.sides.values()):
            what = 'side = "motor" is given without ratios'
            what = "gear ratios are given, but all signals are measured at the joints" if geared else what
            raise ModelError(what, where=place, fix='write side = "motor" and ratios (1 without a gear), or neither')
        return made

    def positions(self, measured: Array) -> Array:
        """Return the positions (N, n) of the joints."""
        return np.asarray(self.rates(measured, "q") + self.offsets) if self.offsets.any() else self.rates(measured, "q")

    def rates(self, measured: Array, what: str) -> Array:
        """Return the velocities or accelerations (N, n) of the joints; ``what`` is "v" or "a"."""
        return np.asarray(measured @ np.linalg.inv(self.matrix).T) if self.sides[what] == "motor" else measured

    def forces(self, measured: Array) -> Array:
        """Return the forces (N, n) of the joints."""
        return np.asarray(measured @ self.matrix) if self.sides["tau"] == "motor" else measured

    def couplings(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the motors that drive several joints, for ``identify(couplings=...)``.

        The factor of joint j for motor k is R[k, j] / R[k, k]; ``names`` (n) are the names of the joints.
        """
        motors = {}
        for name, row, own in zip(names, self.matrix, np.diagonal(self.matrix), strict=True):
            factors = row / (own if own else row[np.argmax(np.abs(row))])
            turning = np.flatnonzero(factors)
            if len(turning) > 1:
                motors[f"motor of {name}"] = {names[j]: float(factors[j]) for j in turning.tolist()}
        return motors

    def driven(self, motors: Flags) -> Flags:
        """Return flags of the joint forces (N, n) that depend on flagged motor forces (N, n)."""
        if self.sides["tau"] == "joint":
            return motors
        return np.asarray((motors.astype(float) @ np.abs(self.matrix)) > 0)


def _matrix(data: Mapping[str, Any], robot: MeasuredRobot, where: str) -> Array:
    n, names = robot.nv, robot.coordinate_names
    if "matrix" in data:
        both = [key for key in ("ratios", "coupling") if key in data]
        if both:
            raise ModelError(f"matrix and {both[0]} are both given", where=where, allowed="one of them")
        R = np.array(frozen_array(data["matrix"], (n, n), where, "matrix"))
    else:
        R = np.diag(_each(data.get("ratios", 1.0), n, where, "ratios"))
        for row in rows(data.get("coupling", []), where, "coupling"):
            entry = rows(row, where, "coupling", "a list of [motor, joint, ratio]")
            if len(entry) != 3:
                message = f"the coupling is {entry!r}"
                raise ModelError(message, value=entry, where=where, allowed="[motor, joint, ratio]")
            motor, joint = indices_of([str(name) for name in entry[:2]], names, f"{where}: coupling")
            if motor == joint:
                message = f"motor {entry[0]} is coupled with itself"
                raise ModelError(message, where=where, fix="put its own ratio into ratios")
            R[motor, joint] = number(entry[2], where, f"coupling of {entry[0]} with {entry[1]}")
    if not np.abs(R).max() > 0 or not np.linalg.cond(R) < MAX_CONDITION:
        message = "the gear ratio matrix is singular"
        raise ModelError(message, where=where, fix="use a nonzero ratio for each motor")
    return R


def _each(given: Any, count: int, where: str, what: str) -> Array:
    """Return finite numbers (count,), from one number or one per element."""
    single = real_array(given, where, what).ndim == 0
    numbers = frozen_array(given, () if single else (count,), where, what)
    return np.full(count, numbers) if single else numbers


def _sides(given: Any, where: str) -> dict[str, str]:
    if isinstance(given, str):
        return dict.fromkeys(("q", "v", "a", "tau"), one_of(given, SIDES, where, "side"))
    found = table(given, where, "side")
    unknown = [key for key in found if key not in ("q", "v", "a", "tau")]
    if unknown:
        raise ModelError(f"side contains {unknown[0]!r}", where=where, allowed="q, v, a, tau")
    first = found.get("q", "joint")
    # By default, derivatives are measured on the same side as positions.
    sides = {**dict.fromkeys(("q", "v", "a"), first), "tau": "joint"} | found
    return {key: one_of(each, SIDES, where, f"side of {key!r}") for key, each in sides.items()}


MAX_MAP_BYTES = 1_000_000
SUFFIXES = (".toml", ".json", ".yaml", ".yml")
ESTIMATED = "estimate"


@dataclass(frozen=True)
class LogMap:
    """The columns of the signals in a log, and their conversion to measurements.

    ``columns`` maps "time", "q", "v", "a", "tau" or "current" to column headers, or to column numbers from 0, in
    coordinate order. The time may be a table {"q": header, "tau": header}. "temperature" is one column, or one column
    for each drive. ``rate`` (Hz) replaces a time column. For ``units``, see ``Trajectory.load``; "A" and "mA" are also
    allowed. ``scale`` contains additional factors, such as -1 to reverse a sign. ``files`` names other files of the
    same run in the folder of the log: {"tau": "{stem}_torques.csv"}.

    ``drives`` contains the ``side`` ("motor", "joint", or a table by quantity); ``ratios`` (n,) with ``coupling``
    [[motor, joint, ratio], ...], or a ``matrix`` R (n, n) with motor = R joint; ``offsets`` (n,), which are added to
    the joint positions (rad, m); and ``torque_constants`` (n,) for currents (N m/A).

    ``delay`` (s) is the force delay, one for all or one for each coordinate, or "estimate" for the shift that best
    explains the forces. ``cutoff`` (Hz) is the cutoff of the differentiation filter (default: selected from the
    spectrum), and ``force_cutoff`` (Hz) that of a force filter (default: none). ``every`` is the decimation factor
    after filtering. Steps longer than ``gap`` (s; default: five median steps) separate segments that are differentiated
    separately. Rows with a missing number raise ModelError or, with ``missing="skip"``, are skipped. Logged forces of
    at least ``saturation`` (n,), in SI units, have a weight of 0.

    ``wrenches`` {link or frame: {"force": 3 columns, "moment": 3 columns, "axes": "local" or "world", "origin": [x, y,
    z]}} are measured environment wrenches, in N and N m. Without "moment" (three-axis sensors), the moment about the
    origin is zero. Either the tau columns of a floating base or all tau columns may be omitted.

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
            message = "is None"
            raise ModelError(message, argument="columns", where=where, allowed="a table {'q': headers, 'tau': headers}")
        for name in ("columns", "units", "scale", "files", "drives", "wrenches"):
            table(getattr(self, name), where, name)
        for name in ("cutoff", "force_cutoff", "gap"):
            if getattr(self, name) is not None:
                positive(getattr(self, name), where, name)
        whole_number(self.every, where, "every")
        one_of(self.missing, ("refuse", "skip"), where, "missing")

    @classmethod
    def load(cls, path: str | Path) -> LogMap:
        r"""Load a map from a .toml, .json or .yaml file (extra ``yaml``), whose keys are the fields.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = Path(folder, "map.toml")
            ...     _ = file.write_text('rate = 1000.0\n[columns]\nq = [0, 1]\ntau = [2, 3]\n', encoding="utf-8")
            ...     LogMap.load(file).rate
            1000.0
        """
        file = Path(path)
        check_suffix(file, SUFFIXES)
        check_file(file, f"the map of a log: {', '.join(SUFFIXES)}")
        return filled(cls, file_table(file, MAX_MAP_BYTES), file.name, typed=False, source=file.name)

    @classmethod
    def of(cls, given: Any, **settings: Any) -> LogMap:
        """Return a map from a map, a path or a table of columns; ``settings`` other than None replace those of the map.

        Example:
            >>> LogMap.of({"q": [0, 1]}, rate=500.0).rate
            500.0
        """
        if isinstance(given, (str, Path)):
            base_map = cls.load(given)
        elif isinstance(given, LogMap):
            base_map = given
        elif isinstance(given, Mapping):
            base_map = filled(cls, given, "map", typed=False, source="map") if "columns" in given else cls(dict(given))
        else:
            allowed = "a LogMap, the path of one, or a table {'q': headers, ...}"
            raise ModelError(f"{given!r}", value=given, where="map of the log", allowed=allowed)
        return replace(base_map, **{name: value for name, value in settings.items() if value is not None})

    def couplings(self, robot: MeasuredRobot) -> dict[str, dict[str, float]]:
        """Return the motors that drive several joints, from ``drives``, for ``couplings`` of ``identify``.

        Example:
            >>> drives = {"side": "motor", "ratios": [50, 40], "coupling": [["joint2", "joint1", 40]]}
            >>> LogMap({"q": [0, 1], "tau": [2, 3]}, rate=100.0, drives=drives).couplings(torsor.library.two_link())
            {'motor of joint2': {'joint1': 1.0, 'joint2': 1.0}}
        """
        return Gears.of(self.drives, robot, self.source).couplings(robot.coordinate_names) if self.drives else {}


# The map of a log with Torsor's column headers: 'time', 'q NAME', 'v NAME', 'a NAME', 'tau NAME', with [unit].
#
# There may also be a column 'temperature', or one column 'temperature NAME' per coordinate.

_HEADER = re.compile(r"(?:held )?(time|temperature|\S+ .*?)(?: \[([^]]*)\])?")
HEADER_FIX = "rename the columns, or define them in a map: --map FILE (docs: identify from a log)"


def own_map(path: Path, robot: MeasuredRobot) -> LogMap:
    """Return the map of a log from its column headers, including units in brackets."""
    check_file(path, LOGS)
    if path.suffix.lower() == ".npz":
        return LogMap({"q": list(robot.position_names)}, source=path.name)
    places: dict[str, tuple[str, str]] = {}
    heads = read_table(path).heads
    if not any(_HEADER.fullmatch(head) for head in heads):
        heads = read_table(path, ",").heads  # a single column, whose header contains a space
    for head in heads:
        match = _HEADER.fullmatch(head)
        if match and match[1] in places:
            raise ModelError(f"the column {head!r} occurs twice", value=head, where=path.name)
        if match:
            places[match[1]] = head, match[2] or ""
    columns: dict[str, Any] = {}
    units: dict[str, Any] = {}
    for letter in ("time", "q", "v", "a", "tau"):
        names = robot.position_names if letter == "q" else robot.coordinate_names
        headers = ["time"] if letter == "time" else [f"{letter} {name}" for name in names]
        missing = [each for each in headers if each not in places]
        if len(missing) == len(headers) and letter != "q":
            continue
        if missing:
            message = f"column {missing[0]!r} is missing; the columns are {listing(heads)}"
            raise ModelError(message, where=path.name, allowed=listing(headers), fix=HEADER_FIX)
        columns[letter] = [places[each][0] for each in headers]
        kinds = ["s"] if letter == "time" else units_of(robot)[letter != "q"]
        default_units = ["rad" if kind == "1" else kind for kind in kinds]
        units[letter] = [
            _unit(places[each], letter, kind, path.name) for each, kind in zip(headers, default_units, strict=True)
        ]
    warm = [f"temperature {name}" for name in robot.coordinate_names]
    present = ["temperature"] if "temperature" in places else warm if warm[0] in places else []
    if present:
        missing = [header for header in present if header not in places]
        if missing:
            message = f"column {missing[0]!r} is missing"
            raise ModelError(message, where=path.name, allowed=listing(present), fix=HEADER_FIX)
        columns["temperature"] = [places[each][0] for each in present]
    if "tau" not in columns:
        fix = "add columns 'tau NAME', or define the force or current columns in a map: --map FILE"
        raise ModelError("the force columns are missing", where=path.name, fix=fix)
    if "time" not in columns and "v" in columns and "a" in columns:
        return LogMap(columns, units=units, rate=1.0, source=path.name)  # samples have any order
    if "time" not in columns:
        fix = "add a column 'time', or set the rate in a map: --map FILE"
        raise ModelError("column 'time' is missing", where=path.name, fix=fix)
    return LogMap({**columns, "time": columns["time"][0]}, units={**units, "time": units["time"][0]}, source=path.name)


def _unit(column: tuple[str, str], letter: str, kind: str, where: str) -> str:
    """Return the unit of a column; N·m, Nm and N m are equivalent, as are s² and s^2. The default is SI and radians."""
    head, unit = column
    if not unit:
        return FORCES[kind] if letter == "tau" else kind + {"v": "/s", "a": "/s^2"}.get(letter, "")
    plain = re.sub(r"[\s·*]", "", unit).replace("²", "^2")
    found = next((unit_name for unit_name in UNITS[letter] if unit_name.replace(" ", "") == plain), None)
    if found is None:
        allowed = ", ".join(UNITS[letter])
        raise ModelError(f"the column {head!r} has an unknown unit", value=head, where=where, allowed=allowed)
    return found
