"""The constraints of walking as Barman 2020 prints them (eqs. 5.2 to 5.10), each named after its equation.

The bands of ``Version`` relax eq. 5.4 alone: ``slack`` (m) the heights and ``slip`` (m/s) the velocities of the points in
contact. With both 0 these are the printed equations, which have no solution (``torsor.human.printed_gait``).
"""

import math

from torsor.human.body.coordinates import SIDES
from torsor.human.gait.settings import WalkSettings
from torsor.human.terms.feet import Stands, contacts
from torsor.human.terms.forces import Torques
from torsor.human.terms.habits import hand_clearance
from torsor.human.terms.printed import InSupport, pendulums
from torsor.motion import ExpressionConstraint, Positions
from torsor.motion.terms.term import Constraint

KNEE, WITHIN = 60.0, 5.0  # degrees: knee flexion at mid-swing, and its tolerance


def printed_constraints(settings: WalkSettings) -> list[Constraint]:
    """Return the constraints of eqs. 5.2 to 5.7, 5.9 and 5.10; the symmetry (5.8) is a condition at the ends.

    Only rows that others do not imply are there: the velocity of a foot that stands on three points has six rows, and
    the places of the feet at the end of the step follow from those at its start by symmetry.
    """
    version, walk, body = settings.version, settings.walk, settings.loaded
    step, swings = walk.step, SIDES[1]
    middle = (step.toe_off + 1.0) / 2
    low, high = math.radians(KNEE - WITHIN), math.radians(KNEE + WITHIN)
    joints = [name for name in settings.moving if name in body.joint_names]
    feet = contacts(body, walk, version.slack, version.slip, placed="y", below=0.0, prefix="5.4 ")
    first = [stance for stance in walk.stances if stance.first == 0.0]
    return [
        Positions(only=joints, name="5.2 joint angles"),
        Torques(moving=settings.moving, **settings.ground, name="5.3 torques"),
        *feet,
        InSupport(**settings.ground, name="5.5 zero-moment point"),
        ExpressionConstraint(function=pendulums, lower=0.0, labels=("left arm",), name="5.6 arm-leg coupling"),
        ExpressionConstraint(function=hand_clearance, lower=1.0, labels=SIDES, name="5.7 self-avoidance"),
        *(
            Positions(only=[name], lower=low, upper=high, at=middle, name="5.9 knee at mid-swing")
            for name in (f"{swings}_knee_flexion",)
            if name in settings.moving
        ),
        *(
            Stands(body=body, stance=each, slack=0.0, axes="xz", at=0.0, name=f"5.10 place of the {each.side} foot")
            for each in first
        ),
    ]
