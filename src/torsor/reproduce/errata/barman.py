"""Errata of Barman 2020."""

from collections.abc import Callable
from functools import cache

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.reproduce.equations import barman
from torsor.reproduce.equations.form import Form
from torsor.reproduce.errata.erratum import Decision, by_place, compare, decide, derivative, words
from torsor.reproduce.samples import standard

STEP = 1e-30  # of complex steps


@cache
def by_complex_steps() -> tuple[Array, ...]:
    """Return the Jacobians of tau, Fp and Tp with respect to q, qd and qdd, by complex steps of the sample's forces."""
    data, _, state, load, _ = standard()
    columns = []
    for step in STEP * np.eye(3 * len(data.m)):
        q, qd, qdd = np.array(state) + 1j * step.reshape(3, -1)
        columns.append([force.imag / STEP for force in barman.inverse_dynamics(data, q, qd, qdd, load)])
    whole = (np.moveaxis(np.array(each), 0, -1) for each in zip(*columns, strict=True))
    return tuple(part for each in whole for part in np.split(each, 3, axis=-1))


def sensitivities(form: Form) -> tuple[Array, ...]:
    """Return the Jacobians of tau, Fp and Tp from the equations of the document."""
    data, _, state, load, _ = standard()
    return tuple(part for each in barman.sensitivities(data, *state, load, form) for part in each[1:])


def _sensitivities(place: str) -> Decision:
    return compare(place, by_complex_steps(), sensitivities)


def _forces(place: str) -> Decision:
    data, robot, state, load, external = standard()
    truth = robot.inverse_dynamics(*state, external=external)
    return compare(place, truth, lambda form: barman.sensitivities(data, *state, load, form).tau.x)


def _velocities() -> Decision:
    data, robot, (q, qd, _), *_ = standard()
    truth = np.array([robot.jacobian(q, link)[3:] for link in range(robot.nv)])
    return compare("3.40", truth, lambda form: barman.velocities(data, q, qd, form)[1])


def _positions() -> Decision:
    """Compare the origins x_j in frame j, 3.26, with Δx_j and with the vectors Δx_Gj that step 2 defines."""
    data, robot, (q, _, _), *_ = standard()

    def origins(step: Callable[[barman.Link], Array]) -> Array:
        x = [np.zeros(3)]
        for j in range(len(data.m)):
            link = barman.Link(data, j, q)
            x.append(link.R.T @ x[-1] + step(link))
        return np.array(x[1:])

    truth = np.array([pose[:3, :3].T @ pose[:3, 3] for pose in robot.poses(q)])
    return decide(truth, origins(lambda link: link.Dx), origins(lambda link: link.DxG))


def _axes() -> Decision:
    robot, (q, _, _) = standard().robot, standard().state
    axis = robot.poses(q)[2, :3, :3] @ robot.jacobian(q, 2)[:3, 2]  # about which joint 3 turns
    frames = robot.poses(q)[:, :3, 2]
    return decide(axis, frames[1], frames[0])


def _reactions() -> Decision:
    data, robot, state, load, external = standard()
    _, Fp, _ = barman.inverse_dynamics(data, *state, load)
    return decide(robot.joint_wrenches(*state, external=external)[:, 3:], Fp, -Fp)


def _control_point() -> Decision:
    """Compare torque derivatives with respect to a control point of one joint and the duration, at the same t / T."""
    robot, T = library.two_link().to(device="casadi"), 0.4
    q, v, a = np.random.default_rng(7).normal(size=(3, 2))
    by_q, by_v, by_a = robot.derivatives.inverse_dynamics(q, v, a)

    def torques(longer: float) -> Array:  # q(s) with s = t / T: v is proportional to 1/T, a to 1/T^2
        ratio = T / (T + longer)
        return np.asarray(robot.inverse_dynamics(q, v * ratio, a * ratio**2))

    truth = derivative(torques, 1e-6 * T)
    return decide(truth, -by_v @ v / T - 2 * by_a @ a / T, 0 * by_q @ q)


def _arm_and_leg() -> Decision:
    """Test whether the constraint prevents an arm and the opposite leg from swinging in opposite directions."""

    def pendulum(angle: float) -> Array:  # y is up, z forward
        return np.array([0.0, -np.cos(angle), np.sin(angle)])

    def forbids(n: Array) -> bool:
        return bool((pendulum(0.4) @ n) * (pendulum(-0.4) @ n) < 0)

    return words(forbids(np.array([0.0, 0.0, 1.0])), forbids(np.array([0.0, 1.0, 0.0])))


DECISIONS = {
    "chapter-2": _axes,
    "nomenclature": _reactions,
    "step-2": _positions,
    "eq-3.40": _velocities,
    "eq-4.15": _control_point,
    "eq-5.6": _arm_and_leg,
    **by_place(_sensitivities, "3.13", "3.18", "3.51", "3.52", "3.79", "3.83", "3.85"),
    **by_place(_forces, "3.56", "3.76", "3.84"),
}
