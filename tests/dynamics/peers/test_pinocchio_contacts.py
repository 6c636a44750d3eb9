"""Robots that stand on given contacts, against Pinocchio: accelerations, forces of the ground, impacts."""

import numpy as np
import pytest

from robots import robot_file

pin = pytest.importorskip("pinocchio")
from .test_pinocchio import Peer
from .test_pinocchio_loops import accelerations

TALOS = (
    "talos_reduced.urdf",
    {"leg_left_6_link": "surface", "leg_right_6_link": "surface", "arm_left_7_link": "point"},
)
CASES = [
    ("solo12.urdf", {"FL_FOOT": "point", "HR_FOOT": "surface"}),
    pytest.param(*TALOS, marks=pytest.mark.slow),
]


def pinocchio_jacobian(peer: Peer, q: np.ndarray, contacts: dict[str, str]) -> np.ndarray:
    """Return the Jacobian of the contacts in Pinocchio: linear rows, then angular ones, in base axes."""
    model, data, rows = peer.model, peer.model.createData(), []
    for place, kind in contacts.items():
        J = pin.computeFrameJacobian(model, data, q, model.getFrameId(place), pin.LOCAL_WORLD_ALIGNED)
        rows.append(J if kind == "surface" else J[:3])
    return np.vstack(rows)


@pytest.mark.parametrize(("name", "contacts"), CASES)
def test_motion_forces_and_impacts_with_contacts_agree(name: str, contacts: dict[str, str]) -> None:
    peer, rng = Peer(robot_file(name), "floating"), np.random.default_rng(3)
    tree = peer.robot
    q = tree.integrate(tree.neutral(), rng.uniform(-0.5, 0.5, tree.nv))
    robot = tree.with_contacts(contacts, q)
    loose, tau = rng.normal(size=(2, robot.nv))
    v = robot.closed.velocities(q, loose, coordinates="all")
    qp, G = peer.positions(q), peer.velocity_map(q)
    J = pinocchio_jacobian(peer, qp, contacts)
    np.testing.assert_allclose(J @ (G @ v), 0, atol=1e-10)

    after = pin.impulseDynamics(peer.model, peer.data, qp, G @ loose, J, 0.0, 0.0)
    np.testing.assert_allclose(G @ v, after, rtol=0, atol=1e-10 * np.abs(after).max())

    force = np.linalg.solve(G.T, tau)
    theirs = accelerations(robot, peer.model, qp, G @ v, force)
    a = robot.closed.forward_dynamics(q, v, tau, coordinates="all")
    ours = peer.accelerations(q, v, a)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())

    held = pin.rnea(peer.model, peer.data, qp, G @ v, ours) - force
    found = J.T @ robot.closed.loop_forces(q, v, tau, coordinates="all")
    np.testing.assert_allclose(found, held, rtol=0, atol=1e-10 * np.abs(held).max())
