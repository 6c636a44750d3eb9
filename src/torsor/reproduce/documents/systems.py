"""Khalil 2010, sections 7 and 8: the systems that the paper names.

"The difference between all of these systems will be in the calculation of the interaction forces with the environment":
each item computes these forces, compares the library with equations 89 to 100, and compares a motion with a solution
that uses neither.
"""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import brentq

from torsor import library
from torsor.base.arrays import Array
from torsor.compiler import count_operations
from torsor.dynamics import ALGORITHMS, Tree
from torsor.formats import MDHLink
from torsor.mechanism import Joint, Link, Shape, flexible_links
from torsor.reproduce.documents.drawing import AXES, curves, tidy
from torsor.reproduce.equations import khalil
from torsor.reproduce.errata.erratum import derivative
from torsor.reproduce.item import Item, Kind, Outcome, Row, claim, number, only, same
from torsor.reproduce.samples import about_origin
from torsor.robot.load import build, from_mdh
from torsor.robot.robot import Robot
from torsor.simulation import Contact, simulate
from torsor.spatial import axis_frame, make_pose

PLANAR = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])  # the reactions (moment, force) of a planar joint


def in_six_parameters(robot: Robot, root: int) -> tuple[khalil.Robot, khalil.Base, list[Array]]:
    """Return the links after ``root`` as a tree, the root as its base, and the rotations from links to frames."""
    turns = [np.eye(3), *(np.asarray(axis_frame(joint.axis)) for joint in robot.joints[root + 1 :])]
    rows, bodies = [], []
    for k, joint in enumerate(robot.joints[root + 1 :], start=1):
        before = turns[robot.parents[root + k] - root]
        T = joint.placement
        rows.append(khalil.six_parameters(before.T @ T[:3, :3] @ turns[k], before.T @ T[:3, 3]))
    for link, R in zip(robot.links[root:], turns, strict=True):
        com, inertia = R.T @ np.asarray(link.com), R.T @ np.asarray(link.inertia) @ R
        bodies.append((link.mass, link.mass * com, about_origin(link.mass, com, inertia)))
    M, MS, J = (np.array(each) for each in zip(*bodies, strict=True))
    drives = [(joint.rotor_inertia, joint.coulomb, joint.viscous) for joint in robot.joints[root + 1 :]]
    Ia, Fs, Fv = np.array(drives, dtype=float).reshape(-1, 3).T
    sigma = np.array([joint.type == "prismatic" for joint in robot.joints[root + 1 :]], dtype=int)
    parents = np.array(robot.parents[root + 1 :]) - root - 1
    tree = khalil.Robot(parents, sigma, *np.array(rows).T, M[1:], MS[1:], J[1:], Ia, Fs, Fv, np.zeros(3))
    return tree, khalil.Base(M[0], MS[0], J[0], np.zeros(3), np.zeros(6)), turns


def moving_base(
    robot: Robot, q: Array, v: Array, a: Array, external: Array | None = None, root: int = 0, held: Array | None = None
) -> list[Row]:
    """Return rows that compare a motion of the library with equations 89 to 100.

    ``external`` (L, 6) are the interaction forces on the links. ``held`` selects the reactions of the root's joint that
    act on the base too; the others must be in balance.
    """
    data, base, turns = in_six_parameters(robot, root)
    loads = np.zeros((len(robot.links), 6)) if external is None else np.array(external)
    forces = robot.inverse_dynamics(q, v, a, external=loads, loops="open")
    if held is not None:
        loads[root] += held * robot.joint_wrenches(q, v, a, external=loads, loops="open")[root]
    fe = np.array([-np.r_[R.T @ f[3:], R.T @ f[:3]] for R, f in zip(turns, loads[root:], strict=True)])
    n, gravity = len(data.M), robot.poses(q)[root, :3, :3].T @ robot.gravity
    base = base._replace(w=robot.velocities(q, v)[root, :3], fe=fe[0])
    found = khalil.moving_base_inverse(data, q[-n:], v[-n:], a[-n:], fe[1:], base)
    moved = robot.accelerations(q, v, a)[root]
    return [
        same("V'_0 - g, eq. 97", found.Vd_0, np.r_[moved[3:] - gravity, moved[:3]], 1e-10, "m/s², rad/s²"),
        same("Γ, eq. 100", found.Gamma, forces[-n:], 1e-10, "N m, N"),
    ]


def rolling(robot: Robot, q: Array, v_active: Array, a_active: Array) -> list[Row]:
    """Return rows of a wheeled robot: eqs. 97 and 100 with the ground forces of its wheels, and the drives' power."""
    v, a = robot.closed.accelerations(q, v_active, a_active)
    ground = robot.closed.loop_loads(q, robot.closed.loop_forces(q, v_active, a_active))
    drives = robot.closed.inverse_dynamics(q, v_active, a_active)

    def energy(t: float) -> Array:
        there, rate = robot.integrate(q, t * v + t * t / 2 * a), v + t * a
        return np.asarray(robot.kinetic_energy(there, rate) + robot.potential_energy(there))

    rows = moving_base(robot, q, v, a, ground, held=PLANAR)
    return [*rows, same("rate of energy, by differences", derivative(energy, 1e-3), drives @ v_active, 1e-8, "W")]


def bones(axes: Any, robot: Robot, q: Array, colour: Any, plane: Sequence[int] = (0, 1, 2), first: int = 0) -> None:
    """Draw lines between the origins of the links, from the link ``first`` on."""
    points = robot.poses(q)[:, :3, 3]
    for k, parent in enumerate(robot.parents):
        if parent >= first:
            axes.plot(*points[[parent, k]][:, list(plane)].T, "-", color=colour, linewidth=2)


# Wheels


