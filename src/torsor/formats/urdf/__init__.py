"""URDF: the ROS format."""
