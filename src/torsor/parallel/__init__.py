"""Parallel robots: legs from the base to one platform, their dynamics leg by leg, and their workspace."""

from torsor.parallel.legs import Leg
from torsor.parallel.robot import ParallelRobot
from torsor.parallel.workspace import Workspace

__all__ = ["Leg", "ParallelRobot", "Workspace"]