def _car(steer: float = 0.3, rate: float = 4.0, duration: float = 4.0) -> Outcome:
    radius, wheelbase = 0.3, 2.5
    car = library.bicycle_car(radius, wheelbase).to(device="casadi")
    q = car.closed.assemble([0.0, steer])
    rows = rolling(car, q, np.array([20.0, 0.4]), np.array([rate, 0.5]))
    t = ca.SX.sym("t")
    given = {"rear": ca.Function("rear", [t], [rate * t**2 / 2]), "steer": steer}
    drive = simulate(car, q, duration=duration, step=0.05, prescribed=given)
    turning = wheelbase / np.tan(steer)  # the circle of the rear wheel
    from_centre = np.hypot(drive.q[:, 0], drive.q[:, 1] - turning)
    # One degree of freedom, the speed u of the rear wheel: (kinetic energy)' = power.
    chassis, wheel, kingpin = (car.links[k] for k in (0, 1, 2))
    yaw, far = 1 / turning, np.hypot(1.0, wheelbase / turning)  # rad/m; speed of the front axle over u
    spin = wheel.inertia[1, 1] / radius**2 * (1 + far**2)
    about_z = chassis.inertia[2, 2] + 2 * wheel.inertia[2, 2] + kingpin.inertia[2, 2]
    slide = chassis.mass * (1 + (yaw * wheelbase / 2) ** 2) + wheel.mass * (1 + far**2) + kingpin.mass * far**2
    torque = (slide + about_z * yaw**2 + spin) * radius**2 * rate
    rows += [
        same("turning radius, wheelbase / tan(steer)", turning, from_centre, 1e-8, "m"),
        same("torque of the drive, with one coordinate", torque, drive.tau[-1, 3], 1e-8, "N m"),
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot(*drive.q[:, :2].T, label="rear wheel")
        axes.plot(*(drive.q[:, :2] + wheelbase * np.stack([np.cos(drive.q[:, 2]), np.sin(drive.q[:, 2])], 1)).T, label="front wheel")
        for state in drive.q[::20]:
            for k, (start, turn) in enumerate(((0.0, 0.0), (wheelbase, steer))):
                at = state[:2] + start * np.array([np.cos(state[2]), np.sin(state[2])])
                along = 0.5 * np.array([np.cos(state[2] + turn), np.sin(state[2] + turn)])
                axes.plot(*np.array([at - along, at + along]).T, "k", linewidth=4)
                axes.plot(*np.array([state[:2], at]).T, "0.5", linewidth=2 * k)
        axes.plot(0, turning, "k+", label=f"centre, {turning:.2f} m from the rear wheel")
        axes.set_aspect("equal")
        tidy(axes, "a car turns about a point on the axis of its rear wheel", "x (m)", "y (m)", beside=True)

    return Outcome(rows, draw, (7.5, 4.5))


def _mobile_manipulator() -> Outcome:
    robot = library.mobile_manipulator(payload=2.0).to(device="casadi")
    bend = np.array([0.4, -1.2, 1.5, -0.5, 0.6, 0.2])
    q = np.r_[robot.neutral()[:7], bend]
    rows = rolling(robot, q, np.r_[4.0, 6.0, 1.0, -0.8, 0.6, 0.5, -0.7, 0.9], np.r_[2.0, -1.0, 1.0, 2, 3, -2, 1, -1])
    t, duration = ca.SX.sym("t"), 2.0
    swing = [float(x) + 0.5 * (1 - ca.cos(np.pi * t)) * s for x, s in zip(bend, (1, 0.6, -0.5, 0, 0, 0), strict=True)]
    arm = robot.active[2:]
    given: dict[str | tuple[str, ...], Any] = {arm: ca.Function("swing", [t], [ca.vertcat(*swing)])}
    moved = simulate(robot, q, duration=duration, step=0.05, prescribed=given)  # the wheels roll freely
    slip = np.abs(np.einsum("tij,tj->ti", robot.closed.jacobian(moved.q), moved.v)).max()
    rows.append(claim("slip of the wheels in 2 s", "0", f"{slip:.0e} m/s", bool(slip < 1e-10)))
    rows.append(only("the arm moves the unbraked base by", f"{np.hypot(*moved.q[-1, :2]):.3f} m"))

    def draw(figure: Any) -> None:
        axes, forces = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        for k, colour in ((0, "0.7"), (20, "C0")):
            bones(axes, robot, moved.q[k], colour)
        tool = robot.pose(moved.q, "arm/ee_link")[:, :3, 3]
        axes.plot(*tool.T, "C3")
        axes.set(title="the arm moves, the wheels roll freely", **AXES)
        axes.set_aspect("equal")
        curves(forces, moved.times, moved.q[:, :2] - moved.q[0, :2], ("x of the base", "y of the base"))
        tidy(forces, "the base recoils", "s", "m")

    return Outcome(rows, draw, (10.0, 4.5))


SNAKE, SPACING, WHEEL = 6, 0.15, 0.03  # links; their length and the radius of their passive wheels (m)


def _snake_robot() -> Robot:
    bar = 0.5, np.array([-SPACING / 2, 0.0, 0.0]), np.diag([1e-4, 1e-3, 1e-3])
    links, joints = [Link("ground"), Link("link0", *bar)], [Joint("planar", "planar", "ground", "link0")]
    for k in range(1, SNAKE):
        links.append(Link(f"link{k}", *bar))
        joints.append(Joint(f"bend{k}", "revolute", f"link{k - 1}", f"link{k}", make_pose(p=[-SPACING, 0.0, 0.0])))
    across, up = np.array([0.0, 1.0, 0.0]), make_pose(p=[0.0, 0.0, WHEEL])
    for k in range(SNAKE):
        links.append(Link(f"wheel{k}", 0.05, inertia=2e-5 * np.eye(3)))
        joints.append(Joint(f"roll{k}", "continuous", f"link{k}", f"wheel{k}", up, across))
    robot = build("snake", links, joints)
    for k in range(SNAKE):
        robot = robot.with_wheel(f"wheel{k}", f"wheel{k}", WHEEL, axis=across)
    return robot.to(device="casadi")


def _snake() -> Outcome:
    snake, t = _snake_robot(), ca.SX.sym("t")
    q, v = ca.SX.sym("q", snake.nq), ca.SX.sym("v", snake.nv)
    bends = slice(3, 2 + SNAKE)
    wave = ca.vertcat(*(0.5 * ca.sin(5 * t + 1.1 * k) for k in range(SNAKE - 1)))
    torque = 4.0 * (wave - q[bends]) + 0.15 * (ca.jacobian(wave, t) - v[bends])
    law = ca.Function("law", [t, q, v], [ca.vertcat(ca.SX.zeros(3), torque, ca.SX.zeros(SNAKE))])
    start = np.r_[np.zeros(3), 0.5 * np.sin(1.1 * np.arange(SNAKE - 1)), np.zeros(SNAKE)]
    creep = simulate(snake, start, duration=5.0, step=0.01, controller=law)
    # The origins of the links move along their own x axes.
    poses = snake.poses(creep.q)[:, :SNAKE]
    rates = np.gradient(poses[..., :2, 3], creep.times, axis=0, edge_order=2)
    side = np.abs(np.einsum("tki,tki->tk", rates, poses[..., :2, 1])[5:-5]).max() / np.abs(rates).max()
    power = np.einsum("ti,ti->t", creep.tau, creep.v)
    work = np.r_[0.0, np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(creep.times))]
    k = 200
    a = snake.closed.forward_dynamics(creep.q[k], creep.v[k], creep.tau[k], coordinates="all")
    ground = snake.closed.loop_forces(creep.q[k], creep.v[k], creep.tau[k], coordinates="all")
    rows = moving_base(
        snake, creep.q[k], creep.v[k], a, snake.closed.loop_loads(creep.q[k], ground), held=PLANAR
    )
    rows += [
        claim("side slip of the path of each axle", "0", f"{side:.0e} of the speed", bool(side < 2e-3)),
        same("kinetic energy, and the work of the bends", work, creep.energy - creep.energy[0], 1e-3, "J"),
        only("way of the head in 5 s", f"{np.hypot(*(creep.q[-1, :2] - creep.q[0, :2])):.2f} m"),
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for k in range(0, 501, 100):
            axes.plot(*poses[k, :, :2, 3].T, "o-", label=f"{creep.times[k]:.0f} s", markersize=3)
        axes.plot(*creep.q[:, :2].T, "0.6", linewidth=1)
        axes.set_aspect("equal")
        tidy(axes, "a snake bends in a wave, its passive wheels roll", "x (m)", "y (m)", beside=True)

    return Outcome(rows, draw, (8.0, 4.0))


# Flight


def _flying_robot(spin_inertia: float = 4e-5) -> Robot:
    """Return a helicopter with four rotors on arms of 0.2 m; its axes are principal, and two moments are equal."""
    body = Link("body", 1.0, inertia=np.diag([0.008, 0.008, 0.015]))
    rotors = [Link(f"rotor{k}", 0.05, inertia=spin_inertia * np.diag([0.5, 0.5, 1.0])) for k in range(4)]
    joints = []
    for k, rotor in enumerate(rotors):
        at = 0.2 * np.array([np.cos(np.pi / 2 * k), np.sin(np.pi / 2 * k), 0.0])
        joints.append(Joint(f"spin{k}", "continuous", "body", rotor.name, make_pose(p=at)))
    return build("four_rotors", [body, *rotors], joints, base="floating").to(device="casadi")


def _flying() -> Outcome:
    robot, J = _flying_robot(), 4e-5
    lift, drag, speed, mass = 1.6e-5, 2.5e-7, np.array([420.0, -380.0, 430.0, -390.0]), 1.2
    rng = np.random.default_rng(6)
    q, w = robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), np.array([1.5, -0.8, 0.6])
    v = np.r_[w, rng.normal(size=3), speed]
    air = np.zeros((5, 6))
    air[1:, 5], air[1:, 2] = lift * speed**2, -drag * np.abs(speed) * speed
    rates = np.array([20.0, -10.0, 5.0, 30.0])
    a, _ = robot.hybrid_dynamics(q, v, np.r_[np.zeros(6), rates], np.zeros(10), forced=["root"], external=air)
    # A gyrostat: I w' + w x (I w + h) + h' = M, in the axes of the body.
    arms = np.array([robot.poses(robot.neutral())[k, :3, 3] for k in range(1, 5)])
    across = 0.05 * sum(r @ r * np.eye(3) - np.outer(r, r) for r in arms)
    inertia = np.diag([0.008, 0.008, 0.015]) + 4 * J * np.diag([0.5, 0.5, 1.0]) + across
    h, moment = np.array([0, 0, J * speed.sum()]), np.cross(arms, air[1:, 3:]).sum(axis=0) + air[1:, :3].sum(axis=0)
    gyro = -np.cross(w, h)
    turned = np.linalg.solve(inertia, moment - [0, 0, J * rates.sum()] - np.cross(w, inertia @ w) + gyro)
    still = np.r_[v[:6], np.zeros(4)]
    slow, _ = robot.hybrid_dynamics(q, still, np.r_[np.zeros(6), rates], np.zeros(10), forced=["root"], external=air)
    moved = robot.accelerations(q, v, a)[0, 3:] - robot.poses(q)[0, :3, :3].T @ robot.gravity
    rows = [
        *moving_base(robot, q, v, a, air),
        same("w' of a gyrostat", turned, a[:3], 1e-10, "rad/s²"),
        same("lift over mass", [0, 0, lift * (speed**2).sum() / mass], moved, 1e-10, "m/s²"),
        same("gyroscopic torque of the rotors, -w x h", gyro, inertia @ (a - slow)[:3], 1e-10, "N m"),
    ]
    # Rotors that all turn one way, in hover: w precesses in the axes of the body at h / I.
    turns, hover = ca.SX.sym("t"), np.sqrt(9.81 * mass / (4 * lift))
    given = {f"spin{k}": ca.Function("spin", [turns], [hover * turns]) for k in range(4)}
    push = np.zeros((5, 6))
    push[1:, 5] = lift * hover**2
    start = np.r_[0.3, 0.0, np.zeros(4), np.full(4, hover)]
    flight = simulate(robot, v0=start, duration=1.0, step=0.01, prescribed=given, external=push)
    rate = 4 * J * hover / inertia[0, 0]
    truth = 0.3 * np.stack([np.cos(rate * flight.times), np.sin(rate * flight.times)], axis=1)
    rows.append(same(f"w of a robot in hover, precessing at h / I = {rate:.2f} rad/s", truth, flight.v[:, :2], 1e-6))

    def draw(figure: Any) -> None:
        picture, axes = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        circle = np.linspace(0, 2 * np.pi, 40)
        for k in (0, 50, 100):
            poses = robot.poses(flight.q[k])
            for pose in poses[1:]:
                ring = pose[:3, :3] @ (0.12 * np.array([np.cos(circle), np.sin(circle), 0 * circle])) + pose[:3, 3:]
                picture.plot(*ring, color=f"C{k // 50}")
            bones(picture, robot, flight.q[k], f"C{k // 50}")
        picture.set(title="rotors that all turn one way: 0, 0.5 and 1 s", **AXES)
        picture.set_aspect("equal")
        curves(axes, flight.times, flight.v[:, :2], ("w_x", "w_y"))
        axes.plot(flight.times[::5], truth[::5], "k.")
        tidy(axes, "gyroscopic torque turns roll into pitch (dots: h / I)", "s", "rad/s", beside=True)

    return Outcome(rows, draw, (10.0, 4.5))


