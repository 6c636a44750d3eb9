"""Prescribed contacts: a standing robot, its weight, and rejected input."""

import numpy as np
import pytest

import torsor
from refusals import refused

FEET = ("fl_foot", "fr_foot", "hl_foot", "hr_foot")


@pytest.fixture(scope="module")
def walker() -> torsor.Robot:
    return torsor.library.quadruped().to(device="casadi")


@pytest.mark.slow
def test_forces_of_the_feet_carry_the_weight_of_a_robot_at_rest(walker: torsor.Robot) -> None:
    q, still = walker.neutral(), np.zeros(walker.nv)
    q[7:] = np.tile([0.1, 0.6, -1.2], 4)
    standing = walker.with_contacts(FEET[:3], q)
    forces = standing.closed.loop_forces(q, still, still, coordinates="all").reshape(3, 3)
    moved = standing.closed.forward_dynamics(q, still, still, coordinates="all")
    total = walker.mass * (walker.centroidal.acceleration(q, still, moved) - walker.gravity)
    np.testing.assert_allclose(forces.sum(axis=0), total, atol=1e-10)


@pytest.mark.parametrize(
    ("places", "options", "message"),
    [
        ("fl_foot", {}, "places"),
        ([], {}, "places"),
        (["fl_fot"], {}, "fl_fot"),
        (["fl_foot", "fl_foot"], {}, "named twice"),
        (["fl_foot"], {"kind": "line"}, "contact of 'fl_foot'"),
        ({"fl_foot": "weld"}, {}, "contact of 'fl_foot'"),
        (["fl_foot"], {"q": [0.0, np.nan]}, "q"),
        (["fl_foot"], {"q": np.zeros((2, 19))}, "q"),
    ],
)
def test_impossible_contacts_are_refused(walker: torsor.Robot, places: object, options: dict, message: str) -> None:
    with refused(message):
        walker.with_contacts(places, **options)


def test_the_base_cannot_touch(walker: torsor.Robot) -> None:
    with refused(value="world"):
        walker.with_contacts([walker.base.name])
