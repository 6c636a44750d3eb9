"""Positions of one leg without a closed form, from the pose of the platform: damped Newton in the right assembly mode.

A leg with an elbow can reach a pose in two ways, its assembly modes, which meet where the leg is singular. At the pose
it must be in the mode that it has at home. So a solution of Newton's method counts only if a path without a singular
configuration leads there from home. There are two searches for such a path:

- **Along a line of the leg.** It needs a leg whose distance from singular depends on its own positions alone
  (``depends_on_pose`` is False). Newton's method goes to the pose at once, from home or from other positions in the
  same mode; the path is the straight line in the leg's coordinates, which is sampled. It is fast, and it does not
  depend on the path of the platform.
- **By continuation.** It works for every leg: the platform moves from home to the pose in strides, and the leg follows.
  It is about ten times slower, and fails where the path of the platform is blocked though another is free; a few other
  paths are then tried. The first search passes on to this one the legs that close at the pose without a free line.

Both are needed: on a grid of poses of the library's Delta robot, the first alone misses 17 % of what both reach and the
second alone 14 %; and the first cannot be used for a leg whose closure Jacobian depends on the pose.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array, Flags
from torsor.dynamics.loops.characteristic_scales import characteristic_scales
from torsor.robot.closed_loops.search import CLOSED, NEAREST, Closer
from torsor.robot.parallel.limbs import Limb
from torsor.robot.robot import Robot

NEAR = 0.1  # rad or sizes: remaining distance to a singular configuration at which a leg counts as arrived there
SAMPLES = 129  # of a line between two positions of a leg
TRIES, STARTS = 256, 3  # random positions of a leg that are looked at, and how many of them Newton's method starts from


@dataclass(frozen=True, eq=False)
class LegSearch:
    """Searches positions (batch, nq of the leg) at poses (batch, nq of the platform), and returns which were found.

    ``carriage`` is the platform alone, in double precision; ``home`` and ``leg_home`` are the home positions of both.
    ``closer`` closes the leg, with states (pose, positions of the leg). ``side`` is the signed distance from singular
    as a function of the leg's positions; it is None if that depends on the pose too.
    """

    limb: Limb
    carriage: Robot
    home: Array
    leg_home: Array
    closer: Closer
    side: Callable[[Array], Array] | None

    def from_guess(self, poses: Array, guess: Array) -> tuple[Array, Flags]:
        """Return positions closed from a guess (batch, nq), and which are in the assembly mode of the guess."""
        begin = np.concatenate([poses, guess], axis=-1)
        before = self.closer.side(begin)
        found, error, side = self.closer.close(begin, self._still(begin))
        same = (before * side > 0) | (np.abs(before) <= NEAREST) | (np.abs(side) <= NEAREST)
        return found[:, poses.shape[-1] :], (error <= CLOSED) & same

    def from_home(self, poses: Array) -> tuple[Array, Flags]:
        """Return positions in the assembly mode of home, and which were found."""
        return self._by_continuation(poses) if self.side is None else self._by_line(self.side, poses)

    # Along a line of the leg

    def _by_line(self, side: Callable[[Array], Array], poses: Array) -> tuple[Array, Flags]:
        found, reached = self._begin(poses), np.zeros(len(poses), dtype=bool)
        n, closed = len(self.home), reached.copy()
        for attempt in range(1 + STARTS):
            late = np.flatnonzero(~reached)
            if attempt == 1:
                starts = self._starts(side, poses, late)
            begin = starts[attempt - 1, late] if attempt else found[late, n:]
            there, done, same = self._on_line(side, poses[late], begin)
            found[late[same], n:], reached[late[same]], closed[late[done]] = there[same], True, True
        left = np.flatnonzero(closed & ~reached)
        found[left], reached[left] = self._walk(self._begin(left), poses[left])
        return found[:, n:], reached

    def _starts(self, side: Callable[[Array], Array], poses: Array, late: NDArray[np.int_]) -> Array:
        """Return positions (STARTS, batch, nq) from which Newton's method starts at the poses ``late``.

        Of random positions in the assembly mode of home, they are those with the least closing error.
        """
        scale = characteristic_scales(self.limb.tree, self.limb.length)[0]
        size = (16 * TRIES, len(self.leg_home))
        tries = self.leg_home + scale * np.random.default_rng(0).uniform(-np.pi, np.pi, size=size)
        lines = side(self.leg_home + np.linspace(0.0, 1.0, 33)[:, None, None] * (tries - self.leg_home))
        tries = tries[(lines * lines[0] > 0).all(axis=0)][:TRIES]
        found = np.zeros((STARTS, len(poses), len(self.leg_home)))
        for part in np.array_split(late, 1 + len(late) // 64):
            states = np.concatenate(
                [np.repeat(poses[part], len(tries), axis=0), np.tile(tries, (len(part), 1))], axis=-1
            )
            error = self.closer.trial(states, self._still(states))[:, -2]
            order = np.argsort(error.reshape(len(part), len(tries)), axis=-1, kind="stable")
            found[:, part] = tries[order[:, :STARTS].T]
        return found

    def _on_line(self, side: Callable[[Array], Array], poses: Array, begin: Array) -> tuple[Array, Flags, Flags]:
        """Return positions closed from ``begin``, which are closed, and which have a free line to home.

        The line in the leg's coordinates is free if the side keeps its sign on it: between two samples, the side
        changes by no more than the leg moves. The end itself may be singular, where both assembly modes meet.
        """
        closer, home, n = self.closer, self.leg_home, len(self.home)
        states = np.concatenate([poses, np.broadcast_to(begin, (len(poses), len(home)))], axis=-1)
        still = self._still(states)
        found, error, end = closer.close(states, still)
        turns = np.where(self.limb.angles, 2 * np.pi * np.round((found[:, n:] - home) / (2 * np.pi)), 0.0)
        if turns.any():
            found[:, n:] -= turns
            found, error, end = closer.close(found, still)  # a whole turn may be another configuration: a geared joint
        displacement = found[:, n:] - home
        s = 1 - np.linspace(1.0, 0.0, SAMPLES) ** 3  # dense at the end, which may be near to singular
        sides = side(home + s[:, None, None] * displacement)
        apart = np.linalg.norm(displacement / closer.q_units[n:], axis=-1) * np.diff(s, append=1.0)[:, None]
        same = (sides * sides[0] > 0) & (np.abs(sides) > apart)
        closed = error <= CLOSED
        stretched = (np.abs(end) <= NEAREST) & same[: 3 * SAMPLES // 4].all(axis=0)
        return found[:, n:], closed, closed & (stretched | (same.all(axis=0) & (np.abs(end) > NEAREST)))

    # By continuation

    def _by_continuation(self, poses: Array) -> tuple[Array, Flags]:
        n, begin = len(self.home), self._begin(poses)
        found, reached = self._walk(begin, poses)
        for mask in self._detours:
            left = np.flatnonzero(~reached)
            first = np.zeros((len(left), self.carriage.nv))
            first[:, mask] = self.carriage.difference(self.home, poses[left])[:, mask]
            there, midway = self._walk(begin[left], self.carriage.integrate(self.home, first))
            last, arrived = self._walk(there[midway], poses[left[midway]])
            found[left[midway][arrived]], reached[left[midway][arrived]] = last[arrived], True
        # A leg that is stretched out just at the pose, where both assembly modes meet, is not reached by strides.
        left = np.flatnonzero(~reached)
        states = np.concatenate([poses[left], found[left, n:]], axis=-1)
        there, error, side = self.closer.close(states, self._still(states))
        off = np.abs((there - found[left]) / self.closer.q_units).max(axis=-1, initial=0.0)
        good = (error <= CLOSED) & (np.abs(side) <= NEAREST) & (off < NEAR)
        found[left[good]], reached[left[good]] = there[good], True
        return found[:, n:], reached

    def _walk(self, begin: Array, poses: Array) -> tuple[Array, Flags]:
        """Return the states after the platform moved straight from ``begin`` to the poses, and which arrived."""
        if not len(begin):
            return begin, np.zeros(0, dtype=bool)
        displacement = self._still(begin)
        displacement[:, : self.carriage.nv] = self.carriage.difference(begin[:, : len(self.home)], poses)
        return self.closer.walk(begin, self.closer.side(begin), displacement)

    @cached_property
    def _detours(self) -> list[Flags]:
        """Which of the platform's velocities (nv) move first, where the straight path is blocked."""
        turns = np.array([turn for joint in self.carriage.joints for turn in joint.kind.turns])
        mixed = [turns, ~turns] if turns.any() and not turns.all() else []
        single = list(np.eye(len(turns), dtype=bool)[~turns]) if np.count_nonzero(~turns) > 1 else []
        return mixed + single

    def _begin(self, rows: Array | NDArray[np.int_]) -> Array:
        """Return one state at home for each row."""
        return np.tile(np.concatenate([self.home, self.leg_home]), (len(rows), 1))

    def _still(self, states: Array) -> Array:
        return np.zeros((len(states), len(self.closer.v_units)))
