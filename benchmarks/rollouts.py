"""Compare a robot that stands on the ground with MuJoCo Warp, in thousands of motions on one NVIDIA GPU.

Both programs simulate the same robot in float32: the quadruped of contact.py, or that of an MJCF file (``--model``) in
its first keyframe. They have the same time step, joint springs and dampers, and a contact stiffness with the same
penetration of the lowest points at rest. The states at the start are those of a standing robot with random joint
errors. MuJoCo Warp uses its defaults or those of the file, and takes its steps as a CUDA graph. It is left out if it is
not installed (``mujoco-warp``).
"""

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import cupy
import mujoco
import numpy as np

import torsor
from contact import FRICTION, KD, KP, STEP, model, posture
from torsor.formats import Convention
from torsor.simulation import Contact, rollout
from torsor.simulation.contact import points_at

STEPS = 500
NOISE = 0.02  # standard deviation of the joint errors (rad)
WORLDS = 8192, 32768, 131072  # of MuJoCo Warp
REPEATS = 5


class Scene(NamedTuple):
    """A robot in both programs, its posture, and the gains ``kp`` and ``kd`` of its joints; None are those of the file.

    ``most`` are the numbers of contacts and of constraints for which MuJoCo Warp reserves memory.
    """

    own: torsor.Robot
    peer: Any
    posture: Any
    gains: dict[str, float]
    contact: dict[str, Any]
    most: tuple[int, int]

    def standing(self) -> tuple[Any, float]:
        """Return MuJoCo's state of the standing robot, and the mean depth of its four lowest points (m).

        A robot with loops, which MuJoCo does not close exactly, starts in its posture, with a depth of 1 mm.
        """
        data = mujoco.MjData(self.peer)
        data.qpos[:] = Convention(self.own, "mujoco").theirs(self.posture)
        data.ctrl[:] = data.qpos[7 : 7 + self.peer.nu] if self.peer.nu and not self.gains else 0
        if self.own.loops:
            return data, 1e-3
        mujoco.mj_step(self.peer, data, 4 * STEPS)
        return data, self.depth(self.own_order(data.qpos[None]))

    def own_order(self, qpos: Any) -> Any:
        """Return the positions of MuJoCo (..., nq) in Torsor's order."""
        return Convention(self.own, "mujoco").ours(qpos)

    def depth(self, q: Any) -> float:
        """Return the mean depth of the four lowest points (m) at q (N, nq)."""
        distance = points_at(self.own, Contact(kind="hard", **self.contact), q).distance
        return -float(np.sort(distance, axis=-1)[:, :4].mean())


def of_library() -> Scene:
    """Return the quadruped of contact.py."""
    own = torsor.library.quadruped()
    return Scene(own, model(own), posture(own), {"kp": KP, "kd": KD}, {"friction": FRICTION}, (8, 32))


def of_file(path: str, shapes: list[str] | None, points: int | None, kp: float) -> Scene:
    """Return the robot of an MJCF file on a plane, held in its first keyframe.

    It is held by its actuators if they have gains, in the order of the joints, and otherwise by springs ``kp`` of the
    driven joints and its own dampers.
    """
    own, spec = torsor.load(path), mujoco.MjSpec.from_file(path)
    start = next(iter(own.postures.values())).copy()
    if own.loops:
        start = own.closed.positions(start)
    contact: dict[str, Any] = {"shapes": shapes} | ({} if points is None else {"points": points})
    start[2] -= points_at(own, Contact(kind="hard", **contact), start[None]).distance.min()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], contype=1, conaffinity=1)
    spec.option.timestep = STEP
    if own.kp.any():
        return Scene(own, spec.compile(), start, {}, contact, (32, 128))
    driven = {name for name, limit in zip(own.coordinate_names, own.effort_limit, strict=True) if limit > 0}
    angles = dict(zip(own.position_names, start, strict=True))
    for joint in spec.joints:
        if joint.name in driven:
            joint.stiffness[0], joint.springref = kp, angles[joint.name]
    return Scene(own, spec.compile(), start, {"kp": kp, "kd": 0.0}, contact, (32, 128))


def starts(scene: Scene, data: Any, count: int) -> Any:
    """Return positions (count, nq) in MuJoCo's order, near those of ``data``; loops stay closed."""
    qpos = np.tile(data.qpos, (count, 1))
    if not scene.own.loops:
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


def ours(scene: Scene, data: Any, kind: str, stiffness: float, counts: list[int], dtype: str) -> None:
    """Measure rollouts with hard contact, or with compliant contact of the same stiffness."""
    own = scene.own
    here = own.to(device="cuda", dtype=dtype)
    law = {} if kind == "hard" else {"exponent": 1.0}
    contact = Contact(kind=kind, stiffness=stiffness, **law, **scene.contact)
    law = torsor.control.drives(here, scene.posture, **scene.gains)
    for count in counts:
        q = cupy.asfortranarray(cupy.asarray(scene.own_order(starts(scene, data, count)), dtype))
        v = cupy.zeros((count, own.nv), dtype, order="F")

        def call(q: Any = q, v: Any = v) -> torsor.simulation.Rollout:
            return rollout(here, q, v, STEPS * STEP, controller=law, contact=contact, step=STEP, record=STEPS)

        first, seconds = timed(call)
        run = call()
        assert not run.diverged.any()
        deep = scene.depth(cupy.asnumpy(run.q[:100, -1]).astype(float))
        row(f"Torsor, {kind}, {dtype}", count, first, seconds, deep)


def theirs(scene: Scene, data: Any, counts: list[int]) -> None:
    """Measure MuJoCo Warp."""
    import mujoco_warp
    import warp

    warp.config.quiet = True
    for count in counts:
        begin = time.perf_counter()
        device_model = mujoco_warp.put_model(scene.peer)
        contacts, rows = scene.most
        device_data = mujoco_warp.put_data(scene.peer, data, nworld=count, nconmax=contacts, njmax=rows)
        qpos = warp.array(starts(scene, data, count), dtype=float)
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
        deep = scene.depth(scene.own_order(last))
        row(f"MuJoCo Warp {mujoco_warp.__version__}, float32", count, compiled + first - seconds, seconds, deep)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motions", type=int, nargs="+", default=[4096, 32768, 262144])
    parser.add_argument("--worlds", type=int, nargs="*", default=WORLDS)
    parser.add_argument("--model", help="an MJCF file instead of the quadruped of the library")
    parser.add_argument("--shapes", nargs="+", help="shapes that touch the ground; all by default (Torsor only)")
    parser.add_argument("--points", type=int, help="largest number of contact points in a step (Torsor only)")
    parser.add_argument("--kp", type=float, default=KP, help="springs of the joints of a file without gains (N m/rad)")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--kinds", nargs="+", default=["compliant", "hard"], help="kinds of contact (Torsor only)")
    given = parser.parse_args()
    scene = of_file(given.model, given.shapes, given.points, given.kp) if given.model else of_library()
    data, deep = scene.standing()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}; MuJoCo's depth at rest: {1e3 * deep:.2f} mm; {STEPS} steps of {1e3 * STEP:g} ms\n")
    print("| program | motions | steps per second | first call | depth |\n|---|---|---|---|---|")
    stiffness = scene.own.mass * 9.81 / 4 / deep
    for kind in given.kinds:
        for dtype in given.dtypes:
            ours(scene, data, kind, stiffness, given.motions, dtype)
    if find_spec("mujoco_warp"):
        theirs(scene, data, given.worlds)


if __name__ == "__main__":
    main()
