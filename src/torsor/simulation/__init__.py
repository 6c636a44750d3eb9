"""Simulation: integration methods, trajectories and events."""

from torsor.base.errors import SimulationError
from torsor.simulation.contact import Contact
from torsor.simulation.environments import Environments
from torsor.simulation.episodes import Gradients, Outcome
from torsor.simulation.files import SUFFIXES, Crossings
from torsor.simulation.limits import Limits
from torsor.simulation.methods import METHODS
from torsor.simulation.rollout import Rollout, rollout
from torsor.simulation.sensitivities import Sensitivity, sensitivity, step_derivatives
from torsor.simulation.simulate import simulate
from torsor.simulation.terrain import height_field, rough_ground, steps
from torsor.simulation.trajectory import Trajectory

__all__ = [
    "METHODS", "SUFFIXES", "Contact", "Crossings", "Environments", "Gradients", "Limits", "Outcome", "Rollout",
    "Sensitivity", "SimulationError", "Trajectory", "height_field", "rollout", "rough_ground", "sensitivity",
    "simulate", "step_derivatives", "steps",
]  # fmt: skip
