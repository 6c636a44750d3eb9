"""``torsor info``: the links, joints, drives, loops and frames of a robot; what a recording of a person holds."""

import warnings
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from torsor import view
from torsor.base.arrays import Array
from torsor.base.errors import ModelError, ModelWarning, listing, printable
from torsor.base.summary import titled_table
from torsor.cli.command import Command
from torsor.cli.outputs import add_report, check_report, write_files, write_json
from torsor.cli.states import add_robot, add_states, as_robot, given_robot, given_states, warn_of_zeros
from torsor.human.recordings import GroundForces, Markers, MotionTable, OsimModel, Recording, load, read_osim
from torsor.human.recordings.recording import runs
from torsor.mechanism import Coupling, Wheel
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

SUFFIXES = (".trc", ".mot", ".sto", ".c3d", ".osim")
MAX_ROWS = 40  # of a table


def show_recording(name: str, console: Console) -> dict[str, Any]:
    """Print what a file holds, and return it as plain values; likely mistakes are given as warnings."""
    if Path(name).suffix.lower() == ".osim":
        return _skeleton(read_osim(name), console)
    recording = load(name)
    found: dict[str, Any] = {"file": recording.source}
    _line(console, f"[bold]{escape(printable(recording.source))}[/bold]")
    if recording.has("markers"):
        found["markers"] = _markers(recording.markers, console)
    if recording.has("forces"):
        found["forces"] = _forces(recording.forces, console)
    if recording.has("table"):
        found["table"] = _columns(recording, console)
    found["events"] = [event._asdict() for event in recording.events]
    for event in recording.events:
        _line(console, f"{event.time:.3f} s: {escape(printable(event.name))}")
    return found


def _markers(markers: Markers, console: Console) -> dict[str, Any]:
    gaps = markers.gaps()
    place = f"in {markers.unit}, axes: {markers.axes or 'unknown'}"
    _line(console, f"{len(markers.names)} markers, {_times(markers)}, {place}")
    _line(console, "Markers: " + escape(printable(", ".join(markers.names))))
    if gaps:
        rows = [(gap.marker, f"{gap.first + 1} to {gap.last + 1}", f"{gap.duration:.3f}") for gap in gaps]
        _table(console, "Gaps", ("marker", "frames", "duration (s)"), rows)
    else:
        _line(console, "No gaps.")
    return _facts(markers) | {"unit": markers.unit, "axes": markers.axes, "gaps": [gap._asdict() for gap in gaps]}


def _forces(forces: GroundForces, console: Console) -> dict[str, Any]:
    on, rows, plates = forces.loaded(), [], []
    for k, name in enumerate(forces.names):
        contacts = [(float(forces.times[first]), float(forces.times[last])) for first, last in runs(on[:, k])]
        peak = float(forces.vertical[:, k].max())
        rows.append((name, f"{peak:.1f}", "; ".join(f"{first:.3f} to {last:.3f}" for first, last in contacts)))
        plates.append({"name": name, "peak": peak, "contacts": contacts})
    _line(console, f"{len(forces.names)} force plates or feet, {_times(forces)}, axes: {forces.axes or 'unknown'}")
    _table(console, "Ground forces", ("plate or foot", "largest (N)", "loaded (s)"), rows)
    return _facts(forces) | {"axes": forces.axes, "plates": plates}


def _columns(recording: Recording, console: Console) -> dict[str, Any]:
    table = recording.table
    words = {None: "angles in an unknown unit", True: "angles in degrees", False: "angles in radians"}[table.in_degrees]
    if not recording.has("forces"):
        _line(console, f"{len(table.names)} columns, {_times(table)}, {words}")
        ends = [(np.nanmin(column, initial=np.inf), np.nanmax(column, initial=-np.inf)) for column in table.values.T]
        rows = [(name, f"{low:.6g}", f"{high:.6g}") for name, (low, high) in zip(table.names, ends, strict=True)]
        _table(console, "Columns", ("name", "least", "most"), rows)
    return _facts(table) | {"in_degrees": table.in_degrees}


def _skeleton(model: OsimModel, console: Console) -> dict[str, Any]:
    counts = f"{len(model.bodies)} bodies, {len(model.joints)} joints, {len(model.markers)} markers"
    _line(console, f"[bold]{escape(printable(model.name))}[/bold]: {model.mass:.6g} kg, {counts}")
    rows = [
        (joint.name, joint.kind, joint.parent, joint.child, ", ".join(each.name for each in joint.coordinates))
        for joint in model.joints.values()
    ]
    _table(console, "Joints", ("name", "kind", "parent", "child", "coordinates"), rows)
    return {
        "file": model.source,
        "name": model.name,
        "mass": model.mass,
        "bodies": {name: body.mass for name, body in model.bodies.items()},
        "joints": [dict(zip(("name", "kind", "parent", "child"), row, strict=False)) for row in rows],
        "coordinates": list(model.coordinates),
        "markers": {name: {"body": each.body, "location": each.location} for name, each in model.markers.items()},
    }


def _facts(data: Markers | GroundForces | MotionTable) -> dict[str, Any]:
    ends = [float(data.times[0]), float(data.times[-1])]
    return {"names": list(data.names), "frames": len(data), "rate": data.rate, "times": ends}


