"""Laboratory logs: columns of a text file, selected by header or number and converted to SI units and radians."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import is_whole, number, table
from torsor.base.errors import ModelError, listing
from torsor.base.number_tables import Head, read_columns
from torsor.mechanism import Mechanism
from torsor.mechanism.mechanism import FORCES
from torsor.mechanism.mechanism import units as units_of
from torsor.robot.robot import Robot

LOGS = "a log: a table as text (.csv), or a saved trajectory (.npz)"
QUANTITIES = ("time", "q", "v", "a", "tau")
_LENGTHS = {"rad": 1.0, "deg": math.pi / 180, "rev": 2 * math.pi, "m": 1.0, "cm": 1e-2, "mm": 1e-3}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
UNITS: dict[str, dict[str, float]] = {
    "time": _TIMES,
    "q": _LENGTHS | {"1": 1.0},  # quaternions
    "v": {f"{name}/s": value for name, value in _LENGTHS.items()} | {"rpm": 2 * math.pi / 60},
    "a": {f"{name}/s^2": value for name, value in _LENGTHS.items()},
    "tau": {"N m": 1.0, "N": 1.0, "mN m": 1e-3, "kN": 1e3, "kN m": 1e3},
    "current": {"A": 1.0, "mA": 1e-3},
    "temperature": {"degC": 1.0, "K": 1.0},  # only differences matter
}
"""Units of each quantity, and their factors to SI units and radians."""


def read_log(
    path: Path,
    robot: Robot,
    columns: Mapping[str, Any],
    units: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    rate: float | None = None,
) -> dict[str, Array]:
    """Return the quantities in ``columns`` from a text file: time (N,), q (N, nq), v, a, tau (N, nv).

    The arguments are the same as for ``Trajectory.load``. Lines that begin with # are comments; the header line may
    also begin with #.
    """
    where = str(path)
    wanted = wanted_columns(columns, robot, where)
    if (rate is None) == ("time" not in wanted):
        what = "there is no time column and no rate" if rate is None else "there are both a time column and a rate"
        raise ModelError(what, where=where, allowed="columns={'time': ...} or `rate=`, in Hz")
    table = read_columns(path, wanted, delimiter)
    found = table.values
    for name, scale in unit_scales(units, wanted, robot, where).items():
        found[name] = found[name] * scale
    if "time" in found:
        found["time"] = found["time"][:, 0]
        check_increasing(found["time"], table.lines, where)
    else:
        found["time"] = np.arange(len(table.lines)) / number(rate, where, "rate", above=0)
    return found


def check_increasing(times: Array, lines: NDArray[np.intp], where: str) -> None:
    """Raise ModelError at the first of ``times`` (N,) that does not increase; ``lines`` (N,) are their line numbers."""
    late = np.flatnonzero(np.diff(times) <= 0)
    if late.size:
        k = int(late[0]) + 1
        found = f"line {lines[k]}: the time does not increase: {times[k]:.9g} s follows {times[k - 1]:.9g} s"
        more = f" ({late.size} times in all)" if late.size > 1 else ""
        fix = "sort the lines, split the file if a second run begins there, or pass the rate if times are too coarse"
        raise ModelError(found + more, where=where, allowed="times that increase", fix=fix)


def wanted_columns(
    columns: Any, robot: Mechanism, where: str, quantities: Sequence[str] = QUANTITIES, driven: int | None = None
) -> dict[str, list[Head]]:
    """Return the columns of each quantity as names or indices, one for each coordinate of the robot.

    Forces may also have only the ``driven`` columns, without the free base of a robot.
    """
    given = table(columns, where, "columns")
    unknown = sorted(set(given) - set(quantities))
    if unknown or "q" not in given:
        found = f"{unknown[0]!r} is not a quantity of a log" if unknown else "there are no columns for 'q'"
        raise ModelError(found, where=where, allowed=", ".join(quantities))
    wanted = {}
    for name, value in given.items():
        chosen = list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else [value]
        chosen = [int(each) if is_whole(each) else each for each in chosen]
        count = 1 if name == "time" else robot.nq if name == "q" else robot.nv
        fewer = {"tau": driven, "current": driven, "temperature": 1}.get(name, count)
        if len(chosen) not in (count, fewer):
            names = () if name == "time" else robot.position_names if name == "q" else robot.coordinate_names
            order = f", in the order {listing(names)}" if names else ""
            raise ModelError(f"{len(chosen)} columns for {name!r}", value=name, where=where, allowed=f"{count}{order}")
        bad = next((each for each in chosen if not isinstance(each, str) and not is_whole(each)), None)
        if bad is not None:
            raise ModelError(f"column {bad!r} of {name!r}", where=where, allowed="a heading or a number")
        if len(set(chosen)) < len(chosen):
            found = f"a column for {name!r} is named twice"
            raise ModelError(found, value=name, where=where, allowed="each column once")
        wanted[name] = chosen
    return wanted


def unit_scales(units: Any, wanted: Mapping[str, list[Head]], robot: Mechanism | None, where: str) -> dict[str, Array]:
    """Return the unit factors of the columns of each quantity; if ``robot`` is given, units must fit its joints."""
    found = {}
    for name, unit in ({} if units is None else table(units, where, "units")).items():
        if name not in wanted:
            raise ModelError(f"{name!r} has a unit but no columns", value=name, where=where)
        if name not in UNITS:
            fix = f"omit the unit, and give conversion factors: scale = {{{name} = ...}}"
            raise ModelError(f"{name!r} has a unit, but forces are in N and N m", value=name, where=where, fix=fix)
        each = list(unit) if isinstance(unit, list | tuple) else [unit] * len(wanted[name])
        bad = [one for one in each if not isinstance(one, str) or one not in UNITS[name]]
        if bad or len(each) != len(wanted[name]):
            what = f"the unit {bad[0]!r} of {name!r}" if bad else f"{len(each)} units of {name!r}"
            allowed = f"one of {', '.join(UNITS[name])}, for all columns or for each of {len(wanted[name])}"
            raise ModelError(what, where=where, allowed=allowed)
        if robot is not None and name not in ("time", "current", "temperature"):
            _check_kinds(robot, name, each, where)
        found[name] = np.array([UNITS[name][one] for one in each])
    return found


def _check_kinds(robot: Mechanism, name: str, given: Sequence[str], where: str) -> None:
    """Raise ModelError if a unit does not fit its coordinate, for example a unit of angle for a length."""
    positions, rates = units_of(robot)
    names = robot.position_names if name == "q" else robot.coordinate_names
    for coordinate, kind, unit in zip(names, positions if name == "q" else rates, given, strict=True):
        own = FORCES[kind] if name == "tau" else {"q": kind, "v": f"{kind}/s", "a": f"{kind}/s^2"}[name]
        turns = unit.endswith("N m") if name == "tau" else unit.startswith(("rad", "deg", "rev", "rpm"))
        if unit != own and (kind == "1" or turns != (kind == "rad")):
            found, fix = f"the unit {unit!r} of {name!r} at {coordinate!r}", "pass a list, one unit for each column"
            raise ModelError(found, where=where, allowed=f"a unit of the same kind as {own!r}", fix=fix)


def motion_of(robot: Robot, log: Mapping[str, Array], where: str) -> tuple[Array, Array, Array, Array, Array]:
    """Return (times, q, v, a, tau) of a log.

    Missing v and a are computed by second-order differences, and missing tau by inverse dynamics.
    """
    times, q = log["time"], log["q"]
    pairs = zip(robot.joints, robot.coordinates, strict=True)
    ends = [place.q.stop for joint, place in pairs if joint.nq > joint.nv and not joint.follows]
    empty = np.flatnonzero(np.any([~q[:, end - 4 : end].any(axis=-1) for end in ends], axis=0))
    if empty.size:
        text = f"sample {empty[0]} contains a quaternion of length 0"
        raise ModelError(text, where=where, fix="correct the columns of q: x, y, z, w")
    if ("v" not in log or "a" not in log) and len(times) < 3:
        raise ModelError(f"{len(times)} samples without v and a", where=where, allowed="3 or more")
    if "v" not in log and robot.nq != robot.nv:
        found = "quaternions need velocities, and there are no columns for 'v'"
        raise ModelError(found, where=where, fix="add columns for v")
    v = log["v"] if "v" in log else np.gradient(q, times, axis=0, edge_order=2)
    a = log["a"] if "a" in log else np.gradient(v, times, axis=0, edge_order=2)
    tau = log["tau"] if "tau" in log else robot.inverse_dynamics(q, v, a)
    return times, q, v, a, tau
