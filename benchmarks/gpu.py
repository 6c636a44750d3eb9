"""Measure robot methods on an NVIDIA GPU, with copy bandwidth and JAX in the same run; print tables.

    python benchmarks/gpu.py --robots FOLDER --json results.json --picture roofline.png

FOLDER contains ur5_robot.urdf and talos_reduced.urdf of example-robot-data; if it is not given, that package must be
installed. ``--sweep`` compares register limits and block sizes.
"""

import argparse
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import files
from pathlib import Path
from typing import Any

import casadi as ca
import cupy
import numpy as np

import torsor
from torsor.compiler import count_operations, read_program
from torsor.compiler.cuda.code import Plan, threads_of_block, write_kernel
from torsor.compiler.cuda.device import current
from torsor.compiler.cuda.large_functions import Budget, split
from torsor.compiler.llvm.fusion import with_reciprocals

CALLS = 5  # between two events
BYTES = 1.5e9  # of all arrays of a call
DERIVATIVES = "inverse_dynamics_derivatives"


def measured(call: Callable[[], object], repeats: int = 15) -> float:
    """Return the median time (s) of a warm call on the GPU, measured with events."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(CALLS):  # so that the GPU never waits for Python
            call()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / 1e3 / CALLS)
    return statistics.median(times)


def copy_bandwidth() -> float:
    """Return the number of bytes per second that a copy reads and writes."""
    source = cupy.ones(2**30 // 4, "float32")
    goal = cupy.empty_like(source)
    seconds = measured(lambda: cupy.copyto(goal, source))
    return 2 * source.nbytes / seconds


def arrays(shapes: Sequence[tuple[int, ...]], states: int, dtype: str, layout: str) -> list[Any]:
    """Return random arrays of many states, row by row or coordinate by coordinate."""
    found = []
    for shape in shapes:
        if layout == "rows":
            found.append(cupy.random.standard_normal((states, *shape), dtype=dtype))
        else:
            made = cupy.random.standard_normal((*shape, states), dtype=dtype)
            found.append(cupy.moveaxis(made, -1, 0))
    return found


def traced(robot: torsor.Robot, name: str) -> tuple[ca.Function, list[Any], list[Any]]:
    """Return the function of a method and the shapes of its arrays; derivatives have no structural zeros."""
    kernels = robot.kernels
    request = kernels.request(name, **({"form": "sparse"} if name == DERIVATIVES else {}))
    function = kernels.traced(request)
    inputs = list(request.inputs(robot).values())
    outputs = [(function.numel_out(k),) for k in range(function.n_out())]
    return function, inputs, outputs if name == DERIVATIVES else list(request.outputs(robot).values())


def count_of(function: ca.Function, size: int) -> int:
    """Return the number of states that fill the memory of a measurement."""
    numbers = sum(function.numel_in(k) for k in range(function.n_in()))
    numbers += sum(function.numel_out(k) for k in range(function.n_out()))
    return int(min(BYTES / (numbers * size), 2**25)) // 1024 * 1024


def method(robot: torsor.Robot, name: str, dtype: str, layout: str, bandwidth: float) -> dict[str, Any]:
    """Return the measurements of one method compiled by ``torsor.compile``."""
    function, inputs, outputs = traced(robot, name)
    size = np.dtype(dtype).itemsize
    states = count_of(function, size)
    given = arrays(inputs, states, dtype, layout)
    kernel = torsor.compile(function, dtype=dtype, device="cuda", inputs=inputs, outputs=outputs)
    start = time.perf_counter()
    first = kernel(*(each[:64] for each in given))  # writes the PTX, and the driver compiles it
    cupy.cuda.get_current_stream().synchronize()
    compiled = time.perf_counter() - start
    del first
    results = kernel(*given)
    out = results if isinstance(results, tuple) else (results,)
    seconds = measured(lambda: kernel(*given, out=out))
    numbers = sum(function.numel_in(k) for k in range(function.n_in())) + sum(each.size // states for each in out)
    operations = count_operations(function)
    cupy.get_default_memory_pool().free_all_blocks()
    rate = states / seconds
    return {
        "robot": robot.name,
        "method": name,
        "dtype": dtype,
        "layout": layout,
        "states": states,
        "rate": rate,
        "share": rate * numbers * size / bandwidth,
        "bytes": numbers * size,
        "flops": operations.arithmetic + operations.other + 19 * operations.trigonometric,
        "compile": compiled,
    }


def sweep(robot: torsor.Robot, name: str, dtype: str) -> Iterator[dict[str, Any]]:
    """Yield the rate of a method for several register budgets, with coordinate-major arrays."""
    function, inputs, outputs = traced(robot, name)
    size, device = np.dtype(dtype).itemsize, current()
    parts, states = split(with_reciprocals(read_program(function)), size), count_of(function, size)
    given = arrays([*inputs, *outputs], states, dtype, "columns")
    numbers = [n for each in given for n in (each.data.ptr, each.strides[0], 0 if each.ndim == 1 else each.strides[-1])]
    limits = {4: ((None, 1 << 30), (None, 200), (168, 120), (128, 88)), 8: ((None, 1 << 30), (None, 105), (None, 90))}
    for (registers, kept), ahead in itertools.product(limits[size], (300, 600, 2500)):
        budget = Budget(registers, kept, ahead)
        start = time.perf_counter()
        kernels = [write_kernel(part, dtype, Plan((False,) * len(given), budget)) for part in parts]
        launches = [device.load(device.translated(each.module)) for each in kernels]
        compiled = time.perf_counter() - start
        blocks = [threads_of_block(each.shared) for each in kernels]

        def call(launches: Any = launches, kernels: Any = kernels, blocks: Any = blocks) -> None:
            for launch, kernel, threads in zip(launches, kernels, blocks, strict=True):
                launch(-(-states // threads), threads, kernel.shared * threads // 32, [states, *numbers])

        row = {"robot": robot.name, "method": name, "dtype": dtype, "parts": len(parts)} | budget._asdict()
        yield row | {"rate": states / measured(call, 7), "compile": compiled}
    cupy.get_default_memory_pool().free_all_blocks()


def steps(dtype: str) -> dict[str, Any]:
    """Return the rate of Runge-Kutta steps of an elastic arm with seven joints."""
    from torsor.simulation.dynamics import forces
    from torsor.simulation.inputs import Source
    from torsor.simulation.methods import runge_kutta

    arm = torsor.library.elastic_seven_axis_arm()
    step = runge_kutta(arm, forces(arm, Source(), Source(), False))
    kernel = torsor.compile(step, dtype=dtype, device="cuda")
    states = 2**20
    q, v = arrays([(arm.nq,), (arm.nv,)], states, dtype, "columns")
    q *= 0.1
    v *= 0.1
    ends = kernel(0.0, q, v, 1e-4)
    t, h = cupy.zeros((), dtype), cupy.full((), 1e-4, dtype)

    def ten() -> None:
        for _ in range(5):
            kernel(t, q, v, h, out=ends)
            kernel(t, *ends, h, out=(q, v))

    return {"robot": arm.name, "method": "rk4 step", "dtype": dtype, "rate": 10 * states / measured(ten)}


def jax_inverse_dynamics(robot: torsor.Robot, states: int) -> float:
    """Return the number of states per second of the Newton-Euler recursion in JAX, jitted and mapped, in float32."""
    import jax
    import jax.numpy as jnp

    def turned(axis: Any, angle: Any) -> Any:
        x, y, z = axis
        K = jnp.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        return jnp.eye(3) + jnp.sin(angle) * K + (1 - jnp.cos(angle)) * (K @ K)

    def inverse_dynamics(q: Any, v: Any, a: Any) -> Any:
        motions, wrenches = [], [[jnp.zeros(3), jnp.zeros(3)] for _ in robot.links]
        for k, (joint, link) in enumerate(zip(robot.joints, robot.links, strict=True)):
            axis, parent = jnp.array(joint.axis), robot.parents[k]
            R = jnp.array(joint.placement[:3, :3]) @ turned(joint.axis, q[k])
            p = jnp.array(joint.placement[:3, 3])
            still = jnp.zeros(3), jnp.zeros(3), -jnp.array(robot.gravity)
            w0, dw0, a0 = motions[parent][:3] if parent >= 0 else still
            w = R.T @ w0 + axis * v[k]
            dw = R.T @ dw0 + axis * a[k] + jnp.cross(R.T @ w0, axis * v[k])
            acc = R.T @ (a0 + jnp.cross(dw0, p) + jnp.cross(w0, jnp.cross(w0, p)))
            motions.append((w, dw, acc, R, p))
            com, inertia = jnp.array(link.com), jnp.array(link.inertia)
            force = link.mass * (acc + jnp.cross(dw, com) + jnp.cross(w, jnp.cross(w, com)))
            moment = inertia @ dw + jnp.cross(w, inertia @ w) + jnp.cross(com, force)
            wrenches[k] = [moment, force]
        torques = [None] * len(robot.links)
        for k in reversed(range(len(robot.links))):
            moment, force = wrenches[k]
            torques[k] = robot.joints[k].axis @ moment
            parent = robot.parents[k]
            if parent >= 0:
                _, _, _, R, p = motions[k]
                wrenches[parent][0] += R @ moment + jnp.cross(p, R @ force)
                wrenches[parent][1] += R @ force
        return jnp.stack(torques)

    jax.config.update("jax_default_matmul_precision", "highest")  # products of matrices with all digits of float32
    mapped = jax.jit(jax.vmap(inverse_dynamics))
    given = jax.random.normal(jax.random.key(0), (3, states, robot.nv), dtype="float32")
    few = [np.asarray(each[:100], dtype=float) for each in given]
    error = np.abs(np.asarray(mapped(*given))[:100] - robot.inverse_dynamics(*few)).max()
    assert error < 1e-3, f"the recursion in JAX is wrong by {error}"
    times = []
    for _ in range(10):
        start = time.perf_counter()
        mapped(*given).block_until_ready()
        times.append(time.perf_counter() - start)
    return states / statistics.median(times)


def peaks() -> dict[str, float]:
    """Return the arithmetic rate of the GPU for both types (float64 as on data-centre GPUs), from its clock rate."""
    device = cupy.cuda.Device()
    attributes = device.attributes
    cores = attributes["MultiProcessorCount"] * 128
    single = 2 * cores * attributes.get("ClockRate", 1_980_000) * 1e3
    return {"float32": single, "float64": single / 2}


def picture(rows: Sequence[dict[str, Any]], bandwidth: float, limits: dict[str, float], path: str) -> None:
    """Draw the roofline: operations per second over operations per byte, for coordinate-major arrays."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    intensity = np.geomspace(1, 50, 200)
    for (dtype, peak), style in zip(limits.items(), ("-", "--"), strict=True):
        axes.loglog(intensity, np.minimum(intensity * bandwidth, peak), style, color="grey", label=f"limit, {dtype}")
    methods = list(dict.fromkeys(row["method"] for row in rows if "flops" in row))
    for row in rows:
        if row.get("layout") == "columns":
            color, single = f"C{methods.index(row['method'])}", row["dtype"] == "float32"
            face, label = color if single else "white", f"{row['robot']}, {row['method']}, {row['dtype']}"
            marker = "o" if row["robot"].startswith("ur5") else "s"
            point = row["flops"] / row["bytes"], row["rate"] * row["flops"]
            axes.plot(*point, marker, color=color, markerfacecolor=face, markersize=8, label=label.replace("_", " "))
    axes.set(xlabel="operations per byte", ylabel="operations per second")
    axes.grid(which="both", alpha=0.2)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=120)


