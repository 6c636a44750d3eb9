"""Hua et al. 2022: rigid and elastic joints with motors on any link, the controller, and the simulation."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from torsor import control, library
from torsor.base.arrays import Array
from torsor.reproduce.documents import drawing
from torsor.reproduce.documents.drawing import curve_panel, curves, tidy
from torsor.reproduce.equations import hua
from torsor.reproduce.errata.hua import library_rows
from torsor.reproduce.item import Compute, Outcome, Row, claim, lacking, number, numbers, only, same
from torsor.reproduce.samples import about_origin, mixed
from torsor.simulation import simulate

# Hua et al. 2022, section IV: the controller, its error equations, and the Lyapunov function along the closed loop.
# The paper prints neither gains nor initial velocities. For either start, three gains are fitted to the errors without
# payload, and the others are chosen.
MOVING, AT_REST = "with the desired velocities", "at rest"  # the first one is assumed in all figures
ALL_GAINS: dict[str, dict[str, Any]] = {
    MOVING: {"K_D": (10.55, 24.05, 4.0), "Lambda": (6.0, 6.0, 9.28), "K_D_motor": 5.0, "Lambda_motor": 10.0},
    AT_REST: {"K_D": (38.0, 33.5, 16.0), "Lambda": (11.05, 11.32, 7.71), "K_D_motor": 20.0, "Lambda_motor": 40.0},
}
GAINS = ALL_GAINS[MOVING]
N, ELASTIC, STIFFNESS = 3, 2, 100.0  # joints, the elastic one, and its spring (N m/rad)


@cache
def law(start: str) -> control.Controller:
    """Return the library controller."""
    return control.mixed(library.elastic_arm(), lambda t: N * [0.5 * ca.sin(0.5 * math.pi * t)], **ALL_GAINS[start])


@cache
def _closed_loop() -> ca.Function:
    """Return sides of eqs. 40, 50 and 52 as functions of (t, q, v), with rates along the library's closed loop."""
    controller = law(MOVING)
    robot, reference = controller.robot, controller.reference
    assert reference is not None
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", N + 1), ca.SX.sym("v", N + 1)
    a = robot.function("forward_dynamics")(q, v, controller.function(t, q, v))
    state, flow = ca.vertcat(t, q, v), ca.vertcat(1, v, a)

    def rate(value: ca.SX) -> ca.SX:
        return ca.jtimes(value, state, flow)

    K_D, Lambda = ca.DM(GAINS["K_D"]), ca.DM(GAINS["Lambda"])
    K_motor, Lambda_motor = GAINS["K_D_motor"], GAINS["Lambda_motor"]
    joints, theta = q[:N], q[N]
    still = ca.vertcat(v[:N], 0)
    M = robot.function("mass_matrix")(q)
    C = robot.function("coriolis_matrix")(q, still)[:N, :N]
    g = robot.function("gravity_force")(q)[:N]
    e = reference.function(t) - joints
    q_r = rate(e) + v[:N] + Lambda * e  # (37)
    sigma = q_r - v[:N]  # (38)
    tau_c = M[:N, :N] @ rate(q_r) + C @ q_r + g + K_D * sigma  # (39), S and C_1 are zero here
    theta_d = tau_c[ELASTIC] / STIFFNESS + joints[ELASTIC]  # (43)
    e_m = theta_d - theta  # (44)
    sigma_m = rate(e_m) + Lambda_motor * e_m + sigma[ELASTIC]  # (47)
    pull = ca.SX.zeros(N)
    pull[ELASTIC] = STIFFNESS * e_m
    load = M[:N, :N] @ rate(sigma) + C @ sigma + K_D * sigma  # (40), left
    motor = ca.vertcat(M[N, N] * rate(sigma_m) + K_motor * sigma_m, -STIFFNESS * e_m)  # (50), both sides
    V = (ca.dot(sigma, M[:N, :N] @ sigma) + 2 * ca.dot(e, Lambda * K_D * e)) / 2  # (41)
    V += (M[N, N] * sigma_m**2 + STIFFNESS * e_m**2) / 2  # (51)
    e_rate = rate(e)
    loss = -ca.dot(e_rate, K_D * e_rate) - ca.dot(e, Lambda * K_D * Lambda * e)
    loss -= K_motor * sigma_m**2 + STIFFNESS * Lambda_motor * e_m**2  # (52)
    return ca.Function("closed_loop", [t, q, v], [load, pull, motor, ca.vertcat(rate(V), loss)])


