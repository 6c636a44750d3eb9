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
from torsor.mechanism import Joint, Link, Shape
from torsor.reproduce.documents.drawing import curves, space, tidy
from torsor.reproduce.equations import khalil
from torsor.reproduce.errata.erratum import derivative
from torsor.reproduce.item import Compute, Outcome, Row, claim, only, same, zero
from torsor.reproduce.samples import about_origin
from torsor.robot.load import build
from torsor.robot.robot import Robot
from torsor.simulation import Contact, simulate
from torsor.spatial import axis_frame, make_pose

PLANAR = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])  # the reactions (moment, force) of a planar joint


def in_six_parameters(robot: Robot, root: int) -> tuple[khalil.Robot, khalil.Base, list[Array]]:
    """Return the links after ``root`` as a tree, with the root as its base, and the rotations from links to frames.

    The root -1 is the base of the robot.
    """
    turns = [np.eye(3), *(np.asarray(axis_frame(joint.axis)) for joint in robot.joints[root + 1 :])]
    rows, bodies = [], []
    for k, joint in enumerate(robot.joints[root + 1 :], start=1):
        before = turns[robot.parents[root + k] - root]
        T = joint.placement
        rows.append(khalil.six_parameters(before.T @ T[:3, :3] @ turns[k], before.T @ T[:3, 3]))
    for link, R in zip([robot.base, *robot.links][root + 1 :], turns, strict=True):
        com, inertia = R.T @ np.asarray(link.com), R.T @ np.asarray(link.inertia) @ R
        bodies.append((link.mass, link.mass * com, about_origin(link.mass, com, inertia)))
    M, MS, J = (np.array(each) for each in zip(*bodies, strict=True))
    drives = [(joint.rotor_inertia, joint.coulomb, joint.viscous) for joint in robot.joints[root + 1 :]]
    Ia, Fs, Fv = np.array(drives, dtype=float).reshape(-1, 3).T
    sigma = np.array([joint.type == "prismatic" for joint in robot.joints[root + 1 :]], dtype=int)
    parents = np.array(robot.parents[root + 1 :]) - root - 1
    gamma, b, alpha, d, theta, r = np.array(rows).T
    tree = khalil.Robot(parents, sigma, gamma, b, alpha, d, theta, r, M[1:], MS[1:], J[1:], Ia, Fs, Fv, np.zeros(3))
    return tree, khalil.Base(M[0], MS[0], J[0], np.zeros(3), np.zeros(6)), turns


