"""Rigid-body dynamics algorithms: pure functions of a tree and symbols, traced with CasADi's SX type."""

from torsor.dynamics.algorithms import ALGORITHMS, Algorithm
from torsor.dynamics.loops.constrained import closed_state
from torsor.dynamics.recursions.implicit_steps import midpoint_step, sdirk_step
from torsor.dynamics.recursions.regressor import inertial, parameter_basis, parameter_names, parameters, regroupings
from torsor.dynamics.requests import Request, fingerprint, trace
from torsor.dynamics.trees.imposed import tree_of
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
    "tree_of",
]
