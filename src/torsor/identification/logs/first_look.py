"""A first look at a log: what is suspicious in its signals, and what can be identified from them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torsor.arrays import Array
from torsor.checks import several
from torsor.errors import ModelError, ModelWarning, describe
from torsor.identification.differentiation import differentiate
from torsor.identification.logs.excited import excited
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.force_model import ForceModel, Motion
from torsor.identification.logs.hypotheses import column_findings
from torsor.identification.logs.log import Log, of_arrays, of_trajectory, read
from torsor.identification.logs.log_map import LogMap
from torsor.identification.logs.look import Look, Signal
from torsor.identification.logs.look_figure import figure
from torsor.identification.logs.look_tables import document, text_of
from torsor.identification.logs.model_checks import (
    delay_findings,
    scale_findings,
    sign_findings,
    unexplained_findings,
)
from torsor.identification.logs.own_columns import own_map
from torsor.identification.logs.preparing import Prepared, Samples, motion_of, prepare, quick, segments_of
from torsor.identification.logs.rate_checks import rate_findings
from torsor.identification.logs.signal_checks import quantum, signal_findings
from torsor.identification.units import check_radians
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory

COARSE = 0.1  # of the accelerations: noise of encoder steps that is named
MOST = 5000  # samples from which deviations are computed; more count by their number


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


def first_look(robot: Robot, logs: Any, log_map: Any = None, **settings: Any) -> FirstLook:
    """Return a first look at logs of a robot: what is suspicious, with numbers and fixes, and what can be identified.

    ``logs`` is a path or several, a ``Trajectory``, or arrays (times, q, tau). ``log_map`` is a ``LogMap``, the path of
    one, or a table of columns; without one, the heads are those of Torsor ('time', 'q NAME', 'tau NAME'). ``settings``
    replace those of the map, such as ``cutoff=20.0``. Mistakes of the file that leave nothing to look at raise
    ModelError with the line; all others are findings.

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
    if not isinstance(robot, Robot):
        raise ModelError(describe(f"first_look for {robot!r}", allowed="a torsor.Robot"))
    read_logs, given = _read(robot, logs, log_map, settings)
    findings = [each for log in read_logs for each in signal_findings(robot, log)]
    given = replace(given, missing="skip")
    clean = [log.kept(log.complete) for log in read_logs]
    whole = FirstLook(robot, tuple(read_logs), tuple(findings), ())
    try:
        prepared = prepare(robot, clean, given)
    except ModelError as error:
        short = LogFinding("short", clean[0].source, str(error), "see above", float(len(clean[0])))
        return replace(whole, findings=(*findings, short))
    findings += _degrees(robot, prepared.samples, clean[0].source)
    findings += _rates(robot, clean[0], prepared)
    findings += _coarse(robot, clean, prepared)
    whole = replace(whole, findings=tuple(findings), notes=prepared.notes, prepared=prepared)
    if any(each.kind == "degrees" for each in findings):
        return replace(whole, signals=_signals(robot, clean, prepared, np.full(robot.nv, np.nan)))
    return _against_model(whole, clean)


def _read(robot: Robot, logs: Any, log_map: Any, settings: dict[str, Any]) -> tuple[list[Log], LogMap]:
    """Return the logs as they are, and the map."""
    none = LogMap.of({"q": []}, **settings)
    if isinstance(logs, Trajectory):
        return [of_trajectory(logs, "trajectory")], none
    if isinstance(logs, tuple) and len(logs) == 3 and not isinstance(logs[0], (str, Path)):
        times, q, tau = (np.asarray(each, dtype=float) for each in logs)
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


