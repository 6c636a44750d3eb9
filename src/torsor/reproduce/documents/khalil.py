"""Khalil 2010: trees, closed loops, parallel robots, elastic joints, and a moving base.

The paper prints equations but no numbers. The corrected equations are evaluated, and the results are compared with the
library.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.formats import MDHLink
from torsor.mechanism import Link
from torsor.reproduce.documents import drawing
from torsor.reproduce.documents.drawing import AXES, curves, tidy
from torsor.reproduce.documents.systems import in_six_parameters
from torsor.reproduce.equations import khalil
from torsor.reproduce.equations.khalil import hat, spatial_inertia, velocity_wrench
from torsor.reproduce.errata.erratum import derivative
from torsor.reproduce.errata.khalil import BENT, ELASTIC, FiveBar, elastic_case, free_base
from torsor.reproduce.item import BY_DIFFERENCES, Compute, Outcome, Row, claim, only, same, zero
from torsor.reproduce.samples import about_origin, tree
from torsor.robot.load import from_mdh
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.spatial import from_quaternion, make_pose

# Khalil 2010, sections 6 and 7: elastic joints, and a base that moves.


def _elastic() -> list[Row]:
    data, _, (q, v, a), *_ = tree()
    weak = data._replace(Ia=np.where(ELASTIC > 0, 0.0, data.Ia))
    result = khalil.elastic_inverse(weak, q, v, a, tree().wrenches, ELASTIC, BENT)
    accelerations, forces = elastic_case()
    smooth = weak._replace(Fs=0 * data.Fs, Fv=0 * data.Fv)  # eq. 82 has no friction
    A, H = khalil.direct_model(smooth, q, v, tree().fe, tree().me)
    rigid, soft = np.flatnonzero(ELASTIC == 0), np.flatnonzero(ELASTIC)
    pull = -ELASTIC[soft] * BENT[soft]
    split = np.linalg.solve(A[np.ix_(soft, soft)], pull - A[np.ix_(soft, rigid)] @ a[rigid] - H[soft])
    Gamma = np.where(ELASTIC > 0, -ELASTIC * BENT, result.Gamma)  # eq. 69
    direct = khalil.direct_dynamics(smooth, q, v, Gamma, tree().wrenches)
    return [
        same("forward dynamics, section 6.2", direct.qdd, accelerations),
        same("elastic accelerations, eq. 80", result.qdd[soft], accelerations[soft]),
        same("elastic accelerations, eq. 71", split, accelerations[soft]),
        same("rigid joint forces, eq. 82", result.Gamma[rigid], forces[rigid], unit="N m, N"),
    ]


def _matrices_of_free_base() -> tuple[Array, Array]:
    """Return (A, H) of eq. 83 from inverse dynamics, extended to the base (section 7.1, first method)."""
    data, _, (q, v, _), fe, me, base, _ = tree()
    n = len(q)
    calm = data._replace(Fs=np.zeros(n), Fv=np.zeros(n))

    def model(robot: khalil.Robot, base: khalil.Base, motion: tuple[Array, Array], *loads: Array) -> Array:
        found, wrench = khalil.base_wrench(robot, base._replace(Vd=motion[1][:6]), q, motion[0], motion[1][6:], *loads)
        return np.concatenate([wrench, found.Gamma])

    still = base._replace(w=np.zeros(3))
    columns = [model(calm, still, (np.zeros(n), unit)) for unit in np.eye(6 + n)]
    return np.array(columns).T, model(data, base, (v, np.zeros(6 + n)), fe, me)


def _base_matrices() -> list[Row]:
    a, (A, H) = tree().state[2], _matrices_of_free_base()
    acceleration, forces = free_base()
    moved = -np.linalg.solve(A[:6, :6], H[:6] + A[:6, 6:] @ a)
    both = np.linalg.solve(A, np.r_[-H[:6], forces - H[6:]])
    _, _, (q, v, _), *_, base, floating = tree()
    floating = floating.with_gravity(np.zeros(3)).to(device="casadi")  # V'_0 of the paper contains -g
    state, order = (np.r_[np.zeros(6), 1.0, q], np.r_[base.w, np.zeros(3), v]), np.r_[3:6, 0:3, 6 : floating.nv]
    loads = np.vstack([np.zeros((1, 6)), tree().external])
    return [
        same("A, eqs. 83, 84", A, floating.mass_matrix(state[0])[np.ix_(order, order)]),
        same("H, eqs. 83, 85", H, floating.inverse_dynamics(*state, 0 * state[1], external=loads)[order]),
        same("V'_0 - g, eq. 86", moved, acceleration, unit="m/s², rad/s²"),
        same("Γ, eq. 87", A[6:, :6] @ moved + A[6:, 6:] @ a + H[6:], forces, unit="N m, N"),
        same("V'_0 - g and q'', eq. 88", both, np.r_[acceleration, _accelerations(forces)[6:]]),
    ]


def _base_inverse() -> list[Row]:
    data, _, (q, v, a), fe, me, base, _ = tree()
    result = khalil.moving_base_inverse(data, q, v, a, tree().wrenches, base)
    acceleration, forces = free_base()
    left = khalil.base_wrench(data, base._replace(Vd=acceleration), q, v, a, fe, me)[1]
    largest = float(np.abs(tree().wrenches).max())
    return [
        same("V'_0 - g, eq. 97", result.Vd_0, acceleration, unit="m/s², rad/s²"),
        same("Γ, eq. 100", result.Gamma, forces, unit="N m, N"),
        zero("wrench on the base at Torsor's acceleration", left, largest, unit="N, N m"),
    ]


def _accelerations(forces: Array) -> Array:
    """Return the accelerations of the tree with a free base (6 + n,) from the library."""
    _, _, (q, v, _), _, _, base, floating = tree()
    state = np.r_[np.zeros(6), 1.0, q], np.r_[base.w, np.zeros(3), v]
    loads = np.vstack([np.zeros((1, 6)), tree().external])
    return np.asarray(floating.forward_dynamics(*state, np.r_[np.zeros(6), forces], external=loads))


def _base_direct() -> list[Row]:
    data, _, (q, v, _), _, _, base, _ = tree()
    acceleration, forces = free_base()
    result = khalil.direct_dynamics(data, q, v, forces, tree().wrenches, base)
    return [
        same("q'', eq. 110", result.qdd, _accelerations(forces)[6:]),
        same("V'_0 - g, eq. 109", result.Vd_0, acceleration, unit="m/s², rad/s²"),
    ]


@cache
def _swim(step: float = 0.005) -> tuple[Robot, Array, Array]:
    """Return an eel that bends in a travelling wave without water, with times and coordinates: eqs. 89 to 97."""
    eel = library.eel(links=8).to(device="casadi")
    n, seconds = eel.nv - 6, 1.0
    phase = 2 * np.pi * np.arange(n) / n
    frequency = 2 * np.pi

    def wave(t: float) -> tuple[Array, Array, Array]:
        angle, ramp, slope = frequency * t - phase, 0.4 * t * t, 0.8 * t  # grows from rest
        s, c = np.sin(angle), np.cos(angle)
        v = slope * s + ramp * frequency * c
        return ramp * s, v, 0.8 * s + 2 * slope * frequency * c - ramp * frequency**2 * s

    def rate(t: float, q: Array, v: Array) -> Array:
        bend, turning, bending = wave(t)
        full_q, full_v = np.r_[q[:7], bend], np.r_[v[:6], turning]
        a, _ = eel.hybrid_dynamics(full_q, full_v, np.r_[np.zeros(6), bending], np.zeros(eel.nv), forced=["root"])
        return np.asarray(a[:6])

    q, v = np.r_[eel.neutral()[:7], wave(0.0)[0]], np.r_[np.zeros(6), wave(0.0)[1]]
    times, path = [0.0], [q]
    for k in range(round(seconds / step)):
        t = k * step
        half = v[:6] + step / 2 * rate(t, q, v)  # midpoint rule
        middle = eel.integrate(q, np.r_[step / 2 * v[:6], np.zeros(n)])
        a = rate(t + step / 2, middle, np.r_[half, v[6:]])
        moved = eel.integrate(q, np.r_[step * half, np.zeros(n)])
        bend, turning, _ = wave(t + step)
        q, v = np.r_[moved[:7], bend], np.r_[v[:6] + step * a, turning]
        times, path = [*times, t + step], [*path, q]
    return eel, np.array(times), np.array(path)


def _drift(path: Array) -> float:
    """Return the largest distance (m) of the eel's centre of mass from its initial position."""
    centre = _swim()[0].center_of_mass(path)
    return float(np.linalg.norm(centre - centre[0], axis=1).max())


