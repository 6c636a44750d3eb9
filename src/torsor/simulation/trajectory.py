"""The trajectory: what a simulation gives, and what follows from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot

__all__ = ["Crossings", "SimulationError", "Trajectory", "forward"]

Array = NDArray[np.float64]


class SimulationError(RuntimeError):
    """A simulation that cannot go on; ``trajectory`` holds everything up to then (or None, if there is nothing)."""

    trajectory: "Trajectory | None" = None


class Crossings(NamedTuple):
    """Where an event was seen: ``times`` (K,), the states ``q`` (K, nq) and ``v`` (K, nv), and in which rollouts.

    ``rollouts`` (K, B) has the index of the rollout in the B leading axes of the simulation; B is 0 for a single one.
    """

    times: Array
    q: Array
    v: Array
    rollouts: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion of a robot, or many: samples at ``times`` (T,), in s.

    ``q`` is (..., T, nq), ``v``, ``a`` and ``tau`` are (..., T, nv): positions, velocities, accelerations and forces of
    the controller. A force that holds is recorded where it sets in. ``external`` (..., T, L, 6) are the wrenches of
    the environment, or None; ``held`` says of tau and of external whether they hold from a sample on. ``status`` is
    "done", "event" (a terminal event ended it), "interrupted" (Ctrl-C) or "failed". ``events`` has one ``Crossings``
    for each event that was given. ``len`` is T; an index picks rollouts.

    Example:
        >>> import torsor
        >>> fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.5)
        >>> len(fall), fall.q.shape, fall.status
        (501, (501, 1), 'done')
    """

    robot: Robot
    times: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    status: str = "done"
    events: tuple[Crossings, ...] = ()
    external: Array | None = None
    held: tuple[bool, bool] = (False, False)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        batch = "".join(f"{n} x " for n in self.q.shape[:-2])
        end = f"{self.times[-1]:.6g} s" if len(self) else "nothing"
        return f"<Trajectory of {self.robot.name!r}: {batch}{len(self)} samples, {end}, {self.status}>"

    def __getitem__(self, index: Any) -> "Trajectory":
        """Return some of the rollouts: ``trajectory[3]`` is the fourth, ``trajectory[:10]`` the first ten."""
        axes = self.q.ndim - 2
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > axes or any(each is None or each is Ellipsis for each in indices):
            allowed = f"{axes} indices at most" if axes else "none, since this is a single rollout"
            raise IndexError(describe(f"trajectory[{index!r}]", where=self.robot.name, allowed=allowed))
        numbers = np.arange(int(np.prod(self.q.shape[:-2]))).reshape(self.q.shape[:-2])
        picked = np.asarray(numbers[indices])
        arrays = {name: getattr(self, name)[indices] for name in ("q", "v", "a", "tau")}
        external = None if self.external is None else self.external[indices]
        events = tuple(_of_rollouts(each, numbers, picked) for each in self.events)
        return replace(self, **arrays, external=external, events=events)

    @cached_property
    def reactions(self) -> Array:
        """What each parent exerts on its link, (..., T, L, 6): ``Robot.joint_wrenches`` along the motion.

        With loops, what these exert on the links is taken into account (``Robot.loop_loads``).
        """
        loads = self.external
        if self.robot.loops:
            forces = _where_known(self.robot.closed_loop_forces, self.q, self.v, self.tau, loads)
            wrenches = self.robot.loop_loads(self.q, forces)
            loads = wrenches if loads is None else loads + wrenches
        return self.robot.joint_wrenches(self.q, self.v, self.a, loads)

    @cached_property
    def closure_error(self) -> Array:
        """What the loops are open by, (..., T, c): ``Robot.closure_error`` along the motion; c is 0 without loops."""
        return self.robot.closure_error(self.q)

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
        """Kinetic and potential energy together (..., T), in J: constant where nothing drives and nothing brakes."""
        return self.kinetic_energy + self.potential_energy

    def at(self, t: ArrayLike) -> tuple[Array, Array]:
        """Return the state (q, v) at times between the samples: (..., nq) and (..., nv), or with an axis of times.

        The positions follow the cubic through the neighbouring samples and their velocities, on the group (de
        Casteljau's construction with ``integrate`` and ``difference``), the velocities that through the accelerations;
        loops are closed.

        Example:
            >>> import torsor
            >>> fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.5)
            >>> q, v = fall.at(0.12345)
            >>> q.shape, fall.at([0.1, 0.2, 0.3])[0].shape
            ((1,), (3, 1))
        """
        times = np.asarray(t, dtype=float)
        if times.ndim > 1 or not ((times >= self.times[0]) & (times <= self.times[-1])).all():
            allowed = f"times from {self.times[0]:.6g} to {self.times[-1]:.6g} s"
            raise ModelError(describe(f"at {times.tolist()} s", where=self.robot.name, allowed=allowed))
        if len(self) == 1:
            return self.q[..., np.zeros(times.shape, int), :], self.v[..., np.zeros(times.shape, int), :]
        left = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self) - 2)
        h = (self.times[left + 1] - self.times[left])[..., None]
        s = (times - self.times[left])[..., None] / h
        (q0, q1), (v0, v1) = ((x[..., left, :], x[..., left + 1, :]) for x in (self.q, self.v))
        a0, a1 = self.a[..., left, :], self._a_before(left)
        integrate, difference = self.robot.integrate, self.robot.difference
        points = [q0, integrate(q0, h * v0 / 3), integrate(q1, -h * v1 / 3), q1]
        while len(points) > 1:
            points = [integrate(x, s * difference(x, y)) for x, y in pairwise(points)]
        v = (1 - s) ** 2 * ((1 + 2 * s) * v0 + s * h * a0) + s**2 * ((3 - 2 * s) * v1 + (s - 1) * h * a1)
        if not self.robot.loops:
            return points[0], v
        from torsor.simulation.held import brought_back

        return brought_back(self.robot, points[0], v)

    def _a_before(self, left: NDArray[np.signedinteger[Any]]) -> Array:
        """Return the accelerations at the ends of intervals, just before what holds during them ends."""
        ends = left + 1
        if not any(self.held):
            return self.a[..., ends, :]
        tau = self.tau[..., left if self.held[0] else ends, :]
        external = None if self.external is None else self.external[..., left if self.held[1] else ends, :, :]
        return forward(self.robot)(self.q[..., ends, :], self.v[..., ends, :], tau, external)

    def save(self, path: str | Path) -> None:
        """Write the trajectory to a .npz file, with the robot in it, or one rollout to a .csv file.

        Example:
            >>> import tempfile, torsor
            >>> fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.01)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     fall.save(folder + "/fall.npz")
            ...     torsor.Trajectory.load(folder + "/fall.npz").q.tolist() == fall.q.tolist()
            True
        """
        from torsor.simulation.files import save

        save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, robot: Robot | None = None) -> "Trajectory":
        """Return the trajectory in a .npz file, which holds its robot, or in a .csv file of the given robot.

        Example:
            >>> import tempfile, torsor
            >>> arm = torsor.library.two_link()
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     torsor.simulate(arm, duration=0.01).save(folder + "/arm.csv")
            ...     len(torsor.Trajectory.load(folder + "/arm.csv", robot=arm))
            11
        """
        from torsor.simulation.files import load

        return load(Path(path), robot)

    def plot(self, path: str | Path | None = None, what: Sequence[str] = ("q", "v", "tau")) -> Any:
        """Draw quantities over time, one panel each, and return the figure; ``path`` saves it too.

        ``what`` names them: q, v, a, tau, energy, reactions (sizes of the forces), closure. Needs matplotlib:
        ``torsor[plot]``.

        Example:
            >>> import torsor
            >>> figure = torsor.simulate(torsor.library.two_link(), duration=0.1).plot(what=("q", "energy"))
            >>> len(figure.axes)
            2
        """
        from torsor.simulation.plot import plot

        return plot(self, path, what)


def forward(robot: Robot) -> Callable[..., Array]:
    """Return the accelerations of a robot as a function of (q, v, tau, external); its loops, if any, are closed."""
    return partial(_where_known, robot.closed_forward_dynamics) if robot.loops else robot.forward_dynamics


def _where_known(
    function: Callable[..., Array], q: Array, v: Array, tau: Array, external: Array | None = None
) -> Array:
    """Return a function of states with closed loops, NaN for those that were not reached."""
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
    """Return the crossings of the picked rollouts, with their indices among the picked ones."""
    flat = numbers[tuple(event.rollouts.T)]
    where = {int(number): k for k, number in enumerate(picked.ravel())}
    kept = [k for k, number in enumerate(flat) if int(number) in where]
    places = np.array([where[int(flat[k])] for k in kept], dtype=np.intp)
    rollouts = (
        np.stack(np.unravel_index(places, picked.shape), -1) if picked.ndim else np.zeros((len(kept), 0), np.intp)
    )
    return Crossings(event.times[kept], event.q[kept], event.v[kept], rollouts)
