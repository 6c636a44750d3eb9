"""The objectives of walking by name, and the terms of a weighted sum of them.

One rule makes them comparable before any weight is chosen: each is made dimensionless by quantities of the body alone
(torques by strengths, forces by the weight, energies by the mass, lengths by the width of a sole), and with free steps
it is that for each metre of the way. A weight of 1 for each is the rule without a preference.
"""

from collections.abc import Mapping
from typing import Any

from torsor.human.body.strength import StrengthCurves
from torsor.human.contact.contact_forces import LEGS
from torsor.human.contact.sharing import SPEED
from torsor.human.gait.settings import WalkSettings
from torsor.human.terms.energy import ACTIVATION, Accelerations, MetabolicEnergy, MuscleEffort
from torsor.human.terms.forces import Driven, Effort, JointReactions, Slipping, Unbalance
from torsor.human.terms.habits import Posture
from torsor.human.terms.heat import Heat
from torsor.human.terms.relative_strength import RelativeStrength
from torsor.human.terms.stability import Instability
from torsor.motion.terms.objectives import Rates
from torsor.motion.terms.term import Cost

OBJECTIVES: Mapping[str, Any] = {
    "effort": Effort,
    "balance": Unbalance,
    "reaction": JointReactions,  # the older name of "joint loads"
    "joint loads": JointReactions,
    "heat": Heat,
    "strength": RelativeStrength,
}
FREE_OBJECTIVES: Mapping[str, Any] = {
    "energy": MetabolicEnergy,
    "effort": MuscleEffort,
    "accelerations": Accelerations,
    "heat": Heat,
    "strength": RelativeStrength,
    "balance": Instability,
    "joint loads": JointReactions,
}
ACTIVE = (*LEGS, "spine1_flexion", "spine1_lateral", "spine1_axial")  # joints whose excitation counts


def objectives_of(settings: WalkSettings) -> Mapping[str, Any]:
    """Return the objectives that a version of the walk has, by name."""
    return FREE_OBJECTIVES if settings.version.is_free else OBJECTIVES


def weighted_terms(settings: WalkSettings) -> list[Cost]:
    """Return the terms of the objective, in the order of the table; what the effort needs besides comes last."""
    costs, weights = list[Cost](), settings.weights
    for name, kind in objectives_of(settings).items():
        if weights.get(name):
            more: dict[str, Any] = {"moving": settings.moving} if issubclass(kind, Driven) else {}
            if kind is RelativeStrength:
                more["curves"] = settings.curves or StrengthCurves()
            costs.append(kind(weight=weights[name], **settings.ground, **more, name=name))
    if settings.version.is_clean:
        costs.append(Slipping(**settings.ground, name="slipping"))
    effort = weights.get("effort", 0.0)
    return [*costs, *(_with_effort(settings, effort) if effort else ())]


def _with_effort(settings: WalkSettings, weight: float) -> list[Cost]:
    """Return the terms that belong to the effort: the posture of habits, or with free steps the excitation.

    With a = torque / strength and activation dynamics of first order, the excitation is u = a + t_a da/dt. Over a
    periodic motion the mean of u^2 is that of a^2 plus t_a^2 times that of (da/dt)^2: effort has these two parts.
    """
    if settings.version.is_free:
        own = weight * ACTIVATION**2
        return [Rates(of="torques", only=ACTIVE, per=SPEED, weight=own, name="effort of activation")]
    scale = settings.habits.posture
    if not scale:
        return []
    return [Posture(weight=weight, body=settings.loaded, moving=settings.moving, scale=scale, name="posture")]
