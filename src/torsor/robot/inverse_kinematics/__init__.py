"""Inverse kinematics: postures that meet targets, by search for any robot, or in closed form for common arms."""

from torsor.robot.inverse_kinematics.analytic import analytic_inverse_kinematics
from torsor.robot.inverse_kinematics.result import InverseKinematicsResult, Miss
from torsor.robot.inverse_kinematics.solve import inverse_kinematics
from torsor.robot.inverse_kinematics.targets import CenterOfMass, Direction, LookAt, Orientation, Pose, Position, Target

__all__ = [
    "CenterOfMass",
    "Direction",
    "InverseKinematicsResult",
    "LookAt",
    "Miss",
    "Orientation",
    "Pose",
    "Position",
    "Target",
    "analytic_inverse_kinematics",
    "inverse_kinematics",
]
