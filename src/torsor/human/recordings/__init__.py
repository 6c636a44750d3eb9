"""Recordings of people: markers, ground forces and tables of joint angles, in SI units."""

from torsor.formats.osim.file import read_osim
from torsor.formats.osim.model import OsimModel
from torsor.human.recordings.feet import by_foot, foot_markers
from torsor.human.recordings.findings import Finding
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.inspection import inspect
from torsor.human.recordings.likely import likely_axes
from torsor.human.recordings.loading import load, save
from torsor.human.recordings.markers import Gap, Markers
from torsor.human.recordings.motion_table import MotionTable
from torsor.human.recordings.moving_ground import overground
from torsor.human.recordings.processing import fill_gaps, lowpass, rates, resample, smooth
from torsor.human.recordings.recording import Event, Recording
from torsor.human.recordings.standing import standing

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
