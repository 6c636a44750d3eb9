"""Putting a mechanism with loops together, as methods of a robot."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.robot.loops.assembly import CLOSED, NEAREST, STRIDE, STRIDES, AssemblyError, Closer
from torsor.robot.loops.closed import Closed, numbers

__all__ = ["Assembled"]

Array = NDArray[np.float64]

TRIALS = 10  # places beside those given that closing begins at
AGREED = 1e-9  # what active coordinates may disagree by, where they are more than are needed


class Assembled(Closed):
    """A robot whose loops are closed by finding the positions of its passive joints."""

    @cached_property
    def _closer(self) -> Closer:
        return Closer(self._exact._kernel(self._request("closure_trial", closing=self._assembling)), *self._units[1:])

    def assemble(self, q_active: ArrayLike, guess: ArrayLike | None = None, missing: str = "raise") -> Array:
        """Return positions (..., nq) that close the loops, with the active coordinates (..., N) as given.

        Of several ways to put the mechanism together it is the one near ``guess`` (..., nq), by default one that was
        found by itself. From there the active coordinates are led to where they are wanted, in strides, each closed by
        damped Newton, all of a batch at once. What cannot be reached is an ``AssemblyError`` with the closest
        coordinates that can, and with the least that the loops stay open by; or, with ``missing="nan"``, NaN.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.with_active(["joint1"]).assemble([0.4]).round(9).tolist()
            [0.4, 0.2]
        """
        if missing not in ("raise", "nan"):
            raise ModelError(describe(f"missing is {missing!r}", where=self.name, allowed="'raise', 'nan'"))
        if not self.active and not np.size(q_active):
            return self.closed_positions(self.neutral() if guess is None else guess)
        places = self._active_positions
        wanted = numbers(q_active, len(places), self.name, "q_active")
        start = self._reference if guess is None else self._near(numbers(guess, self.nq, self.name, "guess"))
        batch = np.broadcast_shapes(wanted.shape[:-1], start.shape[:-1])
        begin = np.ascontiguousarray(np.broadcast_to(start, (*batch, self.nq)).reshape(-1, self.nq))
        goal = begin.copy()
        goal[:, places] = np.broadcast_to(wanted, (*batch, len(places))).reshape(-1, len(places))
        way = self._exact._call("difference", begin, goal)
        self._check_way(way)
        side = np.broadcast_to(self._closer.side(start.reshape(-1, self.nq)).reshape(start.shape[:-1]), batch).ravel()
        found, well = self._closer.walk(begin, side, way)
        for k in np.flatnonzero(np.logical_not(well)):
            found[k] = np.nan if missing == "nan" else self._reached(begin[k], goal[k])
        if len(self._active) > len(set(self._active) & set(self._assembling.independent)):
            self._check_agreement(found, goal, missing)
        return found.reshape(*batch, self.nq)

    def _check_agreement(self, found: Array, goal: Array, missing: str) -> None:
        """Refuse active coordinates that do not agree, where more are active than are needed; or make them NaN."""
        apart = np.abs(self._exact._call("difference", found, goal) / self._units[2])[:, self._active]
        wrong = apart.max(axis=-1, initial=0.0) > AGREED
        if missing == "nan":
            found[wrong] = np.nan
        elif wrong.any():
            given, free = len(self._active), len(self._assembling.independent)
            text = f"active coordinates disagree by {apart.max():.2g}: {given} are given, and {free} move it"
            fix = "give values that agree, or look at robot.mobility() for loops that hold more than they should"
            raise ModelError(describe(text, where=self.name, allowed=f"{AGREED:g}", fix=fix))

    def _check_way(self, way: Array) -> None:
        """Refuse what is no place, and what is so far away that nobody can mean it."""
        far = float((np.abs(way).max(axis=0, initial=0.0) / self._units[2]).max(initial=0.0))
        if not np.isfinite(far):
            raise ModelError(describe("a quaternion is zero", where=self.name, allowed="rotations"))
        if far > STRIDES * STRIDE:
            text = f"q_active is {far:.3g} rad or sizes away from the guess"
            fix = "give a guess nearer to it, or take whole turns off"
            raise ModelError(describe(text, where=self.name, allowed=f"{STRIDES * STRIDE:g}", fix=fix))

    def closed_positions(self, q: ArrayLike) -> Array:
        """Return the positions (..., nq) with closed loops that are near ``q`` (..., nq), by the least steps of all.

        No coordinate need be active, and none stays as it is: see ``assemble`` for that.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.closed_positions([0.5, 0.0]).round(9).tolist()
            [0.4, 0.2]
        """
        at = numbers(q, self.nq, self.name, "q")
        found = np.empty_like(at)
        for index in np.ndindex(at.shape[:-1]):
            rng = np.random.default_rng(0)
            for trial in range(TRIALS):  # where bars are in one line no step helps, but beside it one does
                beside = 0.1 * trial * rng.normal(size=self.nv) * self._units[2]
                found[index], left = self._space.closest(self._space.integrate(at[index], beside))
                if left <= CLOSED:
                    break
            else:
                text = f"no closed positions were found near {at[index].round(6).tolist()}: open by {left:.2g}"
                fix = "begin elsewhere, and see that z axes of loops' frames point the same way"
                raise ModelError(describe(text, where=self.name, fix=fix))
        return found

    def _near(self, guess: Array) -> Array:
        """Return closed configurations near the guesses (..., nq); their active coordinates stay, where they can."""
        flat = guess.reshape(-1, self.nq)
        found, left, _ = self._closer.close(flat, np.zeros((len(flat), self.nv)))
        for k in np.flatnonzero(~(left <= CLOSED)):
            found[k], size = self._space.closest(flat[k])
            found[k] = found[k] if size <= CLOSED else self._reference
        return found.reshape(guess.shape)

    def _reached(self, begin: Array, goal: Array) -> Array:
        """Return the closed configuration with the active coordinates of the goal; or say which are nearest."""
        places, space = self._active_positions, self._space

        def missing(at: Array) -> Array:
            return np.asarray(self._exact._call("difference", at, goal) / self._units[2])[self._active]

        q, distance = space.approach(begin, missing, self._active)
        trial = q.copy()
        trial[places] = goal[places]
        trial, left = space.closest(trial, [k for k in range(self.nv) if k not in self._active])
        names = [self.position_names[k] for k in places]
        wanted = f"the active coordinates {goal[places].round(6).tolist()}"
        if distance < 1e-6 and left <= CLOSED:
            here, there = self._closer.side(np.stack([begin, trial]))
            if here * there > 0 and min(abs(here), abs(there)) > NEAREST:  # nearer, rounding decides the sign
                return trial
            place = "there" if abs(there) <= NEAREST else "on the way there"
            place = "at the guess" if abs(here) <= NEAREST else place
            raise AssemblyError(
                describe(
                    f"with {wanted} the mechanism is singular {place}: ways to put it together meet",
                    where=self.name,
                    fix="give a guess of the way that is meant, beyond the singular place",
                ),
                trial,
                trial[places],
                0.0,
            )
        error = float(np.abs(self._exact.closure_error(trial)).max())
        reached = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, q[places], strict=True))
        message = describe(
            f"no closed configuration with {wanted} was reached: the loops stay open by {error:.3g}",
            where=self.name,
            allowed=f"the closest that can be reached: {reached}",
            fix="ask for what can be reached, or give another guess",
        )
        raise AssemblyError(message, q, q[places], error)
