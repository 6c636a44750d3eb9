"""Closed loops over symbols: closure equations, constrained dynamics, multipliers, wrenches in cut joints."""
