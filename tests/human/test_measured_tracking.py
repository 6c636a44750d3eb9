"""Predicted motions follow measured markers, and start from measured motions."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import motion
from torsor.human.measured import MarkerSet, TrackMarkers, inverse_kinematics, measured_start
from torsor.human.recordings import Markers


def recorded(gap: bool = False) -> tuple[torsor.Robot, MarkerSet, Markers, np.ndarray]:
    """Return an arm, three markers on it, and where they are in a motion without acceleration at its ends."""
    arm = torsor.library.planar_chain(2, length=0.5)
    links = [link.name for link in arm.links]
    places = {"a": (links[0], (0.5, 0.0, 0.0)), "b": (links[1], (0.5, 0.0, 0.0)), "c": (links[1], (0.2, 0.1, 0.0))}
    markers, s = MarkerSet(places), np.linspace(0.0, 1.0, 101)
    q = np.stack([0.8 * s**3 * (10 - 15 * s + 6 * s**2), 0.4 * np.sin(np.pi * s) ** 4], axis=1)
    poses = arm.poses(q)[:, list(markers.links(arm))]
    positions = np.einsum("kmij,mj->kmi", poses[..., :3, :3], markers.local) + poses[..., :3, 3]
    if gap:
        positions[40:60, 1] = np.nan
    return arm, markers, Markers(markers.names, s, positions), q


@pytest.mark.parametrize("gap", [False, True])
def test_a_motion_follows_measured_markers(gap: bool) -> None:
    arm, markers, seen, q = recorded(gap)
    track = TrackMarkers(markers=markers, recording=seen)
    problem = motion.MotionProblem(arm, motion.Phase(1.0, points=10), track, [])
    found = inverse_kinematics(arm, markers, seen)
    result = problem.solve(start=measured_start(problem, found, 0.0, 1.0))
    assert result.status == "optimal"
    assert np.abs(result.at(seen.times).q - q).max() < 0.01


def test_starts_that_do_not_fit_are_named() -> None:
    arm, markers, seen, _ = recorded()
    problem = motion.MotionProblem(torsor.library.two_link(), motion.Phase(1.0, points=6), motion.Effort(), [])
    found = inverse_kinematics(arm, markers, seen)
    with refused(argument="last (s)"):
        measured_start(problem, found, 0.0, 9.0)
    with refused(value="markers", where="TrackMarkers"):
        other = MarkerSet({"x": (arm.links[0].name, (0.0, 0.0, 0.0))})
        track = TrackMarkers(markers=other, recording=seen)
        motion.MotionProblem(arm, motion.Phase(1.0, points=6), track, []).solve()
