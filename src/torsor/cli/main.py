"""The command line: ``torsor info``, ``count``, ``simulate``, ``predict``, ``export``, ``bench``, ``cache``..."""

import argparse
import re
import warnings
from collections.abc import Sequence
from inspect import signature
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape

import torsor
from torsor import library, view
from torsor.bench import run_benchmarks
from torsor.cli.predict import add_prediction
from torsor.compiler import DTYPES
from torsor.errors import ModelError, ModelWarning
from torsor.motion import MotionError
from torsor.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import METHODS, SUFFIXES, SimulationError

__all__ = ["main"]

Numbers = list[float] | None


def _ready_made() -> list[str]:
    """Return the names of the robots of the library that need no argument."""
    return [name for name in library.__all__ if not _required(name)]


def _required(name: str) -> list[str]:
    parameters = signature(getattr(library, name)).parameters.values()
    return [parameter.name for parameter in parameters if parameter.default is parameter.empty]


def _given(name: str, base: str = "fixed") -> Robot | ParallelRobot:
    """Return the robot in a file, or the robot of the library that has that name."""
    if name in _ready_made() and not Path(name).exists():
        robot: Robot | ParallelRobot = getattr(library, name)()
        if base == "floating":
            raise ModelError("the robots of the library stand on a fixed base; fix: save it as TOML and load that")
        return robot
    if not Path(name).exists():
        raise ModelError(f"{name}: no such file; allowed: a robot file, or one of {', '.join(_ready_made())}")
    return torsor.load(name, base=base)


def _robot(name: str, base: str = "fixed") -> Robot:
    """Return the robot of that name; a parallel one as a tree with loops."""
    robot = _given(name, base)
    return robot.as_robot() if isinstance(robot, ParallelRobot) else robot


def _info(arguments: argparse.Namespace, console: Console) -> None:
    given = _given(arguments.robot, arguments.base)
    robot = given.as_robot() if isinstance(given, ParallelRobot) else given
    console.print(
        f"[bold]{escape(robot.name)}[/bold]: {len(robot.links)} moving links, nq = {robot.nq}, nv = {robot.nv}"
    )
    console.print(view.link_table(robot))
    console.print(view.joint_table(robot))
    drives = view.drive_table(robot)
    if drives is not None:
        console.print(drives)
    if robot.loops:
        loops = (f"{loop.name} ({getattr(loop, 'kind', 'coupling')})" for loop in robot.loops)
        console.print("Loops: " + ", ".join(loops), highlight=False, markup=False)
        can = robot.mobility()
        console.print(f"Freedoms: {can.dof}; redundant equations: {can.redundant} of {can.equations}", highlight=False)
        console.print("Active: " + (", ".join(robot.active) or "none"), highlight=False, markup=False)
    if isinstance(given, ParallelRobot):
        legs = (f"{leg.name} ({', '.join(leg.driven) or 'no drive'})" for leg in given.legs)
        console.print(f"Platform: {given.dof} freedoms; legs and their drives: {', '.join(legs)}", highlight=False)
    if robot.frames:
        console.print("Frames: " + ", ".join(frame.name for frame in robot.frames), highlight=False, markup=False)


def _count(arguments: argparse.Namespace, console: Console) -> None:
    console.print(view.count_table(_robot(arguments.robot, arguments.base)))


def _start(robot: Robot, q0: Numbers, v0: Numbers) -> tuple[Numbers, Numbers]:
    """Return the state at the start. With loops it may be that of the active coordinates alone, or a guess of all."""
    if not robot.loops:
        return q0, v0
    if q0 is None:
        q0 = robot.closed_positions(robot.neutral()).tolist()
    elif not robot.active:
        return q0, v0
    elif len(q0) == len(robot.active):
        q0 = robot.assemble(q0).tolist()
    elif len(q0) == robot.nq:
        q0 = robot.assemble([q0[robot.position_names.index(name)] for name in robot.active], guess=q0).tolist()
    if v0 is not None and len(v0) == len(robot.active) < robot.nv:
        v0 = robot.constrained_velocities(q0, v0).tolist()
    return q0, v0


def _simulate(arguments: argparse.Namespace, console: Console) -> None:
    given = _given(arguments.robot, arguments.base)
    robot = given.as_robot() if isinstance(given, ParallelRobot) else given
    if arguments.output is not None and arguments.output.suffix.lower() not in SUFFIXES:
        allowed = ", ".join(SUFFIXES)
        raise ModelError(f"{arguments.output}: the suffix is {arguments.output.suffix!r}; allowed: {allowed}")
    if isinstance(given, ParallelRobot) and arguments.q0 is None:
        arguments.q0 = [*given.home.tolist(), *given.leg_home.tolist()]
    q0, v0 = _start(robot, arguments.q0, arguments.v0)
    trajectory = torsor.simulate(
        robot,
        q0,
        v0,
        arguments.duration,
        controller=arguments.tau,
        method=arguments.method,
        step=arguments.step,
        record=arguments.record,
    )
    console.print(view.motion_table(trajectory))
    if arguments.output is not None:
        trajectory.save(arguments.output)
    if arguments.plot is not None:
        trajectory.plot(arguments.plot)
    for path in filter(None, (arguments.output, arguments.plot)):
        console.print(escape(str(path)), highlight=False, soft_wrap=True)


