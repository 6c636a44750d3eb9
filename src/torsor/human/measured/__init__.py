"""Measured people: marker sets, scaling, inverse kinematics, and inverse dynamics with ground forces."""

import torsor.human.measured.timelines  # noqa: F401  registers the timelines of measured gaits
from torsor.base.archive import register_result
from torsor.formats.osim.model import OsimCoordinate
from torsor.human.body.person import resized
from torsor.human.measured.gait import MeasuredGait, measured_gait
from torsor.human.measured.inverse_dynamics import MeasuredDynamics, inverse_dynamics
from torsor.human.measured.inverse_kinematics import MeasuredMotion, inverse_kinematics, marker_paths
from torsor.human.measured.marker_set import MarkerSet, marker_set
from torsor.human.measured.osim_scaling import Measurement, scale_factors, scaled_model, scaled_skeleton
from torsor.human.measured.person import Person, scaled_person
from torsor.human.measured.segments import Segments, identify_segments
from torsor.human.measured.skeleton import Skeleton, skeleton
from torsor.human.measured.tracking import TrackForces, TrackMarkers, followed, measured_start
from torsor.human.recordings import Event, Finding, GroundForces, Markers
from torsor.mechanism.curves import Curve
from torsor.motion.encoding import encodable

__all__ = [
    "MarkerSet", "MeasuredDynamics", "MeasuredGait", "MeasuredMotion", "Measurement", "Person", "Segments", "Skeleton",
    "TrackForces", "TrackMarkers", "followed", "identify_segments", "inverse_dynamics", "inverse_kinematics",
    "marker_paths", "marker_set", "measured_gait", "measured_start", "resized", "scale_factors", "scaled_model",
    "scaled_person", "scaled_skeleton", "skeleton",
]  # fmt: skip

encodable("measured", MarkerSet, TrackForces, TrackMarkers)
encodable("measured", MeasuredGait, MeasuredMotion, MeasuredDynamics, Person, Skeleton, Curve, OsimCoordinate)
encodable("measured", Event, Finding, GroundForces, Markers)
register_result("measured_gait", MeasuredGait, "a measured gait")
