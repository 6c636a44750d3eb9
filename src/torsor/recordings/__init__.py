"""Recordings of people: markers, ground forces and tables of joint angles, in SI units."""

from torsor.formats.osim.file import read_osim
from torsor.formats.osim.model import OsimModel
from torsor.recordings.feet import by_foot, foot_markers
from torsor.recordings.findings import Finding
from torsor.recordings.forces import GroundForces
from torsor.recordings.inspection import inspect
from torsor.recordings.likely import likely_axes
from torsor.recordings.loading import load, save
from torsor.recordings.markers import Gap, Markers
from torsor.recordings.motion_table import MotionTable
from torsor.recordings.moving_ground import overground
from torsor.recordings.processing import fill_gaps, lowpass, rates, resample, smooth
from torsor.recordings.recording import Event, Recording
from torsor.recordings.standing import standing

__all__ = [
    "Event",
    "Finding",
    "Gap",
    "GroundForces",
    "Markers",
    "MotionTable",
    "OsimModel",
    "Recording",
    "by_foot",
    "fill_gaps",
    "foot_markers",
    "inspect",
    "likely_axes",
    "load",
    "lowpass",
    "overground",
    "rates",
    "read_osim",
    "resample",
    "save",
    "smooth",
    "standing",
]
