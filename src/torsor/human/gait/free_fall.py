"""How well a flight of a run is a free fall, also between the nodes of the motion problem."""

from typing import NamedTuple

import numpy as np

from torsor.base.errors import ModelError, describe
from torsor.human.contact.balance import ground_reaction
from torsor.human.gait.curves import StrideCurves
from torsor.human.terms.samples import sampled, walk_of

INSTANTS = 401  # of the flight


class FreeFall(NamedTuple):
    """What a flight lacks of a free fall, the largest values.

    ``force`` (body weights) and ``moment`` about the pelvis (body weights times 1 m) are what the six global
    coordinates would need; the centre of mass is ``away`` (m) from the parabola that fits it best.
    """

    force: float
    moment: float
    away: float


def free_fall(stride: StrideCurves) -> FreeFall:
    """Return what the flight of a run lacks of a free fall, at 401 instants."""
    if not stride.is_run:
        raise ModelError(describe("a walk has no flight", where="free fall", allowed="a stride of running()"))
    result, body = stride.result, stride.body
    s = np.linspace(walk_of(result.problem)[1].step.toe_off, 1.0, INSTANTS)
    at, t = sampled(result, s), result.program.layout.phases[0].times(result.x, s)
    needed, com = ground_reaction(body, at.q, at.v, at.a), body.center_of_mass(at.q)
    moment = needed.moment - np.cross(body.pose(at.q, "pelvis")[:, :3, 3], needed.force)
    rest = com - np.outer(t**2 / 2, body.gravity)
    lines = np.stack([np.ones_like(t), t], axis=1)
    away = rest - lines @ np.linalg.lstsq(lines, rest, rcond=None)[0]
    force, turn = (float(np.linalg.norm(each, axis=1).max()) / stride.weight for each in (needed.force, moment))
    return FreeFall(force, turn, float(np.linalg.norm(away, axis=1).max()))
