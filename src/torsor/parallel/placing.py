"""Putting a parallel robot together: the legs where the platform is, and the platform where the drives are."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics.loops.characteristic_scales import units
from torsor.errors import ModelError, describe
from torsor.parallel.fitting import Look
from torsor.parallel.inputs import broadcast, numbers
from torsor.parallel.kernels import Assembled
from torsor.parallel.trials import drive_units, tells_by_itself
from torsor.robot.closed_loops.search import CLOSED, NEAREST, Closer

__all__ = ["Placed"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEAR = 0.1  # rad or sizes: how far a leg that came to a singular place may still go to be in it
SAMPLES, TRIES, STARTS = 129, 256, 3  # of a line between two positions of a leg; where else to begin, and how often
AGREE = 1e-9  # rad or sizes: what drives that are more than needed may be off by


class Placed(Assembled):
    """A parallel robot whose legs and platform can be placed."""

    def inverse_kinematics(self, pose: ArrayLike, guess: ArrayLike | None = None) -> Array:
        """Return the positions (..., nq) of all legs, from the pose of the platform (..., 7), or what its motion has.

        Legs of two crossed axes, a slide and a ball (UPS) have a closed form. The others are closed by damped Newton,
        each by itself, and stay put together as they are at home: no singular place is on the line between both in the
        leg's own coordinates; or it is led from home to the pose in strides that become shorter near singular places,
        so that none is passed unseen (straight; if that is blocked, with the turn first or last, or one coordinate
        first). With a ``guess`` (..., nq) it is the way of assembly near that. What cannot be reached so is an error
        that names the leg. Limits of joints are not looked at: see ``workspace``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.gough_stewart()
            >>> robot.inverse_kinematics([0.0, 0.0, 0.8, 0, 0, 0, 1])[robot.leg_slices[0]].shape
            (3,)
        """
        x = self._coordinates(pose)
        self._check_finite(x)
        start = None if guess is None else self._positions(guess, "guess")
        q, reached = self._placed(x, start)
        if not reached.all():
            self._refuse(x, q, reached, guess is not None)
        return q

    def _positions(self, q: ArrayLike, what: str) -> Array:
        values = numbers(q, self.name, what)
        if values.ndim == 0 or values.shape[-1] != self.nq:
            raise ModelError(describe(f"{what} has shape {values.shape}", where=self.name, allowed=f"(..., {self.nq})"))
        if not np.isfinite(values).all():
            raise ModelError(describe(f"{what} is not finite", where=self.name, allowed="numbers"))
        return values

    def _placed(self, x: Array, guess: Array | None) -> tuple[Array, Flags]:
        """Return positions (..., nq) of the legs, and which of them (..., legs) have been reached."""
        start = self.leg_home if guess is None else guess
        batch = broadcast(self.name, pose=x.shape[:-1], guess=start.shape[:-1])
        poses = np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1])
        near = np.broadcast_to(start, (*batch, self.nq)).reshape(-1, self.nq)
        q = np.array(self._exact._kernel("closed_positions")(poses, near))
        reached = np.ones((len(q), len(self.legs)), dtype=bool)
        for k, (limb, strut) in enumerate(zip(self._parts.limbs, self._parts.struts, strict=True)):
            at = np.flatnonzero(reached.all(axis=-1))  # where a leg before does not reach, there is nothing to find
            if strut is not None:
                reached[:, k] = np.isfinite(q[:, limb.q]).all(axis=-1)
            elif guess is None:
                q[at, limb.q], reached[at, k] = self._led(k, poses[at])
            else:
                q[at, limb.q], reached[at, k] = self._guessed(k, poses[at], q[at, limb.q])
        return q.reshape(*batch, self.nq), reached.reshape(*batch, len(self.legs))

    def _led(self, leg: int, poses: Array) -> tuple[Array, Flags]:
        """Return positions of a leg (batch, its nq) at the poses (batch, nq), as it is at home, and which arrived."""
        closer, n, own = self._closers[leg], self.carriage.nq, self._parts.limbs[leg]
        home = np.concatenate([self.home, self.leg_home[own.q]])
        begin = np.broadcast_to(home, (len(poses), len(home))).copy()
        found, well = begin.copy(), np.zeros(len(poses), dtype=bool)
        if self._tells[leg]:
            left = well.copy()  # those that closed, but not seen to be as at home
            for turn in range(1 + STARTS):
                late = np.flatnonzero(~well)
                if turn == 1:
                    starts = self._starts(leg, poses, late)
                there, closed, same = self._joined(
                    leg, poses[late], starts[turn - 1, late] if turn else begin[late, n:]
                )
                found[late[same], n:], well[late[same]], left[late[closed]] = there[same], True, True
            left = np.flatnonzero(left & ~well)
            found[left], well[left] = self._walked(closer, begin[left], poses[left])
            return found[:, n:], well
        found, well = self._walked(closer, begin, poses)
        for mask in self._detours:
            left = np.flatnonzero(~well)
            first = np.zeros((len(left), self.dof))
            first[:, mask] = self._exact.carriage.difference(self.home, poses[left])[:, mask]
            via = self._exact.carriage.integrate(self.home, first)
            there, come = self._walked(closer, begin[left], via)
            last, arrived = self._walked(closer, there[come], poses[left[come]])
            found[left[come][arrived]], well[left[come][arrived]] = last[arrived], True
        # What is left may be a leg stretched out just there, where both ways of assembly are one.
        left = np.flatnonzero(~well)
        state = np.concatenate([poses[left], found[left, n:]], axis=-1)
        there, size, side = closer.close(state, np.zeros((len(left), len(closer.v_units))))
        off = np.abs((there - found[left]) / closer.q_units).max(axis=-1, initial=0.0)
        good = (size <= CLOSED) & (np.abs(side) <= NEAREST) & (off < NEAR)
        found[left[good]], well[left[good]] = there[good], True
        return found[:, n:], well

    def _starts(self, leg: int, poses: Array, late: NDArray[np.int_]) -> Array:
        """Return positions of a leg (STARTS, batch, its nq) to begin Newton from where it failed from home.

        Of positions all about, put together as at home, they are those with which the leg is open least.
        """
        closer, limb, side = self._closers[leg], self._parts.limbs[leg], self._exact._kernel("leg_side", leg=leg)
        home, scale = self.leg_home[limb.q], units(limb.tree, limb.length)[0]
        tries = home + scale * np.random.default_rng(0).uniform(-np.pi, np.pi, size=(16 * TRIES, len(home)))
        lines = side(home + np.linspace(0.0, 1.0, 33)[:, None, None] * (tries - home))
        tries = tries[(lines * lines[0] > 0).all(axis=0)][:TRIES]
        found = np.zeros((STARTS, len(poses), len(home)))
        for part in np.array_split(late, 1 + len(late) // 64):
            state = [np.repeat(poses[part], len(tries), axis=0), np.tile(tries, (len(part), 1))]
            size = closer.trial(np.concatenate(state, axis=-1), np.zeros((len(state[0]), len(closer.v_units))))[:, -2]
            order = np.argsort(size.reshape(len(part), len(tries)), axis=-1, kind="stable")
            found[:, part] = tries[order[:, :STARTS].T]
        return found

    def _joined(self, leg: int, poses: Array, begin: Array) -> tuple[Array, Flags, Flags]:
        """Return positions of a leg closed from those it begins at, which did, and which are put together as at home.

        They are if no singular place is on the line between both in the leg's own coordinates: between two samples the
        side changes by no more than the leg moves. The end itself may be singular, where both ways of assembly are one.
        """
        closer, limb, n = self._closers[leg], self._parts.limbs[leg], self.carriage.nq
        home, still = self.leg_home[limb.q], np.zeros((len(poses), len(closer.v_units)))
        start = np.broadcast_to(begin, (len(poses), len(home)))
        found, size, end = closer.close(np.concatenate([poses, start], axis=-1), still)
        turns = np.where(limb.angles, 2 * np.pi * np.round((found[:, n:] - home) / (2 * np.pi)), 0.0)
        if turns.any():
            found[:, n:] -= turns
            found, size, end = closer.close(found, still)  # open, where a whole turn is not the same place
        way = found[:, n:] - home
        share = 1 - np.linspace(1.0, 0.0, SAMPLES) ** 3  # dense at the end, which may be near to singular
        sides = self._exact._kernel("leg_side", leg=leg)(home + share[:, None, None] * way)
        apart = np.linalg.norm(way / closer.q_units[n:], axis=-1) * np.diff(share, append=1.0)[:, None]
        same = (sides * sides[0] > 0) & (np.abs(sides) > apart)
        closed = size <= CLOSED
        stretched = (np.abs(end) <= NEAREST) & same[: 3 * SAMPLES // 4].all(axis=0)
        return found[:, n:], closed, closed & (stretched | (same.all(axis=0) & (np.abs(end) > NEAREST)))

    def _walked(self, closer: Closer, begin: Array, poses: Array) -> tuple[Array, Flags]:
        n = self.carriage.nq
        way = np.zeros((len(begin), len(closer.v_units)))
        if len(begin):
            way[:, : self.dof] = self._exact.carriage.difference(begin[:, :n], poses)
        return closer.walk(begin, closer.side(begin), way) if len(begin) else (begin, np.zeros(0, dtype=bool))

    @cached_property
    def _tells(self) -> dict[int, bool]:
        return {k: tells_by_itself(self._parts, k) for k in self._closers}

    @cached_property
    def _detours(self) -> list[Flags]:
        """Which of the platform's velocities (nv) may go first, where the straight way is blocked."""
        turns = np.array([turn for joint in self.carriage.joints for turn in joint.kind.turns])
        mixed = [turns, ~turns] if turns.any() and not turns.all() else []
        single = list(np.eye(len(turns), dtype=bool)[~turns]) if np.count_nonzero(~turns) > 1 else []
        return mixed + single

    def _guessed(self, leg: int, poses: Array, guess: Array) -> tuple[Array, Flags]:
        """Return positions of a leg closed from a guess (batch, its nq), and which are on the side of the guess."""
        closer, n = self._closers[leg], self.carriage.nq
        begin = np.concatenate([poses, guess], axis=-1)
        before = closer.side(begin)
        found, size, side = closer.close(begin, np.zeros((len(begin), len(closer.v_units))))
        same = (before * side > 0) | (np.abs(before) <= NEAREST) | (np.abs(side) <= NEAREST)
        return found[:, n:], (size <= CLOSED) & same

    @cached_property
    def _closers(self) -> dict[int, Closer]:
        """How each leg without a closed form is closed where the platform is; its coordinates stand before theirs."""
        own, found = units(self._parts.platform, self._parts.length), dict[int, Closer]()
        for k, (limb, strut) in enumerate(zip(self._parts.limbs, self._parts.struts, strict=True)):
            if strut is None:
                both = [np.concatenate(pair) for pair in zip(own, units(limb.tree, limb.length), strict=True)]
                found[k] = Closer(self._exact._kernel("leg_trial", leg=k), *both)
        return found

    def _refuse(self, x: Array, q: Array, reached: Flags, guessed: bool) -> None:
        """Raise the error that names a leg which does not reach, and says how far off it is at best."""
        index = tuple(np.argwhere(~reached)[0][:-1])
        pose, own = np.broadcast_to(x, (*reached.shape[:-1], x.shape[-1]))[index], q[index]
        where, found = f"{self.name}, pose {np.round(pose, 6).tolist()}", dict[str, float]()
        for leg, limb, well in zip(self.legs, self._parts.limbs, reached[index], strict=True):
            if not well:
                look = Look(limb._replace(rows=tuple(range(limb.loop.count))), self._parts.platform, pose)
                found[leg.name] = look.space.closest(np.where(np.isfinite(own), own, self.leg_home)[limb.q])[1]
        name, size = max(found.items(), key=lambda pair: pair[1])
        if size <= 1e-6:
            text = f"leg {name!r} cannot be led there as it is put together "
            text += "in the guess" if guessed else "at home: a singular place is between, or it is too far"
            raise ModelError(describe(text, where=where, fix="give the legs' positions nearby as a guess"))
        text = f"leg {name!r} does not reach the platform: it is open by {size * self._parts.length:.2g} at best"
        raise ModelError(describe(text, where=where, fix="ask for a pose within reach"))

    def forward_kinematics(self, q_driven: ArrayLike, guess: ArrayLike | None = None) -> Array:
        """Return the pose (..., 7) of the platform, or what its motion has, from the driven coordinates (..., N).

        Of several it is the one near ``guess``, a pose (..., 7), by default home: from there the drives are led to
        where they are wanted in strides, each closed by damped Newton, all of a batch at once, and neither legs nor
        platform pass a singular place. Of more drives than freedoms the positions must agree.

        Example:
            >>> import torsor
            >>> robot = torsor.library.gough_stewart()
            >>> lengths = robot.inverse_kinematics(robot.home)[2::3]
            >>> bool(np.allclose(robot.forward_kinematics(lengths + 0.1)[:2], 0.0))  # all alike: straight up
            True
        """
        wanted = numbers(q_driven, self.name, "q_driven")
        count, n = len(self._driven), self.carriage.nq
        if wanted.ndim == 0 or wanted.shape[-1] != count or not np.isfinite(wanted).all():
            found = f"q_driven has shape {wanted.shape}, or is not finite"
            raise ModelError(
                describe(found, where=self.name, allowed=f"(..., {count}): {', '.join(self.driven_names)}")
            )
        x = self.home if guess is None else self._coordinates(guess, "guess")
        q = self.inverse_kinematics(x)
        batch = broadcast(self.name, q_driven=wanted.shape[:-1], guess=x.shape[:-1])
        begin = np.concatenate([x, q, q[..., self._driven]], axis=-1)
        begin = np.broadcast_to(begin, (*batch, begin.shape[-1])).reshape(-1, begin.shape[-1])
        flat = np.broadcast_to(wanted, (*batch, count)).reshape(-1, count)
        way = np.zeros((len(begin), self.dof + self.nv + count))
        way[:, -count:] = flat - begin[:, -count:]
        begin = np.ascontiguousarray(begin)
        state, well = self._assembler.walk(begin, self._assembler.side(begin), way)
        first, last = (self._exact._kernel("sides")(each[:, :n], each[:, n:-count]) for each in (begin, state))
        well &= (first * last > 0).all(axis=-1)  # none has gone round a singular place with another
        if not well.all():
            k = int(np.argmin(well))
            text = f"no pose with the driven coordinates {flat[k].round(6).tolist()} was found on the way from "
            text += f"{'home' if guess is None else 'the guess'}: they cannot be reached, or a singular pose is between"
            fix = "ask for what can be reached, or give a guess nearer to it"
            raise ModelError(describe(text, where=self.name, fix=fix))
        off = np.abs((state[:, n:-count][:, self._driven] - flat) / self._drive_units).max(axis=-1, initial=0.0)
        if (off > AGREE).any():
            text = f"driven coordinates disagree by {off.max():.2g}: {count} are given, and {self.dof} move it"
            raise ModelError(describe(text, where=self.name, allowed=f"{AGREE:g}", fix="give values that agree"))
        return state[:, :n].reshape(*batch, n)

    @cached_property
    def _drive_units(self) -> Array:
        return drive_units(self._parts)

    @cached_property
    def _assembler(self) -> Closer:
        """How legs and platform are closed with the drives held: (pose, positions of the legs, drives)."""
        trees = self._parts.platform, *(limb.tree for limb in self._parts.limbs)
        own = [np.concatenate(each) for each in zip(*(units(tree, self._parts.length) for tree in trees), strict=True)]
        q_units, v_units = (np.concatenate([each, self._drive_units]) for each in own)
        return Closer(self._exact._kernel("assembly_trial"), q_units, v_units)
