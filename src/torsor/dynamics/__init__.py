"""One algorithm, one file: pure functions of a tree and symbols, traced over CasADi SX."""

from torsor.dynamics.algorithms import ALGORITHMS, Algorithm
from torsor.dynamics.fingerprint import fingerprint
from torsor.dynamics.index_one import closed_state
from torsor.dynamics.lean import lean
from torsor.dynamics.midpoint import midpoint_step
from torsor.dynamics.regressor import inertial, parameter_names, parameters, units
from torsor.dynamics.regrouping import regroupings
from torsor.dynamics.requests import Request
from torsor.dynamics.tracing import trace
from torsor.dynamics.tree import Body, Tree

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Body",
    "Request",
    "Tree",
    "closed_state",
    "fingerprint",
    "inertial",
    "lean",
    "midpoint_step",
    "parameter_names",
    "parameters",
    "regroupings",
    "trace",
    "units",
]
