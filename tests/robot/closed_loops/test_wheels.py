"""Wheels: rolling without slipping against closed forms, laws on random mechanisms, mobility, and rejected input."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.dynamics.loops.closure import Closures
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism.loops import WHEELS
from torsor.motion.transcription.motion_model import MotionModel
from torsor.spatial import from_quaternion, from_rpy, inverse_pose, make_pose

from .loaded import close
from .test_random import ALL, slope

G = 9.81


def body(name: str, mass: float, inertia: list[float], com: tuple[float, ...] = (0.0, 0.0, 0.0)) -> torsor.Link:
    return torsor.Link(name, mass, com, np.diag(inertia))


def in_plane(*links: torsor.Link) -> list[torsor.Joint]:
    return [torsor.Joint("planar", "planar", "ground", link.name) for link in links]


# Closed forms


@pytest.mark.parametrize("tilt", [1.3, 0.8, 0.4])
@pytest.mark.parametrize("turning", [3.0, -5.0])
def test_a_disc_rolls_on_a_circle_at_the_spin_of_steady_motion(tilt: float, turning: float) -> None:
    """With the axle at an angle to the vertical, (I3 + m r^2) w3 W sin = (I1 W^2 sin - m g r) cos."""
    r, m = 0.3, 2.0
    disc = torsor.library.rolling_disc(r, m).to(device="casadi")
    across, along = m * r**2 / 4, m * r**2 / 2
    sin, cos = np.sin(tilt), np.cos(tilt)
    spin = (across * turning**2 * sin - m * G * r) * cos / ((along + m * r**2) * turning * sin)
    lean = np.pi / 2 - tilt
    R, n = from_rpy([lean, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    u = R[:, 1]
    up = (n - u[2] * u) / sin
    w = spin * u + turning * sin * up
    v = np.cross(w, r * up)
    q = np.r_[0.4, -0.2, r * sin, np.sin(lean / 2), 0.0, 0.0, np.cos(lean / 2)]
    found = disc.closed.forward_dynamics(q, np.r_[R.T @ w, R.T @ v], np.zeros(6), coordinates="all")
    # All turns about the vertical; the velocities are those in the axes of the disc.
    close(found, np.r_[R.T @ np.cross(turning * n, w), R.T @ (np.cross(turning * n, v) - np.cross(w, v))], 1e-13)
    force = disc.closed.loop_forces(q, np.r_[R.T @ w, R.T @ v], np.zeros(6), coordinates="all")
    assert force[0] == pytest.approx(m * G, rel=1e-13)  # its centre does not rise or fall
    assert np.hypot(*force[1:]) == pytest.approx(m * np.linalg.norm(np.cross(turning * n, v)), rel=1e-12)


@pytest.mark.parametrize(("kind", "share"), [("ball", 2 / 5), ("wheel", 1 / 2), ("wheel", 1.0)])
def test_what_rolls_down_a_slope_is_slowed_by_its_inertia(kind: str, share: float) -> None:
    """a = g sin / (1 + I / m r^2): a ball, a solid cylinder and a hoop."""
    m, r, angle = 1.5, 0.2, 0.3
    about = share * m * r**2
    robot = torsor.build("rolls", [body("round", m, [about, about, about])], [], base="floating").to(device="casadi")
    robot = robot.with_frame("slope", "world", make_pose(from_rpy([0.0, angle, 0.0]), [0.0, 0.0, 1.0]))
    robot = robot.with_wheel("contact", "round", r, kind, axis=(0, 1, 0), ground="slope")
    q = robot.closed.positions(robot.neutral())
    a = robot.closed.forward_dynamics(q, np.zeros(6), np.zeros(6), coordinates="all")
    down = G * np.sin(angle) / (1 + share)
    close(a, np.r_[0.0, down / r, 0.0, down * np.cos(angle), 0.0, -down * np.sin(angle)], 1e-13)
    forces = robot.closed.loop_forces(q, np.zeros(6), np.zeros(6), coordinates="all")
    close(forces, [m * G * np.cos(angle), m * (down - G * np.sin(angle)), 0.0], 1e-13)


def sleigh(m: float, moment: float, ahead: float) -> torsor.Robot:
    runner = body("sleigh", m, [moment, moment, moment], (ahead, 0.0, 0.0))
    robot = torsor.build("sleigh", [torsor.Link("ground"), runner], in_plane(runner)).to(device="casadi")
    return robot.with_wheel("edge", "sleigh", kind="edge", axis=(0, 1, 0))


def test_a_sleigh_on_a_knife_edge_obeys_chaplygin() -> None:
    m, moment, ahead = 2.0, 0.3, 0.4
    robot = sleigh(m, moment, ahead)
    q, w, speed = np.array([0.3, -0.1, 0.7]), 2.0, -0.5
    v = np.array([np.cos(q[2]) * speed, np.sin(q[2]) * speed, w])
    found = robot.closed.forward_dynamics(
        q, robot.closed.velocities(q, v, coordinates="all"), np.zeros(3), coordinates="all"
    )
    forward, turned = ahead * w**2, -m * ahead * speed * w / (moment + m * ahead**2)
    heading, left = np.array([np.cos(q[2]), np.sin(q[2])]), np.array([-np.sin(q[2]), np.cos(q[2])])
    close(found, np.r_[forward * heading + speed * w * left, turned], 1e-13)


def test_a_differential_drive_obeys_its_reduced_equations() -> None:
    """Two wheels of inertia J and a body with its centre of mass ahead of the axle: Lagrange's equations by hand."""
    m, moment, ahead, r, half, spin = 9.0, 0.6, 0.12, 0.1, 0.25, 0.008
    chassis = body("chassis", m, [moment, moment, moment], (ahead, 0.0, 0.0))
    wheels = [body(side, 0.0, [spin, spin, spin]) for side in ("left", "right")]
    spins = [
        torsor.Joint(f"{w.name}_spin", "revolute", "chassis", w.name, make_pose(p=[0, y, r]), (0, 1, 0))
        for w, y in zip(wheels, (half, -half), strict=True)
    ]
    robot = torsor.build("drive", [torsor.Link("ground"), chassis, *wheels], [*in_plane(chassis), *spins])
    robot = robot.with_active(["left_spin", "right_spin"]).to(device="casadi")
    for w in wheels:
        robot = robot.with_wheel(w.name, w.name, r, axis=(0, 1, 0))
    tau, rates, q = np.array([0.7, -0.3]), np.array([4.0, 7.0]), np.array([0.2, -0.4, 1.1, 0.5, -0.6])
    to_body = np.array([[r / 2, r / 2], [-r / (2 * half), r / (2 * half)]])  # speed and rate of turning
    speed, w = to_body @ rates
    # Both wheels also turn with the body, about a diameter.
    total = np.diag([m, moment + m * ahead**2 + 2 * spin])
    M = to_body.T @ total @ to_body + spin * np.eye(2)
    bias = to_body.T @ np.array([-m * ahead * w**2, m * ahead * speed * w])
    expected = np.linalg.solve(M, tau - bias)
    close(robot.closed.forward_dynamics(q, rates, tau), expected, 1e-12)
    close(robot.closed.forward_dynamics(q, rates, tau, method="multipliers"), expected, 1e-12)
    close(robot.closed.inverse_dynamics(q, rates, expected), tau, 1e-12)


