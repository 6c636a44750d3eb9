"""A log: measured times, joint motions and joint forces, with line numbers of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array, Flags
from torsor.base.checks import frozen_array, is_whole, number, one_of, positive_vector, real_array, rows, table
from torsor.base.decoding import check_keys
from torsor.base.errors import ModelError, describe
from torsor.base.files import check_file
from torsor.base.number_tables import Head, read_columns, read_table
from torsor.identification.bases import environment_forces, free_coordinates
from torsor.identification.closed_robot import ClosedRobot, MeasuredRobot, drives_of
from torsor.identification.logs.log_map import Gears, LogMap
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory
from torsor.simulation.logs import LOGS, QUANTITIES, UNITS, check_increasing, unit_scales, wanted_columns

# Wrenches in a log: force plates, force-torque sensors on a robot, and floating bases without force columns.
#
#     [wrenches.left_foot]            a link or frame
#     force = ["Fx", "Fy", "Fz"]      columns, N
#     moment = ["Mx", "My", "Mz"]     columns, N m
#     axes = "local"                  axes of the link or frame; "world": axes of the robot base
#     origin = [0.3, 0.1, 0.0]        reference point of the moments of a plate, m in base axes
#
# Moments are about the origin of the link or frame, or about that of the plate. Without ``moment`` (three-axis
# sensors), moments about this point are zero. For other units, use factors: ``scale = {wrenches = ...}``.

WRENCH_KEYS = ("force", "moment", "axes", "origin")
WRENCHES = "wrenches"


def wrench_columns(given: LogMap, robot: MeasuredRobot) -> list[Head]:
    """Return the columns of all wrenches of a map: moment and force of each link or frame."""
    if isinstance(robot, ClosedRobot):
        fix = "pass arrays (N, L, 6) of all links: Measurements(q, v, a, tau, external=...)"
        raise ModelError("wrench columns are not supported for a robot with closed loops", where=given.source, fix=fix)
    columns: list[Head] = []
    for place, own in _tables(given).items():
        robot.place(place)
        where = f"{given.source}: wrenches: {place}"
        if "force" not in own:
            raise ModelError("the force columns are missing", where=where, fix="write force = [x, y, z]")
        for part in [part_name for part_name in ("moment", "force") if part_name in own]:
            heads = rows(own[part], where, part, "three columns")
            if len(heads) != 3 or any(isinstance(head, bool) or not isinstance(head, (str, int)) for head in heads):
                message = f"{part} is {heads!r}"
                raise ModelError(message, value=heads, where=where, allowed="three column headers or numbers")
            columns += heads
    if len(set(columns)) < len(columns):
        raise ModelError("a column is named twice", where=f"{given.source}: wrenches")
    return columns


def _tables(given: LogMap) -> dict[str, dict[str, Any]]:
    tables = {}
    for place, own in table(given.wrenches, given.source, WRENCHES).items():
        where = f"{given.source}: wrenches: {place}"
        tables[place] = table(own, where, "the wrench")
        check_keys(tables[place], WRENCH_KEYS, where)
    return tables


def external_of(robot: MeasuredRobot, q: Array, values: Array, given: LogMap) -> Array:
    """Return wrenches (N, L, 6) for ``inverse_dynamics`` from columns (N, k) in SI units at positions q (N, nq).

    Wrenches of rows with missing numbers are NaN.
    """
    assert isinstance(robot, Robot)  # ``wrench_columns`` raises ModelError for other robots
    whole = np.isfinite(q).all(axis=1) & np.isfinite(values).all(axis=1)
    external = np.full((len(q), len(robot.links), 6), np.nan)
    external[whole] = 0.0
    at = 0
    for place, own in _tables(given).items():
        where = f"{given.source}: wrenches: {place}"
        axes = one_of(own.get("axes", "local"), ("local", "world"), where, "axes")
        moment = np.zeros((np.count_nonzero(whole), 3))
        if "moment" in own:
            moment, at = values[whole, at : at + 3], at + 3
        force, at = values[whole, at : at + 3], at + 3
        if "origin" in own:
            if axes != "world":
                raise ModelError("a plate with an origin needs world axes", where=where, fix='write axes = "world"')
            arm = frozen_array(own["origin"], (3,), where, "origin") - robot.pose(q[whole], place)[:, :3, 3]
            moment = moment + np.cross(arm, force)
        external[whole] += robot.wrench_at(q[whole], place, moment, force, axes=axes)
    return external


def driven_forces(robot: MeasuredRobot, columns: Mapping[str, list[Head]]) -> tuple[list[int], Flags]:
    """Return the coordinates (k) of the force columns, and a mask (nv,) of the known forces.

    The forces of a floating base are known to be zero. Without tau columns, no other forces are known.
    """
    base = free_coordinates(robot)
    heads = columns.get("tau", columns.get("current"))
    driven = [k for k in range(robot.nv) if heads is not None and (len(heads) == robot.nv or k not in base)]
    known = np.zeros(robot.nv, dtype=bool)
    known[[*base, *driven]] = True
    return driven, known


# Findings in a log: the kind, the coordinate, the evidence, and the fix.


class LogFinding(NamedTuple):
    """A likely error in a log: ``kind``, ``place`` (a coordinate or a file), evidence ``found``, ``fix`` and ``value``.

    ``value`` is the number on which the finding is based, in the units stated in ``found``. Kinds are "missing",
    "time", "gap", "constant", "still", "stuck", "spike", "saturation", "quantisation", "limit", "degrees", "rate",
    "delay", "sign", "swapped", "offset", "scale", "unexplained", "together" (no common parameters explain the forces),
    "closure" (loops that cannot be closed) and "short".

    Example:
        >>> print(LogFinding("constant", "log.csv: tau 'elbow'", "all 900 samples are 0", "check the column", 0.0))
        log.csv: tau 'elbow': all 900 samples are 0; fix: check the column
    """

    kind: str
    place: str
    found: str
    fix: str
    value: float

    def __str__(self) -> str:
        return describe(self.found, where=self.place, fix=self.fix)


ALL_SIGNALS = (*QUANTITIES, "current", "temperature")
MAX_CLOCK_STEPS = 5.0  # step of a second clock, in median steps, beyond which it is a gap
MIN_OVERLAP = 0.5  # fraction of the longer clock that both clocks must share
MAX_VALUE = 1e12  # largest magnitude of numbers in SI units and radians
MAX_RATE = 1e9  # Hz


@dataclass(frozen=True, eq=False)
class Log:
    """One run: ``times`` (N,) in s, ``q``, ``v``, ``a``, ``tau`` (N, n) of the joints; v and a may be None.

    ``measured`` contains the columns of q and tau in SI units before conversion by the gears, and ``heads`` contains
    their headers. ``saturated`` (N, n) marks saturated or unmeasured forces. ``lines`` (N,) are line numbers of the
    file. ``temperature`` (N, 1) or (N, n) is the drive temperature, if measured. With environment wrenches ``external``
    (N, L, 6), tau is the total force tau + J^T w. For a robot with closed loops, q are the drive positions, and
    ``whole`` (N, nq) are the positions of all joints, if logged. In logs read for quality checks, numbers may be NaN
    and times may decrease.
    """

    source: str
    times: Array
    q: Array
    tau: Array
    v: Array | None
    a: Array | None
    lines: NDArray[np.intp]
    measured: Mapping[str, Array]
    heads: Mapping[str, Sequence[Head]]
    saturated: Flags
    temperature: Array | None = None
    external: Array | None = None
    whole: Array | None = None

    def __len__(self) -> int:
        return len(self.times)

    def line(self, k: int) -> str:
        """Return the location of a sample: the line of the file or, without a file, the sample number."""
        return f"line {int(self.lines[k])}" if self.lines.size else f"sample {k}"

    def kept(self, rows: Flags) -> Log:
        """Return the log with the rows ``rows``."""
        arrays: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("times", "q", "tau", "saturated")}
        names = ("v", "a", "temperature", "external", "whole")
        arrays |= {name: None if (x := getattr(self, name)) is None else x[rows] for name in names}
        lines = self.lines[rows] if self.lines.size else self.lines
        return replace(self, **arrays, lines=lines, measured={k: x[rows] for k, x in self.measured.items()})

    @property
    def complete(self) -> Flags:
        """Mask (N,) of the rows without missing numbers."""
        arrays = [x for x in (self.times[:, None], self.q, self.tau, self.v, self.a, self.temperature) if x is not None]
        return np.asarray(np.logical_and.reduce([np.isfinite(x).all(axis=1) for x in arrays]))


def read(path: str | Path, robot: MeasuredRobot, given: LogMap, *, look: bool = False) -> Log:
    """Return the log in the files of one run, as defined by the map.

    A saved trajectory (.npz) needs no map. Errors state the line number. With ``look``, missing numbers become NaN, and
    times may decrease.
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        check_file(path, LOGS)
        return of_trajectory(Trajectory.load(path), path.name, robot)
    where = str(path)
    columns, clocks = _columns_and_clocks(given, robot, where)
    drives, tolerant = Gears.of(given.drives, robot, given.source), look or given.missing == "skip"
    driven, known = driven_forces(robot, columns)
    force = _force(columns, drives, given, where, free=not driven and bool(known.any()))
    signals: dict[str, Array] = {}
    bases: dict[str, _Base] = {}
    for file, names in _files(given, columns, path).items():
        bases |= _read_file(file, names, columns, clocks, given, signals, tolerant)
    named = table(given.units, given.source, "units")
    clock = named.pop("time", "s")
    _check_known(clock, columns, "a unit of the time", given.source)
    plain = None if given.drives or len(driven) < robot.nv else robot
    scales = unit_scales(named, columns, plain, where)
    for name, factor in table(given.scale, given.source, "scale").items():
        if name not in columns:
            raise ModelError(f"{name!r} has a scale but no columns", value=name, where=given.source)
        each = real_array(factor, given.source, f"scale of {name}")
        if each.shape not in ((), (len(columns[name]),)) or not (np.isfinite(each) & (each != 0)).all():
            allowed = f"a nonzero number, or {len(columns[name])} of them"
            raise ModelError(f"the scale of {name!r} is {factor!r}", where=given.source, allowed=allowed)
        scales[name] = scales.get(name, 1.0) * each
    signals = {name: x * scales.get(name, 1.0) for name, x in signals.items()}
    for name in bases:
        base = bases[name] = bases[name].in_seconds(clock.get(name, "s") if isinstance(clock, Mapping) else clock)
        _check_size(signals[name], columns[name], base)
        if not look:
            known_times = np.isfinite(base.times)
            check_increasing(base.times[known_times], base.lines[known_times], base.source)
    main = bases["q"]
    on_main = {name: _at_main(signals[name], bases[name], main) for name in signals}
    forces = np.zeros((len(main.times), robot.nv))
    heads: list[Head] = ["none"] * robot.nv
    if driven:
        forces[:, driven] = on_main[force]
        heads = [columns[force][driven.index(k)] if k in driven else "none" for k in range(robot.nv)]
    measured = {"q": on_main["q"], "tau": forces}
    motor = forces * drives.constants if force == "current" and drives.constants is not None else forces
    saturated = np.tile(~known, (len(forces), 1))
    if given.saturation is not None:
        full = positive_vector(given.saturation, robot.nv, given.source, "saturation")
        with np.errstate(invalid="ignore"):
            saturated |= drives.driven(np.abs(forces) >= full)
    q, tau = drives.positions(on_main["q"]), drives.forces(motor)
    v, a = (drives.rates(on_main[name], name) if name in signals else None for name in ("v", "a"))
    external = external_of(robot, q, on_main[WRENCHES], given) if WRENCHES in on_main else None
    tau = tau + environment_forces(robot, q, external)
    all_heads = {"q": columns["q"], "tau": heads}
    more = on_main.get("temperature"), external, _whole(path, robot, given, q)
    return Log(path.name, main.times, q, tau, v, a, main.lines, measured, all_heads, saturated, *more)


