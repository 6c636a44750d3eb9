"""OpenSim skeletons."""
