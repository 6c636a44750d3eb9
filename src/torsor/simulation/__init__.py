"""Motions: integrators, trajectories, events."""

from torsor.simulation.simulate import simulate
from torsor.simulation.trajectory import Crossings, SimulationError, Trajectory

__all__ = ["Crossings", "SimulationError", "Trajectory", "simulate"]
