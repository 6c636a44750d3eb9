"""Quality checks of a log: suspicious signals and identifiable parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.markup import escape

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, several
from torsor.base.documents import header, plain
from torsor.base.errors import ModelError
from torsor.base.figures import label, label_of_title, new_figure, saved, styled
from torsor.base.html_report import html_list, html_table, html_text, image, write_html
from torsor.base.summary import as_text, titled_table
from torsor.identification.bases import environment_forces, free_coordinates
from torsor.identification.closed_robot import (
    MeasuredRobot,
    UnclosedError,
    drives_of,
    is_excitable,
    measured_robot,
    notes_of,
)
from torsor.identification.logs import preparing
from torsor.identification.logs.log import Log, LogFinding, of_arrays, of_trajectory, read
from torsor.identification.logs.log_map import LogMap, own_map
from torsor.identification.logs.model_checks import Excited, ModelLook, model_look
from torsor.identification.logs.preparing import Delay, Prepared, prepare, spectrum
from torsor.identification.logs.signal_checks import motion_findings, quantum, signal_findings
from torsor.mechanism.mechanism import force_units, places_in_q, robot_facts, units
from torsor.robot.parallel import ParallelRobot
from torsor.simulation import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Signal(NamedTuple):
    """One coordinate of a log: span of q, maximum v, a and force, encoder step, and noise, in SI units.

    ``force`` is the total force, including measured environment wrenches. ``left`` is the part of the force (%, root
    mean square about the mean) that the model cannot explain with any parameters. Span, step and noise are NaN for
    coordinates without a corresponding position, such as quaternion rates.
    """

    name: str
    least: float
    most: float
    v: float
    a: float
    force: float
    step: float
    noise: float
    left: float


HEADS = ("coordinate", "q from", "to", "|v|", "|a|", "|force|", "encoder step", "noise of q", "unexplained %")


@dataclass(frozen=True, eq=False)
class FirstLook:
    """Quality report on logs: ``findings`` (suspicious signals), processing ``notes``, and ``signals`` by coordinate.

    ``prepared`` contains the processed samples, and ``excited`` the base parameters with their expected standard
    deviations. ``delay`` is the delay of the forces (``delay.value``, in s), and ``fit`` (T, 1 + n) contains times and
    model forces of the longest segment. These four are None if an error must be corrected first.

    Example:
        >>> robot, t = torsor.library.planar_chain(1), np.arange(2000) * 1e-3
        >>> q = np.sin(2 * np.pi * t)[:, None]
        >>> first_look(robot, (t, q, 0 * q), cutoff=20.0).kinds
        ('constant',)
    """

    robot: MeasuredRobot
    logs: tuple[Log, ...]
    findings: tuple[LogFinding, ...]
    notes: tuple[str, ...]
    signals: tuple[Signal, ...] = ()
    prepared: Prepared | None = None
    excited: Excited | None = None
    delay: Delay | None = None
    fit: Array | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The distinct kinds of the findings."""
        return tuple(dict.fromkeys(finding.kind for finding in self.findings))

    @property
    def sources(self) -> str:
        """The names of the logs."""
        return ", ".join(log.source for log in self.logs)

    @property
    def length(self) -> str:
        """Number of samples and duration of all logs, as text."""
        times = [log.times[np.isfinite(log.times)] for log in self.logs]
        seconds = sum(float(t[-1] - t[0]) for t in times if t.size)
        return f"{sum(map(len, self.logs))} samples, {seconds:.4g} s"

    def __repr__(self) -> str:
        return f"<FirstLook at {self.sources}: {len(self.findings)} suspicious>"

    def report(self) -> str:
        """Return the report as text: findings, signals, and identifiable parameters."""
        parts = [f"{self.sources} for {self.robot.name}: {self.length}", *(f"- {note}" for note in self.notes), ""]
        parts.append(f"{len(self.findings)} suspicious:" if self.findings else "Nothing suspicious.")
        parts += [*(f"! {finding.kind}: {finding}" for finding in self.findings), ""]
        if self.signals:
            table = titled_table("Signals (SI units)", *HEADS)
            for name, *cells in signal_rows(self):
                table.add_row(escape(name), *cells)
            parts += [*(line.rstrip() for line in as_text(table, width=118).splitlines()), ""]
        return "\n".join([*parts, *identifiable(self)])

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain numbers, lists and strings, for example for JSON."""
        prepared, shown = self.prepared, self.excited
        parameters = []
        if shown is not None:
            keys, columns = ("name", "value", "deviation", "percent"), (shown.names, shown.values, shown.deviations)
            rows = zip(*columns, shown.percents, strict=True)
            parameters = [dict(zip(keys, row, strict=True)) for row in rows]
        return {
            "torsor": header("first_look"),
            "units": {"signals": "SI: rad, m, s, N m, N", "percent": "%", "delay": "s", "cutoff": "Hz"},
            "robot": robot_facts(self.robot),
            "logs": [log.source for log in self.logs],
            "samples": None if prepared is None else len(prepared.samples.q),
            "cutoff": None if prepared is None else prepared.cutoff,
            "delay": None if self.delay is None else plain(self.delay.value),
            "notes": list(self.notes),
            "findings": plain([finding._asdict() for finding in self.findings]),
            "signals": plain([signal._asdict() for signal in self.signals]),
            "condition": None if shown is None else plain(shown.condition),
            "base_parameters": plain(parameters),
        }

    def plot(self, path: str | Path | None = None) -> Figure:
        """Plot positions, forces and spectra of each coordinate, and return the figure; with ``path``, save it too.

        Suspicious coordinates have a red title. Plotting requires matplotlib (``torsor[plot]``).
        """
        names = self.robot.coordinate_names
        drawn = new_figure(14.0, 1.8 * len(names) + 1.2)
        panels = drawn.subplots(len(names), 3, squeeze=False)
        for j, name in enumerate(names):
            kinds = [finding.kind for finding in self.findings if repr(name) in finding.place]
            _position(panels[j, 0], self, j)
            _force(panels[j, 1], self, j)
            _spectrum(panels[j, 2], self, j)
            title = f"{label(name)}: {', '.join(dict.fromkeys(kinds))}" if kinds else label(name)
            panels[j, 0].set_title(title, fontsize="medium", loc="left", color=MARK if kinds else "black")
        for k, text in enumerate(("time (s)", "time (s)", "frequency (Hz)")):
            panels[-1, k].set_xlabel(text)
        heading = f"{self.robot.name}: {self.sources}\n{len(self.findings)} suspicious: "
        drawn.suptitle(label_of_title(heading + (", ".join(self.kinds) or "nothing")))
        return saved(drawn, path)


MEASURED, MODEL, MARK, GAP = "0.35", "C0", "C3", "0.85"
CURVE_POINTS = 2000  # number of points of a time curve
SPECTRUM_POINTS = 400  # number of points of a spectrum


def _position(axes: Any, look: FirstLook, j: int) -> None:
    for log in look.logs:
        if log.q.shape[1] == len(look.robot.coordinate_names):
            thin = slice(None, None, max(1, len(log) // CURVE_POINTS))
            axes.plot(log.times[thin], log.q[thin, j], color=MEASURED, linewidth=1.0)
        _gaps(axes, log.times)
    styled(axes, unit=f"q ({units(look.robot)[1][j]})")


def _force(axes: Any, look: FirstLook, j: int) -> None:
    for log in look.logs:
        thin = slice(None, None, max(1, len(log) // CURVE_POINTS))
        axes.plot(log.times[thin], log.tau[thin, j], color=MEASURED, linewidth=1.0, label="measured")
        full = log.saturated[:, j]
        if full.any():
            axes.plot(log.times[full], log.tau[full, j], ".", color=MARK, markersize=3, label="saturated")
        _gaps(axes, log.times)
    if look.fit is not None:
        axes.plot(look.fit[:, 0], look.fit[:, 1 + j], color=MODEL, linewidth=0.8, label="model, best parameters")
    styled(axes, unit=f"force ({force_units(look.robot)[look.robot.coordinate_names[j]]})")
    if j == 0:
        axes.legend(fontsize="x-small", loc="upper right")


def _spectrum(axes: Any, look: FirstLook, j: int) -> None:
    if look.prepared is None or look.prepared.segments[0].q.shape[1] <= j:
        return
    longest = max(look.prepared.segments, key=lambda each: len(each.q))
    spectra = spectrum(longest.q[:, [j]], longest.step)
    places = np.unique(np.geomspace(1, len(spectra.frequencies) - 1, SPECTRUM_POINTS).astype(int))
    size = np.sqrt(np.maximum.reduceat(spectra.power[:, 0], places))
    axes.loglog(spectra.frequencies[places], np.maximum(size, 1e-18), color=MEASURED, linewidth=0.6)
    axes.axhline(np.sqrt(max(float(spectra.floor[0]), 1e-36)), color=MODEL, linewidth=0.8, linestyle="--")
    if look.prepared.cutoff is not None:
        axes.axvline(look.prepared.cutoff, color=MARK, linewidth=1.0)
        axes.set_title(f"cutoff {look.prepared.cutoff:.3g} Hz", fontsize="small", loc="right", color=MARK)
    axes.grid(alpha=0.3)


def _gaps(axes: Any, times: Any) -> None:
    known = times[np.isfinite(times)]
    steps = np.diff(known)
    if steps.size and (steps > 0).any():
        for k in np.flatnonzero(steps > 5 * np.median(steps[steps > 0])):
            axes.axvspan(known[k], known[k + 1], color=GAP, linewidth=0)


NAMES_PER_LINE = 8  # parameter names per line


def signal_rows(look: FirstLook) -> list[list[str]]:
    """Return the signals as rows of text with the columns ``HEADS``."""
    rows = []
    for signal in look.signals:
        texts = [f"{x:.4g}" for x in signal[1:6]]
        texts += [f"{signal.step:.3g}" if signal.step else "-", f"{signal.noise:.2g}", f"{signal.left:.3g}"]
        rows.append([signal.name, *("-" if text == "nan" else text for text in texts)])
    return rows


def identifiable(look: FirstLook) -> list[str]:
    """Return lines of text that state which parameters can be identified from the logs."""
    shown = look.excited
    if shown is None and not look.findings:
        return ["Identifiable parameters are not listed because some forces were not measured. Run torsor identify."]
    if shown is None:
        return ["Identifiable parameters are listed once the errors above are corrected."]
    good, weak, none = shown.graded()
    count = f"{len(shown.names)} base parameters, condition number {shown.condition:.4g}"
    lines = [f"{count}. With all {shown.forces} forces:", f"- to 10 % or better: {len(good)}"]
    for words, indices in (("to 10 to 100 %", weak), ("not shown, or zero (deviation above the value)", none)):
        lines.append(f"- {words}: {len(indices)}")
        names = []
        for k in sorted(indices, key=lambda k: -shown.percents[k])[:NAMES_PER_LINE]:
            x = float(shown.percents[k])
            percent = f"{x:.3g} %" if x < 1e4 else "not excited" if math.isinf(x) else "> 10000 %"
            names.append(f"{shown.names[k].split(' ')[0]} ({percent})")
        if names:
            more = f", and {len(indices) - NAMES_PER_LINE} more" * (len(indices) > NAMES_PER_LINE)
            lines.append(f"    {', '.join(names)}{more}")
    if none and is_excitable(look.robot):
        how = "torsor excite ROBOT --measured LOG (in Python: torsor.identification.excite)"
        lines.append(f"{how} designs a motion that excites more parameters.")
    return lines


def write_look_report(path: str | Path, look: FirstLook) -> Path:
    """Write a quality report on logs as a self-contained HTML page with all signals and findings."""
    instance_of(look, FirstLook, "report", "look", allowed="a result of torsor.identification.first_look")
    name = f"First look: {look.sources}"
    parts = [f"<h1>{html_text(name)}</h1>", f"<p>{html_text(look.robot.name)}: {look.length}</p>"]
    parts += [html_list(look.notes)]
    parts += [f"<h2>{len(look.findings)} suspicious</h2>" if look.findings else "<p>Nothing suspicious.</p>"]
    if look.findings:
        rows = [list(map(html_text, finding[:4])) for finding in look.findings]
        parts.append(html_table(["kind", "where", "found", "fix"], rows, words=True))
    if look.signals:
        rows = [[html_text(cell) for cell in row] for row in signal_rows(look)]
        parts += ["<h2>Signals (SI units)</h2>", html_table(HEADS, rows)]
    # Indented lines (parameter names) continue the previous line.
    lines = "\n".join(identifiable(look)).replace("\n    ", ". ").split("\n")
    parts += ["<h2>What can be identified</h2>", html_list(line.removeprefix("- ") for line in lines)]
    return write_html(Path(path), name, [*parts, image(look.plot())])


def first_look(robot: MeasuredRobot | ParallelRobot, logs: Any, log_map: Any = None, **settings: Any) -> FirstLook:
    """Return a quality report on robot logs: suspicious signals with fixes, and identifiable parameters.

    ``logs`` is one or several paths, ``Measurements``, a ``Trajectory``, or arrays (times, q, tau). ``log_map`` is a
    ``LogMap``, its path, or a table of columns. Without a map, Torsor's column headers are expected ('time', 'q NAME',
    'tau NAME'). ``settings`` replace settings of the map, for example ``cutoff=20.0``. File errors that prevent checks
    raise ModelError with the line number; other errors become findings. For robots with loops and parallel robots, the
    columns are those of the drives, as in ``identify``.

    Example:
        >>> robot, t = torsor.library.planar_chain(2), np.arange(4000) * 1e-3
        >>> q = np.sin(2 * np.pi * np.outer(t, [0.5, 0.8]))
        >>> data = torsor.identification.Measurements.from_positions(t, q, q, cutoff=20.0)
        >>> tau = robot.inverse_dynamics(data.q, data.v, data.a)
        >>> first_look(robot, (data.times, data.q, tau), cutoff=20.0).kinds
        ()
        >>> first_look(robot, (data.times, data.q, tau[:, ::-1]), cutoff=20.0).kinds
        ('swapped',)
    """
    robot = measured_robot(robot, logs, "first_look")
    read_logs, settings_map = _read(robot, logs, log_map, settings)
    findings = [each for log in read_logs for each in signal_findings(robot, log)]
    clean = [log.kept(log.complete) for log in read_logs]
    whole = FirstLook(robot, tuple(read_logs), tuple(findings), ())
    try:
        prepared = prepare(robot, clean, settings_map)
    except UnclosedError as error:
        return replace(whole, findings=(*findings, _unclosed(robot, clean[0].source, error)), notes=notes_of(robot))
    except ModelError as error:
        text = str(error.but(where=error.where.removeprefix(clean[0].source).removeprefix(": "), fix=""))
        short = LogFinding("short", clean[0].source, text, error.fix or "measure longer", float(len(clean[0])))
        return replace(whole, findings=(*findings, short))
    for log in clean:
        findings += motion_findings(robot, log, prepared)
    model = ModelLook([], np.full(robot.nv, np.nan))
    degrees = any(each.kind == "degrees" for each in findings)
    beyond = [finding for finding in findings if finding.kind == "limit" and ": q of " in finding.place]
    if degrees and len(beyond) > 1:  # wrong units explain why several joints exceed their limits
        findings = [each for each in findings if each not in beyond]
    if not degrees and prepared.segments[0].all_measured:
        try:
            model = model_look(robot, prepared, clean[0].source)
        except UnclosedError as error:
            findings.append(_unclosed(robot, clean[0].source, error))
    notes = [*prepared.notes, *notes_of(robot)]
    steps = {name: quantum(clean[0].q[:, j]) for j, name in enumerate(robot.position_names)}
    if any(steps.values()):
        coarse = ", ".join(f"{name} {step:.3g}" for name, step in steps.items() if step)
        notes.append(f"positions come in steps (rad, m): {coarse}")
    notes += _acting(robot, prepared, model.rest)
    if motors := settings_map.couplings(robot):
        text = "drives several joints; its inertia and friction are identified by torsor identify, not checked here"
        notes.append(f"{', '.join(motors)} {text}")
    signals = _signals(robot, clean, prepared, model.left)
    shown = (signals, prepared, model.excited, model.delay, model.fit)
    return FirstLook(robot, tuple(read_logs), (*findings, *model.findings), tuple(notes), *shown)


def _unclosed(robot: MeasuredRobot, source: str, error: UnclosedError) -> LogFinding:
    """Return the finding for a sample whose loops cannot be closed."""
    what = str(error.but(where=error.where.removeprefix(f"{robot.name}: "), fix=""))
    return LogFinding("closure", source, what, error.fix, float(error.sample))


def _acting(robot: MeasuredRobot, prepared: Prepared, rest: Array | None) -> Iterator[str]:
    """Yield a note on the meaning of force percentages if there are environment wrenches."""
    samples = prepared.samples
    if samples.external is None or not samples.external.any():
        return
    text = "forces are the sum of drive forces and measured wrenches along a coordinate"
    drives = np.sqrt(np.mean((samples.tau - environment_forces(robot, samples.q, samples.external)) ** 2, axis=0))
    drives[free_coordinates(robot)] = 0.0
    percents = np.zeros(robot.nv)
    if rest is not None:
        np.divide(100 * rest, drives, percents, where=drives > 0)
    if percents.any():
        k = int(np.argmax(percents))
        text += f"; for the drives alone, the model leaves at most {percents[k]:.3g} % ({robot.coordinate_names[k]!r})"
    yield text


def _read(robot: MeasuredRobot, logs: Any, log_map: Any, settings: dict[str, Any]) -> tuple[list[Log], LogMap]:
    """Return the logs as stored, and the map."""
    none = LogMap.of({"q": []}, **settings)
    if isinstance(logs, Trajectory):
        return [of_trajectory(logs, "trajectory", robot)], none
    if hasattr(logs, "tau") and hasattr(logs, "times"):  # Measurements
        q, tau, v, a = (drives_of(robot, name, getattr(logs, name)) for name in ("q", "tau", "v", "a"))
        log = of_arrays("measurements", logs.times, q, tau, v, a, robot, logs.external)
        if logs.weights is not None:  # forces with a weight of 0 were not measured
            log = replace(log, saturated=drives_of(robot, "weights", logs.weights) == 0)
        return [log], none
    if isinstance(logs, tuple) and len(logs) == 3 and not isinstance(logs[0], (str, Path)):
        times, q, tau = (np.asarray(each, dtype=float) for each in logs)
        q, tau = drives_of(robot, "q", q), drives_of(robot, "tau", tau)
        if times.ndim != 1 or q.shape != (len(times), robot.nq) or tau.shape != (len(times), robot.nv):
            message = f"times, q and tau have the shapes {times.shape}, {q.shape}, {tau.shape}"
            raise ModelError(message, where=robot.name, allowed=f"(N,), (N, {robot.nq}), (N, {robot.nv})")
        return [of_arrays("log", times, q, tau, None, None, robot)], none
    paths = [Path(each) for each in several(logs)]
    if not paths:
        raise ModelError("there is no log", where=robot.name, allowed="one or more files")
    settings_map = LogMap.of(own_map(paths[0], robot) if log_map is None else log_map, **settings)
    return [read(path, robot, settings_map, look=True) for path in paths], settings_map


def _signals(robot: MeasuredRobot, logs: Sequence[Log], prepared: Prepared, left: Array) -> tuple[Signal, ...]:
    samples, signals = prepared.samples, []
    places = places_in_q(robot.joints, robot.coordinates)
    noise = preparing.choose([(segment.q, segment.step) for segment in prepared.segments]).noise
    for j, name in enumerate(robot.coordinate_names):
        v, a, tau = (float(np.abs(x[:, j]).max()) for x in (samples.v, samples.a, samples.tau))
        percent = 100 * math.sqrt(left[j]) if np.isfinite(left[j]) else math.nan
        ends, step, deviation = (math.nan, math.nan), 0.0, math.nan  # a coordinate without a corresponding position
        if j in places:
            q = np.concatenate([log.q[:, places[j]] for log in logs])
            ends, step, deviation = (float(q.min()), float(q.max())), quantum(q), float(noise[places[j]])
        signals.append(Signal(name, *ends, v, a, tau, step, deviation, percent))
    return tuple(signals)