def _eel() -> Outcome:
    eel, times, path = _swim()
    coarse, drift = (_drift(_swim(step)[2]) for step in (0.01, 0.005))
    turned = 2 * np.degrees(np.arcsin(np.clip(path[:, 5], -1, 1)))
    order, words = np.log2(coarse / drift), f"moves by {1e3 * drift:.2g} mm, and by the square of the time step"
    rows = [
        claim("centre of mass at rest without water", "at rest (no external force)", words, abs(order - 2) < 0.2),
        only("maximum head rotation", f"{np.abs(turned).max():.2f} degrees"),
    ]

    def draw(figure: Any) -> None:
        body, head = figure.subplots(1, 2)
        for k in np.linspace(0, len(path) - 1, 6).round().astype(int):
            poses = eel.poses(path[k])
            points = np.vstack([poses[:, :3, 3], (poses[-1] @ [0.1, 0, 0, 1])[:3]])
            body.plot(points[:, 0], points[:, 1], "o-", markersize=3, label=f"{times[k]:.1f} s")
        tidy(body, "an eel bends, its base is free (eqs. 89 to 97)", "x (m)", "y (m)")
        head.plot(times, 1e3 * path[:, 0], label="x (mm)")
        head.plot(times, 1e3 * path[:, 1], label="y (mm)")
        head.plot(times, turned, label="turn (degrees)")
        tidy(head, "motion of the head", "s")

    return Outcome(rows, draw, (10.0, 4.0))


