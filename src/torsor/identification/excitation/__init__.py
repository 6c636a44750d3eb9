"""Excitation trajectories, including motions for parameters that are uncertain after earlier measurements."""
