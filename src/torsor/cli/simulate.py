"""``torsor simulate``: the motion of a robot from an initial state, under constant forces or a controller."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from rich.console import Console

from torsor import view
from torsor.base.checks import number
from torsor.base.errors import ModelError
from torsor.cli.command import SIMULATED, Command
from torsor.cli.outputs import add_report, check_output, check_plot, check_report, write_files, write_json
from torsor.cli.states import add_robot, as_robot, check_numbers, given_robot, home_of, number_or_list
from torsor.control import Controller, computed_torque, gravity_compensation, gravity_pd
from torsor.control.controller import Law
from torsor.mechanism import Shape
from torsor.motion import Path as JointPath
from torsor.robot.robot import Robot
from torsor.simulation import METHODS, SUFFIXES, Contact, Limits, Trajectory, simulate
from torsor.simulation.contact import KINDS, OWN
from torsor.spatial import from_rpy, make_pose

CONTROLLERS = ("pd", "computed-torque", "gravity")
_GAINS = ("kp", "kd", "bandwidth")
# What each controller takes; --target and --reference are its reference.
_TAKES = {
    "pd": ("kp", "kd", "target", "reference"),
    "computed-torque": ("kp", "kd", "bandwidth", "target", "reference"),
    "gravity": ("kd",),
}
MAX_POINTS = 50  # of a reference: each adds a term to the compiled law
DEGREE = 3  # of the spline through them: accelerations are continuous


def add_controller(parser: ArgumentParser) -> None:
    """Add the options of controllers."""
    group = parser.add_argument_group("options of a controller")
    text = "pd: PD with compensation of gravity; computed-torque: inverse dynamics; gravity: compensation alone"
    group.add_argument("--controller", choices=CONTROLLERS, help=text)
    texts = {
        "kp": "gains of positions: one, or one for each joint",
        "kd": "gains of velocities: one, or one for each joint (default of gravity: 0)",
        "bandwidth": "rad/s, in place of --kp and --kd: kp = bandwidth^2, kd = 2 bandwidth",
        "target": "positions to hold (default: the initial ones)",
    }
    for name, text in texts.items():
        group.add_argument(f"--{name}", type=float, nargs="+", metavar="NUMBER", help=text)
    text = "motion to follow: a trajectory (.csv, .npz) from --output, or from torsor predict --csv"
    group.add_argument("--reference", type=Path, metavar="FILE", help=text)
    group.add_argument("--control-period", type=float, metavar="S", help="sampling time (default: continuous)")


def given_controller(arguments: Namespace, robot: Robot, q0: list[float] | None) -> Controller | list[float] | None:
    """Return the controller of a command line, or its constant forces."""
    name: str | None = arguments.controller
    given = [each for each in (*_GAINS, "target", "reference") if getattr(arguments, each) is not None]
    if name is None:
        if given:
            fix = f"add --controller, one of {', '.join(CONTROLLERS)}"
            raise ModelError(f"--{given[0]} without a controller", where=robot.name, fix=fix)
        forces: list[float] | None = arguments.tau
        return forces
    if arguments.tau is not None:
        raise ModelError("--tau and --controller are both given", where=robot.name, allowed="one of them")
    for each in given:
        if each not in _TAKES[name]:
            allowed = ", ".join(f"--{option}" for option in _TAKES[name])
            raise ModelError(f"--{each} for the controller {name}", where=robot.name, allowed=allowed)
    driven = robot.nv - len(robot.elastic)  # joints; a motor behind a spring has the gains of its joint
    for each in _GAINS:
        check_numbers(robot, f"--{each}", getattr(arguments, each), 1, driven)
    gains: dict[str, Any] = {each: number_or_list(getattr(arguments, each)) for each in _GAINS if each in given}
    if name == "gravity":
        return gravity_compensation(robot, **gains)
    law = _reference(arguments, robot, q0)
    if name == "computed-torque":
        if gains.keys() not in ({"kp", "kd"}, {"bandwidth"}):
            found = f"gains given: {', '.join(f'--{each}' for each in gains) or 'none'}"
            raise ModelError(found, where=f"{robot.name}: {name}", allowed="--kp and --kd, or --bandwidth")
        return computed_torque(robot, law, **gains)
    for each in ("kp", "kd"):
        if each not in gains:
            raise ModelError(f"the controller pd without --{each}", where=robot.name, fix=f"add --{each}")
    return gravity_pd(robot, law, **gains)


def _reference(arguments: Namespace, robot: Robot, q0: list[float] | None) -> Law:
    """Return the positions of the joints, without the motors of elastic ones, that a controller aims at."""
    count = robot.nq - len(robot.elastic)
    if arguments.reference is not None:
        if arguments.target is not None:
            raise ModelError("--target and --reference are both given", where=robot.name, allowed="one of them")
        return _of_file(arguments.reference, robot, count)
    if arguments.target is not None:
        check_numbers(robot, "--target", arguments.target, count)
        return np.array(arguments.target)
    return np.array(robot.neutral() if q0 is None else q0)[:count]


def _of_file(file: Path, robot: Robot, count: int) -> Law:
    """Return the motion of a trajectory, by a spline through at most 50 of its samples; it ends at the last one."""
    recorded = Trajectory.load(file, robot)
    if recorded.q.ndim != 2 or len(recorded.times) <= DEGREE:
        allowed = f"one motion with {DEGREE + 1} samples or more"
        raise ModelError(f"positions of shape {recorded.q.shape}", where=file.name, allowed=allowed)
    rows = np.unique(np.linspace(0, len(recorded.times) - 1, MAX_POINTS).round().astype(int))
    times, length = recorded.times[rows] - recorded.times[0], float(recorded.times[-1] - recorded.times[0])
    path = JointPath.through(recorded.q[rows, :count], DEGREE, times / length, where=file.name)
    return lambda t: _positions(path, ca.fmin(t / length, 1))


def _positions(path: JointPath, x: ca.SX) -> ca.SX:
    """Return positions at a symbolic progress as a sum: a cubic, and a cube from each knot on, which is short code."""
    knots = np.array([0.0, *path.spline.inner, 1.0])
    third = path.positions((knots[1:] + knots[:-1]) / 2, DEGREE)  # constant between knots
    terms = [path.positions(np.array(0.0), order) * x**order / max(order, 1) for order in range(DEGREE)]
    jumps = np.vstack([third[:1], np.diff(third, axis=0)]) / 6
    cubes = [jump * ca.fmax(x - knot, 0) ** 3 for jump, knot in zip(jumps, knots, strict=False)]
    return sum((ca.SX(ca.DM(0)) + each for each in (*terms, *cubes)), start=ca.SX.zeros(len(third[0]), 1))


_PLACES = ("slope", "no_ground", "shapes", "pair")
_BOTH = ("stiffness", "friction")  # the numbers of ``Contact`` that are options of both kinds
_TEXTS = {
    "stiffness": "of a point of contact, N/m^exponent, hard: N/m (default: 1e6)",
    "friction": "Coulomb's coefficient (default: 0.8)",
    "dissipation": "compliant: s/m (default: 1)",
    "exponent": "compliant: of the depth, 1 to 3 (default: 1.5)",
    "slip": "compliant: speed below which friction is smooth, m/s (default: 0.01)",
    "relaxation": "hard: time in which penetration vanishes, s (default: 0.02)",
    "sweeps": "hard: sweeps of projected Gauss-Seidel (default: 10)",
}


def add_contact(parser: ArgumentParser) -> None:
    """Add the options of contact and of limits."""
    group = parser.add_argument_group("options of contact")
    text = "let collision shapes touch the ground, with friction: by smooth forces, or by impulses"
    group.add_argument("--contact", choices=KINDS, help=text)
    group.add_argument("--slope", type=float, metavar="RAD", help="angle at which the ground descends along x")
    group.add_argument("--no-ground", action="store_true", help="no plane z = 0: shapes of the base are the ground")
    group.add_argument("--shapes", nargs="+", metavar="NAME", help="shapes, links or frames that touch the ground")
    text = "two shapes, links or frames that touch each other; may be repeated"
    group.add_argument("--pair", nargs=2, action="append", metavar="NAME", help=text)
    for name, text in _TEXTS.items():
        group.add_argument(f"--{name}", type=int if name == "sweeps" else float, metavar="NUMBER", help=text)
    text = "enforce limits: drives saturate at their effort, and joints have stops at their position limits"
    parser.add_argument("--limits", action="store_true", help=text)


def given_contact(arguments: Namespace) -> dict[str, Any]:
    """Return the arguments ``contact`` and ``limits`` of ``simulate`` that a command line has."""
    found: dict[str, Any] = {"limits": Limits()} if arguments.limits else {}
    given = {name: value for name in _TEXTS if (value := getattr(arguments, name)) is not None}
    places = [name for name in _PLACES if getattr(arguments, name) not in (None, False)]
    kind: str | None = arguments.contact
    if kind is None:
        if places or given:
            text = f"--{next(iter([*places, *given])).replace('_', '-')} without contact"
            raise ModelError(text, fix=f"add --contact, one of {', '.join(KINDS)}")
        return found
    for name in given:
        if name not in (*_BOTH, *OWN[kind]):
            allowed = ", ".join(f"--{each}" for each in (*_BOTH, *OWN[kind]))
            raise ModelError(f"--{name} for {kind} contact", allowed=allowed)
    ground: bool | Shape = not arguments.no_ground
    if arguments.slope is not None:
        if arguments.no_ground:
            raise ModelError("--slope and --no-ground are both given", allowed="one of them")
        angle = number(arguments.slope, "contact", "slope", least=-np.pi / 2, most=np.pi / 2)
        ground = Shape("plane", pose=make_pose(from_rpy([0.0, angle, 0.0])))
    pairs = [(a, b) for a, b in arguments.pair or ()]
    found["contact"] = Contact(ground, arguments.shapes, pairs, kind=kind, **given)
    return found


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
    if arguments.json is not None:
        write_json(arguments, console, trajectory.to_dict())
    report = (arguments.report, lambda path: view.write_report(path, trajectory))
    write_files(console, (arguments.output, trajectory.save), (arguments.plot, trajectory.plot), report)


def _closed_state(robot: Robot, q0: list[float], v0: Numbers) -> tuple[list[float], Numbers]:
    """Return the initial state of a robot with loops.

    ``q0`` and ``v0`` are those of the active coordinates, or of all; the loops are closed near positions of all.
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
    "torsor simulate two_link --controller computed-torque --bandwidth 20 --target 1 1 --output reach.npz",
    "torsor simulate robot.urdf --base floating --q0 0 0 0.5 0 0 0 1 --contact hard --friction 0.4 --slope 0.2",
)
COMMAND = Command(_add_arguments, _run, SIMULATED, _EXAMPLES, {"kind": "--contact"})
