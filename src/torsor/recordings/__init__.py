"""Recordings of people: markers, ground forces and tables of joint angles, in SI units."""

from torsor.recordings.forces import GroundForces
from torsor.recordings.markers import Gap, Markers
from torsor.recordings.motion_table import MotionTable
from torsor.recordings.recording import Event, Recording

__all__ = ["Event", "Gap", "GroundForces", "Markers", "MotionTable", "Recording"]
