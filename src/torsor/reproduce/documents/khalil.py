"""Khalil 2010: trees, closed loops, parallel robots, elastic joints, and a base that moves.

The paper prints equations and no numbers: they are evaluated as printed (corrected) and compared with the library.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from torsor import library
from torsor.base.arrays import Array
from torsor.formats import MDHLink
from torsor.reproduce.documents import sketches
from torsor.reproduce.documents.drawing import curves, tidy
from torsor.reproduce.equations import khalil
from torsor.reproduce.equations import khalil_recursive as recursive
from torsor.reproduce.errata.khalil import five_bar as five_bar_at_a_state
from torsor.reproduce.item import Item, Kind, Outcome, same
from torsor.reproduce.samples import tree
from torsor.robot.load import from_mdh
from torsor.robot.robot import Robot

ROTORS = (0.01, 0.0, 0.02, 0.0)  # of the five-bar of the library


# Trees


def _frames() -> Outcome:
    data, robot, (q, _, _), *_ = tree()
    found: list[Array] = []
    for j, (R, P) in enumerate(khalil.placements(data, q)):
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = R, P
        i = data.antecedent[j]
        found.append(step if i < 0 else found[i] @ step)
    return Outcome([same("⁰T_j of all links, eq. 1", found, robot.poses(q))])


def _inverse() -> Outcome:
    data, robot, state, fe, me, *_ = tree()
    Gamma, f, m = khalil.inverse_dynamics(data, *state, fe, me)
    wrenches = robot.joint_wrenches(*state, external=tree().external)
    return Outcome(
        [
            same("Γ, eq. 31", Gamma, robot.inverse_dynamics(*state, external=tree().external), unit="N m, N"),
            same("f_j, eqs. 26 to 29", f, wrenches[:, 3:], unit="N"),
            same("m_j, eqs. 27 to 30", m, wrenches[:, :3], unit="N m"),
        ]
    )


def _of_lagrangian(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """Return d/dt (dL/dq') - dL/dq from the energies of a robot, by fourth-order differences along the motion."""
    h, weights = 1e-3, {-2: 1.0, -1: -8.0, 1: 8.0, 2: -1.0}

    def difference(function: Callable[[float], Array]) -> Array:
        return np.asarray(sum(weight * function(k * h) for k, weight in weights.items()) / (12 * h))

    def momentum(t: float) -> Array:
        return np.asarray(robot.mass_matrix(q + v * t + a * t * t / 2) @ (v + a * t))

    def lagrangian(where: Array) -> Array:
        return np.asarray(robot.kinetic_energy(where, v) - robot.potential_energy(where))

    along = [difference(lambda t, unit=unit: lagrangian(q + t * unit)) for unit in np.eye(len(q))]  # type: ignore[misc]
    return difference(momentum) - np.array(along)


def _matrices() -> Outcome:
    data, robot, (q, v, a), fe, me, *_ = tree()
    A, H = khalil.direct_model(data, q, v, fe, me)
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    loads = robot.inverse_dynamics(q, v, 0 * a, external=tree().external)
    free = robot.inverse_dynamics(q, v, a) - data.Fs * np.sign(v) - data.Fv * v  # neither loads nor friction
    return Outcome(
        [
            same("Γ of the Lagrangian, eq. 6, by differences", _of_lagrangian(robot, q, v, a), free, 1e-8, "N m, N"),
            same("A, section 3.3.1", A, robot.mass_matrix(q)),
            same("H, section 3.3.1", H, loads),
            same("Γ = A q'' + H, eq. 7", A @ a + H, Gamma),
            same("q'' = A⁻¹ (Γ - H), eq. 8", np.linalg.solve(A, Gamma - H), a),
        ]
    )


def _direct() -> Outcome:
    data, robot, (q, v, a), *_ = tree()
    Gamma = robot.inverse_dynamics(q, v, a, external=tree().external)
    found = recursive.direct_dynamics(data, q, v, Gamma, tree().wrenches)
    moments, forces = np.hsplit(robot.joint_wrenches(q, v, a, external=tree().external), 2)
    return Outcome(
        [
            same("q'', eq. 41", found.qdd, robot.forward_dynamics(q, v, Gamma, external=tree().external)),
            same("reactions, eq. 42", found.f, np.hstack([forces, moments])),
        ]
    )


# Closed loops


def _cut_joint() -> Outcome:
    """Describe the five-bar by the rows of a table, two for the cut joint, and compare it with that of the library."""
    robot = library.five_bar()
    q = robot.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.33])
    rows = [
        MDHLink(
            parent,
            d=d,
            mass=link.mass,
            com=link.com,
            inertia=link.inertia,
            active=k % 2 == 0,
            rotor_inertia=rotor,
        )
        for k, (parent, d, link, rotor) in enumerate(
            zip((-1, 0, -1, 2), (0, 0.3, 0.35, 0.3), robot.links, ROTORS, strict=True)
        )
    ]
    rows += [MDHLink(1, d=0.4, joint=0, closes=5), MDHLink(3, d=0.4, joint=2)]  # frames k and k + B
    table = from_mdh(rows, gravity=robot.gravity).to(device="casadi")
    frame = np.array([0.4, 0.0, 0.0, 1.0])
    ends = [table.poses(q)[k] @ frame for k in (1, 3)]
    rates = [_rates(table, q, k) for k in (1, 3)]
    v = robot.constrained_velocities(q, [0.8, -0.5])
    return Outcome(
        [
            same("O_k is O_{k+B}, eq. 3", ends[0], ends[1], 1e-10),
            same("J_k q' = J_{k+B} q', eq. 4", rates[0] @ v, rates[1] @ v, 1e-10),
            same(
                "forces of table and library",
                table.inverse_dynamics(q, v, 0 * v, loops="open"),
                robot.inverse_dynamics(q, v, 0 * v, loops="open"),
            ),
        ]
    )


