"""Recursions over the tree: kinematics, Newton-Euler, articulated and composite bodies, rates, regressors."""
