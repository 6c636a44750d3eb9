"""Walks whose objective follows a measurement: ground forces, angles and markers."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import human, motion
from torsor.human.gait.opensim import ground_forces
from torsor.human.measured import (
    MarkerSet,
    MeasuredMotion,
    TrackForces,
    followed,
    inverse_kinematics,
    marker_paths,
    marker_set,
    measured_start,
)
from torsor.human.recordings import GroundForces, Markers, MotionTable
from torsor.human.terms.problem import grounded_term

T = np.arange(61) / 100
STEP = human.Step(length=0.6, width=0.1, speed=1.2, timing="given")
PARTS = ("ASI", "PSI", "KNE", "TIB", "ANK", "HEE", "TOE")


def standing(turn: float = 0.0) -> MeasuredMotion:
    """Return the motion of a person who stands, turned about the vertical."""
    body = torsor.library.human()
    q = np.zeros((len(T), body.nq))
    q[:, 3], q[:, 2] = turn, 1.2 * T
    zero = np.zeros((len(T), 0))
    yes = np.ones(len(T), dtype=bool)
    return MeasuredMotion(body, MarkerSet({}), T, q, zero, yes, yes)


def feet(value: float = 350.0) -> GroundForces:
    zero = np.zeros((len(T), 2, 3))
    force = np.broadcast_to([0.0, value, 0.0], zero.shape)
    return GroundForces(["right", "left"], T, force, zero, zero, axes="forward up right")


@pytest.fixture(scope="module")
def walk() -> motion.MotionProblem:
    return human.walking(step=STEP)


def test_measured_forces_are_data_in_the_axes_of_the_body_and_gaps_do_not_count(walk: motion.MotionProblem) -> None:
    problem = followed(walk, 0.0, 0.5, forces=feet(), weights={"forces": 3.0})
    term = problem.costs[-1]
    assert isinstance(term, TrackForces) and term.weight == 3.0 and term.title == "measured forces"
    data = term.data(np.array([0.0, 0.3]))["measured forces"]
    assert data == pytest.approx(np.tile([1.0, 0.0, 350.0, 0.0], (2, 2)))
    values = np.array(term.values)
    values[:100, 1] = np.nan
    ground = grounded_term(problem)
    gap = TrackForces(body=ground.body, support=ground.support, values=values, name="gap")
    assert gap.data(np.array([0.1, 0.9]))["gap"][:, [0, 4]].tolist() == [[1.0, 0.0], [1.0, 1.0]]


def test_what_cannot_be_followed_is_named(walk: motion.MotionProblem) -> None:
    with refused(where="followed walk", fix="pass forces"):
        followed(walk, 0.0, 0.5)
    with refused(allowed="within 0 to 0.6 s"):
        followed(walk, 0.0, 5.0, forces=feet())
    with refused(fix="pass inverse_kinematics the recording in"):
        followed(walk, 0.0, 0.5, motion=standing(np.pi / 2))
    with refused(what="no marker shows a coordinate of the problem"):
        followed(walk, 0.0, 0.5, motion=standing())
    with refused(value="torques", where="weights"):
        followed(walk, 0.0, 0.5, forces=feet(), weights={"torques": 1.0})
    knee = Markers(["RKNE"], T, np.zeros((len(T), 1, 3)), axes="left up forward", source="walk.trc")
    with refused(where="walk.trc", what="no marker is on the right foot"):
        followed(walk, 0.0, 0.5, recording=knee, markers=marker_set(torsor.library.human(), ["RKNE"]))


@pytest.mark.slow
def test_a_measured_motion_is_the_start_of_a_free_walk_too() -> None:
    problem = human.walking()
    x = measured_start(problem, standing(), 0.0, 0.5)
    (layout,) = problem.program.layout.phases
    assert x.shape == (problem.program.n,) and layout.seconds(x) == pytest.approx(0.5)
    q, names = layout.profiles(x, np.array([0.0, 1.0]), 1)[0], problem.model.names
    assert q[:, names.index("tz")] == pytest.approx([0.0, 0.6], abs=1e-9)
    table = MotionTable(standing().body.coordinate_names, T, np.degrees(standing().q), in_degrees=True)
    slides = np.array(table.values)
    slides[:, :3] = standing().q[:, :3]
    again = measured_start(problem, MotionTable(table.names, T, slides, in_degrees=True), 0.0, 0.5)
    assert again == pytest.approx(x, abs=1e-12)
    timed = followed(problem, 0.0, 0.5, forces=feet())
    with pytest.raises(torsor.ModelError, match=r"measured forces: the phase has free contact times.*Step\(timing="):
        timed.solve(iterations=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*optimal at the nodes only")
def test_a_walk_follows_the_forces_angles_and_markers_of_another_one() -> None:
    """The forces of a walk with another objective are followed more closely than the plain walk has them."""
    other = human.Stride(human.walking(step=STEP, objective={"effort": 1.0, "balance": 3.0}).solve())
    problem = human.walking(step=STEP)
    plain = problem.solve()
    half = other.duration / 2
    near = followed(problem, 0.0, half, forces=ground_forces(other), weights={"forces": 10.0}).solve(start=plain)
    assert near.status.startswith("optimal")

    def apart(stride: human.Stride) -> float:
        return float(np.sqrt(np.mean((stride.samples.forces - other.samples.forces) ** 2)) / other.weight)

    assert apart(human.Stride(near)) < 0.5 * apart(human.Stride(plain))
    body, times = other.body, other.s * other.duration
    names = [side + part for side in "RL" for part in PARTS]
    markers = marker_set(body, names)
    seen = marker_paths(body, markers, times, other.samples.q)
    given = {
        "motion": inverse_kinematics(body, markers, seen),
        "recording": seen,
        "markers": markers,
        "weights": {"angles": 10.0, "markers": 10.0},
    }
    same = followed(problem, 0.0, half, **given).solve(start=plain)
    assert same.status.startswith("optimal")
    legs = [
        body.coordinate_names.index(f"{side}_{joint}")
        for side in ("right", "left")
        for joint in ("hip_flexion", "knee_flexion")
    ]
    errors = [
        float(np.abs(human.Stride(each).samples.q[:, legs] - other.samples.q[:, legs]).max()) for each in (same, plain)
    ]
    assert errors[0] < 0.3 * errors[1] + 0.01
