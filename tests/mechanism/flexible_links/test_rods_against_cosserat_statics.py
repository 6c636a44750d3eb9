"""Rods by strain modes: shapes in closed form (arc, helix, elastica), and the natural frequencies of a beam."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss, legvander
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

import torsor
from mechanism.flexible_links.tracing import GROUND, Traced
from torsor.mechanism import flexible_links
from torsor.spatial import make_pose


def _rod(**settings: Any) -> torsor.Robot:
    return flexible_links.with_rod(GROUND, "ground", **({"length": 1.0, "mass": 1.0, "bending": 1.0} | settings))


def _moment_residual(robot: torsor.Robot, q: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Return springs minus the generalised forces of a moment at the tip, given in base axes."""
    traced = Traced(robot)
    J, R = traced.value("jacobian", q, place="rod/tip"), traced.value("pose", q, place="rod/tip")[:3, :3]
    return traced.value("spring_force", q) - np.atleast_2d(J)[:3].T @ (R.T @ moment)


def _balanced(robot: torsor.Robot, force: np.ndarray) -> np.ndarray:
    """Return the positions where springs balance a force on the tip, given in base axes: Newton's method."""
    traced, n = Traced(robot), robot.nq
    q, share = ca.SX.sym("q", n), ca.SX.sym("share")
    pose = traced.function("pose", place="rod/tip")(q)
    residual = traced.function("spring_force")(q) - ca.gradient(ca.dot(share * ca.SX(force), pose[:3, 3]), q)
    newton = ca.Function("newton", [q, share], [ca.solve(ca.jacobian(residual, q), residual)])
    x = np.zeros(n)
    for share_now in (0.3, 0.6, 1.0):
        for _ in range(12):
            x = x - np.array(newton(x, share_now)).ravel()
    return x


def _elastica(force: float) -> tuple[float, float]:
    """Return (x, deflection) of the tip of a cantilever with L = EI = 1 (Bisshopp and Drucker 1945)."""
    root = np.sqrt(force)
    start = 1 / np.sqrt(2)

    def length(k: float) -> float:
        return ellipk(k * k) - ellipkinc(np.arcsin(start / k), k * k) - root

    k = brentq(length, start + 1e-12, 1 - 1e-14, xtol=1e-15)
    bent = ellipe(k * k) - ellipeinc(np.arcsin(start / k), k * k)
    return float(np.sqrt(2 * (2 * k * k - 1)) / root), float(1 - 2 / root * bent)


def test_a_moment_at_the_tip_bends_a_rod_to_an_arc() -> None:
    EI, moment = 2.5, 9.0
    robot = _rod(bending=EI, length=1.4, modes=(3, 0), sections=4)
    q = np.array([moment * 1.4 / EI, 0.0, 0.0])
    assert _moment_residual(robot, q, np.array([0.0, 0.0, moment])) == pytest.approx(np.zeros(3), abs=1e-13)
    radius, nodes = EI / moment, (leggauss(4)[0] + 1) / 2 * 1.4
    poses = Traced(robot).value("poses", q).reshape(-1, 4, 4)
    for s, pose in zip([*nodes, 1.4], poses, strict=True):
        expected = radius * np.array([np.sin(s / radius), 1 - np.cos(s / radius), 0.0])
        assert pose[:3, 3] == pytest.approx(expected, abs=1e-14)


def test_bending_and_torsion_make_a_helix() -> None:
    moment, robot = np.array([2.0, -3.0, 4.0]), _rod(torsion=1.0, modes=(1, 1, 1), sections=3)
    q = np.array([4.0, -3.0, 2.0])  # about z, y and x: EI = GJ = L = 1
    assert _moment_residual(robot, q, moment) == pytest.approx(np.zeros(3), abs=1e-13)
    poses = Traced(robot).value("poses", q).reshape(-1, 4, 4)
    assert _off_helix(moment, [*(leggauss(3)[0] + 1) / 2, 1.0], poses) < 1e-14


