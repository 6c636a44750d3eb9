"""The table of algorithms: inputs follow from the signature of the rule, and the table adds the result shapes."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any

from torsor.dynamics.derivatives import dynamics, hessian, kinematics
from torsor.dynamics.loops import closure, constrained, constrained_derivatives
from torsor.dynamics.recursions import (
    composite,
    configuration,
    hybrid,
    momentum,
    newton_euler,
    passive,
    places,
    rates,
    regressor,
)
from torsor.mechanism import Coupling, Mechanism

# Rule parameters that are not arrays passed by the caller.
_OPTIONS = {"tree", "place", "axes", "rows", "forced", "choice", "in_world"}


def _takes(parameter: str) -> "cached_property[bool]":
    return cached_property(lambda algorithm: parameter in algorithm.parameters)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm: a function ``rule`` of a tree and symbols, and its results.

    - ``output``: the shape of the result for one state, with names (see ``size``) for axes that depend on the
      mechanism.
    - ``results``: names of the results if there are several, all of the same shape.
    - ``lean``: the result depends only on the coordinates, so the tree may be simplified.
    - ``lean_afloat``: like ``lean``, but only for a floating base, because all inertia then remains in the tree.
    - ``shared``: the rule computes nothing twice, so no search for common subexpressions is needed.
    - ``multipliers``: the loops are closed by Lagrange multipliers.
    - ``instead``: methods that return the result for the closed mechanism; ``rule`` is for the tree with cut loops.
    """

    rule: Callable[..., Any]
    output: tuple[str | int, ...]
    results: tuple[str, ...] = ()
    lean: bool = False
    lean_afloat: bool = False
    shared: bool = False
    multipliers: bool = False
    instead: str = ""

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of the rule."""
        return dict(inspect.signature(self.rule).parameters)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input arrays, in order; optional external wrenches follow."""
        plain = (item for item in self.parameters.values() if item.kind is item.POSITIONAL_OR_KEYWORD)
        return tuple(item.name for item in plain if item.default is item.empty and item.name not in _OPTIONS)

    @cached_property
    def external(self) -> bool:
        """Whether external wrenches are an optional input."""
        return "external" in self.parameters or self.keeps

    # Optional parameters of the rule:
    keeps = _takes("loads")  # whether external wrenches are fixed in the link or world while q changes
    at_place = _takes("place")  # a link or frame
    in_axes = _takes("axes")  # the axes of the result
    at_point = _takes("point")  # a point of the link or frame
    by_rows = _takes("rows")  # the selected velocities of the link or frame, angular or linear
    hybrid = _takes("forced")  # the coordinates driven by force
    closed = _takes("choice")  # the equations that close the loops
    rates = _takes("external_rate")  # higher time derivatives of the motion, each of which adds one result

    def axis_of(self, name: str) -> str:
        """Return the name of the axis of an input; see ``size``."""
        if name == "multipliers":
            return "c"
        return "nq" if name in ("q", "q_end") else "N" if name.endswith("_active") or name == "share" else "n"


def size(mechanism: Mechanism, axis: str | int) -> int:
    """Return the length of an axis by its name.

    The names are n (velocities), 3n (q, v and a), nq (positions), nq+n+2 (positions, velocities and two more), L
    (links), p (parameters), N (active coordinates), c (closure equations), cuts (cut joints) and rows (all velocities
    of a place). n+1, N+1 and c+1 have one more entry.
    """
    if isinstance(axis, int):
        return axis
    if axis.endswith("+1"):
        return size(mechanism, axis.removesuffix("+1")) + 1
    nq, nv, loops = mechanism.nq, mechanism.nv, mechanism.loops
    sizes = {"n": nv, "3n": 3 * nv, "nq": nq, "nq+n+2": nq + nv + 2, "rows": 6, "L": len(mechanism.links)}
    sizes |= {"N": len(mechanism.active), "c": sum(loop.count for loop in loops)}
    sizes["p"] = len(regressor.INERTIAL) * len(mechanism.links) + 3 * sum(joint.nv for joint in mechanism.joints)
    return (sizes | {"cuts": sum(not isinstance(loop, Coupling) for loop in loops)})[axis]


_N, _NN, _TWIST, _LINKS, _COLUMNS = ("n",), ("n", "n"), (6,), ("L", 6), (6, "n")
_BY_A, _BY_TAU = ("dq", "dv", "da"), ("dq", "dv", "dtau")

