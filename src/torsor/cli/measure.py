"""``torsor measure``: joint angles, moments and powers of a recorded person."""

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from torsor.base.documents import plain
from torsor.base.errors import ModelError, warn
from torsor.base.progress import working
from torsor.cli.command import Command
from torsor.cli.options import OutputFile, add_option, add_output, add_plot, add_report
from torsor.cli.outputs import write_files, write_json
from torsor.human.comparison.recorded import RecordedWalk, recorded_walk
from torsor.human.recordings import GroundForces, Markers, load, overground, read_osim
from torsor.human.recordings.loading import EXAMPLE_FILES, EXAMPLE_HEIGHT, EXAMPLE_MASS

KINDS = "a .trc or .c3d file with markers, and a .mot, .sto or .c3d file with ground reaction forces"
FORMATS = (".csv", ".mot", ".sto", ".npz")


def _add_arguments(parser: ArgumentParser) -> None:
    text = "files with markers (.trc, .c3d) and ground forces (.mot, .sto, .c3d)"
    parser.add_argument("files", nargs="*", metavar="FILE", help=text)
    text = "use the recording that ships with Torsor: a man of 85.3 kg (OpenSim Moco's example3DWalking)"
    parser.add_argument("--example", action="store_true", help=text)
    add_option(parser, "--mass", ", required without --model", type=float)
    add_option(parser, "--height", " (default: 1.741)", type=float)
    add_option(parser, "--sex", " (default: male)", choices=("male", "female"), default="male")
    text = "recording of quiet standing, used to calibrate marker positions, mainly on the feet"
    parser.add_argument("--standing", type=Path, metavar="FILE", help=text)
    text = "scaled OpenSim model (.osim). Its joints and markers are used"
    parser.add_argument("--model", type=Path, metavar="FILE", help=text)
    text = 'directions of the x, y and z axes, such as "forward left up" (default: from the file)'
    parser.add_argument("--lab-axes", dest="axes", metavar="WORDS", help=text)
    parser.add_argument("--unit", choices=("m", "cm", "mm"), help="marker unit (default: from the file)")
    parser.add_argument("--treadmill", type=float, metavar="M/S", help="belt speed, added to the motion (default: 0)")
    add_option(parser, "--cutoff", " (default: 6)", type=float, default=6.0)
    add_option(parser, "--force-cutoff", " (default: as --cutoff; inf: no filter)", type=float)
    text = "estimate segment masses from the ground forces. Anthropometric tables are the prior"
    parser.add_argument("--segments", action="store_true", help=text)
    details = "all curves (.csv), the angles (.mot, .sto) or the complete result (.npz)"
    add_output(parser, details, FORMATS, repeat=True)
    add_plot(parser)
    text = "write a figure of the right and left gait cycles, with reference curves as bands"
    parser.add_argument("--cycle", action=OutputFile, kind="figure", metavar="FILE", help=text)
    add_report(parser)


def _run(arguments: Namespace, console: Console) -> None:
    from torsor.human.measured import identify_segments, measured_gait  # other commands do not need them

    if arguments.example:
        _use_example(arguments)
    markers, forces = _recordings(arguments)
    standing = None
    if arguments.standing is not None:
        standing = load(arguments.standing, unit=_unit(arguments, arguments.standing), axes=arguments.axes).markers
    with working("computing joint angles and moments"):
        settings = {name: getattr(arguments, name) for name in ("mass", "height", "sex", "cutoff", "force_cutoff")}
        model = None if arguments.model is None else read_osim(arguments.model)
        gait = measured_gait(markers, forces, standing=standing, model=model, **settings)
    for table in gait.tables():
        console.print(table)
    segments = None
    if arguments.segments:
        with working("estimating segment masses"):
            segments = identify_segments(gait)
        console.print(str(segments), markup=False, highlight=False, soft_wrap=True)
    write_json(arguments, console, _as_dict(gait, segments))
    known = gait.dynamics is not None or arguments.cycle is not None
    cycles = _cycles(gait) if known else _Cycles([], [])
    # The findings are reported by measured_gait; with these, the command prints the warnings of the report.
    errors = [] if gait.dynamics is None else cycles.errors
    for remark in (*map(str, errors), *gait.standing_notes):
        warn(remark)
    report = (arguments.report, partial(_write_report, gait, cycles))
    tables = [(path, gait.save) for path in arguments.output or ()]
    write_files(console, *tables, (arguments.plot, gait.plot), (arguments.cycle, partial(_plot_cycle, cycles)), report)


def _use_example(arguments: Namespace) -> None:
    """Use the files of the example, and its mass and height unless they are given."""
    if arguments.files:
        where, fix = ", ".join(arguments.files), "omit --example or the files"
        raise ModelError("cannot be combined with files", argument="--example", where=where, fix=fix)
    arguments.files = list(EXAMPLE_FILES)
    if arguments.mass is None and arguments.model is None:
        arguments.mass = EXAMPLE_MASS
    if arguments.height is None:
        arguments.height = EXAMPLE_HEIGHT


