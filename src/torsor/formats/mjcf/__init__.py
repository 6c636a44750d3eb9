"""MJCF: the format of MuJoCo."""
