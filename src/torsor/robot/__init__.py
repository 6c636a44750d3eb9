"""What a mechanism is: links, joints, coordinates, frames; frozen, and validated once."""

from torsor.robot.assemble import assemble
from torsor.robot.drives import Motor, Spring
from torsor.robot.joints import KINDS, JointKind
from torsor.robot.loops import CUTS, Coupling, Loop
from torsor.robot.mechanism import Coordinate, Mechanism, Place
from torsor.robot.parts import Frame, Joint, Link, Visual

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
    "assemble",
]