class _Cycles(NamedTuple):
    """The gait cycles of the sides with a complete stride, and the errors of the other sides."""

    walks: list[RecordedWalk]
    errors: list[ModelError]


def _cycles(gait: Any) -> _Cycles:
    cycles = _Cycles([], [])
    for side in ("right", "left"):
        try:
            cycles.walks.append(recorded_walk(gait, side=side, label=gait.source))
        except ModelError as error:
            cycles.errors.append(error)
    return cycles


def _plot_cycle(cycles: _Cycles, path: Path) -> None:
    """Write the figure of the gait cycles. A side without a complete stride is omitted."""
    if not cycles.walks:
        raise cycles.errors[0]
    cycles.walks[0].plot(path, *cycles.walks[1:], planes="all")


def _write_report(gait: Any, cycles: _Cycles, path: Path) -> None:
    """Write the report with the gait cycles, if there are ground forces."""
    from torsor.human.measured.gait import CycleFigure, write_measured_report  # other commands do not need it

    walks, errors = _Cycles([], []) if gait.dynamics is None else cycles
    titles = {"sagittal": "Gait cycle: sagittal plane", "other": "Gait cycle: pelvis, frontal and transverse planes"}
    notes = [_strides(gait, walk) for walk in walks]
    figures = [
        CycleFigure(title, walks[0].plot(None, *walks[1:], planes=planes), notes if planes == "sagittal" else ())
        for planes, title in titles.items()
        if walks
    ]
    write_measured_report(path, gait, cycles=figures, notes=[str(error) for error in errors])


def _strides(gait: Any, walk: RecordedWalk) -> str:
    """Return the times of the strides of a gait cycle, with a remark on those outside the valid interval."""
    times = ", ".join(f"{first:.2f} to {last:.2f} s" for first, last in walk.strides)
    outside = [gait.outside(*span) for span in walk.strides]
    return "; ".join([f"{walk.side.capitalize()} gait cycle: {times}", *filter(None, outside)])


def _recordings(arguments: Namespace) -> tuple[Markers, GroundForces | None]:
    """Return the markers and the forces of the files. Quality checks follow later."""
    markers, forces = list[Markers](), list[GroundForces]()
    for name in arguments.files:
        recording = load(name, unit=_unit(arguments, name), axes=arguments.axes, check=False)
        markers += [recording.markers] if recording.has("markers") else []
        forces += [recording.forces] if recording.has("forces") else []
        if not (recording.has("markers") or recording.has("forces")):
            text = "the file contains neither markers nor ground forces"
            raise ModelError(text, where=recording.source, allowed=KINDS)
    if not arguments.files:
        raise ModelError("no file is given", where="measure", allowed=KINDS, fix="name files, or use --example")
    if len(markers) != 1 or len(forces) > 1:
        text = f"{len(markers)} files contain markers and {len(forces)} contain ground forces"
        raise ModelError(text, where=", ".join(arguments.files), allowed="one with markers, at most one with forces")
    if not forces:
        warn("moments are not computed because ground forces are missing", where=markers[0].source, fix=KINDS)
    ground = forces[0] if forces else None
    if arguments.treadmill is None:
        return markers[0], ground
    moved = overground(markers[0], arguments.treadmill)
    return moved, None if ground is None else overground(ground, arguments.treadmill)


def _unit(arguments: Namespace, name: Any) -> str | None:
    """Return the value of ``--unit`` if a file contains markers, otherwise None."""
    unit: str | None = arguments.unit
    return unit if Path(name).suffix.lower() in (".trc", ".c3d", ".csv") else None


def _as_dict(gait: Any, segments: Any) -> dict[str, Any]:
    """Return facts, findings, curves and segments as plain values. Headings of curves include units."""
    from torsor.human.measured.segments import CAVEAT  # other commands do not need it

    if segments is None:
        return {**gait.to_dict(), "segments": {}, "residual": None, "caveat": None}
    keys = ("tables", "mass", "deviation")  # kg
    masses = {name: dict(zip(keys, values, strict=True)) for name, values in segments.masses.items()}
    residual = {"before": segments.before, "after": segments.after}  # N, N m
    return {**gait.to_dict(), "segments": plain(masses), "residual": plain(residual), "caveat": CAVEAT}


_EXAMPLES = (
    "torsor measure --example --cycle cycle.png",
    "torsor measure walk.trc forces.mot --mass 80 --height 1.8 -o walk.csv",
    "torsor measure walk.c3d --mass 62 --sex female --report walk.html",
    "torsor measure walk.trc forces.mot --model subject.osim -o angles.mot --cycle cycle.png",
)
_MAIN = "--example --mass --height --sex --standing --model --treadmill --cutoff --segments --output --plot --cycle "
_MAIN += "--report --json"
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES, main=_MAIN)
