"""The recorder: collects the samples of a running simulation."""

import math
from dataclasses import dataclass

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.compiler import AnyKernel
from torsor.simulation.dynamics import closed, compiled, forces, held_inputs
from torsor.simulation.hard import hard_wrenches
from torsor.simulation.limits import limits_of
from torsor.simulation.needed import needed
from torsor.simulation.samples import Crossings
from torsor.simulation.setup import Setup
from torsor.simulation.trajectory import Trajectory, forward_dynamics

# Bytes of q, v, a and tau up to which every step is recorded, without ``record``.
LARGEST = 2**30


def thinning(setup: Setup, samples: int) -> int:
    """Return k so that every k-th of ``samples`` samples fits into memory, for simulations without ``record``."""
    numbers = (setup.robot.nq + 3 * setup.robot.nv) * math.prod(setup.batch)
    return max(1, math.ceil(8 * numbers * samples / LARGEST))


@dataclass
class Recorder:
    """Samples of (t, q, v) and of held forces, written one after the other into preallocated arrays.

    Where a batch is integrated rollout by rollout, each rollout has its own recorder, on views of the same arrays.
    """

    setup: Setup
    times: Array
    q: Array
    v: Array
    tau: Array | None
    external: Array | None
    count: int = 0

    @classmethod
    def of(cls, setup: Setup, count: int) -> "Recorder":
        """Return a recorder with room for ``count`` samples."""
        robot, batch = setup.robot, (*setup.batch, count)
        holds_tau, holds_external = held_inputs(setup.controller, setup.external, setup.is_sampled)
        return cls(
            setup,
            np.full(count, np.nan),
            np.full((*batch, robot.nq), np.nan),
            np.full((*batch, robot.nv), np.nan),
            np.full((*batch, robot.nv), np.nan) if holds_tau else None,
            np.full((*batch, len(robot.links), 6), np.nan) if holds_external else None,
        )

    def rollout(self, index: tuple[int, ...]) -> "Recorder":
        """Return the recorder of one rollout."""
        tau = None if self.tau is None else self.tau[index]
        external = None if self.external is None else self.external[index]
        return Recorder(self.setup.rollout(index), self.times, self.q[index], self.v[index], tau, external)

    def add(self, t: float, q: Array, v: Array, tau: Array | None, external: Array | None) -> None:
        """Add a sample; one at the time of the last sample replaces it."""
        k = self.count - 1 if self.count and self.times[self.count - 1] == t else self.count
        self.q[..., k, :], self.v[..., k, :] = q, v
        if self.tau is not None:
            self.tau[..., k, :] = tau
        if self.external is not None:
            self.external[..., k, :, :] = external
        self.times[k] = t
        self.count = k + 1

    def extend(self, times: Array, q: Array, v: Array, tau: Array | None, external: Array | None) -> None:
        """Add samples (T, ..., n) at later times; the held forces are the same in all of them."""
        rows = slice(self.count, self.count + len(times))
        self.times[rows] = times
        self.q[..., rows, :], self.v[..., rows, :] = np.moveaxis(q, 0, -2), np.moveaxis(v, 0, -2)
        if self.tau is not None and tau is not None:
            self.tau[..., rows, :] = tau[..., None, :]
        if self.external is not None and external is not None:
            self.external[..., rows, :, :] = external[..., None, :, :]
        self.count += len(times)

    def trajectory(self, status: str, events: tuple[Crossings, ...]) -> Trajectory:
        """Return the samples so far; traced forces and the accelerations are evaluated here."""
        robot, count = self.setup.robot, self.count
        times, q, v = self.times[:count], self.q[..., :count, :], self.v[..., :count, :]
        tau = None if self.tau is None else self.tau[..., :count, :]
        external = None if self.external is None else self.external[..., :count, :, :]
        controller, environment = self.setup.controller.function, self.setup.external.function
        if tau is None:
            still = np.broadcast_to(np.zeros(robot.nv), v.shape)
            tau = still if controller is None else _evaluate(self.setup, controller, times, q, v)
        if external is None and environment is not None:
            external = _evaluate(self.setup, environment, times, q, v)
        contact = self.setup.external.added
        if contact is not None:
            wrenches = _evaluate(self.setup, contact, times, q, v)
            external = wrenches if external is None else external + wrenches
        if self.setup.hard is not None:
            wrenches = self._hard(times, q, v, tau, external)
            external = wrenches if external is None else external + wrenches
        limits, prescribed = limits_of(self.setup.about), self.setup.prescribed
        if self.setup.controller.limit is not None:
            tau = np.clip(tau, -self.setup.controller.limit, self.setup.controller.limit)
        if prescribed is None:
            acting = tau if limits is None else tau + limits.stop_forces(robot, q, v)
            a = forward_dynamics(robot)(q, v, acting, external)
        else:
            a, tau = needed(prescribed, times, q, v, tau, external)
        holding = self.tau is not None and prescribed is None, self.external is not None and contact is None
        holding = holding[0], holding[1] and self.setup.hard is None
        return Trajectory(robot, times, q, v, a, tau, status, events, external, holding, self.setup.about)

    def _hard(self, times: Array, q: Array, v: Array, tau: Array, external: Array | None) -> Array:
        """Return the wrenches of hard contact in the steps that begin at the samples."""
        setup, contact = self.setup, self.setup.hard
        assert contact is not None
        robot, sources = setup.robot, (setup.controller, setup.external, setup.is_sampled)
        held = [
            each for each, own in ((tau, self.tau), (external, self.external)) if own is not None and each is not None
        ]
        found: Array = closed(
            robot,
            f"hard contact {contact.key(robot)}",
            *sources,
            lambda: hard_wrenches(robot, forces(robot, *sources), contact),
        )(times, q, v, *held, np.array(setup.settings.steps[0][2]))
        return found


def _evaluate(setup: Setup, function: ca.Function, times: Array, q: Array, v: Array) -> Array:
    """Return the traced controller, environment or contact along the samples."""
    kernel: AnyKernel = compiled(setup.robot, function.name_out(0), (function,), lambda: function)
    values: Array = kernel(times, q, v)
    return values
