"""Beams by assumed modes: natural frequencies, static deflections, stiffening by rotation."""

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import brentq

import torsor
from mechanism.flexible_links.tracing import GROUND, HUB, Small, Traced, frequencies
from torsor.mechanism import flexible_links
from torsor.spatial import from_quaternion, left_jacobian, make_pose, quaternion_exp, skew

# cos x cosh x = -1: clamped and free ends (Euler-Bernoulli).
CANTILEVER = [brentq(lambda x: np.cos(x) * np.cosh(x) + 1, *ends) ** 2 for ends in ((1, 3), (4, 5.5), (7, 8.5))]
# tan x = tanh x: pinned and free ends.
PINNED = [brentq(lambda x: np.tan(x) - np.tanh(x), *ends) ** 2 for ends in ((3.6, 4.3), (6.8, 7.4))]
# Wright, Smith, Thresher and Wang 1982, table 1: a uniform beam clamped to a hub of radius 0, flapping.
FLAPPING = {0: 3.5160, 1: 3.6816, 2: 4.1373, 3: 4.7973, 4: 5.5850, 5: 6.4495, 6: 7.3604, 7: 8.2996, 8: 9.2568}
FLAPPING |= {9: 10.2257, 10: 11.2023, 11: 12.1843, 12: 13.1702}


@pytest.mark.parametrize("coordinates", ["modal", "tip"])
def test_a_cantilever_has_the_frequencies_of_euler_and_bernoulli(coordinates: str) -> None:
    modes = flexible_links.beam(length=2.0, mass=3.0, bending=(8.0, 50.0), modes=(3, 2), coordinates=coordinates)
    scale = np.sqrt(np.array([8.0, 50.0]) / (3.0 * 2.0**3))
    expected = np.sort([*(scale[0] * np.array(CANTILEVER)), *(scale[1] * np.array(CANTILEVER[:2]))])
    robot = flexible_links.with_beam(GROUND, "ground", modes)
    assert frequencies(robot, np.zeros(5)) == pytest.approx(expected, rel=1e-9)


def test_a_pinned_beam_has_its_frequencies_to_1e_3_with_four_modes() -> None:
    hinge = [torsor.Link("ground"), torsor.Link("hub", inertia=1e-9 * np.eye(3))]
    hub = torsor.build("pin", hinge, [torsor.Joint("hinge", "revolute", "ground", "hub")])
    robot = flexible_links.with_beam(hub, "hub", flexible_links.beam(length=1.0, mass=1.0, bending=1.0, modes=(4, 0)))
    found = frequencies(robot, np.zeros(5))
    assert found[0] == pytest.approx(0.0, abs=1e-3)  # the beam turns
    assert found[1:3] == pytest.approx(PINNED, rel=1e-3)


def test_a_load_at_the_tip_gives_the_frequencies_of_the_loaded_beam() -> None:
    # 1 + cos x cosh x = (M / m) x (sin x cosh x - cos x sinh x) for a mass M at the tip of a cantilever.
    def characteristic(x: float) -> float:
        return 1 + np.cos(x) * np.cosh(x) - 2 * x * (np.sin(x) * np.cosh(x) - np.cos(x) * np.sinh(x))

    expected = [brentq(characteristic, *ends) ** 2 for ends in ((0.5, 2.0), (3.5, 4.5))]
    inside = flexible_links.beam(length=1.0, mass=1.0, bending=1.0, modes=(2, 0), tip_mass=2.0)
    suited = flexible_links.beam(length=1.0, mass=1.0, bending=1.0, modes=(2, 0), carries=(2.0, 0.0))
    plain = flexible_links.beam(length=1.0, mass=1.0, bending=1.0, modes=(7, 0))
    assert inside.frequencies == pytest.approx(expected, rel=1e-9)
    for modes, rel in ((suited, 1e-9), (plain, 1e-3)):
        loaded = flexible_links.with_beam(GROUND, "ground", modes).with_payload("beam/tip", 2.0)
        assert frequencies(loaded, np.zeros(modes.count))[:2] == pytest.approx(expected, rel=rel)