def _rates(robot: Robot, q: Array, link: int) -> Array:
    """Return the Jacobian of the far end of a link (0.4 m along x), in base axes."""
    J, R = robot.jacobian(q, link), robot.poses(q)[link, :3, :3]
    lever = np.array([0.4, 0.0, 0.0])
    return np.asarray(R @ (J[3:] + np.cross(J[:3].T, lever).T))


@cache
def _five_bar_motion() -> tuple[Array, Array, Array, Robot]:
    robot = library.five_bar()
    t = np.linspace(0.0, 2.0, 201)
    angles = np.array([2.0, 1.1]) + 0.3 * np.stack([np.sin(np.pi * t), 1 - np.cos(np.pi * t)], axis=1)
    v = 0.3 * np.pi * np.stack([np.cos(np.pi * t), np.sin(np.pi * t)], axis=1)
    a = 0.3 * np.pi**2 * np.stack([-np.sin(np.pi * t), np.cos(np.pi * t)], axis=1)
    q = robot.assemble(angles, guess=[2.0, -1.3, 1.1, 1.33])
    return t, q, robot.constrained_inverse_dynamics(q, v, a), robot


def _five_bar() -> Outcome:
    truth, of_tree, G, drives, passive = five_bar_at_a_state()
    robot = library.five_bar().to(device="casadi")
    q = robot.assemble([2.0, 1.1], guess=[2.0, -1.3, 1.1, 1.33])
    v, a = np.array([0.8, -0.5]), np.array([1.5, 2.0])
    ours, still = robot.constrained_inverse_dynamics(q, v, a), robot.constrained_inverse_dynamics(q, v, 0 * a)
    columns = [robot.constrained_inverse_dynamics(q, v, unit) - still for unit in np.eye(2)]
    A_c = np.array(columns).T
    split = of_tree[drives] + G[passive].T @ of_tree[passive]
    rows = [
        same("Γ_c = Gᵀ Γ_tr, eq. 55", G.T @ of_tree, ours, 1e-10, "N m"),
        same("Γ_c of eq. 57", split, ours, 1e-10, "N m"),
        same("Γ_c by Lagrange multipliers", truth, ours, 1e-10, "N m"),
        same("A_c q''_a + H_c, eq. 58", A_c @ a + still, ours, 1e-10, "N m"),
        same(
            "direct model, eq. 58",
            np.linalg.solve(A_c, ours - still),
            robot.constrained_forward_dynamics(q, v, ours),
            1e-9,
        ),
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


A, F = Kind.ALGORITHM, Kind.FIGURE
ITEMS = [
    Item("khalil/fig-1", "geometric parameters", F, "Figure 1", sketches.tree_frames),
    Item("khalil/fig-2", "frames of a cut joint", F, "Figure 2", sketches.cut_joint),
    Item("khalil/fig-3", "forces and moments on a link", F, "Figure 3, eq. 25", sketches.link_of_a_tree),
    Item("khalil/frames", "frames of a tree in six parameters", A, "section 2.1, eq. 1", _frames),
    Item("khalil/cut-joint", "closed loops by a cut joint", A, "section 2.2, eqs. 2 to 5", _cut_joint, seconds=1),
    Item("khalil/inverse", "inverse dynamics of a tree", A, "section 3.2, eqs. 9 to 31", _inverse),
    Item("khalil/matrices", "direct dynamics by A and H", A, "sections 3.1 and 3.3.1, eqs. 6 to 8", _matrices),
    Item("khalil/direct", "direct dynamics by recursion", A, "section 3.3.2, eqs. 32 to 54", _direct),
    Item("khalil/five-bar", "closed loops: a five-bar", A, "section 4, eqs. 55 to 58", _five_bar, seconds=2, first=5),
]
