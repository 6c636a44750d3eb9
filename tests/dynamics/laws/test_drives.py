"""Geared motors and elastic joints obey mechanics: rotors as separate bodies, a Lagrangian, and limit cases."""

import warnings
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.spatial import axis_frame, from_rpy, make_pose, move_inertia


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-11) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def random_state(robot: torsor.Robot, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    return q, rng.normal(size=robot.nv), rng.normal(size=robot.nv)


# The same robot twice: with unified bodies, and with each rotor a link that turns


def two_descriptions(seed: int, elastic: bool) -> tuple[torsor.Robot, torsor.Robot]:
    """Return a random tree with motors, and the tree in which every rotor is a separate link with its own joint."""
    rng = np.random.default_rng(seed)
    bare = torsor.library.random_tree(7, seed, extras=False)
    unified, links, joints = bare, {link.name: link for link in (bare.base, *bare.links)}, list(bare.joints)
    motors = [joint.name for joint in bare.joints if joint.nv == 1]
    for name in motors:
        carrier, axis = str(rng.choice([bare.base.name, *bare.link_names])), rng.normal(size=3)
        Iz, ratio, place = float(rng.uniform(1e-3, 1e-2)), float(rng.uniform(-9, 9)), rng.normal(size=3) * 0.1
        rotor = 0.3, np.zeros(3), np.diag([Iz, Iz, 1.5 * Iz])
        at = make_pose(axis_frame(axis / np.linalg.norm(axis)), place)
        mass, com, inertia = move_inertia(at, *rotor)
        unified = unified.with_motor(name, 1.5 * Iz, ratio, carrier, axis, stiffness=30.0 if elastic else None)
        unified = unified.with_payload(carrier, mass, com, inertia)
        follows = {} if elastic else {"coordinate": name}
        joints.append(torsor.Joint(f"{name}/rotor", "revolute", carrier, f"{name}/rotor", at, ratio=ratio, **follows))
        links[f"{name}/rotor"] = torsor.Link(f"{name}/rotor", *rotor)
    separate = torsor.build("separate", list(links.values()), joints, gravity=bare.gravity)
    return unified.to(device="casadi"), separate.to(device="casadi")  # each is called once


@pytest.mark.parametrize("elastic", [False, True])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_a_motor_is_a_rotor_that_turns_on_its_carrier(seed: int, elastic: bool) -> None:
    unified, separate = two_descriptions(seed, elastic)
    names = [name.replace("/motor", "/rotor") for name in unified.coordinate_names]
    order = [separate.coordinate_names.index(name) for name in names]
    positions = [separate.position_names.index(name.replace("/motor", "/rotor")) for name in unified.position_names]
    q, v, a = random_state(unified, seed)
    qs, vs, as_ = np.empty(separate.nq), np.empty(separate.nv), np.empty(separate.nv)
    qs[positions], vs[order], as_[order] = q, v, a
    expected = separate.inverse_dynamics(qs, vs, as_)[order]
    assert_close(unified.inverse_dynamics(q, v, a), expected + unified.spring_force(q))
    assert_close(unified.mass_matrix(q), separate.mass_matrix(qs)[np.ix_(order, order)])
    assert_close(unified.momentum(q, v)[3:], separate.momentum(qs, vs)[3:])
    tau = unified.inverse_dynamics(q, v, a)
    assert_close(unified.forward_dynamics(q, v, tau), a, 1e-10)
    carried = {joint.motor.carrier for joint in unified.joints if joint.motor}
    if unified.base.name not in carried:  # what turns on the base is no moving link, but a rotor there would be
        assert_close(unified.momentum(q, v), separate.momentum(qs, vs))
        assert_close(unified.kinetic_energy(q, v), separate.kinetic_energy(qs, vs))


# By default the rotor spins about the axis of its joint


def test_default_motors_of_a_ur5_are_rotors_about_the_axes_of_its_joints() -> None:
    arm, Iz, ratio = torsor.library.ur5(), 1e-4, 100.0
    geared, links, joints = arm, [arm.base, *arm.links], list(arm.joints)
    for joint in arm.joints:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", torsor.ModelWarning)  # a heavy rotor on a light wrist
            geared = geared.with_motor(joint.name, Iz, ratio)
        at, name = make_pose(joint.placement[:3, :3] @ axis_frame(joint.axis)), f"{joint.name}/rotor"
        joints.append(torsor.Joint(name, "revolute", joint.parent, name, at, ratio=ratio, coordinate=joint.name))
        links.append(torsor.Link(name, 0.0, np.zeros(3), np.diag([0.0, 0.0, Iz]), strict=False))
        # What the rotor is when it does not spin belongs to the carrier of a motor.
        if joint.parent != arm.base.name:
            k = next(k for k, each in enumerate(links) if each.name == joint.parent)
            R = at[:3, :3]
            still = links[k].inertia - R @ np.diag([0.0, 0.0, Iz]) @ R.T
            links[k] = replace(links[k], inertia=(still + still.T) / 2, strict=False)
    separate = torsor.build("separate", links, joints, gravity=arm.gravity).to(device="casadi")
    q, v, a = random_state(arm, 4)
    geared = geared.to(device="casadi")
    expected = separate.inverse_dynamics(q, v, a)
    assert_close(geared.inverse_dynamics(q, v, a), expected)
    upright = replace(geared, joints=tuple(replace(j, motor=replace(j.motor, axis=(0, 0, 1))) for j in geared.joints))
    assert np.abs(upright.inverse_dynamics(q, v, a) - expected).max() > 0.01  # the carriers' z axes are others
    # Angular momentum of the rotors: M + sum of Iz (ratio^2 e e^T + ratio (e (z J) + (z J)^T e^T)), over numbers alone.
    M, T, J = arm.mass_matrix(q), np.eye(4), np.zeros((3, 6))
    for k, joint in enumerate(arm.joints):
        e, axis = np.eye(6)[k], T[:3, :3] @ joint.placement[:3, :3] @ joint.axis
        M = M + Iz * (ratio**2 * np.outer(e, e) + ratio * (np.outer(e, axis @ J) + np.outer(axis @ J, e)))
        J, T = J + np.outer(axis, e), np.asarray(arm.pose(q, joint.child))
    assert_close(geared.mass_matrix(q), M)


def test_the_axis_of_a_joint_is_seen_from_any_carrier_where_it_keeps_its_direction() -> None:
    arm = torsor.library.planar_chain(3)
    tilted = arm.with_frame("tilted", "link1", make_pose(from_rpy([0.3, 0.4, 0.5])))
    for carrier in ("base", "link1", "link3", "tilted"):
        assert_close(tilted.with_motor("joint3", 1e-9, carrier=carrier).joints[2].motor.axis, np.array([0.0, 0, 1]))
    bent = torsor.library.ur5()
    last = bent.joints[-1]
    with refused(fix="axis="):
        bent.with_motor(last.name, 1e-6, carrier=bent.link_names[0])
    assert bent.with_motor(last.name, 1e-9, carrier=bent.link_names[0], axis=(1, 0, 0)).joints[-1].motor.axis[0] == 1.0
    on_base, q = bent.with_motor(last.name, 1e-9, carrier=bent.base.name), 0.0 * bent.neutral()
    assert_close(on_base.joints[-1].motor.axis, bent.pose(q, last.child)[:3, :3] @ last.axis)  # of no influence
    assert_close(bent.with_motor(last.name, 1e-9, carrier=last.child).joints[-1].motor.axis, last.axis)


# A Lagrangian that shares nothing with the library: homogeneous transforms, and derivatives by CasADi


def spun(angle: ca.SX) -> ca.SX:
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))


