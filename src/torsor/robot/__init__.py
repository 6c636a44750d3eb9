"""Robots: mechanisms with compiled dynamics."""

from torsor.base.registry import subpackages
from torsor.robot.robot import Robot

__all__ = ["Robot"]

__getattr__ = subpackages(__name__, "autodiff", "inverse_kinematics", "parallel")
