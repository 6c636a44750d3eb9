"""``torsor info``: links, joints, motors, loops and frames of a robot, or the content of a recording or a result."""

import warnings
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from torsor import view
from torsor.base.archive import load_result
from torsor.base.arrays import Array
from torsor.base.errors import ModelError, ModelWarning, listing
from torsor.cli.command import Command
from torsor.cli.options import add_report
from torsor.cli.outputs import write_files, write_json
from torsor.cli.states import add_robot, add_states, as_robot, given_states, load_robot, warn_of_zeros
from torsor.mechanism import Coupling, Wheel
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot

SUFFIXES = (".trc", ".mot", ".sto", ".c3d", ".osim")  # files of recorded people
SNAP = "1e-5"  # rad: pi/2 with four decimals
MIN_SAVING = 0.03  # fraction of the operations
MAX_HINTS = 12  # lines about suspicious inertias
MAX_COUNTED_DOF = 100  # with this many, counting the operations takes a second


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    add_report(parser, ". It contains the bearing loads at --q or for --states")
    add_states(parser, "q")


def _run(arguments: Namespace, console: Console) -> None:
    suffix = Path(arguments.robot).suffix.lower()
    if suffix in (*SUFFIXES, ".npz"):
        if arguments.report is not None or arguments.q or arguments.states:
            found = "--report, --q and --states apply to robots, not to recordings or results"
            raise ModelError(found, where=arguments.robot, fix="omit them")
        if suffix == ".npz":
            result = load_result(arguments.robot)
            console.print(result._summary().text(), highlight=False, markup=False, soft_wrap=True)
            write_json(arguments, console, result.to_dict())
            return
        from torsor.cli.recording_info import show_recording  # slow to import

        write_json(arguments, console, show_recording(arguments.robot, console))
        return
    loaded = load_robot(arguments)
    robot = as_robot(loaded)
    if arguments.report is None and (arguments.q or arguments.states):
        raise ModelError("--q and --states need --report", where=robot.name, fix="add --report FILE")
    states = {} if arguments.report is None else given_states(arguments, loaded)
    warn_of_zeros(arguments.states, "va", states)
    size = f"{len(robot.links)} moving links, nq = {robot.nq}, nv = {robot.nv}"
    console.print(f"[bold]{escape(robot.name)}[/bold]: {size}")
    console.print(view.link_table(robot))
    console.print(view.joint_table(robot))
    drives = view.drive_table(robot)
    if drives is not None:
        console.print(drives)
    if robot.loops:
        kinds = (f"{loop.name} ({'coupling' if isinstance(loop, Coupling) else loop.kind})" for loop in robot.loops)
        wheels = any(isinstance(loop, Wheel) for loop in robot.loops)
        console.print(f"Loops{' and wheels' if wheels else ''}: " + ", ".join(kinds), highlight=False, markup=False)
        mobility = robot.closed.mobility()
        equations = f"redundant equations: {mobility.redundant} of {mobility.equations}"
        is_holonomic = mobility.position_dof == mobility.dof
        positions = "" if is_holonomic else f" in velocities, {mobility.position_dof} in positions"
        console.print(f"Degrees of freedom: {mobility.dof}{positions}; {equations}", highlight=False)
        console.print("Active: " + (", ".join(robot.active) or "none"), highlight=False, markup=False)
    if isinstance(loaded, ParallelRobot):
        legs = (f"{leg.name} ({', '.join(leg.driven) or 'no drive'})" for leg in loaded.legs)
        listed_legs = f"legs and their drives: {', '.join(legs)}"
        console.print(f"Platform: {loaded.dof} degrees of freedom; {listed_legs}", highlight=False)
    if robot.frames:
        console.print("Frames: " + ", ".join(frame.name for frame in robot.frames), highlight=False, markup=False)
    _hint_of_snap(arguments, robot, console)
    _hints_of_bodies(robot, console)
    write_json(arguments, console, _as_dict(robot))
    write_files(console, (arguments.report, lambda path: _write_report(path, loaded, states)))


