"""Robot: a mechanism with its compiled dynamics."""

from torsor.robot.robot import Robot

__all__ = ["Robot"]