def energy_of(mass: float, inertia: np.ndarray, R: ca.SX, p: ca.SX, x: ca.SX, rate: ca.SX) -> ca.SX:
    """Kinetic energy of a body whose frame is at its centre of mass, from the rates of its pose alone."""
    R_rate = ca.reshape(ca.jtimes(ca.vec(R), x, rate), 3, 3)
    turning = R.T @ R_rate
    w = ca.vertcat(turning[2, 1], turning[0, 2], turning[1, 0])
    v = ca.jtimes(p, x, rate)
    return 0.5 * mass * ca.dot(v, v) + 0.5 * ca.dot(w, ca.SX(inertia) @ w)


@pytest.mark.parametrize("name", ["elastic_arm", "bevel_elastic_arm"])
def test_the_arm_of_hua_et_al_obeys_its_lagrangian_with_rotors_as_bodies(name: str) -> None:
    x, rate, acceleration = (ca.SX.sym(name, 4) for name in ("x", "rate", "acceleration"))
    q, theta, g, eta = x[:3], x[3], 9.81, 10.0
    upright = ca.SX([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    R1 = spun(q[0]) @ upright
    R2 = R1 @ spun(q[1])
    R3 = R2 @ spun(q[2])
    o2 = ca.vertcat(0, 0, 0.3)
    o3 = o2 + R2 @ ca.vertcat(0.3, 0, 0)
    bodies = [
        (2.5, np.diag([0.4, 0.5, 0.4]), R1, ca.vertcat(0, 0, 0.15)),
        (1.5, np.array([[0.35, 0.15, 0.1], [0.15, 0.4, 0.2], [0.1, 0.2, 0.3]]), R2, o2 + R2 @ ca.vertcat(0.15, 0, 0)),
        (
            1.0,
            np.array([[0.3, 0.15, 0.13], [0.15, 0.25, 0.2], [0.13, 0.2, 0.25]]),
            R3,
            o3 + R3 @ ca.vertcat(0.125, 0, 0),
        ),
    ]
    rotor = np.diag([0.006, 0.006, 0.004])
    bodies += [(1.0, rotor, spun(eta * q[0]), ca.SX.zeros(3, 1)), (1.0, rotor, R1 @ spun(eta * q[1]), o2)]
    if name == "elastic_arm":
        bodies += [(1.0, rotor, R1 @ spun(eta * theta), o2)]
    else:  # half way along link 2, its z along the link
        along = ca.SX([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
        bodies += [(1.0, rotor, R2 @ along @ spun(eta * theta), o2 + R2 @ ca.vertcat(0.15, 0, 0))]
    kinetic = sum(energy_of(m, J, R, p, x, rate) for m, J, R, p in bodies)
    potential = sum(m * g * p[2] for m, _, _, p in bodies) + 50.0 * (theta - q[2]) ** 2
    L = kinetic - potential
    momentum = ca.gradient(L, rate)
    tau = ca.jtimes(momentum, x, rate) + ca.jtimes(momentum, rate, acceleration) - ca.gradient(L, x)
    lagrange = ca.Function("lagrange", [x, rate, acceleration], [tau])
    robot = getattr(torsor.library, name)()
    for seed in range(5):
        state = random_state(robot, seed)
        assert_close(robot.inverse_dynamics(*state), np.asarray(lagrange(*state).full()).ravel(), 1e-12)


def test_the_couplings_of_rotor_and_links_are_not_zero_where_the_rotor_is_turned_across_its_axis() -> None:
    """S, C1 and C2 of Hua et al. 2022, eq. 30, in closed form."""
    arm, H = torsor.library.bevel_elastic_arm().with_gravity((0, 0, 0)).to(device="casadi"), 0.004 * 10
    q, v, _ = random_state(arm, 3)
    s, c = np.sin(q[1]), np.cos(q[1])
    assert_close(arm.mass_matrix(q)[3], np.array([H * s, 0, 0, H * 10]))
    still = arm.bias_force(q, v * [1, 1, 1, 0])
    assert_close((arm.bias_force(q, v) - still)[:3], H * c * v[3] * np.array([v[1], -v[0], 0]))
    assert_close(still[3] - arm.spring_force(q)[3], H * c * v[0] * v[1])
    plain = torsor.library.elastic_arm().with_gravity((0, 0, 0)).to(device="casadi")
    assert not plain.mass_matrix(q)[3, :3].any()
    assert_close(plain.bias_force(q, v), plain.bias_force(q, v * [1, 1, 1, 0]))


# Motors with mass: stator and rotor on their carrier


def with_separate_motor(
    robot: torsor.Robot, at: np.ndarray, stator: tuple, rotor: tuple, **drive: float
) -> torsor.Robot:
    """Return the robot with the stator welded to link 2, and the rotor as a link that a gear turns with joint 4."""
    place = make_pose(p=rotor[1])
    joints = [
        torsor.Joint("mount", "fixed", "link2", "stator", at),
        torsor.Joint("bearing", "revolute", "stator", "rotor", place, coordinate="joint4", ratio=drive["ratio"]),
    ]
    links = [torsor.Link("stator", *stator), torsor.Link("rotor", rotor[0], np.zeros(3), rotor[2])]
    parts = [robot.base, *robot.links, *links], [*robot.joints, *joints]
    return torsor.build("separate", *parts, gravity=robot.gravity).to(device="casadi")


def motor_parts(seed: int) -> tuple[np.ndarray, tuple, tuple]:
    """Return the pose of a motor's frame, at its centre of mass, and its stator and rotor in that frame."""
    rng = np.random.default_rng(seed)
    A = 0.1 * rng.normal(size=(3, 3))  # three points
    along = rng.uniform(-0.05, 0.05)
    rotor = 0.4, np.array([0.0, 0.0, along]), np.diag([3e-3, 3e-3, 2e-3])
    stator = 1.1, np.array([0.0, 0.0, -0.4 * along / 1.1]), np.trace(A @ A.T) * np.eye(3) - A @ A.T
    return make_pose(from_rpy(rng.uniform(-1, 1, 3)), rng.normal(size=3) * 0.2), stator, rotor


@pytest.mark.parametrize("seed", range(3))
def test_a_motor_with_mass_is_a_stator_on_its_carrier_and_a_rotor_that_a_gear_turns(seed: int) -> None:
    arm = torsor.library.stanford()
    at, stator, rotor = motor_parts(seed)
    mass, com, moments = torsor.spatial.composite(stator, rotor)
    np.testing.assert_allclose(com, 0, atol=1e-16)
    geared = arm.with_motor("joint4", 2e-3, 20.0, "link2", mass=mass, place=at, moments=moments).to(device="casadi")
    separate = with_separate_motor(arm, at, stator, rotor, ratio=20.0)
    assert geared.mass == pytest.approx(separate.mass)
    q, v, a = random_state(arm, seed)
    assert_close(geared.inverse_dynamics(q, v, a), separate.inverse_dynamics(q, v, a))
    assert_close(geared.mass_matrix(q), separate.mass_matrix(q))
    assert_close(geared.forward_dynamics(q, v, geared.inverse_dynamics(q, v, a)), a, 1e-10)
    assert_close(geared.momentum(q, v), separate.momentum(q, v))
    # The same motor with its centre of mass as a point, its inertia in the axes of the carrier and its axis.
    R = at[:3, :3]
    turned = arm.with_motor(
        "joint4", 2e-3, 20.0, "link2", R[:, 2], mass=mass, place=at[:3, 3], moments=R @ moments @ R.T
    )
    assert_close(turned.to(device="casadi").inverse_dynamics(q, v, a), separate.inverse_dynamics(q, v, a))
    # And on a frame of the carrier.
    framed = arm.with_frame("mount", "link2", at).with_motor(
        "joint4", 2e-3, 20.0, "mount", (0, 0, 1), mass=mass, moments=moments
    )
    assert_close(framed.to(device="casadi").inverse_dynamics(q, v, a), separate.inverse_dynamics(q, v, a))


def test_three_moments_are_about_the_motors_own_axes() -> None:
    """About an oblique spin axis: those of the same motor with its frame as a pose."""
    arm, axis = torsor.library.stanford(), np.array([0.6, 0.0, 0.8])
    drive = {"mass": 0.9, "moments": (3e-3, 3e-3, 2e-3)}
    point = arm.with_motor("joint4", 1e-3, 20.0, "link2", axis, place=(0.1, 0.2, 0.3), **drive)
    frame = make_pose(axis_frame(axis) @ from_rpy([0, 0, 0.7]), [0.1, 0.2, 0.3])
    posed = arm.with_motor("joint4", 1e-3, 20.0, "link2", place=frame, **drive)
    assert_close(point.links[1].inertia, posed.links[1].inertia, 1e-15)
    disc = arm.with_motor("joint4", 2e-3, 20.0, "link2", axis, mass=0.9, place=(0.1, 0.2, 0.3))
    shape = make_pose(axis_frame(axis), [0.1, 0.2, 0.3])
    loaded = arm.with_frame("m", "link2", shape).with_payload("m", 0.9, inertia=np.diag([1e-3, 1e-3, 2e-3]))
    assert_close(disc.links[1].inertia, loaded.links[1].inertia, 1e-15)


def test_a_motor_without_moments_is_a_point_with_a_disc() -> None:
    arm = torsor.library.planar_chain(2, length=1.0, mass=3.0)
    heavy = arm.with_motor("joint2", 2e-3, 5.0, mass=0.7, place=(1.0, 0, 0))
    same = arm.with_payload("link1", 0.7, (1.0, 0, 0), np.diag([1e-3, 1e-3, 2e-3])).with_motor("joint2", 2e-3, 5.0)
    assert heavy == same and heavy.without_motor("joint2").links[0].mass == 3.7
    on_base = arm.with_motor("joint1", 2e-3, 5.0, mass=0.7)
    assert on_base.base.mass == 0.7 and on_base.links == arm.links


# Limit cases


def test_a_rotor_on_the_base_is_its_inertia_seen_through_the_gear() -> None:
    robot = torsor.library.stanford()
    geared = robot.with_motor("joint4", 2e-4, ratio=30, carrier="base", axis=(1, 2, 3))
    joints = [replace(joint, rotor_inertia=2e-4 * 900) if joint.name == "joint4" else joint for joint in robot.joints]
    reflected = replace(robot, joints=tuple(joints))
    state = random_state(robot)
    assert_close(geared.inverse_dynamics(*state), reflected.inverse_dynamics(*state))


def test_a_rotor_of_no_inertia_leaves_the_robot_as_it_is() -> None:
    robot = torsor.library.stanford().to(device="casadi")
    state = random_state(robot)
    still = robot.with_motor("joint4", 0.0, ratio=30, carrier="link2", axis=(1, 2, 3))
    assert np.array_equal(still.inverse_dynamics(*state), robot.inverse_dynamics(*state))


@pytest.mark.parametrize("carrier", ["base", "link1", "link3", "link4", "link6"])
def test_a_rotor_may_sit_before_on_or_behind_the_joint_that_it_drives(carrier: str) -> None:
    robot = torsor.library.stanford().to(device="casadi")
    robot = robot.with_motor("joint4", 1e-3, ratio=20, carrier=carrier, axis=(0.3, -1, 2))
    q, v, a = random_state(robot)
    assert_close(robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, a)), a, 1e-10)
    rates = robot.momentum(q, v) - robot.without_motor("joint4").momentum(q, v)
    if carrier == "base":
        assert_close(rates, np.zeros(6))
    else:  # the spin of the rotor, in base axes
        spin = 1e-3 * 20 * v[3] * robot.pose(q, carrier)[:3, :3] @ np.array([0.3, -1, 2]) / np.linalg.norm([0.3, -1, 2])
        assert_close(rates, np.r_[spin, np.zeros(3)])


def test_a_stiff_joint_tends_to_a_rigid_one() -> None:
    """With a spring of stiffness K the joint lags by a deflection of order 1/K, and so does the acceleration."""
    arm, errors = torsor.library.six_axis_arm().without_friction().to(device="casadi"), []
    motor = {"inertia": 3.32e-4, "ratio": 50.0, "carrier": "link1", "axis": (0, 0, 1)}  # the 0.83 that it had
    rigid = arm.with_motor("joint3", **motor)
    q, v, tau = random_state(arm)
    expected = rigid.forward_dynamics(q, v, tau)
    for K in (1e6, 1e8):
        elastic = arm.with_motor("joint3", **motor, stiffness=K)
        # In step with the rigid robot: the spring carries what the load side takes.
        load = arm.inverse_dynamics(q, v, expected)
        load[2] += elastic.inverse_dynamics(np.r_[q, q[2]], np.r_[v, v[2]], np.r_[expected, expected[2]])[2] - load[2]
        theta = q[2] + load[2] / K
        force = np.r_[tau, tau[2]]
        force[2] = 0.0
        found = elastic.forward_dynamics(np.r_[q, theta], np.r_[v, v[2]], force)
        errors.append(np.abs(found[:6] - expected).max())
    assert errors[1] < 1e-4 * np.abs(expected).max()


def test_a_held_motor_leaves_the_spring() -> None:
    law = "200 + 30 * x + 500 * x**2"  # not the same both ways
    robot = torsor.library.two_link().with_motor("joint2", 1e-3, 20, "link1", stiffness=law, damping=0.3)
    held = robot.fix("joint2/motor", 0.4)
    assert held.coordinate_names == ("joint1", "joint2")
    q, v, a = random_state(held)
    expected = robot.inverse_dynamics(np.r_[q, 0.4], np.r_[v, 0], np.r_[a, 0])
    assert_close(held.inverse_dynamics(q, v, a), expected[:2])


def test_spring_laws_are_secant_stiffnesses_and_have_their_energy() -> None:
    x = ca.SX.sym("x")
    robot = torsor.library.two_link()
    laws = [100.0, 100 + 500 * x**2, "100 + 500 * x**2", 50 * ca.exp(-(x**2)) + ca.fabs(x), ca.SX(7)]
    for law in laws:
        sprung = robot.with_spring("joint1", law, rest=0.2)
        for q in (-0.7, 0.2, 1.1):
            h = 1e-5
            energy = [sprung.potential_energy([q + s, 0]) for s in (h, -h)]
            assert sprung.spring_force([q, 0])[0] == pytest.approx((energy[0] - energy[1]) / (2 * h), abs=1e-6)
    assert robot.with_spring("joint1", laws[1]) == robot.with_spring("joint1", "(100 + (500 * (x ** 2)))")
    assert robot.with_spring("joint1", laws[2]).spring_force([0.1, 0])[0] == pytest.approx(10.5)


def test_friction_acts_on_the_joints_side_and_on_the_motors_side() -> None:
    robot = torsor.library.two_link().with_motor("joint2", 1e-3, 20, "link1", stiffness=100)
    robot = robot.with_friction("joint2", coulomb=1.0).with_friction("joint2/motor", coulomb=2.0, viscous=0.5)
    assert robot.friction_force([1.0, -1.0, 3.0]).tolist() == [0.0, -1.0, 3.5]
    smooth = robot.with_friction("joint2/motor", smooth=0.1)
    assert smooth.friction_force([0.0, 0.0, 0.05])[2] == pytest.approx(2 * np.tanh(0.5) + 0.025)
    rigid = torsor.library.two_link().with_motor("joint2", 1e-3).with_friction("joint2/motor", viscous=0.5)
    assert rigid.friction_force([0.0, 2.0]).tolist() == [0.0, 1.0]


def test_a_motor_on_a_welded_link_is_on_the_link_that_carries_it() -> None:
    turn = from_rpy([0.3, -0.5, 0.9])
    links = [torsor.Link("ground"), torsor.Link("arm", 1.0, (0.2, 0, 0), 0.1 * np.eye(3)), torsor.Link("box")]
    hinge = torsor.Joint("hinge", "revolute", "ground", "arm", axis=(1, 0, 0))
    weld = torsor.Joint("weld", "fixed", "arm", "box", make_pose(turn, [0, 1, 0]))
    wheel = torsor.Link("wheel", 0.5, (0.1, 0, 0), 0.05 * np.eye(3))
    motor = torsor.Motor("box", 1e-3, 30.0, np.array([0.0, 0.0, 1.0]))
    axle = torsor.Joint("axle", "revolute", "box", "wheel", motor=motor)
    robot = torsor.build("welded", [*links, wheel], [hinge, weld, axle])
    assert robot.joint("axle").motor.carrier == "arm"
    assert_close(robot.joint("axle").motor.axis, turn[:, 2])


def test_elastic_coordinates_have_names_limits_and_places() -> None:
    robot = torsor.library.elastic_arm()
    assert robot.position_names == robot.coordinate_names == ("joint1", "joint2", "joint3", "joint3/motor")
    limited = replace(robot, joints=tuple(replace(j, effort_limit=5.0, velocity_limit=2.0) for j in robot.joints))
    assert limited.effort_limit.tolist() == [5.0, 5.0, 0.0, 5.0]
    assert limited.velocity_limit.tolist() == [2.0] * 4
    assert robot.upper.tolist() == [np.inf] * 4
    assert robot.jacobian(np.zeros(4), "tip").shape == (6, 4)
    assert not robot.jacobian(np.zeros(4), "tip")[:, 3].any()
    assert robot.fix("joint3", 0.2).nv == 2


# Friction models: text in the joint velocity

MODEL = "0.2 + 0.4 * sign(v) * exp(-(v / 0.7)**2) + 0.05 * fmax(fmin(v, 2), -2)**3 + 0.3 * sign(v) * abs(v)**1.5"


def rubbing(smooth: float = 0.0) -> torsor.Robot:
    robot = torsor.library.planar_chain(2).with_friction("joint1", 0.5, 0.8, smooth)
    return robot.with_friction("joint1", friction_model=MODEL)


def test_a_friction_model_adds_its_force_to_that_of_coulomb_and_viscous_friction() -> None:
    v = np.linspace(-3, 3, 50)
    clipped, power = np.clip(v, -2, 2), np.abs(v) ** 1.5
    model = 0.2 + 0.4 * np.sign(v) * np.exp(-((v / 0.7) ** 2)) + 0.05 * clipped**3 + 0.3 * np.sign(v) * power
    assert_close(rubbing().friction_force(np.stack([v, v], axis=1))[:, 0], 0.5 * np.sign(v) + 0.8 * v + model)
    assert not rubbing().without_friction().friction_force([1.0, 1.0]).any()


@pytest.mark.parametrize("smooth", [0.0, 0.1])
def test_dynamics_and_derivatives_include_the_friction_model(smooth: float) -> None:
    robot, (q, v, a) = rubbing(smooth), random_state(torsor.library.planar_chain(2))
    tau = robot.inverse_dynamics(q, v, a)
    frictionless = robot.without_friction().inverse_dynamics(q, v, a)
    assert_close(tau, frictionless + robot.friction_force(v))
    assert_close(robot.forward_dynamics(q, v, tau), a)
    _, dv = robot.derivatives.inverse_dynamics(q, v, a)[:2]
    steps = 1e-6 * np.eye(2)
    slopes = [(robot.inverse_dynamics(q, v + h, a) - robot.inverse_dynamics(q, v - h, a)) / 2e-6 for h in steps]
    assert_close(dv, np.stack(slopes, axis=1), 1e-7)


def test_a_follower_rubs_with_its_own_velocity() -> None:
    """A joint that turns c times as fast takes the power c v F(c v) from its coordinate."""
    robot = torsor.library.planar_chain(2)
    joints = (robot.joints[0], replace(robot.joints[1], coordinate="joint1", ratio=3.0, friction_model="v**3"))
    assert_close(replace(robot, joints=joints).friction_force([0.5]), np.array([3 * 1.5**3]))


@pytest.mark.parametrize("text", ["v +", "x", "1 / v", "__import__('os')", "v" * 2001, 3.0, "log(v)"])
def test_a_friction_model_that_is_no_force_is_refused(text: object) -> None:
    with refused(argument="friction_model", where="joint 'joint1'"):
        torsor.library.planar_chain(2).with_friction("joint1", friction_model=text)


def test_only_joints_with_one_degree_of_freedom_have_friction_models() -> None:
    robot = torsor.library.planar_chain(2).with_joint_type("joint2", "spherical")
    with refused(what="cannot have a friction_model", allowed="1-dof joints"):
        robot.with_friction("joint2", friction_model="v**3")