def _spatial_vehicle() -> Outcome:
    robot = library.free_flying_arm().to(device="casadi")
    joints, t = robot.joint_names[1:], ca.SX.sym("t")
    wave = ca.vertcat(*(0.5 * (1 - ca.cos(2 * t + k)) * (-1) ** k for k in range(7)))
    reach = ca.vertcat(*(w * (1 - ca.exp(-(t**2))) for w in ca.vertsplit(wave)))
    swing = ca.Function("reach", [t], [reach, ca.jacobian(reach, t), ca.jacobian(ca.jacobian(reach, t), t)])
    motion = simulate(robot, duration=4.0, step=0.02, prescribed={joints: swing})
    k = 120
    a, _ = robot.hybrid_dynamics(
        motion.q[k], motion.v[k], np.r_[np.zeros(6), swing(motion.times[k])[2].full().ravel()], 0 * motion.v[k], ["root"]
    )
    momentum, centre = robot.momentum(motion.q, motion.v), robot.center_of_mass(motion.q)
    size = robot.mass * np.abs(motion.v[:, 3:6]).max()
    rows = [
        *moving_base(robot, motion.q[k], motion.v[k], a),
        claim("momentum of satellite and arm", "0", f"{np.abs(momentum).max():.0e} N s, N m s",
              bool(np.abs(momentum).max() < 1e-6 * size)),
        claim("centre of mass", "at rest", f"moves by {np.ptp(centre, axis=0).max():.0e} m",
              bool(np.ptp(centre, axis=0).max() < 1e-7)),
    ]  # fmt: skip

    def draw(figure: Any) -> None:
        picture, axes = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        for k, colour in ((0, "0.7"), (60, "C0"), (120, "C1")):
            bones(picture, robot, motion.q[k], colour)
            pose, side = robot.poses(motion.q[k])[0], np.array([[0.4, 0.4, -0.4, -0.4, 0.4], [0.0] * 5, [0.0] * 5])
            for ends in ((-2.3, -0.7), (0.7, 2.3)):
                panel = side + np.outer([0, 1, 0], np.take(ends, [0, 1, 1, 0, 0]))
                picture.plot(*(pose[:3, :3] @ panel + pose[:3, 3:]), color=colour)
        picture.set(title="a satellite and its arm at 0, 1.2 and 2.4 s", **AXES)
        picture.set_aspect("equal")
        curves(axes, motion.times, 2 * np.degrees(motion.q[:, 3:6]), ("about x", "about y", "about z"))
        tidy(axes, "the satellite turns", "s", "degrees")

    return Outcome(rows, draw, (10.0, 4.5))


# Legs

LEGS = {"fl": 0.0, "fr": np.pi, "hl": np.pi, "hr": 0.0}  # phases of a trot