def stability() -> list[Row]:
    """Compare both sides of eqs. 40, 50 and 52 in random states."""
    closed, rng = _closed_loop(), np.random.default_rng(1)
    samples: list[list[Array]] = []
    for _ in range(3):
        q, v = 0.4 * rng.normal(size=N + 1), 0.5 * rng.normal(size=N + 1)
        samples.append([np.asarray(each, dtype=float).ravel() for each in closed(rng.uniform(0, 5), q, v)])
    load, pull, motor, falls = (np.array(each) for each in zip(*samples, strict=True))
    return [
        same("M σ' + C σ + K_D σ = e_τ, eq. 40", pull, load, unit="N m"),
        same("B σ'_θ + K_Dθ σ_θ = -K e_θ, eq. 50", motor[:, 1], motor[:, 0], unit="N m"),
        same("rate of V_2, eq. 52 (negative)", falls[:, 1], falls[:, 0], unit="W"),
    ]


STEP, SECONDS = 1e-3, 10.0
JOINTS = (0.0, 0.0, -0.4363)  # initial angles
# Vertical force (N) on the tip. With the sign of the paper's equations, its payload pushes upwards.
LOADS = {"no payload": 0.0, "payload": 3.0, "payload as a weight": -3.0}
RMS = {"no payload": ("0.0026819", "0.003619", "0.052678"), "payload": ("0.0026903", "0.0061066", "0.052422")}


def _recursion() -> list[Row]:
    data, robot, joints, motors = mixed()
    torques = hua.inverse_dynamics(data, *joints, *motors)
    wrenches = robot.joint_wrenches(*mixed().state)
    return [
        same("load and motor rows, eqs. 27 to 29", hua.rows(data, torques), library_rows(), unit="N m"),
        same("forces f_b, eq. 19", torques.f_b, wrenches[:, 3:], unit="N"),
        same("moments τ_b, eq. 25", torques.tau_b, wrenches[:, :3], unit="N m"),
    ]


def _forward() -> list[Row]:
    data, robot, (q, v, _), (theta, w, _) = mixed()
    elastic, tau = data.K > 0, np.array([3.0, -1.0, 2.0, 0.5])
    A, zeta, accelerations = hua.forward_dynamics(data, q, v, theta, w, tau)
    state = np.r_[q, theta[elastic]], np.r_[v, w[elastic]]
    forces = np.r_[np.where(elastic, 0.0, tau), tau[elastic]]
    bias = robot.bias_force(*state) - np.where(np.arange(robot.nv) < len(q), robot.spring_force(state[0]), 0.0)
    f_e, tau_e, friction = np.array([1.0, -2.0, 3.0]), np.array([0.3, 0.2, -0.4]), -0.4 * state[1]
    loaded = hua.forward_dynamics(data, q, v, theta, w, tau, f_e, tau_e, friction)[2]
    external = np.zeros((len(robot.links), 6))
    external[len(q) - 1] = -np.concatenate([tau_e + np.cross(data.r_tip, f_e), f_e])  # on the last link, at O_N
    ours = robot.forward_dynamics(*state, forces + friction, external=external)
    return [
        same("A, eqs. 34, 35", A, robot.mass_matrix(state[0])),
        same("ζ, eqs. 32, 33", zeta, bias),
        same("accelerations, eq. 36", accelerations, robot.forward_dynamics(*state, forces), 1e-10),
        same("accelerations with friction and a load f_e, τ_e at the tip", loaded, ours, 1e-10),
    ]


class Motion(NamedTuple):
    """Simulated motions: times (T,), q, v and tau (loads, T, 4), the desired angles (T, 3), RMS errors (loads, 3)."""

    times: Array
    q: Array
    v: Array
    tau: Array
    q_d: Array
    rms: Array


@cache
def run(start: str) -> Motion:
    """Return the 10 s motions without and with a payload that the controller does not model.

    At the start, the spring holds link 3 against gravity.
    """
    robot, loads = law(start).robot, np.array(list(LOADS.values()))
    arm = robot.places["tip"].pose[:3, 3]

    def push(t: float, q: Array, v: Array) -> Array:
        force = robot.pose(q, "tip")[:, 2, :3] * loads[:, None]  # base z in the tip's axes, which are the link's
        external = np.zeros((len(loads), len(robot.links), 6))
        external[:, -1] = np.concatenate([np.cross(arm, force), force], axis=1)
        return external

    held = JOINTS[ELASTIC] + float(robot.gravity_force([*JOINTS, JOINTS[ELASTIC]])[ELASTIC]) / STIFFNESS
    q0, v0 = np.array([*JOINTS, held]), np.full(N + 1, 0.25 * math.pi if start == MOVING else 0.0)
    settings: dict[str, Any] = {"duration": SECONDS, "step": STEP, "control_period": STEP}
    trajectory = simulate(robot, np.tile(q0, (len(loads), 1)), v0, controller=law(start), external=push, **settings)
    reference = law(start).reference
    assert reference is not None
    q_d = np.asarray(reference(trajectory.times)[0])
    rms = np.sqrt(np.mean((trajectory.q[:, :, :3] - q_d) ** 2, axis=1))
    return Motion(trajectory.times, trajectory.q, trajectory.v, trajectory.tau, q_d, rms)


