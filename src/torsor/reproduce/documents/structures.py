"""Khalil 2010, sections 2, 3, 5 and 8: base parameters, customised code, and structures that the paper names.

Each item compares the library with an independent solution: Cosserat equations, the Euler-Bernoulli beam, a Lagrangian,
a tree with loops, or the printed equations.
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
from torsor.mechanism import Joint, Link, flexible_links
from torsor.reproduce.documents.drawing import curves, space, tidy
from torsor.reproduce.documents.khalil import Moved, platform_equations
from torsor.reproduce.equations import khalil
from torsor.reproduce.item import Compute, Outcome, Row, claim, only, same
from torsor.reproduce.samples import about_origin
from torsor.robot.load import build, from_mdh
from torsor.robot.robot import Robot
from torsor.simulation import simulate
from torsor.spatial import from_quaternion

# A continuous body


def _ad(x: Array) -> Array:
    """Return the matrix of the bracket of twists (w, v)."""
    return np.block([[khalil.hat(x[:3]), np.zeros((3, 3))], [khalil.hat(x[3:]), khalil.hat(x[:3])]])


def _cosserat(
    strain: Any, body: Array, head: Array, twist: Array, length: float, steps: int = 200
) -> tuple[Array, Array, Array]:
    """Return the acceleration of the head, and the wrench in the sections (steps + 1, 6) at s (steps + 1,).

    The eel is a Cosserat rod (Boyer, Porez and Khalil 2006) with the inertia ``body`` per length. ``strain`` returns
    the strain and its first two time derivatives. The equations are integrated from the head, for zero and for six unit
    accelerations of the head. The condition that the tail carries no wrench determines the acceleration.
    """
    V, A = twist, np.vstack([np.zeros(6), np.eye(6)]).T
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
    acceleration = np.asarray(np.linalg.solve(L[:, 1:] - L[:, :1], -L[:, 0]), dtype=float)
    wrench = np.asarray(np.array(path) @ np.r_[1 - acceleration.sum(), acceleration])
    return acceleration, wrench, np.linspace(0, length, steps + 1)


def _continuous_eel() -> Outcome:
    length, radius, density, counts = 1.2, 0.03, 1000.0, (4, 2, 1)
    eel = library.continuous_eel(length, radius, density, counts, sections=16).to(device="casadi")
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
        same("head acceleration", acceleration, a[:6], 1e-6, "rad/s², m/s²"),
        same("muscle torques", muscle, tau[6:], 1e-6, "N m"),
    ]

    def draw(figure: Any) -> None:
        picture, axes = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        picture.plot(*eel.poses(q)[:, :3, 3].T, "o-", markersize=3)
        space(picture, "an eel as one rod, with its Gauss points")
        curves(axes, s, wrench[:, :3], ("torsion", "about y", "about z"))
        tidy(axes, "moment in the sections (Cosserat equations)", "m", "N m")

    return Outcome(rows, draw, (10.0, 4.2))


# Flexible, hybrid and parallel robots


def _flexible(hub: float = 0.02, length: float = 1.0, mass: float = 1.0, bending: float = 20.0) -> Outcome:
    """Compare a beam on a hub with Euler-Bernoulli theory and with eq. 71 (Boyer and Khalil 1998)."""
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
        """Return the determinant of the end conditions, divided by cosh(x).

        The shape is w = A sin z + B (cos z - cosh z) + C sinh z with z = x s / length.
        """
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
        same("rigid joint torque, eq. 68", A[0] @ np.r_[3.0, bent] + H[0], tau[0], 1e-10, "N m"),
    ]  # fmt: skip
    # The same motion of an arm with modes, and of an arm of rigid segments.
    tips, times = [], np.zeros(0)
    for arm, end in ((library.flexible_arm((5, 0)), "beam2/tip"), (library.segmented_arm(6), "tip")):
        light = arm.with_gravity((0, 0, 0)).to(device="casadi")
        drive = np.zeros(light.nv)
        drive[light.coordinate_names.index("joint1")] = 2.0
        moved = simulate(light, duration=0.2, step=4e-3, controller=drive, method="implicit")
        tips.append(light.pose(moved.q, end)[:, :2, 3])
        times = moved.times
    rows.append(same("tip of Torsor's arm, modelled as rigid segments", tips[1][:, 1], tips[0][:, 1], 1e-2, "m"))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for tip, style, name in zip(tips, ("-", "k."), ("modes", "rigid segments"), strict=True):
            axes.plot(times, 1e3 * tip[:, 1], style, label=name)
        tidy(axes, "tip of an arm with two flexible links, pulled by 2 N m", "s", "y (mm)")

    return Outcome(rows, draw, (6.5, 4.0))


def _hybrid() -> Outcome:
    """Compare two stacked Gough-Stewart platforms (Ibrahim and Khalil 2010) with eqs. 59 to 66 of each module.

    The platforms of the library are computed as modules, leg by leg, and as a tree with twelve loops.
    """
    lower, upper = library.gough_stewart(), library.gough_stewart(0.35, 0.25, height=0.75, platform_mass=5.0)
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
    # The equations: the lower platform moves the base of the upper module, which loads it.
    R, (twist, rate) = np.asarray(from_quaternion(poses[0][3:])), (twists[0], rates[0])
    lifted = rate[3:] + np.cross(twist[:3], twist[3:]) - R.T @ lower.gravity
    carrier = Moved(twist[:3], rate[:3], lifted)  # in its axes
    upper_forces, _, load = platform_equations(upper, poses[1], twists[1], rates[1], carrier)
    still = Moved(np.zeros(3), np.zeros(3), -np.asarray(lower.gravity))
    published = platform_equations(lower, poses[0], twist, rate, still, load)[0], upper_forces
    # Modules: the upper one on the moving lower platform.
    root = Joint("root", "free", "world", module.base.name)
    links = [Link("world"), module.base, *module.links]
    carried = build("carried", links, [root, *module.joints], gravity=lower.gravity).to(device="casadi")
    forces = carried.inverse_dynamics(*(np.r_[*x, y] for x, y in zip((poses, twists, rates), legs[1], strict=True)))
    G = upper.leg_velocities(poses[1], np.eye(6)).T
    Gamma_2 = upper.jacobian(poses[1]).T @ (forces[6:12] + G.T @ forces[12:])
    Gamma_1 = lower.inverse_dynamics(poses[0], twists[0], rates[0], external=-forces[:6])
    # One tree with loops.
    q, v, a = (np.r_[x[0], first, x[1], second] for x, first, second in zip((poses, twists, rates), *legs, strict=True))
    active = [tree.coordinate_names.index(name) for name in tree.active]
    loops = tree.closed.inverse_dynamics(q, v[active], a[active])
    rows = [
        same("forces of the lower legs, eq. 66 and a tree with loops", published[0], loops[:6], 1e-10, "N"),
        same("forces of the upper legs, eq. 66 and a tree with loops", published[1], loops[6:], 1e-10, "N"),
        same("forces of the lower legs, eq. 66 and modules", published[0], Gamma_1, 1e-10, "N"),
        same("forces of the upper legs, eq. 66 and modules", published[1], Gamma_2, 1e-10, "N"),
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
        space(axes, "two Gough-Stewart platforms in series")

    return Outcome(rows, draw, (5.5, 5.5))


def _delta() -> Outcome:
    """Compare a Delta robot with its Lagrangian, which needs no tree: uniform rods between elbows and platform."""
    R, r, arm, rods, payload = 0.2, 0.05, 0.35, 0.8, 0.5
    robot = library.delta(R, r, arm, rods, payload=payload).to(device="casadi")
    p, u, w = ca.SX.sym("p", 3), ca.SX.sym("u", 3), ca.SX.sym("w", 3)
    angles, elbows = [], []
    for k in range(3):
        c, s = np.cos(2 * np.pi / 3 * k), np.sin(2 * np.pi / 3 * k)
        x, y, z = c * p[0] + s * p[1] - (R - r), c * p[1] - s * p[0], p[2]
        # The elbow (arm cos, 0, -arm sin) is a rod away from (x, y, z).
        half = (x**2 + y**2 + z**2 + arm**2 - rods**2) / (2 * arm)  # x cos - z sin
        angles.append(ca.atan2(-z, x) - ca.acos(half / ca.sqrt(x**2 + z**2)))
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
        same("drive angles in closed form", shoulders.ravel(), robot.inverse_kinematics(state[0])[::3], 1e-10),
        same("J_p, eq. 60", J_p, robot.jacobian(state[0]), 1e-10),
        same("Γ of the Lagrangian, and of eq. 66 in three coordinates", Gamma.ravel(), robot.inverse_dynamics(*state),
             1e-10, "N m"),
    ]  # fmt: skip

    def draw(figure: Any) -> None:
        picture, axes = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        t = np.linspace(0, 0.5, 101)
        rate = 4 * np.pi
        circle, ahead = (
            0.15 * np.stack([np.cos(x), np.sin(x), 0 * x], axis=1) for x in (rate * t, rate * t + np.pi / 2)
        )
        path = circle - [0.0, 0.0, 0.75], rate * ahead, -(rate**2) * circle
        joints = ca.Function("elbows", [p], elbows)
        for k, elbow in enumerate(joints(path[0][10])):
            direction = np.array([np.cos(2 * np.pi / 3 * k), np.sin(2 * np.pi / 3 * k), 0.0])
            chain = np.array([R * direction, elbow.full().ravel(), path[0][10] + r * direction, path[0][10]])
            picture.plot(*chain.T, "o-", markersize=3)
        picture.plot(*path[0].T, "0.5")
        space(picture, "a Delta robot: three translations")
        curves(axes, t, robot.inverse_dynamics(*path), ("leg 1", "leg 2", "leg 3"))
        tidy(axes, "torques on a circle of 0.15 m", "s", "N m")

    return Outcome(rows, draw, (10.0, 4.5))


# Base parameters and customised code


def _serial(sigma: Sequence[int], tilt: float, general: bool = True) -> tuple[khalil.Robot, Robot]:
    """Return an arm in both descriptions. ``tilt`` is the angle from the first axis to the vertical.

    A ``general`` arm has no zero parameters. Other arms have axes at right angles, which intersect or are ``d`` apart.
    """
    rng, n = np.random.default_rng(11), len(sigma)
    geometry = rng.uniform(0.3, 1.2, (3, n))
    if not general:
        geometry[0], geometry[2] = np.pi / 2, 0.0
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
    data = khalil.Robot(
        np.arange(n) - 1, np.array(sigma), zero, zero, alpha, d, zero, r, M, MS, J, zero, zero, zero, gravity
    )
    return data, from_mdh(links, gravity=gravity).to(device="casadi")


TEN = ("*.m", "*.m?", "*.J*")  # the inertial parameters of a link


def _with(data: khalil.Robot, ten: Array) -> khalil.Robot:
    """Return the robot with other inertial parameters (n, 10)."""
    J = np.array([[[x, xy, xz], [xy, y, yz], [xz, yz, z]] for x, xy, xz, y, yz, z in ten[:, 4:]])
    return data._replace(M=ten[:, 0], MS=ten[:, 1:4], J=J)


def _of_parameters(data: khalil.Robot, motions: int = 10) -> Array:
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
        ((0, 1, 0, 0), 0.5, "R P R R"),
        ((1, 0, 0, 1), 0.5, "P R R P"),
    ):
        data, robot = _serial(sigma, tilt)
        rank, count = np.linalg.matrix_rank(_of_parameters(data), tol=1e-8), len(robot.inertial.base(among=TEN))
        rows.append(same(f"base parameters and rank of eq. 31, {words}", rank, count))
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
        axes.set_title("base parameters (blue) of an arm with joints R P R R P R", fontsize=10)

    return Outcome(rows, draw, (5.5, 4.0))


def _plain(robot: Robot) -> int:
    """Return the additions and multiplications of inverse dynamics with all ten parameters of each link."""
    q, v, a = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv), ca.SX.sym("a", robot.nv)
    tau = ca.cse(ALGORITHMS["inverse_dynamics"].rule(Tree.of(robot), q, v, a))
    return count_operations(ca.Function("plain", [q, v, a], [tau])).arithmetic


def _customised() -> Outcome:
    sizes = np.arange(2, 11)
    kinds: dict[str, tuple[list[int], list[int]]] = {}
    rows = list[Row]()
    for name, general in (("general arm", True), ("right-angled arm", False)):
        plain, lean = list[int](), list[int]()
        for n in sizes:
            data, robot = _serial((0,) * int(n), 0.0, general)
            plain.append(_plain(robot))
            lean.append(robot.operation_count("inverse_dynamics").arithmetic)
        kinds[name] = plain, lean
        state = np.random.default_rng(13).normal(size=(3, len(data.M)))
        code = robot.function("inverse_dynamics")(*state).full().ravel()
        rows.append(same(f"code of a {name}, eq. 31", khalil.inverse_dynamics(data, *state).Gamma, code, 1e-10, "N m"))
    for name, (plain, lean) in kinds.items():
        slope = np.diff(lean)[2:]
        words = f"{slope[0]} for each joint" if np.ptp(slope) == 0 else f"{slope.min()} to {slope.max()} for each joint"
        rows.append(claim(f"operations, {name}", "linear in the number of joints", words, bool(np.ptp(slope) == 0)))
        words = f"{lean[4]} instead of {plain[4]}"
        rows.append(claim(f"operations with base parameters, {name}, 6 joints", "reduced", words, lean[4] < plain[4]))
    usual, special = (lean[4] for _, lean in kinds.values())
    words = f"{special} instead of {usual}"
    rows.append(claim("operations of code for a right-angled arm, 6 joints", "reduced", words, special < usual))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for k, (name, (plain, lean)) in enumerate(kinds.items()):
            axes.plot(sizes, plain, f"C{k}:", label=f"{name}, all parameters")
            axes.plot(sizes, lean, f"C{k}-", label=f"{name}, base parameters")
        tidy(axes, "additions and multiplications of inverse dynamics", "joints")

    return Outcome(rows, draw, (6.5, 4.0))


ITEMS: dict[str, Compute] = {
    "khalil/continuous-eel": _continuous_eel,
    "khalil/flexible-links": _flexible,
    "khalil/hybrid": _hybrid,
    "khalil/delta": _delta,
    "khalil/base-parameters": _base_parameters,
    "khalil/customised-code": _customised,
}
