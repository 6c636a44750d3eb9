"""Analytical first and second derivatives of inverse, forward and hybrid dynamics."""
