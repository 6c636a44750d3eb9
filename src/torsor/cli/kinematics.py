"""``torsor kinematics``: where links and frames are, and how fast they move."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from torsor.base.arrays import Array
from torsor.base.summary import titled_table
from torsor.cli.command import Command
from torsor.cli.outputs import Quantity, check_output, print_paths, write_json, write_quantities
from torsor.cli.states import add_robot, add_states, as_robot, given_robot, given_states
from torsor.robot.robot import Robot
from torsor.spatial import to_rpy

POSITION, ANGLES = ("x", "y", "z"), ("roll", "pitch", "yaw")
TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    text = "links or frames (default: all links and frames)"
    parser.add_argument("places", nargs="*", metavar="PLACE", help=text)
    add_states(parser, "q v")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the numbers to this .csv or .npz file")


def _run(arguments: Namespace, console: Console) -> None:
    check_output(arguments.output, [".csv", ".npz"])
    given = given_robot(arguments)
    robot = as_robot(given)
    states = given_states(arguments, given)
    moving = [name for name, place in robot.places.items() if place.link >= 0]
    places = [_named(robot, name) for name in arguments.places] or moving
    tree = robot.open_tree() if arguments.states is not None else robot.open_tree().to(device="casadi")
    poses, twists = _motion(tree, places, states)
    found = [
        Quantity("position", poses[..., :3, 3], (tuple(places), POSITION), ["m"]),
        Quantity("angles", _angles(poses), (tuple(places), ANGLES), ["rad"]),
    ]
    if twists is not None:
        found.append(Quantity("twist", twists, (tuple(places), TWIST)))
    if arguments.states is None:
        _print(console, found, places)
    else:
        console.print(f"{len(poses)} states of {len(places)} links and frames", highlight=False)
    if arguments.output is not None:
        write_quantities(arguments.output, found, states.get("time"))
    write_json(arguments, console, {"robot": robot.name, **{each.name: each.as_dict() for each in found}})
    print_paths(console, arguments.output)


def _named(robot: Robot, name: str) -> str:
    robot.place(name)  # raises ModelError with the names that there are
    return name


def _motion(tree: Robot, places: list[str], states: dict[str, Array]) -> tuple[Array, Array | None]:
    """Return poses (..., P, 4, 4) in base axes and, if velocities are given, twists (..., P, 6) in own axes."""
    q = states["q"]
    on_base = {name: np.broadcast_to(tree.place(name).pose, (*q.shape[:-1], 4, 4)) for name in places}
    moving = {name: tree.place(name).link >= 0 for name in places}
    poses = [tree.pose(q, name) if moving[name] else on_base[name] for name in places]
    if "v" not in states:
        return np.stack(poses, axis=-3), None
    still = np.zeros((*q.shape[:-1], 6))
    twists = [tree.velocity(q, states["v"], name) if moving[name] else still for name in places]
    return np.stack(poses, axis=-3), np.stack(twists, axis=-2)


def _angles(poses: Array) -> Array:
    return np.array([to_rpy(each[:3, :3]) for each in poses.reshape(-1, 4, 4)]).reshape(*poses.shape[:-2], 3)


def _print(console: Console, found: list[Quantity], places: list[str]) -> None:
    poses, twists = found[:2], found[2:]
    heads = [*(f"{each} (m)" for each in POSITION), *(f"{each} (rad)" for each in ANGLES)]
    console.print(_table("Poses in base axes", heads, poses, places))
    if twists:
        heads = [f"{each} ({'rad' if each[0] == 'w' else 'm'}/s)" for each in TWIST]
        console.print(_table("Angular and linear velocities, in own axes", heads, twists, places))


def _table(title: str, heads: list[str], found: list[Quantity], places: list[str]) -> Table:
    table = titled_table(title, "link or frame", *heads)
    for k, name in enumerate(places):
        numbers = np.concatenate([each.values[k] for each in found])
        table.add_row(escape(name), *(f"{value + 0.0:.6g}" for value in numbers.round(12)))
    return table


_EXAMPLES = (
    "torsor kinematics stanford --q 0 0.5 0.3 0 0.5 0",
    "torsor kinematics two_link link2 --q 0.3 -1.2 --v 1 0 --json -",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
