"""Whole-body control: accelerations and contact forces from a quadratic program, and torques from inverse dynamics."""
