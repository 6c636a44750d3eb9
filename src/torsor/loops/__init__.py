"""Robots with closed loops: how they are put together, what moves them, and their dynamics."""

from torsor.loops.looped import Looped
from torsor.loops.mobility import Mobility

__all__ = ["Looped", "Mobility"]
