"""The table of algorithms: what each takes, what it gives, and how it is traced into a CasADi function."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca

from torsor.dynamics import (
    composite,
    configuration,
    derivatives,
    energy,
    hybrid,
    newton_euler,
    passive,
    places,
    rates,
    regressor,
)
from torsor.dynamics.lean import lean
from torsor.dynamics.tree import Tree
from torsor.robot import Mechanism, Place

__all__ = ["ALGORITHMS", "Algorithm", "trace"]


@dataclass(frozen=True)
class Algorithm:
    """How an algorithm is called: the function of a tree and symbols, and the names of its inputs.

    ``lean`` says that only the coordinates see the result, so that ``lean`` may simplify the tree. ``external`` says
    that the wrenches of the environment are an optional input, ``at_place`` that the result is that of one link or
    frame, ``hybrid`` that the coordinates driven by force are named. ``output`` is the shape of the result for one
    state, with "n" for velocities, "nq" for positions, "L" for links, "p" for
    parameters; where there are several results, all of that
    shape, ``results`` names them. ``loads`` are the inputs that external wrenches are given by. ``shared`` says that
    the rule computes nothing twice, so that nobody need look for it.
    """

    rule: Callable[..., Any]
    inputs: tuple[str, ...]
    output: tuple[str | int, ...]
    lean: bool = False
    external: bool = False
    at_place: bool = False
    hybrid: bool = False
    results: tuple[str, ...] = ()
    loads: tuple[str, ...] = ("external",)
    shared: bool = False

    def shapes(self, mechanism: Mechanism) -> dict[str, tuple[int, ...]]:
        """Return the shape for one state of each input, of ``external`` and of the ``output``."""
        sizes: dict[str | int, int] = {"n": mechanism.nv, "nq": mechanism.nq, "L": len(mechanism.links)}
        sizes["p"] = len(regressor.parameter_names(mechanism))
        shapes = {name: (sizes[INPUTS[name]],) for name in self.inputs}
        shapes |= dict.fromkeys(("external", "external_rate"), (sizes["L"], 6))  # type: ignore[arg-type]
        output = tuple(sizes.get(axis, axis) for axis in self.output)
        return {**shapes, "output": output}  # type: ignore[dict-item]

    def names(self, external: bool) -> list[str]:
        """Return the names of the inputs, with those of the external wrenches where there are any."""
        return [*self.inputs, *(self.loads if external else ())]


INPUTS = {"q": "nq", "q_end": "nq", "v": "n", "a": "n", "tau": "n", "dv": "n", "u": "n", "j": "n", "s": "n", "c": "n"}

_N, _NN, _SCALAR, _TWIST, _LINKS = ("n",), ("n", "n"), (), (6,), ("L", 6)

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
    **{
        name + where: Algorithm(
            partial(rule, in_world=bool(where)),
            ("q", "v", third),
            output,
            lean=output == _NN,
            external=True,
            results=("dq", "dv", f"d{third}"),
            shared=name == "forward_dynamics_derivatives",
        )
        for where in ("", "_in_world")
        for name, rule, third, output in (
            ("inverse_dynamics_derivatives", derivatives.inverse_dynamics_derivatives, "a", _NN),
            ("forward_dynamics_derivatives", derivatives.forward_dynamics_derivatives, "tau", _NN),
            ("joint_wrench_derivatives", derivatives.joint_wrench_derivatives, "a", ("L", 6, "n")),
        )
    },
    **{
        name: Algorithm(
            rates.force_rate,
            ("q", "v", "a", *higher),
            _N,
            lean=True,
            external=True,
            results=("tau", *(f"tau_{each}" for each in higher)),
            loads=("external", "external_rate"),
        )
        for name, higher in (("force_rate", "j"), ("force_rate_2", "js"), ("force_rate_3", "jsc"))
    },
    "joint_wrench_rates": Algorithm(
        rates.joint_wrench_rates,
        ("q", "v", "a", "j"),
        _LINKS,
        external=True,
        results=("wrench", "rate"),
        loads=("external", "external_rate"),
    ),
    "joint_wrenches": Algorithm(newton_euler.joint_wrenches, ("q", "v", "a"), _LINKS, external=True),
    "bias_force": Algorithm(newton_euler.bias_force, ("q", "v"), _N, lean=True),
    "gravity_force": Algorithm(newton_euler.gravity_force, ("q",), _N, lean=True),
    "friction_force": Algorithm(passive.friction_force, ("v",), _N),
    "spring_force": Algorithm(passive.spring_force, ("q",), _N),
    "regressor": Algorithm(regressor.regressor, ("q", "v", "a"), ("n", "p")),
    "mass_matrix": Algorithm(composite.mass_matrix, ("q",), _NN, lean=True),
    "coriolis_matrix": Algorithm(composite.coriolis_matrix, ("q", "v"), _NN, lean=True),
    "poses": Algorithm(places.poses, ("q",), ("L", 4, 4)),
    "velocities": Algorithm(places.velocities, ("q", "v"), _LINKS),
    "accelerations": Algorithm(places.accelerations, ("q", "v", "a"), _LINKS),
    "pose": Algorithm(places.pose, ("q",), (4, 4), at_place=True),
    "velocity": Algorithm(places.velocity, ("q", "v"), _TWIST, at_place=True),
    "acceleration": Algorithm(places.acceleration, ("q", "v", "a"), _TWIST, at_place=True),
    "jacobian": Algorithm(places.jacobian, ("q",), (6, "n"), at_place=True),
    "jacobian_rate": Algorithm(places.jacobian_rate, ("q", "v"), (6, "n"), at_place=True),
    "kinetic_energy": Algorithm(energy.kinetic_energy, ("q", "v"), _SCALAR),
    "potential_energy": Algorithm(energy.potential_energy, ("q",), _SCALAR),
    "center_of_mass": Algorithm(energy.center_of_mass, ("q",), (3,)),
    "momentum": Algorithm(energy.momentum, ("q", "v"), _TWIST),
    "integrate": Algorithm(configuration.integrate, ("q", "dv"), ("nq",)),
    "difference": Algorithm(configuration.difference, ("q", "q_end"), _N),
    "chart": Algorithm(configuration.chart, ("q", "u"), ("nq",)),
    "chart_rate": Algorithm(configuration.chart_rate, ("u", "v"), _N),
}
"""Every algorithm by the name of the robot's method; the charts serve the integrators of ``simulation``."""


def trace(
    mechanism: Mechanism,
    name: str,
    *,
    external: bool = False,
    place: Place | None = None,
    forced: frozenset[int] | None = None,
) -> ca.Function:
    """Return an algorithm for one mechanism as a CasADi function of SX, zeros and ones folded away."""
    algorithm = ALGORITHMS[name]
    tree = Tree.of(mechanism)
    if algorithm.lean:
        tree = lean(tree)
    shapes = algorithm.shapes(mechanism)
    names = algorithm.names(external)
    symbols = [ca.SX.sym(each, *shapes[each]) for each in names]
    arguments: dict[str, Any] = dict(zip(names, symbols, strict=True))
    arguments |= {"place": place} if algorithm.at_place else {"forced": forced} if algorithm.hybrid else {}
    result = algorithm.rule(tree, **arguments)
    results = list(result) if isinstance(result, tuple) else [result]
    results = results if algorithm.shared else ca.cse(results)
    titles = [f"{name}_{each}" for each in algorithm.results] or [name]
    return ca.Function(name, symbols, results, names, titles)