def _times(data: Markers | GroundForces | MotionTable) -> str:
    return f"{len(data)} frames at {data.rate:g} Hz, {data.times[0]:g} to {data.times[-1]:g} s"


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _table(console: Console, title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    more = f" (the first {MAX_ROWS} of {len(rows)})" if len(rows) > MAX_ROWS else ""
    table = titled_table(f"{title}{more}", *heads, words=True)
    for row in rows[:MAX_ROWS]:
        table.add_row(*(escape(printable(cell)) for cell in row))
    console.print(table)


SNAP = "1e-5"  # rad: pi/2 with four decimals
WORTH_SAYING = 0.03  # part of the operations
MAX_HINTS = 12  # links whose inertia is said to be suspicious, one line each
LARGEST_COUNTED = 100  # degrees of freedom; counting takes a second there


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    add_report(parser)
    add_states(parser, "q")


def _run(arguments: Namespace, console: Console) -> None:
    check_report(arguments.report)
    if Path(arguments.robot).suffix.lower() in SUFFIXES:
        if arguments.report is not None or arguments.q or arguments.states:
            raise ModelError("--report, --q or --states with a recording", where=arguments.robot, allowed="a robot")
        write_json(arguments, console, show_recording(arguments.robot, console))
        return
    given = given_robot(arguments)
    robot = as_robot(given)
    if arguments.report is None and (arguments.q or arguments.states):
        fix = "add --report FILE: they are the states of the loads in it"
        raise ModelError("--q or --states without --report", where=robot.name, fix=fix)
    states = {} if arguments.report is None else given_states(arguments, given)
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
        found = robot.closed.mobility()
        equations = f"redundant equations: {found.redundant} of {found.equations}"
        positions = "" if found.position_dof == found.dof else f" of velocities, {found.position_dof} of positions"
        console.print(f"Freedoms: {found.dof}{positions}; {equations}", highlight=False)
        console.print("Active: " + (", ".join(robot.active) or "none"), highlight=False, markup=False)
    if isinstance(given, ParallelRobot):
        legs = (f"{leg.name} ({', '.join(leg.driven) or 'no drive'})" for leg in given.legs)
        console.print(f"Platform: {given.dof} freedoms; legs and their drives: {', '.join(legs)}", highlight=False)
    if robot.frames:
        console.print("Frames: " + ", ".join(frame.name for frame in robot.frames), highlight=False, markup=False)
    _hint_of_snap(arguments, robot, console)
    _hints_of_bodies(robot, console)
    write_json(arguments, console, _as_dict(robot))
    write_files(console, (arguments.report, lambda path: _write_report(path, given, states)))


def _write_report(path: Path, given: Robot | ParallelRobot, states: dict[str, Array]) -> None:
    """Write a report with the loads of the bearings at a state, or over the states of a table."""
    robot, q = as_robot(given), states["q"]
    if q.ndim == 1:
        view.write_report(path, given, q=q)
        return
    if robot.loops and "tau" not in states:
        found = "of a robot with loops, without its forces"
        raise ModelError(found, argument="states", where=robot.name, fix="add columns 'tau NAME' to the table")
    v, a = (states.get(letter, np.zeros((len(q), robot.nv))) for letter in "va")
    tau = states["tau"] if "tau" in states else robot.inverse_dynamics(q, v, a)
    view.write_report(path, Trajectory(robot, states.get("time", np.arange(len(q), dtype=float)), q, v, a, tau))


def _as_dict(robot: Robot) -> dict[str, Any]:
    """Return the sizes, links, joints, frames and loops of a robot as plain values, in SI units."""
    link_fields, joint_fields = ("name", "mass", "com", "inertia"), ("name", "type", "parent", "child", "axis")
    limits = ("lower", "upper", "velocity_limit", "effort_limit", "coulomb", "viscous", "rotor_inertia")
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
    }


def _hints_of_bodies(robot: Robot, console: Console) -> None:
    """Name the collision shapes, meshes that are missing, and inertias that are not like those of the shapes."""
    from torsor.geometry.placed import placed_shapes
    from torsor.geometry.uniform import FACTOR, inertia_hints, missing_meshes

    kinds = Counter(each.shape.shape for each in placed_shapes(robot))
    if kinds:
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        console.print(f"Collision shapes: {counts}", highlight=False, markup=False)
    lost = missing_meshes(robot)
    if lost:
        fix = "--search FOLDER for package:// and model://"
        text = f"Meshes that are not found ({len(lost)}; {fix}): {listing(lost, most=6)}"
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
    """Say how many operations ``--snap`` would save, for a file that writes pi/2 with few digits."""
    if arguments.snap or not Path(arguments.robot).exists() or robot.loops or robot.nv > LARGEST_COUNTED:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # they were given when the robot was loaded
        snapped = as_robot(given_robot(Namespace(**vars(arguments) | {"snap": float(SNAP)})))
    if snapped != robot:
        before, after = (each.operation_count("inverse_dynamics").arithmetic for each in (robot, snapped))
        if after < (1 - WORTH_SAYING) * before:
            found = f"Angles of this file are written with few digits; with --snap {SNAP}, inverse dynamics takes"
            console.print(f"{found} {after} operations in place of {before}.", highlight=False, soft_wrap=True)


_EXAMPLES = (
    "torsor info stanford",
    "torsor info ur5 --q 0 -1 1 0 0.5 0 --report ur5.html",
    "torsor info robot.urdf --base floating --json -",
    "torsor info walk.trc",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
