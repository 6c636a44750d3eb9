"""Measure the errors of methods in float32 against float64; print the table of docs/deploy/gpu.md.

    python benchmarks/single_precision.py [--device cuda] [--robots FOLDER]

For 2000 random states, the script prints the largest error of an entry relative to the largest entry of the result; the
reference is float64 on the CPU. FOLDER contains ur5_robot.urdf and talos_reduced.urdf of example-robot-data; if it is
not given, that package must be installed.
"""

import argparse
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np

import torsor
from torsor.robot.accessors import method_of

STATES = 2000
METHODS = (
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
    "joint_wrenches",
    "poses",
    "jacobian",
    "kinetic_energy",
    "momentum",
)
ROBOTS = {"UR5": "ur5_robot.urdf", "Talos": "talos_reduced.urdf"}
LONG = {("Talos", "forward_dynamics_derivatives")}  # left out: it takes minutes to compile


def robot_of(folder: str | None, name: str) -> torsor.Robot:
    """Return a robot from example-robot-data."""
    if folder is not None:
        return torsor.load(Path(folder) / name)
    listed = files("example-robot-data") or []
    return torsor.load(next(Path(str(each.locate())) for each in listed if each.name == name))


def states_of(robot: torsor.Robot, name: str) -> list[Any]:
    """Return random inputs of a method, rounded to float32: positions within half a turn, rates and forces within 1."""
    rng = np.random.default_rng(0)
    shapes = robot.kernels.request(name, *place_of(robot, name)).inputs(robot)
    largest = {key: np.pi if key == "q" else 1.0 for key in shapes}
    return [
        rng.uniform(-largest[key], largest[key], (STATES, *shape)).astype("float32") for key, shape in shapes.items()
    ]


def place_of(robot: torsor.Robot, name: str) -> list[str]:
    """Return the last link, for methods that take a link."""
    return [robot.link_names[-1]] if name == "jacobian" else []


def error_of(robot: torsor.Robot, name: str, device: str) -> float:
    """Return the largest error of a method in float32, relative to the largest entry of its result."""
    given, place = states_of(robot, name), place_of(robot, name)
    exact = tuple_of(method_of(robot, name)(*(each.astype(float) for each in given), *place))
    target = robot.to(dtype="float32", device=device)
    found = tuple_of(getattr(target, name)(*given, *place))
    host = [each.get() if hasattr(each, "get") else np.asarray(each) for each in found]  # CuPy's arrays are copied
    errors = [np.abs(ours - true).max() / np.abs(true).max() for ours, true in zip(host, exact, strict=True)]
    return float(max(errors))


def tuple_of(found: Any) -> tuple[Any, ...]:
    """Return the results of a method as a tuple."""
    return found if isinstance(found, tuple) else (found,)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where float32 is computed")
    parser.add_argument("--robots", help="folder of ur5_robot.urdf and talos_reduced.urdf")
    given = parser.parse_args()
    robots = {title: robot_of(given.robots, file) for title, file in ROBOTS.items()}
    print(f"| method | {' | '.join(robots)} |\n|---|---|---|")
    for name in METHODS:
        cells = []
        for title, robot in robots.items():
            error = None if (title, name) in LONG else error_of(robot, name, given.device)
            cells.append("" if error is None else f"{error:.0e}".replace("e-0", "e-"))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
