"""Compare a quadruped that stands on the ground with MuJoCo Warp, in thousands of motions on one NVIDIA GPU.

Both programs simulate the robot of contact.py in float32, with the same time step, joint springs and dampers, and a
contact stiffness with the same penetration of the feet at rest. The states at the start are those of a standing robot
with random joint errors. MuJoCo Warp uses its defaults, and takes its steps as a CUDA graph. It is left out if it is
not installed (``mujoco-warp``).
"""

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import cupy
import mujoco
import numpy as np

import torsor
from contact import FRICTION, KD, KP, STEP, depth, model, posture
from torsor.simulation import Contact, rollout

STEPS = 500
NOISE = 0.02  # standard deviation of the joint errors (rad)
WORLDS = 8192, 32768, 131072  # of MuJoCo Warp
REPEATS = 5


def standing(own: torsor.Robot, peer: Any) -> tuple[Any, float]:
    """Return MuJoCo's state of the standing robot, and the mean penetration depth of its feet (m)."""
    data, start = mujoco.MjData(peer), posture(own)
    data.qpos[:] = np.concatenate([start[:3], start[[6, 3, 4, 5]], start[7:]])
    mujoco.mj_step(peer, data, 4 * STEPS)
    return data, depth(own, own_order(data.qpos))


def own_order(qpos: Any) -> Any:
    """Return the positions of MuJoCo (..., nq) with Torsor's order of quaternions."""
    return np.concatenate([qpos[..., :3], qpos[..., 4:7], qpos[..., 3:4], qpos[..., 7:]], axis=-1)


def starts(data: Any, count: int) -> Any:
    """Return positions (count, nq) in MuJoCo's order, near those of ``data``."""
    qpos = np.tile(data.qpos, (count, 1))
    qpos[:, 7:] += np.random.default_rng(0).normal(scale=NOISE, size=(count, qpos.shape[1] - 7))
    return qpos


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the time (s) of the first call, and the median time of the next ones."""
    times = []
    for _ in range(1 + REPEATS):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return times[0], statistics.median(times[1:])


def row(name: str, count: int, first: float, seconds: float, deep: float) -> None:
    """Print a row of the table."""
    print(f"| {name} | {count:,} | {count * STEPS / seconds:.3g} | {first:.1f} s | {1e3 * deep:.2f} mm |", flush=True)


def ours(own: torsor.Robot, data: Any, stiffness: float, counts: list[int], dtype: str) -> None:
    """Measure rollouts with hard contact."""
    here = own.to(device="cuda", dtype=dtype)
    contact = Contact(kind="hard", stiffness=stiffness, friction=FRICTION)
    law = torsor.control.drives(here, posture(own), kp=KP, kd=KD)
    for count in counts:
        q = cupy.asfortranarray(cupy.asarray(own_order(starts(data, count)), dtype))
        v = cupy.zeros((count, own.nv), dtype, order="F")

        def call(q: Any = q, v: Any = v) -> torsor.simulation.Rollout:
            return rollout(here, q, v, STEPS * STEP, controller=law, contact=contact, step=STEP, record=STEPS)

        first, seconds = timed(call)
        run = call()
        assert not run.diverged.any()
        deep = float(np.mean([depth(own, each) for each in cupy.asnumpy(run.q[:100, -1]).astype(float)]))
        row(f"Torsor, {dtype}", count, first, seconds, deep)


def theirs(own: torsor.Robot, peer: Any, data: Any, counts: list[int]) -> None:
    """Measure MuJoCo Warp."""
    import mujoco_warp
    import warp

    warp.config.quiet = True
    for count in counts:
        begin = time.perf_counter()
        device_model = mujoco_warp.put_model(peer)
        device_data = mujoco_warp.put_data(peer, data, nworld=count, nconmax=8, njmax=32)
        qpos = warp.array(starts(data, count), dtype=float)
        zero = warp.zeros_like(device_data.qvel)
        mujoco_warp.step(device_model, device_data)  # compiles
        with warp.ScopedCapture() as capture:
            mujoco_warp.step(device_model, device_data)
        warp.synchronize()
        compiled = time.perf_counter() - begin

        def call(graph: Any = capture.graph, at: Any = device_data, qpos: Any = qpos, zero: Any = zero) -> None:
            warp.copy(at.qpos, qpos)
            warp.copy(at.qvel, zero)
            for _ in range(STEPS):
                warp.capture_launch(graph)
            warp.synchronize()

        first, seconds = timed(call)
        last = device_data.qpos.numpy()[:100].astype(float)
        deep = float(np.mean([depth(own, own_order(each)) for each in last]))
        row(f"MuJoCo Warp {mujoco_warp.__version__}, float32", count, compiled + first - seconds, seconds, deep)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motions", type=int, nargs="+", default=[4096, 32768, 262144])
    parser.add_argument("--worlds", type=int, nargs="+", default=WORLDS)
    given = parser.parse_args()
    own = torsor.library.quadruped()
    peer = model(own)
    data, deep = standing(own, peer)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}; MuJoCo's depth at rest: {1e3 * deep:.2f} mm; {STEPS} steps of {1e3 * STEP:g} ms\n")
    print("| program | motions | steps per second | first call | depth |\n|---|---|---|---|---|")
    stiffness = own.mass * 9.81 / 4 / deep
    for dtype in ("float32", "float64"):
        ours(own, data, stiffness, given.motions, dtype)
    if find_spec("mujoco_warp"):
        theirs(own, peer, data, given.worlds)


if __name__ == "__main__":
    main()
