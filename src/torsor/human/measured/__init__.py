"""Measured people: markers on the body, scaling, inverse kinematics, inverse dynamics with measured ground forces."""