def test_a_car_turns_about_the_point_where_its_axles_meet() -> None:
    car = torsor.library.bicycle_car(0.3, 2.5).to(device="casadi")
    q = car.closed.assemble([0.4, 0.35])
    assert q[3] == 0.4 and q[4] == pytest.approx(0.35, abs=1e-15)
    v = car.closed.velocities(q, [5.0, 0.2])
    radius = 2.5 / np.tan(0.35)
    close(v, [1.5, 0.0, 1.5 / radius, 5.0, 0.2, np.hypot(2.5, radius) * 1.5 / radius / 0.3], 1e-13)


def test_four_mecanum_wheels_move_a_body_in_every_direction() -> None:
    """The inverse kinematics of mecanum wheels: (vx -+ vy -+ (a + b) w) / r."""
    a, b, r = 0.3, 0.2, 0.1
    hull = body("hull", 10.0, [0.3, 0.3, 0.4])
    links, joints = [torsor.Link("ground"), hull], in_plane(hull)
    corners = {"fl": (a, b, -1), "fr": (a, -b, 1), "rl": (-a, b, 1), "rr": (-a, -b, -1)}
    for name, (x, y, _) in corners.items():
        links.append(body(name, 1.0, [0.003, 0.005, 0.003]))
        joints.append(torsor.Joint(f"{name}_spin", "revolute", "hull", name, make_pose(p=[x, y, r]), (0, 1, 0)))
    robot = torsor.build("mecanum", links, joints).to(device="casadi")
    for name, (_, _, sign) in corners.items():
        robot = robot.with_wheel(name, name, r, "omni", axis=(0, 1, 0), roller=sign * np.pi / 4)
    q = robot.neutral()
    mobility = robot.closed.mobility(q)
    assert (mobility.dof, mobility.position_dof, mobility.redundant) == (3, 7, 4)  # the heights in the plane
    driven = robot.with_active(["planar"])
    for vx, vy, w in np.eye(3):
        rates = [(vx + sign * vy - np.sign(y) * (a + b) * w) / r for _, y, sign in corners.values()]
        close(driven.closed.velocities(q, [vx, vy, w])[3:], rates, 1e-13)


