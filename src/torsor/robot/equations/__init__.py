"""Printed equations: the algorithms of a robot as SymPy expressions and as LaTeX. See ``Robot.equations``."""
