"""MJCF: the MuJoCo format."""