def _trot(robot: Robot) -> Any:
    """Return the torques of springs that pull the legs along a trot, as a function of (t, q, v)."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    goal = []
    for phase in LEGS.values():
        s, c = ca.sin(14 * t + phase), ca.cos(14 * t + phase)
        ramp = 1 - ca.exp(-((3 * t) ** 2))
        lift = ramp * ca.fmax(s, 0)
        goal += [0.0, 0.7 + 0.12 * ramp * c + 0.2 * lift, -1.4 - 0.4 * lift]
    tau = 90 * (ca.vertcat(*goal) - q[7:]) - 2.5 * v[6:]
    return ca.Function("trot", [t, q, v], [ca.vertcat(ca.SX.zeros(6), tau)])


def _walking() -> Outcome:
    robot = library.quadruped()
    for leg in LEGS:
        robot = robot.with_shapes(f"{leg}_foot", [Shape("sphere", (0.02,))])
    robot = robot.to(device="casadi")
    start = robot.neutral()
    start[2], start[7:] = 0.326, np.tile([0.0, 0.7, -1.4], 4)
    ground = Contact(stiffness=5e4, exponent=1.0, slip=0.15)
    walk = simulate(robot, start, duration=2.0, step=5e-4, record=5e-3, controller=_trot(robot), contact=ground)
    touch = np.einsum("tlij,tlj->tli", robot.poses(walk.q)[..., :3, :3], walk.external[..., 3:])  # in world axes
    k = 300
    q, v, tau, loads = walk.q[k], walk.v[k], walk.tau[k], walk.external[k]
    a = robot.forward_dynamics(q, v, tau, external=loads)
    rate = derivative(lambda h: robot.momentum(robot.integrate(q, h * v + h * h / 2 * a), v + h * a)[3:], 1e-4)
    force = touch[:, :, 2].sum(axis=1)
    mean = float(force[100:].mean())
    rows = [
        *moving_base(robot, q, v, a, loads),
        same("rate of momentum, by differences", rate, touch[k].sum(axis=0) + robot.mass * robot.gravity, 1e-7, "N"),
        only("mean ground force over weight", f"{mean / (robot.mass * 9.81):.3f}"),
        only("way of the trunk in 2 s", f"{walk.q[-1, 0]:.2f} m"),
    ]

    def draw(figure: Any) -> None:
        picture, axes = figure.subplots(1, 2)
        for k in range(100, 401, 100):
            bones(picture, robot, walk.q[k], f"C{k // 100}", (0, 2))
            feet = np.array([robot.pose(walk.q[k], f"{leg}_foot")[:3, 3] for leg in LEGS])
            knees = robot.poses(walk.q[k])[3::3, :3, 3]
            for foot, knee in zip(feet, knees, strict=True):
                picture.plot(*np.array([knee, foot])[:, [0, 2]].T, color=f"C{k // 100}", linewidth=2)
        picture.set_aspect("equal")
        tidy(picture, "a quadruped trots: 0.5, 1, 1.5 and 2 s", "x (m)", "z (m)")
        curves(axes, walk.times, touch[:, 3::3, 2], tuple(LEGS))
        tidy(axes, "vertical ground forces", "s", "N")

    return Outcome(rows, draw, (11.0, 3.8))


LEAN = 0.6  # rad, of the trunk at the lowest point of a squat


def _squat(robot: Robot) -> Any:
    """Return (q, v, a) of a squat as a function of time: the feet stay flat where they are."""
    t = ca.SX.sym("t")
    deep = ca.sin(np.pi * t / 2) ** 4  # from 0 to 1 and back in 2 s
    q = ca.SX.zeros(robot.nq)
    for side in ("right", "left"):
        for joint, angle in (("hip_flexion", 0.8 + LEAN), ("knee_flexion", 1.25), ("ankle_flexion", 0.45)):
            q[robot.coordinate_names.index(f"{side}_{joint}")] = angle * deep
    q[robot.coordinate_names.index("tilt")] = LEAN * deep
    foot = robot.function("pose", "right_heel")
    at = foot(q)[:3, 3]
    q[:3] = q[:3] - at + foot(np.zeros(robot.nq))[:3, 3]
    v = ca.jacobian(q, t)
    return ca.Function("squat", [t], [q, v, ca.jacobian(v, t)])


def _humanoid() -> Outcome:
    robot = library.human().to(device="casadi")
    squat, pelvis = _squat(robot), robot.link_names.index("pelvis")
    feet = [robot.link_names.index(f"{side}_foot") for side in ("right", "left")]

    def ground(q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Return the ground forces on the links, half on each foot, and their resultant at the world's origin."""
        pose, wrench = robot.poses(q), robot.joint_wrenches(q, v, a)[pelvis]
        force, moment = pose[pelvis, :3, :3] @ wrench[3:], pose[pelvis, :3, :3] @ wrench[:3]
        moment = moment + np.cross(pose[pelvis, :3, 3], force)
        about = moment - np.cross(pose[feet, :3, 3].mean(axis=0), force)
        loads = np.zeros((len(robot.links), 6))
        for foot in feet:
            R = pose[foot, :3, :3]
            loads[foot] = np.r_[R.T @ about, R.T @ force] / 2
        return loads, np.r_[moment, force]

    q, v, a = (each.full().ravel() for each in squat(0.75))
    loads, whole = ground(q, v, a)

    def momentum(h: float) -> Array:
        there = [each.full().ravel() for each in squat(0.75 + h)]
        p, centre = robot.momentum(*there[:2]), robot.center_of_mass(there[0])
        return np.r_[p[:3] + np.cross(centre, p[3:]), p[3:]]

    weight = robot.mass * robot.gravity
    rate = derivative(momentum, 1e-3) - np.r_[np.cross(robot.center_of_mass(q), weight), weight]
    rows = moving_base(robot, q, v, a, loads, pelvis)
    rows.append(same("rate of momentum less weight, by differences", rate, whole, 1e-7, "N m, N"))

    times = np.linspace(0.0, 2.0, 41)
    states = [[each.full().ravel() for each in squat(t)] for t in times]
    resultants = np.array([ground(*state)[1] for state in states])
    pressure = -resultants[:, 0] / resultants[:, 4]  # z where the resultant has no moment
    heel, toe = (float(robot.pose(q, f"right_{end}")[2, 3]) for end in ("heel", "toe"))
    within = f"{1e3 * pressure.min():.0f} to {1e3 * pressure.max():.0f} mm"
    soles = f"from heel to toe: {1e3 * heel:.0f} to {1e3 * toe:.0f} mm"
    rows.append(claim("centre of pressure", soles, within, bool(heel < pressure.min() and pressure.max() < toe)))

    def draw(figure: Any) -> None:
        picture, axes = figure.subplots(1, 2)
        for k, colour in ((0, "0.7"), (13, "C0"), (20, "C1")):
            bones(picture, robot, states[k][0], colour, (2, 1), pelvis)
        picture.set_aspect("equal")
        tidy(picture, "a humanoid squats: 0, 0.65 and 1 s", "z (m)", "y (m)")
        axes.plot(times, resultants[:, 4] / (robot.mass * 9.81), label="vertical force over weight")
        axes.plot(times, 10 * pressure, label="centre of pressure (dm)")
        axes.fill_between(times, 10 * heel, 10 * toe, color="0.9", label="heel to toe (dm)")
        tidy(axes, "ground forces of both feet", "s")

    return Outcome(rows, draw, (9.0, 4.2))


# Water

WATER, VISCOSITY, DRAG = 1000.0, 1e-6, 1.1  # kg/m^3, m^2/s, and the drag coefficient of a cylinder across the flow
# Anguilla rostrata (Tytell and Lauder 2004): length (m), beat (1/s), wave length, tail amplitude, and growth.
BODY, BEAT, WAVE, TAIL, GROWTH = 0.2, 3.1, 0.6, 0.069, 2.2
RADIUS, PIECES = 0.03 * BODY, 10


def _water(eel: Robot, motion: Sequence[Any], reactive: bool = True) -> Any:
    """Return the wrenches (L, 6) of water on the links of an eel that swims in the x-y plane.

    They are the drag on a cylinder by Taylor (1952) and the reactive force by Lighthill (1971): a slice with the normal
    velocity w has the momentum m w, and the wave carries momentum to the tail.
    """
    size, friction = BODY / PIECES, WATER * np.sqrt(2 * RADIUS * VISCOSITY)
    m = WATER * np.pi * RADIUS**2 if reactive else 0.0
    nodes, weights = np.polynomial.legendre.leggauss(2)
    rows: list[Any] = []
    behind = ca.SX.zeros(2)  # the flux of momentum at the end of the link before
    velocities = ca.vertsplit(eel.function("velocities")(*motion[:2]))
    accelerations = ca.vertsplit(eel.function("accelerations")(*motion))

    def flux(along: Any, across: Any) -> Any:
        return m * ca.vertcat(-(across**2) / 2, along * across)

    for k, (V, A) in enumerate(zip(velocities, accelerations, strict=True)):
        turn, u = V[2], V[3]
        force, moment = flux(u, V[4]) - behind, ca.SX(0)
        for node, weight in zip(nodes, weights, strict=True):
            x, dx = (node + 1) / 2 * size, weight / 2 * size
            w = V[4] + turn * x
            speed = ca.sqrt(w**2 + 1e-10)
            drag = -(DRAG * WATER * RADIUS * speed + 2 * friction * ca.sqrt(speed)) * w
            rate = A[4] + A[2] * x - turn * u  # of w
            density = ca.vertcat(-2.7 * friction * ca.sqrt(speed) * u, drag - m * rate + m * u * turn)
            force, moment = force + dx * density, moment + dx * x * density[1]
        rows.append(ca.horzcat(0, 0, moment, force.T, 0))
        if k + 1 < PIECES:
            c, s = ca.cos(motion[0][7 + k]), ca.sin(motion[0][7 + k])
            end = flux(u, V[4] + turn * size)
            behind = ca.vertcat(c * end[0] + s * end[1], c * end[1] - s * end[0])
    return ca.vertcat(*rows)


