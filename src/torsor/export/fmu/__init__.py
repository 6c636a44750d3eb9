"""Functional mock-up units (FMI 2.0 and 3.0): the dynamics of a robot as one file for other simulation programs."""
