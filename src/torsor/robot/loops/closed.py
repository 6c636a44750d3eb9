"""How loops close, as methods of a robot: what they are open by, how they are put together, what moves them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics import Tree
from torsor.dynamics.loops.characteristic_scales import units
from torsor.dynamics.loops.constrained import Closing
from torsor.errors import ModelError, describe
from torsor.mechanism import Loop
from torsor.robot.loops.assembly import CLOSED, Space
from torsor.robot.loops.mobility import RANK, Mobility, analyse, choose, null_space, quality, valid_sets
from torsor.robot.parameters import Parametrised

__all__ = ["Closed", "numbers"]

Array = NDArray[np.float64]

OPEN = 1e-6  # what a caller's mechanism may be open by, of its size
REGULAR = 1e-5  # how near to singular it may be: nearer, forces are mostly rounding
BENT = 1e-3  # and what it may be open by there, of that squared: forces would be wrong by as much
FAIR = 0.2  # of the best of several, what is good enough
TRIALS, ENOUGH = 40, 4  # random places that are tried, and that are enough once one was closed


class Closed(Parametrised):
    """A robot whose loops, if it has any, can be closed."""

    def closure_error(self, q: ArrayLike) -> Array:
        """Return what the loops are open by (..., c): lengths in m, angles as 2 sin(angle/2), coordinates of couplings.

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

    @cached_property
    def _exact(self) -> Self:
        """The same robot in double precision: loops are closed to less than single precision can say."""
        return self if self.target.dtype == "float64" else self.to(dtype="float64")

    # What lengths and coordinates are measured by

    @cached_property
    def _length(self) -> float:
        """The size of the mechanism (m): the longest way from a joint to the next, or of a loop's frame or rod."""
        ends = [self.place(end).pose for loop in self.loops if isinstance(loop, Loop) for end in (loop.a, loop.b)]
        poses = [*(joint.placement for joint in self.joints), *ends]
        rods = [loop.length for loop in self.loops if isinstance(loop, Loop)]
        size = max([*rods, *(float(np.linalg.norm(pose[:3, 3])) for pose in poses)], default=0.0)
        return size if size > 0 else 1.0

    @cached_property
    def _units(self) -> tuple[Array, Array, Array]:
        """What the equations (c), the positions (nq) and the velocities (nv) are measured by."""
        rows = [unit for loop in self.loops for unit in loop.units(self._length)]
        return np.array(rows), *units(Tree.of(self), self._length)

    def _measured_error(self, q: Array) -> Array:
        return np.asarray(self._exact.closure_error(q) / self._units[0])

    def _measured_jacobian(self, q: Array) -> Array:
        rows, _, columns = self._units
        return np.asarray(self._exact.closure_jacobian(q) / rows[:, None] * columns)

    @cached_property
    def _space(self) -> Space:
        def moved(q: Array, dv: Array) -> Array:
            return self._exact._call("integrate", q, dv)

        return Space(self._measured_error, self._measured_jacobian, moved, self._units[2])

    # What moves it

    @cached_property
    def _active(self) -> list[int]:
        if not self.active:
            fix = "name the driven coordinates: robot.with_active([...])"
            raise ModelError(describe("no coordinate is active", where=self.name, fix=fix))
        return [self.coordinate_names.index(name) for name in self.active]

    @cached_property
    def _active_positions(self) -> list[int]:
        """Where the positions of the active coordinates lie in q; of a joint that turns freely, all or none."""
        found = list[int]()
        for k in self._active:
            at = next((at for at in self.coordinates if at.v.start <= k < at.v.stop), None)
            if at is None:  # the motor of an elastic joint
                found.append(self.position_names.index(self.coordinate_names[k]))
            elif at.q.stop - at.q.start == at.v.stop - at.v.start:
                found.append(at.q.start + k - at.v.start)
            elif at.q.start not in found:
                names = self.coordinate_names[at.v]
                missing = [name for name in names if name not in self.active]
                if missing:
                    allowed = "all velocities of a joint whose positions hold a quaternion, or none"
                    found_ = f"{', '.join(missing)} not active"
                    raise ModelError(describe(found_, where=self.name, allowed=allowed))
                found.extend(range(at.q.start, at.q.stop))
        return found

    @cached_property
    def _reference(self) -> Array:
        """A configuration (nq,) with closed loops: the nearest to neutral that is far from singular; found once.

        From each that closes, its own motions lead to others: where bars are in one line, all ways back may end there.
        """
        rng, active, found = np.random.default_rng(0), self._active if self.active else [], list[Array]()
        for trial in range(TRIALS):
            step = min(trial, 10) / 10 * rng.normal(size=self.nv) * self._units[2]
            q, left = self._space.closest(self._space.integrate(self.neutral(), step))
            if left <= CLOSED:
                found.append(q)
                motions = null_space(self._measured_jacobian(q))
                along = rng.normal(size=len(motions)) @ motions * self._units[2]
                q, left = self._space.closest(self._space.integrate(q, 0.5 * along))
                found += [q] if left <= CLOSED else []
                if trial >= ENOUGH:
                    break
        if not found:
            text = "no configuration that closes the loops was found"
            fix = "check the frames that the loops join: their z axes must point the same way"
            raise ModelError(describe(text, where=self.name, fix=fix))
        scores = [quality(self._measured_jacobian(q), active) for q in found]
        best = max(scores)
        return next(q for q, score in zip(found, scores, strict=True) if score >= (*best[:-1], FAIR * best[-1]))

    @cached_property
    def _closing(self) -> Closing:
        """Equations and coordinates that the dynamics is solved with, chosen where the mechanism is not singular."""
        closing = choose(self._measured_jacobian(self._reference), self._active)
        self._refuse_loose(closing, range(self.nv))
        return self._with_units(closing)

    @cached_property
    def _assembling(self) -> Closing:
        """The same for putting it together, where what no loop sees, such as a base that is free, stays where it is."""
        A = self._measured_jacobian(self._reference)
        closing = choose(A, self._active)
        self._refuse_loose(closing, np.flatnonzero(np.abs(A).max(axis=0, initial=0.0) > RANK))
        return self._with_units(closing)

    def _with_units(self, closing: Closing) -> Closing:
        return closing._replace(units=tuple(self._units[0].tolist()), length=self._length)

    def _refuse_loose(self, closing: Closing, seen: Collection[int]) -> None:
        """Raise an error if some of the coordinates are neither driven nor moved by what is."""
        loose = [self.coordinate_names[k] for k in closing.independent if k not in self._active and k in seen]
        if loose:
            found = f"the {len(self._active)} active coordinates do not move all: {len(closing.independent)} are needed"
            fix = f"make {', '.join(map(repr, loose))} active as well, or others that move with them"
            raise ModelError(describe(found, where=self.name, fix=fix))

    def _one_closed(self, q: ArrayLike | None) -> Array:
        """Return one state whose loops are closed, by default one that was found."""
        at = self._reference if q is None else numbers(q, self.nq, self.name, "q")
        if at.ndim != 1:
            raise ModelError(describe(f"q has shape {at.shape}", where=self.name, allowed=f"({self.nq},), one state"))
        self._check_open(at)
        return at

    def mobility(self, q: ArrayLike | None = None, output: str | int | None = None, point: bool = False) -> Mobility:
        """Return what can move at the positions q (nq,), which close the loops; by default, in general.

        Degrees of freedom, redundant equations of closure, motions that are left when the active coordinates are held,
        and directions of these that are blocked; see ``Mobility``. With the name of an ``output``, a link or frame,
        also singularities of the first kind (drives move and the output does not) and of the second (it moves while
        they are held), with their directions; those of the output are of its velocity (omega, v) in its own axes, or,
        with ``point``, of its origin's alone.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> robot.mobility().dof
            1
        """
        at = self._one_closed(q)
        J = None
        if output is not None:
            J = self._exact._call("jacobian", at, place=output) * self._units[2]
            J = J[3:] / self._length if point else J / np.repeat([1.0, self._length], 3)[:, None]
        found = analyse(self._measured_jacobian(at), self._active if self.active else [], self._units[2], J)
        if found.output is None:
            return found
        units = np.full(3, self._length) if point else np.repeat([1.0, self._length], 3)
        return replace(found, output=replace(found.output, loose=found.output.loose * units))

    def active_sets(
        self, q: ArrayLike | None = None, candidates: Sequence[str] | None = None, most: int = 20
    ) -> list[tuple[tuple[str, ...], float]]:
        """Return which coordinates can drive the mechanism at the positions q (nq,), as few as do, the best first.

        Each with its ``control``: 1 where it sees all motions fully, 0 (and left out) where it is singular.
        ``candidates`` are coordinates that a drive may have, by default all.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
            >>> [(names, round(control, 3)) for names, control in robot.active_sets()]
            [(('joint1',), 0.894), (('joint2',), 0.447)]
        """
        at, names = self._one_closed(q), self.coordinate_names
        wrong = [name for name in candidates or () if name not in names]
        if wrong:
            raise ModelError(describe(f"no coordinate {wrong[0]!r}", where=self.name, allowed=", ".join(names[:12])))
        allowed = [k for k, name in enumerate(names) if candidates is None or name in candidates]
        found = valid_sets(self._measured_jacobian(at), allowed, most)
        return [(tuple(names[k] for k in each), control) for each, control in found]

    # Whether it is closed

    def _check_open(self, q: ArrayLike) -> None:
        """Refuse open loops."""
        self._refuse_open(float(np.linalg.norm(self._measured_error(np.asarray(q)), axis=-1).max(initial=0.0)))

    def _refuse_open(self, size: float) -> None:
        if not size <= OPEN:
            raise ModelError(
                describe(
                    f"the loops are open by {size:.2g} of its size",
                    where=self.name,
                    allowed=f"{OPEN:g}",
                    fix="q = robot.assemble(q_active, guess=q)",
                )
            )

    def _check_closed(self, q: ArrayLike) -> None:
        """Refuse open loops, and configurations where the active coordinates do not say what the others do."""
        state = self._exact._call("closure_state", q)
        self._refuse_open(float(state[..., 0].max(initial=0.0)))
        regular = (state[..., 1] > REGULAR) & (state[..., 0] <= BENT * state[..., 1] ** 2)
        if not (regular & (state[..., 2] < RANK)).all():
            flat = np.broadcast_to(np.asarray(q, dtype=float), (*state.shape[:-1], self.nq)).reshape(-1, self.nq)
            worst = flat[int(np.argmin((regular & (state[..., 2] < RANK)).ravel()))]
            loose = analyse(self._measured_jacobian(worst), self._active, self._units[2]).uncontrolled
            moving = loose[0] if len(loose) else np.zeros(0)
            names = [f"{n} ({x:.3g})" for n, x in zip(self.coordinate_names, moving, strict=False) if abs(x) > RANK]
            held = f"while the active coordinates are held, {', '.join(names)} can move"
            if not names:
                held = "equations that are spare elsewhere hold it there, see robot.mobility(q)"
            raise ModelError(
                describe(
                    f"singular at q = {worst.round(6).tolist()}: {held}",
                    where=self.name,
                    fix="drive other coordinates there: robot.active_sets(q)",
                )
            )


def numbers(values: ArrayLike, count: int, where: str, what: str) -> Array:
    """Return finite numbers (..., count), or refuse them."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(describe(f"{what} is no array of numbers", where=where, allowed=f"(..., {count})")) from None
    if array.ndim == 0 or array.shape[-1] != count:
        raise ModelError(describe(f"{what} has shape {array.shape}", where=where, allowed=f"(..., {count})"))
    if not np.isfinite(array).all():
        raise ModelError(describe(f"{what} is not finite", where=where, allowed="numbers"))
    return array
