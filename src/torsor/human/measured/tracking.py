"""Prediction of motions that track measurements, with marker objectives and a measured initial guess.

Angles are tracked by ``motion.Reference`` with ``values=measured.q``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name, finite_vector, instance_of, number, positive, real_array, whole_number
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.human.contact.contact_forces import contact_forces
from torsor.human.contact.schedule import Step
from torsor.human.measured.fitting import carried_by
from torsor.human.measured.inverse_kinematics import MeasuredMotion
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.recordings import GroundForces, Markers, MotionTable
from torsor.human.recordings.axes import HUMAN
from torsor.human.recordings.recording import LOAD_THRESHOLD, at_times
from torsor.human.terms.forces import Grounded
from torsor.human.terms.problem import grounded_term, walk_of
from torsor.motion import MotionProblem, Node, Reference
from torsor.motion.starts import from_profiles
from torsor.motion.terms.frames import point_of
from torsor.motion.terms.term import Cost
from torsor.robot.robot import Robot

WHERE = "tracking"
SLIDES = ("tx", "ty", "tz")
MIN_FORWARD_COSINE = 0.7  # smallest cosine of the angle between the walking direction and z


def _weighted(values: Array, weights: Sequence[float]) -> Array:
    """Return weights and components (K, 4 M) of M measured vectors (K, M, 3), which are 0 for missing vectors."""
    known = np.isfinite(values).all(axis=2, keepdims=True)
    weighted = np.concatenate([np.broadcast_to(np.reshape(weights, (-1, 1)), known.shape), values], axis=2)
    return np.where(known, weighted, 0.0).reshape(len(values), -1)


@dataclass(frozen=True, eq=False, kw_only=True)
class TrackMarkers(Cost):
    """The integral of the weighted squared distances of markers on links from their measured positions.

    The first and last frames of ``recording`` are the start and end of the phase. Missing markers, and markers of the
    recording that are not in ``markers``, are ignored. Distances are divided by ``scale`` (m).

    Example:
        >>> seen = Markers(["tip"], [0.0, 0.1, 0.2, 0.3], np.zeros((4, 1, 3)))
        >>> TrackMarkers(markers=MarkerSet({"tip": ("link2", (0.4, 0, 0))}), recording=seen).title
        'TrackMarkers'
    """

    markers: MarkerSet
    recording: Markers
    scale: float = 0.01

    @cached_property
    def _names(self) -> list[str]:
        instance_of(self.markers, MarkerSet, self.title, "markers", allowed="a MarkerSet")
        instance_of(self.recording, Markers, self.title, "recording", allowed="Markers")
        names = [name for name in self.markers.names if name in self.recording.names]
        if not names or len(self.recording) < 2:
            what = f"{self.recording.source!r} has {len(names)} of the markers in {len(self.recording)} frames"
            allowed = "at least one, in two frames or more"
            raise ModelError(what, value=self.recording.source, where=self.title, allowed=allowed)
        return names

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return weights and measured positions of the markers (K, 4 M), interpolated linearly between frames."""
        times, positions = self.recording.times, self.recording.only(self._names).positions
        places = at_times(times[0] + s * (times[-1] - times[0]), times, positions)
        return {self.title: _weighted(places, [self.markers.weight(name) for name in self._names])}

    def integrand(self, node: Node) -> ca.SX:
        """Return the weighted sum of squares."""
        check_even(node, self.title)
        self.markers.links(node.robot)
        values = ca.reshape(node.data(self.title, 4 * len(self._names)), 4, len(self._names))
        total = ca.SX(0)
        for k, name in enumerate(self._names):
            off = point_of(node, *self.markers.places[name]) - values[1:, k]
            total += values[0, k] * ca.sumsqr(off)
        return total * node.given(1 / positive(self.scale, self.title, "scale (m)") ** 2)


def measured_start(
    problem: MotionProblem, motion: MeasuredMotion | MotionTable, first: float, last: float, count: int = 50
) -> Array:
    """Return the start for ``problem.solve(start=...)``: a measured motion from ``first`` to ``last`` (s).

    The motion may be a table with coordinate names, as written by ``torsor measure --mot``. The result is an array of
    profiles (count, N) or, for a problem with a free duration, such as a walk, variables (n,) with the measured
    duration. The body starts above the origin, as in predicted walks. If the body lacks coordinates of the problem,
    ModelError is raised. Profiles added by terms (force sharing of walks) are zero. A motion in different axes must
    first be rotated (``in_axes("left up forward")`` of the recording).
    """
    instance_of(problem, MotionProblem, WHERE, "problem", allowed="a MotionProblem")
    names, q = _coordinates(motion)
    check_turned(names, q, WHERE)
    lowest, highest = float(motion.times[0]), float(motion.times[-1])
    first = number(first, WHERE, "first (s)", least=lowest, most=highest)
    last = number(last, WHERE, "last (s)", above=first, most=highest)
    at = np.linspace(first, last, whole_number(count, WHERE, "count", least=2))
    added = {profile for term in problem.terms for profile in term.profiles()}
    columns: list[Any] = []
    for name in problem.model.names:
        if name in added:
            columns.append(np.zeros(len(at)))
            continue
        if name not in names:
            what = f"the problem has the coordinate {name!r}, but the measured body does not"
            raise ModelError(what, value=name, where=WHERE, fix="use a problem of the same kind of body")
        values = np.interp(at, motion.times, q[:, names.index(name)])
        columns.append(values - values[0] if name in ("tx", "tz") else values)
    profiles = np.stack(columns, axis=1)
    phases = problem.program.layout.phases
    if len(phases) > 1 or phases[0].duration < 0:
        return profiles
    x = from_profiles(problem, profiles)
    x[phases[0].duration] = last - first
    return np.clip(x, problem.program.lower, problem.program.upper)


