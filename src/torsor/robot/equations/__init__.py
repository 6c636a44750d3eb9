"""Printed equations: robot algorithms as SymPy expressions and as LaTeX. See ``Robot.equations``."""

from importlib.util import find_spec

from torsor.base.errors import missing

if find_spec("sympy") is None:  # before any file of this package imports it
    raise missing("printed equations need SymPy", "symbolic")
