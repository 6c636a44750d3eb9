"""What a mechanism is: links, joints, coordinates, frames; frozen, and validated once."""

from torsor.robot.assemble import assemble
from torsor.robot.drives import Motor, Spring
from torsor.robot.joints import KINDS, JointKind
from torsor.robot.mechanism import Coordinate, Mechanism, Place
from torsor.robot.parts import Frame, Joint, Link, Visual

__all__ = [
    "KINDS",
    "Coordinate",
    "Frame",
    "Joint",
    "JointKind",
    "Link",
    "Mechanism",
    "Motor",
    "Place",
    "Spring",
    "Visual",
    "assemble",
]
