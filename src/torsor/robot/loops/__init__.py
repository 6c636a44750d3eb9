"""Robots with closed loops: how they are put together, what moves them, and their dynamics."""

from torsor.robot.loops.assembly import AssemblyError
from torsor.robot.loops.looped import Looped
from torsor.robot.loops.mobility import Mobility, Output

__all__ = ["AssemblyError", "Looped", "Mobility", "Output"]
