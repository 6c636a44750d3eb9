"""Model-based controllers: pure, compilable functions of time and state."""

from torsor.control.controller import Controller, Reference, reference
from torsor.control.drives import Drives, drives
from torsor.control.elastic import (
    elastic_feed_forward,
    elastic_tracking,
    feedback_linearization,
    mixed,
    motor_equilibrium,
)
from torsor.control.observer import MomentumObserver
from torsor.control.rigid import computed_torque, gravity_compensation, gravity_pd, operational_space
from torsor.control.scaling.online import OnlineScaling, Timing
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
    "AngularMomentum", "CenterOfMass", "Controller", "Drives", "FrameDirection", "FrameOrientation", "FramePose",
    "FramePosition", "MomentumObserver", "OnlineScaling", "PointContact", "Posture", "Reference", "SurfaceContact",
    "Timing", "WholeBody", "WholeBodyResult", "computed_torque", "drives", "elastic_feed_forward", "elastic_tracking",
    "feedback_linearization", "gravity_compensation", "gravity_pd", "mixed", "motor_equilibrium", "operational_space",
    "reference",
]  # fmt: skip
