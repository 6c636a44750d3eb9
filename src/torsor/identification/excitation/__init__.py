"""Excitation trajectories, also for parameters that earlier measurements leave uncertain."""
