"""Algorithms of rigid-body dynamics, one per file: pure functions of a tree and symbols, traced over CasADi SX."""

from torsor.dynamics.loops.index_one import closed_state
from torsor.dynamics.recursions.midpoint import midpoint_step
from torsor.dynamics.recursions.regressor import inertial, parameter_basis, parameter_names, parameters
from torsor.dynamics.recursions.regrouping import regroupings
from torsor.dynamics.recursions.sdirk import sdirk_step
from torsor.dynamics.requests.algorithms import ALGORITHMS, Algorithm
from torsor.dynamics.requests.request import Request, fingerprint
from torsor.dynamics.requests.tracing import trace
from torsor.dynamics.trees.lean import lean
from torsor.dynamics.trees.tree import Body, Tree

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
    "parameter_basis",
    "parameter_names",
    "parameters",
    "regroupings",
    "sdirk_step",
    "trace",
]
