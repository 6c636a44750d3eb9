"""Closed loops: closure, assembly, mobility and constrained dynamics."""

from torsor.robot.closed_loops.mobility import Mobility, Output
from torsor.robot.closed_loops.search import AssemblyError

__all__ = ["AssemblyError", "Mobility", "Output"]