def of_trajectory(motion: Trajectory, source: str, robot: MeasuredRobot) -> Log:
    """Return a saved or simulated motion of a robot as a log."""
    if motion.q.ndim != 2:
        message = f"positions have shape {motion.q.shape}"
        raise ModelError(message, where=source, allowed="a single motion", fix="select one: trajectory[0]")
    q, tau, v, a = (drives_of(robot, name, getattr(motion, name)) for name in ("q", "tau", "v", "a"))
    whole = motion.q if isinstance(robot, ClosedRobot) and motion.q.shape != q.shape else None
    return replace(of_arrays(source, motion.times, q, tau, v, a, robot, motion.external), whole=whole)


def of_arrays(
    source: str,
    times: Array,
    q: Array,
    tau: Array,
    v: Array | None,
    a: Array | None,
    robot: MeasuredRobot,
    external: Array | None = None,
) -> Log:
    """Return a log from joint arrays in SI units; tau are the drive forces."""
    heads = {"q": list(robot.position_names), "tau": list(robot.coordinate_names)}
    none = np.empty(0, dtype=np.intp)
    saturated, acting = np.zeros(tau.shape, dtype=bool), tau + environment_forces(robot, q, external)
    return Log(source, times, q, acting, v, a, none, {"q": q, "tau": tau}, heads, saturated, external=external)


