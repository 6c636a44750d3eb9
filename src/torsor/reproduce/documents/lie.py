"""The Lie-algebra notes: operators, the recursion in two forms, the example of two links, and the structure."""

import numpy as np

from torsor.arrays import Array
from torsor.reproduce.equations import lie
from torsor.reproduce.errata.lie import STEP, lagrange, planar
from torsor.reproduce.item import Item, Kind, Outcome, Row, claim, same
from torsor.reproduce.samples import screws
from torsor.robot.load import from_screws


def _operators() -> Outcome:
    rng, data = np.random.default_rng(1), screws().data
    T1, T2, V = data.M[0], data.M[1], rng.normal(size=6)
    a, b, c = rng.normal(size=(3, 3))
    R, S = T1[:3, :3], lie.skew
    moving, now = T1 @ lie.exp(V, 1j * STEP), lie.Ad(T1)  # along the body velocity V, at t = 0
    transposed = np.block([[-S(V[:3]), -S(V[3:])], [np.zeros((3, 3)), -S(V[:3])]])
    return Outcome(
        [
            same("[Ad_T]⁻¹ = [Ad_{T⁻¹}] (3.1)", np.linalg.inv(now), lie.Ad(lie.inverse(T1))),
            same("[ad_V]ᵀ (3.3)", transposed, lie.ad(V).T),
            same("Ad_{T1 T2} = Ad_{T1} Ad_{T2}", lie.Ad(T1) @ lie.Ad(T2), lie.Ad(T1 @ T2)),
            same("[a] b = -[b] a", -S(b) @ a, S(a) @ b),
            same("S(a) S(b) = b aᵀ - (aᵀ b) I", np.outer(b, a) - a @ b * np.eye(3), S(a) @ S(b)),
            same("[R a] = R [a] Rᵀ", R @ S(a) @ R.T, S(R @ a)),
            same("aᵀ[b]c = cᵀ[a]b = bᵀ[c]a", [c @ S(a) @ b, b @ S(c) @ a], 2 * [a @ S(b) @ c]),
            same("d/dt Ad_T = Ad_T ad_V", now @ lie.ad(V), lie.Ad(moving).imag / STEP),
        ]
    )


def _against_library(found: lie.Motion) -> list[Row]:
    _, robot, (q, v, a) = screws()
    gravity = np.asarray(robot.gravity)
    V, R = robot.velocities(q, v), robot.poses(q)[:, :3, :3]
    rate = np.array(robot.accelerations(q, v, a))
    rate[:, 3:] -= np.cross(V[:, :3], V[:, 3:]) + gravity @ R  # V' is the rate of components, from -g
    return [
        same("joint torques τ", found.tau, robot.inverse_dynamics(q, v, a), unit="N m, N"),
        same("wrenches F_i", found.F, robot.joint_wrenches(q, v, a)),
        same("twists V_i", found.V, V),
        same("their rates V'_i", found.Vd, rate),
    ]


def _compact() -> Outcome:
    data, _, state = screws()
    return Outcome(_against_library(lie.compact(data, *state)))


def _components() -> Outcome:
    data, _, state = screws()
    return Outcome(_against_library(lie.components(data, *state)))


def _two_link() -> Outcome:
    data, state = planar()
    inertia = np.diag([0.01, 0.08, 0.08, 1.0, 1.0, 1.0])
    robot = from_screws(list(data.M), list(data.S), [inertia, inertia], gravity=data.g).to(device="casadi")
    ours = robot.inverse_dynamics(*state)
    found = lie.components(data, *state).tau
    return Outcome([same("τ by 8.1 and 8.2", found, ours), same("τ of the Lagrangian", lagrange(state), ours)])


def _orders() -> Outcome:
    data, _, (theta, dtheta, _) = screws()
    data = data._replace(S=data.S[[0, 2]], M=data.M[:2], m=data.m[:2], I=data.I[:2], g=np.zeros(3))
    rest = np.zeros(2)

    def at(scale: float) -> dict[str, Array]:
        found = lie.compact(data, theta[:2], scale * dtheta[:2], rest)
        parts = (found.V[0, :3], found.V[0, 3:], found.V[1, :3], found.V[1, 3:], found.Vd[1, 3:])
        return dict(zip(("ω_1", "v_1", "ω_2", "v_2", "v'_2"), parts, strict=True))

    once, twice, rows = at(1.0), at(2.0), []
    for name, printed in (("ω_1", 1), ("v_1", 1), ("ω_2", 1), ("v_2", 1), ("v'_2", 2)):
        order = round(float(np.log2(np.linalg.norm(twice[name]) / np.linalg.norm(once[name]))), 9)
        rows.append(claim(f"order of {name} in θ'", str(printed), f"{order:g}", order == printed))
    return Outcome(rows)


def _structure() -> Outcome:
    _, robot, (q, v, a) = screws()
    M, C, tau = robot.mass_matrix(q), robot.coriolis_matrix(q, v), robot.inverse_dynamics(q, v, a)
    h = 1e-4

    def central(function: object) -> Array:
        at = [np.asarray(function(k * h)) for k in (-2, -1, 1, 2)]  # type: ignore[operator]
        return np.asarray((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h))

    rate = central(lambda t: robot.mass_matrix(q + v * t))
    skew = rate - 2 * C

    def energy(t: float) -> float:
        moved = q + v * t + a * t * t / 2
        return float(robot.kinetic_energy(moved, v + a * t) + robot.potential_energy(moved))

    return Outcome(
        [
            same("M = Mᵀ", M.T, M),
            same("M θ'' + C θ' + g = τ", M @ a + C @ v + robot.gravity_force(q), tau),
            same("M' = C + Cᵀ", C + C.T, rate, 1e-9),
            same("M' - 2C is skew", -skew.T, skew, 1e-8),
            claim("θ'ᵀ (M' - 2C) θ' = 0", "0", f"{float(v @ skew @ v):.1e}", abs(float(v @ skew @ v)) < 1e-9),
            same("rate of E = ½ θ'ᵀ M θ' + V is θ'ᵀ τ", tau @ v, central(energy), 1e-8, "W"),
        ]
    )


ALGORITHM = Kind.ALGORITHM
ITEMS = [
    Item("lie/operators", "Ad, ad and identities", ALGORITHM, "section 3 and appendix", _operators),
    Item("lie/compact", "Newton-Euler in twists and wrenches", ALGORITHM, "section 4", _compact),
    Item("lie/components", "Newton-Euler in components", ALGORITHM, "sections 5 to 7", _components),
    Item("lie/two-link", "a planar arm of two links", ALGORITHM, "section 8", _two_link),
    Item("lie/orders", "orders of the terms in the velocities", Kind.TABLE, "section 9.1, tables", _orders),
    Item("lie/structure", "mass matrix, Coriolis matrix, passivity, energy", ALGORITHM, "section 11", _structure),
]