def check_even(node: Node, where: str) -> None:
    """Raise ModelError if the contact times of the phase are variables, because the data have fixed times."""
    if node.clock.harmonics:
        fix = 'use a walk with given times: Step(timing="given")'
        raise ModelError("the phase has free contact times", where=where, allowed="given times", fix=fix)


def _coordinates(motion: MeasuredMotion | MotionTable) -> tuple[list[str], Array]:
    """Return the coordinate names and values (K, n) (rad, m)."""
    if isinstance(motion, MotionTable):
        turns = [name for name in motion.names if name not in SLIDES]
        return motion.short_names, motion.to_radians(turns).values
    instance_of(motion, MeasuredMotion, WHERE, "motion", allowed="a result of inverse_kinematics, or a MotionTable")
    return list(motion.body.coordinate_names), motion.q


def check_turned(names: Sequence[str], q: Array, where: str) -> None:
    """Raise ModelError if a measured person does not walk along the z axis, as predicted people do."""
    if "yaw" not in names:
        return
    yaw = float(np.median(q[:, names.index("yaw")]))
    if np.cos(yaw) < MIN_FORWARD_COSINE:
        what = f"the person is turned by {np.degrees(yaw):.0f} degrees about the vertical"
        fix = 'pass inverse_kinematics the recording in body axes: recording.in_axes("left up forward")'
        raise ModelError(what, where=where, allowed="less than 45 degrees", fix=fix)


WHERE_FOLLOWED = "followed walk"
KINDS = ("forces", "angles", "markers")
SAMPLES, ROWS = 201, 15  # numbers of force samples and of angle samples (spline points) over the phase
ANGLE_SCALE = 0.1  # rad; scale of angle differences


@dataclass(frozen=True, eq=False, kw_only=True)
class TrackForces(Grounded, Cost):
    """The integral of the squared differences between predicted and measured ground forces on the feet.

    ``values`` (K, 2, 3) are the forces (N) on the right and left foot, in base axes, at equal time steps from the start
    to the end of the phase. A foot with a NaN force is ignored. Differences are divided by ``scale`` times body weight.
    ``body`` and ``support`` are those of a problem of ``torsor.human`` (set by ``followed``).
    """

    values: Any
    scale: float = 0.1

    @cached_property
    def _values(self) -> Array:
        forces = real_array(self.values, self.title, "values")
        if forces.ndim != 3 or forces.shape[1:] != (2, 3) or len(forces) < 2:
            allowed = "(K, 2, 3), K > 1"
            raise ModelError(f"have shape {forces.shape}", argument="values", where=self.title, allowed=allowed)
        return forces

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and for each foot, a flag and its force (K, 8)."""
        forces = at_times(s, np.linspace(0.0, 1.0, len(self._values)), self._values)
        return {**super().data(s), self.title: _weighted(forces, [1.0, 1.0])}

    def integrand(self, node: Node) -> ca.SX:
        """Return 0, because the cost is a sum of squares."""
        check_even(node, self.title)
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the scaled differences, whose squares are summed."""
        contact, values = contact_forces(node), ca.reshape(node.data(self.title, 8), 4, 2)
        by = node.given(positive(self.scale, self.title, "scale")) * contact.weight
        parts = [values[0, k] * (contact.feet[side].f - values[1:, k]) / by for k, side in enumerate(SIDES)]
        return ca.vertcat(*parts)


