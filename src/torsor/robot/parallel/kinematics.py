"""Kinematics of parallel robots: leg positions from the platform's pose, and the pose from the drive positions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array, Flags
from torsor.base.checks import common_shape, vectors
from torsor.base.errors import ModelError, shortened
from torsor.dynamics.loops.closure import characteristic_scales
from torsor.robot.closed_loops.search import CLOSURE_TOLERANCE, MIN_SINGULAR_DISTANCE, Closer
from torsor.robot.parallel.decomposition import depends_on_pose, drive_units
from torsor.robot.parallel.kernels import Assembled
from torsor.robot.parallel.legs import Look
from torsor.robot.parallel.limbs import Limb
from torsor.robot.robot import Robot

# Positions of one leg without a closed form, from the platform's pose: damped Newton steps in the right assembly mode.
#
# A leg with an elbow can reach a pose in two assembly modes, which meet where the leg is singular. A solution is
# accepted only if a path without singular configurations leads to it from home. There are two searches for such a path:
#
# - Along a line: Newton's method moves the leg to the pose directly, from home or from other positions in the same
#   mode, and the straight line in the leg's coordinates is sampled. This search is fast and independent of the
#   platform's path. It requires that ``depends_on_pose`` is False for the leg.
# - By continuation, for every leg: the platform moves from home to the pose in steps, and the leg follows. This search
#   is ten times slower. It tries a few detours if the platform's path is blocked.
#
# On a grid of poses of the library's Delta robot, the first search alone misses 17 % of the poses that both together
# reach, and the second alone misses 14 %.

# rad or robot sizes: distance from a singular configuration within which a leg is accepted as having reached it.
SINGULAR_DISTANCE = 0.1
SAMPLES = 129  # samples of a line between two positions of a leg
TRIES, STARTS = 256, 3  # number of random leg positions, and of those at which Newton's method starts


@dataclass(frozen=True, eq=False)
class LegSearch:
    """Search for leg positions (batch, nq of the leg) at poses (batch, nq of the platform), with success flags.

    ``carriage`` is the platform alone, in double precision. ``home`` and ``leg_home`` are the home positions of the
    platform and the leg. ``closer`` closes the leg, with states (pose, leg positions). ``side`` is the signed distance
    from a singularity as a function of the leg positions, or None if it also depends on the pose.
    """

    limb: Limb
    carriage: Robot
    home: Array
    leg_home: Array
    closer: Closer
    side: Callable[[Array], Array] | None

    def from_guess(self, poses: Array, guess: Array) -> tuple[Array, Flags]:
        """Return leg positions (batch, nq) near a guess, and whether they are closed and in its assembly mode."""
        begin = np.concatenate([poses, guess], axis=-1)
        before = self.closer.side(begin)
        result, error, side = self.closer.close(begin, self._still(begin))
        same = (before * side > 0) | (np.abs(before) <= MIN_SINGULAR_DISTANCE) | (np.abs(side) <= MIN_SINGULAR_DISTANCE)
        return result[:, poses.shape[-1] :], (error <= CLOSURE_TOLERANCE) & same

    def from_home(self, poses: Array) -> tuple[Array, Flags]:
        """Return positions in the home assembly mode, and success flags."""
        side = self.side
        if side is None:
            return self._by_continuation(poses)
        result, reached = self._begin(poses), np.zeros(len(poses), dtype=bool)
        n, closed = len(self.home), reached.copy()
        for attempt in range(1 + STARTS):
            late = np.flatnonzero(~reached)
            if attempt == 1:
                starts = self._starts(side, poses, late)
            begin = starts[attempt - 1, late] if attempt else result[late, n:]
            there, done, same = self._on_line(side, poses[late], begin)
            result[late[same], n:], reached[late[same]], closed[late[done]] = there[same], True, True
        left = np.flatnonzero(closed & ~reached)
        result[left], reached[left] = self._walk(self._begin(left), poses[left])
        return result[:, n:], reached

    def _starts(self, side: Callable[[Array], Array], poses: Array, late: NDArray[np.int_]) -> Array:
        """Return the random starts (STARTS, batch, nq) with the smallest closure errors in the home assembly mode."""
        scale = characteristic_scales(self.limb.tree, self.limb.length)[0]
        size = (16 * TRIES, len(self.leg_home))
        tries = self.leg_home + scale * np.random.default_rng(0).uniform(-np.pi, np.pi, size=size)
        lines = side(self.leg_home + np.linspace(0.0, 1.0, 33)[:, None, None] * (tries - self.leg_home))
        tries = tries[(lines * lines[0] > 0).all(axis=0)][:TRIES]
        result = np.zeros((STARTS, len(poses), len(self.leg_home)))
        for part in np.array_split(late, 1 + len(late) // 64):
            repeated = np.repeat(poses[part], len(tries), axis=0)
            states = np.concatenate([repeated, np.tile(tries, (len(part), 1))], axis=-1)
            error = self.closer.trial(states, self._still(states))[:, -2]
            order = np.argsort(error.reshape(len(part), len(tries)), axis=-1, kind="stable")
            result[:, part] = tries[order[:, :STARTS].T]
        return result

    def _on_line(self, side: Callable[[Array], Array], poses: Array, begin: Array) -> tuple[Array, Flags, Flags]:
        """Return positions near ``begin``, and masks of those that are closed and of those with a free line to home."""
        closer, home, n = self.closer, self.leg_home, len(self.home)
        states = np.concatenate([poses, np.broadcast_to(begin, (len(poses), len(home)))], axis=-1)
        still = self._still(states)
        result, error, end = closer.close(states, still)
        turns = np.where(self.limb.angles, 2 * np.pi * np.round((result[:, n:] - home) / (2 * np.pi)), 0.0)
        if turns.any():  # after a whole turn, a geared joint may be in another configuration
            result[:, n:] -= turns
            result, error, end = closer.close(result, still)
        displacement = result[:, n:] - home
        s = 1 - np.linspace(1.0, 0.0, SAMPLES) ** 3  # dense at the end, which may be nearly singular
        sides = side(home + s[:, None, None] * displacement)
        apart = np.linalg.norm(displacement / closer.q_units[n:], axis=-1) * np.diff(s, append=1.0)[:, None]
        # Between two samples, the side changes by no more than the leg moves. The end itself may be singular.
        same = (sides * sides[0] > 0) & (np.abs(sides) > apart)
        closed = error <= CLOSURE_TOLERANCE
        stretched = (np.abs(end) <= MIN_SINGULAR_DISTANCE) & same[: 3 * SAMPLES // 4].all(axis=0)
        return result[:, n:], closed, closed & (stretched | (same.all(axis=0) & (np.abs(end) > MIN_SINGULAR_DISTANCE)))

    def _by_continuation(self, poses: Array) -> tuple[Array, Flags]:
        n, begin = len(self.home), self._begin(poses)
        result, reached = self._walk(begin, poses)
        for mask in self._detours:
            left = np.flatnonzero(~reached)
            first = np.zeros((len(left), self.carriage.nv))
            first[:, mask] = self.carriage.difference(self.home, poses[left])[:, mask]
            there, midway = self._walk(begin[left], self.carriage.integrate(self.home, first))
            last, arrived = self._walk(there[midway], poses[left[midway]])
            result[left[midway][arrived]], reached[left[midway][arrived]] = last[arrived], True
        # The steps cannot reach a pose at which the leg is fully stretched, because both assembly modes meet there.
        left = np.flatnonzero(~reached)
        states = np.concatenate([poses[left], result[left, n:]], axis=-1)
        there, error, side = self.closer.close(states, self._still(states))
        off = np.abs((there - result[left]) / self.closer.q_units).max(axis=-1, initial=0.0)
        good = (error <= CLOSURE_TOLERANCE) & (np.abs(side) <= MIN_SINGULAR_DISTANCE) & (off < SINGULAR_DISTANCE)
        result[left[good]], reached[left[good]] = there[good], True
        return result[:, n:], reached

    def _walk(self, begin: Array, poses: Array) -> tuple[Array, Flags]:
        """Return the states after a straight motion of the platform from ``begin`` to the poses, and success flags."""
        if not len(begin):
            return begin, np.zeros(0, dtype=bool)
        displacement = self._still(begin)
        displacement[:, : self.carriage.nv] = self.carriage.difference(begin[:, : len(self.home)], poses)
        return self.closer.walk(begin, self.closer.side(begin), displacement)

    @cached_property
    def _detours(self) -> list[Flags]:
        """Masks (nv) of the platform velocities to apply first if the straight path is blocked."""
        turns = np.array([turn for joint in self.carriage.joints for turn in joint.kind.turns])
        mixed = [turns, ~turns] if turns.any() and not turns.all() else []
        single = list(np.eye(len(turns), dtype=bool)[~turns]) if np.count_nonzero(~turns) > 1 else []
        return mixed + single

    def _begin(self, rows: Array | NDArray[np.int_]) -> Array:
        """Return one state at home for each row."""
        return np.tile(np.concatenate([self.home, self.leg_home]), (len(rows), 1))

    def _still(self, states: Array) -> Array:
        return np.zeros((len(states), len(self.closer.v_units)))


AGREEMENT_TOLERANCE = 1e-9  # rad or robot sizes: largest disagreement of redundant drives


class Kinematics:
    """Inverse and forward kinematics of one robot, whose searches are prepared once."""

    def __init__(self, robot: Assembled):
        self.robot, self.parts = robot, robot._parts

    def inverse(self, x: Array, guess: Array | None) -> Array:
        """Return leg positions (..., nq) at poses x; raise an error that names a leg that does not reach them."""
        self.robot._check_finite(x)
        q, reached = self.leg_positions(x, guess)
        if not reached.all():
            raise self._unreached(x, q, reached, guess is not None)
        return q

    def leg_positions(self, x: Array, guess: Array | None) -> tuple[Array, Flags]:
        """Return leg positions (..., nq) at poses x, and a mask (..., legs) of the legs that reach them."""
        robot, start = self.robot, self.robot.leg_home if guess is None else guess
        batch = common_shape(robot.name, pose=x.shape[:-1], guess=start.shape[:-1])
        poses = np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1])
        near = np.broadcast_to(start, (*batch, robot.nq)).reshape(-1, robot.nq)
        q = np.array(robot._exact._kernel("closed_positions")(poses, near))
        reached = np.ones((len(q), len(robot.legs)), dtype=bool)
        for k, limb in enumerate(self.parts.limbs):
            if k not in self._searches:
                reached[:, k] = np.isfinite(q[:, limb.q]).all(axis=-1)
                continue
            search, at = self._searches[k], np.flatnonzero(reached.all(axis=-1))  # all earlier legs must reach the pose
            if guess is None:
                q[at, limb.q], reached[at, k] = search.from_home(poses[at])
            else:
                q[at, limb.q], reached[at, k] = search.from_guess(poses[at], q[at, limb.q])
        return q.reshape(*batch, robot.nq), reached.reshape(*batch, len(robot.legs))

    @cached_property
    def _searches(self) -> dict[int, LegSearch]:
        """The searches for legs without a closed form, by leg index."""
        robot, result, leg_home = self.robot, dict[int, LegSearch](), self.robot.leg_home
        for k, (limb, strut) in enumerate(zip(self.parts.limbs, self.parts.struts, strict=True)):
            if strut is None:
                closer = Closer(robot._exact._kernel("leg_trial", leg=k), *self._units(limb))
                side = None if depends_on_pose(self.parts, k) else robot._exact._kernel("leg_side", leg=k)
                result[k] = LegSearch(limb, robot._exact.carriage, robot.home, leg_home[limb.q], closer, side)
        return result

    def _unreached(self, x: Array, q: Array, reached: Flags, guessed: bool) -> ModelError:
        """Return an error that names the leg farthest from reaching the first pose, with its closure error."""
        robot, index = self.robot, tuple(np.argwhere(~reached)[0][:-1])
        pose, positions = np.broadcast_to(x, (*reached.shape[:-1], x.shape[-1]))[index], q[index]
        where, result = f"{robot.name}, pose {shortened(np.round(pose, 6))}", dict[str, float]()
        start = np.where(np.isfinite(positions), positions, robot.leg_home)
        for leg, limb, well in zip(robot.legs, self.parts.limbs, reached[index], strict=True):
            if not well:
                look = Look(limb._replace(rows=tuple(range(limb.loop.count))), self.parts.platform, pose)
                result[leg.name] = look.space.closest(start[limb.q])[1]
        name, size = max(result.items(), key=lambda pair: pair[1])
        if size <= 1e-6:
            mode = "the guess" if guessed else "home"
            message = f"leg {name!r} was not found in the assembly mode of {mode}: a singular configuration is between"
            message += " them" if guessed else " home and the pose, or the pose is too far away"
            return ModelError(message, where=where, fix="pass leg positions near the pose as a guess")
        error = f"the smallest closure error is {size * self.parts.length:.2g}"
        message = f"leg {name!r} does not reach the platform: {error}"
        return ModelError(message, value=name, where=where, fix="pass a pose within reach")

    def forward(self, q_driven: ArrayLike, guess: Array | None) -> Array:
        """Return poses (..., nq of the platform) for drive positions (..., N), near a guess or home."""
        robot, names = self.robot, self.robot.driven_names
        count, n = len(names), robot.carriage.nq
        goal = vectors(q_driven, count, f"{robot.name}, drives {', '.join(names)}", "q_driven")
        x = robot.home if guess is None else guess
        q = self.inverse(x, None)
        batch = common_shape(robot.name, q_driven=goal.shape[:-1], guess=x.shape[:-1])
        begin = np.concatenate([x, q, q[..., robot._driven]], axis=-1)
        begin = np.ascontiguousarray(np.broadcast_to(begin, (*batch, begin.shape[-1])).reshape(-1, begin.shape[-1]))
        flat = np.broadcast_to(goal, (*batch, count)).reshape(-1, count)
        way = np.zeros((len(begin), robot.dof + robot.nv + count))
        way[:, -count:] = flat - begin[:, -count:]
        state, well = self._assembler.walk(begin, self._assembler.side(begin), way)
        first, last = (robot._exact._kernel("sides")(item[:, :n], item[:, n:-count]) for item in (begin, state))
        well &= (first * last > 0).all(axis=-1)  # each side is compared, because two sign changes cancel in a product
        if not well.all():
            message = f"no pose with the driven coordinates {shortened(flat[int(np.argmin(well))].round(6))} was found"
            start = "home" if guess is None else "the guess"
            message += f" from {start}: they are unreachable, or a singular pose is in between"
            raise ModelError(message, where=robot.name, fix="pass reachable coordinates, or a closer guess")
        off = np.abs((state[:, n:-count][:, robot._driven] - flat) / drive_units(self.parts)).max(axis=-1, initial=0.0)
        if (off > AGREEMENT_TOLERANCE).any():
            message = f"driven coordinates disagree by {off.max():.2g}: {count} are given, {robot.dof} are independent"
            allowed = f"{AGREEMENT_TOLERANCE:g}"
            raise ModelError(message, where=robot.name, allowed=allowed, fix="pass consistent values")
        return state[:, :n].reshape(*batch, n)

    @cached_property
    def _assembler(self) -> Closer:
        """The ``Closer`` of legs and platform for given drives, with states (pose, leg positions, drive positions)."""
        units = (np.concatenate([unit, drive_units(self.parts)]) for unit in self._units(*self.parts.limbs))
        return Closer(self.robot._exact._kernel("assembly_trial"), *units)

    def _units(self, *limbs: Limb) -> list[Array]:
        """Return the characteristic scales of the positions and velocities of the platform and legs."""
        trees = self.parts.platform, *(limb.tree for limb in limbs)
        scales = (characteristic_scales(tree, self.parts.length) for tree in trees)
        return [np.concatenate(item) for item in zip(*scales, strict=True)]
