"""Predicted motions that follow a measurement: ground forces, joint angles and markers in the objective of a walk."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import by_name, finite_vector, instance_of, number, positive, real_array
from torsor.base.errors import ModelError, describe
from torsor.human.body.coordinates import SIDES
from torsor.human.contact.of_node import contact_forces
from torsor.human.contact.schedule import Step
from torsor.human.measured.marker_set import MarkerSet
from torsor.human.measured.preparing import carried_by
from torsor.human.measured.result import MeasuredMotion
from torsor.human.measured.tracking import TrackMarkers, check_even, check_turned
from torsor.human.recordings import GroundForces, Markers
from torsor.human.recordings.axes import HUMAN
from torsor.human.recordings.forces import LOADED
from torsor.human.terms.forces import Grounded
from torsor.human.terms.samples import grounded_term, walk_of
from torsor.motion import MotionProblem, Node, Reference
from torsor.motion.terms.term import Cost
from torsor.robot.robot import Robot

WHERE_FOLLOWED = "followed walk"
KINDS = ("forces", "angles", "markers")
SAMPLES, ROWS = 201, 15  # of forces, and of angles (through which a spline goes), over the phase
TURN = 0.1  # rad: by which distances of angles are divided


@dataclass(frozen=True, eq=False, kw_only=True)
class TrackForces(Grounded, Cost):
    """The integral of the squared differences of the ground's forces on the feet from measured ones.

    ``values`` (K, 2, 3) are the forces (N) on the right and the left foot in the axes of the body, at equal time steps
    from the start to the end of the phase; where one is NaN, the foot does not count. Differences are divided by
    ``scale`` times the weight. ``body`` and ``support`` are those of a problem of ``torsor.human`` (``followed`` gives
    them).
    """

    values: Any
    scale: float = 0.1

    @cached_property
    def _values(self) -> Array:
        found = real_array(self.values, self.title, "values")
        if found.ndim != 3 or found.shape[1:] != (2, 3) or len(found) < 2:
            raise ModelError(describe(f"values have shape {found.shape}", where=self.title, allowed="(K, 2, 3), K > 1"))
        return found

    def data(self, s: Array) -> Mapping[str, Array]:
        """Return the data of ``Grounded``, and for each foot whether it counts and its force (K, 8)."""
        given = self._values
        at, found = np.linspace(0.0, 1.0, len(given)), np.zeros((len(s), 2, 4))
        for k in range(2):
            force = np.stack([np.interp(s, at, column) for column in given[:, k].T], axis=1)
            known = np.isfinite(force).all(axis=1)
            found[known, k, 0], found[known, k, 1:] = 1.0, force[known]
        return {**super().data(s), self.title: found.reshape(len(s), -1)}

    def integrand(self, node: Node) -> ca.SX:
        """Return 0: the whole cost is a sum of squares."""
        check_even(node, self.title)
        return ca.SX(0)

    def squares(self, node: Node) -> ca.SX:
        """Return the differences."""
        contact, given = contact_forces(node), ca.reshape(node.data(self.title, 8), 4, 2)
        by = positive(self.scale, self.title, "scale") * contact.weight
        parts = [given[0, k] * (contact.feet[side].f - given[1:, k]) / by for k, side in enumerate(SIDES)]
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
    """Return a problem of ``human.walking`` whose objective also follows a measurement from ``first`` to ``last`` (s).

    These are the times of heel strikes of the right foot and then of the left one (of the right one again with
    ``steps=2``). ``forces`` are those of the right and left foot (``recordings.by_foot``), ``motion`` is a result of
    ``inverse_kinematics`` whose angles are followed, ``recording`` are markers, with their places ``markers`` on the
    body. ``weights`` of "forces", "angles" and "markers" are 1; differences are divided by 0.1 of the weight, by 0.1
    rad and by 0.01 m. Contact times and the length of the step are those of the problem: give it the ``Step`` that was
    measured.
    """
    walk_of(instance_of(problem, MotionProblem, WHERE_FOLLOWED, "problem", allowed="one of torsor.human.walking()"))
    first = number(first, WHERE_FOLLOWED, "first (s)")
    last = number(last, WHERE_FOLLOWED, "last (s)", above=first)
    weight = dict(
        zip(KINDS, by_name({} if weights is None else weights, KINDS, 1.0, f"{WHERE_FOLLOWED}: weights"), strict=True)
    )
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
        raise ModelError(describe("nothing to follow", where=WHERE_FOLLOWED, fix="give forces, motion or recording"))
    return replace(problem, objective=[*problem.costs, *added])


def _sampled_forces(forces: GroundForces, first: float, last: float) -> Array:
    """Return the forces (K, 2, 3) of the feet at equal time steps, zero where a foot is in the air."""
    instance_of(forces, GroundForces, WHERE_FOLLOWED, "forces", allowed="GroundForces")
    own = forces.in_axes(HUMAN).without_unloaded(LOADED)
    _check_within(own.times, first, last, forces.source)
    feet = [own.index(side) for side in SIDES]
    at, flat = np.linspace(first, last, SAMPLES), own.forces[:, feet].reshape(len(own), 6)
    return np.stack([np.interp(at, own.times, column) for column in flat.T], axis=1).reshape(SAMPLES, 2, 3)


def _angles(problem: MotionProblem, motion: MeasuredMotion, first: float, last: float, weight: float) -> Reference:
    """Return the term that follows angles, and the height of the pelvis, as far as markers show them."""
    instance_of(motion, MeasuredMotion, WHERE_FOLLOWED, "motion", allowed="a result of inverse_kinematics")
    check_turned(motion.body.coordinate_names, motion.q, WHERE_FOLLOWED)
    _check_within(motion.times, first, last, "motion")
    if not isinstance(motion.body, Robot):
        fix = "use the motion of a scaled body (scaled_person)"
        raise ModelError(describe("the motion is of a skeleton of OpenSim", where=WHERE_FOLLOWED, fix=fix))
    shown = carried_by(motion.body, motion.markers.links(motion.body))
    known = [name for k, name in enumerate(motion.body.coordinate_names) if k in shown]
    names = [name for name in problem.model.names if name in known and name not in ("tx", "tz")]
    if not names:
        raise ModelError(
            describe("no marker shows a coordinate of the problem", where=WHERE_FOLLOWED, fix="add markers")
        )
    at = np.linspace(first, last, ROWS)
    values = np.stack([np.interp(at, motion.times, motion.coordinate(name)) for name in names], axis=1)
    return Reference(values=values, names=names, scale=TURN, weight=weight, name="measured angles")


def _placed(problem: MotionProblem, recording: Markers, markers: MarkerSet, first: float, last: float) -> Markers:
    """Return the markers of the times of the step, moved along the ground such that the right foot is where it stands.

    That is known from the markers of the right foot while it is flat.
    """
    body, walk = walk_of(problem)[0].body, walk_of(problem)[1]
    step: Step = walk.step.nominal
    own = recording.in_axes(HUMAN).only([name for name in markers.names if name in recording.names])
    _check_within(own.times, first, last, recording.source)
    feet = [name for name in own.names if markers.places[name][0] == "right_foot"]
    if not feet:
        fix = "add a marker of the heel, or leave the recording out"
        raise ModelError(describe("no marker is on the right foot", where=recording.source, fix=fix))
    middle = first + (step.flat + step.heel_off) / 2 * (last - first) / walk.steps
    places = [[np.interp(middle, own.times, column) for column in own.position(name).T] for name in feet]
    heel = np.array([-step.width / 2, 0.0, 0.0]) - body.place("right_heel").pose[:3, 3]
    there = heel + np.array([markers.places[name][1] for name in feet])
    shift = finite_vector(np.mean(there - np.array(places), axis=0))
    if shift is None:
        text = f"the markers of the right foot are not seen at {middle:g} s"
        raise ModelError(describe(text, where=recording.source, fix="fill their gaps (fill_gaps)"))
    return own.between(first, last).with_positions(own.between(first, last).positions + shift * [1.0, 0.0, 1.0])


def _check_within(times: Array, first: float, last: float, source: str) -> None:
    if first < times[0] - 1e-9 or last > times[-1] + 1e-9:
        allowed = f"within {times[0]:g} to {times[-1]:g} s"
        raise ModelError(describe(f"from {first:g} to {last:g} s", where=source, allowed=allowed))
