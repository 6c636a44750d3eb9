"""Robots with closed loops: how they are put together, what moves them, and their dynamics."""

from torsor.loops.assembly import AssemblyError
from torsor.loops.looped import Looped
from torsor.loops.mobility import Mobility, Output

__all__ = ["AssemblyError", "Looped", "Mobility", "Output"]
