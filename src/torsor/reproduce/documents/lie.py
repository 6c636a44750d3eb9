"""The Lie-algebra notes: operators, the recursion in two forms, the two-link example, and the structure."""

from collections.abc import Callable
from functools import partial

import numpy as np

from torsor import spatial
from torsor.base.arrays import Array
from torsor.reproduce.equations import lie
from torsor.reproduce.errata.erratum import derivative
from torsor.reproduce.errata.lie import expansion, lagrange, planar, two_links
from torsor.reproduce.item import BY_DIFFERENCES, ROUNDING, Compute, Row, claim, number, same, zero
from torsor.reproduce.samples import screws
from torsor.robot.load import from_screws
from torsor.robot.robot import Robot


def _operators() -> list[Row]:
    rng, data = np.random.default_rng(1), screws().data
    T1, T2, (V, F) = data.M[0], data.M[1], rng.normal(size=(2, 6))
    a, b, c = rng.normal(size=(3, 3))
    R, S = T1[:3, :3], lie.skew
    w, v, (n, f) = S(V[:3]), S(V[3:]), np.split(F, 2)
    rate = derivative(lambda t: spatial.adjoint(T1 @ spatial.exp_se3(V * t)), 1e-3)  # along the body velocity V
    return [
        same("[Ad_T]⁻¹ = [Ad_{T⁻¹}] (3.1)", np.linalg.inv(lie.Ad(T1)), spatial.adjoint(spatial.inverse_pose(T1))),
        same("[ad_V] (3.2)", lie.ad(V), spatial.ad(V)),
        same("[ad_V]ᵀ (3.3)", np.block([[-w, -v], [np.zeros((3, 3)), -w]]), spatial.ad(V).T),
        same("ad_Vᵀ(F) (3.3)", np.concatenate([-w @ n - v @ f, -w @ f]), spatial.ad(V).T @ F),
        same("Ad_{T1 T2} = Ad_{T1} Ad_{T2}", lie.Ad(T1) @ lie.Ad(T2), spatial.adjoint(T1 @ T2)),
        same("[a] b = -[b] a", -S(b) @ a, spatial.cross(a, b)),
        same("[a][b] = b aᵀ - (aᵀ b) I", np.outer(b, a) - a @ b * np.eye(3), spatial.skew(a) @ spatial.skew(b)),
        same("[R a] = R [a] Rᵀ", R @ S(a) @ R.T, spatial.skew(R @ a)),
        same("aᵀ[b]c = cᵀ[a]b = bᵀ[c]a", [c @ S(a) @ b, b @ S(c) @ a], 2 * [a @ spatial.cross(b, c)]),
        same("d/dt Ad_T = Ad_T ad_V (finite differences)", lie.Ad(T1) @ lie.ad(V), rate, BY_DIFFERENCES),
    ]


def _against_library(form: Callable[..., lie.Motion]) -> list[Row]:
    data, robot, (q, v, a) = screws()
    motion, gravity = form(data, q, v, a), np.asarray(robot.gravity)
    V, R = robot.velocities(q, v), robot.poses(q)[:, :3, :3]
    rate = np.array(robot.accelerations(q, v, a))
    rate[:, 3:] -= np.cross(V[:, :3], V[:, 3:]) + gravity @ R  # V' is the rate of components, from -g
    return [
        same("joint torques τ", motion.tau, robot.inverse_dynamics(q, v, a), unit="N m, N"),
        same("wrenches F_i", motion.F, robot.joint_wrenches(q, v, a)),
        same("twists V_i", motion.V, V),
        same("their rates V'_i", motion.Vd, rate),
    ]


def _two_link() -> list[Row]:
    data, state = planar()
    ours = _robot(data).inverse_dynamics(*state)
    torques = lie.components(data, *state).tau
    return [same("τ by 8.1 and 8.2", torques, ours), same("τ of the Lagrangian", lagrange(state), ours)]


def _robot(data: lie.Robot) -> Robot:
    """Return the library robot of a chain described by screws."""
    none = np.zeros((3, 3))
    G = [np.block([[J, none], [none, m * np.eye(3)]]) for m, J in zip(data.m, data.I, strict=True)]
    return from_screws(list(data.M), list(data.S), G, gravity=data.g).to(device="casadi")