# Methods for the closed mechanism that correspond to algorithms for trees.
_INVERSE, _INVERSE_D = "robot.closed.inverse_dynamics", "robot.closed.derivatives.inverse_dynamics"
_FORWARD = "robot.closed.forward_dynamics"
_FORWARD_D = "robot.closed.derivatives.forward_dynamics"
_REACTIONS_D = "robot.closed.derivatives.joint_wrenches"
_MASS = "robot.closed.derivatives.inverse_dynamics (its last result)"
NO_METHOD = "none"

_TABLE = (
    Algorithm(newton_euler.inverse_dynamics, _N, lean=True, instead=_INVERSE),
    Algorithm(hybrid.forward_dynamics, _N, lean=True, instead=_FORWARD),
    Algorithm(hybrid.hybrid_dynamics, _N, ("a", "tau"), lean=True, instead=_FORWARD),
    Algorithm(dynamics.inverse_dynamics_derivatives, _NN, _BY_A, lean=True, instead=_INVERSE_D),
    Algorithm(dynamics.forward_dynamics_derivatives, _NN, _BY_TAU, lean=True, shared=True, instead=_FORWARD_D),
    Algorithm(
        dynamics.hybrid_dynamics_derivatives, _NN, ("dq", "dv", "dgiven"), lean=True, shared=True, instead=_FORWARD_D
    ),
    Algorithm(dynamics.joint_wrench_derivatives, ("L", 6, "n"), _BY_A, instead=_REACTIONS_D),
    Algorithm(hessian.inverse_dynamics_hessian, ("3n", "3n"), lean=True, instead=NO_METHOD),
    Algorithm(rates.force_rate, _N, ("tau", "rate"), lean=True, instead=_INVERSE_D),
    Algorithm(rates.joint_wrench_rates, _LINKS, ("wrench", "rate"), instead=_REACTIONS_D),
    Algorithm(newton_euler.joint_wrenches, _LINKS, instead="robot.closed.joint_wrenches"),
    Algorithm(newton_euler.bias_force, _N, lean=True, instead=_INVERSE),
    Algorithm(newton_euler.gravity_force, _N, lean=True, instead=_INVERSE),
    Algorithm(passive.friction_force, _N),
    Algorithm(passive.spring_force, _N),
    Algorithm(regressor.regressor, ("n", "p"), instead="robot.closed.regressor"),
    Algorithm(regressor.power_regressor, ("p",)),
    Algorithm(regressor.energy_regressor, ("p",)),
    Algorithm(composite.mass_matrix, _NN, lean=True, instead=_MASS),
    Algorithm(composite.coriolis_matrix, _NN, lean=True, instead=NO_METHOD),
    Algorithm(places.poses, ("L", 4, 4)),
    Algorithm(places.velocities, _LINKS),
    Algorithm(places.accelerations, _LINKS),
    Algorithm(places.pose, (4, 4)),
    Algorithm(places.velocity, _TWIST),
    Algorithm(places.acceleration, _TWIST),
    Algorithm(rates.jerk, _TWIST),
    Algorithm(rates.jerks, _LINKS),
    Algorithm(places.jacobian, _COLUMNS),
    Algorithm(places.jacobian_rate, _COLUMNS),
    Algorithm(kinematics.velocity_derivatives, _COLUMNS, _BY_A[:2]),
    Algorithm(kinematics.acceleration_derivatives, _COLUMNS, _BY_A),
    Algorithm(kinematics.jerk_derivatives, _COLUMNS, (*_BY_A, "dj")),
    Algorithm(momentum.kinetic_energy, ()),
    Algorithm(momentum.potential_energy, ()),
    Algorithm(momentum.center_of_mass, (3,)),
    Algorithm(momentum.momentum, _TWIST),
    Algorithm(momentum.centroidal_momentum_matrix, _COLUMNS, lean_afloat=True),
    Algorithm(momentum.centroidal_momentum_matrix_rate, _COLUMNS, lean_afloat=True),
    Algorithm(momentum.centroidal_momentum_bias, _TWIST, lean_afloat=True),
    Algorithm(momentum.composite_inertia, (6, 6)),
    Algorithm(momentum.center_of_mass_jacobian, (3, "n"), lean_afloat=True),
    Algorithm(momentum.center_of_mass_jacobian_rate, (3, "n"), lean_afloat=True),
    Algorithm(momentum.center_of_mass_velocity, (3,), lean_afloat=True),
    Algorithm(momentum.center_of_mass_acceleration, (3,), lean_afloat=True),
    Algorithm(places.manipulability, (), instead=NO_METHOD),
    Algorithm(places.manipulability_gradient, _N, instead=NO_METHOD),
    Algorithm(places.cartesian_mass_matrix, ("rows", "rows"), instead=NO_METHOD),
    Algorithm(places.null_space, _NN, instead=NO_METHOD),
    Algorithm(places.kinematic_null_space, _NN, instead=NO_METHOD),
    Algorithm(configuration.integrate, ("nq",)),
    Algorithm(configuration.difference, _N),
    Algorithm(closure.closure_error, ("c",)),
    Algorithm(closure.closure_jacobian, ("c", "n")),
    Algorithm(closure.closure_rate, ("c",)),
    Algorithm(constrained.closure_trial, ("nq+n+2",), lean=True),
    Algorithm(constrained.closure_state, (3,), lean=True),
    Algorithm(constrained.constrained_velocities, _N, lean=True),
    Algorithm(constrained.constrained_accelerations, _N, ("v", "a"), lean=True),
    Algorithm(constrained.constrained_inverse_dynamics, ("N",), lean=True),
    Algorithm(constrained.constrained_forward_dynamics, ("N",), lean=True),
    Algorithm(constrained.constrained_joint_wrenches, _LINKS),
    Algorithm(constrained.loop_forces, ("c",), lean=True),
    Algorithm(constrained.loop_wrenches, ("cuts", 6), lean=True),
    Algorithm(constrained_derivatives.constrained_velocity_derivatives, ("n", "N"), ("dq", "dv"), lean=True),
    Algorithm(constrained_derivatives.constrained_acceleration_derivatives, ("n", "N"), _BY_A, lean=True),
    Algorithm(constrained_derivatives.constrained_inverse_dynamics_derivatives, ("N", "N"), _BY_A, lean=True),
    Algorithm(constrained_derivatives.constrained_forward_dynamics_derivatives, ("N", "N"), _BY_TAU, lean=True),
    Algorithm(constrained_derivatives.loop_force_derivatives, ("c", "N"), _BY_A, lean=True),
    Algorithm(constrained_derivatives.loop_wrench_derivatives, ("cuts", 6, "N"), _BY_A, lean=True),
    Algorithm(constrained_derivatives.constrained_joint_wrench_derivatives, ("L", 6, "N"), _BY_A),
    Algorithm(constrained.closed_forward_dynamics, _N, lean=True, multipliers=True),
    Algorithm(constrained.closed_inverse_dynamics, ("N",), lean=True, multipliers=True),
    Algorithm(constrained.closed_loop_forces, ("c",), lean=True, multipliers=True),
    Algorithm(constrained.closed_velocities, _N, lean=True, multipliers=True),
    Algorithm(constrained.loop_loads, _LINKS),
    Algorithm(constrained.closure_margin, (), lean=True, multipliers=True),
    Algorithm(configuration.chart, ("nq",)),
    Algorithm(configuration.chart_rate, _N),
)
WITH_MARGIN = "_with_margin"
ALGORITHMS = {item.rule.__name__: item for item in _TABLE}
for _name in ("closed_forward_dynamics", "closed_inverse_dynamics", "closed_loop_forces", "closed_velocities"):
    _plain = ALGORITHMS[_name]
    _rule, _output = partial(_plain.rule, margin=True), (f"{_plain.output[0]}+1",)
    ALGORITHMS[_name + WITH_MARGIN] = Algorithm(_rule, _output, lean=True, multipliers=True)
"""All algorithms by the names of their rules, which ``robot.function`` accepts.

The integrators of ``simulation`` use the charts. Methods use the algorithms with a margin, which return a result and
``closure_margin`` from one function."""
MAX_NAMES = 6  # maximum number of algorithm names in a message


def algorithm_names(like: object = "") -> str:
    """Return algorithm names for a message, such as "mass_matrix, jacobian:LINK"; those similar to ``like`` first."""
    requested = like.partition(":")[0] if isinstance(like, str) else ""
    named = {name: item for name, item in ALGORITHMS.items() if not name.endswith(WITH_MARGIN)}
    places = {name: f"{name}:LINK" if item.at_place else name for name, item in named.items()}
    near = get_close_matches(requested, places, MAX_NAMES)
    shown = [*near, *(name for name in places if name not in near)][:MAX_NAMES]
    return f"{', '.join(places[name] for name in shown)}, ... {len(places)} in all"
