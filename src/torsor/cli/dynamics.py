"""``torsor dynamics``: compute quantities of a robot for one state or a table of states."""

from argparse import ArgumentParser, Namespace

import numpy as np
from rich.console import Console

from torsor.base.arrays import Array
from torsor.base.checks import known_name
from torsor.base.errors import ModelError
from torsor.cli.command import Command
from torsor.cli.options import add_output
from torsor.cli.outputs import Quantity, print_quantity, write_quantities
from torsor.cli.states import add_robot, add_states, as_robot, given_states, load_robot, warn_of_zeros
from torsor.dynamics import ALGORITHMS
from torsor.dynamics.algorithms import size
from torsor.mechanism import Coupling
from torsor.robot.accessors import method_of
from torsor.robot.method_names import ALGORITHM_OF, PATHS
from torsor.robot.robot import Robot
from torsor.robot.state_tables import LETTERS, unit_of

_INPUTS = {*LETTERS, *(f"{letter}_active" for letter in LETTERS), "share"}
QUANTITIES = [
    name
    for name, algorithm in ALGORITHMS.items()
    if (name in PATHS or hasattr(Robot, name)) and set(algorithm.inputs) <= _INPUTS and not algorithm.hybrid
]


def _add_arguments(parser: ArgumentParser) -> None:
    add_robot(parser)
    text = "such as mass_matrix or jacobian:LINK (default: inverse_dynamics). Quantities: "
    parser.add_argument("quantities", nargs="*", metavar="QUANTITY", help=text + ", ".join(QUANTITIES))
    add_states(parser, "q v a j tau")
    add_output(parser, "a table (.csv) or arrays (.npz)", (".csv", ".npz"))


def _run(arguments: Namespace, console: Console) -> None:
    loaded = load_robot(arguments)
    robot = as_robot(loaded)
    states = given_states(arguments, loaded)
    default = "constrained_inverse_dynamics" if robot.loops and robot.active else "inverse_dynamics"
    names = [_algorithm(name) for name in arguments.quantities or [default]]
    # For a single state, CasADi's virtual machine is faster than compiling.
    engine = robot if arguments.states is not None else robot.to(device="casadi")
    quantities = [quantity for name in names for quantity in _computed(engine, name, states)]
    needed = {symbol.partition("_")[0] for name in names for symbol in ALGORITHMS[name.partition(":")[0]].inputs}
    warn_of_zeros(arguments.states, needed, states)
    if arguments.states is None:
        for quantity in quantities:
            print_quantity(console, quantity)
    else:
        shapes = ", ".join(f"{quantity.name} {'x'.join(map(str, quantity.values.shape))}" for quantity in quantities)
        console.print(f"{len(states['q'])} states: {shapes}", highlight=False, soft_wrap=True)
    write_quantities(arguments, console, robot.name, quantities, states.get("time"))


def _algorithm(name: str) -> str:
    """Return "constrained_inverse_dynamics" for "closed.inverse_dynamics", and other names as they are."""
    method, colon, place = name.partition(":")
    return ALGORITHM_OF.get(method, method) + colon + place


def _computed(robot: Robot, title: str, states: dict[str, Array]) -> list[Quantity]:
    name, _, place = title.partition(":")
    known_name(name, QUANTITIES, robot.name, "quantity")
    algorithm = ALGORITHMS[name]
    if algorithm.at_place and not place:
        raise ModelError("needs a link or frame", argument=name, where=robot.name, fix=f"write {name}:LINK")
    if place and not algorithm.at_place:
        raise ModelError("does not belong to a link or frame", argument=name, where=robot.name, fix=f"write {name}")
    inputs, active = [], [robot.coordinate_names.index(name) for name in robot.active]
    for letter, _, of_active in (symbol.partition("_") for symbol in algorithm.inputs if symbol != "share"):
        count = robot.nq if letter == "q" else robot.nv
        numbers = states.get(letter, np.zeros((*states["q"].shape[:-1], count)))
        inputs.append(numbers[..., active] if of_active else numbers)
    values = method_of(robot, name)(*inputs, *([place] if place else []))
    if not algorithm.results:
        return [_quantity(robot, title, name, values)]
    parts = zip(algorithm.results, values, strict=True)
    return [_quantity(robot, f"{title} {label}", name, value) for label, value in parts]


_WRENCH = ("nx", "ny", "nz", "fx", "fy", "fz")
_TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
_ENTRIES: dict[str | int, tuple[str, ...]] = {3: ("x", "y", "z"), 4: ("1", "2", "3", "4")}
# Units of results: the letter of the state with the same units, or one unit for all entries.
_LIKE = {"forward_dynamics": "a", "closed_forward_dynamics": "a", "constrained_forward_dynamics": "a"}
_LIKE |= {"constrained_velocities": "v", "closed_velocities": "v"}
_ALL = {"kinetic_energy": "J", "potential_energy": "J", "center_of_mass": "m"}
_ALL |= {"center_of_mass_velocity": "m/s", "center_of_mass_acceleration": "m/s^2"}
_MIXED = {"manipulability_gradient"}  # its unit depends on the selected rows


def _quantity(robot: Robot, title: str, name: str, values: Array) -> Quantity:
    axes = tuple(_labels(robot, name, axis) for axis in ALGORITHMS[name].output)
    if name in _ALL:
        return Quantity(title, np.asarray(values), axes, [_ALL[name]])
    units: list[str] = []
    if ALGORITHMS[name].output in (("n",), ("N",)) and not ALGORITHMS[name].results and name not in _MIXED:
        by_name = dict(zip(robot.coordinate_names, unit_of(robot, _LIKE.get(name, "tau")), strict=True))
        units = [by_name[name] for name in axes[0]]
    return Quantity(title, np.asarray(values), axes, units)


def _labels(robot: Robot, name: str, axis: str | int) -> tuple[str, ...]:
    """Return the names along an axis of a result; see ``dynamics.algorithms.size``."""
    known: dict[str | int, tuple[str, ...]] = {
        "n": robot.coordinate_names,
        "N": robot.active,
        "nq": robot.position_names,
        "L": robot.link_names,
        "cuts": tuple(loop.name for loop in robot.loops if not isinstance(loop, Coupling)),
        "p": robot.inertial.names,
        "rows": _TWIST,
        6: _WRENCH if "wrench" in name else _TWIST,
        **_ENTRIES,
    }
    return known.get(axis) or tuple(map(str, range(1, size(robot, axis) + 1)))


_EXAMPLES = (
    "torsor dynamics stanford --q 0 0.5 0.3 0 0.5 0",
    "torsor dynamics two_link mass_matrix joint_wrenches --q 0.3 -1.2 --json -",
    "torsor dynamics two_link jacobian:link2",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
