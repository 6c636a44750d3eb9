"""SDFormat: the format of Gazebo."""
