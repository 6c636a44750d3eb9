"""Derivatives of steps of the fixed-step integrators, and of whole rollouts, for iLQR, MPC and shooting.

A small change of a state is x = (dq, dv), with dq along ``integrate``, which has 2 nv components even if q contains
quaternions. For a step of length h with constant forces,

    x_next = A x + B dtau

A Runge-Kutta step is differentiated by applying the chain rule to its stages, with the compiled derivatives of forward
dynamics. In local coordinates u about q, a stage at q_s = chart(q, u) with the velocities v_s has

    dq_s = C(u) dq + T(u) du        (C: the chart's centre moves, ``chart_carry``; T: u changes, ``chart_velocity``)
    du' = dr/du du + r(u) dv_s      (r: ``chart_rate``, linear in the velocities)

CasADi differentiates the implicit methods as they are computed, including the iterations. If these do not converge, the
derivatives are NaN, like the velocities.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import common_shape, instance_of, one_of, positive, vectors
from torsor.base.errors import ModelError
from torsor.compiler import AnyKernel
from torsor.dynamics import Tree
from torsor.dynamics.recursions.configuration import chart_carry, chart_rate, chart_velocity, steps
from torsor.dynamics.requests import jacobians
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact, with_contact
from torsor.simulation.dynamics import compiled, forces, symbols
from torsor.simulation.hard import contact_step
from torsor.simulation.inputs import Source
from torsor.simulation.methods import STAGES, STEPS

STEP = "derivatives of a step"


def step_derivatives(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float,
    method: str = "rk4",
    external: Maybe = None,
    contact: Contact | None = None,
) -> tuple[Array, Array]:
    """Return (A, B) of one step of length ``dt`` (s): (..., 2 nv, 2 nv) and (..., 2 nv, nv).

    They are the exact derivatives of the state (q, v) after a step of ``method``, any fixed-step method of
    ``simulate``. A contains the derivatives with respect to the state before the step, and B those with respect to the
    forces ``tau`` (..., nv), which are constant during the step. Changes of q before and after the step are along
    ``integrate``. ``external`` (..., L, 6) are wrenches that are fixed in their links. For ``contact`` see
    ``simulate``; derivatives are one-sided where contact begins or ends. For robots with many joints, the code of the
    implicit methods and of contact is large and takes a long time to compile. Robots with loops raise ModelError.

    Example:
        >>> mass = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, 0, 0))
        >>> A, B = step_derivatives(mass, [0.0], [0.0], [0.0], 0.1)  # inertia 4 kg m^2
        >>> A.round(9).tolist(), B.round(9).tolist()
        ([[1.0, 0.1], [0.0, 1.0]], [[0.00125], [0.025]])
    """
    given, wrenches = _checked(robot, q, v, tau, method, external)
    h = positive(dt, robot.name, "dt")
    if method == "rk4" and contact is None:
        return _runge_kutta(robot, given, wrenches, h)
    kernel = _differentiated(robot, method, external is not None, contact)
    n = robot.nv
    q_q, q_v, q_tau, v_q, v_v, v_tau = kernel(np.array(0.0), *given, *wrenches, np.array(h))
    A = np.empty((*q_q.shape[:-2], 2 * n, 2 * n), q_q.dtype)
    A[..., :n, :n], A[..., :n, n:], A[..., n:, :n], A[..., n:, n:] = q_q, q_v, v_q, v_v
    return A, np.concatenate([q_tau, v_tau], axis=-2)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A rollout of T steps with the derivatives of each step.

    ``q`` (..., T + 1, nq) and ``v`` (..., T + 1, nv) are the states; ``A`` (..., T, 2 nv, 2 nv) and ``B``
    (..., T, 2 nv, nv) are the derivatives of each step (see ``step_derivatives``).
    """

    q: Array
    v: Array
    A: Array
    B: Array

    @cached_property
    def _from_end(self) -> Array:
        """Products (..., T + 1, 2 nv, 2 nv) of A from each step to the end; the last is the identity."""
        count, size = self.A.shape[-3], self.A.shape[-1]
        found = np.empty((*self.A.shape[:-3], count + 1, size, size), self.A.dtype)
        found[..., count, :, :] = np.eye(size)
        for k in reversed(range(count)):
            found[..., k, :, :] = found[..., k + 1, :, :] @ self.A[..., k, :, :]
        return found

    @property
    def by_start(self) -> Array:
        """Derivative (..., 2 nv, 2 nv) of the last state with respect to the first."""
        return self._from_end[..., 0, :, :]

    @property
    def by_tau(self) -> Array:
        """Derivatives (..., T, 2 nv, nv) of the last state with respect to the forces of each step."""
        found: Array = self._from_end[..., 1:, :, :] @ self.B
        return found


