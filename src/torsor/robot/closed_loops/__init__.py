"""Closed loops of robots: closure, assembly, mobility, and dynamics while the loops are closed."""

from torsor.robot.closed_loops.mobility import Mobility, Output
from torsor.robot.closed_loops.search import AssemblyError

__all__ = ["AssemblyError", "Mobility", "Output"]