def _swimming(reactive: bool, cycles: int = 5, steps: int = 60, start: float = 0.98) -> tuple[Robot, Any, Array]:
    """Return an eel, the wrenches of water (q, v, a), and states (x, y, angle, w, v_x, v_y) of its head.

    The joints follow a wave. The acceleration of the head balances all forces (eq. 86), and is integrated.
    """
    eel, t, X = library.eel(PIECES, BODY / PIECES, RADIUS), ca.SX.sym("t"), ca.SX.sym("X", 6)
    place = np.linspace(0.0, 1.0, PIECES + 1)
    y = ca.vertcat(*(TAIL * np.exp(GROWTH * (x - 1)) * ca.sin(2 * np.pi * (BEAT * t - x / WAVE)) for x in place))
    slope = ca.asin(PIECES * (y[1:] - y[:-1]))
    bend = (1 - ca.exp(-((BEAT * t) ** 2))) * (slope[1:] - slope[:-1])
    rate = ca.jacobian(bend, t)
    q, v, a = ca.SX.sym("q", eel.nq), ca.SX.sym("v", eel.nv), ca.SX.sym("a", eel.nv)
    water = ca.Function("water", [q, v, a], [_water(eel, (q, v, a), reactive)])
    free = [2, 3, 4]
    left = eel.function("inverse_dynamics", external=True)(q, v, a, water(q, v, a))[free]
    state = [
        ca.vertcat(X[:2], 0, 0, 0, ca.sin(X[2] / 2), ca.cos(X[2] / 2), bend),
        ca.vertcat(0, 0, X[3:], 0, rate),
        ca.vertcat(ca.SX.zeros(6), ca.jacobian(rate, t)),
    ]
    wrench, inertia = ca.substitute([left, ca.jacobian(left, a[free])], [q, v, a], state)
    c, s = ca.cos(X[2]), ca.sin(X[2])
    moved = ca.vertcat(c * X[4] - s * X[5], s * X[4] + c * X[5], X[3], -ca.solve(inertia, wrench))
    slopes, h = ca.Function("slopes", [t, X], [ca.cse(moved)]), 1 / BEAT / steps
    T, S = ca.MX.sym("t"), ca.MX.sym("S", 6)
    k1 = slopes(T, S)
    k2 = slopes(T + h / 2, S + h / 2 * k1)
    k3 = slopes(T + h / 2, S + h / 2 * k2)
    step = ca.Function("step", [S, T], [S + h / 6 * (k1 + 2 * k2 + 2 * k3 + slopes(T + h, S + h * k3))])
    count = cycles * steps
    states = step.mapaccum(count)(np.r_[np.zeros(4), -start * BODY, 0.0], h * np.arange(count)).full().T
    a_full = state[2] + ca.vertcat(0, 0, moved[3:], ca.SX.zeros(PIECES))
    return eel, (water, ca.Function("full", [t, X], [*state[:2], a_full])), states


