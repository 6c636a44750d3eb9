"""Every URDF of example-robot-data, fixed and floating, against Pinocchio to 1e-9 relative."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import torsor
from bench.coordinates import PinocchioCoordinates
from robots import robot_file, robot_files

pin = pytest.importorskip("pinocchio")

TOLERANCE = 1e-9
# One has no link, the other a joint whose child does not exist: Pinocchio loads neither.
BROKEN = {"ur3.urdf": "there is no link", "falcon.urdf": "'Z_propeller', which does not exist"}
FILES = [path for path in robot_files() if path.name not in BROKEN]
BASES = ("fixed", "floating")
# Every file is read both ways. The default tests have one file of every third robot, by turns with a floating base;
# variants, which differ in hands or sensors, and the others are among the slow tests.
ROBOTS = list(dict.fromkeys(path.parts[-3] for path in FILES))[::3]
SHORT = {(next(path for path in FILES if path.parts[-3] == name), BASES[k % 2]) for k, name in enumerate(ROBOTS)}
CASES = [
    pytest.param((path, base), marks=() if (path, base) in SHORT else pytest.mark.slow)
    for path in FILES
    for base in BASES
]


class Peer(PinocchioCoordinates):
    """A file without friction, and Pinocchio's model of it: velocities there are G v, forces come back by G^T."""

    def __init__(self, path: Path, base: str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", torsor.ModelWarning)
            robot = torsor.load(path, base=base).without_friction().to(device="casadi")
        root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
        super().__init__(robot, pin.buildModelFromUrdf(str(path), *root))
        self.data = self.model.createData()
        self.model.armature[:] = 0
        self.G = self.velocity_map(robot.neutral())


def random_state(robot: torsor.Robot, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (
        robot.integrate(robot.neutral(), rng.uniform(-1, 1, robot.nv)),
        rng.uniform(-1, 1, robot.nv),
        rng.uniform(-1, 1, robot.nv),
    )


def assert_close(ours: np.ndarray, theirs: np.ndarray) -> None:
    scale = max(np.abs(theirs).max(initial=0.0), 1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * scale)


@pytest.fixture(scope="module", params=CASES, ids=lambda p: f"{p[0].stem}-{p[1]}")
def peer(request: pytest.FixtureRequest) -> Peer:
    return Peer(*request.param)


def test_there_are_at_least_sixty_robots() -> None:
    assert len(FILES) >= 60


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_by_both(name: str) -> None:
    with pytest.raises(torsor.ModelError, match=BROKEN[name]):
        torsor.load(robot_file(name))
    with pytest.raises(ValueError, match="URDF"):
        pin.buildModelFromUrdf(str(robot_file(name)))


def test_forces_and_mass_matrix_agree(peer: Peer) -> None:
    robot, model, data, G = peer.robot, peer.model, peer.data, peer.G
    for seed in range(2):
        q, v, a = random_state(robot, seed)
        pq, pv, pa = peer.positions(q), G @ v, G @ a
        assert_close(robot.inverse_dynamics(q, v, a), G.T @ pin.rnea(model, data, pq, pv, pa))
        assert_close(robot.gravity_force(q), G.T @ pin.computeGeneralizedGravity(model, data, pq))
        assert_close(robot.bias_force(q, v), G.T @ pin.nonLinearEffects(model, data, pq, pv))
        M = pin.crba(model, data, pq)
        assert_close(robot.mass_matrix(q), G.T @ (np.triu(M) + np.triu(M, 1).T) @ G)


def test_forward_dynamics_agrees(peer: Peer) -> None:
    robot, model, data = peer.robot, peer.model, peer.data
    if any(joint.follows for joint in robot.joints) or robot.nv == 0:
        pytest.skip("Pinocchio's joints are all free to move here, and some of ours follow others")
    q, v, tau = random_state(robot, 4)
    M = robot.mass_matrix(q)
    if np.linalg.cond(M) > 1e14:
        pytest.skip("the mass matrix is singular: a moving link has no inertia")
    theirs = peer.G.T @ pin.aba(model, data, peer.positions(q), peer.G @ v, peer.G @ tau)
    ours = robot.forward_dynamics(q, v, tau)
    # Light fingers on heavy arms make accelerations sensitive; the forces that they stand for are not.
    scale = np.abs(M) @ np.abs(theirs) + np.abs(tau)
    assert (np.abs(M @ (ours - theirs)) <= TOLERANCE * scale.max()).all()
    if np.linalg.cond(M) < 1e5:
        assert_close(ours, theirs)


def test_energies_and_centre_of_mass_agree(peer: Peer) -> None:
    robot, model, data, G = peer.robot, peer.model, peer.data, peer.G
    if robot.mass == 0:
        pytest.skip("nothing moves")
    q, v, _ = random_state(robot, 2)
    assert_close(robot.center_of_mass(q), pin.centerOfMass(model, data, peer.positions(q)))
    assert_close(robot.kinetic_energy(q, v), pin.computeKineticEnergy(model, data, peer.positions(q), G @ v))
    assert_close(robot.potential_energy(q), pin.computePotentialEnergy(model, data, peer.positions(q)))
    momentum = pin.computeCentroidalMomentum(model, data, peer.positions(q), G @ v)
    assert_close(robot.momentum(q, v), np.r_[momentum.angular, momentum.linear])


def test_poses_velocities_and_jacobians_agree(peer: Peer) -> None:
    robot, model, data, G = peer.robot, peer.model, peer.data, peer.G
    q, v, a = random_state(robot, 3)
    pin.forwardKinematics(model, data, peer.positions(q), G @ v, G @ a)
    if robot.nv:  # Pinocchio crashes on the Jacobians of a robot that cannot move
        pin.computeJointJacobians(model, data, peer.positions(q))
    pin.updateFramePlacements(model, data)
    poses = robot.poses(q)
    for i, name in enumerate(robot.link_names):
        assert_close(poses[i], data.oMf[model.getFrameId(name, pin.BODY)].homogeneous)
    chosen = [place for place in robot.places if model.existFrame(place, pin.BODY)]
    for name in chosen[:: max(1, len(chosen) // 4)]:
        frame = model.getFrameId(name, pin.BODY)
        assert_close(robot.pose(q, name), data.oMf[frame].homogeneous)
        if robot.nv == 0:
            assert robot.jacobian(q, name).shape == (6, 0)
            continue
        J = pin.getFrameJacobian(model, data, frame, pin.LOCAL)
        assert_close(robot.jacobian(q, name), J[[3, 4, 5, 0, 1, 2]] @ G)
        twist = pin.getFrameVelocity(model, data, frame, pin.LOCAL)
        assert_close(robot.velocity(q, v, name), np.r_[twist.angular, twist.linear])
        acceleration = pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL)
        assert_close(robot.acceleration(q, v, a, name), np.r_[acceleration.angular, acceleration.linear])


def test_coriolis_forces_agree(peer: Peer) -> None:
    robot, model, data, G = peer.robot, peer.model, peer.data, peer.G
    q, v, _ = random_state(robot, 5)
    C = pin.computeCoriolisMatrix(model, data, peer.positions(q), G @ v)
    assert_close(robot.coriolis_matrix(q, v) @ v, G.T @ (C @ (G @ v)))


@pytest.mark.parametrize("name", ["ur5_robot.urdf", "talos_reduced.urdf", "solo12.urdf"])
def test_motors_on_the_base_agree_with_pinocchios_armature(name: str) -> None:
    """Pinocchio has the reflected rotor inertia only, without gyroscopic moments on moving carriers."""
    peer = Peer(robot_file(name), "fixed")
    rng = np.random.default_rng(0)
    robot, armature = peer.robot, rng.uniform(0.01, 1.0, peer.robot.nv)
    for joint, slices in zip(robot.joints, robot.coordinates, strict=True):
        robot = robot.with_motor(joint.name, armature[slices.v.start] / 50**2, 50, robot.base.name, axis=(0, 0, 1))
    peer.model.armature[:] = peer.G @ armature
    q, v, tau = random_state(robot, 1)
    theirs = pin.aba(peer.model, peer.data, peer.positions(q), peer.G @ v, peer.G @ tau)
    assert_close(robot.forward_dynamics(q, v, tau), peer.G.T @ theirs)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    "name", ["ur5_robot.urdf", pytest.param("talos_reduced.urdf", marks=pytest.mark.slow), "solo12.urdf"]
)
def test_derivatives_agree(name: str, base: str) -> None:
    peer = Peer(robot_file(name), base)
    robot, G = peer.robot, peer.G
    q, v, a = random_state(robot, 2)
    theirs = pin.computeRNEADerivatives(peer.model, peer.data, peer.positions(q), G @ v, G @ a)
    for found, expected in zip(robot.derivatives.inverse_dynamics(q, v, a), theirs, strict=True):
        full = np.triu(expected) + np.triu(expected, 1).T if expected is theirs[2] else expected
        assert_close(found, G.T @ full @ G)
    pin.computeABADerivatives(peer.model, peer.data, peer.positions(q), G @ v, G @ a)
    found = robot.derivatives.forward_dynamics(q, v, a)
    minv = np.triu(peer.data.Minv) + np.triu(peer.data.Minv, 1).T
    for ours, expected in zip(found, (peer.data.ddq_dq, peer.data.ddq_dv, minv), strict=True):
        assert_close(ours, G.T @ expected @ G)
