"""Loop closure: scales, a reference configuration, and independent closure equations.

Closure errors and coordinates are divided by characteristic scales (the size of the mechanism, or 1 rad), so
tolerances do not depend on units. ``ClosureChoice`` lists the independent closure equations and the coordinates that
they determine. It is computed once, numerically, and all closed-loop algorithms are traced with it.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array, Flags, Maybe
from torsor.base.checks import vectors
from torsor.base.errors import ModelError, listing, warn
from torsor.dynamics import Algorithm, Tree
from torsor.dynamics.loops.closure import characteristic_scales
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.mechanism import Coupling, Loop, Wheel, ends_of
from torsor.mechanism.free import OWN, Numbers
from torsor.robot.closed_loops.mobility import RANK, choose, null_space, quality
from torsor.robot.closed_loops.rounding import couplings_left_out, rows_left_out
from torsor.robot.closed_loops.search import CLOSURE_TOLERANCE, Closer, Space, one_thread
from torsor.robot.kernels import RobotKernels

MAX_CLOSURE_ERROR = 1e-6  # largest closure error allowed in a caller's positions, relative to the size of the mechanism
FAIR_SCORE = 0.2  # fraction of the best score at which a configuration is good enough
TRIALS, MIN_TRIALS = 40, 4  # maximum number of random configurations, and minimum before a closed one is accepted
MIN_SCALE = 1e-4  # minimum scale of a closure equation, relative to the largest
MASSLESS_RATIO = 1e-14  # eigenvalues of the mass matrix below this fraction of the largest are rounding errors


class LoopClosure:
    """The loops of one mechanism, with cached results."""

    def __init__(self, kernels: RobotKernels):
        self.kernels, self.mechanism, self.name = kernels, kernels.mechanism, kernels.mechanism.name

    @property
    def axes(self) -> str:
        """Text for messages about how the axes of the loop frames must be aligned, or ""."""
        kinds = {loop.kind for loop in self.mechanism.loops if isinstance(loop, Loop)}
        texts = [": all axes of a weld or prismatic joint must agree"] * bool(kinds & {"weld", "prismatic"})
        hinges = kinds & {"revolute", "cylindrical", "planar"}
        texts += [f": the z axes of a {sorted(hinges)[-1]} joint must have the same direction"] if hinges else []
        texts += [": the z axes of a universal joint must be perpendicular"] if "universal" in kinds else []
        wheels = any(isinstance(loop, Wheel) for loop in self.mechanism.loops)
        texts += [": every wheel must touch its ground"] if wheels else []
        return "".join(texts)

    @cached_property
    def length(self) -> float:
        """Size of the mechanism (m): the largest distance between joints or loop frames, rod length or radius."""
        mechanism, on_base = self.mechanism, list[Array]()
        cuts = [loop for loop in mechanism.loops if not isinstance(loop, Coupling)]
        ends = [mechanism.place(end) for loop in cuts for end in ends_of(mechanism, loop)]
        placements = [joint.placement for joint in mechanism.joints]
        places = [*((place.link, place.pose) for place in ends), *zip(mechanism.parents, placements, strict=True)]
        sizes = [loop.radius if isinstance(loop, Wheel) else loop.length for loop in cuts]
        for link, pose in places:
            if link < 0:
                on_base.append(pose[:3, 3])
            else:
                sizes.append(float(np.linalg.norm(pose[:3, 3])))
        sizes += [float(np.linalg.norm(np.array(on_base) - item, axis=1).max()) for item in on_base]
        return max(sizes, default=0.0) or 1.0

    @cached_property
    def _all_scales(self) -> tuple[Array, Array, Array]:
        """Scales of all closure equations (c,), the positions (nq,) and the velocities (nv,)."""
        rows = [unit for loop in self.mechanism.loops for unit in loop.units(self.length)]
        return np.array(rows), *characteristic_scales(Tree.of(self.mechanism), self.length)

    @cached_property
    def velocity_rows(self) -> Flags:
        """Mask (c,) of the closure equations that are velocity equations, from rolling wheels."""
        return np.array([k >= loop.positions for loop in self.mechanism.loops for k in range(loop.count)], dtype=bool)

    @cached_property
    def scales(self) -> tuple[Array, Array, Array]:
        """Scales of the equations, q and v; infinite for equations omitted as redundant up to rounding."""
        return self._scales_without(self._left_out)

    def _scales_without(self, out: Sequence[int]) -> tuple[Array, Array, Array]:
        rows, positions, velocities = self._all_scales
        rows = rows.copy()
        rows[list(out)] = np.inf
        return rows, positions, velocities

    @cached_property
    def _left_out(self) -> tuple[int, ...]:
        """Equations that are redundant up to rounding, detected once; a warning names their loops."""
        mechanism, count = self.mechanism, len(self._all_scales[0])
        repeated = couplings_left_out(mechanism.loops, self.name)
        start, units = mechanism.neutral(), self._all_scales[2]
        out, apart = rows_left_out(lambda rows: self._space([*repeated, *rows]), count, start, units)
        if out:
            owners = [loop.name for loop in mechanism.loops for _ in range(loop.count)]
            loops = ", ".join(repr(name) for name in dict.fromkeys(owners[k] for k in out))
            message = f"{len(out)} of {count} closure equations of {loops} are redundant up to rounding and were "
            message += f"dropped: they contradict the others by {apart:.2g} of the mechanism's size"
            warn(message, where=self.name, fix="use one joint instead of several, or give more digits")
        return (*repeated, *out)

    def _space(self, out: Sequence[int]) -> Space:
        """Return the configuration space without the equations ``out``; rows of velocity equations are 0."""
        call, (rows, _, columns) = self.kernels.exact.call, self._scales_without(out)
        of_positions = np.where(self.velocity_rows, np.inf, rows)[:, None]
        return Space(
            lambda q: np.asarray(call("closure_error", q) / rows),
            lambda q: np.asarray(call("closure_jacobian", q) / of_positions * columns),
            lambda q, dv: np.asarray(call("integrate", q, dv)),
            columns,
        )

    @cached_property
    def space(self) -> Space:
        """The configuration space, for searches of one state at a time."""
        return self._space(self._left_out)

    def scaled_jacobian(self, q: ArrayLike, numbers: Numbers = OWN) -> Array:
        """Return the closure Jacobian (..., c, nv), with rows and columns divided by their scales."""
        rows, _, columns = self.scales
        return np.asarray(self.exact("closure_jacobian", q, numbers) / rows[:, None] * columns)

    @cached_property
    def closer(self) -> Closer:
        """Newton solver that closes the loops of a batch for given active coordinates."""
        exact = self.kernels.exact
        return Closer(exact.compiled(exact.request("closure_trial", choice=self.assembly_choice)), *self.scales[1:])

    def exact(self, name: str, q: ArrayLike, numbers: Numbers = OWN, *rates: ArrayLike) -> Array:
        """Evaluate a loop algorithm at q (..., nq) and ``rates`` in float64, with the given ``numbers``."""
        exact, of_loops = self.kernels.exact, numbers if numbers.move_loops else OWN
        if not of_loops.free:
            return exact.call(name, q, *rates)
        return np.asarray(exact.compiled(exact.request(name, free=of_loops.free))(q, *rates, of_loops.p))

    @cached_property
    def active(self) -> list[int]:
        """Indices of the active coordinates in v; raise ModelError if none is active."""
        if not self.mechanism.active:
            fix = "name the driven coordinates: robot.with_active([...])"
            raise ModelError("no coordinate is active", where=self.name, fix=fix)
        return [self.mechanism.coordinate_names.index(name) for name in self.mechanism.active]

    @cached_property
    def active_positions(self) -> list[int]:
        """Indices of the active coordinates in q; of a joint with a quaternion, all or none must be active."""
        mechanism, result = self.mechanism, list[int]()
        names = mechanism.coordinate_names
        for k in self.active:
            at = next((at for at in mechanism.coordinates if at.v.start <= k < at.v.stop), None)
            if at is None:  # the motor of an elastic joint
                result.append(mechanism.position_names.index(names[k]))
            elif at.q.stop - at.q.start == at.v.stop - at.v.start:
                result.append(at.q.start + k - at.v.start)
            elif at.q.start not in result:
                missing = [name for name in names[at.v] if name not in mechanism.active]
                if missing:
                    allowed = "all velocities of a joint with a quaternion, or none of them"
                    raise ModelError(f"{', '.join(missing)} not active", where=self.name, allowed=allowed)
                result.extend(range(at.q.start, at.q.stop))
        return result

    @cached_property
    def reference(self) -> Array:
        """A configuration (nq,) with closed loops, near neutral and far from singularities, computed once."""
        with one_thread():
            return self._regular()

    def _regular(self) -> Array:
        rng, result, nearest = np.random.default_rng(0), list[Array](), (np.inf, self.mechanism.neutral())
        active = self.active if self.mechanism.active else []
        neutral, step = self.mechanism.neutral(), self.scales[2]
        for trial in range(TRIALS):
            away = min(trial, 10) / 10 * rng.normal(size=self.mechanism.nv) * step
            q, error = self.space.closest(self.space.integrate(neutral, away))
            nearest = min(nearest, (error, q), key=lambda item: item[0])
            if error <= CLOSURE_TOLERANCE:
                result.append(q)  # also along its motions: if bars are aligned, every projection may fail
                motions = null_space(self.space.jacobian(q))
                along = rng.normal(size=len(motions)) @ motions * step
                q, error = self.space.closest(self.space.integrate(q, 0.5 * along))
                result += [q] if error <= CLOSURE_TOLERANCE else []
                if trial >= MIN_TRIALS:
                    break
        if not result:
            why = self.off_ground(self.exact("closure_error", neutral)) or self._opened(*nearest)
            message = f"no configuration that closes the loops was found: {why}"
            raise ModelError(message, where=self.name, fix=f"check the frames that the loops join{self.axes}")
        scores = [quality(self.scaled_jacobian(q), active) for q in result]
        best = max(scores)
        return next(q for q, score in zip(result, scores, strict=True) if score >= (*best[:-1], FAIR_SCORE * best[-1]))

    def _opened(self, error: float, q: Array) -> str:
        """Return a description of the loops that stay open at q (nq,), where the closure ``error`` is smallest."""
        sizes = np.nan_to_num(np.abs(self.space.error(q)), nan=np.inf)
        owners = [loop.name for loop in self.mechanism.loops for _ in range(loop.count)]
        wide = [repr(owners[k]) for k in np.argsort(-sizes, kind="stable") if sizes[k] > CLOSURE_TOLERANCE]
        names = listing(dict.fromkeys(wide), 4)
        return f"the smallest closure error is {error:.2g} of the mechanism's size, in {names}"

    def choice(self, algorithm: Algorithm) -> ClosureChoice:
        """Return the closure choice for tracing an algorithm."""
        if algorithm.multipliers:
            return self.driven_equations if "a_active" in algorithm.inputs else self.independent_equations
        return self.driven_choice

    @cached_property
    def driven_choice(self) -> ClosureChoice:
        """Independent equations, and the coordinates that move the mechanism, all of which must be active."""
        choice = choose(self.scaled_jacobian(self.reference), self.active)
        self._check_driven(choice, range(self.mechanism.nv))
        return self._with_scales(choice)

    @cached_property
    def assembly_choice(self) -> ClosureChoice:
        """Choice for assembly, which does not move coordinates that affect no loop, such as a floating base."""
        A = self.space.jacobian(self.reference)
        choice = choose(A, self.active)
        self._check_driven(choice, np.flatnonzero(np.abs(A).max(axis=0, initial=0.0) > RANK))
        return self._with_scales(choice)

    @cached_property
    def independent_equations(self) -> ClosureChoice:
        """Choice for multipliers: closure equations that are independent unless the mechanism is singular."""
        return self.independent_at(self.reference)

    def independent_at(self, q: Array) -> ClosureChoice:
        """Return closure equations that are clearly independent at one configuration (nq,)."""
        rows = choose(self.scaled_jacobian(q), []).rows
        try:
            sizes = self._equation_scales
        except ModelError:  # no reference was found, but this configuration is closed
            sizes = self._equation_scales_at(q)
        return self._with_scales(ClosureChoice(rows, scales=tuple(sizes[list(rows)].tolist())))

    @cached_property
    def driven_equations(self) -> ClosureChoice:
        """Choice for multipliers of loops and drives: equations that are independent for given active coordinates."""
        return self.driven_equations_at(self.reference)

    def driven_equations_at(self, q: Array, scaled_at: Array | None = None) -> ClosureChoice:
        """Return closure equations that are independent at q (nq,) for given active coordinates.

        Margins are relative to the magnitudes of the equations at q, or at the positions ``scaled_at`` (nq,).
        """
        passive = [k for k in range(self.mechanism.nv) if k not in self.active]
        A = self.scaled_jacobian(q)
        rows = choose(A[:, passive], []).rows
        between: tuple[int, ...] = ()
        if len(rows) < self.rank(q):  # other rows relate active coordinates to each other
            between = choose(A - A @ np.linalg.pinv(A[list(rows)]) @ A[list(rows)], []).rows
        at = q if scaled_at is None else scaled_at
        M = self.kernels.call("mass_matrix", at, loops="open")
        sizes = *self._equation_scales_at(at)[list(rows)], *np.diag(np.linalg.inv(M))[self.active]
        choice = ClosureChoice(rows, active=tuple(self.active), scales=tuple(map(float, sizes)))
        return self._with_scales(choice._replace(between=between))

    def independent_near(self, q: Array) -> ClosureChoice:
        """Return the first choice at q (nq,): the general one, unless there is none or the rank is higher at q."""
        try:
            general = self.independent_equations
        except ModelError:
            return self.independent_at(q)
        return general if self.rank(q) <= len(general.rows) else self.independent_at(q)

    def rank(self, q: Array) -> NDArray[np.intp]:
        """Return the number of independent closure equations at each of the configurations (..., nq)."""
        values = np.linalg.svd(self.scaled_jacobian(q), compute_uv=False)
        return np.asarray((values > RANK * values[..., :1]).sum(axis=-1))

    def ranks_differ(self, q: Array, choice: ClosureChoice) -> bool:
        """Return whether the rank differs from the number of chosen equations at some configurations (..., nq)."""
        redundant = [k for k in range(len(self.scales[0])) if k not in choice.rows]
        silent = not np.abs(self.scaled_jacobian(q)[..., redundant, :]).max(initial=0.0) > RANK
        if silent and choice == vars(self).get("independent_equations"):  # redundant everywhere, as in a planar linkage
            return False
        return bool((self.rank(q) != len(choice.rows)).any())

    def margin(self, choice: ClosureChoice, q: ArrayLike) -> Array:
        """Return the margin (...) of the chosen equations at positions (..., nq); it is 0 where they lose rank."""
        kernels = self.kernels
        return np.asarray(kernels.compiled(kernels.request("closure_margin", choice=choice))(q))

    @cached_property
    def _equation_scales(self) -> Array:
        """Diagonal of A M^-1 A^T (c,) where the mechanism is not singular."""
        return self._equation_scales_at(self.reference)

    def _equation_scales_at(self, q: Array) -> Array:
        A, M = self.kernels.call("closure_jacobian", q), self.kernels.call("mass_matrix", q, loops="open")
        moments, directions = np.linalg.eigh(M)
        if self.mechanism.nv and moments[0] <= MASSLESS_RATIO * moments[-1]:
            name = self.mechanism.coordinate_names[int(np.argmax(np.abs(directions[:, 0])))]
            message = f"the mass matrix of the tree with cut loops is singular: {name} moves no inertia"
            raise ModelError(message, where=self.name, fix="give inertia to the links that it moves")
        lengths = np.diag(A @ np.linalg.solve(M, A.T))
        return np.asarray(np.maximum(lengths, MIN_SCALE * lengths.max(initial=0.0)))

    def _with_scales(self, choice: ClosureChoice) -> ClosureChoice:
        return choice._replace(units=tuple(self.scales[0].tolist()), length=self.length)

    def _check_driven(self, choice: ClosureChoice, moved: Collection[int]) -> None:
        """Raise ModelError if a coordinate that moves the mechanism is not active."""
        names = self.mechanism.coordinate_names
        missing = [names[k] for k in choice.independent if k not in self.active and k in moved]
        if missing:
            message = f"the {len(self.active)} active coordinates are too few: {len(choice.independent)} are needed"
            fix = f"make {', '.join(map(repr, missing))} active too, or coordinates that depend on them; for idle"
            fix += " coordinates, which have no drive, use the methods of robot.closed with coordinates='all'"
            raise ModelError(message, where=self.name, fix=fix)

    def one_closed(self, q: Maybe) -> Array:
        """Return one configuration (nq,) with closed loops: ``q``, or the reference if ``q`` is None."""
        nq = self.mechanism.nq
        at = self.reference if q is None else vectors(q, nq, self.name, "q")
        if at.ndim != 1:
            raise ModelError(f"has shape {at.shape}", argument="q", where=self.name, allowed=f"({nq},), one state")
        self.check_closed(at)
        return at

    def check_closed(self, q: ArrayLike, numbers: Numbers = OWN) -> None:
        """Raise ModelError if loops are open at positions (..., nq)."""
        error = self.exact("closure_error", q, numbers)
        size = float(np.linalg.norm(error / self._all_scales[0], axis=-1).max(initial=0.0))
        if not size <= MAX_CLOSURE_ERROR:  # some equations may be redundant up to rounding
            size = float(np.linalg.norm(error / self.scales[0], axis=-1).max(initial=0.0))
        self.check_error(size, error)

    def check_error(self, size: float, error: ArrayLike) -> None:
        """Raise ModelError if a closure ``error`` (..., c) is too large; ``size`` is relative to the mechanism."""
        if not size <= MAX_CLOSURE_ERROR:
            lifted = self.off_ground(error)
            message = lifted or f"the loops are not closed: the closure error is {size:.2g} of the mechanism's size"
            fix = "q = robot.closed.positions(q)" if lifted else "q = robot.closed.assemble(q_active, guess=q)"
            raise ModelError(message, where=self.name, allowed=f"{MAX_CLOSURE_ERROR:g}", fix=fix)

    def off_ground(self, error: ArrayLike) -> str:
        """Return a description of the wheel that violates its ground contact at a closure error (..., c), or ""."""
        for wheel, rows in self._wheels():
            heights = np.asarray(error)[..., rows.start].ravel()
            if np.isnan(heights).any():
                return f"wheel {wheel.name!r} lies flat: its axle is normal to its ground"
            far = float(heights[np.abs(heights).argmax()]) if heights.size else 0.0
            if abs(far) > MAX_CLOSURE_ERROR * self.length:
                return f"wheel {wheel.name!r} is {abs(far):.3g} m {'above' if far > 0 else 'below'} its ground"
        return ""

    def sliding(self, rate: Array) -> str:
        """Return a description of the wheel that slips at the rates (..., c) of the closure equations, or ""."""
        for wheel, rows in self._wheels():
            slip = float(np.linalg.norm(rate[..., rows], axis=-1).max(initial=0.0))
            if slip > MAX_CLOSURE_ERROR * self.length:
                return f"let wheel {wheel.name!r} slip by {slip:.3g} m/s"
        return ""

    def _wheels(self) -> Iterator[tuple[Wheel, slice]]:
        """Yield the wheels with their rows in the closure equations."""
        first = 0
        for loop in self.mechanism.loops:
            if isinstance(loop, Wheel):
                yield loop, slice(first, first + loop.count)
            first += loop.count
