"""``torsor doctor``: versions, processor, cache, extras, and a short test of the installation."""

import importlib
import platform
import shutil
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import torsor
from torsor.base.progress import working
from torsor.base.summary import titled_table
from torsor.cli.command import DOCTORED, NONE, Command
from torsor.cli.outputs import write_json
from torsor.compiler import cache
from torsor.compiler.llvm.target import host

MAX_DIFFERENCE = 1e-10  # relative, between two computations of the same quantity

# Optional packages, each with its use and its extra.
EXTRAS = {
    "mujoco": ("MJCF files", "mjcf"), "matplotlib": ("figures", "plot"), "yaml": ("YAML files", "yaml"),
    "xacro": ("xacro files", "xacro"), "robot_descriptions": ("robots by name", "robots"),
    "sympy": ("equations", "symbolic"), "coal": ("mesh distances", "collision"),
    "daqp": ("whole-body control", "wbc"), "pxr": ("USD files", "usd"), "c3d": ("C3D recordings", "mocap"),
    "viser": ("viewer", "view"), "trimesh": ("meshes", "view"), "collada": (".dae meshes", "view"),
    "distributed": ("sweeps on a cluster", "cluster"), "pyarrow": ("Parquet files", "parquet"),
    "shtab": ("shell completion", "completion"), "jax": ("derivatives in JAX", "jax"),
    "torch": ("derivatives in PyTorch", "torch"), "cupy": ("NVIDIA GPUs", "gpu"),
    "gymnasium": ("training policies", "gym"),
}  # fmt: skip


def _run(arguments: Namespace, console: Console) -> int | None:
    versions = {"torsor": torsor.__version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "casadi", "llvmlite", "rich", "threadpoolctl")}
    report: dict[str, Any] = {"versions": versions, "machine": _machine(), "cache": _cache(), "extras": _extras()}
    for title in ("versions", "machine", "cache"):
        _print(console, title, report[title])
    _print(console, "extras", {extra["package"]: _words(extra) for extra in report["extras"]})
    with working("running the self-test"):
        checks = {name: _checked(check) for name, check in CHECKS.items() if check is not _gpu or _has_gpu()}
    table = titled_table("self-test", "check", "result", "seconds", words=True)
    for name, (fault, seconds) in checks.items():
        table.add_row(escape(name), f"[red]{escape(fault)}[/red]" if fault else "[green]good[/green]", f"{seconds:.2f}")
    console.print(table)
    report["checks"] = {name: {"good": not fault, "fault": fault} for name, (fault, _) in checks.items()}
    write_json(arguments, console, report)
    if any(fault for fault, _ in checks.values()):
        console.print("Please report this with all lines above.", style="bold red")
        return NONE
    return None


def _print(console: Console, title: str, rows: Mapping[str, object]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False)
    for name, value in rows.items():
        table.add_row(escape(name), escape(str(value)))
    console.print(table)


def _machine() -> dict[str, str]:
    target = host()
    return {
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processor": f"{target.cpu}, {target.width('float64')} float64 numbers per vector",
        "package": str(torsor.__path__[0]),
        "ffmpeg": shutil.which("ffmpeg") or "not found (needed for .mp4 animations)",
    }


def _cache() -> dict[str, str]:
    info, why = cache.info(), cache.refused()
    if info.path is None or why:
        return {"cache": f"off: {why or 'TORSOR_CACHE is off'}; every process compiles its kernels again"}
    return {"folder": str(info.path), "kernels": f"{info.kernels}, {info.bytes / 1e6:.1f} MB"}


def _extras() -> list[dict[str, str]]:
    extras = []
    for name, (use, extra) in EXTRAS.items():
        try:
            module = importlib.import_module(name)
            state = str(getattr(module, "__version__", "") or version(name))
        except PackageNotFoundError:
            state = "installed"
        except ImportError as error:
            state = "" if getattr(error, "name", None) == name else f"broken: {error}"
        except Exception as error:  # installed but unusable, such as cupy without a driver
            state = f"broken: {error}"
        extras.append({"package": name, "version": state, "use": use, "extra": extra})
    return extras


def _words(extra: Mapping[str, str]) -> str:
    absent = f'not installed: pip install "torsor[{extra["extra"]}]"'
    return f"{extra['version'] or absent} ({extra['use']})"


# The self-test: each check returns a relative difference, which should be zero.


def _arm() -> tuple[torsor.Robot, Any]:
    """Return an arm and random states."""
    return torsor.library.six_axis_arm(), np.random.default_rng(1).uniform(-1.0, 1.0, (3, 64, 6))


def _inverse_and_forward() -> float:
    robot, (q, v, a) = _arm()
    return _difference(robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, a)), a)


def _machine_code() -> float:
    robot, (q, v, a) = _arm()
    return _difference(robot.inverse_dynamics(q, v, a), robot.to(device="casadi").inverse_dynamics(q, v, a))


def _energy() -> float:
    fall = torsor.simulate(torsor.library.planar_chain(2), [0.5, 0.3], duration=0.5, step=2.5e-4)
    return float(np.ptp(fall.energy) / np.ptp(fall.kinetic_energy))


def _closed_loop() -> float:
    robot = torsor.library.four_bar()
    return float(np.abs(robot.closed.error(robot.closed.positions(robot.neutral()))).max())


def _file() -> float:
    robot = torsor.library.ur5()
    with tempfile.TemporaryDirectory() as folder:
        robot.save(Path(folder, "arm.urdf"))
        again = torsor.load(Path(folder, "arm.urdf"))
    return _difference(again.mass_matrix(np.full(6, 0.3)), robot.mass_matrix(np.full(6, 0.3)))


def _has_gpu() -> bool:
    try:
        return bool(importlib.import_module("cupy").cuda.runtime.getDeviceCount())
    except Exception:  # no usable GPU; the table of extras gives the reason
        return False


def _gpu() -> float:
    cupy: Any = importlib.import_module("cupy")
    robot, (q, v, a) = _arm()
    torques = robot.to(device="cuda").inverse_dynamics(*(cupy.asarray(values) for values in (q, v, a)))
    return _difference(cupy.asnumpy(torques), robot.inverse_dynamics(q, v, a))


def _difference(computed: Any, expected: Any) -> float:
    return float(np.abs(computed - expected).max() / np.abs(expected).max())


CHECKS: dict[str, Callable[[], float]] = {
    "forward dynamics inverts inverse dynamics": _inverse_and_forward,
    "machine code agrees with CasADi": _machine_code,
    "a simulation conserves energy": _energy,
    "a closed loop is assembled": _closed_loop,
    "a robot is written as URDF and read again": _file,
    "the GPU agrees with the processor": _gpu,
}


def _checked(check: Callable[[], float]) -> tuple[str, float]:
    """Return the fault (empty if the check passes) and the time in seconds."""
    start = time.perf_counter()
    try:
        error = check()
        fault = "" if error <= MAX_DIFFERENCE else f"a relative difference of {error:.1e}, allowed: {MAX_DIFFERENCE:g}"
    except Exception as error:  # any failure is a result of this test
        fault = f"{type(error).__name__}: {error}"
    return fault, time.perf_counter() - start


_EXAMPLES = ("torsor doctor", "torsor doctor --json -")
COMMAND = Command(lambda parser: None, _run, DOCTORED, _EXAMPLES)