def _demo(arguments: argparse.Namespace, console: Console) -> None:
    robot = library.six_axis_arm()
    start, end, duration = np.array([0, 0.8, -2.4, 0, 0.5, 0]), np.array([1.2, -0.4, -0.6, 1.0, -0.6, 2.0]), 1.5
    s = np.linspace(0, 1, 151)[:, None]
    # A quintic: it starts and ends without speed and without acceleration.
    q = start + (end - start) * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = (end - start) * (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    a = (end - start) * (60 * s - 180 * s**2 + 120 * s**3) / duration**2
    console.print("A six-axis arm (PUMA 560), half a second into a move of 1.5 s.\n")
    console.print(view.link_table(robot))
    console.print(view.joint_table(robot))
    console.print(view.state_table(robot, q[50], v[50], a[50]))
    console.print(view.count_table(robot))
    view.plot_motion(robot, s[:, 0] * duration, q, v, a, arguments.output)
    console.print(f"\nThe whole move is drawn in [bold]{escape(str(arguments.output))}[/bold].")


def _bench(arguments: argparse.Namespace, console: Console) -> None:
    run_benchmarks(arguments.json, console)


def _cache(arguments: argparse.Namespace, console: Console) -> None:
    if arguments.clear:
        console.print(f"{torsor.cache.clear()} kernels removed")
    found = torsor.cache.info()
    place = "off" if found.path is None else escape(str(found.path))
    console.print(
        f"cache: {place}, {found.kernels} kernels, {found.bytes / 1e6:.1f} MB", highlight=False, soft_wrap=True
    )


def _export(arguments: argparse.Namespace, console: Console) -> None:
    robot = _robot(arguments.robot, arguments.base)
    settings = {"dtype": arguments.dtype, "name": arguments.name, "prefix": arguments.prefix}
    for path in robot.export_c(arguments.folder, arguments.names, **settings):
        console.print(escape(str(path)), highlight=False, soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torsor", description="Exact dynamics of robots, by Newton-Euler recursion.")
    parser.add_argument("--version", action="version", version=f"torsor {torsor.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    made = {}
    for name, run, summary in (
        ("info", _info, "show the links, joints and frames of a robot"),
        ("count", _count, "count the operations of its traced algorithms"),
        ("simulate", _simulate, "let it move from a state, and save or draw the motion"),
        ("export", _export, "write its algorithms as C source for controllers"),
    ):
        command = commands.add_parser(name, help=summary, description=summary)
        command.add_argument(
            "robot", metavar="ROBOT", help=f"a .urdf, .xml or .toml file, or {', '.join(_ready_made())}"
        )
        command.add_argument("--base", choices=("fixed", "floating"), default="fixed", help="how the root is held")
        command.set_defaults(run=run)
        made[name] = command
    made["export"].add_argument("folder", metavar="FOLDER", type=Path, help="where the C files go")
    made["export"].add_argument(
        "--names", nargs="+", default=["inverse_dynamics"], help="algorithms (name or name:link)"
    )
    made["export"].add_argument("--dtype", choices=DTYPES, default="float64", help="type of the numbers")
    made["export"].add_argument("--name", default="torsor_kernels", help="name of the files and of the library")
    made["export"].add_argument("--prefix", default="", help="what the names of the C functions begin with")
    _simulation_options(made["simulate"])
    add_prediction(commands.add_parser("predict", help="find an optimal motion, and save or draw it"))
    bench = commands.add_parser("bench", help="measure Torsor beside its peers")
    bench.add_argument("--json", type=Path, help="also write the figures to this file")
    bench.set_defaults(run=_bench)
    store = commands.add_parser("cache", help="show or clear the compiled kernels on disk")
    store.add_argument("--clear", action="store_true", help="remove them")
    store.set_defaults(run=_cache)
    demo = commands.add_parser("demo", help="show what there is, on an industrial arm, and save a plot")
    demo.add_argument("--output", type=Path, default=Path("demo.png"), help="where the plot goes (default: demo.png)")
    demo.set_defaults(run=_demo)
    return parser


def _simulation_options(command: argparse.ArgumentParser) -> None:
    # By itself, argparse takes -1e-3 for an option.
    command._negative_number_matcher = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
    command.add_argument("--duration", type=float, default=1.0, help="seconds (default: 1)")
    command.add_argument("--step", type=float, default=1e-3, help="longest step, in seconds (default: 0.001)")
    command.add_argument("--method", choices=METHODS, default="rk4", help="how to integrate (default: rk4)")
    command.add_argument("--record", type=float, help="seconds between two samples (default: every step)")
    of = "; of a robot with loops, those of the active coordinates are enough"
    for name, what in (("q0", "positions at the start"), ("v0", "velocities at the start"), ("tau", "constant forces")):
        command.add_argument(f"--{name}", type=float, nargs="+", metavar="NUMBER", help=f"{what} (default: zero){of}")
    command.add_argument("--output", type=Path, help="where the trajectory goes: a .npz or .csv file")
    command.add_argument("--plot", type=Path, help="where a plot goes")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 after an error that is the input's, 130 after Ctrl-C.

    Example:
        >>> main(["info", "no_such_robot"])
        1
    """
    arguments = _parser().parse_args(argv)
    console, errors = Console(), Console(stderr=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            arguments.run(arguments, console)
            status = 0
        except (ValueError, OSError, ImportError, SimulationError, MotionError) as error:
            errors.print(f"[bold red]error[/bold red]: {escape(str(error))}", highlight=False, soft_wrap=True)
            status = 1
        except KeyboardInterrupt:
            errors.print("stopped by Ctrl-C, before there was anything to keep", highlight=False, soft_wrap=True)
            status = 130
    for warning in caught:
        errors.print(f"[yellow]warning[/yellow]: {escape(str(warning.message))}", highlight=False, soft_wrap=True)
    return status
