"""Parallel robots: legs that connect a platform to the base, their dynamics leg by leg, and their workspace."""

from torsor.robot.parallel.legs import Leg
from torsor.robot.parallel.robot import ParallelRobot
from torsor.robot.parallel.workspace import Workspace

__all__ = ["Leg", "ParallelRobot", "Workspace"]
