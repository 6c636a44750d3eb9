"""Khalil 2010, sections 7 and 8: the systems that the paper names.

"The difference between all of these systems will be in the calculation of the interaction forces with the environment":
each item computes these forces, compares the library with equations 89 to 100, and compares a motion with a solution
that uses neither.
"""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.mechanism import Joint, Link
from torsor.reproduce.documents.drawing import AXES, curves, tidy
from torsor.reproduce.equations import khalil
from torsor.reproduce.errata.erratum import derivative
from torsor.reproduce.item import Item, Kind, Outcome, Row, claim, only, same
from torsor.reproduce.samples import about_origin
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.simulation import simulate
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
        axes.plot(*(drive.q[:, :2] + wheelbase * np.stack([np.cos(drive.q[:, 2]), np.sin(drive.q[:, 2])], 1)).T)
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
        axes.set(title="the arm moves, the wheels roll freely", box_aspect=(1, 1, 1), **AXES)
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
    wave = ca.vertcat(*(0.5 * ca.sin(5 * t - 1.1 * k) for k in range(SNAKE - 1)))
    torque = 4.0 * (wave - q[bends]) + 0.15 * (ca.jacobian(wave, t) - v[bends])
    law = ca.Function("law", [t, q, v], [ca.vertcat(ca.SX.zeros(3), torque, ca.SX.zeros(SNAKE))])
    start = np.r_[np.zeros(3), 0.5 * np.sin(-1.1 * np.arange(SNAKE - 1)), np.zeros(SNAKE)]
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
        same("kinetic energy, and the work of the bends", work, creep.energy - creep.energy[0], 1e-2, "J"),
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
        picture.set(title="rotors that all turn one way: 0, 0.5 and 1 s", box_aspect=(1, 1, 0.6), **AXES)
        curves(axes, flight.times, flight.v[:, :2], ("w_x", "w_y"))
        axes.plot(flight.times[::5], truth[::5], "k.", label="h / I")
        tidy(axes, "their gyroscopic torque turns a roll into a pitch", "s", "rad/s", beside=True)

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
        picture.set(title="arm of a satellite at 0, 1.2 and 2.4 s", box_aspect=(1, 1, 1), **AXES)
        curves(axes, motion.times, 2 * np.degrees(motion.q[:, 3:6]), ("about x", "about y", "about z"))
        tidy(axes, "the satellite turns", "s", "degrees")

    return Outcome(rows, draw, (10.0, 4.5))
