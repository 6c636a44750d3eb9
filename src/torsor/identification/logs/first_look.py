"""A first look at a log: what is suspicious in its signals, and what can be identified from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import several
from torsor.base.errors import ModelError, describe
from torsor.identification.bases import environment_forces, free_coordinates
from torsor.identification.closed_robot import drives_of, measured_robot, notes_of
from torsor.identification.closing import UnclosedError
from torsor.identification.logs import cutoffs
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.log import Log, of_arrays, of_trajectory, read
from torsor.identification.logs.log_map import LogMap
from torsor.identification.logs.look import Look, Signal
from torsor.identification.logs.look_figure import figure
from torsor.identification.logs.look_tables import document, text_of
from torsor.identification.logs.model_look import ModelLook, model_look
from torsor.identification.logs.motion_checks import motion_findings
from torsor.identification.logs.own_columns import own_map
from torsor.identification.logs.preparing import Prepared, prepare
from torsor.identification.logs.signal_checks import quantum, signal_findings
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory


class FirstLook(Look):
    """What a log shows, see ``Look`` for its fields: ``report`` as text, ``plot``, ``to_dict`` for JSON.

    Example:
        >>> robot, t = torsor.library.planar_chain(1), np.arange(2000) * 1e-3
        >>> q = np.sin(2 * np.pi * t)[:, None]
        >>> first_look(robot, (t, q, 0 * q), cutoff=20.0).kinds
        ('constant',)
    """

    def __repr__(self) -> str:
        names = ", ".join(log.source for log in self.logs)
        return f"<FirstLook at {names}: {len(self.findings)} suspicious>"

    def report(self) -> str:
        """Return the look as text: findings, signals, and what can be identified."""
        return text_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the look as plain numbers, lists and strings, as for JSON."""
        return document(self)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw positions, forces and spectra of each coordinate, and return the figure; with ``path``, save it too.

        Needs matplotlib: ``torsor[plot]``.
        """
        return figure(self, path)


def first_look(robot: Robot | ParallelRobot, logs: Any, log_map: Any = None, **settings: Any) -> FirstLook:
    """Return a first look at logs of a robot: what is suspicious, with numbers and fixes, and what can be identified.

    ``logs`` is a path or several, ``Measurements``, a ``Trajectory``, or arrays (times, q, tau). ``log_map`` is a
    ``LogMap``, the path of one, or a table of columns; without one, the heads are those of Torsor ('time', 'q NAME',
    'tau NAME'). ``settings`` replace those of the map, such as ``cutoff=20.0``. Mistakes of the file that leave nothing
    to look at raise ModelError with the line; all others are findings. Of robots with loops and of parallel robots, the
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
    robot = measured_robot(robot, logs)
    if not isinstance(robot, Robot):
        raise ModelError(describe(f"first_look for {robot!r}", allowed="a torsor.Robot"))
    read_logs, given = _read(robot, logs, log_map, settings)
    findings = [each for log in read_logs for each in signal_findings(robot, log)]
    clean = [log.kept(log.complete) for log in read_logs]
    whole = FirstLook(robot, tuple(read_logs), tuple(findings), ())
    try:
        prepared = prepare(robot, clean, given)
    except UnclosedError as error:
        return replace(whole, findings=(*findings, _unclosed(robot, clean[0].source, error)), notes=notes_of(robot))
    except ModelError as error:
        text, _, fix = str(error).removeprefix(f"{clean[0].source}: ").partition("; fix: ")
        short = LogFinding("short", clean[0].source, text, fix or "measure longer", float(len(clean[0])))
        return replace(whole, findings=(*findings, short))
    for log in clean:
        findings += motion_findings(robot, log, prepared)
    found = ModelLook([], np.full(robot.nv, np.nan))
    degrees = any(each.kind == "degrees" for each in findings)
    beyond = [each for each in findings if each.kind == "limit" and ": q of " in each.place]
    if degrees and len(beyond) > 1:  # several joints are beyond their limits for this reason
        findings = [each for each in findings if each not in beyond]
    if not degrees and prepared.segments[0].all_measured:
        try:
            found = model_look(robot, prepared, clean[0].source)
        except UnclosedError as error:
            findings.append(_unclosed(robot, clean[0].source, error))
    return replace(
        whole,
        findings=(*findings, *found.findings),
        notes=(
            *prepared.notes,
            *notes_of(robot),
            *_encoders(robot, clean),
            *_acting(robot, prepared, found.rest),
            *_coupled(robot, given),
        ),
        signals=_signals(robot, clean, prepared, found.left),
        prepared=prepared,
        excited=found.excited,
        delay=found.delay,
        fit=found.fit,
    )


def _unclosed(robot: Robot, source: str, error: UnclosedError) -> LogFinding:
    """Return the finding of a sample whose loops cannot be closed."""
    what, _, fix = str(error).removeprefix(f"{robot.name}: ").partition("; fix: ")
    return LogFinding("closure", source, what, fix, float(error.sample))


