"""Gears: what is measured at the motors, as positions and forces of the joints.

    motor = R joint        R (n, n): gear ratios, and couplings off the diagonal
    q = R^-1 (motor positions) + offsets        v = R^-1 (motor velocities)        tau = R^T (motor forces)

The last follows from the power: motor forces times motor velocities are joint forces times joint velocities. Motor
forces are measured, or currents times torque constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from torsor.base.arrays import Array, Flags
from torsor.base.checks import frozen_array, indices_of, number, one_of, positive_vector, real_array, rows, table
from torsor.base.errors import ModelError, describe
from torsor.robot.robot import Robot

SIDES = ("joint", "motor")
KEYS = ("side", "ratios", "coupling", "matrix", "offsets", "torque_constants")
LARGEST_CONDITION = 1e9


@dataclass(frozen=True, eq=False)
class Gears:
    """The drives of a robot: ``matrix`` R (n, n), ``offsets`` (n,) of the joints (rad, m), and the measured ``sides``.

    ``sides`` says "motor" or "joint" for q, v, a and tau. ``constants`` (n,) are torque constants (N m/A), or None.

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
    def of(cls, given: Mapping[str, Any] | None, robot: Robot, where: str) -> Gears:
        """Return the drives that a table of a map describes; without one, all is measured at the joints."""
        data, place, n = table(given, where, "drives"), f"{where}: drives", robot.nv
        unknown = [key for key in data if key not in KEYS]
        if unknown:
            raise ModelError(describe(f"unknown key {unknown[0]!r}", where=place, allowed=", ".join(KEYS)))
        if data and robot.nq != robot.nv:
            found = f"{robot.name} has {robot.nq} positions and {robot.nv} velocities"
            raise ModelError(describe(found, where=place, allowed="joints with one position for each velocity"))
        if ("ratios" in data or "matrix" in data) and "side" not in data:
            fix = 'write side = "motor", or side = {q = "joint", tau = "motor"}'
            raise ModelError(describe("gear ratios, and no side", where=place, fix=fix))
        offsets = frozen_array(data.get("offsets", np.zeros(n)), (n,), place, "offsets")
        constants = data.get("torque_constants")
        if constants is not None:
            constants = _each(constants, n, place, "torque_constants")
            if not constants.all():
                found = f"torque_constants is {constants.tolist()}"
                raise ModelError(describe(found, where=place, allowed="numbers that are not 0"))
        made = cls(_matrix(data, robot, place), offsets, _sides(data.get("side", "joint"), place), constants)
        geared = any(key in data for key in ("ratios", "coupling", "matrix"))
        if geared != ("motor" in made.sides.values()):
            what = "gear ratios, and all is measured at the joints" if geared else 'side = "motor", and no ratios'
            fix = 'write side = "motor" and ratios (1 without a gear), or neither'
            raise ModelError(describe(what, where=place, fix=fix))
        return made

    @cached_property
    def _inverse(self) -> Array:
        return np.asarray(np.linalg.inv(self.matrix))

    def positions(self, measured: Array) -> Array:
        """Return the positions (N, n) of the joints."""
        return np.asarray(self.rates(measured, "q") + self.offsets) if self.offsets.any() else self.rates(measured, "q")

    def rates(self, measured: Array, what: str) -> Array:
        """Return the velocities or accelerations (N, n) of the joints; ``what`` is "v" or "a"."""
        return np.asarray(measured @ self._inverse.T) if self.sides[what] == "motor" else measured

    def forces(self, measured: Array) -> Array:
        """Return the forces (N, n) of the joints."""
        return np.asarray(measured @ self.matrix) if self.sides["tau"] == "motor" else measured

    def motor_forces(self, currents: Array) -> Array:
        """Return the forces (N, n) of currents (N, n), in A."""
        return np.asarray(currents * (1.0 if self.constants is None else self.constants))

    def couplings(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the motors that turn with several joints, as ``identify(couplings=...)`` has them.

        Each has the rates of the joints ``names`` (n), relative to its own joint: R[k, j] / R[k, k].

        Example:
            >>> table = {"side": "motor", "ratios": [50.0, 40.0], "coupling": [["joint2", "joint1", 20.0]]}
            >>> Gears.of(table, torsor.library.two_link(), "map.toml").couplings(["joint1", "joint2"])
            {'motor of joint2': {'joint1': 0.5, 'joint2': 1.0}}
        """
        found = {}
        for name, row, own in zip(names, self.matrix, np.diagonal(self.matrix), strict=True):
            factors = row / (own if own else row[np.argmax(np.abs(row))])
            turning = np.flatnonzero(factors)
            if len(turning) > 1:
                found[f"motor of {name}"] = {names[j]: float(factors[j]) for j in turning.tolist()}
        return found

    def driven(self, motors: Flags) -> Flags:
        """Return which joint forces (N, n) depend on flagged motor forces (N, n)."""
        if self.sides["tau"] == "joint":
            return motors
        return np.asarray((motors.astype(float) @ np.abs(self.matrix)) > 0)


def _matrix(data: Mapping[str, Any], robot: Robot, where: str) -> Array:
    n, names = robot.nv, robot.coordinate_names
    if "matrix" in data:
        both = [key for key in ("ratios", "coupling") if key in data]
        if both:
            raise ModelError(describe(f"matrix and {both[0]}", where=where, allowed="one of them"))
        R = np.array(frozen_array(data["matrix"], (n, n), where, "matrix"))
    else:
        R = np.diag(_each(data.get("ratios", 1.0), n, where, "ratios"))
        for row in rows(data.get("coupling", []), where, "coupling"):
            entry = rows(row, where, "coupling", "a list of [motor, joint, ratio]")
            if len(entry) != 3:
                raise ModelError(describe(f"coupling {entry!r}", where=where, allowed="[motor, joint, ratio]"))
            motor, joint = indices_of([str(each) for each in entry[:2]], names, f"{where}: coupling")
            if motor == joint:
                fix = "give its own ratio in ratios"
                raise ModelError(describe(f"coupling of {entry[0]} with itself", where=where, fix=fix))
            R[motor, joint] = number(entry[2], where, f"coupling of {entry[0]} with {entry[1]}")
    if not np.abs(R).max() > 0 or not np.linalg.cond(R) < LARGEST_CONDITION:
        found = "the matrix of gear ratios has no inverse"
        raise ModelError(describe(found, where=where, fix="each motor needs a ratio that is not 0"))
    return R


def _each(given: Any, count: int, where: str, what: str) -> Array:
    """Return finite numbers (count,), from one for all or one for each."""
    single = real_array(given, where, what).ndim == 0
    found = frozen_array(given, () if single else (count,), where, what)
    return np.full(count, found) if single else found


def _sides(given: Any, where: str) -> dict[str, str]:
    if isinstance(given, str):
        return dict.fromkeys(("q", "v", "a", "tau"), one_of(given, SIDES, where, "side"))
    found = table(given, where, "side")
    unknown = [key for key in found if key not in ("q", "v", "a", "tau")]
    if unknown:
        raise ModelError(describe(f"side of {unknown[0]!r}", where=where, allowed="q, v, a, tau"))
    first = found.get("q", "joint")
    sides = {
        "q": first,
        "v": first,
        "a": first,
        "tau": "joint",
    } | found  # derivatives are usually those of the positions
    return {key: one_of(each, SIDES, where, f"side of {key!r}") for key, each in sides.items()}


def saturation_of(given: Any, robot: Robot, where: str) -> Array:
    """Return the largest forces (n,) that the log shows where a drive saturates; infinite where none is given.

    Example:
        >>> saturation_of(None, torsor.library.two_link(), "map.toml").tolist()
        [inf, inf]
    """
    if given is None:
        return np.full(robot.nv, np.inf)
    return positive_vector(given, robot.nv, where, "saturation")