def followed(
    problem: MotionProblem,
    first: float,
    last: float,
    *,
    forces: GroundForces | None = None,
    motion: MeasuredMotion | None = None,
    recording: Markers | None = None,
    markers: MarkerSet | None = None,
    weights: Mapping[str, float] | None = None,
) -> MotionProblem:
    """Return a ``human.walking`` problem whose objective also tracks a measurement from ``first`` to ``last`` (s).

    These are the times of a heel strike of the right foot and of the next heel strike of the left foot (or, with
    ``steps=2``, of the right foot). ``forces`` act on the right and left foot (``recordings.by_foot``). ``motion`` is a
    result of ``inverse_kinematics``, whose angles are tracked. ``recording`` contains markers, whose positions on the
    body are in ``markers``. The ``weights`` of "forces", "angles" and "markers" are 1 by default. Differences are
    divided by 0.1 times body weight, 0.1 rad and 0.01 m. Contact times and step length are those of the problem, so use
    the measured ``Step``.
    """
    walk_of(instance_of(problem, MotionProblem, WHERE_FOLLOWED, "problem", allowed="a problem of torsor.human.walking"))
    first = number(first, WHERE_FOLLOWED, "first (s)")
    last = number(last, WHERE_FOLLOWED, "last (s)", above=first)
    chosen_weights = by_name({} if weights is None else weights, KINDS, 1.0, f"{WHERE_FOLLOWED}: weights")
    weight = dict(zip(KINDS, chosen_weights, strict=True))
    added = list[Cost]()
    if forces is not None:
        values = _sampled_forces(forces, first, last)
        term = grounded_term(problem)
        ground: dict[str, Any] = {"body": term.body, "support": term.support, "friction": term.friction}
        added.append(TrackForces(values=values, weight=weight["forces"], name="measured forces", **ground))
    if motion is not None:
        added.append(_angles(problem, motion, first, last, weight["angles"]))
    if recording is not None:
        chosen = instance_of(markers, MarkerSet, WHERE_FOLLOWED, "markers", allowed="the MarkerSet of the recording")
        placed = _placed(problem, recording, chosen, first, last)
        added.append(TrackMarkers(markers=chosen, recording=placed, weight=weight["markers"], name="measured markers"))
    if not added:
        raise ModelError("there is nothing to track", where=WHERE_FOLLOWED, fix="pass forces, motion or recording")
    return problem.changed(objective=[*problem.costs, *added])


def _sampled_forces(forces: GroundForces, first: float, last: float) -> Array:
    """Return the foot forces (K, 2, 3) at equal time steps, which are zero while a foot is in the air."""
    instance_of(forces, GroundForces, WHERE_FOLLOWED, "forces", allowed="GroundForces")
    turned = forces.in_axes(HUMAN).without_unloaded(LOAD_THRESHOLD)
    _check_within(turned.times, first, last, forces.source)
    feet = [turned.index(side) for side in SIDES]
    return at_times(np.linspace(first, last, SAMPLES), turned.times, turned.forces[:, feet])


def _angles(problem: MotionProblem, motion: MeasuredMotion, first: float, last: float, weight: float) -> Reference:
    """Return the term that tracks angles and pelvis height that are determined by markers."""
    instance_of(motion, MeasuredMotion, WHERE_FOLLOWED, "motion", allowed="a result of inverse_kinematics")
    check_turned(motion.body.coordinate_names, motion.q, WHERE_FOLLOWED)
    _check_within(motion.times, first, last, "motion")
    if not isinstance(motion.body, Robot):
        fix = "use the motion of a scaled body (scaled_person)"
        raise ModelError("the motion belongs to an OpenSim skeleton", where=WHERE_FOLLOWED, fix=fix)
    shown = carried_by(motion.body, motion.markers.links(motion.body))
    known = [name for k, name in enumerate(motion.body.coordinate_names) if k in shown]
    names = [name for name in problem.model.names if name in known and name not in ("tx", "tz")]
    if not names:
        raise ModelError("no marker shows a coordinate of the problem", where=WHERE_FOLLOWED, fix="add markers")
    at = np.linspace(first, last, ROWS)
    values = np.stack([np.interp(at, motion.times, motion.coordinate(name)) for name in names], axis=1)
    return Reference(values=values, names=names, scale=ANGLE_SCALE, weight=weight, name="measured angles")


def _placed(problem: MotionProblem, recording: Markers, markers: MarkerSet, first: float, last: float) -> Markers:
    """Return the markers at the times of the step, shifted horizontally to the position of the right foot.

    The shift is computed from the markers of the right foot while it is flat.
    """
    body, walk = walk_of(problem)[0].body, walk_of(problem)[1]
    step: Step = walk.step.nominal
    turned = recording.in_axes(HUMAN).only([name for name in markers.names if name in recording.names])
    _check_within(turned.times, first, last, recording.source)
    feet = [name for name in turned.names if markers.places[name][0] == "right_foot"]
    if not feet:
        fix = "add a heel marker, or omit the recording"
        raise ModelError("no marker is on the right foot", where=recording.source, fix=fix)
    middle = first + (step.flat + step.heel_off) / 2 * (last - first) / walk.steps
    places = at_times(np.array([middle]), turned.times, turned.only(feet).positions)[0]
    heel = np.array([-step.width / 2, 0.0, 0.0]) - body.place("right_heel").pose[:3, 3]
    there = heel + np.array([markers.places[name][1] for name in feet])
    shift = finite_vector(np.mean(there - places, axis=0))
    if shift is None:
        what = f"the markers of the right foot are missing at {middle:g} s"
        raise ModelError(what, where=recording.source, fix="fill their gaps (fill_gaps)")
    within = turned.between(first, last)
    return within.with_positions(within.positions + shift * [1.0, 0.0, 1.0])


def _check_within(times: Array, first: float, last: float, source: str) -> None:
    if first < times[0] - 1e-9 or last > times[-1] + 1e-9:
        allowed = f"within {times[0]:g} to {times[-1]:g} s"
        raise ModelError(f"the interval is {first:g} to {last:g} s", where=source, allowed=allowed)
