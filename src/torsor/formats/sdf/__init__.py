"""SDFormat: the Gazebo format."""
