"""Predicted motions that follow measured ones: markers as an objective, a measured motion as the initial guess.

Angles are followed by ``motion.Reference`` with ``values=measured.q``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, number, positive, whole_number
from torsor.base.errors import ModelError, describe
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.result import MeasuredMotion
from torsor.human.recordings import Markers, MotionTable
from torsor.motion import MotionProblem, Node
from torsor.motion.starts import from_profiles
from torsor.motion.terms.frames import point_of
from torsor.motion.terms.term import Cost

WHERE = "tracking"
SLIDES = ("tx", "ty", "tz")
SIDEWAYS = 0.7  # cosine of the turn about the vertical from which a person does not go along z


@dataclass(frozen=True, eq=False, kw_only=True)
class TrackMarkers(Cost):
    """The integral of the squared distance of markers on links from where they were measured, times their weights.

    ``recording`` covers the phase from its first to its last frame. Where a marker was not seen it does not count;
    markers of the recording that ``markers`` does not have are not used. Distances are divided by ``scale`` (m).

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
            found = f"{len(names)} of its markers in {len(self.recording)} frames of {self.recording.source!r}"
            raise ModelError(describe(found, where=self.title, allowed="at least one, in two frames or more"))
        return names

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return weights and measured places of the markers (K, 4 M), between frames on straight lines."""
        times, positions = self.recording.times, self.recording.only(self._names).positions
        at = times[0] + s * (times[-1] - times[0])
        found = np.zeros((len(s), len(self._names), 4))
        for k, name in enumerate(self._names):
            places = np.stack([np.interp(at, times, column) for column in positions[:, k].T], axis=1)
            seen = np.isfinite(places).all(axis=1)
            found[seen, k, 0], found[seen, k, 1:] = self.markers.weight(name), places[seen]
        return {self.title: found.reshape(len(s), -1)}

    def integrand(self, node: Node) -> ca.SX:
        """Return the weighted sum of squares."""
        check_even(node, self.title)
        self.markers.links(node.robot)
        given = ca.reshape(node.data(self.title, 4 * len(self._names)), 4, len(self._names))
        total = ca.SX(0)
        for k, name in enumerate(self._names):
            off = point_of(node, *self.markers.places[name]) - given[1:, k]
            total += given[0, k] * ca.sumsqr(off)
        return total / positive(self.scale, self.title, "scale (m)") ** 2


def measured_start(
    problem: MotionProblem, motion: MeasuredMotion | MotionTable, first: float, last: float, count: int = 50
) -> Array:
    """Return the start for ``problem.solve(start=...)``: a measured motion from ``first`` to ``last`` (s).

    The motion may be a table with the names of the coordinates, as ``torsor measure --mot`` writes it. The start are
    profiles (count, N); for a problem with a free duration, as that of a free walk, variables (n,) with the duration
    that was measured. The body starts above the origin, as predicted walks do. Coordinates of the problem that the body
    does not have are an error; profiles that terms add (by which free steps share the force) start at zero. A motion in
    other axes is turned by the recording (``in_axes("left up forward")``).
    """
    instance_of(problem, MotionProblem, WHERE, "problem", allowed="a MotionProblem")
    names, q = _coordinates(motion)
    check_turned(names, q, WHERE)
    lowest, highest = float(motion.times[0]), float(motion.times[-1])
    first = number(first, WHERE, "first (s)", least=lowest, most=highest)
    last = number(last, WHERE, "last (s)", above=first, most=highest)
    at = np.linspace(first, last, whole_number(count, WHERE, "count", least=2))
    added = {each for term in problem.terms for each in term.profiles()}
    columns: list[Any] = []
    for name in problem.model.names:
        if name in added:
            columns.append(np.zeros(len(at)))
            continue
        if name not in names:
            found = f"the problem has the coordinate {name!r}, and the measured body does not"
            raise ModelError(describe(found, where=WHERE, fix="use a problem of the same kind of body"))
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
    """Raise ModelError in a phase whose times of contacts are variables: data belong to given times."""
    if node.clock.harmonics:
        fix = 'a walk with given times: version="clean", or another one with Step(timing="given")'
        raise ModelError(describe("a phase with a clock of its own", where=where, allowed="given times", fix=fix))


def _coordinates(motion: MeasuredMotion | MotionTable) -> tuple[list[str], Array]:
    """Return the names of coordinates, and their values (K, n) in rad and m."""
    if isinstance(motion, MotionTable):
        turns = [name for name in motion.names if name not in SLIDES]
        return motion.short_names, motion.to_radians(turns).values
    instance_of(motion, MeasuredMotion, WHERE, "motion", allowed="a result of inverse_kinematics, or a MotionTable")
    return list(motion.body.coordinate_names), motion.q


def check_turned(names: Sequence[str], q: Array, where: str) -> None:
    """Raise ModelError if a measured person goes across the z axis, along which predicted persons go."""
    if "yaw" not in names:
        return
    yaw = float(np.median(q[:, names.index("yaw")]))
    if np.cos(yaw) < SIDEWAYS:
        text = f"the person is turned by {np.degrees(yaw):.0f} degrees about the vertical"
        fix = 'give inverse_kinematics the recording in the axes of the body: recording.in_axes("left up forward")'
        raise ModelError(describe(text, where=where, allowed="less than 45 degrees", fix=fix))