def _encoders(robot: Robot, logs: Sequence[Log]) -> Iterator[str]:
    """Yield a note where positions come in steps."""
    steps = {name: quantum(logs[0].q[:, j]) for j, name in enumerate(robot.position_names)}
    shown = [f"{name} {step:.3g}" for name, step in steps.items() if step]
    if shown:
        yield f"positions come in steps (rad, m): {', '.join(shown)}"


def _acting(robot: Robot, prepared: Prepared, rest: Array | None) -> Iterator[str]:
    """Yield what percents of forces mean where wrenches of the environment act beside the drives."""
    samples = prepared.samples
    if samples.external is None or not samples.external.any():
        return
    text = "forces are all that acts along a coordinate: those of the drives, and of the measured wrenches"
    drives = np.sqrt(np.mean((samples.tau - environment_forces(robot, samples.q, samples.external)) ** 2, axis=0))
    drives[free_coordinates(robot)] = 0.0
    percents = (
        np.zeros(robot.nv) if rest is None else np.divide(100 * rest, drives, np.zeros(robot.nv), where=drives > 0)
    )
    if percents.any():
        k = int(np.argmax(percents))
        text += f"; of the drives alone, the model leaves {percents[k]:.3g} % at most, of {robot.coordinate_names[k]!r}"
    yield text


def _coupled(robot: Robot, given: LogMap) -> Iterator[str]:
    """Yield what the model of a look has not: motors that turn with several joints."""
    if motors := given.couplings(robot):
        text = "turns with several joints: a look leaves out its inertia and friction, which torsor identify finds"
        yield f"{', '.join(motors)} {text}"


def _read(robot: Robot, logs: Any, log_map: Any, settings: dict[str, Any]) -> tuple[list[Log], LogMap]:
    """Return the logs as they are, and the map."""
    none = LogMap.of({"q": []}, **settings)
    if isinstance(logs, Trajectory):
        return [of_trajectory(logs, "trajectory", robot)], none
    if hasattr(logs, "tau") and hasattr(logs, "times"):  # Measurements
        return [_of_measurements(logs, robot)], none
    if isinstance(logs, tuple) and len(logs) == 3 and not isinstance(logs[0], (str, Path)):
        times, q, tau = (np.asarray(each, dtype=float) for each in logs)
        q, tau = drives_of(robot, "q", q), drives_of(robot, "tau", tau)
        if times.ndim != 1 or q.shape != (len(times), robot.nq) or tau.shape != (len(times), robot.nv):
            found = f"times, q and tau have shapes {times.shape}, {q.shape}, {tau.shape}"
            allowed = f"(N,), (N, {robot.nq}), (N, {robot.nv})"
            raise ModelError(describe(found, where=robot.name, allowed=allowed))
        return [of_arrays("log", times, q, tau, None, None, robot)], none
    paths = [Path(each) for each in several(logs)]
    if not paths:
        raise ModelError(describe("no log", where=robot.name, allowed="one or more files"))
    given = LogMap.of(own_map(paths[0], robot) if log_map is None else log_map, **settings)
    return [read(each, robot, given, look=True) for each in paths], given


def _of_measurements(data: Any, robot: Robot) -> Log:
    """Return measurements as a log: forces without a weight were not measured."""
    q, tau, v, a = (drives_of(robot, name, getattr(data, name)) for name in ("q", "tau", "v", "a"))
    log = of_arrays("measurements", data.times, q, tau, v, a, robot, data.external)
    return log if data.weights is None else replace(log, saturated=drives_of(robot, "weights", data.weights) == 0)


def _signals(robot: Robot, logs: Sequence[Log], prepared: Prepared, left: Array) -> tuple[Signal, ...]:
    samples, found, places = prepared.samples, [], _places(robot)
    noise = cutoffs.choose([(each.q, each.step) for each in prepared.segments]).noise
    for j, name in enumerate(robot.coordinate_names):
        at = places[j]
        v, a, tau = (float(np.abs(x[:, j]).max()) for x in (samples.v, samples.a, samples.tau))
        percent = 100 * math.sqrt(left[j]) if np.isfinite(left[j]) else math.nan
        own = (math.nan, math.nan), 0.0, math.nan  # of a coordinate without a position of its own
        if at is not None:
            q = np.concatenate([log.q[:, at] for log in logs])
            own = (float(q.min()), float(q.max())), quantum(q), float(noise[at])
        ends, step, deviation = own
        found.append(Signal(name, *ends, v, a, tau, step, deviation, percent))
    return tuple(found)


def _places(robot: Robot) -> list[int | None]:
    """Return for each coordinate (nv) the index of its position; None where a quaternion has several."""
    found: list[int | None] = [None] * robot.nv
    for joint, at in zip(robot.joints, robot.coordinates, strict=True):
        if joint.nq == joint.nv:
            found[at.v] = range(at.q.start, at.q.stop)
    return found