def _whole(path: Path, robot: MeasuredRobot, given: LogMap, q: Array) -> Array | None:
    """Return the positions (N, nq) of all joints of a closed robot, if all have columns 'q NAME [unit]'.

    The drive columns must equal q (N, n). If a map has modified them, other columns may not be joint positions in SI
    units.
    """
    if not isinstance(robot, ClosedRobot) or given.files:
        return None
    heads = {head.partition(" [")[0].removeprefix("held "): head for head in read_table(path, given.delimiter).heads}
    headers = [heads[f"q {name}"] for name in robot.mechanism.position_names if f"q {name}" in heads]
    if len(headers) < robot.mechanism.nq:
        return None
    units = np.array([UNITS["q"].get(head.partition(" [")[2].rstrip("]"), 1.0) for head in headers])
    positions = np.asarray(read_columns(path, {"q": headers}, given.delimiter, missing=True).values["q"] * units)
    drives = positions[:, robot.mechanism.closed.closure.active_positions]
    return positions if np.allclose(drives, q, equal_nan=True) else None


class _Base(NamedTuple):
    """The times (N,) of a signal, whether the file contains them, and the line numbers."""

    source: str
    times: Array
    has_times: bool
    lines: NDArray[np.intp]

    def in_seconds(self, unit: Any) -> _Base:
        """Return the times in s, converted from the unit of the file."""
        factor = UNITS["time"].get(str(unit))
        if factor is None:
            message = f"the unit {unit!r} of 'time'"
            raise ModelError(message, value=unit, where=self.source, allowed=", ".join(UNITS["time"]))
        return self._replace(times=self.times * factor) if self.has_times else self


