"""Benchmarks of derivatives, force rates and simulation."""

from functools import partial
from pathlib import Path

import casadi as ca
import numpy as np

import torsor
from bench.measure import STATES, Row, best, best_batch, best_small, has, robots, states
from bench.peers import Pinocchio, mujoco_steps, with_rotors
from torsor.robot.accessors import method_of

LARGEST = 10  # degrees of freedom for which CasADi's own Hessian is compiled


def derivatives() -> list[Row]:
    """Return the times of derivatives and force rates, in batches and in one call, compared with one Pinocchio call."""
    rows: list[Row] = []
    for title, path, base in robots()[:3]:
        robot = torsor.load(path, base=base).without_friction()
        peer = Pinocchio(path, base, 2) if isinstance(path, Path) and has("pin") else None
        q, v, a = states(robot, STATES // 4)
        one = [each[0].copy() for each in (q, v, a)]
        for what, peer_call, peer_function in (
            ("inverse", "derivatives", "computeRNEADerivatives"),
            ("forward", "forward_derivatives", "computeABADerivatives"),
        ):
            name, peer_name = f"{what}_dynamics_derivatives", f"pin.{peer_function}, one call"
            kernel = torsor.compile(robot.function(name))
            out = tuple(np.empty((len(q), robot.nv, robot.nv)) for _ in range(3))
            batch = best_batch(kernel, (q, v, a), out) / len(q)
            theirs = None if peer is None else best_small(getattr(peer, peer_call), 500)
            rows.append(Row(f"derivatives of {what} dynamics, batch, {title}", batch, theirs, peer_name))
            single = best_small(partial(method_of(robot, name), *one), 500)  # as a user calls it
            rows.append(Row(f"derivatives of {what} dynamics, one call, {title}", single, theirs, peer_name))
        forces, rate = (torsor.compile(robot.function(each)) for each in ("inverse_dynamics", "force_rate"))
        tau, alone = np.empty_like(v), best_batch(forces, (q, v, a), np.empty_like(v)) / len(q)
        with_rate = best_batch(rate, (q, v, a, v), (tau, np.empty_like(v))) / len(q)
        rows.append(Row(f"force rates, batch, {title}", with_rate, alone, "inverse dynamics alone"))
        alone = best_small(partial(robot.inverse_dynamics, *one), 2000)
        for what, name, values in (
            ("force rates", "force_rate", [*one, one[1]]),
            ("derivatives of inverse dynamics", "inverse_dynamics_derivatives", one),
        ):
            single = best_small(partial(method_of(robot, name), *values), 500)
            rows.append(Row(f"{what}, one call, {title}", single, alone, "inverse dynamics alone"))
        rows.append(_hessian(robot, title, (q, v, a, v)))
    return rows


def _hessian(robot: torsor.Robot, title: str, values: tuple[np.ndarray, ...]) -> Row:
    """Return the time of the Hessian of weighted forces, compared with CasADi's own Hessian, compiled."""
    size = 3 * robot.nv
    q, v, a, w = (ca.SX.sym(each, robot.nv) for each in "qvaw")
    mine = torsor.compile(robot.function("inverse_dynamics_hessian"))
    out, count = np.empty((len(values[0]), size, size)), len(values[0])
    time, what = best_batch(mine, values, out) / count, f"Hessian of weighted forces, batch, {title}"
    if robot.nv > LARGEST:  # CasADi's own takes a minute to compile
        return Row(what, time)
    forces = ca.dot(w, robot.function("inverse_dynamics")(q, v, a))
    own = ca.cse(ca.hessian(forces, ca.vertcat(q, v, a))[0])
    theirs = torsor.compile(ca.Function("hessian", [q, v, a, w], [own]))
    return Row(what, time, best_batch(theirs, values, out) / count, "CasADi's own Hessian, compiled here")


def simulation() -> list[Row]:
    """Return the time of a batched step of the elastic seven-axis arm, compared with MuJoCo (RK4, no contacts)."""
    bare = torsor.library.elastic_seven_axis_arm()
    robot, step, count, batch = with_rotors(bare), 1e-4, 500, 1024
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-1, 1, (batch, 7)), rng.normal(size=(batch, 7))
    q, v = np.hstack([q, q]), np.hstack([v, v])  # the springs at rest

    def batched() -> torsor.Trajectory:
        return torsor.simulate(robot, q, v, duration=count * step, step=step, record=count * step)

    title, mine = "a step of RK4, 7-joint elastic arm, batch", best(batched) / (count * batch)
    if not has("mujoco"):
        return [Row(title, mine)]
    loop = mujoco_steps(bare, step, count, q[0], v[0])
    off = float(np.abs(loop() - batched().q[0, -1]).max())
    assert off < 1e-6, f"the arm in MuJoCo moves differently: {off} rad apart"
    return [Row(title, mine, best(loop) / count, "mj_step")]
