"""Whole-body control: accelerations and contact forces from a quadratic program, torques from inverse dynamics."""