def robot_of(folder: str | None, name: str) -> torsor.Robot:
    """Return a robot from example-robot-data."""
    if folder is not None:
        return torsor.load(Path(folder) / name)
    listed = files("example-robot-data") or []
    return torsor.load(next(Path(str(each.locate())) for each in listed if each.name == name))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", help="folder of ur5_robot.urdf and talos_reduced.urdf")
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--picture", help="file for the roofline")
    parser.add_argument("--sweep", action="store_true", help="compare limits of registers")
    given = parser.parse_args()
    robots = [robot_of(given.robots, f"{name}.urdf") for name in ("ur5_robot", "talos_reduced")]
    bandwidth = copy_bandwidth()
    print(f"copy bandwidth {bandwidth / 1e12:.2f} TB/s")
    rows: list[dict[str, Any]] = []

    def tell(row: dict[str, Any]) -> None:
        rows.append(row)
        shown = {key: f"{each:.4g}" if isinstance(each, float) else each for key, each in row.items()}
        print(" ".join(f"{key}={each}" for key, each in shown.items()), flush=True)

    for robot in robots:
        for name in ("inverse_dynamics", "forward_dynamics", DERIVATIVES):
            for dtype in ("float32", "float64"):
                if given.sweep:
                    for row in sweep(robot, name, dtype):
                        tell(row)
                else:
                    for layout in ("columns", "rows"):
                        tell(method(robot, name, dtype, layout, bandwidth))
    if not given.sweep:
        for dtype in ("float32", "float64"):
            tell(steps(dtype))
        try:
            rate = jax_inverse_dynamics(robots[0], 2**20)
            tell({"robot": robots[0].name, "method": "inverse_dynamics", "by": "JAX vmap, float32", "rate": rate})
        except ImportError:
            print("JAX is not installed")
    if given.json:
        Path(given.json).write_text(json.dumps({"bandwidth": bandwidth, "peaks": peaks(), "rows": rows}, indent=1))
    if given.picture:
        try:
            picture(rows, bandwidth, peaks(), given.picture)
        except ImportError:
            print("matplotlib is not installed: no picture")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # so that compile times are those of a first call
        os.environ["TORSOR_CACHE"] = folder
        os.environ["CUDA_CACHE_DISABLE"] = "1"
        main()
