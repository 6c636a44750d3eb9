"""``torsor measure``: joint angles, moments and powers of a recorded person."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
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
from torsor.human import Stride
from torsor.human.comparison.given import given_references
from torsor.human.comparison.recorded import RecordedWalk, recorded_walk
from torsor.human.recordings import Event, GroundForces, Markers, load, overground, read_osim
from torsor.human.recordings.loading import EXAMPLE_FILES, EXAMPLE_HEIGHT, EXAMPLE_MASS, EXAMPLE_STRIKES

KINDS = "a .trc or .c3d file with markers, and a .mot, .sto or .c3d file with ground reaction forces"
FORMATS = (".csv", ".mot", ".sto", ".npz")


def _add_arguments(parser: ArgumentParser) -> None:
    text = "markers (.trc, .c3d), ground forces (.mot, .sto, .c3d)"
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
    text = "heel strikes of a foot, such as left 0.84 1.98. They replace events and forces. The option may be repeated"
    parser.add_argument("--strikes", action="append", nargs="+", metavar=("SIDE", "S"), help=text)
    parser.add_argument("--treadmill", type=float, metavar="M/S", help="belt speed, added to the motion (default: 0)")
    add_option(parser, "--cutoff", " (default: 6)", type=float, default=6.0)
    add_option(parser, "--force-cutoff", " (default: as --cutoff; inf: no filter)", type=float)
    text = "estimate segment masses from the ground forces. Anthropometric tables are the prior"
    parser.add_argument("--segments", action="store_true", help=text)
    details = "all curves (.csv), the angles (.mot, .sto) or the complete result (.npz)"
    add_output(parser, details, FORMATS, repeat=True)
    text = "divide .csv forces, moments and powers by the mass. Headers are MATLAB names"
    parser.add_argument("--per-kg", action="store_true", help=text)
    add_plot(parser)
    text = "write a figure of the right and left gait cycles, with reference curves as bands"
    parser.add_argument("--cycle", action=OutputFile, kind="figure", metavar="FILE", help=text)
    text = "write the gait cycles per kg (.csv). Headers are MATLAB names"
    parser.add_argument("--cycle-table", action=OutputFile, suffixes=(".csv",), metavar="FILE", help=text)
    text = "own norms (.csv) instead of the reference curves. Columns: percent, knee_flexion [deg], knee_flexion_sd"
    parser.add_argument("--norms", type=Path, metavar="FILE", help=text)
    add_report(parser)


def _run(arguments: Namespace, console: Console) -> None:
    from torsor.human.measured import identify_segments, measured_gait  # other commands do not need them

    if arguments.example:
        _use_example(arguments)
    markers, forces, events = _recordings(arguments)
    strikes = _strikes(arguments.strikes or [])
    norms = _norms(arguments)
    if arguments.per_kg and not any(path.suffix.lower() == ".csv" for path in arguments.output or ()):
        raise ModelError("--per-kg needs a table", where="measure", fix="add -o walk.csv")
    standing = None
    if arguments.standing is not None:
        standing = load(arguments.standing, unit=_unit(arguments, arguments.standing), axes=arguments.axes).markers
    with working("computing joint angles and moments"):
        settings = {name: getattr(arguments, name) for name in ("mass", "height", "sex", "cutoff", "force_cutoff")}
        model = None if arguments.model is None else read_osim(arguments.model)
        given: dict[str, Any] = {"events": events, "strikes": strikes, "standing": standing, "model": model}
        gait = measured_gait(markers, forces, **given, **settings)
    for table in gait.tables():
        console.print(table)
    segments = None
    if arguments.segments:
        with working("estimating segment masses"):
            segments = identify_segments(gait)
        console.print(str(segments), markup=False, highlight=False, soft_wrap=True)
    write_json(arguments, console, _as_dict(gait, segments))
    cycles, shown = _cycles(gait), _Cycles([], [])
    if gait.dynamics is not None or gait.events:
        shown = cycles
    # The findings are reported by measured_gait; with these, the command prints the warnings of the report.
    for remark in (*map(str, shown.errors), *gait.standing_notes):
        warn(remark)
    report = (arguments.report, partial(_write_report, gait, shown, norms))
    tables = [(path, partial(_save, gait, arguments.per_kg)) for path in arguments.output or ()]
    cycle = (arguments.cycle, partial(_plot_cycle, cycles, norms))
    cycle_table = (arguments.cycle_table, partial(_save_cycle, cycles))
    write_files(console, *tables, (arguments.plot, gait.plot), cycle, cycle_table, report)


def _strikes(options: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """Return the heel strikes {side: times} of the option ``--strikes``."""
    strikes = dict[str, list[float]]()
    for side, *times in options:
        try:
            strikes.setdefault(side, []).extend(map(float, times))
        except ValueError:
            what, allowed = " ".join((side, *times)), "right or left, and two or more times (s)"
            raise ModelError(argument="--strikes", value=what, where="measure", allowed=allowed) from None
    return strikes


def _norms(arguments: Namespace) -> list[Path]:
    """Return the file of ``--norms``, if it is given, after checking it."""
    if arguments.norms is None:
        return []
    if arguments.cycle is None and arguments.report is None:
        raise ModelError("--norms needs a figure", where="measure", fix="add --cycle or --report")
    given_references(arguments.norms, "right", Stride)
    return [arguments.norms]


def _save(gait: Any, per_kg: bool, path: Path) -> None:
    """Write the gait; ``--per-kg`` applies to .csv files."""
    gait.save(path, per_kg=per_kg and path.suffix.lower() == ".csv")


def _use_example(arguments: Namespace) -> None:
    """Use the files of the example, and its mass, height and left heel strikes unless they are given."""
    if arguments.files:
        where, fix = ", ".join(arguments.files), "omit --example or the files"
        raise ModelError("cannot be combined with files", argument="--example", where=where, fix=fix)
    arguments.files = list(EXAMPLE_FILES)
    if arguments.mass is None and arguments.model is None:
        arguments.mass = EXAMPLE_MASS
    if arguments.height is None:
        arguments.height = EXAMPLE_HEIGHT
    if arguments.strikes is None:
        arguments.strikes = [EXAMPLE_STRIKES]


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


def _plot_cycle(cycles: _Cycles, norms: Sequence[Path], path: Path) -> None:
    """Write the figure of the gait cycles. A side without a complete stride is omitted."""
    if not cycles.walks:
        raise cycles.errors[0]
    cycles.walks[0].plot(path, *cycles.walks[1:], *norms, planes="all")


def _save_cycle(cycles: _Cycles, path: Path) -> None:
    """Write the table of the gait cycles. A side without a complete stride is omitted."""
    if not cycles.walks:
        raise cycles.errors[0]
    cycles.walks[0].save(path, *cycles.walks[1:])


def _write_report(gait: Any, cycles: _Cycles, norms: Sequence[Path], path: Path) -> None:
    """Write the report with the gait cycles, if there are ground forces or events."""
    from torsor.human.measured.gait import CycleFigure, write_measured_report  # other commands do not need it

    walks, errors = cycles
    titles = {
        "sagittal": "Gait cycle: sagittal plane",
        "other": "Gait cycle: pelvis, frontal and transverse planes, ground forces",
    }
    notes, others = [_strides(gait, walk) for walk in walks], (*walks[1:], *norms)
    figures = [
        CycleFigure(title, walks[0].plot(None, *others, planes=planes), notes if planes == "sagittal" else ())
        for planes, title in titles.items()
        if walks
    ]
    write_measured_report(path, gait, cycles=figures, notes=[str(error) for error in errors])


def _strides(gait: Any, walk: RecordedWalk) -> str:
    """Return the times of the strides of a gait cycle, with a remark on those outside the valid interval."""
    all_strides, on_plates = (
        ", ".join(f"{first:.2f} to {last:.2f} s" for first, last in spans) for spans in (walk.strides, walk.on_plates)
    )
    parts = [f"{walk.side.capitalize()} gait cycle: {all_strides}"]
    if gait.dynamics is not None and walk.on_plates != walk.strides:
        parts.append(f"moments, powers and forces, with the foot on a plate: {on_plates or 'none'}")
    return "; ".join([*parts, *filter(None, (gait.outside(*span) for span in walk.on_plates))])


def _recordings(arguments: Namespace) -> tuple[Markers, GroundForces | None, list[Event]]:
    """Return the markers, forces and events of the files. Quality checks follow later."""
    markers, forces, events = list[Markers](), list[GroundForces](), list[Event]()
    for name in arguments.files:
        recording = load(name, unit=_unit(arguments, name), axes=arguments.axes, check=False)
        markers += [recording.markers] if recording.has("markers") else []
        forces += [recording.forces] if recording.has("forces") else []
        events += recording.events
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
        return markers[0], ground, events
    moved = overground(markers[0], arguments.treadmill)
    return moved, None if ground is None else overground(ground, arguments.treadmill), events


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
_MAIN = "--example --mass --height --sex --standing --model --strikes --treadmill --cutoff --segments --output "
_MAIN += "--per-kg --plot --cycle --cycle-table --norms --report --json"
COMMAND = Command(_add_arguments, _run, examples=_EXAMPLES, main=_MAIN)
