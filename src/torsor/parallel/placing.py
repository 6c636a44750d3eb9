"""Putting a parallel robot together: the legs where the platform is, and the platform where the drives are."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.loops.assembly import CLOSED, STRIDE, Closer
from torsor.parallel.fitting import Look
from torsor.parallel.kernels import Assembled

__all__ = ["Placed"]

Array = NDArray[np.float64]


class Placed(Assembled):
    """A parallel robot whose legs and platform can be placed."""

    def inverse_kinematics(self, pose: ArrayLike, guess: ArrayLike | None = None) -> Array:
        """Return the positions (..., nq) of all legs, from the pose of the platform (..., 7), or what its motion has.

        Of several ways to put a leg together it is the one near ``guess`` (..., nq); by default, that at home. Legs of
        two crossed axes, a slide and a ball (UPS) have a closed form. The others are led from home to the pose in
        steps, or start from the guess, and are closed by damped Newton, all of a batch at once. What cannot be reached
        is an error that names the leg and says by how much it is open. Limits of joints are not looked at: see
        ``workspace``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.gough_stewart()
            >>> robot.inverse_kinematics([0.0, 0.0, 0.8, 0, 0, 0, 1])[robot.leg_slices[0]].shape
            (3,)
        """
        x = self._coordinates(pose)
        start = None if guess is None else self._positions(guess, "guess")
        q, size = self._placed(x, start)
        if not (size <= CLOSED).all():
            self._refuse(x, q, size, guess is not None)
        return q

    def _positions(self, q: ArrayLike, what: str) -> Array:
        values = np.asarray(q, dtype=float)
        if values.ndim == 0 or values.shape[-1] != self.nq:
            raise ModelError(describe(f"{what} has shape {values.shape}", where=self.name, allowed=f"(..., {self.nq})"))
        return values

    def _placed(self, x: Array, guess: Array | None) -> tuple[Array, Array]:
        """Return positions (..., nq) of the legs, and what they are open by (...)."""
        start = self.leg_home if guess is None else guess
        batch = np.broadcast_shapes(x.shape[:-1], start.shape[:-1])
        if self.has_closed_form:
            q = self._exact._kernel("closed_positions")(x, start)
            open_ = np.where(np.isfinite(q).all(axis=-1), 0.0, np.inf)
            return np.broadcast_to(q, (*batch, self.nq)), np.broadcast_to(open_, batch)
        poses = np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1])
        q = np.broadcast_to(start, (*batch, self.nq)).reshape(-1, self.nq).copy()
        if guess is not None:
            q, size = self._closed(poses, q)
            return q.reshape(*batch, self.nq), size.reshape(batch)
        # From home, in steps, so that the way of assembly stays what it is there; what is not reached, in smaller ones.
        size = np.full(len(q), np.inf)
        for stride in (STRIDE, STRIDE / 4, STRIDE / 16):
            left = np.flatnonzero(~(size <= CLOSED))
            if not left.size:
                break
            way = self._exact.carriage.difference(self.home, poses[left])
            count = max(1, int(np.ceil(np.abs(np.nan_to_num(way)).max(initial=0.0) / stride)))
            part = q[left] * 0 + self.leg_home
            for k in range(1, count + 1):
                there = poses[left] if k == count else self._exact.carriage.integrate(self.home, k / count * way)
                part, size[left] = self._closed(there, part)
            q[left] = part
        return q.reshape(*batch, self.nq), size.reshape(batch)

    def _closed(self, poses: Array, q: Array) -> tuple[Array, Array]:
        """Return positions (batch, nq) of the legs, closed from those given, and what is left open."""
        q = self._exact._kernel("closed_positions")(poses, q)
        state, size, _ = self._closer.close(np.concatenate([poses, q], axis=-1), np.zeros((len(q), self.nv)))
        return state[:, poses.shape[-1] :], size

    @cached_property
    def _closer(self) -> Closer:
        """How legs are closed with the platform held; its coordinates stand before theirs."""
        return Closer(self._exact._kernel("leg_trial"), np.ones(self.carriage.nq + self.nq), np.ones(self.nv))

    def _refuse(self, x: Array, q: Array, size: Array, guessed: bool) -> None:
        """Raise the error that names a leg which does not reach, and says how far off it is at best."""
        index = np.unravel_index(int(np.argmax(~(size <= CLOSED))), size.shape) if size.shape else ()
        pose, own = np.broadcast_to(x, (*size.shape, x.shape[-1]))[index], q[index]
        if not np.isfinite(pose).all() or not np.isfinite(own).all():
            raise ModelError(describe(f"pose is {pose.tolist()}", where=self.name, allowed="a pose"))
        found = []
        for limb in self._parts.limbs:
            look = Look(limb._replace(rows=tuple(range(limb.loop.count))), self._parts.platform, pose)
            found.append(look.space.closest(own[limb.q])[1])
        worst = int(np.argmax(found))
        if found[worst] <= 1e-6:
            text = f"the legs were not put together {'from the guess' if guessed else 'on the way from home'}"
            raise ModelError(describe(text, where=self.name, fix="give another guess"))
        text = f"leg {self.legs[worst].name!r} does not reach the platform: it is open by {found[worst]:.2g} at best"
        at = f"pose {np.round(pose, 6).tolist()}"
        raise ModelError(describe(text, where=f"{self.name}, {at}", fix="ask for a pose within reach"))

    def forward_kinematics(self, q_driven: ArrayLike, guess: ArrayLike | None = None) -> Array:
        """Return the pose (..., 7) of the platform, or what its motion has, from the driven coordinates (..., N).

        Of several it is the one near ``guess``, a pose (..., 7), by default home: from there the drives are led to
        where they are wanted in steps, each closed by damped Newton, all of a batch at once.

        Example:
            >>> import torsor
            >>> robot = torsor.library.gough_stewart()
            >>> lengths = robot.inverse_kinematics(robot.home)[2::3]
            >>> bool(np.allclose(robot.forward_kinematics(lengths + 0.1)[:2], 0.0))  # all alike: straight up
            True
        """
        wanted = np.asarray(q_driven, dtype=float)
        count, n = len(self._driven), self.carriage.nq
        if wanted.ndim == 0 or wanted.shape[-1] != count or not np.isfinite(wanted).all():
            found = f"q_driven has shape {wanted.shape}, or is not finite"
            raise ModelError(
                describe(found, where=self.name, allowed=f"(..., {count}): {', '.join(self.driven_names)}")
            )
        x = self.home if guess is None else self._coordinates(guess, "guess")
        q = self.inverse_kinematics(x)
        batch = np.broadcast_shapes(wanted.shape[:-1], x.shape[:-1])
        begin = np.concatenate([x, q, q[..., self._driven]], axis=-1)
        begin = np.broadcast_to(begin, (*batch, begin.shape[-1])).reshape(-1, begin.shape[-1])
        flat = np.broadcast_to(wanted, (*batch, count)).reshape(-1, count)
        way = np.zeros((len(begin), self.dof + self.nv + count))
        way[:, -count:] = flat - begin[:, -count:]
        begin = np.ascontiguousarray(begin)
        state, well = self._assembler.walk(begin, self._assembler.side(begin), way)
        if not well.all():
            k = int(np.argmin(well))
            text = (
                f"no pose with the driven coordinates {flat[k].round(6).tolist()} was found on the way from the guess"
            )
            fix = "ask for what can be reached, or give a guess nearer to it"
            raise ModelError(describe(text, where=self.name, fix=fix))
        return state[:, :n].reshape(*batch, n)

    @cached_property
    def _assembler(self) -> Closer:
        """How legs and platform are closed with the drives held: (pose, positions of the legs, drives)."""
        count = len(self._driven)
        units = np.ones(self.carriage.nq + self.nq + count), np.ones(self.dof + self.nv + count)
        return Closer(self._exact._kernel("assembly_trial"), *units)
