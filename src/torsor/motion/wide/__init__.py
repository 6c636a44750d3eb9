"""Batches of programs with explicit Jacobians: linear rows, costs that couple nodes, and nodes with many rows."""
