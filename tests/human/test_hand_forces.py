"""Forces on the hands act on a body as external wrenches do, and are given by time."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.human import HandForces, hand_wrenches
from torsor.human.contact.contact_forces import FORCES, KNUCKLES, loaded
from torsor.human.terms.problem import grounded_term
from torsor.motion import Node
from torsor.motion.encoding import decoded, encoded
from torsor.motion.transcription.motion_model import MotionModel

BODY = torsor.library.human()


def test_joint_forces_of_a_node_with_loaded_hands_are_those_with_external_wrenches() -> None:
    rng = np.random.default_rng(0)
    q, v, a = (0.4 * rng.normal(size=BODY.nv) for _ in range(3))
    forces = 50 * rng.normal(size=(2, 3))
    node = Node(MotionModel(BODY))
    inputs = [*node.y[:3], node.data(FORCES, 6), node.data(KNUCKLES, 3)]
    found = ca.Function("f", inputs, [node.value(loaded(node).tau)])
    at = BODY.place("left_knuckles").pose[:3, 3]
    truth = BODY.inverse_dynamics(q, v, a, external=hand_wrenches(BODY, q, forces))
    np.testing.assert_allclose(found(q, v, a, forces.ravel(), at).full()[:, 0], truth, atol=1e-9)


def test_forces_are_linear_between_their_times_and_constant_outside() -> None:
    hands = HandForces([0.0, 1.0], [[0, 0, 0], [0, -20.0, 0]], [[0, 0, 0], [4.0, 0, 0]])
    np.testing.assert_allclose(hands.at([-1.0, 0.25, 3.0])[:, 0, 1], [0.0, -5.0, -20.0])
    np.testing.assert_allclose(hands.at([0.5])[0], [[0, -10.0, 0], [2.0, 0, 0]])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (([1.0, 0.0], np.zeros((2, 3)), np.zeros((2, 3))), "times"),
        (([0.0], np.zeros((2, 3)), np.zeros((1, 3))), "right"),
        (([0.0], [[0, 0, 0]], [[0, -9000.0, 0]]), "the force on the left hand is 9000 N"),
        (([0.0], [[0, np.nan, 0]], [[0, 0, 0]]), "right"),
    ],
)
def test_invalid_forces_raise(values: tuple[object, ...], message: str) -> None:
    with refused(message):
        HandForces(*values)


def test_problems_with_forces_on_the_hands_are_saved_with_them() -> None:
    again = decoded(encoded(torsor.human.pushing(force=90.0)))
    term = grounded_term(again)  # type: ignore[arg-type]
    assert term.hands is not None and term.hands.at([1.5])[0, 0, 2] == -45.0 and term.seconds == 1.5
