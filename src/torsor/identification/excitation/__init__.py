"""Motions that excite the parameters of a robot, and that aim at what earlier measurements leave uncertain."""
