"""The figures of derivatives, force rates and simulation."""

from functools import partial

import numpy as np

import torsor
from torsor.bench.measure import STATES, Row, best, best_batch, best_small, has, robots, states
from torsor.bench.peers import Pinocchio, mujoco_steps, with_rotors

__all__ = ["derivatives", "simulation"]


def derivatives() -> list[Row]:
    """Return the figures of derivatives and force rates: batches, and one call, beside Pinocchio's one call."""
    rows: list[Row] = []
    for title, path, base in robots()[:3]:
        if path is None:
            continue
        robot = torsor.load(path, base=base).without_friction()
        peer = Pinocchio(path, base, 2) if has("pin") else None
        q, v, a = states(robot, STATES // 4)
        one = [each[0].copy() for each in (q, v, a)]
        for what, name, peer_call, peer_name in (
            ("inverse dynamics", "inverse_dynamics_derivatives", "derivatives", "pin.computeRNEADerivatives, one call"),
            (
                "direct dynamics",
                "forward_dynamics_derivatives",
                "direct_derivatives",
                "pin.computeABADerivatives, one call",
            ),
        ):
            kernel = torsor.compile(robot.function(name))
            out = tuple(np.empty((len(q), robot.nv, robot.nv)) for _ in range(3))
            batch = best_batch(kernel, (q, v, a), out) / len(q)
            theirs = None if peer is None else best_small(getattr(peer, peer_call), 500)
            rows.append(Row(f"derivatives of {what}, batch, {title}", batch, theirs, peer_name))
            single = best_small(partial(kernel, *one), 500)
            rows.append(Row(f"derivatives of {what}, one call, {title}", single, theirs, peer_name))
        forces, rate = (torsor.compile(robot.function(each)) for each in ("inverse_dynamics", "force_rate"))
        tau, alone = np.empty_like(v), best_batch(forces, (q, v, a), np.empty_like(v)) / len(q)
        with_rate = best_batch(rate, (q, v, a, v), (tau, np.empty_like(v))) / len(q)
        rows.append(Row(f"force rates, batch, {title}", with_rate, alone, "inverse dynamics alone"))
    return rows


def simulation() -> list[Row]:
    """Return the time of a step of the elastic seven-axis arm, batched, beside MuJoCo's: RK4 in both, no contacts."""
    bare = torsor.library.elastic_seven_axis_arm()
    robot, step, count, batch = with_rotors(bare), 1e-4, 500, 1024
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-1, 1, (batch, 7)), rng.normal(size=(batch, 7))
    q, v = np.hstack([q, q]), np.hstack([v, v])  # the springs at ease

    def batched() -> torsor.Trajectory:
        return torsor.simulate(robot, q, v, duration=count * step, step=step, record=count * step)

    title, mine = "a step of RK4, 7-dof elastic arm, batch", best(batched) / (count * batch)
    if not has("mujoco"):
        return [Row(title, mine)]
    loop = mujoco_steps(bare, step, count, q[0], v[0])
    off = float(np.abs(loop() - batched().q[0, -1]).max())
    assert off < 1e-6, f"MuJoCo's arm is another one: {off} rad apart"
    return [Row(title, mine, best(loop) / count, "mj_step")]
