"""Model-based controllers: pure functions of time and state that compile."""

from torsor.control.controller import Controller
from torsor.control.elastic import elastic_feed_forward, elastic_tracking, motor_equilibrium
from torsor.control.linearization import feedback_linearization
from torsor.control.mixed_joints import mixed
from torsor.control.observer import MomentumObserver
from torsor.control.pd import gravity_compensation, gravity_pd
from torsor.control.references import Reference, reference
from torsor.control.rigid import computed_torque
from torsor.control.scaling import OnlineScaling, Timing
from torsor.control.task import operational_space

__all__ = [
    "Controller",
    "MomentumObserver",
    "OnlineScaling",
    "Reference",
    "Timing",
    "computed_torque",
    "elastic_feed_forward",
    "elastic_tracking",
    "feedback_linearization",
    "gravity_compensation",
    "gravity_pd",
    "mixed",
    "motor_equilibrium",
    "operational_space",
    "reference",
]