# Laws on random mechanisms


def rolls(robot: torsor.Robot, name: str, kind: str, a: str, b: str, q: np.ndarray, rng) -> torsor.Robot:
    """Return the robot with a wheel of a kind between two links, in contact at q."""
    radius = {"edge": 0.0, "skid": 0.1}.get(kind, 0.2)
    at = make_pose(from_quaternion(rng.normal(size=4)), rng.normal(size=3))
    at[2, 3] = radius * (1.0 if kind in ("ball", "skid") else np.hypot(*at[:2, 2]))
    axle = make_pose(from_quaternion(rng.normal(size=4)), 0.3 * rng.normal(size=3))
    ground = inverse_pose(robot.pose(q, a)) @ robot.pose(q, b) @ axle @ inverse_pose(at)
    robot = robot.with_frame(f"{name}/axle", b, axle).with_frame(f"{name}/ground", a, ground)
    roller = 0.6 if kind == "omni" else 0.0
    return robot.with_wheel(name, f"{name}/axle", radius, kind, roller=roller, ground=f"{name}/ground")


def random_wheels(seed: int, extras: bool) -> tuple[torsor.Robot, np.ndarray]:
    """Return a random tree with a wheel of every kind between moving links or on the base, in contact at q."""
    rng = np.random.default_rng(seed)
    robot = torsor.library.random_tree(7, seed, types=ALL, branching=0.4, extras=extras).to(device="casadi")
    q = robot.integrate(robot.neutral(), rng.normal(size=robot.nv))
    for k, kind in enumerate(WHEELS):
        a, b = rng.choice([robot.base.name, *robot.link_names], 2, replace=False)
        robot = rolls(robot, f"wheel{k}", kind, str(a), str(b), q, rng)
    return robot, q


