"""The Lie-algebra notes: operators, the recursion in two forms, the two-link example, and the structure."""

from collections.abc import Callable
from functools import partial

import numpy as np

from torsor.base.arrays import Array
from torsor.reproduce.equations import lie
from torsor.reproduce.errata.erratum import derivative
from torsor.reproduce.errata.lie import STEP, expansion, lagrange, planar, two_links
from torsor.reproduce.item import Item, Kind, Row, claim, same
from torsor.reproduce.samples import screws
from torsor.robot.load import from_screws


def _operators() -> list[Row]:
    rng, data = np.random.default_rng(1), screws().data
    T1, T2, V = data.M[0], data.M[1], rng.normal(size=6)
    a, b, c = rng.normal(size=(3, 3))
    R, S = T1[:3, :3], lie.skew
    moving, now = T1 @ lie.exp(V, 1j * STEP), lie.Ad(T1)  # along the body velocity V, at t = 0
    transposed = np.block([[-S(V[:3]), -S(V[3:])], [np.zeros((3, 3)), -S(V[:3])]])
    return [
        same("[Ad_T]⁻¹ = [Ad_{T⁻¹}] (3.1)", np.linalg.inv(now), lie.Ad(lie.inverse(T1))),
        same("[ad_V]ᵀ (3.3)", transposed, lie.ad(V).T),
        same("Ad_{T1 T2} = Ad_{T1} Ad_{T2}", lie.Ad(T1) @ lie.Ad(T2), lie.Ad(T1 @ T2)),
        same("[a] b = -[b] a", -S(b) @ a, S(a) @ b),
        same("S(a) S(b) = b aᵀ - (aᵀ b) I", np.outer(b, a) - a @ b * np.eye(3), S(a) @ S(b)),
        same("[R a] = R [a] Rᵀ", R @ S(a) @ R.T, S(R @ a)),
        same("aᵀ[b]c = cᵀ[a]b = bᵀ[c]a", [c @ S(a) @ b, b @ S(c) @ a], 2 * [a @ S(b) @ c]),
        same("d/dt Ad_T = Ad_T ad_V", now @ lie.ad(V), lie.Ad(moving).imag / STEP),
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
    inertia = np.diag([0.01, 0.08, 0.08, 1.0, 1.0, 1.0])
    robot = from_screws(list(data.M), list(data.S), [inertia, inertia], gravity=data.g).to(device="casadi")
    ours = robot.inverse_dynamics(*state)
    torques = lie.components(data, *state).tau
    return [same("τ by 8.1 and 8.2", torques, ours), same("τ of the Lagrangian", lagrange(state), ours)]


def _orders() -> list[Row]:
    data, theta, dtheta = two_links()

    def at(scale: float) -> list[Array]:
        motion = lie.compact(data, theta, scale * dtheta, np.zeros(2))
        return [part for V, Vd in zip(motion.V, motion.Vd, strict=True) for part in (V[:3], V[3:], Vd[:3], Vd[3:])]

    names = [f"{name}_{link}" for link in (1, 2) for name in ("ω", "v", "ω'", "v'")]
    rows = list[Row]()
    for name, once, twice, printed in zip(names, at(1.0), at(2.0), (1, 1, 0, 0, 1, 1, 0, 2), strict=True):
        is_zero = np.linalg.norm(once) < 1e-12
        order = 0.0 if is_zero else round(float(np.log2(np.linalg.norm(twice) / np.linalg.norm(once))), 9)
        what, words = f"order of {name} in θ'", "0 (no accelerations)"
        shown = words if is_zero else f"{order:g}"
        rows.append(claim(what, str(printed or words), shown, order == printed, is_explained=name == "ω'_2"))
    return rows


def _expanded() -> list[Row]:
    """Compare the expansions of section 10 with the two-link recursion without gravity or accelerations."""
    data, theta, dtheta = two_links()
    x, rest, cross, (one, two) = expansion(data, theta), np.zeros(2), np.cross, dtheta
    motion = lie.compact(data, theta, dtheta, rest)
    (w1, _), (w2, v2) = (np.split(V, 2) for V in motion.V)
    powers = {
        "θ'_1²": cross(x.Rz1, cross(x.p, x.Rz1)) + x.R @ cross(x.z1, x.b1),
        "θ'_1 θ'_2": cross(x.Rz1, x.b2) + cross(x.z2, cross(x.p, x.Rz1)) + cross(x.z2, x.R @ x.b1),
        "θ'_2²": cross(x.z2, x.b2),
    }
    # One rate alone, then both: what is left of the product ω × v has both rates.
    rates = {"θ'_1²": (one, 0.0), "θ'_2²": (0.0, two)}
    alone = {name: lie.compact(data, theta, np.array(each), rest).V[1] for name, each in rates.items()}
    ours = {name: cross(V[:3], V[3:]) for name, V in alone.items()}
    ours["θ'_1 θ'_2"] = cross(w2, v2) - sum(ours.values())
    factors = {"θ'_1²": one**2, "θ'_1 θ'_2": one * two, "θ'_2²": two**2}
    I1, I2, m2 = *data.I[:2], data.m[1]
    n2 = one**2 * cross(x.Rz1, I2 @ x.Rz1) + one * two * (cross(x.Rz1, I2 @ x.z2) + cross(x.z2, I2 @ x.Rz1))
    n2 = n2 + two**2 * cross(x.z2, I2 @ x.z2)
    side = one * cross(cross(x.p, x.Rz1) + x.R @ x.b1, x.z2) + two * cross(x.b2, x.z2)
    turned = one * cross(x.Rz1, x.b2) + two * cross(x.z2, x.b2)
    f2 = m2 * (two * (side + turned) + sum(factors[name] * power for name, power in powers.items()))
    rate = two * cross(w2, x.z2)  # ω'_2, which the notes leave out
    vanishing = [x.z1 @ cross(w1, I1 @ w1), x.b1 @ cross(x.z1, x.b1)]
    return [
        same("n_2 = ω_2 × I_2 ω_2 (10.1)", n2, cross(w2, I2 @ w2)),
        same("v_2 × z_2 (10.2)", side, cross(v2, x.z2)),
        same("ω_2 × b_2 (10.2)", turned, cross(w2, x.b2)),
        *(same(f"table of ω_2 × v_2: {name}", factors[name] * powers[name], ours[name]) for name in powers),
        same("τ_2 (10.3)", (n2 + I2 @ rate) @ x.z2 + f2 @ x.b2, motion.tau[1]),
        claim(
            "z_1ᵀ (ω_1 × I_1 ω_1) and b_1ᵀ (z_1 × b_1) (10.5)",
            "0, 0 (the second often)",
            ", ".join(f"{abs(each):.0e}" for each in vanishing),
            bool(np.abs(vanishing).max() < 1e-12),
        ),
    ]


def _structure() -> list[Row]:
    _, robot, (q, v, a) = screws()
    M, C, tau = robot.mass_matrix(q), robot.coriolis_matrix(q, v), robot.inverse_dynamics(q, v, a)
    rate = derivative(lambda t: robot.mass_matrix(q + v * t), 1e-4)
    skew = rate - 2 * C

    def energy(t: float) -> float:
        moved = q + v * t + a * t * t / 2
        return float(robot.kinetic_energy(moved, v + a * t) + robot.potential_energy(moved))

    return [
        same("M = Mᵀ", M.T, M),
        same("M θ'' + C θ' + g = τ", M @ a + C @ v + robot.gravity_force(q), tau),
        same("M' = C + Cᵀ", C + C.T, rate, 1e-9),
        same("M' - 2C is skew", -skew.T, skew, 1e-8),
        claim("θ'ᵀ (M' - 2C) θ' = 0", "0", f"{float(v @ skew @ v):.1e}", abs(float(v @ skew @ v)) < 1e-9),
        same("rate of E = ½ θ'ᵀ M θ' + V is θ'ᵀ τ", tau @ v, derivative(energy, 1e-4), 1e-8, "W"),
    ]


TURNING = "the rate ω'_2 = θ'_2 [ω_2] z_2 is zero only for parallel axes: the misprint lie/section-9.1"
ALGORITHM = Kind.ALGORITHM
compact, components = (partial(_against_library, form) for form in (lie.compact, lie.components))
ITEMS = [
    Item("lie/operators", "Ad, ad and identities", ALGORITHM, "section 3 and appendix", _operators),
    Item("lie/compact", "Newton-Euler with twists and wrenches", ALGORITHM, "section 4", compact),
    Item("lie/components", "Newton-Euler by components", ALGORITHM, "sections 5 to 7", components),
    Item("lie/two-link", "a planar two-link arm", ALGORITHM, "section 8", _two_link),
    Item("lie/orders", "orders of the velocity terms", Kind.TABLE, "section 9.1, tables", _orders, TURNING),
    Item("lie/expansion", "two-link terms by powers of θ'", Kind.TABLE, "section 10, table of 10.2", _expanded),
    Item("lie/structure", "mass matrix, Coriolis matrix, passivity, energy", ALGORITHM, "section 11", _structure),
]