def sensitivity(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: ArrayLike,
    dt: float,
    method: str = "rk4",
    external: Maybe = None,
    contact: Contact | None = None,
) -> Sensitivity:
    """Return a rollout from (q0, v0) with forces ``tau`` (..., T, nv), one row per step, and its derivatives.

    ``external`` contains the wrenches (..., T, L, 6) of each step, or (L, 6) for all steps. For the
    other arguments see ``step_derivatives``.

    Example:
        >>> arm = torsor.library.two_link()
        >>> run = sensitivity(arm, [0.1, 0.2], [0.0, 0.0], np.zeros((50, 2)), 0.01)
        >>> run.q.shape, run.by_start.shape, run.by_tau.shape
        ((51, 2), (4, 4), (50, 4, 2))
    """
    rows = vectors(tau, instance_of(robot, Robot, STEP, "robot").nv, robot.name, "tau")
    if rows.ndim < 2:
        allowed = f"(..., T, {robot.nv}), one row per step"
        raise ModelError(f"has shape {rows.shape}", argument="tau", where=robot.name, allowed=allowed)
    (q, v, _), wrenches = _checked(robot, q0, v0, rows, method, external)
    count, h = rows.shape[-2], np.array(positive(dt, robot.name, "dt"))
    if any(each.shape[-3:-2] not in ((), (1,), (count,)) for each in wrenches):
        allowed = f"(..., {count}, {len(robot.links)}, 6), one row per step, like tau"
        raise ModelError(f"has shape {wrenches[0].shape}", argument="external", where=robot.name, allowed=allowed)
    loads = [np.broadcast_to(each, (*each.shape[:-3], count, *each.shape[-2:])) for each in wrenches]
    shapes = {"q0": q.shape[:-1], "v0": v.shape[:-1], "tau": rows.shape[:-2]}
    batch = common_shape(robot.name, **shapes, external=loads[0].shape[:-3] if loads else ())
    dtype, loaded = robot.target.dtype, external is not None
    label = f"step {method} {loaded} {_key(robot, contact)}"
    kernel = compiled(robot, label, (), lambda: _made(robot, method, loaded, contact))
    states = [np.empty((*batch, count + 1, size), dtype) for size in (robot.nq, robot.nv)]
    for whole, start in zip(states, (q, v), strict=True):
        whole[..., 0, :] = start
    for k in range(count):
        here = [whole[..., k, :] for whole in states]
        ends = kernel(np.array(k * h), *here, rows[..., k, :], *(each[..., k, :, :] for each in loads), h)
        for whole, end in zip(states, ends, strict=True):
            whole[..., k + 1, :] = end
    q, v = states
    if not np.isfinite(v).all():
        found, fix = "the rollout of a sensitivity is not finite", "use smaller steps or smaller forces"
        raise ModelError(found, where=robot.name, fix=fix)
    load = loads[0] if loads else None
    A, B = step_derivatives(robot, q[..., :-1, :], v[..., :-1, :], rows, float(h), method, load, contact)
    return Sensitivity(q, v, A, B)


def _checked(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, method: str, external: Maybe
) -> tuple[list[Array], list[Array]]:
    """Return the checked arrays of a step, and the external wrenches if there are any."""
    where = instance_of(robot, Robot, STEP, "robot").name
    if robot.loops:
        fix = "differentiate robot.open_tree(), or the algorithm closed_forward_dynamics by robot.derivatives.jvp"
        raise ModelError("derivatives of a step are not supported with closed loops", where=where, fix=fix)
    one_of(method, tuple(STEPS), where, "method")
    sizes = (("q", q, robot.nq), ("v", v, robot.nv), ("tau", tau, robot.nv))
    given = [vectors(each, size, where, what) for what, each, size in sizes]
    if external is None:
        return given, []
    wrenches, links = vectors(external, 6, where, "external"), len(robot.links)
    if wrenches.ndim < 2 or wrenches.shape[-2] != links:
        raise ModelError(f"has shape {wrenches.shape}", argument="external", where=where, allowed=f"(..., {links}, 6)")
    return given, [wrenches]


class _Maps(NamedTuple):
    """Maps of the local coordinates at u, each (..., nv, nv); see the module docstring."""

    carry: Array
    by_u: Array
    rate_by_v: Array
    rate_by_u: Array