def _against_model(look: FirstLook, clean: Sequence[Log]) -> FirstLook:
    """Return the look with what the model says: columns, delay, signs, what is left, and what can be identified."""
    robot, prepared, source = look.robot, look.prepared, clean[0].source
    assert prepared is not None
    model, findings = ForceModel(robot), list(look.findings)
    longest = quick(max(prepared.segments, key=lambda each: len(each.q)))
    ends = 0 if prepared.cutoff is None else math.ceil(1 / (prepared.cutoff * longest.step))
    inside = slice(ends, max(ends, len(longest.q) - ends))
    times = longest.times[inside]
    shifted = [np.interp(times + late, longest.times, x) for late, x in zip(prepared.delay, longest.tau.T, strict=True)]
    motion = Motion(*(x[inside] for x in motion_of(longest, prepared.cutoff)), np.stack(shifted, axis=1))
    moving = {each.kind for each in findings} & {"missing", "still", "constant"}
    forces = len(prepared.samples.q) * robot.nv
    if forces <= len(model.base):
        text = f"{forces} measured forces for {len(model.base)} base parameters"
        findings.append(LogFinding("short", source, text, "measure longer, or name the unknown ones: --among", forces))
        return replace(
            look, findings=tuple(findings), signals=_signals(robot, clean, prepared, np.full(robot.nv, np.nan))
        )
    wrong, corrected = column_findings(model, motion, source)
    late, delay = delay_findings(model, corrected[:3], corrected.tau, times, source)
    if late and delay is not None:
        tau = np.stack([np.interp(times + delay.value, times, x) for x in corrected.tau.T], axis=1)
        corrected = corrected._replace(tau=tau)
    findings += [*wrong, *late, *sign_findings(model, corrected, source), *scale_findings(model, corrected, source)]
    thin = model.thinned(len(motion.q))
    fits = model.of(*(x[thin] for x in corrected[:3]))
    fitted = fits.fit(corrected.tau[thin])
    findings += [each for each in unexplained_findings(model, fitted.left, source) if not moving or each.value < 99]
    Y, known = model.regressor(*(x[thin] for x in corrected[:3]))
    made = known + np.einsum("njb,jb->nj", Y, fitted.x[:, :-1]) + fitted.x[:, -1]
    fit = np.column_stack([times[thin], made])
    samples = prepared.samples
    every = max(1, len(samples.q) // MOST)
    some = Samples(*(None if x is None else x[::every] for x in samples))
    shown = excited(model, some, model.fit(*(x[:: max(1, len(samples.q) // 2000)] for x in samples[:4])))
    shown = shown._replace(deviations=shown.deviations / math.sqrt(every), forces=shown.forces * every)
    signals = _signals(robot, clean, prepared, 100 * np.sqrt(fitted.left))
    return replace(look, findings=tuple(findings), signals=signals, excited=shown, delay=delay, fit=fit)


def _degrees(robot: Robot, samples: Samples, source: str) -> Iterator[LogFinding]:
    """Yield a finding where positions or velocities are in degrees by the limits of the robot."""
    largest = float(np.abs(samples.q).max())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            check_radians(robot, samples.q, samples.v)
            texts = [str(each.message) for each in caught]
        except ModelError as error:
            texts = [str(error)]
    for text in texts[:1]:
        what, _, _ = text.removeprefix(f"{robot.name}: ").partition("; ")
        yield LogFinding("degrees", source, what, 'write units = {q = "deg"} in the map', largest)


def _rates(robot: Robot, log: Log, prepared: Prepared) -> Iterator[LogFinding]:
    """Yield what is suspicious in measured velocities and accelerations."""
    if robot.nq != robot.nv:
        return
    for what, order, measured in (("v", 1, log.v), ("a", 2, log.a)):
        if measured is None:
            continue
        for segment in segments_of(robot, replace(log, v=measured, a=None), LogMap({}), [])[:1]:
            segment = quick(segment)
            cutoff = min(prepared.cutoff or 0.1 / segment.step, 0.4 / segment.step)
            derived = differentiate(segment.times, segment.q, cutoff)[order]
            own = differentiate(segment.times, np.asarray(segment.v), cutoff)[0]
            ends = min(math.ceil(1 / (cutoff * segment.step)), len(own) // 4)
            inside = slice(ends, len(own) - ends)
            yield from rate_findings(robot, log.source, what, own[inside], derived[inside], segment.step)


def _coarse(robot: Robot, logs: Sequence[Log], prepared: Prepared) -> Iterator[LogFinding]:
    """Yield encoders whose steps make the accelerations noisy."""
    if prepared.cutoff is None or robot.nq != robot.nv:
        return
    f, h = prepared.cutoff, prepared.segments[0].step
    size = np.sqrt(np.mean(prepared.samples.a**2, axis=0))
    for j, name in enumerate(robot.position_names):
        step = quantum(logs[0].q[:, j])
        # White noise of step / sqrt(12), differentiated twice up to the cutoff.
        noise = step / math.sqrt(12) * (2 * math.pi * f) ** 2 * math.sqrt(2 * f * h / 5)
        if size[j] > 0 and noise > COARSE * size[j]:
            text = f"the encoder has steps of {step:.3g}: noise of {100 * noise / size[j]:.3g} % in the accelerations at {f:.3g} Hz"
            fix = "move faster or more, log more often, or lower the cutoff"
            yield LogFinding("quantisation", f"{logs[0].source}: q of {name!r}", text, fix, step)


def _signals(robot: Robot, logs: Sequence[Log], prepared: Prepared, left: Array) -> tuple[Signal, ...]:
    samples, found = prepared.samples, []
    if robot.nq != robot.nv:
        return ()
    for j, name in enumerate(robot.coordinate_names):
        q = np.concatenate([log.q[:, j] for log in logs])
        sizes = (float(np.abs(x[:, j]).max()) for x in (samples.v, samples.a, samples.tau))
        noise = float(prepared.noise[j])
        found.append(Signal(name, float(q.min()), float(q.max()), *sizes, quantum(q), noise, float(left[j])))
    return tuple(found)
