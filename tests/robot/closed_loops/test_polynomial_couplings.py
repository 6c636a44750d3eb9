"""Couplings with powers of coordinates, as in the knees of musculoskeletal models: exact, with all derivatives."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.mechanism import Coupling

C = np.array([0.1, 0.5, -0.3, 0.2, -0.05])  # y = c0 + c1 x + ... + c4 x^4
M1, M2, G = 2.0, 3.0, 9.81
SLIDE = torsor.Joint("x", "prismatic", "base", "one"), torsor.Joint("y", "prismatic", "base", "two")
X, V, A = np.random.default_rng(3).normal(size=(3, 7))


def cam() -> torsor.Robot:
    """Return two masses that slide along z, where the height of the second is a polynomial of that of the first."""
    links = [torsor.Link("base"), torsor.Link("one", M1, inertia=np.eye(3)), torsor.Link("two", M2, inertia=np.eye(3))]
    return torsor.build("cam", links, SLIDE).with_coupling("cam", {"y": 1.0, "x": -C[1:]}, C[0]).with_active(["x"])


def p(x: np.ndarray, order: int = 0) -> np.ndarray:
    return np.polynomial.Polynomial(C).deriv(order)(x) if order else np.polynomial.Polynomial(C)(x)


def test_the_error_and_its_jacobian_are_those_of_the_polynomial() -> None:
    robot, q = cam(), np.stack([X, V], axis=-1)
    np.testing.assert_allclose(robot.closed.error(q)[:, 0], V - p(X), rtol=0, atol=1e-14)
    np.testing.assert_allclose(robot.closed.jacobian(q)[:, 0], np.stack([-p(X, 1), X * 0 + 1], -1), rtol=0, atol=1e-13)
    np.testing.assert_allclose(robot.closed.assemble(X[:, None]), np.stack([X, p(X)], axis=-1), rtol=0, atol=1e-12)


def test_dynamics_and_derivatives_are_those_of_one_mass_on_a_curve() -> None:
    robot, q = cam(), np.stack([X, p(X)], axis=-1)
    x, v, a = X, V[:, None], A[:, None]
    rates = robot.closed.accelerations(q, v, a)
    np.testing.assert_allclose(rates[0][:, 1], p(x, 1) * V, rtol=1e-12)
    np.testing.assert_allclose(rates[1][:, 1], p(x, 1) * A + p(x, 2) * V**2, rtol=1e-12)
    force = (M1 + M2 * p(x, 1) ** 2) * A + M2 * p(x, 1) * p(x, 2) * V**2 + M1 * G + M2 * G * p(x, 1)
    np.testing.assert_allclose(robot.closed.inverse_dynamics(q, v, a)[:, 0], force, rtol=1e-12)
    np.testing.assert_allclose(robot.closed.forward_dynamics(q, v, force[:, None])[:, 0], A, rtol=1e-11)
    by_q = 2 * M2 * p(x, 1) * p(x, 2) * A + M2 * (p(x, 2) ** 2 + p(x, 1) * p(x, 3)) * V**2 + M2 * G * p(x, 2)
    by_v = 2 * M2 * p(x, 1) * p(x, 2) * V
    dq, dv, da = robot.closed.derivatives.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(dq[:, 0, 0], by_q, rtol=1e-11)
    np.testing.assert_allclose(dv[:, 0, 0], by_v, rtol=1e-11)
    np.testing.assert_allclose(da[:, 0, 0], M1 + M2 * p(x, 1) ** 2, rtol=1e-12)


def test_multipliers_are_the_force_of_the_cam() -> None:
    robot, q = cam(), np.stack([X, p(X)], axis=-1)
    v, tau = np.stack([V, p(X, 1) * V], axis=-1), np.stack([A, 0 * A], axis=-1)
    a = robot.closed.forward_dynamics(q, v, tau, coordinates="all")
    np.testing.assert_allclose(a[:, 1], p(X, 1) * a[:, 0] + p(X, 2) * V**2, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        robot.closed.loop_forces(q, v, tau, coordinates="all")[:, 0], M2 * (a[:, 1] + G), rtol=1e-10, atol=1e-11
    )


@pytest.mark.parametrize("suffix", ["toml", "xml"])
def test_files_keep_polynomials(tmp_path: Path, suffix: str) -> None:
    if suffix == "xml":
        pytest.importorskip("mujoco")
    path, robot = tmp_path / f"cam.{suffix}", cam()
    robot.save(path)
    again = torsor.load(path)
    assert again.active == ("x",)
    (before,), (after,) = robot.loops, again.loops
    assert isinstance(after, Coupling) and isinstance(before, Coupling) and not after.is_linear
    assert after.polynomials == before.polynomials and after.offset == before.offset


def test_a_cam_of_mjcf_is_that_of_mujoco(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "knee.xml"
    path.write_text("""<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
      <body><joint name="knee" axis="0 1 0" ref="0.3"/><geom size="0.1"/></body>
      <body><joint name="shift" type="slide" ref="-0.2"/><geom size="0.1"/></body></worldbody>
      <equality><joint name="cam" joint1="shift" joint2="knee" polycoef="0.1 0.5 -0.3 0.2 -0.05"/></equality>
      </mujoco>""")
    robot, model = torsor.load(path), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    for q in np.random.default_rng(5).normal(size=(5, 2)):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(robot.closed.error(q), data.efc_pos[:1], rtol=0, atol=1e-14)
        np.testing.assert_allclose(robot.closed.jacobian(q)[0], data.efc_J[:2], rtol=0, atol=1e-14)


def test_polynomials_that_are_none_are_refused() -> None:
    robot = torsor.library.two_link()
    with refused(argument="coefficient of 'joint1'", allowed="1 to 4"):
        robot.with_coupling("cam", {"joint1": [1, 2, 3, 4, 5]})
    with refused(argument="coefficient of 'joint1'"):
        robot.with_coupling("cam", {"joint1": [0.0, 0.0]})
    with refused(argument="coefficient of 'joint1'"):
        robot.with_coupling("cam", {"joint1": "x"})


def test_what_mjcf_cannot_express_is_refused(tmp_path: Path) -> None:
    robot = torsor.library.two_link().with_coupling("cam", {"joint1": [1, 2], "joint2": [1, 2]})
    with refused(what="'cam' has 2 coordinates, all with higher powers"):
        robot.save(tmp_path / "cam.xml")
