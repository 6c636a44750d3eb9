"""Link frames anywhere on their links, and tables and screws on a floating base, against the recursion in se(3)."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.reproduce.equations import lie
from torsor.spatial import to_quaternion

from .conventions import Serial, Tree, carry, pose, random_inertia, random_rotation, turn


def assert_close(actual, expected, tolerance=1e-11):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("frame", ["space", "body"])
def test_screws_with_frames_off_the_centres_of_mass_describe_the_same_robot(frame):
    case = Serial(6, 1)
    rng, (M, S, m, inertia, g) = case.rng, case.screws
    tau, F, V, _ = lie.compact(case.screws, *case.state)
    shifts = [pose(random_rotation(rng), rng.normal(size=3)) for _ in range(6)]
    home = [Mi @ T for Mi, T in zip(M, shifts, strict=True)]
    at_centre = [
        np.block([[J, np.zeros((3, 3))], [np.zeros((3, 3)), mi * np.eye(3)]]) for mi, J in zip(m, inertia, strict=True)
    ]
    G = [lie.Ad(T).T @ each @ lie.Ad(T) for T, each in zip(shifts, at_centre, strict=True)]
    axes = S if frame == "space" else [lie.Ad(lie.inverse(each)) @ s for each, s in zip(home, S, strict=True)]
    robot = torsor.from_screws(home, axes, G, gravity=g, frame=frame).to(device="casadi")
    assert_close(robot.inverse_dynamics(*case.state), tau)
    assert_close(robot.joint_wrenches(*case.state), [lie.Ad(T).T @ f for T, f in zip(shifts, F, strict=True)])
    assert_close(
        robot.velocities(*case.state[:2]), [lie.Ad(lie.inverse(T)) @ v for T, v in zip(shifts, V, strict=True)]
    )
    assert_close(robot.center_of_mass(case.state[0]), Serial(6, 1).from_dh().robot.center_of_mass(case.state[0]))


def test_a_spatial_inertia_maps_twists_to_momenta():
    rng = np.random.default_rng(5)
    mass, c, inertia, w, v = 2.5, rng.normal(size=3), random_inertia(rng), rng.normal(size=3), rng.normal(size=3)
    linear = mass * (v + np.cross(w, c))
    momentum = np.r_[inertia @ w + np.cross(c, linear), linear]
    assert_close(torsor.spatial.spatial_inertia(mass, c, inertia) @ np.r_[w, v], momentum, 1e-14)


@pytest.mark.parametrize("kind", ["from_dh", "from_mdh", "from_screws"])
def test_tables_and_screws_on_a_floating_base(kind):
    """The reference moves its base by three slides and three hinges without mass."""
    case = Serial(4, 2)
    rng, arm = case.rng, case.screws
    mass, c, inertia = 3.0, rng.normal(size=3) * 0.2, random_inertia(rng)
    slides, hinges = np.hstack([np.zeros((3, 3)), np.eye(3)]), np.hstack([np.eye(3)[::-1], np.zeros((3, 3))])
    reference = lie.Robot(
        M=np.array([*[np.eye(4)] * 5, pose(p=c), *arm.M]),
        S=np.vstack([slides, hinges, arm.S]),
        m=np.r_[np.zeros(5), mass, arm.m],
        I=np.array([*np.zeros((5, 3, 3)), inertia, *arm.I]),
        g=arm.g,
    )
    theta, rate, acceleration = rng.normal(size=(3, 10))
    tau, F, V, _ = lie.compact(reference, theta, rate, acceleration)
    h = 1e-30
    moved = lie.compact(reference, theta + 1j * h * rate, rate + 1j * h * acceleration, acceleration)[2]
    to_base = lie.Ad(pose(p=c))
    v = np.r_[to_base @ V[5], rate[6:]]
    a = np.r_[to_base @ moved[5].imag / h, acceleration[6:]]
    R = turn(2, theta[3]) @ turn(1, theta[4]) @ turn(0, theta[5])
    q = np.r_[theta[:3], to_quaternion(R), theta[6:]]
    robot = getattr(case, kind)(base="floating").robot.with_payload("base", mass, c, inertia)
    assert robot.nv == 10 and robot.coordinate_names[0] == "root/wx"
    assert_close(robot.inverse_dynamics(q, v, a), np.r_[carry(pose(p=c), F[5]), tau[6:]])


def test_a_tree_of_six_parameters_floats_with_its_own_forces():
    """At rest the forces of the joints are those of the fixed tree, in gravity as the base sees it."""
    fixed = Tree(5, 3)
    tree = fixed.reference
    rows = [
        torsor.MDHLink(
            int(tree.antecedent[j]),
            *(float(getattr(tree, each)[j]) for each in ("gamma", "b", "alpha", "d", "theta", "r")),
            joint=int(tree.sigma[j]),
            mass=link.mass,
            com=link.com,
            inertia=link.inertia,
        )
        for j, link in enumerate(fixed.robot.links)
    ]
    floating = torsor.from_mdh(rows, gravity=tree.g, base="floating").to(device="casadi")
    R, q = random_rotation(np.random.default_rng(1)), fixed.state[0]
    still = fixed.robot.with_gravity(R.T @ tree.g).gravity_force(q)
    assert_close(floating.gravity_force(np.r_[1.0, 2.0, 3.0, to_quaternion(R), q])[6:], still)


def test_a_closed_chain_of_a_table_floats():
    """In free fall a four-bar linkage keeps the acceleration of its crank, and the base falls with it."""
    rod = torsor.DHLink(a=1.0, mass=1.0, com=(-0.5, 0, 0), inertia=np.diag([0.0, 1.0, 1.0]) / 12)
    rows = [torsor.DHLink(a=0.4, mass=0.4, com=(-0.2, 0, 0), active=True), rod, rod, torsor.DHLink(a=0.9, closes=-1)]
    robot = torsor.from_dh(rows, base="floating").with_payload("base", 2.0, inertia=np.eye(3)).to(device="casadi")
    assert robot.closed.mobility().dof == 7
    q = robot.closed.positions(np.r_[0, 0, 0, 0, 0, 0, 1, 0.5, 1.0, 1.5])
    a = robot.closed.forward_dynamics(q, np.zeros(9), np.zeros(9), coordinates="all")
    np.testing.assert_allclose(a, np.r_[0, 0, 0, robot.gravity, 0, 0, 0], atol=1e-11)


@pytest.mark.parametrize(
    "read", [torsor.from_dh, torsor.from_mdh, lambda none, base: torsor.from_screws([], [], none, base=base)]
)
def test_a_floating_base_without_links_is_refused(read):
    with refused(where="robot", what="a floating base without links has no mass"):
        read([], base="floating")
    assert read([], base="fixed").nv == 0


def test_a_link_of_a_microgram_keeps_its_centre_of_mass():
    m, c, J = 1e-9, np.array([5e-4, -2e-4, 1e-4]), 1e-16 * np.diag([1.0, 2.0, 2.5])
    C = np.cross(np.eye(3), c)
    G = np.block([[J - m * C @ C, m * C], [-m * C, m * np.eye(3)]])
    link = torsor.from_screws([np.eye(4)], [[0, 0, 1, 0, 0, 0]], [G]).links[0]
    assert_close(link.com, c)
    assert_close(link.inertia, J, 1e-9)
