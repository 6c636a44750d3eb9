"""The trajectory, which is the result of a simulation, and derived quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.archive import register_result
from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, warn
from torsor.base.figures import Bound, Quantity, checked_what, plot_quantities
from torsor.base.summary import Summary
from torsor.base.time_series import Instants, SampledInstants, Series
from torsor.mechanism.mechanism import FORCES, force_units, units
from torsor.robot.robot import Robot
from torsor.simulation.files import Crossings, Samples, read
from torsor.simulation.inputs import Prescribed
from torsor.simulation.limits import limits_of
from torsor.simulation.logs import motion_of, read_log
from torsor.simulation.loop_projection import project

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The figure of a trajectory, and its short table.

# Title and unit of each quantity, where {} is the unit of the coordinate.
QUANTITIES = {
    "q": ("Positions", "{}"),
    "v": ("Velocities", "{}/s"),
    "a": ("Accelerations", "{}/s²"),
    "tau": ("Controller forces", ""),
    "energy": ("Energy", "J"),
    "reactions": ("Joint reactions: norm of the force", "N"),
    "closure": ("Residual of loop closure", "m, 1"),
}
UNNAMED = {"energy": ["kinetic", "potential", "total"], "closure": ["largest error"]}


def how(samples: Samples) -> str:
    """Return a description of how a trajectory was computed, from its settings."""
    settings = samples.settings
    if "method" not in settings:
        return str(settings.get("made", "motion"))
    adaptive = settings["method"] == "adaptive"
    steps = f"rtol {settings.get('rtol')}" if adaptive else f"steps of {settings.get('step')} s"
    return f"simulated with {settings['method']}, {steps}, {settings.get('controller')}"


def plot(
    samples: Samples, curves: Callable[[str], Array], what: str | Sequence[str], path: str | Path | None
) -> Figure:
    """Return a figure with panels for each quantity over time; ``curves(name)`` returns the values (..., T, K)."""
    drawn = [_quantity(samples, name, curves(name)) for name in checked_what(what, QUANTITIES)]
    batch = samples.q.shape[:-2]
    count = f", {int(np.prod(batch))} rollouts" if batch else ""
    status = "" if samples.status == "done" else f", {samples.status}"
    return plot_quantities(drawn, samples.times, f"{samples.robot.name}: {how(samples)}{count}{status}", path)


def _quantity(samples: Samples, name: str, values: Array) -> Quantity:
    robot, (positions, rates) = samples.robot, units(samples.robot)
    title, form = QUANTITIES[name]
    if name in UNNAMED:
        return Quantity(title, UNNAMED[name], [form] * len(UNNAMED[name]), values)
    if name == "reactions":
        return Quantity(title, robot.joint_names, [form] * len(robot.joint_names), values)
    names = robot.position_names if name == "q" else robot.coordinate_names
    own = [FORCES[each] if name == "tau" else form.format(each) for each in (positions if name == "q" else rates)]
    limits = {
        "q": (robot.lower, robot.upper),
        "v": (-robot.velocity_limit, robot.velocity_limit),
        "tau": (-robot.effort_limit, robot.effort_limit),
    }
    bounds: tuple[Bound, ...] = ()
    if name in limits and len(samples):
        bounds = (Bound(float(samples.times[0]), float(samples.times[-1]), *limits[name]),)
    return Quantity(title, names, own, values, bounds, fits=False)


def summary(samples: Samples) -> Summary:
    """Return the short table of a trajectory."""
    robot, batch = samples.robot, samples.q.shape[:-2]
    facts = {
        "status": samples.status,
        "computed by": how(samples),
        "rollouts": str(int(np.prod(batch))),
        "samples": str(len(samples)),
        "duration": f"{samples.times[-1] - samples.times[0]:.6g} s" if len(samples) else "0 s",
    }
    if not samples.q.size or not samples.v.size:
        return Summary(f"Trajectory of {robot.name}", facts)
    rates = units(robot)[1]
    ends = [np.abs(each).reshape(-1, robot.nv).max(axis=0) for each in (samples.v, samples.tau)]
    rows = [
        (name, f"{speed:.4g} {unit}/s", f"{force:.4g} {FORCES[unit]}")
        for name, unit, speed, force in zip(robot.coordinate_names, rates, *ends, strict=True)
    ]
    return Summary(f"Trajectory of {robot.name}", facts, ("coordinate", "largest speed", "largest force"), rows)


# Drive forces beyond their limits, which simulations do not enforce by default; a warning names the drives.

BEYOND = 2e-2  # allowed relative excess over a limit, due to rounding or bounds that are enforced only at nodes


class Overload(NamedTuple):
    """The largest force (N m, N) of a ``coordinate`` beyond its drive limit, its time (s), and the limit."""

    coordinate: str
    time: float
    force: float
    limit: float


def warn_of_overloads(samples: Samples, found: tuple[Overload, ...]) -> None:
    """Issue one warning for all coordinates, with the force of the worst one."""
    if not found:
        return
    worst, unit = found[0], force_units(samples.robot)[found[0].coordinate]
    others = f" ({len(found)} drives in all: {', '.join(each.coordinate for each in found)})" if len(found) > 1 else ""
    text = f"the drive of {worst.coordinate} needs {worst.force:.4g} {unit} at t = {worst.time:.4g} s"
    text += f", which exceeds its limit of {worst.limit:.4g} {unit}{others}"
    fix = "limits are not enforced: use smaller gains or a slower reference, or correct the effort limit"
    warn(text, where=samples.robot.name, fix=fix)


def batch_indices(q: Any, index: Any, what: str, where: str) -> tuple[Any, ...]:
    """Return indices of the leading axes of positions ``q`` (..., T, nq); raise IndexError for others."""
    axes = q.ndim - 2
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) > axes or any(each is None or each is Ellipsis for each in indices):
        allowed = f"{axes} indices at most" if axes else "none, since this is a single rollout"
        raise IndexError(describe(f"{what}[{index!r}]", where=where, allowed=allowed))
    return indices


@dataclass(frozen=True, eq=False)
class Trajectory(Samples):
    """A motion of a robot, or a batch of them (rollouts): samples at ``times`` (T,), in s.

    ``q`` is (..., T, nq), and ``v``, ``a`` and ``tau`` are (..., T, nv): positions, velocities, accelerations and
    controller forces. With ``control.drives``, ``tau`` is the control law at the recorded states, although the implicit
    step applies other torques. ``external`` (..., T, L, 6) are the environment wrenches, or None. ``held`` states, for
    tau and for external, whether the value of a sample is held until the next sample (zero-order hold). ``status`` is
    "done", "event" (ended by a terminal event), "interrupted" (Ctrl-C) or "failed". ``events`` contains one
    ``Crossings`` for each event. ``settings`` contains the method, step, tolerances and controller. ``len`` is T;
    indexing selects rollouts.

    Example:
        >>> fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.5)
        >>> len(fall), fall.q.shape, fall.status
        (501, (501, 1), 'done')
    """

    def __repr__(self) -> str:
        batch = "".join(f"{n} x " for n in self.q.shape[:-2])
        end = f"{self.times[-1]:.6g} s" if len(self) else "nothing"
        return f"<Trajectory of {self.robot.name!r}: {batch}{len(self)} samples, {end}, {self.status}>"

    def __getitem__(self, index: Any) -> Trajectory:
        """Return selected rollouts: ``trajectory[3]`` is the fourth, and ``trajectory[:10]`` are the first ten."""
        indices = batch_indices(self.q, index, "trajectory", self.robot.name)
        numbers = np.arange(int(np.prod(self.q.shape[:-2]))).reshape(self.q.shape[:-2])
        picked = np.asarray(numbers[indices])
        arrays = {name: getattr(self, name)[indices] for name in ("q", "v", "a", "tau")}
        external = None if self.external is None else self.external[indices]
        events = tuple(_of_rollouts(each, numbers, picked) for each in self.events)
        return replace(self, **arrays, external=external, events=events)

    @cached_property
    def reactions(self) -> Array:
        """Wrench (..., T, L, 6) that each parent exerts on its link: ``Robot.joint_wrenches`` along the motion.

        With loops, the loads of the cut joints on the links are included (``robot.closed.loop_loads``).
        """
        loads = self.external
        if self.robot.loops:
            forces_of = partial(self.robot.closed.loop_forces, coordinates="all")
            forces = _at_finite_states(forces_of, self.q, self.v, self.tau, loads)
            wrenches = self.robot.closed.loop_loads(self.q, forces)
            loads = wrenches if loads is None else loads + wrenches
        return self.robot.joint_wrenches(self.q, self.v, self.a, loads, loops="open")

    @cached_property
    def closure_error(self) -> Array:
        """Residual (..., T, c) of loop closure: ``robot.closed.error`` along the motion; c is 0 without loops."""
        return self.robot.closed.error(self.q)

    @cached_property
    def closure_rate(self) -> Array:
        """Rates A v (..., T, c) of the closure equations along the motion; for wheels, slip velocities (m/s)."""
        return np.asarray((self.robot.closed.jacobian(self.q) @ self.v[..., None])[..., 0])

    @cached_property
    def kinetic_energy(self) -> Array:
        """Kinetic energy (..., T), in J."""
        return self.robot.kinetic_energy(self.q, self.v)

    @cached_property
    def potential_energy(self) -> Array:
        """Potential energy (..., T), in J."""
        return self.robot.potential_energy(self.q)

    @property
    def energy(self) -> Array:
        """Kinetic plus potential energy (..., T), in J, which is constant for a conservative system."""
        return self.kinetic_energy + self.potential_energy

    @cached_property
    def overloads(self) -> tuple[Overload, ...]:
        """Coordinates whose forces exceed the ``effort_limit`` of their drives by more than 2 %, worst first.

        Each entry has the ``coordinate``, the ``time`` (s) of its largest force at any sample of any rollout, this
        ``force``, and the ``limit`` (N m, N). Simulations enforce limits only with ``limits``. A limit of 0 marks a
        coordinate without a drive.
        """
        limits, found = self.robot.effort_limit, list[Overload]()
        for k, name in enumerate(self.robot.coordinate_names):
            force = np.abs(np.nan_to_num(self.tau[..., k]))
            if 0 < limits[k] < np.inf and force.max(initial=0.0) > (1 + BEYOND) * limits[k]:
                place = np.unravel_index(int(np.argmax(force)), force.shape)
                value = float(self.tau[(*place, k)])
                found.append(Overload(name, float(self.times[place[-1]]), value, float(limits[k])))
        return tuple(sorted(found, key=lambda each: -abs(each.force) / each.limit))

    @cached_property
    def saturated(self) -> NDArray[np.bool_]:
        """Mask (..., T, nv) of saturated drives; False if the simulation did not enforce effort limits.

        Example:
            >>> robot, limits = torsor.library.quadruped(), torsor.simulation.Limits()
            >>> push = torsor.simulate(robot, duration=0.01, controller=np.full(18, 30.0), limits=limits)
            >>> push.saturated[-1, 4:8].tolist(), push.tau[-1, 4:8].tolist()
            ([False, False, True, True], [30.0, 30.0, 25.0, 25.0])
        """
        limits = limits_of(self.settings)
        return np.zeros(self.tau.shape, dtype=bool) if limits is None else limits.saturated(self.robot, self.tau)

    @cached_property
    def stops(self) -> Array:
        """Forces (..., T, nv) of stops at position limits; zero if the simulation did not enforce them."""
        limits = limits_of(self.settings)
        return np.zeros(self.v.shape) if limits is None else limits.stop_forces(self.robot, self.q, self.v)

    def at(self, t: ArrayLike) -> Instants:
        """Return the motion q, v, a and tau (..., n) at times t (...) between the first and last samples.

        The axes of rollouts come before those of t. Positions are interpolated on the group by the cubic defined by the
        neighbouring samples and their velocities. Velocities are interpolated by the cubic defined by the samples and
        their accelerations (under held forces), and accelerations are its derivative. Forces are held or interpolated
        linearly. With loops, positions and velocities are projected onto closed loops.

        Example:
            >>> fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.5)
            >>> fall.at(0.12345).q.shape, fall.at([0.1, 0.2, 0.3]).a.shape
            ((1,), (3, 1))
        """
        return _TrajectoryInstants(self, t) if self.robot.loops or any(self.held) else SampledInstants(self.series, t)

    @cached_property
    def series(self) -> Series:
        """Samples for interpolation by ``at``."""
        group = None if self.robot.nq == self.robot.nv else self.robot
        arrays = self.q, self.v, self.a, self.tau
        return Series.of(self.robot.name, self.times, *arrays, held=self.held[0], group=group)

    @classmethod
    def load(
        cls,
        path: str | Path,
        robot: Robot | None = None,
        *,
        columns: Mapping[str, Any] | None = None,
        units: Mapping[str, Any] | None = None,
        delimiter: str | None = None,
        rate: float | None = None,
    ) -> Trajectory:
        """Return the trajectory in a .npz file, which contains its robot, or in a .csv file for the given robot.

        A table with another layout requires ``columns``: {"time": name, "q": names, "v": ..., "a": ..., "tau": ...},
        with column names or indices from 0, in the order of the coordinates. ``units``, such as {"q": "deg", "time":
        "ms"}, contains one unit for all columns of a quantity, or a list; the defaults are SI units and radians. The
        ``delimiter`` is detected by default. ``rate`` (Hz) replaces a time column. Missing v and a are computed by
        second-order finite differences (first order for a near the ends), and missing tau by inverse dynamics.

        Example:
            >>> import tempfile
            >>> arm = torsor.library.two_link()
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     torsor.simulate(arm, duration=0.01).save(folder + "/arm.csv")
            ...     len(torsor.Trajectory.load(folder + "/arm.csv", robot=arm))
            11
        """
        if columns is None:
            other = {"units": units, "delimiter": delimiter, "rate": rate}
            given = [name for name, value in other.items() if value is not None]
            if given:
                raise ModelError(f"{given[0]} needs `columns`", where=str(path), fix="pass `columns=`")
            return cls(**vars(read(Path(path), robot)))
        if not isinstance(robot, Robot):
            raise ModelError("needs a robot", argument="columns", where=str(path), fix="pass `robot=`")
        log = read_log(Path(path), robot, columns, units, delimiter, rate)
        return cls(robot, *motion_of(robot, log, str(path)))

    def plot(self, path: str | Path | None = None, what: Sequence[str] = ("q", "v", "tau")) -> Figure:
        """Return a figure of quantities over time, and save it if ``path`` is given.

        ``what`` names them: q, v, a, tau, energy, reactions (norms of the forces), closure (largest residual). Each
        unit has its own panels, with at most eight curves. Limits of joints and drives that are close to a curve are
        drawn as dotted lines. Plotting requires matplotlib (``torsor[plot]``).

        Example:
            >>> figure = torsor.simulate(torsor.library.two_link(), duration=0.1).plot(what=("q", "energy"))
            >>> len(figure.axes)
            2
        """
        return plot(self, self._curves, what, path)

    def _curves(self, name: str) -> Array:
        """Return the curves (..., T, K) of a quantity of ``plot``."""
        if name == "energy":
            return np.stack([self.kinetic_energy, self.potential_energy, self.energy], -1)
        if name == "closure":
            return np.asarray(np.abs(self.closure_error).max(axis=-1, initial=0.0)[..., None])
        if name == "reactions":
            return np.asarray(np.linalg.norm(self.reactions[..., 3:], axis=-1))
        return np.asarray(getattr(self, name))

    def _summary(self) -> Summary:
        return summary(self)


register_result("trajectory", Trajectory, "a trajectory")


class _TrajectoryInstants(SampledInstants):
    """Interpolated motion with closed loops, or under forces that are held during each interval."""

    def __init__(self, trajectory: Trajectory, t: ArrayLike):
        super().__init__(trajectory.series, t)
        self._trajectory = trajectory

    @cached_property
    def _accelerations(self) -> tuple[Array, Array]:
        """Return the accelerations at the start and end of the interval, under the forces held during it."""
        own, left, right = self._trajectory, self._left, self._right
        if not any(own.held):
            return super()._accelerations
        tau = own.tau[..., left if own.held[0] else right, :] + own.stops[..., right, :]
        external = None if own.external is None else own.external[..., left if own.held[1] else right, :, :]
        q, v = own.q[..., right, :], own.v[..., right, :]
        return own.a[..., left, :], forward_dynamics(own.robot)(q, v, tau, external)

    @cached_property
    def _closed(self) -> tuple[Array, Array]:
        """Return positions and velocities on closed loops."""
        robot, v = self._trajectory.robot, super()._velocities()
        near, _ = project(robot, super()._positions(), v)
        return project(robot, near, v)  # removes the remaining error of the first projection in long intervals

    def _positions(self) -> Array:
        return self._closed[0] if self._trajectory.robot.loops else super()._positions()

    def _velocities(self) -> Array:
        return self._closed[1] if self._trajectory.robot.loops else super()._velocities()


def forward_dynamics(robot: Robot) -> Callable[..., Array]:
    """Return the forward dynamics of a robot, with or without loops, as a function of (q, v, tau, external)."""
    forward = partial(robot.closed.forward_dynamics, coordinates="all")
    return partial(_at_finite_states, forward) if robot.loops else robot.forward_dynamics


def _at_finite_states(
    function: Callable[..., Array], q: Array, v: Array, tau: Array, external: Array | None = None
) -> Array:
    """Return the values (..., n) of a function at states with closed loops, and NaN at states that were not reached."""
    known = np.isfinite(v).all(axis=-1)
    if known.all():
        return function(q, v, tau, external)
    tau = np.broadcast_to(tau, v.shape)[known]
    loads = None if external is None else np.broadcast_to(external, (*known.shape, *external.shape[-2:]))[known]
    found = function(q[known], v[known], tau, loads)
    whole = np.full((*known.shape, found.shape[-1]), np.nan)
    whole[known] = found
    return whole


def _of_rollouts(event: Crossings, numbers: NDArray[np.intp], picked: NDArray[np.intp]) -> Crossings:
    """Return the crossings of selected rollouts, with rollout indices among the selected ones."""
    flat = numbers[tuple(event.rollouts.T)]
    where = {int(number): k for k, number in enumerate(picked.ravel())}
    kept = [k for k, number in enumerate(flat) if int(number) in where]
    rollouts = np.zeros((len(kept), 0), np.intp)
    if picked.ndim:
        places = np.array([where[int(flat[k])] for k in kept], dtype=np.intp)
        rollouts = np.stack(np.unravel_index(places, picked.shape), -1)
    return Crossings(event.times[kept], event.q[kept], event.v[kept], rollouts)


# Accelerations and forces along a motion with some prescribed coordinates.


def needed(
    prescribed: Prescribed, times: Array, q: Array, v: Array, tau: Array, external: Array | None
) -> tuple[Array, Array]:
    """Return the accelerations (..., T, nv) and the forces (..., T, nv) of all coordinates at samples of a motion.

    The forces of prescribed coordinates are those that their motion requires. With loops, they follow from the linear
    response of the closed mechanism: first to a unit force at each prescribed coordinate, then to the forces that
    produce the prescribed accelerations.
    """
    robot, given = prescribed.robot, prescribed.v
    wanted = np.array([prescribed.at(float(t))[2] for t in times])
    if not robot.loops:
        a, tau = robot.hybrid_dynamics(q, v, wanted, tau, prescribed.forced, external)
        return a, tau
    dynamics, tau = forward_dynamics(robot), np.array(np.broadcast_to(tau, v.shape))
    tau[..., given] = 0.0
    start = dynamics(q, v, tau, external)
    response = np.stack([dynamics(q, v, tau + np.eye(robot.nv)[k], external) - start for k in given], axis=-1)
    missing = wanted[..., given] - start[..., given]
    forces = np.linalg.solve(response[..., given, :], missing[..., None])[..., 0]
    tau[..., given] = forces
    return start + (response @ forces[..., None])[..., 0], tau
