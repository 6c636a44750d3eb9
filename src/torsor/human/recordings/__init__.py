"""Recordings of people: markers, ground forces and tables of joint angles, in SI units."""

from torsor.formats.osim.file import read_osim
from torsor.formats.osim.model import OsimModel
from torsor.human.recordings.guesses import by_foot, foot_markers, likely_axes
from torsor.human.recordings.inspection import Finding, inspect
from torsor.human.recordings.loading import example, load, save
from torsor.human.recordings.processing import fill_gaps, lowpass, overground, rates, resample, smooth, standing
from torsor.human.recordings.recording import Event, Gap, GroundForces, Markers, MotionTable, Recording

__all__ = [
    "Event", "Finding", "Gap", "GroundForces", "Markers", "MotionTable", "OsimModel", "Recording", "by_foot", "example",
    "fill_gaps", "foot_markers", "inspect", "likely_axes", "load", "lowpass", "overground", "rates", "read_osim",
    "resample", "save", "smooth", "standing",
]  # fmt: skip
