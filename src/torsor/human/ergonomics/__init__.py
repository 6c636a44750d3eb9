"""Ergonomics of predicted motions: lumbar loads, NIOSH lifting equation, percent capable, joint contact forces."""

from torsor.human.ergonomics.assessment import Assessment, assess, write_ergonomic_report
from torsor.human.ergonomics.capability import Capability, capabilities, capable
from torsor.human.ergonomics.joint_contact import IN_VIVO, JointContact, joint_contact, muscle_forces
from torsor.human.ergonomics.lumbar import (
    Dose,
    LumbarLoads,
    LumbarModel,
    compression_tolerance,
    cumulative_dose,
    lumbar_loads,
)
from torsor.human.ergonomics.niosh import LiftEnd, LiftingIndex, frequency_multiplier, lifting_index
from torsor.human.ergonomics.population import PercentCapable, percent_capable

__all__ = [
    "IN_VIVO", "Assessment", "Capability", "Dose", "JointContact", "LiftEnd", "LiftingIndex", "LumbarLoads",
    "LumbarModel", "PercentCapable", "assess", "capabilities", "capable", "compression_tolerance", "cumulative_dose",
    "frequency_multiplier", "joint_contact", "lifting_index", "lumbar_loads", "muscle_forces", "percent_capable",
    "write_ergonomic_report",
]  # fmt: skip
