"""``torsor measure``: angles, moments and powers of a recorded person, from markers, force plates and the mass."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.console import Console

from torsor.base.documents import plain
from torsor.base.errors import ModelError, warn
from torsor.cli.command import Command
from torsor.cli.outputs import check_apart, check_output, check_plot, check_report, write_files, write_json
from torsor.human.recordings import GroundForces, Markers, load, overground, read_osim

KINDS = "a .trc or .c3d file with markers, and a .mot, .sto or .c3d file with ground forces"
TABLES = (".csv", ".mot", ".sto")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help=KINDS)
    parser.add_argument("--mass", type=float, metavar="KG", help="mass of the person; not with --model")
    parser.add_argument("--height", type=float, default=1.741, metavar="M", help="of the person (default: 1.741)")
    parser.add_argument("--sex", choices=("male", "female"), default="male", help="tables of segments (default: male)")
    parser.add_argument("--standing", type=Path, metavar="FILE", help="a standing trial: the zero of all angles")
    text = "a scaled skeleton of OpenSim (.osim), with its own joints and markers"
    parser.add_argument("--model", type=Path, metavar="FILE", help=text)
    text = 'axes of the files, such as "forward left up", for files that differ'
    parser.add_argument("--axes", metavar="WORDS", help=text)
    parser.add_argument("--unit", choices=("m", "cm", "mm"), help="unit of the markers, if the file says another one")
    parser.add_argument("--treadmill", type=float, metavar="M/S", help="speed of the belt, which is added")
    parser.add_argument("--cutoff", type=float, default=6.0, metavar="HZ", help="filter of the motion (default: 6)")
    parser.add_argument("--force-cutoff", type=float, metavar="HZ", help="filter the ground forces too (default: no)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write angles, moments, powers and forces to it")
    parser.add_argument("--mot", type=Path, metavar="FILE", help="write the angles to this .mot or .sto file")
    text = "masses of the segments too, from the ground forces; tables of anthropometry are the prior"
    parser.add_argument("--segments", action="store_true", help=text)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a figure to this file: .png, .pdf or .svg")
    text = "write a report to this .html file: tables, the figure, likely mistakes, the motion in 3D; it opens offline"
    parser.add_argument("--report", type=Path, metavar="FILE", help=text)


def _run(arguments: Namespace, console: Console) -> None:
    from torsor.human.measured import identify_segments, measured_gait  # other commands do not need them
    from torsor.human.measured.gait import write_measured_report

    check_output(arguments.csv, [".csv"])
    check_output(arguments.mot, [".mot", ".sto"])
    check_plot(arguments.plot)
    check_report(arguments.report)
    outputs = (arguments.csv, arguments.mot, arguments.plot, arguments.report, arguments.json)
    check_apart(outputs, [*arguments.files, arguments.standing, arguments.model])
    markers, forces = _recordings(arguments)
    standing = None
    if arguments.standing is not None:
        standing = load(arguments.standing, unit=_unit(arguments, arguments.standing), axes=arguments.axes).markers
    gait = measured_gait(
        markers,
        forces,
        mass=arguments.mass,
        height=arguments.height,
        sex=arguments.sex,
        standing=standing,
        model=None if arguments.model is None else read_osim(arguments.model),
        cutoff=arguments.cutoff,
        force_cutoff=arguments.force_cutoff,
    )
    for table in gait.tables():
        console.print(table)
    found = identify_segments(gait) if arguments.segments else None
    if found is not None:
        console.print(str(found), markup=False, highlight=False, soft_wrap=True)
    write_json(arguments, console, _as_dict(gait, found))
    report = (arguments.report, lambda path: write_measured_report(path, gait))
    write_files(console, (arguments.csv, gait.save), (arguments.mot, gait.save), (arguments.plot, gait.plot), report)


def _recordings(arguments: Namespace) -> tuple[Markers, GroundForces | None]:
    """Return the markers and the forces of the files; what all of them show together is inspected later."""
    markers, forces = list[Markers](), list[GroundForces]()
    for name in arguments.files:
        found = load(name, unit=_unit(arguments, name), axes=arguments.axes, check=False)
        markers += [found.markers] if found.has("markers") else []
        forces += [found.forces] if found.has("forces") else []
        if not (found.has("markers") or found.has("forces")):
            raise ModelError("it holds no markers and no ground forces", where=found.source, allowed=KINDS)
    if len(markers) != 1 or len(forces) > 1:
        text = f"{len(markers)} files with markers and {len(forces)} with ground forces"
        raise ModelError(text, where=", ".join(arguments.files), allowed="one with markers, at most one with forces")
    if not forces:
        warn("no ground forces: there are angles, but no moments", where=markers[0].source, fix=KINDS)
    ground = forces[0] if forces else None
    if arguments.treadmill is None:
        return markers[0], ground
    moved = overground(markers[0], arguments.treadmill)
    return moved, None if ground is None else overground(ground, arguments.treadmill)


def _unit(arguments: Namespace, name: Any) -> str | None:
    """Return the unit that is given, for files with markers alone."""
    unit: str | None = arguments.unit
    return unit if Path(name).suffix.lower() in (".trc", ".c3d", ".csv") else None


def _as_dict(gait: Any, segments: Any) -> dict[str, Any]:
    """Return facts, findings, curves and segments as plain values; heads of the curves have their units."""
    from torsor.human.measured.segments import CAVEAT  # other commands do not need it

    keys = ("tables", "mass", "deviation")  # kg
    masses = {} if segments is None else {n: dict(zip(keys, m, strict=True)) for n, m in segments.masses.items()}
    residual = None if segments is None else {"before": segments.before, "after": segments.after}  # N, N m
    return {
        "file": gait.source,
        "mass": gait.mass,
        "facts": gait.facts,
        "findings": [each._asdict() for each in gait.findings],
        "segments": plain(masses),
        "residual": plain(residual),
        "caveat": None if segments is None else CAVEAT,
        "curves": {each.head: plain(each.values) for each in gait.columns()},
    }


_EXAMPLES = (
    "torsor measure walk.trc forces.mot --mass 80 --height 1.8 --plot walk.png --csv walk.csv",
    "torsor measure walk.c3d --mass 62 --sex female --standing static.c3d --report walk.html",
    "torsor measure walk.trc forces.mot --model subject.osim --mot angles.mot",
)
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES)
