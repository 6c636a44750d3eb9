"""Skeletons of OpenSim."""
