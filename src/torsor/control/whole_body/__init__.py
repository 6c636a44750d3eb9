"""Whole-body control: accelerations and contact forces by a quadratic program, torques by inverse dynamics."""

from torsor.control.whole_body.controller import WholeBody, WholeBodyResult
from torsor.control.whole_body.tasks import (
    AngularMomentum,
    CenterOfMass,
    FrameDirection,
    FrameOrientation,
    FramePose,
    FramePosition,
    PointContact,
    Posture,
    SurfaceContact,
)

__all__ = [
    "AngularMomentum",
    "CenterOfMass",
    "FrameDirection",
    "FrameOrientation",
    "FramePose",
    "FramePosition",
    "PointContact",
    "Posture",
    "SurfaceContact",
    "WholeBody",
    "WholeBodyResult",
]