@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in (0, 2, 3))])
def test_in_random_mechanisms_contact_forces_do_no_work_and_wheels_do_not_slip(seed: int) -> None:
    robot, q = random_wheels(seed, extras=seed % 2 == 1)
    rng = np.random.default_rng(seed)
    assert np.abs(robot.closed.error(q)).max() < 1e-12
    A = robot.closed.jacobian(q)
    heights = np.flatnonzero(~robot.closed.closure.velocity_rows)
    assert len(heights) == len(WHEELS)
    differences = [slope(lambda h, e=e: robot.closed.error(robot.integrate(q, h * e))) for e in np.eye(robot.nv)]
    close(A[heights], np.transpose(differences)[heights])
    assert not np.transpose(differences)[robot.closed.closure.velocity_rows].any()
    v = robot.closed.velocities(q, rng.normal(size=robot.nv), coordinates="all")
    assert np.abs(A @ v).max() < 1e-12 * np.abs(A).max() * np.abs(v).max()
    x, y = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    drift = np.array(ca.Function("drift", [x, y], [Closures(Tree.of(robot), x).drift(y)])(q, v)).ravel()
    close(drift, slope(lambda h: robot.closed.jacobian(robot.integrate(q, h * v)) @ v, 1e-3), 1e-9)
    tau = rng.normal(size=robot.nv)
    a = robot.closed.forward_dynamics(q, v, tau, coordinates="all")
    close(A @ a, -drift)
    forces = robot.closed.loop_forces(q, v, tau, coordinates="all")
    needed = robot.inverse_dynamics(q, v, a, loops="open")
    close(needed, tau + A.T @ forces)
    assert needed @ v == pytest.approx(tau @ v, rel=1e-10)


# Freedoms


def test_mobility_counts_freedoms_of_velocities_and_of_positions() -> None:
    drive = torsor.library.differential_drive().to(device="casadi")
    found = drive.closed.mobility()
    # Nine equations: three heights that the plane fulfils, and the axle's slip across, which both wheels have.
    assert (found.dof, found.position_dof, found.equations, found.redundant) == (2, 7, 9, 4)
    assert not found.is_singular and found.control > 0.3
    disc = torsor.library.rolling_disc().to(device="casadi")
    found = disc.closed.mobility(disc.closed.positions(disc.neutral()))
    assert (found.dof, found.position_dof, found.redundant) == (3, 5, 0)
    bar = torsor.library.four_bar().to(device="casadi").closed.mobility()
    assert bar.position_dof == bar.dof == 1


def test_a_car_steered_by_a_quarter_turn_is_not_driven_by_its_rear_wheel() -> None:
    car = torsor.library.bicycle_car().to(device="casadi")
    q = car.closed.assemble([0.0, 0.0])
    q[4] = np.pi / 2
    assert car.closed.mobility(q).is_singular
    with refused(what="with the active coordinates locked"):
        car.closed.velocities(q, [1.0, 0.0])


def test_derivatives_of_a_car_are_slopes() -> None:
    car = torsor.library.bicycle_car().to(device="casadi")
    q, v, a = car.closed.assemble([0.3, 0.4]), np.array([2.0, -0.3]), np.array([0.5, 0.7])
    dq, dv, _ = car.closed.derivatives.inverse_dynamics(q, v, a)
    along = np.transpose([car.closed.velocities(q, e) for e in np.eye(2)])
    for k in range(2):
        by_q = slope(lambda h, k=k: car.closed.inverse_dynamics(car.integrate(q, h * along[:, k]), v, a))
        by_v = slope(lambda h, k=k: car.closed.inverse_dynamics(q, v + h * np.eye(2)[k], a))
        close(dq[:, k], by_q, 1e-8)
        close(dv[:, k], by_v, 1e-8)


