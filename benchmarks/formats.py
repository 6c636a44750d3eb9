"""Write robots as URDF, MJCF, SDF and USD, read them back, and compare their dynamics and their shapes.

    python benchmarks/formats.py [FILE ...] [--states 2] [--formats URDF MJCF SDF USD]

If no files are given, all URDF files of the package example-robot-data are used, with a fixed and a floating base. For
each format, the table contains the number of robots that are read back, the largest relative difference of inverse
dynamics and mass matrix at random states, and the number of robots that keep all collision shapes and visuals: kinds,
sizes, poses, colours, and the surfaces of meshes (``bench.shape_copies``). After the table, the script lists every
robot that a format cannot represent completely, with the reason. The exit code is 1 if a difference is above 1e-12.
"""

import argparse
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from importlib.metadata import files
from pathlib import Path

import numpy as np

import torsor
from bench.copies import Copy
from bench.shape_copies import lost_shapes

TOLERANCE = 1e-12
SUFFIXES = {"URDF": ".urdf", "MJCF": ".xml", "SDF": ".sdf", "USD": ".usda"}


def main() -> int:
    """Compare, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--states", type=int, default=2)
    parser.add_argument("--formats", nargs="+", choices=SUFFIXES, default=list(SUFFIXES))
    arguments = parser.parse_args()
    listed = [Path(str(each.locate())) for each in files("example-robot-data") or [] if each.name.endswith(".urdf")]
    paths = arguments.files or sorted(each.resolve() for each in listed)
    worst: dict[tuple[str, str], float] = defaultdict(float)
    back, whole = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    count, reasons, failed = 0, [], False
    warnings.simplefilter("ignore")
    for path in paths:
        for base in ("fixed", "floating"):
            try:
                robot = torsor.load(path, base=base)
            except torsor.ModelError as error:
                reasons.append(f"not read: {error}")
                break
            count += base == "fixed"
            for format in arguments.formats:
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder, path.stem + SUFFIXES[format])
                    try:
                        robot.save(file)
                        again = torsor.load(file, base=base if format == "SDF" else "fixed")
                    except torsor.ModelError as error:
                        reasons.append(f"{format}, {base}: {error}")
                        continue
                    rng, copy = np.random.default_rng(1), Copy(robot, again)
                    difference = max(copy.difference(rng) for _ in range(arguments.states))
                    lost = Counter(lost_shapes(robot, again))
                if difference > TOLERANCE or lost:
                    text = ", ".join(f"{many} {what}" for what, many in lost.items())
                    reasons.append(f"{format}, {base}: {path.stem}: difference {difference:.1e}, left out: {text}")
                failed |= difference > TOLERANCE
                back[format, base] += 1
                whole[format, base] += not lost
                worst[format, base] = max(worst[format, base], difference)
    print(f"{count} robots")
    print("| format | base | come back | largest relative difference | with all shapes |\n|---|---|---|---|---|")
    for key in worst:
        print(f"| {key[0]} | {key[1]} | {back[key]} | {worst[key]:.1e} | {whole[key]} |")
    print(*reasons, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
