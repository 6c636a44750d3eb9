"""URDF: the format of ROS."""