def moving_base(
    robot: Robot, q: Array, v: Array, a: Array, external: Array | None = None, root: int = 0, held: Array | None = None
) -> list[Row]:
    """Return rows that compare a motion of the library with equations 89 to 100.

    ``external`` (L, 6) contains the interaction forces on the links. ``held`` selects the reactions of the root's joint
    that also act on the base. The other reactions must be in equilibrium.
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
    """Return rows for a wheeled robot: eqs. 97 and 100 with the ground forces of its wheels, and the drive power."""
    v, a = robot.closed.accelerations(q, v_active, a_active)
    ground = robot.closed.loop_loads(q, robot.closed.loop_forces(q, v_active, a_active))
    drives = robot.closed.inverse_dynamics(q, v_active, a_active)

    def energy(t: float) -> Array:
        there, rate = robot.integrate(q, t * v + t * t / 2 * a), v + t * a
        return np.asarray(robot.kinetic_energy(there, rate) + robot.potential_energy(there))

    rows = moving_base(robot, q, v, a, ground, held=PLANAR)
    power = drives @ v_active
    return [*rows, same("rate of change of energy (finite differences)", derivative(energy, 1e-3), power, 1e-8, "W")]


def bones(axes: Any, robot: Robot, q: Array, colour: Any, plane: Sequence[int] = (0, 1, 2), first: int = 0) -> None:
    """Draw lines between the origins of the links, starting at the link ``first``."""
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
    given: dict[str | tuple[str, ...], Any] = {"rear": ca.Function("rear", [t], [rate * t**2 / 2]), "steer": steer}
    drive = simulate(car, q, duration=duration, step=0.025, record=0.05, prescribed=given)
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
        same("drive torque from a model with one coordinate", torque, drive.tau[-1, 3], 1e-8, "N m"),
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for k, name in ((1, "rear wheel"), (3, "front wheel")):
            wheels = car.poses(drive.q)[:, k]
            axes.plot(*wheels[:, :2, 3].T, label=name)
            for pose in wheels[::20]:
                along = 0.5 * np.cross(pose[:3, 1], [0, 0, 1])[:2]
                axes.plot(*np.array([pose[:2, 3] - along, pose[:2, 3] + along]).T, "k", linewidth=4)
        for poses in car.poses(drive.q)[::20]:
            axes.plot(*poses[[1, 3], :2, 3].T, "0.5")
        axes.plot(0, turning, "k+", label=f"centre, {turning:.2f} m from the rear wheel")
        axes.set_aspect("equal")
        tidy(axes, "a car turns about a point on the axis of its rear wheel", "x (m)", "y (m)", beside=True)

    return Outcome(rows, draw, (7.5, 4.5))


def _mobile_manipulator() -> Outcome:
    robot = library.mobile_manipulator(payload=2.0).to(device="casadi")
    bend = np.array([0.4, -1.2, 1.5, -0.5, 0.6, 0.2])
    q = np.r_[robot.neutral()[:7], bend]
    rows = rolling(robot, q, np.r_[4.0, 6.0, 1.0, -0.8, 0.6, 0.5, -0.7, 0.9], np.r_[2.0, -1.0, 1.0, 2, 3, -2, 1, -1])
    t = ca.SX.sym("t")
    swing = [float(x) + 0.5 * (1 - ca.cos(np.pi * t)) * s for x, s in zip(bend, (1, 0.6, -0.5, 0, 0, 0), strict=True)]
    arm = robot.active[2:]
    given: dict[str | tuple[str, ...], Any] = {arm: ca.Function("swing", [t], [ca.vertcat(*swing)])}
    moved = simulate(robot, q, duration=2.0, step=0.05, prescribed=given)  # the wheels roll freely
    left, right, twist = moved.v[:, 3], moved.v[:, 4], robot.velocities(moved.q, moved.v)[:, 0]
    wheels = np.stack([0.1 * (left + right) / 2, 0 * left, 0.1 * (right - left) / 0.5], axis=1)  # radius, track
    rows.append(same("twist of the base, from its wheels", wheels, twist[:, [3, 4, 2]], 1e-10, "m/s, rad/s"))

    def draw(figure: Any) -> None:
        axes, forces = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        for k, colour in ((0, "0.7"), (20, "C0")):
            bones(axes, robot, moved.q[k], colour)
        tool = robot.pose(moved.q, "arm/ee_link")[:, :3, 3]
        axes.plot(*tool.T, "C3")
        space(axes, "the arm moves, the wheels roll freely: 0 (grey) and 1 s")
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
    across, up = np.array([0.0, 1.0, 0.0]), make_pose(p=[-SPACING / 2, 0.0, WHEEL])
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
    torque = 2.0 * (wave - q[bends]) + 0.02 * (ca.jacobian(wave, t) - v[bends])
    law = ca.Function("law", [t, q, v], [ca.vertcat(ca.SX.zeros(3), torque, ca.SX.zeros(SNAKE))])
    start = np.r_[np.zeros(3), -0.5 * np.sin(1.1 * np.arange(SNAKE - 1)), np.zeros(SNAKE)]
    rolls = snake.closed.velocities(start, np.r_[0.6, np.zeros(snake.nv - 1)], coordinates="all")
    creep = simulate(snake, start, rolls, duration=4.0, step=0.01, controller=law)
    poses = snake.poses(creep.q)[:, :SNAKE]
    axles = poses[..., :2, 3] - SPACING / 2 * poses[..., :2, 0]
    rates = np.gradient(axles, creep.times, axis=0, edge_order=2)
    side = np.abs(np.einsum("tki,tki->tk", rates, poses[..., :2, 1])[5:-5]).max() / np.abs(rates).max()
    power = np.einsum("ti,ti->t", creep.tau, creep.v)
    done = np.cumsum(power[:-2:2] + 4 * power[1:-1:2] + power[2::2]) * creep.times[1] / 3  # Simpson's rule
    k = 200
    a = snake.closed.forward_dynamics(creep.q[k], creep.v[k], creep.tau[k], coordinates="all")
    ground = snake.closed.loop_forces(creep.q[k], creep.v[k], creep.tau[k], coordinates="all")
    rows = moving_base(snake, creep.q[k], creep.v[k], a, snake.closed.loop_loads(creep.q[k], ground), held=PLANAR)
    rows += [
        claim("lateral slip of each axle along its path", "0", f"{side:.0e} of the speed", bool(side < 2e-3)),
        same(
            "kinetic energy, compared with the work done by bending",
            done,
            creep.energy[2::2] - creep.energy[0],
            1e-3,
            "J",
        ),
        only("distance travelled by the head in 4 s", f"{np.hypot(*(creep.q[-1, :2] - creep.q[0, :2])):.2f} m"),
    ]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for k in range(0, 401, 100):
            axes.plot(*poses[k, :, :2, 3].T, "o-", label=f"{creep.times[k]:.0f} s", markersize=3)
        axes.plot(*creep.q[:, :2].T, "0.6", linewidth=1)
        axes.set_aspect("equal")
        tidy(axes, "a snake bends in a wave, its passive wheels roll", "x (m)", "y (m)", beside=True)

    return Outcome(rows, draw, (8.0, 4.0))


# Flight


def _flying_robot(spin_inertia: float = 4e-5) -> Robot:
    """Return a quadrotor with 0.2 m arms, whose axes are principal axes and which has two equal principal moments."""
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
        same("ω' of a gyrostat", turned, a[:3], 1e-10, "rad/s²"),
        same("lift divided by mass", [0, 0, lift * (speed**2).sum() / mass], moved, 1e-10, "m/s²"),
        same("gyroscopic torque of the rotors, -ω × h", gyro, inertia @ (a - slow)[:3], 1e-10, "N m"),
    ]
    # In hover with all rotors turning in the same direction, w precesses in body axes at the rate h / I.
    turns, hover = ca.SX.sym("t"), np.sqrt(9.81 * mass / (4 * lift))
    given: dict[str | tuple[str, ...], Any] = {
        f"spin{k}": ca.Function("spin", [turns], [hover * turns]) for k in range(4)
    }
    push = np.zeros((5, 6))
    push[1:, 5] = lift * hover**2
    start = np.r_[0.3, 0.0, np.zeros(4), np.full(4, hover)]
    flight = simulate(robot, v0=start, duration=1.0, step=0.005, record=0.01, prescribed=given, external=push)
    rate = 4 * J * hover / inertia[0, 0]
    truth = 0.3 * np.stack([np.cos(rate * flight.times), np.sin(rate * flight.times)], axis=1)
    rows.append(same(f"ω of a robot in hover, precessing at h / I = {rate:.2f} rad/s", truth, flight.v[:, :2], 1e-6))

    def draw(figure: Any) -> None:
        picture, axes = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        circle = np.linspace(0, 2 * np.pi, 40)
        for k in (0, 50, 100):
            poses = robot.poses(flight.q[k])
            for pose in poses[1:]:
                ring = pose[:3, :3] @ (0.12 * np.array([np.cos(circle), np.sin(circle), 0 * circle])) + pose[:3, 3:]
                picture.plot(*ring, color=f"C{k // 50}")
            bones(picture, robot, flight.q[k], f"C{k // 50}")
        picture.set_zlim(-0.2, 0.2)
        space(picture, "rotors that all turn one way: 0 (blue), 0.5 and 1 s")
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
    q, v, rates = motion.q[k], motion.v[k], np.r_[np.zeros(6), swing(motion.times[k])[2].full().ravel()]
    a, _ = robot.hybrid_dynamics(q, v, rates, 0 * v, forced=["root"])
    momentum, centre = robot.momentum(motion.q, motion.v), robot.center_of_mass(motion.q)
    alone = float(np.abs(robot.mass_matrix(q)[:6, 6:] @ v[6:]).max())  # without recoil of the satellite
    rows = [
        *moving_base(robot, q, v, a),
        zero("momentum, relative to that of the arm alone", momentum, alone, 1e-6),
        zero("displacement of the centre of mass", centre - centre[0], tolerance=1e-7, unit="m"),
    ]

    def draw(figure: Any) -> None:
        picture, axes = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        for k, colour in ((0, "0.7"), (60, "C0"), (120, "C1")):
            bones(picture, robot, motion.q[k], colour)
            pose, side = robot.poses(motion.q[k])[0], np.array([[0.4, 0.4, -0.4, -0.4, 0.4], [0.0] * 5, [0.0] * 5])
            for ends in ((-2.3, -0.7), (0.7, 2.3)):
                panel = side + np.outer([0, 1, 0], np.take(ends, [0, 1, 1, 0, 0]))
                picture.plot(*(pose[:3, :3] @ panel + pose[:3, 3:]), color=colour)
        space(picture, "a satellite and its arm at 0 (grey), 1.2 and 2.4 s")
        curves(axes, motion.times, 2 * np.degrees(motion.q[:, 3:6]), ("about x", "about y", "about z"))
        tidy(axes, "the satellite turns", "s", "degrees")

    return Outcome(rows, draw, (10.0, 4.5))


# Legs

LEGS = {"fl": 0.0, "fr": np.pi, "hl": np.pi, "hr": 0.0}  # phases of a trot


def _trot(robot: Robot) -> Any:
    """Return the torques of springs that pull the legs through a trot, as a function of (t, q, v)."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    goal = list[Any]()
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
    assert walk.external is not None
    touch = np.einsum("tlij,tlj->tli", robot.poses(walk.q)[..., :3, :3], walk.external[..., 3:])  # in world axes
    k = 300
    q, v, tau, loads = walk.q[k], walk.v[k], walk.tau[k], walk.external[k]
    a = robot.forward_dynamics(q, v, tau, external=loads)
    rate = derivative(lambda h: robot.momentum(robot.integrate(q, h * v + h * h / 2 * a), v + h * a)[3:], 1e-4)
    mean = float(touch[100:, :, 2].sum(axis=1).mean())
    rows = [
        *moving_base(robot, q, v, a, loads),
        same(
            "rate of change of momentum (finite differences)",
            rate,
            touch[k].sum(axis=0) + robot.mass * robot.gravity,
            1e-7,
            "N",
        ),
        only("mean ground force divided by weight", f"{mean / (robot.mass * 9.81):.3f}"),
        only("distance travelled by the trunk in 2 s", f"{walk.q[-1, 0]:.2f} m"),
    ]

    def draw(figure: Any) -> None:
        picture, axes = figure.subplots(1, 2)
        for k in range(100, 401, 100):
            bones(picture, robot, walk.q[k], f"C{k // 100}", (0, 2))
            for leg in LEGS:
                shank = robot.pose(walk.q[k], f"{leg}_foot") @ np.array([[0, 0], [0, 0], [0.2, 0], [1, 1]])
                picture.plot(*shank[[0, 2]], color=f"C{k // 100}", linewidth=2)
        picture.set_aspect("equal")
        tidy(picture, "a quadruped trots: 0.5, 1, 1.5 and 2 s", "x (m)", "z (m)")
        curves(axes, walk.times, touch[:, 3::3, 2], ("front left", "front right", "hind left", "hind right"))
        tidy(axes, "vertical ground forces", "s", "N")

    return Outcome(rows, draw, (11.0, 3.8))


