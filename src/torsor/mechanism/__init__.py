"""Mechanisms: links, joints, drives, loops, frames and coordinates. They are frozen and validated on creation."""

from torsor.base.registry import subpackages
from torsor.mechanism.build import build
from torsor.mechanism.drives import Motor, Spring
from torsor.mechanism.joints import KINDS, JointKind
from torsor.mechanism.loops import CUTS, Coupling, CutJoint, Loop, Wheel
from torsor.mechanism.mechanism import Coordinate, Mechanism, Place, ends_of
from torsor.mechanism.parts import Frame, Joint, Link, Shape, Visual

__all__ = [
    "CUTS",
    "KINDS",
    "Coordinate",
    "Coupling",
    "CutJoint",
    "Frame",
    "Joint",
    "JointKind",
    "Link",
    "Loop",
    "Mechanism",
    "Motor",
    "Place",
    "Shape",
    "Spring",
    "Visual",
    "Wheel",
    "build",
    "ends_of",
]

__getattr__ = subpackages(__name__, "flexible_links")