def test_torsion_has_the_frequencies_of_a_shaft() -> None:
    modes = flexible_links.beam(2.0, 1.0, 1.0, modes=(0, 0, 3), torsion=5.0, axial_inertia=0.1)
    expected = np.pi * np.array([0.5, 1.5, 2.5]) / 2.0 * np.sqrt(5.0 * 2.0 / 0.1)
    assert modes.frequencies == pytest.approx(expected, rel=1e-9)


def test_gravity_bends_a_cantilever_as_a_handbook_says() -> None:
    modes = flexible_links.beam(length=1.5, mass=2.0, bending=1e4, modes=(0, 4), carries=(1e3, 1e3))
    robot = (
        flexible_links.with_beam(GROUND, "ground", modes).with_gravity((0.0, 0.0, -9.81)).with_payload("beam/tip", 3.0)
    )
    forces = Traced(robot).value("gravity_force", np.zeros(4))
    eta = -np.linalg.solve(modes.stiffness_matrix, forces)
    tip = Traced(robot).value("pose", eta, place="beam/tip")
    weight, load = 2.0 * 9.81, 3.0 * 9.81
    assert tip[2, 3] == pytest.approx(-(1.5**3) / 1e4 * (weight / 8 + load / 3), rel=1e-5)
    slope = -(1.5**2) / 1e4 * (weight / 6 + load / 2)
    assert tip[2, 0] == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize(("modes", "rel"), [((0, 6), 2.5e-4), ((6, 0), 1.5e-3)])
def test_rotation_stiffens_a_beam_as_published(modes: tuple[int, int], rel: float) -> None:
    robot = flexible_links.with_beam(HUB, "hub", flexible_links.beam(length=1.0, mass=1.0, bending=1.0, modes=modes))
    small = Small(robot, ("hinge",))
    for speed, flap in FLAPPING.items():
        # In the plane of rotation the square of the frequency is less by that of the speed.
        expected = np.sqrt(flap**2 - (speed**2 if modes[0] else 0.0))
        found = small.frequencies(np.zeros(7), np.array([speed, 0, 0, 0, 0, 0, 0]))[0]
        assert found == pytest.approx(expected, rel=1e-4 if speed <= 5 else rel)


def test_the_stiffening_converges_with_the_number_of_modes() -> None:
    errors = []
    for count in (1, 2, 4, 7):
        robot = flexible_links.with_beam(HUB, "hub", flexible_links.beam(1.0, 1.0, 1.0, modes=(0, count)))
        v = np.zeros(count + 1)
        v[0] = 12.0
        errors.append(Small(robot, ("hinge",)).frequencies(np.zeros(count + 1), v)[0] - FLAPPING[12])
    assert all(later < earlier / 2 for earlier, later in pairwise(errors))
    assert 0 < errors[-1] < 3e-3  # Ritz' method approaches from above


def test_a_beam_that_spins_up_bends_by_0_57_m_and_comes_back() -> None:
    """Kane, Ryan and Banerjee 1987; Simo and Vu-Quoc 1986: without the shortening the solution diverges."""
    robot = flexible_links.with_beam(
        HUB, "hub", flexible_links.beam(length=10.0, mass=12.0, bending=1.4e4, modes=(2, 0))
    )
    dynamics = Traced(robot).function("hybrid_dynamics", forced=frozenset({1, 2}))

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        w = 0.4 * (t - 7.5 / np.pi * np.sin(np.pi * t / 7.5)) if t < 15 else 6.0
        a = 0.4 * (1 - np.cos(np.pi * t / 7.5)) if t < 15 else 0.0
        found = dynamics([0, *y[:2]], [w, *y[2:]], [a, 0, 0], [0, 0, 0])[0]
        return np.array([*y[2:], float(found[1]), float(found[2])])

    h, y, tip = 0.04, np.zeros(4), []
    shape = robot.joints[1].flexible.shapes[-1, 1]  # type: ignore[union-attr]
    for k in range(450):
        t = k * h
        a = rate(t, y)
        b = rate(t + h / 2, y + h / 2 * a)
        c = rate(t + h / 2, y + h / 2 * b)
        y = y + h / 6 * (a + 2 * b + 2 * c + rate(t + h, y + h * c))
        tip.append(float(shape @ y[:2]))
    assert min(tip) == pytest.approx(-0.573, abs=2e-3)
    assert np.abs(tip[-50:]).max() < 0.01


