"""Symbolic closed loops: closure equations, constrained dynamics, multipliers, wrenches in cut joints."""