# Refused input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": 0.0}, "radius"),
        ({"radius": -0.1}, "radius"),
        ({"radius": float("nan")}, "radius"),
        ({"radius": 0.1, "kind": "edge"}, "radius"),
        ({"radius": 0.1, "kind": "track"}, "kind"),
        ({"radius": 0.1, "roller": 0.3}, "roller"),
        ({"radius": 0.1, "kind": "omni", "roller": 1.6}, "roller"),
        ({"radius": 0.1, "axis": (0, 0, 0)}, "axis"),
        ({"radius": 0.1, "link": "wheal"}, "'wheal'"),
        ({"radius": 0.1, "link": "disc", "ground": "floor"}, "wheel 'w' ends at 'floor', which does not exist"),
        ({"radius": 0.1, "link": "disc", "ground": "disc"}, "disc"),
        (
            {"radius": 0.1, "link": "world"},
            "'world' and its ground are parts of one body, 'world'",
        ),
        ({"radius": 0.1, "ground": "rim/axle"}, "'disc' and its ground are parts of one body, 'disc'"),
    ],
)
def test_a_wheel_that_cannot_be_is_refused(arguments: dict, message: str) -> None:
    disc = torsor.library.rolling_disc().without_loop("rim")
    with refused(message):
        disc.with_wheel("w", **{"link": "disc"} | arguments)


def test_two_wheels_of_one_name_are_refused_by_it() -> None:
    with refused(value="rim"):
        torsor.library.rolling_disc().with_wheel("rim", "disc", 0.3, axis=(0, 1, 0))


def test_a_wheel_off_the_ground_is_refused_by_name() -> None:
    disc = torsor.library.rolling_disc(0.3).to(device="casadi")
    above = disc.closed.positions(disc.neutral())
    above[2] += 0.05
    for ask in (
        lambda: disc.closed.forward_dynamics(above, np.zeros(6), np.zeros(6), coordinates="all"),
        lambda: disc.closed.mobility(above),
    ):
        with refused(fix="robot.closed.positions"):
            ask()
    with refused(fix="robot.closed.positions"):
        torsor.simulate(disc)


def test_velocities_that_slip_are_refused_by_name() -> None:
    disc = torsor.library.rolling_disc(0.3).to(device="casadi")
    q = disc.closed.positions(disc.neutral())
    with refused(fix="robot.closed.velocities"):
        disc.closed.forward_dynamics(q, [0, 0, 0, 1, 0, 0], np.zeros(6), coordinates="all")
    with refused(fix="robot.closed.velocities"):
        torsor.simulate(disc, q, [0, 0, 0, 1, 0, 0])


def test_dynamics_of_the_tree_would_let_wheels_slip() -> None:
    disc = torsor.library.rolling_disc()
    with refused(what="the wheel 'rim', and inverse_dynamics would let it slip"):
        disc.inverse_dynamics(disc.neutral(), np.zeros(6), np.zeros(6))


def test_motion_prediction_refuses_wheels() -> None:
    with refused(what="the robot has wheels (rear, front)"):
        MotionModel(torsor.library.bicycle_car())


def test_an_axle_that_is_normal_to_the_ground_is_refused() -> None:
    runner = body("sleigh", 1.0, [1.0, 1.0, 1.0])
    robot = torsor.build("flat", [torsor.Link("ground"), runner], in_plane(runner)).to(device="casadi")
    for kind, radius in (("wheel", 0.1), ("edge", 0.0)):
        flat = robot.with_wheel("w", "sleigh", radius, kind)
        with refused(what="wheel 'w' lies flat: its axle is normal to its ground"):
            flat.closed.mobility()
        with refused(what="wheel 'w' lies flat"):
            flat.closed.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3), coordinates="all")
        with refused(what="no closed positions were found"):
            flat.closed.positions(np.zeros(3))
        with refused(what="at q0, wheel 'w' lies flat"):
            torsor.simulate(flat)  # and no warning of NumPy, which would be an error here
    high = robot.with_wheel("w", "sleigh", 0.1, axis=(0, 1, 0))
    with refused(what="wheel 'w' is 0.1 m below its ground"):
        high.closed.mobility()


def test_the_rate_of_closure_is_that_of_the_jacobian() -> None:
    robot = torsor.library.differential_drive().to(device="casadi")
    q, v = robot.closed.positions(robot.neutral()), np.arange(7.0)
    close(np.array(robot.function("closure_rate")(q, v)).ravel(), robot.closed.jacobian(q) @ v, 1e-15)
