"""Symbolic closed loops: closure equations, constrained dynamics, multipliers, and wrenches in cut joints."""
