"""What the model says of a log: mistakes of columns, delay, signs, scale, what is left, and what can be identified."""

import math
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.identification.logs.delays import Delay
from torsor.identification.logs.excited import Excited, excited
from torsor.identification.logs.findings import LogFinding
from torsor.identification.logs.force_model import STILL, ForceModel, Motion
from torsor.identification.logs.hypotheses import column_findings
from torsor.identification.logs.model_checks import (
    delay_findings,
    scale_findings,
    sign_findings,
    together_findings,
    unexplained_findings,
)
from torsor.identification.logs.preparing import Prepared
from torsor.identification.logs.segments import longest_of
from torsor.robot.robot import Robot

MOST = 5000  # samples from which deviations are computed; more count by their number


class ModelLook(NamedTuple):
    """``findings`` by the model, the part of the force (n,) that is ``left``, the ``delay``, ``excited`` parameters.

    ``fit`` (T, 1 + n) are times and forces of the model with the best parameters, NaN near rest, and ``rest`` (n,) is
    the root mean square of what it leaves, N m or N.
    """

    findings: list[LogFinding]
    left: Array
    delay: Delay | None = None
    excited: Excited | None = None
    fit: Array | None = None
    rest: Array | None = None


def model_look(robot: Robot, prepared: Prepared, source: str) -> ModelLook:
    """Return what the model says of logs that are ``prepared``.

    Example:
        >>> from torsor.identification.logs.log import of_arrays
        >>> from torsor.identification.logs.log_map import LogMap
        >>> from torsor.identification.logs.preparing import prepare
        >>> arm, t = torsor.library.planar_chain(1), np.arange(4) * 1e-3
        >>> x = np.sin(t)[:, None]
        >>> log = of_arrays("log", t, x, x, x, x, arm)
        >>> [str(each) for each in model_look(arm, prepare(arm, [log], LogMap({})), "log").findings]
        ['log: 4 measured forces for 5 base parameters; fix: measure longer, or name the unknown ones: among']
    """
    model, samples = ForceModel(robot), prepared.samples
    forces = len(samples.q) * robot.nv
    if forces <= len(model.base):
        text = f"{forces} measured forces for {len(model.base)} base parameters"
        short = LogFinding("short", source, text, "measure longer, or name the unknown ones: among", forces)
        return ModelLook([short], np.full(robot.nv, np.nan))
    times, motion = _longest(prepared)
    findings, corrected = column_findings(model, motion, source)
    late, delay = delay_findings(model, corrected[:3], corrected.tau, times, source)
    if late and delay is not None:
        tau = np.stack([np.interp(times + delay.value, times, x) for x in corrected.tau.T], axis=1)
        corrected = corrected._replace(tau=tau)
    findings += [*late, *sign_findings(model, corrected, source), *scale_findings(model, corrected, source)]
    step = model.step(len(times))
    q, v, a, tau = corrected.every(step)
    fitted = model.fit(q, v, a, tau)
    changes = np.ptp(tau, axis=0) > 0
    findings += unexplained_findings(model, np.where(changes, fitted.left, 0.0), source)
    if not findings:
        findings += together_findings(model, Motion(q, v, a, tau), fitted.left, source)
    Y, known = model.regressor(q, v, a)
    made = known + np.einsum("njb,jb->nj", Y, fitted.x[:, :-1]) + fitted.x[:, -1]
    made[np.abs(v) < STILL * np.abs(v).max(axis=0)] = np.nan  # there the fit does not know the sign of the friction
    every = max(1, len(samples.q) // MOST)
    some = samples.every(every)
    shown = excited(model, some, model.fit(some.q, some.v, some.a, some.tau))
    shown = shown._replace(deviations=shown.deviations / math.sqrt(every), forces=shown.forces * every)
    rest = np.sqrt(np.nanmean((tau - made) ** 2, axis=0))
    left = np.where(changes, fitted.left, np.nan)  # a constant force has no part that is left
    return ModelLook(findings, left, delay, shown, np.column_stack([times[::step], made]), rest)


def _longest(prepared: Prepared) -> tuple[Array, Motion]:
    """Return the times, and the motion and forces of the longest segment, without its ends."""
    longest = longest_of(prepared.segments)
    ends = 0 if prepared.cutoff is None else math.ceil(1 / (prepared.cutoff * longest.step))
    inside = slice(ends, max(ends, len(longest.q) - ends))
    times = longest.times[inside]
    q, v, a = (x[inside] for x in longest.motion(prepared.cutoff))
    late = zip(prepared.delay, longest.tau.T, strict=True)
    tau = np.stack([np.interp(times + each, longest.times, x) for each, x in late], axis=1)
    return times, Motion(q, v, a, tau)