def _eel_in_water() -> Outcome:
    eel, (water, full), states = _swimming(True)
    steps, cycles = 60, len(states) // 60
    ways = [np.hypot(*(states[-1, :2] - states[-1 - k * steps, :2])) for k in (1, 2)]
    speed, before = ways[0] * BEAT / BODY, (ways[1] - ways[0]) * BEAT / BODY
    resistive = _swimming(False, start=0.46)[2]
    alone = np.hypot(*(resistive[-1, :2] - resistive[-1 - steps, :2])) * BEAT / BODY
    k = 4 * steps + 17
    q, v, a = (each.full().ravel() for each in full(k / steps / BEAT, states[k - 1]))
    loads = water(q, v, a).full()
    rows = [
        *moving_base(eel.to(device="casadi"), q, v, a, loads),
        claim("speed, Anguilla rostrata (Tytell 2004)", "0.5 to 2 lengths/s", f"{speed:.2f} lengths/s", 0.5 < speed < 2),
        only("the same one beat before", f"{before:.2f} lengths/s"),
        only("speed over speed of the wave", f"{speed / (WAVE * BEAT):.2f}"),
        only("speed by Taylor's drag alone", f"{alone:.2f} lengths/s"),
    ]

    def draw(figure: Any) -> None:
        body, axes = figure.subplots(1, 2)
        for k in range(steps, cycles * steps, steps + steps // 4):
            pose = eel.to(device="casadi").poses(full(k / steps / BEAT, states[k - 1])[0].full().ravel())
            points = np.vstack([pose[:, :2, 3], (pose[-1] @ [BODY / PIECES, 0, 0, 1])[:2]])
            body.plot(*points.T, label=f"{k / steps:.2f} beats")
        body.set_aspect("equal")
        tidy(body, "an eel swims to the left", "x (m)", "y (m)")
        times = np.arange(1, len(states) + 1) / steps
        axes.plot(times, -np.gradient(states[:, 0]) * steps * BEAT / BODY, label="Lighthill and Taylor")
        axes.plot(times, -np.gradient(resistive[:, 0]) * steps * BEAT / BODY, label="Taylor")
        tidy(axes, "speed of the head", "beats", "lengths/s")

    return Outcome(rows, draw, (11.0, 3.8))


# A continuous body


def _ad(x: Array) -> Array:
    """Return the matrix of the bracket of twists (w, v)."""
    return np.block([[khalil.hat(x[:3]), np.zeros((3, 3))], [khalil.hat(x[3:]), khalil.hat(x[:3])]])


def _cosserat(
    strain: Any, body: Array, head: Array, twist: Array, length: float, steps: int = 200
) -> tuple[Array, Array, Array]:
    """Return the acceleration of the head, and the wrench in the sections (steps + 1, 6) at s (steps + 1,).

    A Cosserat rod of inertia ``body`` per length: V' = x' - ad_x V for the strain x, and L' = ad_x^T L + M V' - ad_V^T M
    V for the wrench (Boyer, Porez and Khalil 2006). It is integrated from the head for zero and for six unit
    accelerations of the head. The tail carries no wrench, which determines the acceleration.
    """
    tries = np.vstack([np.zeros(6), np.eye(6)]).T
    V, A = twist, tries
    L = head @ A - (_ad(V).T @ head @ V)[:, None]

    def slopes(s: float, V: Array, A: Array, L: Array) -> tuple[Array, Array, Array]:
        x, rate, second = strain(s)
        wrench = body @ A - (_ad(V).T @ body @ V)[:, None]
        bent = (second - _ad(rate) @ V)[:, None]
        return rate - _ad(x) @ V, bent - _ad(x) @ A, _ad(x).T @ L + wrench

    h, path = length / steps, [L]
    for k in range(steps):
        state, total, before = (V, A, L), [np.zeros_like(y) for y in (V, A, L)], None
        for part, weight in ((0.0, 1), (0.5, 2), (0.5, 2), (1.0, 1)):
            at = state if before is None else tuple(y + part * h * dy for y, dy in zip(state, before, strict=True))
            before = slopes(h * (k + part), *at)
            total = [y + h / 6 * weight * dy for y, dy in zip(total, before, strict=True)]
        V, A, L = (y + dy for y, dy in zip(state, total, strict=True))
        path.append(L)
    unit = L[:, 1:] - L[:, :1]
    acceleration = np.linalg.solve(unit, -L[:, 0])
    return acceleration, np.array(path) @ np.r_[1 - acceleration.sum(), acceleration], np.linspace(0, length, steps + 1)


def _continuous_eel() -> Outcome:
    length, radius, density, counts = 1.2, 0.03, 1000.0, (4, 2, 1)
    eel = library.continuous_eel(length, radius, density, counts, sections=12).to(device="casadi")
    rng = np.random.default_rng(8)
    q = eel.integrate(eel.neutral(), np.r_[np.zeros(6), 0.8 * rng.normal(size=7)])
    v, bend = 1.5 * rng.normal(size=13), 4 * rng.normal(size=7)
    a, tau = eel.hybrid_dynamics(q, v, np.r_[np.zeros(6), bend], np.zeros(13), forced=["root"])
    axes = np.zeros((7, 3))
    axes[range(7), [2, 2, 2, 2, 1, 1, 0]] = 1.0  # bending along y and z, torsion
    orders = [k for count in counts for k in range(count)]

    def shapes(s: float) -> Array:
        """Return the curvature (3, 7) of each mode."""
        return np.array([np.polynomial.Legendre.basis(k)(2 * s / length - 1) / length for k in orders]) * axes.T

    def strain(s: float) -> list[Array]:
        B = shapes(s)
        return [np.r_[B @ q[7:], 1, 0, 0], np.r_[B @ v[6:], 0, 0, 0], np.r_[B @ bend, 0, 0, 0]]

    section = density * np.pi * radius**2
    body = np.diag(section * np.r_[radius**2 * np.array([0.5, 0.25, 0.25]), 1, 1, 1])
    nose = eel.links[0]
    J = about_origin(nose.mass, np.asarray(nose.com), np.asarray(nose.inertia))
    MS = khalil.hat(nose.mass * np.asarray(nose.com))
    head = np.block([[J, MS], [-MS, nose.mass * np.eye(3)]])
    acceleration, wrench, s = _cosserat(strain, body, head, v[:6], length)
    B = np.array([shapes(x) for x in s])
    weights = np.ones(len(s))
    weights[1:-1:2], weights[2:-1:2] = 4, 2  # Simpson's rule
    muscle = -np.einsum("s,sik,si->k", weights * (s[1] - s[0]) / 3, B, wrench[:, :3])
    EI = 1e5 * np.pi * radius**4 / 4  # and GJ is EI / 1.5
    stiff = np.diag([EI * (1 if k < 6 else 1 / 1.5) / (length * (2 * order + 1)) for k, order in enumerate(orders)])
    muscle += stiff @ (q[7:] + 0.02 * v[6:])  # of the skin: the damping time is 0.02 s
    rows = [
        same("acceleration of the head", acceleration, a[:6], 1e-6, "rad/s², m/s²"),
        same("torques of the muscles", muscle, tau[6:], 1e-6, "N m"),
    ]

    def draw(figure: Any) -> None:
        picture, axes = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        picture.plot(*eel.poses(q)[:, :3, 3].T, "o-", markersize=3)
        picture.set(title="an eel as one rod, with its Gauss points", **AXES)
        picture.set_aspect("equal")
        curves(axes, s, wrench[:, :3], ("torsion", "about y", "about z"))
        tidy(axes, "moment in the sections (Cosserat equations)", "m", "N m")

    return Outcome(rows, draw, (10.0, 4.2))


# Section 8, and parallel robots with fewer degrees of freedom


def _flexible(hub: float = 0.02, length: float = 1.0, mass: float = 1.0, bending: float = 20.0) -> Outcome:
    """Compare a beam on a hub with Euler and Bernoulli, and its inverse model with eq. 71 (Boyer and Khalil 1998)."""
    ground = build(
        "blade", [Link("ground"), Link("hub", 1.0, inertia=hub * np.eye(3))],
        [Joint("hinge", "revolute", "ground", "hub")], gravity=(0, 0, 0),
    )  # fmt: skip
    shapes = flexible_links.beam(length=length, mass=mass, bending=bending, modes=(8, 0))
    robot = flexible_links.with_beam(ground, "hub", shapes).to(device="casadi")
    n = robot.nv
    M = robot.mass_matrix(np.zeros(n))
    K = np.array([robot.spring_force(unit) for unit in 1e-3 * np.eye(n)]).T / 1e-3
    squares = np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real)[1:4]  # the first is the turn of the whole

    def free_end(x: float) -> float:
        """Return the determinant for w = A sin + B (cos - cosh) + C sinh of x s / length."""
        s, c, S, C = np.sin(x), np.cos(x), np.sinh(x), np.cosh(x)
        spin = hub / (mass * length**2) * x**3  # moment at the hub: w'' = -spin w'
        rows = [[spin, -2, spin], [-s, -c - C, S], [-c, s - S, C]]
        return float(np.linalg.det(np.array(rows)) / C)

    starts = np.linspace(0.5, 11.5, 200)
    values = [free_end(x) for x in starts]
    places = [k for k in range(199) if values[k] * values[k + 1] < 0][:3]
    roots = np.array([brentq(free_end, starts[k], starts[k + 1], xtol=1e-14) for k in places])
    q, v = 0.02 * np.random.default_rng(9).normal(size=(2, n))
    a, tau = robot.hybrid_dynamics(q, v, np.r_[3.0, np.zeros(n - 1)], np.zeros(n), forced=robot.coordinate_names[1:])
    A, H = robot.mass_matrix(q), robot.bias_force(q, v)
    bent = -np.linalg.solve(A[1:, 1:], A[1:, 0] * 3.0 + H[1:])  # H holds the elastic forces
    rows = [
        same("frequencies of beam and hub, Euler-Bernoulli", roots**2 * np.sqrt(bending / (mass * length**3)),
             np.sqrt(squares), 1e-4, "rad/s"),
        same("modal accelerations, eq. 71", bent, a[1:], 1e-10),
        same("torque of the rigid joint, eq. 68", A[0] @ np.r_[3.0, bent] + H[0], tau[0], 1e-10, "N m"),
    ]  # fmt: skip
    # The same motion of an arm with modes, and of an arm of rigid segments.
    tips, times = [], np.zeros(0)
    for arm, end in ((library.flexible_arm((3, 0)), "beam2/tip"), (library.segmented_arm(8), "tip")):
        light = arm.with_gravity((0, 0, 0)).to(device="casadi")
        drive = np.zeros(light.nv)
        drive[light.coordinate_names.index("joint1")] = 2.0
        moved = simulate(light, duration=0.2, step=4e-3, controller=drive, method="implicit")
        tips.append(light.pose(moved.q, end)[:, :2, 3])
        times = moved.times
    rows.append(same("tip of the library's arm as rigid segments", tips[1][:, 1], tips[0][:, 1], 1e-2, "m"))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for tip, style, name in zip(tips, ("-", "k."), ("modes", "rigid segments"), strict=True):
            axes.plot(times, 1e3 * tip[:, 1], style, label=name)
        tidy(axes, "tip of an arm with two flexible links, pulled by 2 N m", "s", "y (mm)")

    return Outcome(rows, draw, (6.5, 4.0))


