"""The mechanism: links, joints, drives, loops, frames and coordinates. Frozen, and validated when it is made."""

from torsor.mechanism.build import build
from torsor.mechanism.drives import Motor, Spring
from torsor.mechanism.joints import KINDS, JointKind
from torsor.mechanism.loops import CUTS, Coupling, Loop
from torsor.mechanism.mechanism import Coordinate, Mechanism, Place
from torsor.mechanism.parts import Frame, Joint, Link, Visual

__all__ = [
    "CUTS",
    "KINDS",
    "Coordinate",
    "Coupling",
    "Frame",
    "Joint",
    "JointKind",
    "Link",
    "Loop",
    "Mechanism",
    "Motor",
    "Place",
    "Spring",
    "Visual",
    "build",
]
