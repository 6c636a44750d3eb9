"""How loops close, as methods of a robot: what they are open by, how they are put together, what moves them."""

from collections.abc import Collection
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics.constrained import Closing
from torsor.errors import ModelError, describe
from torsor.loops.assembly import Closer, nearest
from torsor.loops.mobility import RANK, Mobility, analyse, choose, quality
from torsor.parameters import Parametrised

__all__ = ["Closed"]

Array = NDArray[np.float64]

CLOSED = 1e-11  # what an assembled mechanism may be open by
OPEN = 1e-6  # what a caller's may
TRIALS, ENOUGH = 40, 4  # random places that are tried, and that are enough once one was closed


class Closed(Parametrised):
    """A robot whose loops, if it has any, can be closed."""

    def closure_error(self, q: ArrayLike) -> Array:
        """Return what the loops are open by (..., c): lengths in m, sines of angles, coordinates of couplings.

        One entry for each equation: a hinge has five, of which others may say nothing new.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closure_error([0.4, 0.1]).round(9).tolist()
            [0.2]
        """
        return self._call("closure_error", q)

    def closure_jacobian(self, q: ArrayLike) -> Array:
        """Return A (..., c, nv): the rate of ``closure_error`` is A v.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closure_jacobian([0.4, 0.1]).tolist()
            [[1.0, -2.0]]
        """
        return self._call("closure_jacobian", q)

    def _moved(self, q: ArrayLike, step: ArrayLike) -> Array:
        return self._call("integrate", q, step)

    @cached_property
    def _active(self) -> list[int]:
        if not self.active:
            fix = "name the driven coordinates: robot.with_active([...])"
            raise ModelError(describe("no coordinate is active", where=self.name, fix=fix))
        return [self.coordinate_names.index(name) for name in self.active]

    @cached_property
    def _reference(self) -> Array:
        """A configuration (nq,) with closed loops, of several the farthest from singular: found once."""
        rng, active = np.random.default_rng(0), self._active if self.active else []
        best: tuple[tuple[float, ...], Array] | None = None
        for trial in range(TRIALS):
            q = self._moved(self.neutral(), min(trial, 10) / 10 * rng.normal(size=self.nv))
            q, size = nearest(self.closure_error, self.closure_jacobian, self._moved, q)
            if size <= CLOSED:
                score = quality(self.closure_jacobian(q), active)
                best = (score, q) if best is None or score > best[0] else best
                if trial >= ENOUGH:
                    break
        if best is None:
            found = "no configuration that closes the loops was found"
            raise ModelError(describe(found, where=self.name, fix="check the frames that the loops join"))
        return best[1]

    @cached_property
    def _closing(self) -> Closing:
        """Equations and coordinates that the dynamics is solved with, chosen where the mechanism is not singular."""
        closing = choose(self.closure_jacobian(self._reference), self._active)
        self._refuse_loose(closing, range(self.nv))
        return closing

    @cached_property
    def _assembling(self) -> Closing:
        """The same for putting it together, where what no loop sees, such as a base that is free, stays where it is."""
        A = self.closure_jacobian(self._reference)
        closing = choose(A, self._active)
        self._refuse_loose(closing, np.flatnonzero(np.abs(A).max(axis=0, initial=0.0) > RANK))
        return closing

    def _refuse_loose(self, closing: Closing, seen: Collection[int]) -> None:
        """Raise an error if some of the coordinates are neither driven nor moved by what is."""
        loose = [self.coordinate_names[k] for k in closing.independent if k not in self._active and k in seen]
        if loose:
            found = f"the {len(self._active)} active coordinates do not move all: {len(closing.independent)} are needed"
            fix = f"make {', '.join(map(repr, loose))} active as well, or others that move with them"
            raise ModelError(describe(found, where=self.name, fix=fix))

    def mobility(self, q: ArrayLike | None = None) -> Mobility:
        """Return what can move at the positions q (nq,), which close the loops; by default, in general.

        Degrees of freedom, redundant equations of closure, motions that are left when the active coordinates are held,
        and directions of these that are blocked; see ``Mobility``.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.mobility().dof
            1
        """
        at = self._reference if q is None else _numbers(q, self.nq, self.name, "q")
        if at.ndim != 1:
            raise ModelError(describe(f"q has shape {at.shape}", where=self.name, allowed=f"({self.nq},), one state"))
        self._check_closed(at)
        active = self._active if self.active else []
        return analyse(self.closure_jacobian(at), active)

    def _check_closed(self, q: ArrayLike) -> None:
        size = float(np.abs(self.closure_error(q)).max(initial=0.0))
        if not size <= OPEN:
            fix = "q = robot.assemble(q_active, guess=q)"
            raise ModelError(
                describe(f"the loops are open by {size:.2g}", where=self.name, allowed=f"{OPEN:g}", fix=fix)
            )

    def assemble(self, q_active: ArrayLike, guess: ArrayLike | None = None) -> Array:
        """Return positions (..., nq) that close the loops, with the active coordinates (..., N) as given.

        Of several ways to put the mechanism together it is the one near ``guess`` (..., nq), by default one that was
        found by itself. From there the active coordinates are led to where they are wanted, in steps, each closed by
        damped Newton, all of a batch at once. What cannot be reached is an error that says how far one comes.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.with_active(["joint1"]).assemble([0.4]).round(9).tolist()
            [0.4, 0.2]
        """
        places = [self.position_names.index(name) for name in self.active]
        wanted = _numbers(q_active, len(self._active), self.name, "q_active")
        start = self._reference if guess is None else _numbers(guess, self.nq, self.name, "guess")
        shape, closer = start.shape, self._closer
        start = closer.close(start.reshape(-1, self.nq))[0].reshape(shape)
        batch = np.broadcast_shapes(wanted.shape[:-1], shape[:-1])
        begin = np.broadcast_to(start, (*batch, self.nq)).reshape(-1, self.nq)
        flat = np.broadcast_to(wanted, (*batch, len(places))).reshape(-1, len(places))
        found, size = closer.walk(begin, places, flat)
        for k in np.flatnonzero(size > CLOSED):
            found[k] = self._led(begin[k], places, flat[k])
        wrong = np.abs(found[:, places] - flat).max(initial=0.0)
        if not wrong <= 1e-9:  # more are active than are needed, and they do not agree
            raise ModelError(describe(f"active coordinates disagree by {wrong:.2g}", where=self.name, allowed="1e-9"))
        return found.reshape(*batch, self.nq)

    @cached_property
    def _closer(self) -> Closer:
        step = self._kernel(self._request("closure_step", closing=self._assembling))
        return Closer(self.closure_error, step, self._moved)

    def _led(self, guess: Array, places: list[int], wanted: Array) -> Array:
        """Return one configuration, led to the wanted active coordinates from near the guess; or refuse."""
        closed, size = nearest(self.closure_error, self.closure_jacobian, self._moved, guess)
        if size > CLOSED:
            closed = self._reference
        q, share = self._closer.lead(closed, places, wanted)
        if share < 1:
            reached = ", ".join(f"{name} = {value:.6g}" for name, value in zip(self.active, q[places], strict=True))
            trial = q.copy()
            trial[places] = wanted
            left = float(self._closer.close(trial[None])[1][0])
            found = f"no closed configuration with the active coordinates {wanted.round(6).tolist()} was reached"
            raise ModelError(
                describe(
                    f"{found}: {share:.0%} of the way, and open by {left:.2g} there",
                    where=self.name,
                    allowed=f"as far as {reached}",
                    fix="ask for what can be reached, or give another guess",
                )
            )
        return q


def _numbers(values: ArrayLike, count: int, where: str, what: str) -> Array:
    array = np.asarray(values, dtype=float)
    if array.ndim == 0 or array.shape[-1] != count:
        raise ModelError(describe(f"{what} has shape {array.shape}", where=where, allowed=f"(..., {count})"))
    if not np.isfinite(array).all():
        raise ModelError(describe(f"{what} is not finite", where=where, allowed="numbers"))
    return array
