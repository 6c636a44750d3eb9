"""The table of algorithms of a parallel robot: inputs, outputs, and required distances from singularity."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torsor.robot.closed_loops.search import NEAREST
from torsor.robot.parallel import decomposition, trials

LEGS, DRIVES = NEAREST, 1e-6


@dataclass(frozen=True)
class Rule:
    """The signature of an algorithm: names of its inputs, and shapes of its results in names of sizes.

    ``margins`` are the least distances from singular that it needs: of the legs, and, if given, of the drives.
    """

    rule: Callable[..., Any]
    inputs: tuple[str, ...]
    outputs: Sequence[tuple[str | int, ...]]
    external: bool = False
    margins: tuple[float, ...] = (LEGS,)


_STATE = ("pose", "q")
RULES: dict[str, Rule] = {
    "inverse_dynamics": Rule(
        decomposition.inverse_dynamics,
        (*_STATE, "u", "u_rate", "share"),
        [("N",)],
        external=True,
        margins=(LEGS, DRIVES),
    ),
    "platform_force": Rule(decomposition.platform_force, (*_STATE, "u", "u_rate"), [("n",)], external=True),
    "forward_dynamics": Rule(decomposition.forward_dynamics, (*_STATE, "u", "forces"), [("n",)], external=True),
    "mass_matrix": Rule(decomposition.platform_mass_matrix, _STATE, [("n", "n")]),
    "inverse_jacobian": Rule(decomposition.inverse_jacobian, _STATE, [("N", "n")]),
    "jacobian": Rule(decomposition.robot_jacobian, _STATE, [("n", "N")], margins=(LEGS, DRIVES)),
    "leg_velocities": Rule(decomposition.leg_velocities, (*_STATE, "u"), [("v",)]),
    "leg_accelerations": Rule(decomposition.leg_accelerations, (*_STATE, "u", "u_rate"), [("v",), ("v",)]),
    "kinetic_energy": Rule(decomposition.kinetic_energy, (*_STATE, "u"), [()]),
    "potential_energy": Rule(decomposition.potential_energy, _STATE, [()], margins=(-1.0,)),
    "closed_positions": Rule(decomposition.closed_positions, ("pose", "guess"), [("q",)]),
    "leg_errors": Rule(decomposition.leg_errors, _STATE, [("c",)]),
    "leg_matrices": Rule(decomposition.leg_matrices, _STATE, [("A",)]),
    "sides": Rule(trials.sides, _STATE, [("sides",)]),
    "leg_side": Rule(trials.leg_side, ("leg_q",), [()]),
    "leg_trial": Rule(trials.leg_trial, ("leg_state", "leg_move"), [("leg_trial",)]),
    "assembly_trial": Rule(trials.assembly_trial, ("state", "move"), [("assembly_trial",)]),
}
"""Every algorithm of a parallel robot by the name of its method, and those of its kinematics."""