def _table() -> list[Row]:
    links = library.elastic_arm().links
    printed = (
        ("2.5", ("0.4", "0.5", "0.4", "0", "0", "0")),
        ("1.5", ("0.35", "0.4", "0.3", "0.15", "0.1", "0.2")),
        ("1.0", ("0.3", "0.25", "0.25", "0.15", "0.13", "0.2")),
    )
    rows = list[Row]()
    for k, (mass, moments) in enumerate(printed[1:], start=1):
        J = np.asarray(links[k].inertia)
        ours = [links[k].mass, *np.diag(J), J[0, 1], J[0, 2], J[1, 2]]
        rows.append(numbers(f"link {k + 1}: m, Ixx, Iyy, Izz, Ixy, Ixz, Iyz", [mass, *moments], ours, "kg, kg m²"))
    rows.append(numbers("link 1 with two motors of 1 kg: m", ["4.5"], [links[0].mass], "kg"))
    # Link 1 consists of a body and two motors at O_2. The contribution of the motors is known; the rest is printed.
    centre, motors = np.array([0.0, 0.15, 0.0]), np.array([0.0, 0.3, 0.0])
    J = np.asarray(links[0].inertia) - 2 * np.diag([0.006, 0.006, 0.004])
    for mass_, place in ((2.5, centre), (1.0, motors), (1.0, motors)):
        far = place - np.asarray(links[0].com)
        J = J - mass_ * (far @ far * np.eye(3) - np.outer(far, far))
    rows.append(numbers("link 1: Ixx, Iyy, Izz", printed[0][1][:3], np.diag(J).round(12), "kg m²"))
    # The bevel arm has motor 3 on link 2: the difference of the first links is this motor at O_2.
    column = library.bevel_elastic_arm().links[0]  # with motor 2 alone
    with_, without = (about_origin(each.mass, each.com, each.inertia) for each in (links[0], column))
    motor = with_ - without - motors @ motors * np.eye(3) + np.outer(motors, motors)
    ours = [links[0].mass - column.mass, *np.diag(motor).round(12)]
    rows.append(numbers("motor: m, Ixx, Iyy, Izz", ["1.0", "0.006", "0.006", "0.004"], ours, "kg, kg m²"))
    rotors = [float(library.elastic_arm().mass_matrix(np.zeros(4))[3, 3]) / 100]  # a gear of 10
    rows.append(numbers("rotor of motor 3: Izz", ["0.004"], np.round(rotors, 12), "kg m²"))
    return rows


def _settings() -> list[Row]:
    """Compare the numbers of section V with the robot of the library."""
    robot = library.elastic_arm()
    carriers = ["" if joint.motor is None else joint.motor.carrier for joint in robot.joints]
    is_held = carriers == ["base", "link1", "link1"]
    soft = robot.elastic[0].motor
    assert soft is not None and not isinstance(soft.stiffness, str | None)
    return [
        number("degrees of freedom", "3", robot.nv - len(robot.elastic)),
        claim("elastic joint", "the last one", robot.elastic[0].name, robot.elastic[0] is robot.joints[-1]),
        number("stiffness of joint 3 (printed in N/m)", "100", soft.stiffness, "N m/rad"),
        claim("carriers of motors 1, 2, 3", "the base, link 1, link 1", ", ".join(carriers), is_held),
        only("used as printed", "angles 0.5 sin(0.5 π t), start at 0, 0, -0.4363 rad, payload -3 N, 10 s"),
    ]


def _joints(case: str, name: str) -> Outcome:
    motion, k = run(MOVING), list(LOADS).index(case)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        curves(axes, motion.times, motion.q[k, :, :3], ("joint 1", "joint 2", "joint 3"))
        axes.plot(motion.times, motion.q_d[:, 0], "k--", linewidth=0.9, label="desired")
        tidy(axes, f"{name}: angles of the joints, {case}", "s", "rad")

    rows = [
        lacking(f"RMS error of joint {j + 1}", f"{printed} rad", f"{value:.4g} rad")
        for j, (printed, value) in enumerate(zip(RMS[case], motion.rms[k], strict=True))
    ]
    if case == "payload":
        weight = ", ".join(f"{error:.5f}" for error in motion.rms[list(LOADS).index("payload as a weight")])
        rows.append(only("RMS errors if the payload is a weight of 3 N", f"{weight} rad"))
    return Outcome(rows, draw)