def _columns_and_clocks(
    given: LogMap, robot: MeasuredRobot, where: str
) -> tuple[dict[str, list[Head]], dict[str, Any]]:
    """Return the columns of each signal, and the time column or rate of each."""
    chosen = dict(given.columns)
    times = chosen.pop("time", None)
    driven = robot.nv - len(free_coordinates(robot))
    columns = wanted_columns(chosen, robot, where, [signal for signal in ALL_SIGNALS if signal != "time"], driven)
    if given.wrenches:
        columns[WRENCHES] = wrench_columns(given, robot)
    by_signal = times if isinstance(times, Mapping) else {}
    rates = given.rate if isinstance(given.rate, Mapping) else {}
    for what, named in (("a time", by_signal), ("a rate", rates)):
        _check_known(named, columns, what, given.source)
    for head in (*by_signal.values(), times if times is not None and not isinstance(times, Mapping) else 0):
        if not (isinstance(head, str) or is_whole(head)):
            message = f"the time column is {head!r}"
            raise ModelError(
                message, value=head, where=given.source, allowed="a column header, or a column number from 0"
            )
    clocks: dict[str, Any] = {}
    for name in columns:
        head = by_signal.get(name) if isinstance(times, Mapping) else times
        rate = rates.get(name) if isinstance(given.rate, Mapping) else given.rate
        if (head is None) == (rate is None):
            both, none = "there are both a time column and a rate", "there is neither a time column nor a rate"
            what = none if rate is None else both
            allowed = "columns = {time = ...} or rate (Hz), for all signals or for each"
            raise ModelError(f"{what} for {name!r}", value=name, where=where, allowed=allowed)
        clocks[name] = head if rate is None else number(rate, where, "rate", above=0, most=MAX_RATE)
    return columns, clocks