def _write_report(path: Path, loaded: Robot | ParallelRobot, states: dict[str, Array]) -> None:
    """Write a report with the bearing loads for a state or a table of states."""
    robot, q = as_robot(loaded), states["q"]
    if q.ndim == 1:
        view.write_report(path, loaded, q=q)
        return
    if robot.loops and "tau" not in states:
        found = "has no torques, which a robot with loops needs"
        raise ModelError(found, argument="states", where=robot.name, fix="add columns 'tau NAME' to the table")
    from torsor.simulation import Trajectory  # slow to import

    v, a = (states.get(letter, np.zeros((len(q), robot.nv))) for letter in "va")
    tau = states["tau"] if "tau" in states else robot.inverse_dynamics(q, v, a)
    view.write_report(path, Trajectory(robot, states.get("time", np.arange(len(q), dtype=float)), q, v, a, tau))


def _as_dict(robot: Robot) -> dict[str, Any]:
    """Return the sizes, links, joints, motors, frames and loops of a robot as plain values in SI units."""
    link_fields, joint_fields = ("name", "mass", "com", "inertia"), ("name", "type", "parent", "child", "axis")
    limits = ("lower", "upper", "velocity_limit", "effort_limit", "coulomb", "viscous", "rotor_inertia", "kp", "kd")
    return {
        "name": robot.name,
        "nq": robot.nq,
        "nv": robot.nv,
        "mass": robot.mass,
        "gravity": robot.gravity,
        "positions": robot.position_names,
        "coordinates": robot.coordinate_names,
        "active": robot.active,
        "links": [{name: getattr(link, name) for name in link_fields} for link in robot.links],
        "joints": [{name: getattr(joint, name) for name in (*joint_fields, *limits)} for joint in robot.joints],
        "frames": [{"name": frame.name, "link": frame.link, "pose": frame.pose} for frame in robot.frames],
        "loops": [loop.name for loop in robot.loops],
        "elastic_motors": [f"{joint.name}/motor" for joint in robot.elastic],
    }


def _hints_of_bodies(robot: Robot, console: Console) -> None:
    """Print collision shapes, missing meshes, and inertias that do not match the shapes."""
    from torsor.geometry.placed import placed_shapes
    from torsor.geometry.uniform import FACTOR, inertia_hints, missing_meshes

    kinds = Counter(placed.shape.shape for placed in placed_shapes(robot))
    if kinds:
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        console.print(f"Collision shapes: {counts}", highlight=False, markup=False)
    lost = missing_meshes(robot)
    if lost:
        fix = "--search FOLDER for package:// and model://"
        text = f"Missing meshes ({len(lost)}; {fix}): {listing(lost, most=6)}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    hints = inertia_hints(robot)
    if hints:
        text = f"Suspicious inertias (not physical, or {FACTOR:g} times off a uniform body of the shape):"
        console.print(text, highlight=False)
    for hint in hints[:MAX_HINTS]:
        console.print(f"  link {hint.link!r}: {hint.text}", highlight=False, markup=False, soft_wrap=True)
    if len(hints) > MAX_HINTS:
        console.print(f"  and {len(hints) - MAX_HINTS} more links", highlight=False)


def _hint_of_snap(arguments: Namespace, robot: Robot, console: Console) -> None:
    """Print how many operations ``--snap`` would save for a file that writes pi/2 with few digits."""
    if arguments.snap or not Path(arguments.robot).exists() or robot.loops or robot.nv > MAX_COUNTED_DOF:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # already printed
        snapped = as_robot(load_robot(Namespace(**vars(arguments) | {"snap": float(SNAP)})))
    if snapped != robot:
        before, after = (model.operation_count("inverse_dynamics").arithmetic for model in (robot, snapped))
        if after < (1 - MIN_SAVING) * before:
            saving = f"--snap {SNAP} reduces inverse dynamics from {before} to {after} operations."
            console.print(f"Angles in this file have few digits. {saving}", highlight=False, soft_wrap=True)


_EXAMPLES = (
    "torsor info stanford",
    "torsor info ur5 --q 0 -1 1 0 0.5 0 --report ur5.html",
    "torsor info robot.urdf --base floating --json -",
    "torsor info walk.trc",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
