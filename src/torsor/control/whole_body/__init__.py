"""Whole-body control: accelerations and contact forces by a quadratic program, torques by inverse dynamics."""