# Khalil 2010, section 5: the inverse dynamics of a Gough-Stewart platform, leg by leg.
TWIST = np.array([0.4, 0.2, -0.3, 0.2, -0.3, 0.15])  # (angular, linear) of the platform, in its axes
ACCELERATION = np.array([-0.6, 0.9, 0.7, 1.0, 0.5, -0.8])
SHIFT = np.array([0.05, -0.04, 0.06, 0.1, -0.05, 0.08])  # pose, from home


@cache
def platform() -> ParallelRobot:
    """Return the Gough-Stewart platform of the library."""
    return library.gough_stewart().to(device="casadi")


def _rotation(pose: Array) -> Array:
    return np.asarray(from_quaternion(pose[3:]), dtype=float)


class Moved(NamedTuple):
    """The motion of a body: angular velocity ``w``, angular acceleration ``wd``, and ``Vd``, each (3,), in its axes.

    ``Vd`` is the acceleration of the origin minus that of gravity.
    """

    w: Array
    wd: Array
    Vd: Array

    def at(self, p: Array) -> Array:
        """Return the acceleration minus gravity (3,) of the body-fixed point p (3,), relative to the origin."""
        return np.asarray(self.Vd + np.cross(self.wd, p) + np.cross(self.w, np.cross(self.w, p)))


def _leg_tip(q: Array) -> tuple[Array, Array]:
    """Return the position of a leg tip and J_i (63). A leg rotates about x, then about y, and extends along z."""
    (s1, c1), (s2, c2), r = *((np.sin(x), np.cos(x)) for x in q[:2]), q[2]
    along = np.array([s2, -s1 * c2, c1 * c2])
    swing, tilt = np.array([0 * s1, -c1 * c2, -s1 * c2]), np.array([c2, s1 * s2, -c1 * s2])
    return r * along, np.array([r * swing, r * tilt, along]).T


