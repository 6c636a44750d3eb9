"""The table of algorithms: the function, inputs and results of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torsor.dynamics.derivatives import forward_dynamics as solved_derivatives
from torsor.dynamics.derivatives import hessian
from torsor.dynamics.derivatives import inverse_dynamics as derivatives
from torsor.dynamics.loops import (
    assembly_step,
    closure,
    constrained,
    constrained_derivatives,
    index_one,
    wrench_derivatives,
    wrenches,
)
from torsor.dynamics.recursions import (
    composite,
    configuration,
    energy,
    hybrid,
    newton_euler,
    passive,
    places,
    rates,
    regressor,
)
from torsor.mechanism import Loop, Mechanism

__all__ = ["ALGORITHMS", "Algorithm", "sizes"]


@dataclass(frozen=True)
class Algorithm:
    """An algorithm: its function of a tree and symbols (``rule``), and the names of its inputs.

    ``lean``: the result does not depend on the frames of links, so that the tree may be simplified (``lean``).
    ``external``: the wrenches of the environment are an optional input. ``keeps``: the result depends on whether these
    wrenches are constant in the link or in the world while q changes. ``at_place``: the result is that of one link or
    frame. ``hybrid``: the coordinates driven by force are given. ``closed``: a choice of equations closes the loops
    (``held``: one for multipliers). ``rates``: higher rates of the motion and of the results are possible. ``output``
    is the shape of the result for one state, with "n" for velocities, "nq" for positions, "nq+n+2" for both and two
    more, "3n" for (q, v, a), "L" for links, "p" for parameters, "N" for active coordinates, "c" for equations of
    closure, "cuts" for cut joints. ``results`` names several results, all of that shape. ``shared``: the rule has no
    common subexpressions, so that none are searched for.
    """

    rule: Callable[..., Any]
    inputs: tuple[str, ...]
    output: tuple[str | int, ...]
    lean: bool = False
    external: bool = False
    keeps: bool = False
    at_place: bool = False
    hybrid: bool = False
    closed: bool = False
    held: bool = False
    rates: bool = False
    results: tuple[str, ...] = ()
    shared: bool = False

    def size_of(self, name: str) -> str:
        """Return the name, in ``sizes``, of the size of an input."""
        if name == "multipliers":
            return "c"
        return "nq" if name in ("q", "q_end") else "N" if name.endswith("_active") or name == "share" else "n"


def _loops(mechanism: Mechanism) -> dict[str, int]:
    cuts = sum(isinstance(loop, Loop) for loop in mechanism.loops)
    return {"N": len(mechanism.active), "c": sum(loop.count for loop in mechanism.loops), "cuts": cuts}


def sizes(mechanism: Mechanism) -> dict[str, int]:
    """Return the sizes of the named axes."""
    numbers, n = regressor.parameter_count(mechanism), mechanism.nv
    plain = {"n": n, "3n": 3 * n, "nq": mechanism.nq, "nq+n+2": mechanism.nq + n + 2}
    return plain | {"L": len(mechanism.links), "p": numbers, **_loops(mechanism)}


_N, _NN, _SCALAR, _TWIST, _LINKS = ("n",), ("n", "n"), (), (6,), ("L", 6)
_MOVED, _FORCED = ("q", "v_active", "a_active"), ("q", "v_active", "tau_active")
_DRIVEN = (*_MOVED, "share")
_LOADED: dict[str, Any] = {"external": True, "keeps": True}

ALGORITHMS: dict[str, Algorithm] = {
    "inverse_dynamics": Algorithm(newton_euler.inverse_dynamics, ("q", "v", "a"), _N, lean=True, external=True),
    "forward_dynamics": Algorithm(hybrid.forward_dynamics, ("q", "v", "tau"), _N, lean=True, external=True),
    "hybrid_dynamics": Algorithm(
        hybrid.hybrid_dynamics,
        ("q", "v", "a", "tau"),
        _N,
        lean=True,
        external=True,
        hybrid=True,
        results=("a", "tau"),
    ),
    "inverse_dynamics_derivatives": Algorithm(
        derivatives.inverse_dynamics_derivatives, ("q", "v", "a"), _NN, lean=True, results=("dq", "dv", "da"), **_LOADED
    ),
    "forward_dynamics_derivatives": Algorithm(
        solved_derivatives.forward_dynamics_derivatives,
        ("q", "v", "tau"),
        _NN,
        lean=True,
        results=("dq", "dv", "dtau"),
        shared=True,
        **_LOADED,
    ),
    "hybrid_dynamics_derivatives": Algorithm(
        solved_derivatives.hybrid_dynamics_derivatives,
        ("q", "v", "a", "tau"),
        _NN,
        lean=True,
        hybrid=True,
        results=("dq", "dv", "dgiven"),
        shared=True,
        **_LOADED,
    ),
    "joint_wrench_derivatives": Algorithm(
        derivatives.joint_wrench_derivatives, ("q", "v", "a"), ("L", 6, "n"), results=("dq", "dv", "da"), **_LOADED
    ),
    "inverse_dynamics_hessian": Algorithm(
        hessian.inverse_dynamics_hessian, ("q", "v", "a", "weight"), ("3n", "3n"), lean=True, external=True
    ),
    "force_rate": Algorithm(
        rates.force_rate, ("q", "v", "a", "j"), _N, lean=True, external=True, rates=True, results=("tau", "rate")
    ),
    "joint_wrench_rates": Algorithm(
        rates.joint_wrench_rates, ("q", "v", "a", "j"), _LINKS, external=True, rates=True, results=("wrench", "rate")
    ),
    "joint_wrenches": Algorithm(newton_euler.joint_wrenches, ("q", "v", "a"), _LINKS, external=True),
    "bias_force": Algorithm(newton_euler.bias_force, ("q", "v"), _N, lean=True),
    "gravity_force": Algorithm(newton_euler.gravity_force, ("q",), _N, lean=True),
    "friction_force": Algorithm(passive.friction_force, ("v",), _N),
    "spring_force": Algorithm(passive.spring_force, ("q",), _N),
    "regressor": Algorithm(regressor.regressor, ("q", "v", "a"), ("n", "p")),
    "power_regressor": Algorithm(regressor.power_regressor, ("q", "v", "a"), ("p",)),
    "energy_regressor": Algorithm(regressor.energy_regressor, ("q", "v"), ("p",)),
    "mass_matrix": Algorithm(composite.mass_matrix, ("q",), _NN, lean=True),
    "coriolis_matrix": Algorithm(composite.coriolis_matrix, ("q", "v"), _NN, lean=True),
    "poses": Algorithm(places.poses, ("q",), ("L", 4, 4)),
    "velocities": Algorithm(places.velocities, ("q", "v"), _LINKS),
    "accelerations": Algorithm(places.accelerations, ("q", "v", "a"), _LINKS),
    "pose": Algorithm(places.pose, ("q",), (4, 4), at_place=True),
    "velocity": Algorithm(places.velocity, ("q", "v"), _TWIST, at_place=True),
    "acceleration": Algorithm(places.acceleration, ("q", "v", "a"), _TWIST, at_place=True),
    "jerk": Algorithm(rates.jerk, ("q", "v", "a", "j"), _TWIST, at_place=True),
    "jerks": Algorithm(rates.jerks, ("q", "v", "a", "j"), _LINKS),
    "jacobian": Algorithm(places.jacobian, ("q",), (6, "n"), at_place=True),
    "jacobian_rate": Algorithm(places.jacobian_rate, ("q", "v"), (6, "n"), at_place=True),
    "kinetic_energy": Algorithm(energy.kinetic_energy, ("q", "v"), _SCALAR),
    "potential_energy": Algorithm(energy.potential_energy, ("q",), _SCALAR),
    "center_of_mass": Algorithm(energy.center_of_mass, ("q",), (3,)),
    "momentum": Algorithm(energy.momentum, ("q", "v"), _TWIST),
    "integrate": Algorithm(configuration.integrate, ("q", "dv"), ("nq",)),
    "difference": Algorithm(configuration.difference, ("q", "q_end"), _N),
    "closure_error": Algorithm(closure.closure_error, ("q",), ("c",)),
    "closure_jacobian": Algorithm(closure.closure_jacobian, ("q",), ("c", "n")),
    "closure_trial": Algorithm(assembly_step.closure_trial, ("q", "dv"), ("nq+n+2",), lean=True, closed=True),
    "closure_state": Algorithm(assembly_step.closure_state, ("q",), (3,), lean=True, closed=True),
    "constrained_velocities": Algorithm(
        constrained.constrained_velocities, ("q", "v_active"), _N, lean=True, closed=True
    ),
    "constrained_accelerations": Algorithm(
        constrained.constrained_accelerations, _MOVED, _N, lean=True, closed=True, results=("v", "a")
    ),
    "constrained_inverse_dynamics": Algorithm(
        constrained.constrained_inverse_dynamics, _DRIVEN, ("N",), lean=True, closed=True, external=True
    ),
    "constrained_forward_dynamics": Algorithm(
        constrained.constrained_forward_dynamics, _FORCED, ("N",), lean=True, closed=True, external=True
    ),
    "constrained_joint_wrenches": Algorithm(
        wrenches.constrained_joint_wrenches, _DRIVEN, _LINKS, closed=True, external=True
    ),
    "loop_forces": Algorithm(constrained.loop_forces, _DRIVEN, ("c",), lean=True, closed=True, external=True),
    "loop_wrenches": Algorithm(wrenches.loop_wrenches, _DRIVEN, ("cuts", 6), lean=True, closed=True, external=True),
    "constrained_velocity_derivatives": Algorithm(
        constrained_derivatives.constrained_velocity_derivatives,
        ("q", "v_active"),
        ("n", "N"),
        lean=True,
        closed=True,
        results=("dq", "dv"),
    ),
    "constrained_acceleration_derivatives": Algorithm(
        constrained_derivatives.constrained_acceleration_derivatives,
        _MOVED,
        ("n", "N"),
        lean=True,
        closed=True,
        results=("dq", "dv", "da"),
    ),
    "constrained_inverse_dynamics_derivatives": Algorithm(
        constrained_derivatives.constrained_inverse_dynamics_derivatives,
        _DRIVEN,
        ("N", "N"),
        lean=True,
        closed=True,
        results=("dq", "dv", "da"),
        **_LOADED,
    ),
    "constrained_forward_dynamics_derivatives": Algorithm(
        constrained_derivatives.constrained_forward_dynamics_derivatives,
        _FORCED,
        ("N", "N"),
        lean=True,
        closed=True,
        results=("dq", "dv", "dtau"),
        **_LOADED,
    ),
    "loop_force_derivatives": Algorithm(
        constrained_derivatives.loop_force_derivatives,
        _DRIVEN,
        ("c", "N"),
        lean=True,
        closed=True,
        results=("dq", "dv", "da"),
        **_LOADED,
    ),
    "loop_wrench_derivatives": Algorithm(
        wrench_derivatives.loop_wrench_derivatives,
        _DRIVEN,
        ("cuts", 6, "N"),
        lean=True,
        closed=True,
        external=True,
        results=("dq", "dv", "da"),
    ),
    "constrained_joint_wrench_derivatives": Algorithm(
        wrench_derivatives.constrained_joint_wrench_derivatives,
        _DRIVEN,
        ("L", 6, "N"),
        closed=True,
        external=True,
        results=("dq", "dv", "da"),
    ),
    "closed_forward_dynamics": Algorithm(
        index_one.closed_forward_dynamics, ("q", "v", "tau"), _N, lean=True, closed=True, held=True, external=True
    ),
    "closed_loop_forces": Algorithm(
        index_one.closed_loop_forces, ("q", "v", "tau"), ("c",), lean=True, closed=True, held=True, external=True
    ),
    "closed_velocities": Algorithm(index_one.closed_velocities, ("q", "v"), _N, lean=True, closed=True, held=True),
    "loop_loads": Algorithm(wrenches.loop_loads, ("q", "multipliers"), _LINKS),
    "closure_margin": Algorithm(index_one.closure_margin, ("q",), _SCALAR, lean=True, closed=True, held=True),
    "chart": Algorithm(configuration.chart, ("q", "u"), ("nq",)),
    "chart_rate": Algorithm(configuration.chart_rate, ("u", "v"), _N),
}
"""Every algorithm by the name of the robot's method; the charts are for the integrators of ``simulation``."""
