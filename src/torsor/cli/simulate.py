"""``torsor simulate``: the motion of a robot from an initial state, under constant forces or a controller."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from torsor import view
from torsor.cli.command import Command
from torsor.cli.contacts import add_contact, given_contact
from torsor.cli.controllers import add_controller, given_controller
from torsor.cli.outputs import (
    add_json,
    add_report,
    check_output,
    check_plot,
    check_report,
    print_paths,
    write_json,
)
from torsor.cli.robots import add_robot, as_robot, check_numbers, given_robot
from torsor.cli.states import home_of
from torsor.cli.statuses import SIMULATED
from torsor.robot.robot import Robot
from torsor.simulation import METHODS, SUFFIXES, simulate

Numbers = list[float] | None


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--duration", type=float, default=1.0, help="seconds (default: 1)")
    parser.add_argument("--step", type=float, default=1e-3, help="longest step, in seconds (default: 0.001)")
    parser.add_argument("--method", choices=METHODS, default="rk4", help="method of integration (default: rk4)")
    parser.add_argument("--record", type=float, help="seconds between two samples (default: every step)")
    active = "; for a robot with loops, those of the active coordinates are enough"
    for name, what in (("q0", "initial positions"), ("v0", "initial velocities"), ("tau", "constant forces")):
        text = f"{what} (default: zero){active}"
        parser.add_argument(f"--{name}", type=float, nargs="+", metavar="NUMBER", help=text)
    add_controller(parser)
    add_contact(parser)
    parser.add_argument("--output", type=Path, help="write the trajectory to this .npz or .csv file")
    parser.add_argument("--plot", type=Path, help="write a plot to this file")
    add_report(parser)
    add_json(parser)


def _run(arguments: Namespace, console: Console) -> None:
    given = given_robot(arguments)
    robot = as_robot(given)
    check_output(arguments.output, SUFFIXES)
    check_plot(arguments.plot)
    check_report(arguments.report)
    for name, count in (("q0", robot.nq), ("v0", robot.nv), ("tau", robot.nv)):
        fewer, words = ((len(robot.active),), " of the active coordinates") if robot.loops else ((), "")
        check_numbers(robot, f"--{name}", getattr(arguments, name), count, *fewer, last=words)
    q0, v0 = arguments.q0, arguments.v0
    if q0 is None:
        q0 = home_of(given).tolist()
    if robot.loops:
        q0, v0 = _closed_state(robot, q0, v0)
    settings = {name: getattr(arguments, name) for name in ("duration", "method", "step", "record")}
    controller = given_controller(arguments, robot, q0)
    if arguments.control_period is not None:
        settings["control_period"] = arguments.control_period
    trajectory = simulate(robot, q0, v0, controller=controller, **settings, **given_contact(arguments))
    console.print(view.motion_table(trajectory))
    if arguments.output is not None:
        trajectory.save(arguments.output)
    if arguments.plot is not None:
        trajectory.plot(arguments.plot)
    if arguments.report is not None:
        from torsor.view.report import write_report

        write_report(arguments.report, trajectory)
    write_json(arguments, console, trajectory.to_dict() if arguments.json is not None else {})
    print_paths(console, arguments.output, arguments.plot, arguments.report)


def _closed_state(robot: Robot, q0: list[float], v0: Numbers) -> tuple[list[float], Numbers]:
    """Return the initial state of a robot with loops.

    Given are the positions and velocities of the active coordinates, or of all; positions of all are the initial guess
    of the passive ones.
    """
    if not robot.active:
        return q0, v0
    if len(q0) == robot.nq:
        q0 = robot.closed.assemble([q0[robot.position_names.index(name)] for name in robot.active], guess=q0).tolist()
    else:
        q0 = robot.closed.assemble(q0).tolist()
    if v0 is not None and len(v0) < robot.nv:
        v0 = robot.closed.velocities(q0, v0).tolist()
    return q0, v0


_EXAMPLES = (
    "torsor simulate two_link --q0 0.3 -1.2 --v0 1 0 --duration 0.1 --plot fall.png",
    "torsor simulate two_link --controller computed-torque --bandwidth 20 --target 1 1 --output reach.npz",
    "torsor simulate robot.urdf --base floating --q0 0 0 0.5 0 0 0 1 --contact hard --friction 0.4 --slope 0.2",
)
COMMAND = Command(_add_arguments, _run, SIMULATED, _EXAMPLES, {"kind": "--contact"})