def platform_equations(
    robot: ParallelRobot, pose: Array, twist: Array, acceleration: Array, base: Moved, load: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return the drive forces, J_p, and the wrench on the robot at its base from eqs. 59 to 66, in base axes.

    Twists are (V, w), wrenches (f, m). ``twist`` and ``acceleration`` follow the library's convention and are relative
    to the moving base. ``load`` is the wrench of the platform on its environment, in platform axes. The leg models are
    those of section 3.2 with the motion of the base (section 7.1).
    """
    R, P, h = _rotation(pose), pose[:3], 1e-30
    w, v, wd = R @ twist[:3], R @ twist[3:], R @ acceleration[:3]
    a = R @ (acceleration[3:] + np.cross(twist[:3], twist[3:]))  # of the origin
    whole = base.w + w, np.r_[base.at(P) + 2 * np.cross(base.w, v) + a, base.wd + wd + np.cross(base.w, w)]
    body = robot.platform
    assert isinstance(body, Link)
    mass, com = float(body.mass), np.asarray(body.com)
    MS, J = mass * R @ com, R @ about_origin(mass, com, np.asarray(body.inertia)) @ R.T
    F_p = spatial_inertia(mass, MS, J) @ whole[1] - velocity_wrench(whole[0], MS, J)  # (9)
    if load is not None:
        F_p = F_p + np.r_[R @ load[:3], R @ load[3:]]
    total, wrench, drives = F_p, _shifted(F_p, P), []
    for leg in robot.legs:
        B, foot, arm = leg.base[:3, :3], leg.base[:3, 3], R @ np.asarray(leg.at)[:3, 3]
        x, y, z = B.T @ (P + arm - foot)
        length = np.linalg.norm([x, y, z])
        q = np.array([np.arctan2(-y, z), np.arcsin(x / length), length])
        J_i = _leg_tip(q)[1]
        qd = np.linalg.solve(J_i, B.T @ (v + np.cross(w, arm)))
        curved = _leg_tip(q + 1j * h * qd)[1].imag / h @ qd
        qdd = np.linalg.solve(J_i, B.T @ (a + np.cross(wd, arm) + np.cross(w, np.cross(w, arm))) - curved)
        chain, root, _ = in_six_parameters(leg.robot, -1)
        own = root._replace(w=B.T @ base.w, Vd=np.r_[B.T @ base.at(foot), B.T @ base.wd])
        wrenches, held = khalil.base_wrench(chain, own, q, qd, qdd)
        J_vi = np.hstack([np.eye(3), -hat(arm)])  # (65)
        total = total + J_vi.T @ np.linalg.solve((B @ J_i).T, wrenches.Gamma)  # the bracket of (66)
        wrench = wrench + _shifted(np.r_[B @ held[:3], B @ held[3:]], foot)
        drives.append(np.linalg.solve(B @ J_i, J_vi)[2])  # the leg stretches by its third joint
    J_p = np.linalg.inv(np.array(drives))  # (60)
    return J_p.T @ total, J_p, wrench  # (66)


def _shifted(wrench: Array, p: Array) -> Array:
    """Return a wrench (f, m) at the origin instead of p."""
    return np.concatenate([wrench[:3], wrench[3:] + np.cross(p, wrench[:3])])


def _gough_stewart() -> Outcome:
    robot = platform()
    pose = robot.carriage.integrate(robot.home, SHIFT)
    still = Moved(np.zeros(3), np.zeros(3), -np.asarray(robot.gravity))
    Gamma, J_p, _ = platform_equations(robot, pose, TWIST, ACCELERATION, still)
    ours = robot.inverse_dynamics(pose, TWIST, ACCELERATION)
    R = _rotation(pose)
    jacobian = robot.jacobian(pose)  # (angular, linear) in the axes of the platform
    in_world = np.vstack([R @ jacobian[3:], R @ jacobian[:3]])
    rows = [same("Γ, eq. 66", Gamma, ours, unit="N"), same("J_p, eq. 60", J_p, in_world)]

    def draw(figure: Any) -> None:
        picture, forces = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
        t = np.linspace(0.0, 2 * np.pi / 6.0, 61)
        poses, twists, accelerations = _circle(robot, t)
        _draw(picture, robot, poses[10])
        curves(forces, t, robot.inverse_dynamics(poses, twists, accelerations), tuple(f"leg {k + 1}" for k in range(6)))
        tidy(forces, "forces of the legs on a circle of 0.1 m", "s", "N", beside=True)

    return Outcome(rows, draw, (10.0, 4.5))


def _structure() -> Outcome:
    robot = platform()

    def draw(figure: Any) -> None:
        _draw(figure.add_subplot(projection="3d"), robot, robot.home)

    return Outcome([], draw, (5.5, 4.5))


def _circle(robot: ParallelRobot, t: Array, radius: float = 0.1, rate: float = 6.0) -> tuple[Array, Array, Array]:
    pose = np.tile(robot.home, (len(t), 1))
    wave = np.stack([np.cos(rate * t), np.sin(rate * t)], axis=-1)
    pose[:, :2] += radius * wave
    twist, acceleration = np.zeros((2, len(t), 6))
    twist[:, 3:5] = radius * rate * np.stack([-wave[:, 1], wave[:, 0]], axis=-1)
    acceleration[:, 3:5] = -radius * rate**2 * wave
    return pose, twist, acceleration


def _draw(axes: Any, robot: ParallelRobot, pose: Array) -> None:
    """Draw the base, legs and platform, separated at the ball joints as in the figure."""
    R, place = _rotation(pose), pose[:3]
    feet = np.array([leg.base[:3, 3] for leg in robot.legs])
    tops = np.array([place + R @ np.asarray(leg.at)[:3, 3] for leg in robot.legs])
    ring = [0, 1, 2, 3, 4, 5, 0]
    axes.plot(*feet[ring].T, color="0.4")
    axes.plot(*tops[ring].T, color="C0", linewidth=2.5)
    for k, (foot, top) in enumerate(zip(feet, tops, strict=True)):
        axes.plot(*np.array([foot, top]).T, color=f"C{k}", linewidth=2)
        axes.scatter(*top, color="k", s=14)
    axes.set(title="Figure 4: legs and platform", box_aspect=(1, 1, 0.7), **AXES)


# Trees


def _frames() -> list[Row]:
    data, robot, (q, _, _), *_ = tree()
    poses: list[Array] = []
    for i, (R, P) in zip(data.antecedent, khalil.placements(data, q), strict=True):
        poses.append((np.eye(4) if i < 0 else poses[i]) @ make_pose(R, P))
    return [same("⁰T_j of all links, eq. 1", poses, robot.poses(q))]


def _inverse() -> list[Row]:
    data, robot, state, fe, me, *_ = tree()
    Gamma, f, m = khalil.inverse_dynamics(data, *state, fe, me)
    wrenches = robot.joint_wrenches(*state, external=tree().external)
    return [
        same("Γ, eq. 31", Gamma, robot.inverse_dynamics(*state, external=tree().external), unit="N m, N"),
        same("f_j, eqs. 26 to 29", f, wrenches[:, 3:], unit="N"),
        same("m_j, eqs. 27 to 30", m, wrenches[:, :3], unit="N m"),
    ]


def _of_lagrangian(data: khalil.Robot, q: Array, v: Array, a: Array) -> Array:
    """Return d/dt (dL/dq') - dL/dq, eq. 6, using fourth-order differences along the motion.

    The kinetic energy follows from A (section 3.3.1), and the potential energy from the frames of eq. 1.
    """

    def A(q: Array) -> Array:
        return khalil.direct_model(data, q, 0 * q)[0]

    def lagrangian(q: Array) -> float:
        potential, poses = 0.0, list[Array]()
        for j, (R, P) in enumerate(khalil.placements(data, q)):
            i = data.antecedent[j]
            poses.append((np.eye(4) if i < 0 else poses[i]) @ make_pose(R, P))
            potential -= data.g @ (poses[j][:3, :3] @ data.MS[j] + data.M[j] * poses[j][:3, 3])
        return float(v @ A(q) @ v / 2 - potential)

    momentum = derivative(lambda t: A(q + v * t + a * t * t / 2) @ (v + a * t), 1e-3)
    along = [derivative(lambda t, unit=unit: lagrangian(q + t * unit), 1e-3) for unit in np.eye(len(q))]  # type: ignore[misc]
    return np.asarray(momentum - np.array(along))


def _matrices() -> list[Row]:
    data, robot, (q, v, a), fe, me, *_ = tree()
    A, H = khalil.direct_model(data, q, v, fe, me)
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    loads = robot.inverse_dynamics(q, v, 0 * a, external=tree().external)
    free = robot.inverse_dynamics(q, v, a) - data.Fs * np.sign(v) - data.Fv * v  # neither loads nor friction
    accelerations = robot.forward_dynamics(q, v, Gamma, external=tree().external)
    return [
        same(
            "Γ of the Lagrangian, eq. 6 (finite differences)",
            _of_lagrangian(data, q, v, a),
            free,
            BY_DIFFERENCES,
            "N m, N",
        ),
        same("A, section 3.3.1", A, robot.mass_matrix(q)),
        same("H, section 3.3.1", H, loads),
        same("Γ = A q'' + H, eq. 7", A @ a + H, Gamma),
        same("q'' = A⁻¹ (Γ - H), eq. 8", np.linalg.solve(A, Gamma - H), accelerations),
    ]


def _direct() -> list[Row]:
    data, robot, (q, v, a), *_ = tree()
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    result = khalil.direct_dynamics(data, q, v, Gamma, tree().wrenches)
    moments, forces = np.hsplit(robot.joint_wrenches(q, v, a, external=tree().external), 2)
    return [
        same("q'', eq. 41", result.qdd, robot.forward_dynamics(q, v, Gamma, external=tree().external)),
        same("reactions, eq. 42", result.f, np.hstack([forces, moments])),
    ]


# Closed loops


def _cut_joint() -> list[Row]:
    """Describe the five-bar in table rows, with two for the cut joint, and check the library's motion."""
    bar, rotors = FiveBar(), (0.01, 0.0, 0.02, 0.0)
    columns = zip(bar.tree.antecedent.tolist(), bar.tree.d, bar.robot.links, rotors, strict=True)
    rows = [
        MDHLink(parent, d=d, mass=link.mass, com=link.com, inertia=link.inertia, active=k % 2 == 0, rotor_inertia=rotor)
        for k, (parent, d, link, rotor) in enumerate(columns)
    ]
    rows += [MDHLink(1, d=0.4, joint=0, closes=5), MDHLink(3, d=0.4, joint=2)]  # frames k and k + B
    table = from_mdh(rows, gravity=bar.robot.gravity).to(device="casadi")
    q = table.closed.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.33])
    v, h = table.closed.velocities(q, bar.state[0]), 1e-30
    k, other = _ends_of_cut_joint(bar.tree, q)
    rate, other_rate = (each.imag / h for each in _ends_of_cut_joint(bar.tree, q + 1j * h * v))
    forces = table.inverse_dynamics(q, v, 0 * v, loops="open")
    return [
        zero("O_k - O_{k+B} at Torsor's positions, eqs. 1, 3", k - other, unit="m"),
        zero("V_k - V_{k+B} at Torsor's velocities, eq. 4", rate - other_rate, unit="m/s"),
        same("Γ_tr of the table, eq. 31", khalil.inverse_dynamics(bar.tree, q, v, 0 * v).Gamma, forces, unit="N m"),
    ]


