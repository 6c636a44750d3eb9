"""Compare skeletons with OpenSim: mass, poses, mass matrix, inverse and forward dynamics.

    python benchmarks/osim_reference.py FOLDER REFERENCES.json     (in an environment with opensim)
    python benchmarks/osim.py FOLDER REFERENCES.json

Differences are relative to the largest number of their kind, over all states; those of poses are in m and rad.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import torsor

KINDS = ("mass_matrix", "inverse_dynamics", "lagrange", "forward_dynamics")


def differences(path: Path, reference: dict[str, Any]) -> dict[str, float]:
    """Return the difference of a file, for each kind of number."""
    robot = torsor.load(path).to(device="casadi")
    if sorted(robot.coordinate_names) != sorted(reference["coordinates"]):
        raise ValueError(f"{path.name}: {robot.coordinate_names} beside {reference['coordinates']}")
    order = [reference["coordinates"].index(name) for name in robot.coordinate_names]
    worst = dict.fromkeys(("mass", "poses", *KINDS), 0.0)
    worst["mass"] = abs(sum(link.mass for link in robot.links) / reference["mass"] - 1)
    for state in reference["states"]:
        q, v, a = (np.array(state[key])[order] for key in "qva")
        found = {
            "mass_matrix": robot.mass_matrix(q),
            "inverse_dynamics": robot.inverse_dynamics(q, v, a),
            "lagrange": robot.inverse_dynamics(q, v, a),
            "forward_dynamics": robot.forward_dynamics(q, v, np.zeros(robot.nv)),
        }
        for kind in KINDS:
            given = np.array(state[kind])
            given = given[np.ix_(order, order)] if given.ndim == 2 else given[order]
            worst[kind] = max(worst[kind], float(np.abs(found[kind] - given).max() / np.abs(given).max()))
        poses, links = robot.poses(q), [link.name for link in robot.links]
        for body, pose in state["poses"].items():
            ours = poses[links.index(body)] if body in links else robot.pose(q, body)  # a frame, if it is welded
            worst["poses"] = max(worst["poses"], float(np.abs(ours - pose).max()))
    return worst


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("references", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", torsor.ModelWarning)
    print("| file | coordinates | mass | poses | mass matrix | inverse dynamics | Lagrange | forward dynamics |")
    print("|---|---|---|---|---|---|---|---|")
    for name, reference in json.loads(arguments.references.read_text())["files"].items():
        try:
            cells = " | ".join(f"{each:.1e}" for each in differences(arguments.folder / name, reference).values())
        except (torsor.ModelError, ValueError) as error:
            cells = f"{error} | | | | | "
        print(f"| {Path(name).stem} | {len(reference['coordinates'])} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