def _motor(case: str, name: str) -> Outcome:
    motion, k = run(MOVING), list(LOADS).index(case)
    late = np.flatnonzero(motion.times > 2.0)[::50]
    closed = _closed_loop().map(len(late))
    pull = closed(motion.times[late], motion.q[k, late].T, motion.v[k, late].T)[1].full()
    away = float(np.abs(pull).max()) / STIFFNESS  # of the motor from its desired position, eq. 44
    words = f"within {math.ceil(1e3 * away) / 1e3:g} rad"
    title = f"{name}: angle of the elastic joint's motor, {case}"
    draw = curve_panel(title, "rad", motion.times, motion.q[k][:, [3, 2]], ("motor of joint 3", "joint 3"))
    what, printed = "error of motor 3 after 2 s (eqs. 43, 44)", "tracks the desired motor position"
    return Outcome([claim(what, printed, words, away < 0.1)], draw)


def _torques(case: str, name: str) -> Outcome:
    motion, k = run(MOVING), list(LOADS).index(case)
    early, late = motion.times < 0.5, motion.times > 2.0
    tau = motion.tau[k][:, [0, 1, 3]]
    first, then = float(np.abs(tau[early, 2]).max()), float(np.abs(tau[late, 2]).max())
    words = f"{first:.0f} N m, later {then:.1f} N m"
    rows = [claim("initial torque of motor 3", "large oscillation", words, first > 3 * then)]
    if case == "payload":
        at = int(np.argmin(np.abs(motion.times - 3.0)))
        bare, weight = (motion.tau[j, at, 1] for j in (0, list(LOADS).index("payload as a weight")))
        words = f"{abs(tau[at, 1]):.2f} N m, without payload {abs(bare):.2f} N m "
        words += f"(payload as a weight: {abs(weight):.2f} N m)"
        what, printed = "torque of motor 2 at 3 s (lowest position)", "lower with the payload"
        rows.append(claim(what, printed, words, abs(tau[at, 1]) < abs(bare)))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        curves(axes, motion.times, tau, ("motor 1", "motor 2", "motor 3"))
        tidy(axes, f"{name}: torques of the motors, {case}", "s", "N m")

    return Outcome(rows, draw)


def _starts() -> Outcome:
    """Compare two starts with the paper's statements about the initial torques, and with its errors."""
    rows = list[Row]()
    for start in ALL_GAINS:
        motion = run(start)
        tau = np.abs(motion.tau[0][:, [0, 1, 3]])
        first, later = tau[motion.times < 0.5].max(axis=0), tau[motion.times > 2.0].max(axis=0)
        large = [str(j + 1) for j in range(N) if first[j] > 2 * later[j]]
        values = [", ".join(f"{x:.3g}" for x in each) for each in (first, later)]
        what = f"large initial torques, {start}"
        which = f"motor{'s' if len(large) > 1 else ''} {', '.join(large)}"
        words = f"{which}; motors 1 to {N}: {values[0]} N m, later {values[1]} N m"
        rows.append(claim(what, "motor 3", words, large == ["3"]) if start == MOVING else only(what, words))
        ours = ", ".join(f"{each:.3g}" for each in motion.rms[list(LOADS).index("payload")])
        rows.append(lacking(f"RMS errors with payload, {start}", f"{', '.join(RMS['payload'])} rad", f"{ours} rad"))

    def draw(figure: Any) -> None:
        for axes, start in zip(figure.subplots(1, 2), ALL_GAINS, strict=True):
            shown = run(start).times <= 1.0
            names = ("motor 1", "motor 2", "motor 3")
            curves(axes, run(start).times[shown], run(start).tau[0][shown][:, [0, 1, 3]], names)
            tidy(axes, f"torques of the motors, start {start}", "s", "N m")

    return Outcome(rows, draw, (11.0, 4.0))


FIGURES: tuple[Callable[[str, str], Outcome], ...] = (_joints, _motor, _torques)
ITEMS: dict[str, Compute] = {
    "hua/fig-1": drawing.drives,
    "hua/fig-2": drawing.unified_body,
    "hua/algorithm-1": _recursion,
    "hua/algorithm-2": _forward,
    "hua/controller": stability,
    "hua/table-1": _table,
    "hua/start": _starts,
    "hua/simulation": _settings,
    **{
        f"hua/fig-{first + k}": partial(make, case, f"Fig. {first + k}")
        for first, case in ((3, "no payload"), (6, "payload"))
        for k, make in enumerate(FIGURES)
    },
}
