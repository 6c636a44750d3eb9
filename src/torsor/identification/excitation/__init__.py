"""Excitation trajectories, including those for parameters that earlier measurements leave uncertain."""