def _hybrid() -> Outcome:
    """Compare two stacked Gough-Stewart platforms leg by leg with one tree of twelve loops (Ibrahim and Khalil 2010)."""
    small = {"base_radius": 0.35, "platform_radius": 0.25, "height": 0.75, "platform_mass": 5.0}
    lower, upper = library.gough_stewart(), library.gough_stewart(**small)
    module = upper.as_robot()
    tree = lower.as_robot().attach(module, at="platform", prefix="upper/").to(device="casadi")
    lower, upper = lower.to(device="casadi"), upper.to(device="casadi")
    rng = np.random.default_rng(10)
    poses, twists, rates, legs = [], [], [], []
    for robot in (lower, upper):
        poses.append(robot.carriage.integrate(robot.home, 0.08 * rng.normal(size=6)))
        twists.append(0.4 * rng.normal(size=6))
        rates.append(rng.normal(size=6))
        legs.append((robot.inverse_kinematics(poses[-1]), *robot.leg_accelerations(poses[-1], twists[-1], rates[-1])))
    # The upper module on the moving lower platform: eqs. 59 to 66, with the recursion of section 7 for its legs.
    root = Joint("root", "free", "world", module.base.name)
    carried = build("carried", [Link("world"), module.base, *module.links], [root, *module.joints], gravity=lower.gravity)
    q, v, a = (
        np.r_[poses[0], poses[1], legs[1][0]], np.r_[twists[0], twists[1], legs[1][1]],
        np.r_[rates[0], rates[1], legs[1][2]],
    )  # fmt: skip
    forces = carried.to(device="casadi").inverse_dynamics(q, v, a)
    G = upper.leg_velocities(poses[1], np.eye(6)).T
    Gamma_2 = upper.jacobian(poses[1]).T @ (forces[6:12] + G.T @ forces[12:])
    Gamma_1 = lower.inverse_dynamics(poses[0], twists[0], rates[0], external=-forces[:6])
    # One tree with loops.
    whole = np.r_[poses[0], legs[0][0], poses[1], legs[1][0]]
    rate = np.r_[twists[0], legs[0][1], twists[1], legs[1][1]]
    active = [tree.coordinate_names.index(name) for name in tree.active]
    second = np.r_[rates[0], legs[0][2], rates[1], legs[1][2]]
    loops = tree.closed.inverse_dynamics(whole, rate[active], second[active])
    rows = [
        same("forces of the lower legs, with loops", loops[:6], Gamma_1, 1e-10, "N"),
        same("forces of the upper legs, with loops", loops[6:], Gamma_2, 1e-10, "N"),
    ]

    def draw(figure: Any) -> None:
        axes, at = figure.add_subplot(projection="3d"), np.eye(4)
        for robot, pose in zip((lower, upper), poses, strict=True):
            top = np.asarray(robot.carriage.pose(pose, "platform"))
            feet = np.array([(at @ leg.base)[:3, 3] for leg in robot.legs])
            ends = np.array([(at @ top @ np.asarray(leg.at))[:3, 3] for leg in robot.legs])
            for ring, width in ((feet, 1), (ends, 3)):
                axes.plot(*ring[[0, 1, 2, 3, 4, 5, 0]].T, color="0.4", linewidth=width)
            for k in range(6):
                axes.plot(*np.array([feet[k], ends[k]]).T, color=f"C{k}")
            at = at @ top
        axes.set(title="two Gough-Stewart platforms in series", **AXES)
        axes.set_aspect("equal")

    return Outcome(rows, draw, (5.5, 5.5))


def _delta() -> Outcome:
    """Compare a Delta robot with its Lagrangian: rods of uniform mass between elbows and platform, without the tree."""
    R, r, arm, rods, payload = 0.2, 0.05, 0.35, 0.8, 0.5
    robot = library.delta(R, r, arm, rods, payload=payload).to(device="casadi")
    p, u, w = ca.SX.sym("p", 3), ca.SX.sym("u", 3), ca.SX.sym("w", 3)
    angles, elbows = [], []
    for k in range(3):
        c, s = np.cos(2 * np.pi / 3 * k), np.sin(2 * np.pi / 3 * k)
        x, y, z = c * p[0] + s * p[1] - (R - r), c * p[1] - s * p[0], p[2]
        # The elbow (arm cos, 0, -arm sin) is a rod away from (x, y, z).
        half = (x**2 + y**2 + z**2 + arm**2 - rods**2) / (2 * arm)  # x cos - z sin
        angle = ca.acos(half / ca.sqrt(x**2 + z**2)) + ca.atan2(-z, x)
        angles.append(angle - 2 * ca.acos(half / ca.sqrt(x**2 + z**2)))
        out = R + arm * ca.cos(angles[-1])
        elbows.append(ca.vertcat(c * out, s * out, -arm * ca.sin(angles[-1])))
    q = ca.vertcat(*angles)
    J = ca.jacobian(q, p)
    turn, inertia = J @ u, 0.02 + 0.9 * (0.4 * arm) ** 2 + 0.9 * (3 * 0.025**2 + arm**2) / 12  # with the rotor
    kinetic = (0.2 + payload) * ca.dot(u, u) / 2 + inertia * ca.dot(turn, turn) / 2
    potential = 9.81 * (0.2 + payload) * p[2]
    for k, elbow in enumerate(elbows):
        e = ca.jacobian(elbow, p) @ u
        kinetic += 2 * 0.12 / 6 * (ca.dot(e, e) + ca.dot(e, u) + ca.dot(u, u))
        potential += 9.81 * (2 * 0.12 * (elbow[2] + p[2]) / 2 - 0.9 * 0.4 * arm * ca.sin(q[k]))
    slope = ca.gradient(kinetic, u)
    force = ca.jacobian(slope, p) @ u + ca.jacobian(slope, u) @ w - ca.gradient(kinetic - potential, p)
    model = ca.Function("delta", [p, u, w], [q, ca.solve(J.T, force), ca.inv(J)])
    state = np.array([0.08, -0.05, -0.75]), np.array([0.6, -0.4, 0.5]), np.array([3.0, 5.0, -2.0])
    shoulders, Gamma, J_p = (each.full() for each in model(*state))
    rows = [
        same("angles of the drives, closed form", shoulders.ravel(), robot.inverse_kinematics(state[0])[::3], 1e-10),
        same("J_p, eq. 60", J_p, robot.jacobian(state[0]), 1e-10),
        same("Γ of the Lagrangian, and of eq. 66 in three coordinates", Gamma.ravel(), robot.inverse_dynamics(*state),
             1e-10, "N m"),
    ]  # fmt: skip

    def draw(figure: Any) -> None:
        picture, axes = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        t = np.linspace(0, 0.5, 101)
        c, s = 0.15 * np.cos(4 * np.pi * t), 0.15 * np.sin(4 * np.pi * t)
        rate = 4 * np.pi
        path = np.stack([c, s, -0.75 + 0 * t], 1), rate * np.stack([-s, c, 0 * t], 1), -(rate**2) * np.stack([c, s, 0 * t], 1)
        joints = ca.Function("elbows", [p], elbows)
        for k, elbow in enumerate(joints(path[0][10])):
            direction = np.array([np.cos(2 * np.pi / 3 * k), np.sin(2 * np.pi / 3 * k), 0.0])
            chain = np.array([R * direction, elbow.full().ravel(), path[0][10] + r * direction, path[0][10]])
            picture.plot(*chain.T, "o-", markersize=3)
        picture.plot(*path[0].T, "0.5")
        picture.set(title="a Delta robot: three translations", **AXES)
        picture.set_aspect("equal")
        curves(axes, t, robot.inverse_dynamics(*path), ("leg 1", "leg 2", "leg 3"))
        tidy(axes, "torques on a circle of 0.15 m", "s", "N m")

    return Outcome(rows, draw, (10.0, 4.5))


# Base parameters and customised code


def _serial(sigma: Sequence[int], tilt: float, general: bool = True) -> tuple[khalil.Robot, Robot]:
    """Return an arm in both descriptions; ``tilt`` is the angle from the first axis to the vertical."""
    rng, n = np.random.default_rng(11), len(sigma)
    geometry = rng.uniform(0.3, 1.2, (3, n)) * (1 if general else np.array([[np.pi / 2], [1], [0]]) / 0.7)
    geometry[:, 0] = 0.0
    bodies = [(rng.uniform(1, 3), rng.uniform(-0.2, 0.2, 3)) for _ in range(n)]
    inertia = 0.05 * np.eye(3) + 0.01
    gravity = 9.81 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)])
    kinds = ["prismatic" if s else "revolute" for s in sigma]
    alpha, d, r = geometry
    links = [
        MDHLink(j - 1, alpha=alpha[j], d=d[j], r=r[j], joint=kinds[j], mass=m, com=c, inertia=inertia)
        for j, (m, c) in enumerate(bodies)
    ]
    zero = np.zeros(n)
    J = np.array([about_origin(m, c, inertia) for m, c in bodies])
    M, MS = np.array([m for m, _ in bodies]), np.array([m * c for m, c in bodies])
    data = khalil.Robot(np.arange(n) - 1, np.array(sigma), zero, zero, alpha, d, zero, r, M, MS, J, zero, zero, zero, gravity)
    return data, from_mdh(links, gravity=gravity).to(device="casadi")


