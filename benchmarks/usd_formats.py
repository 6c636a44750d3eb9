"""Write robots of example-robot-data as USD, read them back, and compare mass matrix and inverse dynamics.

    python benchmarks/usd_formats.py [--suffix .usda] [--most 75] [--meshes]

Each URDF file is read with a fixed and a floating base, written as USD, read back, and compared at a random state: once
with the exact numbers in customData, and once with only the attributes of the schema, which have single precision.
Visuals and collision shapes are omitted, because no force depends on them. With ``--meshes`` they are included, and the
writing time includes their surfaces. ``rows`` yields the rows for other tables of formats.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pxr import Usd

import torsor
from bench.copies import without_surfaces
from torsor.formats.usd.stage import OWN

TWICE = ("mass", "com", "inertia", "placement", "axis", "point", "pose", "lower", "upper", "velocity_limit")
TWICE += ("effort_limit", "coulomb", "armature", "ratio", "offset", "gravity")


class Row(NamedTuple):
    """The result for a robot: relative differences with exact numbers, and with the schema alone."""

    robot: str
    base: str
    exact: float
    plain: float
    seconds: float  # of writing and reading


def robots() -> list[Path]:
    """Return the URDF files of example-robot-data."""
    found = files("example-robot-data") or []
    return sorted(Path(each.locate()).resolve() for each in found if each.suffix == ".urdf")


def without_exact_numbers(path: Path) -> None:
    """Remove exact numbers that the schema has too; bodies without mass keep theirs, because there 0 means no value."""
    stage = Usd.Stage.Open(str(path))
    for prim in stage.Traverse():
        data = prim.GetCustomDataByKey(OWN) or {}
        for key in TWICE if data.get("mass") != 0 else ():
            prim.ClearCustomDataByKey(f"{OWN}:{key}")
    stage.Save()


def parts(robot: torsor.Robot) -> Iterator[Any]:
    """Yield everything that the dynamics depend on, without the shapes, whose mesh files may be missing."""
    yield from (robot.gravity.tolist(), robot.joints)
    for link in robot.links:
        yield link.mass, link.com.tolist(), link.inertia.tolist()


def difference(robot: torsor.Robot, again: torsor.Robot) -> float:
    """Return the largest relative difference of mass matrix and inverse dynamics at a random state."""
    if list(parts(robot)) == list(parts(again)):
        return 0.0
    ours, theirs = (each.to(device="casadi") for each in (robot, again))
    rng = np.random.default_rng(1)
    q = robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv))
    v, a = rng.normal(size=(2, robot.nv))
    pairs = [(ours.inverse_dynamics(q, v, a), theirs.inverse_dynamics(q, v, a))]
    pairs.append((ours.mass_matrix(q), theirs.mass_matrix(q)))
    return max(float(np.abs(b - a).max() / np.abs(a).max()) for a, b in pairs if np.abs(a).max() > 0)


def rows(suffix: str = ".usda", most: int | None = None, meshes: bool = False) -> Iterator[Row]:
    """Yield a row for each robot, with a fixed and a floating base, with or without its surfaces."""
    for file in robots()[:most]:
        for base in ("fixed", "floating"):
            try:
                robot = torsor.load(file, base=base)
            except torsor.ModelError:
                continue
            if not robot.nv:
                continue
            robot = robot if meshes else without_surfaces(robot)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, f"robot{suffix}")
                start = time.perf_counter()
                robot.save(path)
                again = torsor.load(path)
                seconds = time.perf_counter() - start
                without_exact_numbers(path)
                yield Row(file.stem, base, difference(robot, again), difference(robot, torsor.load(path)), seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suffix", default=".usda")
    parser.add_argument("--most", type=int)
    parser.add_argument("--meshes", action="store_true", help="write visuals and collision shapes too")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", torsor.ModelWarning)
    found = list(rows(arguments.suffix, arguments.most, arguments.meshes))
    print("| base | robots | exact numbers: largest difference | schema alone: median | largest | s for a robot |")
    print("|---|---|---|---|---|---|")
    for base in ("fixed", "floating"):
        own = [row for row in found if row.base == base]
        plain, seconds = [row.plain for row in own], [row.seconds for row in own]
        worst = max(own, key=lambda row: row.plain)
        print(
            f"| {base} | {len(own)} | {max(row.exact for row in own):.1e} | {np.median(plain):.1e} "
            f"| {max(plain):.1e} ({worst.robot}) | {np.median(seconds):.2f} |"
        )


if __name__ == "__main__":
    main()