LEAN = 0.6  # rad, of the trunk at the lowest point of a squat


def _squat(robot: Robot) -> Any:
    """Return (q, v, a) of a squat, in which the feet stay flat and do not move, as a function of time."""
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
        return np.asarray(np.r_[p[:3] + np.cross(centre, p[3:]), p[3:]])

    weight = robot.mass * robot.gravity
    rate = derivative(momentum, 1e-3) - np.r_[np.cross(robot.center_of_mass(q), weight), weight]
    rows = moving_base(robot, q, v, a, loads, pelvis)
    rows.append(same("rate of change of momentum, minus weight (finite differences)", rate, whole, 1e-7, "N m, N"))
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
        tidy(picture, "a humanoid squats: 0 (grey), 0.65 and 1 s", "z (m)", "y (m)")
        axes.plot(times, resultants[:, 4] / (robot.mass * 9.81), label="vertical force over weight")
        axes.plot(times, 10 * pressure, label="centre of pressure (dm)")
        axes.fill_between(times, 10 * heel, 10 * toe, color="0.9", label="heel to toe (dm)")
        tidy(axes, "ground forces of both feet", "s", beside=True)

    return Outcome(rows, draw, (9.0, 4.2))


# Water

WATER, VISCOSITY, DRAG = 1000.0, 1e-6, 1.1  # kg/m^3, m^2/s, and the drag coefficient of a cylinder across the flow
# An eel of 0.2 m. All of its data are assumed: beat (1/s) and tail amplitude have a Strouhal number of 0.32 at 1.4
# lengths/s. Anguilla rostrata swam at 0.5 to 2 lengths/s in the measurements of Tytell 2004.
BODY, BEAT, WAVE, TAIL, GROWTH = 0.2, 3.1, 0.6, 0.072, 2.2
RADIUS, PIECES = 0.03 * BODY, 10