def _rates(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the library's twists V_i and their rates V'_i, without joint accelerations or gravity."""
    V = robot.velocities(q, v)
    rate = np.array(robot.accelerations(q, v, 0 * v))
    rate[:, 3:] -= np.cross(V[:, :3], V[:, 3:])  # V' is the rate of components
    return V, rate


def _orders() -> list[Row]:
    data, theta, dtheta = two_links()
    flat = planar()[0]._replace(g=np.zeros(3))  # parallel axes
    names = [f"{name}_{link}" for link in (1, 2) for name in ("ω", "v", "ω'", "v'")]

    def at(data: lie.Robot, scale: float) -> dict[str, Array]:
        V, rate = _rates(_robot(data), theta, scale * dtheta)
        return dict(zip(names, np.concatenate([V, rate], axis=1).reshape(8, 3), strict=True))

    once, twice, parallel = at(data, 1.0), at(data, 2.0), at(flat, 1.0)
    rows = list[Row]()
    for name, printed in zip(names, ("1", "1", "0", "0", "1", "1", "0", "2"), strict=True):
        if printed == "0" and name != "ω'_2":
            rows.append(zero(f"{name} if θ'' = 0", once[name]))
            continue
        order = round(float(np.log2(np.linalg.norm(twice[name]) / np.linalg.norm(once[name]))), 9)
        if printed != "0":
            rows.append(number(f"order in θ', {name}", printed, order))
            continue
        is_zero, vanishes = (bool(np.linalg.norm(each[name]) < ROUNDING) for each in (once, parallel))
        rows.append(claim(f"{name} if θ'' = 0", "0", f"of order {order:g} in θ'", is_zero, predicted=vanishes))
    return rows


def _expanded() -> list[Row]:
    """Compare the expansions of section 10 with the library's two-link arm without gravity or accelerations."""
    data, theta, dtheta = two_links()
    x, rest, cross, (one, two) = expansion(data, theta), np.zeros(2), np.cross, dtheta
    robot, I2, m2 = _robot(data), data.I[1], data.m[1]
    (_, V2), (_, rate) = _rates(robot, theta, dtheta)
    w2, v2 = V2[:3], V2[3:]
    moment, force = np.split(robot.joint_wrenches(theta, dtheta, rest)[1], 2)
    powers = {
        "θ'_1²": cross(x.Rz1, cross(x.p, x.Rz1)) + x.R @ cross(x.z1, x.b1),
        "θ'_1 θ'_2": cross(x.Rz1, x.b2) + cross(x.z2, cross(x.p, x.Rz1)) + cross(x.z2, x.R @ x.b1),
        "θ'_2²": cross(x.z2, x.b2),
    }
    # Set one rate at a time, then both: the remaining part of the product ω × v contains both rates.
    rates = {"θ'_1²": (one, 0.0), "θ'_2²": (0.0, two)}
    alone = {name: robot.velocities(theta, np.array(each))[1] for name, each in rates.items()}
    ours = {name: cross(V[:3], V[3:]) for name, V in alone.items()}
    ours["θ'_1 θ'_2"] = cross(w2, v2) - sum(ours.values())
    factors = {"θ'_1²": one**2, "θ'_1 θ'_2": one * two, "θ'_2²": two**2}
    n2 = one**2 * cross(x.Rz1, I2 @ x.Rz1) + one * two * (cross(x.Rz1, I2 @ x.z2) + cross(x.z2, I2 @ x.Rz1))
    n2 = n2 + two**2 * cross(x.z2, I2 @ x.z2)
    side = one * cross(cross(x.p, x.Rz1) + x.R @ x.b1, x.z2) + two * cross(x.b2, x.z2)
    turned = one * cross(x.Rz1, x.b2) + two * cross(x.z2, x.b2)
    f2 = m2 * (two * (side + turned) + sum(factors[name] * power for name, power in powers.items()))
    left_out = two * cross(one * x.Rz1 + two * x.z2, x.z2)  # ω'_2
    moment_2 = n2 + I2 @ left_out
    n1, f1 = x.R.T @ (moment_2 - cross(x.p, f2)), x.R.T @ f2  # 10.4, of link 2 alone: with the frames of 6.2 corrected
    torques = robot.inverse_dynamics(theta, dtheta, rest)
    return [
        same("n_2 = ω_2 × I_2 ω_2 (10.1)", n2, moment - I2 @ rate[:3]),
        same("v_2 × z_2 (10.2)", side, cross(v2, x.z2)),
        same("ω_2 × b_2 (10.2)", turned, cross(w2, x.b2)),
        *(same(f"table of ω_2 × v_2, {name}", factors[name] * powers[name], ours[name]) for name in powers),
        same("f_2 (10.2)", f2, force),
        same("τ_2 (10.3)", moment_2 @ x.z2 + f2 @ x.b2, torques[1]),
        same("τ_1 without the terms that cancel (10.5)", n1 @ x.z1 + f1 @ x.b1, torques[0]),
    ]


def _structure() -> list[Row]:
    data, robot, (q, v, a) = screws()
    M, C, tau = robot.mass_matrix(q), robot.coriolis_matrix(q, v), robot.inverse_dynamics(q, v, a)
    light = data._replace(g=np.zeros(3))
    columns = [lie.compact(light, q, 0 * v, unit).tau for unit in np.eye(len(q))]
    rate = derivative(lambda t: robot.mass_matrix(q + v * t), 1e-4)
    skew, size = rate - 2 * C, float(np.abs(rate).max())
    positive = int((np.linalg.eigvalsh(M) > 0).sum())

    def energy(t: float) -> float:
        moved = q + v * t + a * t * t / 2
        return float(robot.kinetic_energy(moved, v + a * t) + robot.potential_energy(moved))

    return [
        same("M θ'' of section 4 for unit θ''", np.array(columns).T, M),
        zero("M - Mᵀ", M - M.T, float(np.abs(M).max())),
        claim("M is positive definite", "yes", f"{positive} of {len(q)} eigenvalues are positive", positive == len(q)),
        same("M θ'' + C θ' + g = τ", lie.compact(data, q, v, a).tau, M @ a + C @ v + robot.gravity_force(q)),
        same("finite differences, M' = C + Cᵀ", C + C.T, rate, BY_DIFFERENCES),
        zero("finite differences, symmetric part of M' - 2C", skew + skew.T, size, BY_DIFFERENCES),
        zero("finite differences, θ'ᵀ (M' - 2C) θ'", v @ skew @ v, size, BY_DIFFERENCES),
        same("E' = θ'ᵀ τ with E = ½ θ'ᵀ M θ' + V", tau @ v, derivative(energy, 1e-4), BY_DIFFERENCES, "W"),
    ]


compact, components = (partial(_against_library, form) for form in (lie.compact, lie.components))


ITEMS: dict[str, Compute] = {
    "lie/operators": _operators,
    "lie/compact": compact,
    "lie/components": components,
    "lie/two-link": _two_link,
    "lie/orders": _orders,
    "lie/expansion": _expanded,
    "lie/structure": _structure,
}
