"""Functional mock-up units (FMI 2.0 and 3.0): robot dynamics as one file for other simulation tools."""