def _files(given: LogMap, columns: Mapping[str, Any], path: Path) -> dict[Path, list[str]]:
    """Return the signals that each file contains."""
    named = table(given.files, given.source, "files")
    _check_known(named, columns, "a file", given.source)
    for name, file in named.items():
        if not isinstance(file, str) or "\0" in file:
            raise ModelError(f"the file of {name!r} is {file!r}", where=given.source, allowed="its name")
    signals_of: dict[Path, list[str]] = {}
    for name in columns:
        pattern = str(named.get(name, path.name))
        file = path.parent / pattern.replace("{stem}", path.stem).replace("{suffix}", path.suffix)
        signals_of.setdefault(file, []).append(name)
    return signals_of


def _read_file(
    file: Path,
    names: list[str],
    columns: Mapping[str, list[Head]],
    clocks: Mapping[str, Any],
    given: LogMap,
    found: dict[str, Array],
    missing: bool,
) -> dict[str, _Base]:
    """Add the signals of a file to those already read, and return their times."""
    named = [name for name in names if name in table(given.files, given.source, "files")]
    fix = f"correct files = {{{named[0]} = ...}} of {given.source}" if named else ""
    check_file(file, LOGS, fix)
    heads = {clocks[name] for name in names if not isinstance(clocks[name], float)}
    owners: dict[Head, str] = {}
    for name in names:
        for head in columns[name]:
            if owners.setdefault(head, name) != name:
                message = f"the column {head!r} is {owners[head]} and {name}"
                raise ModelError(message, value=head, where=given.source, allowed="each column at most once")
    requested = {name: columns[name] for name in names} | {f"time {each}": [each] for each in heads}
    repair = 'complete or remove the line; missing = "skip" in the map of a log leaves it out'
    table_found = read_columns(file, requested, given.delimiter, missing=missing, fix=repair)
    bases = {}
    for name in names:
        found[name] = table_found.values[name]
        clock, lines = clocks[name], table_found.lines
        has_times = not isinstance(clock, float)
        times = table_found.values[f"time {clock}"][:, 0] if has_times else np.arange(len(lines)) / clock
        bases[name] = _Base(str(file), times, has_times, lines)
    return bases


def _check_known(given: Any, columns: Mapping[str, Any], what: str, where: str) -> None:
    """Raise ModelError if a table names a signal without columns."""
    unknown = [name for name in given if name not in columns] if isinstance(given, Mapping) else []
    if unknown:
        message = f"there is {what} for {unknown[0]!r}, which has no columns"
        raise ModelError(message, where=where, allowed=", ".join(columns))


