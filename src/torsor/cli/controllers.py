"""The controllers of ``torsor simulate``: their options, and the law that these describe."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.errors import ModelError
from torsor.cli.robots import check_numbers
from torsor.control import Controller, computed_torque, gravity_compensation, gravity_pd
from torsor.control.controller import Law
from torsor.motion import Path as JointPath
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

CONTROLLERS = ("pd", "computed-torque", "gravity")
_GAINS = ("kp", "kd", "bandwidth")
# What each controller takes; --target and --reference are its reference.
_TAKES = {
    "pd": ("kp", "kd", "target", "reference"),
    "computed-torque": ("kp", "kd", "bandwidth", "target", "reference"),
    "gravity": ("kd",),
}
MOST_POINTS = 50  # of a reference: each adds a term to the compiled law
DEGREE = 3  # of the spline through them: accelerations are continuous


def add_controller(parser: ArgumentParser) -> None:
    """Add the options of controllers."""
    group = parser.add_argument_group("options of a controller")
    group.add_argument(
        "--controller",
        choices=CONTROLLERS,
        help="pd: PD with compensation of gravity; computed-torque: inverse dynamics; gravity: compensation alone",
    )
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
    gains = {each: _one_or_all(getattr(arguments, each)) for each in _GAINS if each in given}
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


def _one_or_all(numbers: list[float]) -> Any:
    return numbers[0] if len(numbers) == 1 else numbers


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
    rows = np.unique(np.linspace(0, len(recorded.times) - 1, MOST_POINTS).round().astype(int))
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
