"""Compare robots that another program converted from URDF to USD with the same robots read from URDF.

    pip install urdf-usd-converter
    python benchmarks/usd_converters.py [FILE ...]

If no files are given, all URDF files of the package example-robot-data are used, with a floating base. The mass matrix
is compared at a random state. The converter does not write masses of 0. UsdPhysics then assigns the density of water to
collision shapes, and uses their centre in place of a missing centre of mass. Robots with such links, which are detected
by a warning or by a difference between links, are counted separately.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import files
from pathlib import Path

import numpy as np

import torsor


def converted(path: Path, folder: Path) -> Path | None:
    """Return the stage of a URDF file, or None if the converter fails; packages are next to the folder of robots."""
    package = f"example-robot-data={path.parents[3]}"
    command = ["urdf_usd_converter", str(path), str(folder), "--package", package]
    subprocess.run(command, capture_output=True, check=False, timeout=600)
    return next(iter(folder.glob("*.usda")), None)


def difference(robot: torsor.Robot, other: torsor.Robot) -> float:
    """Return the largest difference of the mass matrices at a random state, relative to the largest number."""
    rng = np.random.default_rng(2)
    q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv))
    positions = [robot.position_names.index(name) for name in other.position_names]
    order = [robot.coordinate_names.index(name) for name in other.coordinate_names]
    M, N = robot.mass_matrix(q)[np.ix_(order, order)], other.mass_matrix(q[positions])
    return float(np.abs(M - N).max() / np.abs(M).max())


def same_links(robot: torsor.Robot, other: torsor.Robot) -> bool:
    """Return whether the links of both robots have the same masses and centres of mass."""
    here, there = ({link.name: link for link in (each.base, *each.links)} for each in (robot, other))
    both = [(here[name], there[name]) for name in here if name in there]
    close = (np.allclose([a.mass, *a.com], [b.mass, *b.com], rtol=1e-5, atol=1e-7) for a, b in both)
    return here.keys() == there.keys() and all(close)


def main() -> int:
    """Compare, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    listed = [Path(str(each.locate())) for each in files("example-robot-data") or [] if each.name.endswith(".urdf")]
    found, apart, reasons = list[float](), 0, list[str]()
    warnings.simplefilter("ignore")
    for path in parser.parse_args().files or sorted(each.resolve() for each in listed):
        with tempfile.TemporaryDirectory() as folder:
            try:
                robot = torsor.load(path, base="floating").to(device="casadi")
                stage = converted(path, Path(folder, path.stem))
                if stage is None:
                    reasons.append(f"{path.stem}: not converted")
                    continue
                other = torsor.load(stage, base="floating").to(device="casadi")
            except torsor.ModelError as error:
                reasons.append(f"{path.stem}: {str(error)[:200]}")
                continue
        if set(robot.coordinate_names) != set(other.coordinate_names):
            reasons.append(f"{path.stem}: {other.nv} coordinates in place of {robot.nv}, or others")
        elif not same_links(robot, other):
            apart += 1
        else:
            found.append(difference(robot, other))
            if found[-1] > 1e-6:
                reasons.append(f"{path.stem}: difference {found[-1]:.1e}")
    print("| robots | median difference | largest | with masses that the converter leaves out |\n|---|---|---|---|")
    print(f"| {len(found)} | {np.median(found):.1e} | {max(found):.1e} | {apart} |")
    print("\n".join(reasons))
    return int(max(found) > 1e-6)


if __name__ == "__main__":
    sys.exit(main())