def test_a_helix_does_not_depend_on_the_stiffness_in_torsion() -> None:
    """The strain in the axes of a section turns along the rod; the curve is the same helix."""
    moment, GJ, n = np.array([1.0, -1.5, 1.2]), 0.6, 8
    robot = _rod(torsion=GJ, modes=(n, n, 1), sections=14)
    nodes, weights = leggauss(20)
    angle = moment[0] * (1 - 1 / GJ) * (nodes + 1) / 2
    about_y = moment[1] * np.cos(angle) - moment[2] * np.sin(angle)
    about_z = moment[1] * np.sin(angle) + moment[2] * np.cos(angle)
    project = (legvander(nodes, n - 1) * weights[:, None]).T * (np.arange(n)[:, None] + 0.5)
    q = np.concatenate([project @ about_z, project @ about_y, [moment[0] / GJ]])
    tip = np.eye(4)
    for joint in robot.joints:
        tip = tip @ make_pose(*joint.kind.transform(q, 0.0))
    assert _off_helix(moment, [1.0], tip[None]) < 1e-8


def _off_helix(moment: np.ndarray, places: list[float], poses: np.ndarray) -> float:
    """Return the largest distance of sections from the helix with the twist (moment, e_x)."""
    w = moment / np.linalg.norm(moment)
    x, size = np.array([1.0, 0.0, 0.0]), float(np.linalg.norm(moment))
    along, across = (w @ x) * w, x - (w @ x) * w
    expected = [
        s * along + (across * np.sin(size * s) + np.cross(w, across) * (1 - np.cos(size * s))) / size for s in places
    ]
    return float(np.abs(np.array(expected) - poses[:, :3, 3]).max())


@pytest.mark.parametrize("force", [1.0, 10.0])
def test_a_force_at_the_tip_gives_the_elastica(force: float) -> None:
    robot = _rod(modes=(7, 0), sections=7)
    tip = Traced(robot).value("pose", _balanced(robot, np.array([0.0, force, 0.0])), place="rod/tip")[:2, 3]
    assert tip == pytest.approx(_elastica(force), abs=4e-7)


def test_a_force_across_both_directions_bends_in_its_plane() -> None:
    robot, direction = _rod(torsion=0.7, modes=(4, 4, 1), sections=5), np.array([0.0, 0.6, 0.8])
    q = _balanced(robot, 3.0 * direction)
    tip = Traced(robot).value("pose", q, place="rod/tip")[:3, 3]
    x, deflection = _elastica(3.0)
    assert tip == pytest.approx(np.array([x, 0.0, 0.0]) + deflection * direction, abs=1e-4)
    assert abs(tip[1] * 0.8 - tip[2] * 0.6) < 1e-12
    assert abs(q[-1]) < 1e-12  # no torsion


def test_a_rod_has_the_frequencies_of_euler_and_bernoulli() -> None:
    robot = _rod(modes=(6, 0), sections=8)
    K = np.asarray(robot.joints[0].flexible.stiffness_matrix)  # type: ignore[union-attr]
    squares = np.linalg.eigvals(np.linalg.solve(Traced(robot).value("mass_matrix", np.zeros(6)), K)).real
    assert np.sqrt(np.sort(squares))[:3] == pytest.approx([3.516015, 22.034492, 61.697214], rel=1e-3)


def test_a_curved_rod_rests_in_its_curve() -> None:
    robot = _rod(modes=(1, 1), curvature=(0.0, 0.0, np.pi), sections=2)
    tip = Traced(robot).value("pose", np.zeros(2), place="rod/tip")
    assert tip[:3, 3] == pytest.approx([0.0, 2 / np.pi, 0.0], abs=1e-14)
    assert Traced(robot).value("spring_force", np.zeros(2)) == pytest.approx(np.zeros(2), abs=1e-15)


def test_stretch_is_force_over_stiffness() -> None:
    robot = _rod(stretch=50.0, modes=(1, 0, 0, 1), sections=2)
    q = _balanced(robot, np.array([2.0, 0.0, 0.0]))
    assert q == pytest.approx([0.0, 2.0 / 50.0], abs=1e-14)


def test_the_eel_is_the_limit_of_a_chain() -> None:
    eel = torsor.library.continuous_eel(modes=(2, 1, 1), sections=4)
    q = eel.neutral()
    q[7] = 1.0
    traced = Traced(eel)
    assert float(traced.value("mass_matrix", q)[3, 3]) == pytest.approx(eel.mass)
    tip = traced.value("pose", q, place="body/tip")[:3, 3]
    assert tip == pytest.approx([1.2 * np.sin(1.0), 1.2 * (1 - np.cos(1.0)), 0.0], abs=1e-13)
