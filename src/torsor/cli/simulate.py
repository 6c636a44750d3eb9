"""``torsor simulate``: simulate a robot under constant torques or a controller, with contact and limits."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from torsor import view
from torsor.base.checks import number
from torsor.base.errors import ModelError
from torsor.base.startup import STOPPED
from torsor.cli.command import DONE, SIMULATED, Command
from torsor.cli.options import SHARED, add_option, add_output, add_plot, add_report
from torsor.cli.outputs import write_files, write_json
from torsor.cli.states import add_robot, as_robot, check_numbers, home_of, load_robot, number_or_list
from torsor.control import (
    Controller,
    computed_torque,
    drives,
    gravity_compensation,
    gravity_pd,
    motor_equilibrium,
    reference,
)
from torsor.control.controller import JointReference
from torsor.mechanism import Shape
from torsor.mechanism.mechanism import default_posture
from torsor.robot.robot import Robot
from torsor.simulation import METHODS, SUFFIXES, Contact, Limits, simulate
from torsor.simulation.contact import KINDS, OWN
from torsor.spatial import from_rpy, make_pose

CONTROLLERS = ("pd", "computed-torque", "gravity")
_GAINS = ("kp", "kd", "bandwidth")
# The options of each controller; --setpoint and --reference are its reference.
_TAKES = {
    "pd": ("kp", "kd", "setpoint", "reference"),
    "computed-torque": ("kp", "kd", "bandwidth", "setpoint", "reference"),
    "gravity": ("kd",),
}


def add_controller(parser: ArgumentParser) -> None:
    """Declare the options of controllers."""
    group = parser.add_argument_group("controller")
    text = f"{', '.join(CONTROLLERS[:-1])} or {CONTROLLERS[-1]}. All of them compensate for gravity, except pd of a "
    text += "robot with a floating base, whose joints alone are driven"
    group.add_argument("--controller", choices=CONTROLLERS, metavar="NAME", help=text)
    texts = {
        "kp": "position gains, N m/rad (computed-torque: 1/s^2). One number, or one for each joint",
        "kd": "velocity gains, N m s/rad (computed-torque: 1/s; gravity: default 0). One number, or one for each joint",
        "bandwidth": "computed-torque: bandwidth (rad/s) instead of gains; kp = bandwidth^2, kd = 2 bandwidth",
        "setpoint": "joint positions to hold (rad, m; default: initial positions)",
    }
    for name, text in texts.items():
        metavar = "Q" if name == "setpoint" else "NUMBER"
        group.add_argument(f"--{name}", type=float, nargs="+", metavar=metavar, help=text)
    text = ": a result of simulate, predict or retime (.npz, .csv), or a table with columns 'time' and 'q NAME'"
    add_option(group, "--reference", text, type=Path)
    text = "sampling time of the controller (default: continuous)"
    group.add_argument("--control-period", type=float, metavar="S", help=text)


def given_controller(arguments: Namespace, robot: Robot, q0: list[float] | None) -> Controller | list[float] | None:
    """Return the controller, or the constant torques, given on the command line."""
    name: str | None = arguments.controller
    given = [option for option in (*_GAINS, "setpoint", "reference") if getattr(arguments, option) is not None]
    if name is None:
        if given:
            fix = f"add --controller, one of {', '.join(CONTROLLERS)}"
            raise ModelError(f"--{given[0]} needs a controller", where=robot.name, fix=fix)
        forces: list[float] | None = arguments.tau
        return forces
    if arguments.tau is not None:
        raise ModelError("--tau and --controller are both given", where=robot.name, allowed="one of them")
    for option in given:
        if option not in _TAKES[name]:
            allowed = ", ".join(f"--{known}" for known in _TAKES[name])
            raise ModelError(f"the controller {name} does not use --{option}", where=robot.name, allowed=allowed)
    driven = robot.nv - len(robot.elastic)  # joints; a motor behind a spring has the gains of its joint
    for gain in _GAINS:
        check_numbers(robot, f"--{gain}", getattr(arguments, gain), 1, driven)
    gains: dict[str, Any] = {gain: number_or_list(getattr(arguments, gain)) for gain in _GAINS if gain in given}
    floats = bool(robot.joints) and robot.joints[0].type == "free"  # no drive acts on the base
    if name == "gravity" and floats:
        found, fix = "the controller gravity would drive the floating base", "use --controller pd, or fix the base"
        raise ModelError(found, where=robot.name, allowed="robots with a fixed base", fix=fix)
    if name == "gravity":
        return gravity_compensation(robot, **gains)
    law = _reference(arguments, robot, q0)
    if name == "computed-torque":
        if gains.keys() not in ({"kp", "kd"}, {"bandwidth"}):
            found = f"the gains are {', '.join(f'--{gain}' for gain in gains) or 'missing'}"
            raise ModelError(found, where=f"{robot.name}: {name}", allowed="--kp and --kd, or --bandwidth")
        return computed_torque(robot, law, **gains)
    for gain in ("kp", "kd"):
        if gain not in gains:
            raise ModelError(f"the controller pd needs --{gain}", where=robot.name, fix=f"add --{gain}")
    return drives(robot, law, **gains) if floats else gravity_pd(robot, law, **gains)


def _reference(arguments: Namespace, robot: Robot, q0: list[float] | None) -> JointReference:
    """Return the reference positions of the joints, without motors of elastic joints."""
    count = robot.nq - len(robot.elastic)
    if arguments.reference is not None:
        if arguments.setpoint is not None:
            raise ModelError("--setpoint and --reference are both given", where=robot.name, allowed="one of them")
        file: Path = arguments.reference
        return file
    if arguments.setpoint is not None:
        check_numbers(robot, "--setpoint", arguments.setpoint, count)
        return np.array(arguments.setpoint)
    return np.array(default_posture(robot) if q0 is None else q0)[:count]


_PLACES = ("ground_pitch", "no_ground", "shapes", "pair")
_BOTH = ("stiffness", "friction")  # options of both kinds of contact
_TEXTS = {
    "stiffness": "stiffness of a contact point in N/m^exponent, or in N/m for hard contact (default: 1e6)",
    "friction": " of all contacts (default: of the shapes)",
    "dissipation": "compliant contact: dissipation in s/m (default: 1)",
    "exponent": "compliant contact: exponent of the penetration depth, 1 to 3 (default: 1.5)",
    "slip": "compliant contact: slip speed in m/s below which friction is smoothed (default: 0.01)",
    "relaxation": "hard contact: time constant in s for the decay of penetration (default: 0.02)",
    "restitution": "hard contact: coefficient of restitution, 0 to 1 (default: 0)",
    "sweeps": "hard contact: number of projected Gauss-Seidel sweeps (default: 10)",
}


def add_contact(parser: ArgumentParser) -> None:
    """Declare the options of contact and of limits."""
    group = parser.add_argument_group("contact")
    text = "contact with the ground: compliant (smooth forces) or hard (impulses). The default is no contact"
    group.add_argument("--contact", choices=KINDS, metavar="KIND", help=text)
    text = "pitch of the ground plane; if positive, it descends along x (default: 0)"
    group.add_argument("--ground-pitch", type=float, metavar="RAD", help=text)
    text = "do not add the ground plane z = 0. Shapes of the base are kept"
    group.add_argument("--no-ground", action="store_true", help=text)
    text = "shapes, links or frames that touch the ground (default: all)"
    group.add_argument("--shapes", nargs="+", metavar="NAME", help=text)
    text = "two shapes, links or frames that touch each other. The option may be repeated"
    group.add_argument("--pair", nargs=2, action="append", metavar="NAME", help=text)
    for name, text in _TEXTS.items():
        if f"--{name}" in SHARED:
            add_option(group, f"--{name}", text, type=float)
        else:
            kind = int if name == "sweeps" else float
            group.add_argument(f"--{name}", type=kind, metavar="NUMBER", help=text)
    text = "enforce the robot's torque limits, and its position limits as joint stops"
    parser.add_argument("--limits", action="store_true", help=text)


def given_contact(arguments: Namespace) -> dict[str, Any]:
    """Return the arguments ``contact`` and ``limits`` of ``simulate``."""
    settings: dict[str, Any] = {"limits": Limits()} if arguments.limits else {}
    given = {name: value for name in _TEXTS if (value := getattr(arguments, name)) is not None}
    places = [name for name in _PLACES if getattr(arguments, name) not in (None, False)]
    kind: str | None = arguments.contact
    if kind is None:
        if places or given:
            text = f"--{next(iter([*places, *given])).replace('_', '-')} needs contact"
            raise ModelError(text, fix=f"add --contact, one of {', '.join(KINDS)}")
        return settings
    for name in given:
        if name not in (*_BOTH, *OWN[kind]):
            allowed = ", ".join(f"--{option}" for option in (*_BOTH, *OWN[kind]))
            raise ModelError(f"{kind} contact does not use --{name}", allowed=allowed)
    ground: bool | Shape = not arguments.no_ground
    if arguments.ground_pitch is not None:
        if arguments.no_ground:
            raise ModelError("--ground-pitch and --no-ground are both given", allowed="one of them")
        angle = number(arguments.ground_pitch, "contact", "ground_pitch", least=-np.pi / 2, most=np.pi / 2)
        ground = Shape("plane", pose=make_pose(from_rpy([0.0, angle, 0.0])))
    pairs = [(a, b) for a, b in arguments.pair or ()]
    settings["contact"] = Contact(ground, arguments.shapes, pairs, kind=kind, **given)
    return settings


Numbers = list[float] | None


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    add_option(parser, "--duration", " (default: 1)", type=float, default=1.0)
    add_option(parser, "--step", " (default: 0.001)", type=float, default=1e-3)
    text = f"integration method (default: rk4). Methods: {', '.join(METHODS)}"
    parser.add_argument("--method", choices=METHODS, default="rk4", metavar="NAME", help=text)
    text = "time between recorded samples, at which steps end (default: every step)"
    parser.add_argument("--record", type=float, metavar="S", help=text)
    active = ". For a robot with loops, only the active coordinates are needed"
    details = f" (rad, m; default: start of the reference, posture in the file, or neutral){active}"
    add_option(parser, "--q0", details, type=float, nargs="+")
    add_option(parser, "--v0", f" (rad/s, m/s; default: zero){active}", type=float, nargs="+")
    add_option(parser, "--tau", f", constant over time (N m, N; default: zero){active}", type=float, nargs="+")
    add_controller(parser)
    add_contact(parser)
    add_output(parser, "a trajectory (.npz, .csv)", SUFFIXES)
    add_plot(parser)
    add_report(parser, ". It contains bearing loads and the motion in 3D")


def _run(arguments: Namespace, console: Console) -> int:
    loaded = load_robot(arguments)
    robot = as_robot(loaded)
    for name, count in (("q0", robot.nq), ("v0", robot.nv), ("tau", robot.nv)):
        fewer, words = ((len(robot.active),), " of the active coordinates") if robot.loops else ((), "")
        check_numbers(robot, f"--{name}", getattr(arguments, name), count, *fewer, last=words)
    q0, v0 = arguments.q0, arguments.v0
    if q0 is None and v0 is None and arguments.reference and arguments.setpoint is None and not robot.loops:
        q0, v0 = _start_of(robot, arguments.reference)
    elif q0 is None:
        q0 = home_of(loaded).tolist()
    if robot.loops:
        q0, v0 = _closed_state(robot, q0, v0)
    names = ("duration", "method", "step", "record", "control_period")
    settings = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    controller = given_controller(arguments, robot, q0)
    trajectory = simulate(robot, q0, v0, controller=controller, **settings, **given_contact(arguments))
    console.print(view.motion_table(trajectory))
    if arguments.json is not None:
        write_json(arguments, console, trajectory.to_dict())
    report = (arguments.report, lambda path: view.write_report(path, trajectory))
    write_files(console, (arguments.output, trajectory.save), (arguments.plot, trajectory.plot), report)
    return STOPPED if trajectory.status == "interrupted" else DONE


def _start_of(robot: Robot, file: Path) -> tuple[list[float], list[float] | None]:
    """Return the initial state of a reference; the motors of elastic joints are in equilibrium and at rest."""
    q, v, _ = reference(robot, file)(0.0)
    if robot.elastic:
        return motor_equilibrium(robot, q).tolist(), None
    return q.tolist(), v.tolist()


def _closed_state(robot: Robot, q0: list[float], v0: Numbers) -> tuple[list[float], Numbers]:
    """Return the initial state of a robot with loops.

    ``q0`` and ``v0`` contain the active coordinates or all. If all positions are given, they are the initial guess
    for closing the loops.
    """
    if not robot.active:
        return q0, v0
    guess = q0 if len(q0) == robot.nq else None
    active = q0 if guess is None else [q0[robot.position_names.index(name)] for name in robot.active]
    q0 = robot.closed.assemble(active, guess).tolist()
    if v0 is not None and len(v0) < robot.nv:
        v0 = robot.closed.velocities(q0, v0).tolist()
    return q0, v0


_EXAMPLES = (
    "torsor simulate two_link --q0 0.3 -1.2 --v0 1 0 --duration 0.1 --plot fall.png",
    "torsor simulate two_link --controller pd --kp 9 --kd 2 --setpoint 1 1",
    "torsor simulate quadruped --controller pd --kp 60 --kd 2 --contact hard --step 0.002",
    "torsor simulate robot.urdf --base floating --contact hard --q0 0 0 0.5 0 0 0 1",
)
_MAIN = "--duration --step --method --q0 --v0 --tau --controller --setpoint --contact --limits --output "
_MAIN += "--plot --report --json"
COMMAND = Command(_add_arguments, _run, SIMULATED, _EXAMPLES, {"kind": "--contact"}, _MAIN)