def _maps(robot: Robot) -> AnyKernel | None:
    """Return the kernel (u, v) -> ``_Maps``, or None if all charts are trivial (plain coordinates)."""
    tree, u, v = Tree.of(robot), ca.SX.sym("u", robot.nv), ca.SX.sym("v", robot.nv)
    rate = chart_rate(tree, u, v)
    found = [ca.jacobian(chart_carry(tree, u, v), v), ca.jacobian(chart_velocity(tree, u, v), v)]
    found += [ca.jacobian(rate, v), ca.jacobian(rate, u)]
    if all(each.is_constant() for each in found):
        return None
    function = ca.Function("chart_maps", [u, v], found, ["u", "v"], list(_Maps._fields))
    return compiled(robot, "chart maps", (), lambda: function)


def _runge_kutta(robot: Robot, given: list[Array], wrenches: list[Array], h: float) -> tuple[Array, Array]:
    """Return (A, B) of a step of the Runge-Kutta method, stage by stage. Columns are (dq, dv, dtau)."""
    q, v, tau = given
    n, maps = robot.nv, robot.kernels.once("chart maps", lambda: _maps(robot))
    load = wrenches[0] if wrenches else None
    d_q, d_v, d_tau = np.split(np.eye(3 * n), 3)
    u_rate = v_rate = u_sum = v_sum = np.zeros(n)
    d_u_rate = d_v_rate = d_u_sum = d_v_sum = np.zeros((n, 3 * n))

    def at(u: Array, x: Array) -> _Maps | None:
        return None if maps is None else _Maps(*maps(u, x))

    def moved(here: _Maps | None, d_u: Array) -> Array:
        return d_q + d_u if here is None else here.carry @ d_q + here.by_u @ d_u

    for fraction, weight in STAGES:
        u, d_u = fraction * h * u_rate, fraction * h * d_u_rate
        x, d_x = v + fraction * h * v_rate, d_v + fraction * h * d_v_rate
        here = at(u, x)
        q_here = robot.kernels.call("chart", q, u)
        by_q, by_v, by_tau = robot.derivatives.forward_dynamics(q_here, x, tau, load)
        v_rate = robot.forward_dynamics(q_here, x, tau, load)
        d_v_rate = by_q @ moved(here, d_u) + by_v @ d_x + by_tau @ d_tau
        u_rate = robot.kernels.call("chart_rate", u, x)
        d_u_rate = d_x if here is None else here.rate_by_u @ d_u + here.rate_by_v @ d_x
        u_sum, v_sum = u_sum + weight * u_rate, v_sum + weight * v_rate
        d_u_sum, d_v_sum = d_u_sum + weight * d_u_rate, d_v_sum + weight * d_v_rate
    end = moved(at(h * u_sum, v), h * d_u_sum), d_v + h * d_v_sum
    whole = np.concatenate(np.broadcast_arrays(*end), axis=-2)
    return whole[..., : 2 * n], whole[..., 2 * n :]


def _made(robot: Robot, method: str, loaded: bool, contact: Contact | None) -> ca.Function:
    """Return the step of a method with constant forces and, if ``loaded``, wrenches."""
    wrenches = Source(array=np.zeros((len(robot.links), 6))) if loaded else Source()
    wrenches = with_contact(robot, wrenches, contact, method)._replace(parameters=())
    return contact_step(robot, method, forces(robot, Source(array=np.zeros(robot.nv)), wrenches, False), contact)


def _key(robot: Robot, contact: Contact | None) -> str:
    return "" if contact is None else contact.key(robot)


def _differentiated(robot: Robot, method: str, loaded: bool, contact: Contact | None) -> AnyKernel:
    """Return the kernel of the Jacobians of a step with respect to q, v and tau, first for q, then for v."""

    def make() -> ca.Function:
        step, tree = _made(robot, method, loaded, contact), Tree.of(robot)
        inputs = dict(zip(step.name_in(), symbols(step), strict=True))
        results = dict(zip(step.name_out(), step.call(list(inputs.values())), strict=True))
        found: dict[str, Any] = jacobians(inputs, results, {"q": steps(tree, inputs["q"])}, ("q", "v", "tau"))
        # The columns of E, which maps steps to changes of q, are orthogonal, so its pseudoinverse takes few operations.
        E = steps(tree, results["q_next"])
        back = ca.diag(1 / ca.sum1(E**2).T) @ E.T
        found = {name: back @ each if name.startswith("q_next") else each for name, each in found.items()}
        # If the iterations did not converge, the velocities are NaN, but the derivatives of that branch would be zero.
        solved = ca.sumsqr(results["v_next"]) < ca.inf  # the maximum in norm_inf would ignore NaN
        outputs = ca.cse([ca.if_else(solved, ca.densify(each), ca.SX.nan(*each.shape)) for each in found.values()])
        return ca.Function("step_derivatives", list(inputs.values()), outputs, list(inputs), list(found))

    return compiled(robot, f"step derivatives {method} {loaded} {_key(robot, contact)}", (), make)