def _ends_of_cut_joint(tree: khalil.Robot, q: Array) -> list[Array]:
    """Return O_k and O_{k+B} of the five-bar by eq. 1, for real or complex q."""
    places, ends = khalil.placements(tree, q), []
    for near, far in ((0, 1), (2, 3)):
        (R, P), (R_far, P_far) = places[near], places[far]
        ends.append(P + R @ (P_far + R_far @ np.array([0.4, 0.0, 0.0])))
    return ends


@cache
def _five_bar_motion() -> tuple[Array, Array, Array, Robot]:
    robot = library.five_bar()
    t = np.linspace(0.0, 2.0, 201)
    angles = np.array([2.0, 1.1]) + 0.3 * np.stack([np.sin(np.pi * t), 1 - np.cos(np.pi * t)], axis=1)
    v = 0.3 * np.pi * np.stack([np.cos(np.pi * t), np.sin(np.pi * t)], axis=1)
    a = 0.3 * np.pi**2 * np.stack([-np.sin(np.pi * t), np.cos(np.pi * t)], axis=1)
    q = robot.closed.assemble(angles, guess=[2.0, -1.3, 1.1, 1.33])
    return t, q, robot.closed.inverse_dynamics(q, v, a), robot


def _five_bar() -> Outcome:
    bar = FiveBar()
    closed, q, (v, a), G = bar.robot.closed, bar.q, bar.state, bar.G
    of_tree, ours = bar.tree_forces(v, a), closed.inverse_dynamics(q, v, a)
    H_c, H_ours = G.T @ bar.tree_forces(v, 0 * a), closed.inverse_dynamics(q, v, 0 * a)
    A_c = np.array([G.T @ bar.tree_forces(v, unit) - H_c for unit in np.eye(2)]).T
    A_ours = np.array([closed.inverse_dynamics(q, v, unit) - H_ours for unit in np.eye(2)]).T
    rows = [
        same("G, eq. 56", G, closed.velocities(q, np.eye(2)).T),
        same("Γ_c = Gᵀ Γ_tr, eq. 55", G.T @ of_tree, ours, unit="N m"),
        same("Γ_c, eq. 57", of_tree[bar.ACTIVE] + G[bar.PASSIVE].T @ of_tree[bar.PASSIVE], ours, unit="N m"),
        same("A_c, eq. 58", A_c, A_ours),
        same("H_c, eq. 58", H_c, H_ours, unit="N m"),
        same("forward dynamics, eq. 58", np.linalg.solve(A_c, ours - H_c), closed.forward_dynamics(q, v, ours)),
    ]

    def draw(figure: Any) -> None:
        t, q, tau, robot = _five_bar_motion()
        picture, torques = figure.subplots(1, 2)
        poses = robot.poses(q[::20])
        tips = poses @ np.array([0.4, 0.0, 0.0, 1.0])
        for k in range(len(poses)):
            corners = [poses[k, 0, :2, 3], poses[k, 1, :2, 3], tips[k, 1, :2], poses[k, 3, :2, 3], poses[k, 2, :2, 3]]
            picture.plot(*np.array(corners).T, "o-", color=f"{0.75 - 0.07 * k:.2f}", markersize=3)
        path = (robot.poses(q) @ np.array([0.4, 0.0, 0.0, 1.0]))[:, 1]
        picture.plot(path[:, 0], path[:, 1], color="C3", label="path of the pin")
        picture.set_aspect("equal")
        tidy(picture, "a five-bar, two drives at its base", "m", "m")
        curves(torques, t, tau, robot.active)
        tidy(torques, "torques of the drives, eq. 55", "s", "N m")

    return Outcome(rows, draw, (10.0, 4.2))


ITEMS: dict[str, Compute] = {
    "khalil/elastic": _elastic,
    "khalil/base-matrices": _base_matrices,
    "khalil/base-inverse": _base_inverse,
    "khalil/base-direct": _base_direct,
    "khalil/eel": _eel,
    "khalil/gough-stewart": _gough_stewart,
    "khalil/fig-4": _structure,
    "khalil/fig-1": drawing.tree_frames,
    "khalil/fig-2": drawing.cut_joint,
    "khalil/fig-3": drawing.link_of_a_tree,
    "khalil/frames": _frames,
    "khalil/cut-joint": _cut_joint,
    "khalil/inverse": _inverse,
    "khalil/matrices": _matrices,
    "khalil/direct": _direct,
    "khalil/five-bar": _five_bar,
}
