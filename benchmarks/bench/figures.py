"""All measurements of ``make bench``: the best of several repeats in one process, as ratios.

Other libraries (peers) are measured if they are installed: Pinocchio (``rneaInParallel`` with one thread, and single
calls), MuJoCo, CasADi's own virtual machine and its C code compiled by gcc. The robots are those of the package
example-robot-data.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import casadi as ca
import numpy as np
from rich.console import Console
from rich.table import Table

import torsor
from bench.limits import limits
from bench.measure import STATES, Row, best, best_small, has, robot_file, robots, states
from bench.motion import derivatives, simulation
from bench.peers import Pinocchio, casadi_in_c, mujoco_call
from bench.prediction import prediction
from torsor.base.documents import header, write_document
from torsor.compiler import count_operations
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.native import emit
from torsor.compiler.llvm.target import host
from torsor.compiler.program import read_program


def _robot_rows(title: str, robot: torsor.Robot, path: Path | str | None, base: str) -> list[Row]:
    """Return the figures of one robot, compared with the peers."""
    q, v, a = states(robot)
    out_tau, out_matrix = np.empty((STATES, robot.nv)), np.empty((STATES, robot.nv, robot.nv))
    function = robot.function("inverse_dynamics")
    forces, matrix = torsor.compile(function), torsor.compile(robot.function("mass_matrix"))
    batch = best(lambda: forces(q, v, a, out=out_tau)) / STATES
    batch_matrix = best(lambda: matrix(q, out=out_matrix)) / STATES
    forward = torsor.compile(robot.function("forward_dynamics"))
    batch_forward = best(lambda: forward(q, v, a, out=out_tau)) / STATES
    q_one, v_one, a_one = q[0].copy(), v[0].copy(), a[0].copy()
    one = best_small(lambda: robot.inverse_dynamics(q_one, v_one, a_one))
    in_batch, in_one_call = f"inverse dynamics, batch, {title}", f"inverse dynamics, one call, {title}"
    forward_batch = f"forward dynamics, batch, {title}"
    rows = []
    if isinstance(path, Path) and has("pin"):
        peer = Pinocchio(path, base, STATES)
        rows += [
            Row(in_batch, batch, best(peer.batch) / STATES, "pin.rneaInParallel, 1 thread"),
            Row(forward_batch, batch_forward, best(peer.forward) / STATES, "pin.abaInParallel, 1 thread"),
            Row(f"mass matrix, batch, {title}", batch_matrix, best_small(peer.mass_matrix), "pin.crba, one call"),
            Row(in_one_call, one, best_small(peer.single), "pin.rnea, one call"),
        ]
    if has("mujoco") and not any(joint.follows for joint in robot.joints):
        rows.append(Row(in_one_call, one, best_small(mujoco_call(robot)), "mj_rne, one call"))
    generated = casadi_in_c(function, (q, v, a))
    if generated is not None:
        rows.append(Row(in_batch, batch, best(generated, least=3) / STATES, "CasADi's C, gcc -O3"))
    machine = robot.to(device="casadi")
    virtual = best(lambda: machine.inverse_dynamics(q, v, a), least=3) / STATES
    return [*rows, Row(in_batch, batch, virtual, "CasADi's virtual machine")]


def _dynamics() -> list[Row]:
    rows = []
    for title, path, base in robots():
        rows += _robot_rows(title, torsor.load(path, base=base).without_friction(), path, base)
    return rows + _robot_rows("chain of 100 links", torsor.library.planar_chain(100), None, "fixed")


def _threads() -> list[Row]:
    """Return the speedup of a second thread, and its upper limit from two independent batches."""
    robot = torsor.library.random_tree(30, seed=1, types=("revolute",), extras=False)
    batch = 32 * STATES
    inputs, out, other_out = states(robot, batch), np.empty((batch, robot.nv)), np.empty((batch, robot.nv))
    other_inputs = tuple(array.copy() for array in inputs)
    function = robot.function("inverse_dynamics")
    one, two = (torsor.compile(function, threads=threads) for threads in (1, 2))

    def apart() -> None:
        other = Thread(target=lambda: one(*other_inputs, out=other_out))
        other.start()
        one(*inputs, out=out)
        other.join()

    calls: tuple[Callable[[], Any], ...] = (lambda: one(*inputs, out=out), lambda: two(*inputs, out=out), apart)
    times: tuple[list[float], ...] = ([], [], [])
    for _ in range(100):  # alternating, so that other load on the machine affects all
        for call, spent in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    alone, shared, both = map(min, times)
    return [
        Row(f"two threads, inverse dynamics of {batch} states, 30 dof", shared, alone, "one thread"),
        Row("two independent batches at once, the limit of the machine", both / 2, alone, "one batch"),
    ]


def _compile_time() -> list[Row]:
    """Return the compile time per 10,000 operations of a large function, a Jacobian by CasADi."""
    robot = torsor.library.random_tree(24, seed=3, types=("revolute",), extras=False)
    q, v, a = (ca.SX.sym(name, robot.nv) for name in "qva")
    tau = robot.function("inverse_dynamics")(q, v, a)
    function = ca.Function("jacobian", [q, v, a], [ca.cse(ca.jacobian(tau, ca.vertcat(q, v)))])
    program = read_program(function)
    start = time.perf_counter()
    emit(write_llvm(program, (1, 1, 1, 2), "float64", host().width("float64")))
    seconds = time.perf_counter() - start
    operations = sum(count_operations(function))
    return [Row(f"compile time for 10,000 operations (of {operations})", seconds * 1e4 / operations)]


_FIRST = """
import sys, time
start = time.perf_counter()
from torsor import load
imported = time.perf_counter()
robot = load(sys.argv[1])
robot.inverse_dynamics([0.1] * robot.nq, [0.2] * robot.nv, [0.3] * robot.nv)
end = time.perf_counter()
print(end - start, end - imported)
"""


def _first_calls() -> list[Row]:
    """Return the time from import to the first result in a new process, with empty and warm cache."""
    path = robot_file("ur5_robot.urdf") or "ur5"
    cold, warm = list[list[float]](), list[list[float]]()
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            command, environment = [sys.executable, "-c", _FIRST, str(path)], os.environ | {"TORSOR_CACHE": folder}
            for times in (cold, warm):
                output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                times.append([float(word) for word in output.split()])
    return [
        Row("first ever call, UR5: import to result", min(total for total, _ in cold)),
        Row("first call, warm cache, UR5: beyond imports", min(beyond for _, beyond in warm)),
    ]


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for scale, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def run_benchmarks(output: Path | None = None, console: Console | None = None) -> list[Row]:
    """Run all benchmarks, print the tables, and write them as JSON if ``output`` is given."""
    console = console or Console()
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torsor.ModelWarning)
        with console.status("limits"):  # first, since they raise an error if they are not plausible
            reached = limits()
        for part in (_dynamics, derivatives, simulation, prediction, _threads, _compile_time, _first_calls):
            with console.status(part.__name__.strip("_").replace("_", " ")):
                rows += part()
    title = f"Torsor {torsor.__version__}, {host().width('float64')} numbers a vector"
    table = Table(title=title, title_justify="left")
    for column in ("ratio", "figure", "torsor", "peer", ""):
        table.add_column(column, justify="left" if column in ("figure", "") else "right")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}x"
        table.add_row(ratio, row.figure, _shown(row.torsor), _shown(row.peer), row.peer_name if row.peer else "")
    console.print(table)
    missing = [package for package in ("pin", "mujoco", "example-robot-data") if not has(package)]
    if missing:
        console.print(
            f"Not measured, because not installed: {', '.join(missing)}. All are in torsor[dev].", markup=False
        )
    table = Table(title="Distance to the machine's limit, inverse dynamics in batches", title_justify="left")
    for column in ("robot", "operations of a state", "instructions of a block", "arithmetic", "fraction of the peak"):
        table.add_column(column, justify="right")
    for limit in reached:
        counts = (limit.operations, limit.instructions, limit.arithmetic)
        table.add_row(limit.robot, *map(str, counts), f"{limit.reached:.0%}")
    console.print(table)
    if output is not None:
        write_document(output, document(rows, [asdict(limit) for limit in reached]))
    return rows


def document(rows: Sequence[Row], reached: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the measurements and the machine limits as plain values for JSON."""
    return {
        "torsor": header("bench"),
        "units": {"figures.torsor": "s", "figures.peer": "s"},
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("numpy", "casadi", "llvmlite")},
        "figures": [asdict(row) | {"ratio": row.ratio} for row in rows],
        "limits": list(reached),
    }
