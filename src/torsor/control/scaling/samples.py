"""The samples of a path that are known: a ring with the dynamics at each of them and between them."""

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import arrays
from torsor.base.errors import ModelError, describe
from torsor.compiler import compile
from torsor.control.scaling.path_dynamics import coefficients, interpolation, refinement
from torsor.robot.robot import Robot

CHECKED = 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875  # parts of an interval at which loads are checked
_MIDDLE, _PARTS = CHECKED.index(0.5), np.array([*CHECKED, 1.0])  # eight states, which are two or four vectors


class Samples:
    """The last ``capacity`` samples of a path, at distances ``spacing``.

    Sample k is in row k % capacity of each array, and ``capacity`` rows later once more, so that the rows of a window
    are one view, without copies. ``near`` has the coefficients at a sample, in the middle of the interval after it and
    at the next sample, ``inner`` those at the checked points of the interval, each with the x at which a velocity
    reaches its bound; ``fastest`` is the largest x in the interval and ``tight`` a factor of its loads.
    """

    def __init__(
        self, robot: Robot, spacing: float, torque: Array, velocity: Array, speed: float, margin: float, capacity: int
    ):
        n = robot.nv
        self.robot, self.spacing, self.capacity = robot, spacing, capacity
        self.where = f"{robot.name}: online scaling"
        self._torque, self._velocity, self._margin = torque, velocity, margin
        self._most, self._slower, self._tightness = speed**2, (1 - margin) ** 2, 1 / (1 - margin)
        self._fixed = np.array([spacing, *torque, *velocity])
        traced = coefficients(robot)
        self.width = width = traced.size1_out(0) - 2
        self._coefficients = compile(traced, inputs=6 * [(n,)], outputs=[(width + 2,)])
        self._refinement = compile(refinement(robot), inputs=[(8, n), (), (1 + 2 * n,)], outputs=[(width + 2,)])
        shapes = [*2 * [(4, n)], *4 * [()]]
        self._interpolation = compile(interpolation(n), inputs=shapes, outputs=[(3 * n,)])
        self._given = np.zeros((2 * capacity, 4, n))
        strides = self._given.strides
        self._pairs = as_strided(self._given, (2 * capacity - 1, 8, n), strides, writeable=False)
        data = np.zeros((2 * capacity, 2 * width))  # coefficients at each sample, and in the middle after it
        self._at, self._middle = data[:, :width], data[:, width:]
        self.near = as_strided(data, (2 * capacity - 1, 3 * width), data.strides, writeable=False)
        self._between = np.zeros((2 * capacity, len(_PARTS), width + 2))
        self.inner = self._between.reshape(2 * capacity, -1)
        self.fastest, self.tight = np.zeros(2 * capacity), np.zeros(2 * capacity)
        self.fed, self._largest = 0, 0.0  # the last: x at which a velocity reaches its bound, at the last sample

    def add(self, *sample: ArrayLike) -> None:
        """Add a sample: q and its first three derivatives by s, each (nv)."""
        row, before, turn = self.fed % self.capacity, (self.fed - 1) % self.capacity, self.capacity
        given = self._given[row]
        try:
            given[0], given[1], given[2], given[3] = sample
        except (ValueError, TypeError):
            self._explain(sample)
            raise
        self._given[row + turn] = given
        if self.fed == 0:
            found = self._coefficients(*given, self._torque, self._velocity)[None]
        else:
            found = self._refinement(self._pairs[before], _PARTS, self._fixed)
        last = found[-1]
        if not last[-1] < 1 - self._margin:  # NaN too
            self._explain(sample)
        self._at[row] = self._at[row + turn] = last[:-2]
        largest = found[:, -2].tolist()
        if self.fed > 0:
            self._between[before] = self._between[before + turn] = found
            self._middle[before] = self._middle[before + turn] = found[_MIDDLE, :-2]
            fastest = min(self._slower * min(self._largest, *largest), self._most)
            self.fastest[before] = self.fastest[before + turn] = fastest
            self.tight[before] = self.tight[before + turn] = self._tightness
        self._largest = largest[-1]
        self.fed += 1

    def _explain(self, sample: tuple[ArrayLike, ...]) -> None:
        """Raise the error of a sample that cannot be used."""
        n, where = self.robot.nv, f"{self.where}: sample {self.fed}"
        for value, name in zip(sample, ("q", "d1", "d2", "d3"), strict=True):
            array = arrays(value, (n,), where, name)
            if array.ndim > 1:
                raise ModelError(describe(f"{name} has shape {array.shape}", where=where, allowed=f"({n},)"))
        force = np.abs(self.robot.inverse_dynamics(sample[0], np.zeros(n), np.zeros(n)))
        worst = int(np.argmax(force / self._torque))
        found = f"standing still takes {force[worst]:.4g} at {self.robot.coordinate_names[worst]!r}"
        allowed = f"less than {self._torque[worst] * (1 - self._margin):.4g}, the torque bound less the margin"
        fix = "a larger bound, or another path: no timing is within this bound"
        raise ModelError(describe(found, where=where, allowed=allowed, fix=fix))

    def stands(self, k: int) -> bool:
        """Return whether the path itself stands still at a sample: then the rate of s is free there."""
        return not self._given[k % self.capacity, 1:3].any()

    def tighten(self, m: int, tight: Array) -> None:
        """Keep the factors of the loads in the intervals from sample m on."""
        for turn in (0, self.capacity):
            rows = (np.arange(m, m + len(tight)) % self.capacity) + turn
            self.tight[rows] = tight

    def motion(self, k: int, part: float, rate: float, acceleration: float) -> Array:
        """Return q, v and a (3, nv) at a part of the interval after sample k."""
        ends = (self._given[each % self.capacity] for each in (k, k + 1))
        found: Array = self._interpolation(*ends, part, self.spacing, rate, acceleration)
        return found.reshape(3, self.robot.nv)
