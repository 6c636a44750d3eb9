"""Solvers of nonlinear programs: each is a function of a program, a start and settings."""
