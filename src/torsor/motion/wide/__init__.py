"""Batches of programs with explicit Jacobians, for linear rows, costs that couple nodes, and nodes with many rows."""
