"""Robots as packages of ROS 2."""

from torsor.export.ros2.package import export_ros2, package_name

__all__ = ["export_ros2", "package_name"]
