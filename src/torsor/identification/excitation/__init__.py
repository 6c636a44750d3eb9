"""Excitation trajectories, including motions for parameters that earlier measurements leave uncertain."""