def test_the_tip_moves_as_curvatures_that_are_linear_in_the_coordinates_say() -> None:
    """Sections integrated along the beam, g' = g xi^, with the curvatures of the modes: equal to second order."""
    modes = flexible_links.beam(0.9, 1.0, (2.0, 3.0), modes=(2, 2, 1), torsion=1.0, axial_inertia=0.1)
    s = modes.positions[:, 0]
    slopes = [
        [np.polynomial.Polynomial.fit(s, modes.rotations[:, x, k], 14).deriv() for k in range(5)] for x in range(3)
    ]
    robot, eta = flexible_links.with_beam(GROUND, "ground", modes), np.array([0.3, -0.2, 0.4, 0.1, 0.5])
    errors, steps = [], 400
    h = 0.9 / steps
    kappa = np.array([[each((np.arange(steps) + 0.5) * h) for each in row] for row in slopes])  # (3, 5, steps)
    for size in (0.1, 0.05):
        section = np.eye(4)
        for k in range(steps):
            turn = kappa[:, :, k] @ (size * eta) * h
            R = np.asarray(from_quaternion(quaternion_exp(turn)), dtype=float)
            section = section @ make_pose(R, left_jacobian(turn) @ np.array([h, 0.0, 0.0]))
        tip = Traced(robot).value("pose", size * eta, place="beam/tip")
        errors.append(np.abs(tip - section).max())
        linear = np.abs(np.eye(3) + size * skew(modes.rotations[-1] @ eta) - section[:3, :3]).max()
        assert errors[-1] < linear / 5
    assert errors[1] < errors[0] / 6  # third order


def test_forces_are_those_of_the_points_of_the_beam_to_second_order() -> None:
    """Lagrange's equations of moving points, without a truncated energy: the difference is of second order in eta."""
    pan = torsor.Joint("pan", "revolute", "ground", "hub")
    links = [torsor.Link("ground"), torsor.Link("hub"), torsor.Link("head", 1.0, inertia=np.eye(3))]
    tilt = torsor.Joint("tilt", "revolute", "hub", "head", axis=np.array([0.0, 1.0, 0.0]))
    head = torsor.build("head", links, [pan, tilt])
    modes = flexible_links.beam(0.8, 0.5, (20.0, 30.0), modes=(2, 1), tip_mass=0.2)
    traced = Traced(flexible_links.with_beam(head, "head", modes))
    q, v, a = (ca.SX.sym(name, 5) for name in "qva")
    c, s, cy, sy = ca.cos(q[0]), ca.sin(q[0]), ca.cos(q[1]), ca.sin(q[1])
    R = ca.vertcat(ca.horzcat(c * cy, -s, c * sy), ca.horzcat(s * cy, c, s * sy), ca.horzcat(-sy, 0, cy))
    L = (ca.sumsqr(v[:2]) - ca.dot(q[2:], ca.SX(modes.stiffness_matrix) @ q[2:])) / 2
    for m, r, Phi, Gamma in zip(modes.masses, modes.positions, modes.shapes, np.asarray(modes.second), strict=True):
        bent = ca.vertcat(*(ca.dot(q[2:], ca.SX(Gamma[x]) @ q[2:]) / 2 for x in range(3)))
        place = R @ (ca.SX(r) + ca.SX(Phi) @ q[2:] + bent)
        L += m * (ca.sumsqr(ca.jtimes(place, q, v)) / 2 - 9.81 * place[2])
    forces = ca.jtimes(ca.gradient(L, v), ca.vertcat(q, v), ca.vertcat(v, a)) - ca.gradient(L, q)
    expected = ca.Function("tau", [q, v, a], [forces])
    errors = []
    for size in (1e-2, 1e-4):
        at = np.random.default_rng(1).normal(size=(3, 5)) * [1, 1, size, size, size]
        found = traced.value("inverse_dynamics", *at)
        errors.append(np.abs(found - np.array(expected(*at)).ravel()).max())
    assert errors[0] < 0.01
    assert errors[1] < 2e-4 * errors[0]