def _check_size(values: Array, heads: Sequence[Head], base: _Base) -> None:
    """Raise ModelError if a number is implausibly large."""
    with np.errstate(invalid="ignore"):
        whole = np.abs(np.column_stack([values, base.times])) > MAX_VALUE
    if whole.any():
        k, j = (int(index) for index in np.argwhere(whole)[0])
        column, x = ("time", base.times[k]) if j == values.shape[1] else (repr(heads[j]), values[k, j])
        message = f"line {base.lines[k]}, column {column}: {x:.3g} in SI units"
        fix = "correct or remove the line, and check the units and scales of the map"
        raise ModelError(message, where=base.source, allowed=f"at most {MAX_VALUE:g}", fix=fix)


def _force(columns: Mapping[str, Any], drives: Gears, given: LogMap, where: str, free: bool) -> str:
    """Return the signal that provides the forces, "tau" or "current", or "" if only ``free``-base forces are known."""
    if free and "current" not in columns:
        return ""
    if ("tau" in columns) == ("current" in columns):
        message, fix = "there are no columns for 'tau' or 'current'", "add the force columns"
        if "tau" in columns:
            message, fix = "there are columns for both 'tau' and 'current'", "remove one of them"
        raise ModelError(message, where=where, allowed="one of them", fix=fix)
    if "current" in columns and drives.constants is None:
        fix = "add drives.torque_constants (N m/A, one for each motor)"
        message = "contain 'current', but there are no torque constants"
        raise ModelError(message, argument="columns", where=given.source, fix=fix)
    if "tau" in columns and drives.constants is not None:
        fix = "name the columns 'current' instead of 'tau', or remove the constants"
        raise ModelError("there are torque constants, but no columns for 'current'", where=given.source, fix=fix)
    if "current" in columns and drives.sides["tau"] == "joint" and (drives.matrix != np.eye(len(drives.matrix))).any():
        fix = 'write side = {q = ..., tau = "motor"}: currents times torque constants are forces of the motors'
        raise ModelError("currents are given at the motors, but forces at the joints", where=given.source, fix=fix)
    return "tau" if "tau" in columns else "current"


def _at_main(values: Array, own: _Base, main: _Base) -> Array:
    """Return a signal at the times of the positions, by linear interpolation; NaN outside its range."""
    if own.source == main.source and np.array_equal(own.times, main.times, equal_nan=True):
        return values
    if not own.has_times and not main.has_times and len(own.times) != len(main.times):
        found = f"there are {len(own.times)} rows, but {len(main.times)} in {main.source}"
        raise ModelError(found, where=own.source, allowed="the same number of rows in all files of a run")
    if np.array_equal(own.times, main.times, equal_nan=True):
        return values
    ends = [(float(np.nanmin(clock.times)), float(np.nanmax(clock.times))) for clock in (own, main)]
    common = min(last for _, last in ends) - max(first for first, _ in ends)
    if common < MIN_OVERLAP * max(last - first for first, last in ends):
        spans = " and ".join(f"{first:.6g} to {last:.6g} s" for first, last in ends)
        fix = 'give the unit of each clock, units = {time = {q = "s", tau = "ms"}}; or align the zeros of both clocks'
        raise ModelError(f"its times and those of the positions are {spans}", where=own.source, fix=fix)
    columns = []
    for x in values.T:
        known = np.isfinite(own.times) & np.isfinite(x)
        there, numbers = own.times[known], x[known]
        found = np.interp(main.times, there, numbers, np.nan, np.nan)
        steps = np.append(np.diff(there), 0.0)
        before = np.clip(np.searchsorted(there, main.times, side="right") - 1, 0, len(there) - 1)
        columns.append(np.where(steps[before] > MAX_CLOCK_STEPS * np.median(steps[:-1]), np.nan, found))
    return np.stack(columns, axis=1)