TEN = ("*.m", "*.m?", "*.J*")  # the inertial parameters of a link


def _with(data: khalil.Robot, ten: Array) -> khalil.Robot:
    """Return the robot with other inertial parameters (n, 10)."""
    J = np.array([[[x, xy, xz], [xy, y, yz], [xz, yz, z]] for x, xy, xz, y, yz, z in ten[:, 4:]])
    return data._replace(M=ten[:, 0], MS=ten[:, 1:4], J=J)


def _of_parameters(data: khalil.Robot, motions: int = 15) -> Array:
    """Return the matrix (motions n, 10 n) from parameters to forces, column by column from eq. 31."""
    n = len(data.M)
    states = np.random.default_rng(14).normal(size=(motions, 3, n))
    units = [_with(data, unit.reshape(n, 10)) for unit in np.eye(10 * n)]
    return np.array([np.ravel([khalil.inverse_dynamics(unit, *state).Gamma for state in states]) for unit in units]).T


def _base_parameters() -> Outcome:
    rows = list[Row]()
    for sigma, tilt, words in (
        ((0,) * 6, 0.0, "6 revolute joints, the first vertical"),
        ((0,) * 6, 0.5, "6 revolute joints, the first not vertical"),
    ):
        _, robot = _serial(sigma, tilt)
        expected = 7 * len(sigma) - 4 - 2 * (tilt == 0.0)  # Khalil and Dombre 2002
        rows.append(number(f"base parameters, {words}", str(expected), len(robot.inertial.base(among=TEN))))
    for sigma, words in (((0, 1, 0, 0), "R P R R"), ((1, 0, 0, 1), "P R R P")):
        data, robot = _serial(sigma, 0.5)
        rank = np.linalg.matrix_rank(_of_parameters(data), tol=1e-8)
        rows.append(number(f"base parameters, {words} (rank of eq. 31)", str(rank), len(robot.inertial.base(among=TEN))))
    data, robot = _serial((0, 1, 0, 0, 1, 0), 0.0)
    base, values = robot.inertial.base(among=TEN), np.zeros(len(robot.inertial.values))
    values[base.columns] = base.values
    ten = values[: 10 * len(data.M)].reshape(-1, 10)
    q, v, a = np.random.default_rng(12).normal(size=(3, len(data.M)))
    Gamma = khalil.inverse_dynamics(_with(data, ten), q, v, a).Gamma
    rows.append(same("Γ, eq. 31 with base parameters alone", Gamma, robot.inverse_dynamics(q, v, a), 1e-10, "N m, N"))
    rows.append(only("parameters that are not zero", f"{np.count_nonzero(ten)} of {ten.size}"))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.imshow(ten.T != 0, cmap="Blues", vmin=0, vmax=1.5, aspect="auto")
        axes.set_yticks(range(10), ("M", "MX", "MY", "MZ", "XX", "XY", "XZ", "YY", "YZ", "ZZ"))
        axes.set_xticks(range(6), [f"link {j + 1}" for j in range(6)])
        axes.set_title("base parameters of an arm with joints R P R R P R", fontsize=10)

    return Outcome(rows, draw, (5.5, 4.0))


def _plain(robot: Robot) -> int:
    """Return the additions and multiplications of inverse dynamics with all ten parameters of each link."""
    q, v, a = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv), ca.SX.sym("a", robot.nv)
    tau = ca.cse(ALGORITHMS["inverse_dynamics"].rule(Tree.of(robot), q, v, a))
    return count_operations(ca.Function("plain", [q, v, a], [tau])).arithmetic


def _customised() -> Outcome:
    sizes = np.arange(2, 11)
    published = (150 + 131) * sizes - 96  # multiplications and additions of Luh, Walker and Paul 1980 (Hollerbach 1980)
    kinds: dict[str, tuple[list[int], list[int]]] = {}
    worst = 0.0
    for name, general in (("general arm", True), ("arm with right angles", False)):
        plain, lean = list[int](), list[int]()
        for n in sizes:
            data, robot = _serial((0,) * int(n), 0.0, general)
            plain.append(_plain(robot))
            lean.append(robot.operation_count("inverse_dynamics").arithmetic)
        kinds[name] = plain, lean
        state = np.random.default_rng(13).normal(size=(3, len(data.M)))
        Gamma = khalil.inverse_dynamics(data, *state).Gamma
        ours = robot.function("inverse_dynamics")(*state).full().ravel()
        worst = max(worst, float(np.abs(Gamma - ours).max() / np.abs(Gamma).max()))
    rows = [claim("code of 10 joints against eq. 31", "equal", f"to {worst:.0e}", worst < 1e-10)]
    for name, (plain, lean) in kinds.items():
        slope = np.diff(lean)[2:]
        words = f"{slope[0]} for each joint" if np.ptp(slope) == 0 else f"{slope.min()} to {slope.max()} for each joint"
        rows.append(claim(f"operations, {name}", "linear in the number of joints", words, bool(np.ptp(slope) == 0)))
        rows.append(claim(f"base parameters save operations, {name}, 6 joints", f"fewer than {plain[4]}", str(lean[4]),
                          lean[4] < plain[4]))  # fmt: skip
    special = kinds["arm with right angles"][1][4]
    rows.append(
        claim("customised code, 6 joints", f"fewer than {published[4]} (Luh et al. 1980)", str(special), special < published[4])
    )

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        axes.plot(sizes, published, "k--", label="Luh, Walker and Paul 1980")
        for k, (name, (plain, lean)) in enumerate(kinds.items()):
            axes.plot(sizes, plain, f"C{k}:", label=f"{name}, all parameters")
            axes.plot(sizes, lean, f"C{k}-", label=f"{name}, base parameters")
        tidy(axes, "additions and multiplications of inverse dynamics", "joints")

    return Outcome(rows, draw, (6.5, 4.0))


A = Kind.ALGORITHM
ITEMS = [
    Item("khalil/car", "a car", A, "section 7", _car, seconds=1),
    Item("khalil/mobile-manipulator", "a mobile manipulator", A, "section 7", _mobile_manipulator, seconds=2),
    Item("khalil/snake", "a snake on passive wheels", A, "section 7", _snake, seconds=2.5),
    Item("khalil/flying-robot", "a flying robot with four rotors", A, "section 7", _flying),
    Item("khalil/spatial-vehicle", "a satellite with an arm", A, "section 7", _spatial_vehicle, seconds=0.6),
    Item("khalil/walking-robot", "a walking robot", A, "section 7", _walking, seconds=2.5),
    Item("khalil/humanoid", "a humanoid", A, "section 7", _humanoid, seconds=1.3),
    Item("khalil/eel-in-water", "an eel in water", A, "section 7", _eel_in_water, seconds=0.6),
    Item("khalil/continuous-eel", "a continuous eel", A, "section 8", _continuous_eel, seconds=2),
    Item("khalil/flexible-links", "flexible links", A, "section 8", _flexible, seconds=2.5),
    Item("khalil/hybrid", "parallel modules in series", A, "section 8", _hybrid, seconds=4.5),
    Item("khalil/delta", "reduced mobility: a Delta robot", A, "section 5", _delta, seconds=2.5),
    Item("khalil/base-parameters", "base inertial parameters", A, "sections 2 and 3.2", _base_parameters, seconds=1.5),
    Item("khalil/customised-code", "customised symbolic code", A, "section 3.2", _customised, seconds=1),
]