def _water(eel: Robot, motion: Sequence[Any], reactive: bool = True) -> Any:
    """Return the wrenches (L, 6) of water on the links of an eel that swims in the x-y plane.

    They are the drag on a cylinder according to Taylor (1952) and the reactive force according to Lighthill (1971): a
    slice with the normal velocity w has the momentum m w, and the wave carries momentum to the tail.
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

    The joints follow a wave. The acceleration of the head follows from the balance of all forces (eq. 86).
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
    change, found = abs(speed - before) / speed, f"{speed:.2f} lengths/s"
    rows = [
        *moving_base(eel.to(device="casadi"), q, v, a, loads),
        claim("speed, Anguilla rostrata (Tytell 2004)", "0.5 to 2 lengths/s", found, bool(0.5 < speed < 2)),
        claim("change from beat to beat", "0", f"{change:.1%}", bool(change < 0.01)),
        only("speed by Taylor's drag alone", f"{alone:.2f} lengths/s"),
    ]

    def draw(figure: Any) -> None:
        body, axes = figure.subplots(1, 2)
        for k in range(steps, cycles * steps, steps + steps // 4):
            pose = eel.to(device="casadi").poses(full(k / steps / BEAT, states[k - 1])[0].full().ravel())
            points = np.vstack([pose[:, :2, 3], (pose[-1] @ [BODY / PIECES, 0, 0, 1])[:2]])
            body.plot(*points.T, label=f"{k / steps:.2f} beats")
        tidy(body, "an eel swims to the left", "x (m)", "y (m)")
        times = np.arange(1, len(states) + 1) / steps
        axes.plot(times, -np.gradient(states[:, 0]) * steps * BEAT / BODY, label="Lighthill and Taylor")
        axes.plot(times, -np.gradient(resistive[:, 0]) * steps * BEAT / BODY, label="Taylor")
        tidy(axes, "speed of the head", "beats", "lengths/s")

    return Outcome(rows, draw, (11.0, 3.8))


ITEMS: dict[str, Compute] = {
    "khalil/car": _car,
    "khalil/mobile-manipulator": _mobile_manipulator,
    "khalil/snake": _snake,
    "khalil/flying-robot": _flying,
    "khalil/spatial-vehicle": _spatial_vehicle,
    "khalil/walking-robot": _walking,
    "khalil/humanoid": _humanoid,
    "khalil/eel-in-water": _eel_in_water,
}
