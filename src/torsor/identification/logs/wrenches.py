"""Wrenches in a log: force plates and force-torque sensors on a robot, and free bases, whose forces no column has.

    [wrenches.left_foot]            a link or frame
    force = ["Fx", "Fy", "Fz"]      columns, N
    moment = ["Mx", "My", "Mz"]     columns, N m
    axes = "local"                  those of the link or frame; or "world": those of the robot's base
    origin = [0.3, 0.1, 0.0]        of a plate, m in base axes: moments are about it

Moments are about the place, or about the origin of the plate. Without ``moment``, as of sensors with three axes, they
are zero there. Units of other columns are factors: ``scale = {wrenches = ...}``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import frozen_array, one_of, rows, table
from torsor.base.errors import ModelError, describe
from torsor.identification.bases import free_coordinates
from torsor.identification.closed_robot import ClosedRobot
from torsor.identification.logs.log_map import LogMap
from torsor.robot.robot import Robot
from torsor.simulation.log_tables import Head

KEYS = ("force", "moment", "axes", "origin")
WRENCHES = "wrenches"


def wrench_columns(given: LogMap, robot: Robot) -> list[Head]:
    """Return the columns of all wrenches of a map: moment, then force, of one place after the other.

    Example:
        >>> plate = {"force": [8, 9, 10], "moment": ["mx", "my", "mz"]}
        >>> wrench_columns(LogMap({}, wrenches={"fl_foot": plate}), torsor.library.quadruped())
        ['mx', 'my', 'mz', 8, 9, 10]
    """
    if isinstance(robot, ClosedRobot):
        fix = "give them as arrays (N, L, 6) of all links: Measurements(q, v, a, tau, external=...)"
        raise ModelError(describe("wrenches in a log of a robot with closed loops", where=given.source, fix=fix))
    found: list[Head] = []
    for place, own in _tables(given).items():
        robot.place(place)
        where = f"{given.source}: wrenches: {place}"
        if "force" not in own:
            raise ModelError(describe("no columns of the force", where=where, fix="force = [x, y, z]"))
        for part in _parts(own):
            heads = rows(own[part], where, part, "three columns")
            if len(heads) != 3 or any(isinstance(each, bool) or not isinstance(each, (str, int)) for each in heads):
                raise ModelError(describe(f"{part} is {heads!r}", where=where, allowed="three heads, or numbers"))
            found += heads
    if len(set(found)) < len(found):
        raise ModelError(describe("a column is named twice", where=f"{given.source}: wrenches"))
    return found


def _parts(own: Mapping[str, Any]) -> list[str]:
    """Return which parts of a wrench have columns, in their order."""
    return [part for part in ("moment", "force") if part in own]


def _tables(given: LogMap) -> dict[str, dict[str, Any]]:
    found = {}
    for place, own in table(given.wrenches, given.source, WRENCHES).items():
        where = f"{given.source}: wrenches: {place}"
        found[place] = table(own, where, "the wrench")
        unknown = [key for key in found[place] if key not in KEYS]
        if unknown:
            raise ModelError(describe(f"unknown key {unknown[0]!r}", where=where, allowed=", ".join(KEYS)))
    return found


def external_of(robot: Robot, q: Array, values: Array, given: LogMap) -> Array:
    """Return wrenches (N, L, 6) as in ``inverse_dynamics``, of columns (N, k) in SI units at positions q (N, nq).

    Rows without a number are NaN.

    Example:
        >>> robot = torsor.library.quadruped()
        >>> plate = {"force": [8, 9, 10], "moment": [11, 12, 13], "axes": "world", "origin": [0.2, 0.13, 0.0]}
        >>> given = LogMap({}, wrenches={"fl_foot": plate})
        >>> weight = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 30.0]])
        >>> external_of(robot, robot.neutral()[None], weight, given)[0, 3].round(9).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 30.0]
    """
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
                found = "the origin of a plate, and axes of the link"
                raise ModelError(describe(found, where=where, fix='axes = "world"'))
            arm = frozen_array(own["origin"], (3,), where, "origin") - robot.pose(q[whole], place)[:, :3, 3]
            moment = moment + np.cross(arm, force)
        external[whole] += robot.wrench_at(q[whole], place, moment, force, axes=axes)
    return external


def driven_forces(robot: Robot, columns: Mapping[str, list[Head]]) -> tuple[list[int], Flags]:
    """Return the coordinates (k) that the columns of forces are of, and which forces (nv,) are known.

    Those of a free base are zero and known; without columns of tau, nothing else is.
    """
    base = free_coordinates(robot)
    heads = columns.get("tau", columns.get("current"))
    driven = [k for k in range(robot.nv) if heads is not None and (len(heads) == robot.nv or k not in base)]
    known = np.zeros(robot.nv, dtype=bool)
    known[[*base, *driven]] = True
    return driven, known
