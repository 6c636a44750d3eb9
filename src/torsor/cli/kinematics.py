"""``torsor kinematics``: poses and velocities of links and frames."""

from argparse import ArgumentParser, Namespace

import numpy as np
from rich.console import Console

from torsor.base.arrays import Array
from torsor.cli.command import Command
from torsor.cli.options import add_output
from torsor.cli.outputs import Quantity, print_quantity, write_quantities
from torsor.cli.states import add_robot, add_states, as_robot, given_states, load_robot
from torsor.robot.robot import Robot
from torsor.spatial import to_rpy

POSITION, ANGLES = ("x", "y", "z"), ("roll", "pitch", "yaw")
TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("places", nargs="*", metavar="PLACE", help="links or frames (default: all)")
    add_states(parser, "q v")
    add_output(parser, "a table (.csv) or arrays (.npz)", (".csv", ".npz"))


def _run(arguments: Namespace, console: Console) -> None:
    loaded = load_robot(arguments)
    robot = as_robot(loaded)
    states = given_states(arguments, loaded)
    for name in arguments.places:
        robot.place(name)  # raises ModelError for unknown names
    places = arguments.places or [name for name, place in robot.places.items() if place.link >= 0]
    tree = robot.open_tree() if arguments.states is not None else robot.open_tree().to(device="casadi")
    poses, twists = _motion(tree, places, states)
    angles = np.array([to_rpy(pose[:3, :3]) for pose in poses.reshape(-1, 4, 4)]).reshape(*poses.shape[:-2], 3)
    quantities = [
        Quantity("position", poses[..., :3, 3], (tuple(places), POSITION), ["m"]),
        Quantity("angles", angles, (tuple(places), ANGLES), ["rad"]),
    ]
    if twists is not None:
        quantities.append(Quantity("twist", twists, (tuple(places), TWIST)))
    if arguments.states is None:
        columns = [*(f"{axis} (m)" for axis in POSITION), *(f"{angle} (rad)" for angle in ANGLES)]
        values = np.concatenate([quantity.values for quantity in quantities[:2]], axis=-1).round(12)
        print_quantity(console, Quantity("Poses in base axes", values, (tuple(places), tuple(columns))))
        if twists is not None:
            columns = [f"{entry} ({'rad' if entry[0] == 'w' else 'm'}/s)" for entry in TWIST]
            title = "Angular and linear velocities, in body axes"
            print_quantity(console, Quantity(title, twists.round(12), (tuple(places), tuple(columns))))
    else:
        console.print(f"{len(poses)} states of {len(places)} links and frames", highlight=False)
    write_quantities(arguments, console, robot.name, quantities, states.get("time"))


def _motion(tree: Robot, places: list[str], states: dict[str, Array]) -> tuple[Array, Array | None]:
    """Return poses (..., P, 4, 4) in base axes and, if velocities are given, twists (..., P, 6) in body axes."""
    q = states["q"]
    batch = q.shape[:-1]
    moving = [(name, tree.place(name).link >= 0, tree.place(name).pose) for name in places]
    poses = [tree.pose(q, name) if moves else np.broadcast_to(pose, (*batch, 4, 4)) for name, moves, pose in moving]
    if "v" not in states:
        return np.stack(poses, axis=-3), None
    twists = [tree.velocity(q, states["v"], name) if moves else np.zeros((*batch, 6)) for name, moves, _ in moving]
    return np.stack(poses, axis=-3), np.stack(twists, axis=-2)


_EXAMPLES = (
    "torsor kinematics stanford --q 0 0.5 0.3 0 0.5 0",
    "torsor kinematics two_link link2 --q 0.3 -1.2 --v 1 0 --json -",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
