"""The table of algorithms. Inputs are read from the signature of the rule; the table adds the shapes of results."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any

from torsor.dynamics.derivatives import dynamics, hessian
from torsor.dynamics.derivatives import dynamics as derivatives
from torsor.dynamics.derivatives import dynamics as solved
from torsor.dynamics.derivatives import kinematics as motion
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
from torsor.dynamics.recursions import places as task_space
from torsor.mechanism import Coupling, Mechanism

# Parameters of rules that are no arrays of the caller.
_OPTIONS = {"tree", "place", "axes", "rows", "forced", "choice", "in_world"}


def _takes(parameter: str) -> "cached_property[bool]":
    return cached_property(lambda algorithm: parameter in algorithm._parameters)


@dataclass(frozen=True)
class Algorithm:
    """An algorithm: its ``rule``, a function of a tree and symbols, and its results.

    ``output`` is the shape of the result for one state, with the names of ``size`` for axes that depend on the
    mechanism; where there are several results, all of that shape, ``results`` names them. ``lean``: the result depends
    on the coordinates only, so that the tree may be simplified; ``lean_afloat``: if its base floats, since all inertia
    stays in the tree then, and moves as before. ``shared``: the rule computes nothing twice, so that no
    search for common subexpressions is needed. ``multipliers``: the loops are closed by Lagrange multipliers.
    ``instead``: the result is that of the tree whose loops are cut open; these methods give the closed mechanism's.
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
    def _parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.rule).parameters)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the arrays that it takes, in order; external wrenches are optional and follow."""
        plain = (each for each in self._parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD)
        return tuple(each.name for each in plain if each.default is each.empty and each.name not in _OPTIONS)

    @cached_property
    def external(self) -> bool:
        """Whether external wrenches are an optional input."""
        return "external" in self._parameters or self.keeps

    keeps = _takes("loads")
    """Whether the result depends on where external wrenches are fixed (link or world) while q changes."""
    at_place = _takes("place")
    """Whether the result is that of one link or frame."""
    in_axes = _takes("axes")
    """Whether the axes of the result are an option."""
    at_point = _takes("point")
    """Whether a point of the link or frame is an optional input."""
    by_rows = _takes("rows")
    """Whether the velocities of the link or frame that count, angular or linear, are an option."""
    hybrid = _takes("forced")
    """Whether the coordinates driven by force are an option."""
    closed = _takes("choice")
    """Whether the loops are closed by a choice of equations."""
    rates = _takes("external_rate")
    """Whether higher rates of the motion are optional inputs, each with one more result."""

    def axis_of(self, name: str) -> str:
        """Return the name of the axis of an input, see ``size``."""
        if name == "multipliers":
            return "c"
        return "nq" if name in ("q", "q_end") else "N" if name.endswith("_active") or name == "share" else "n"


def size(mechanism: Mechanism, axis: str | int) -> int:
    """Return the length of an axis by its name.

    n velocities, 3n of (q, v, a), nq positions, nq+n+2 both and two more, L links, p parameters, N active coordinates,
    c closure equations, cuts cut joints, rows velocities of a place (all of them); n+1, N+1 and c+1 are one more.
    """
    match axis:
        case int():
            return axis
        case str() if axis.endswith("+1"):
            return size(mechanism, axis.removesuffix("+1")) + 1
        case "n":
            return mechanism.nv
        case "3n":
            return 3 * mechanism.nv
        case "nq":
            return mechanism.nq
        case "nq+n+2":
            return mechanism.nq + mechanism.nv + 2
        case "rows":
            return 6
        case "L":
            return len(mechanism.links)
        case "p":
            return regressor.parameter_count(mechanism)
        case "N":
            return len(mechanism.active)
        case "c":
            return sum(loop.count for loop in mechanism.loops)
        case "cuts":
            return sum(not isinstance(loop, Coupling) for loop in mechanism.loops)
    raise KeyError(axis)


_N, _NN, _TWIST, _LINKS, _COLUMNS = ("n",), ("n", "n"), (6,), ("L", 6), (6, "n")
_BY_A, _BY_TAU = ("dq", "dv", "da"), ("dq", "dv", "dtau")

# The methods that give a closed mechanism's own answer, where an algorithm gives that of the tree.
_INVERSE, _INVERSE_D = "robot.closed.inverse_dynamics", "robot.closed.derivatives.inverse_dynamics"
_FORWARD = "robot.closed.forward_dynamics"
_FORWARD_D = "robot.closed.derivatives.forward_dynamics"
_MASS = "robot.closed.derivatives.inverse_dynamics (its last result)"
NO_METHOD = "none"

ALGORITHMS: dict[str, Algorithm] = {
    "inverse_dynamics": Algorithm(newton_euler.inverse_dynamics, _N, lean=True, instead=_INVERSE),
    "forward_dynamics": Algorithm(hybrid.forward_dynamics, _N, lean=True, instead=_FORWARD),
    "hybrid_dynamics": Algorithm(hybrid.hybrid_dynamics, _N, ("a", "tau"), lean=True, instead=_FORWARD),
    "inverse_dynamics_derivatives": Algorithm(
        derivatives.inverse_dynamics_derivatives, _NN, _BY_A, lean=True, instead=_INVERSE_D
    ),
    "forward_dynamics_derivatives": Algorithm(
        solved.forward_dynamics_derivatives, _NN, _BY_TAU, lean=True, shared=True, instead=_FORWARD_D
    ),
    "hybrid_dynamics_derivatives": Algorithm(
        solved.hybrid_dynamics_derivatives, _NN, ("dq", "dv", "dgiven"), lean=True, shared=True, instead=_FORWARD_D
    ),
    "joint_wrench_derivatives": Algorithm(
        derivatives.joint_wrench_derivatives, ("L", 6, "n"), _BY_A, instead="robot.closed.derivatives.joint_wrenches"
    ),
    "inverse_dynamics_hessian": Algorithm(hessian.inverse_dynamics_hessian, ("3n", "3n"), lean=True, instead=NO_METHOD),
    "force_rate": Algorithm(dynamics.force_rate, _N, ("tau", "rate"), lean=True, instead=_INVERSE_D),
    "joint_wrench_rates": Algorithm(
        dynamics.joint_wrench_rates, _LINKS, ("wrench", "rate"), instead="robot.closed.derivatives.joint_wrenches"
    ),
    "joint_wrenches": Algorithm(newton_euler.joint_wrenches, _LINKS, instead="robot.closed.joint_wrenches"),
    "bias_force": Algorithm(newton_euler.bias_force, _N, lean=True, instead=_INVERSE),
    "gravity_force": Algorithm(newton_euler.gravity_force, _N, lean=True, instead=_INVERSE),
    "friction_force": Algorithm(passive.friction_force, _N),
    "spring_force": Algorithm(passive.spring_force, _N),
    "regressor": Algorithm(regressor.regressor, ("n", "p"), instead="robot.closed.regressor"),
    "power_regressor": Algorithm(regressor.power_regressor, ("p",)),
    "energy_regressor": Algorithm(regressor.energy_regressor, ("p",)),
    "mass_matrix": Algorithm(composite.mass_matrix, _NN, lean=True, instead=_MASS),
    "coriolis_matrix": Algorithm(dynamics.coriolis_matrix, _NN, lean=True, instead=NO_METHOD),
    "poses": Algorithm(places.poses, ("L", 4, 4)),
    "velocities": Algorithm(places.velocities, _LINKS),
    "accelerations": Algorithm(places.accelerations, _LINKS),
    "pose": Algorithm(places.pose, (4, 4)),
    "velocity": Algorithm(places.velocity, _TWIST),
    "acceleration": Algorithm(places.acceleration, _TWIST),
    "jerk": Algorithm(rates.jerk, _TWIST),
    "jerks": Algorithm(rates.jerks, _LINKS),
    "jacobian": Algorithm(places.jacobian, _COLUMNS),
    "jacobian_rate": Algorithm(places.jacobian_rate, _COLUMNS),
    "velocity_derivatives": Algorithm(motion.velocity_derivatives, _COLUMNS, _BY_A[:2]),
    "acceleration_derivatives": Algorithm(motion.acceleration_derivatives, _COLUMNS, _BY_A),
    "jerk_derivatives": Algorithm(motion.jerk_derivatives, _COLUMNS, (*_BY_A, "dj")),
    "kinetic_energy": Algorithm(momentum.kinetic_energy, ()),
    "potential_energy": Algorithm(momentum.potential_energy, ()),
    "center_of_mass": Algorithm(momentum.center_of_mass, (3,)),
    "momentum": Algorithm(momentum.momentum, _TWIST),
    "centroidal_momentum_matrix": Algorithm(momentum.centroidal_momentum_matrix, _COLUMNS, lean_afloat=True),
    "centroidal_momentum_matrix_rate": Algorithm(momentum.centroidal_momentum_matrix_rate, _COLUMNS, lean_afloat=True),
    "centroidal_momentum_bias": Algorithm(momentum.centroidal_momentum_bias, _TWIST, lean_afloat=True),
    "composite_inertia": Algorithm(momentum.composite_inertia, (6, 6)),
    "center_of_mass_jacobian": Algorithm(momentum.center_of_mass_jacobian, (3, "n"), lean_afloat=True),
    "center_of_mass_jacobian_rate": Algorithm(momentum.center_of_mass_jacobian_rate, (3, "n"), lean_afloat=True),
    "center_of_mass_velocity": Algorithm(momentum.center_of_mass_velocity, (3,), lean_afloat=True),
    "center_of_mass_acceleration": Algorithm(momentum.center_of_mass_acceleration, (3,), lean_afloat=True),
    "manipulability": Algorithm(task_space.manipulability, (), instead=NO_METHOD),
    "manipulability_gradient": Algorithm(task_space.manipulability_gradient, _N, instead=NO_METHOD),
    "cartesian_mass_matrix": Algorithm(task_space.cartesian_mass_matrix, ("rows", "rows"), instead=NO_METHOD),
    "null_space": Algorithm(task_space.null_space, _NN, instead=NO_METHOD),
    "kinematic_null_space": Algorithm(task_space.kinematic_null_space, _NN, instead=NO_METHOD),
    "integrate": Algorithm(configuration.integrate, ("nq",)),
    "difference": Algorithm(configuration.difference, _N),
    "closure_error": Algorithm(closure.closure_error, ("c",)),
    "closure_jacobian": Algorithm(closure.closure_jacobian, ("c", "n")),
    "closure_rate": Algorithm(closure.closure_rate, ("c",)),
    "closure_trial": Algorithm(constrained.closure_trial, ("nq+n+2",), lean=True),
    "closure_state": Algorithm(constrained.closure_state, (3,), lean=True),
    "constrained_velocities": Algorithm(constrained.constrained_velocities, _N, lean=True),
    "constrained_accelerations": Algorithm(constrained.constrained_accelerations, _N, ("v", "a"), lean=True),
    "constrained_inverse_dynamics": Algorithm(constrained.constrained_inverse_dynamics, ("N",), lean=True),
    "constrained_forward_dynamics": Algorithm(constrained.constrained_forward_dynamics, ("N",), lean=True),
    "constrained_joint_wrenches": Algorithm(constrained.constrained_joint_wrenches, _LINKS),
    "loop_forces": Algorithm(constrained.loop_forces, ("c",), lean=True),
    "loop_wrenches": Algorithm(constrained.loop_wrenches, ("cuts", 6), lean=True),
    "constrained_velocity_derivatives": Algorithm(
        constrained_derivatives.constrained_velocity_derivatives, ("n", "N"), ("dq", "dv"), lean=True
    ),
    "constrained_acceleration_derivatives": Algorithm(
        constrained_derivatives.constrained_acceleration_derivatives, ("n", "N"), _BY_A, lean=True
    ),
    "constrained_inverse_dynamics_derivatives": Algorithm(
        constrained_derivatives.constrained_inverse_dynamics_derivatives, ("N", "N"), _BY_A, lean=True
    ),
    "constrained_forward_dynamics_derivatives": Algorithm(
        constrained_derivatives.constrained_forward_dynamics_derivatives, ("N", "N"), _BY_TAU, lean=True
    ),
    "loop_force_derivatives": Algorithm(constrained_derivatives.loop_force_derivatives, ("c", "N"), _BY_A, lean=True),
    "loop_wrench_derivatives": Algorithm(
        constrained_derivatives.loop_wrench_derivatives, ("cuts", 6, "N"), _BY_A, lean=True
    ),
    "constrained_joint_wrench_derivatives": Algorithm(
        constrained_derivatives.constrained_joint_wrench_derivatives, ("L", 6, "N"), _BY_A
    ),
    "closed_forward_dynamics": Algorithm(constrained.closed_forward_dynamics, _N, lean=True, multipliers=True),
    "closed_inverse_dynamics": Algorithm(constrained.closed_inverse_dynamics, ("N",), lean=True, multipliers=True),
    "closed_loop_forces": Algorithm(constrained.closed_loop_forces, ("c",), lean=True, multipliers=True),
    "closed_velocities": Algorithm(constrained.closed_velocities, _N, lean=True, multipliers=True),
    "loop_loads": Algorithm(constrained.loop_loads, _LINKS),
    "closure_margin": Algorithm(constrained.closure_margin, (), lean=True, multipliers=True),
    "chart": Algorithm(configuration.chart, ("nq",)),
    "chart_rate": Algorithm(configuration.chart_rate, _N),
}
WITH_MARGIN = "_with_margin"
MAX_NAMES = 6  # algorithms that a message names
for _name, _axis in {
    "closed_forward_dynamics": "n+1",
    "closed_inverse_dynamics": "N+1",
    "closed_loop_forces": "c+1",
    "closed_velocities": "n+1",
}.items():
    _rule = partial(ALGORITHMS[_name].rule, margin=True)
    ALGORITHMS[_name + WITH_MARGIN] = Algorithm(_rule, (_axis,), lean=True, multipliers=True)
"""Every algorithm by its name, which ``robot.function`` takes. The charts serve the integrators of ``simulation``, and
those with a margin the methods themselves: a result and ``closure_margin`` from one function."""


def named_algorithms() -> dict[str, Algorithm]:
    """Return the algorithms that users may name: all but those with a margin."""
    return {name: each for name, each in ALGORITHMS.items() if not name.endswith(WITH_MARGIN)}


def algorithm_names(like: object = "") -> str:
    """Return names of algorithms for a message, those that resemble ``like`` first: "mass_matrix", "jacobian:LINK"."""
    given = like.partition(":")[0] if isinstance(like, str) else ""
    places = {name: f"{name}:LINK" if each.at_place else name for name, each in named_algorithms().items()}
    near = get_close_matches(given, places, MAX_NAMES)
    shown = [*near, *(name for name in places if name not in near)][:MAX_NAMES]
    return f"{', '.join(places[name] for name in shown)}, ... {len(places)} in all"
