"""Laws of mechanics for robots with flexible links: beams and rods on trees with many kinds of joints."""

import casadi as ca
import numpy as np
import pytest

import torsor
from mechanism.flexible_links.tracing import Traced
from torsor.mechanism import flexible_links
from torsor.spatial import from_quaternion, make_pose

SETTINGS = {"bending": (3.0, 5.0), "torsion": 2.0}


def _tree(seed: int, types: tuple[str, ...], coordinates: str = "modal") -> torsor.Robot:
    """Return a tree with a beam somewhere and another tree with a second beam on its tip."""
    rng = np.random.default_rng(seed)
    robot = torsor.library.random_tree(len(types), seed, types, extras=False)
    pose = make_pose(from_quaternion(rng.normal(size=4)), rng.normal(size=3) * 0.3)
    robot = robot.with_frame("mount", robot.link_names[-1], pose)
    counts = (2, 0) if coordinates == "tip" else (1, 1, 1)
    modes = flexible_links.beam(
        0.7, 0.8, **SETTINGS, modes=counts, axial_inertia=0.01, damping=0.02, tip_mass=0.1, coordinates=coordinates
    )
    robot = flexible_links.with_beam(robot, "mount", modes, "boom")
    carried = torsor.library.random_tree(1, seed + 1, ("revolute",), extras=False)
    robot = robot.attach(carried, "boom/tip", prefix="tool/")
    return flexible_links.with_beam(
        robot, robot.link_names[-1], flexible_links.beam(0.4, 0.3, 1.0, modes=(1, 0)), "stick"
    )


def _state(robot: torsor.Robot, seed: int, size: float = 0.3) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    step, v, a, w = rng.normal(size=(4, robot.nv)) * size
    q = Traced(robot).value("integrate", robot.neutral(), step)
    return q, v, a, w


def _rod() -> torsor.Robot:
    base = torsor.library.random_tree(1, 4, ("spherical",), extras=False)
    settings = {"radius": 0.05, "damping": 0.1, "curvature": (0.1, 0.2, -0.3)}
    return flexible_links.with_rod(
        base, base.link_names[-1], 0.5, 0.4, **SETTINGS, stretch=30.0, modes=(1, 1, 1, 1), sections=1, **settings
    )


PLAIN = _tree(3, ("revolute", "planar"), "tip")
TURNING = _tree(5, ("free",))
ROD = _rod()


@pytest.mark.parametrize(
    "robot", [PLAIN, flexible_links.with_rod(PLAIN, "boom/tip", 0.3, 0.1, 1.0, modes=2, sections=2)]
)
def test_forces_are_those_of_lagrange(robot: torsor.Robot) -> None:
    traced, n = Traced(robot), robot.nv
    q, v, a = (ca.SX.sym(name, n) for name in "qva")
    L = traced.function("kinetic_energy")(q, v) - traced.function("potential_energy")(q)
    p = ca.gradient(L, v)
    forces = ca.jtimes(p, ca.vertcat(q, v), ca.vertcat(v, a)) - ca.gradient(L, q) + traced.function("friction_force")(v)
    at = _state(robot, 1)[:3]
    expected = np.array(ca.Function("tau", [q, v, a], [forces])(*at)).ravel()
    assert traced.value("inverse_dynamics", *at) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    M = np.array(ca.Function("M", [q, v], [ca.hessian(L, v)[0]])(*at[:2]))
    assert traced.value("mass_matrix", at[0]) == pytest.approx(M, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("robot", [PLAIN, TURNING, ROD])
def test_forward_dynamics_inverts_inverse_dynamics(robot: torsor.Robot) -> None:
    traced, (q, v, a, _) = Traced(robot), _state(robot, 2)
    tau = traced.value("inverse_dynamics", q, v, a)
    assert traced.value("forward_dynamics", q, v, tau) == pytest.approx(a, rel=1e-9, abs=1e-9)
    forced = np.random.default_rng(0).random(robot.nv) < 0.5
    options = {"forced": frozenset(np.flatnonzero(forced).tolist())}
    found = traced.values("hybrid_dynamics", q, v, np.where(forced, 0, a), np.where(forced, tau, 0), **options)
    assert found[0].ravel() == pytest.approx(a, rel=1e-9, abs=1e-9)
    assert found[1].ravel() == pytest.approx(tau, rel=1e-9, abs=1e-9)
    assert traced.value("mass_matrix", q) @ a + traced.value("bias_force", q, v) == pytest.approx(tau, abs=1e-10)


@pytest.mark.parametrize("robot", [PLAIN, TURNING, ROD])
def test_power_is_the_rate_of_energy_and_coriolis_forces_do_no_work(robot: torsor.Robot) -> None:
    traced, (q, v, a, _) = Traced(robot), _state(robot, 3)
    step, T, V = (traced.function(name) for name in ("integrate", "kinetic_energy", "potential_energy"))
    t = ca.SX.sym("t")
    x = step(q, t * v + t**2 / 2 * a)
    rates = ca.Function("rates", [t], [ca.jacobian(ca.vertcat(T(x, v + t * a) + V(x)), t)])
    useful = traced.value("inverse_dynamics", q, v, a) - traced.value("friction_force", v)
    assert float(rates(0)) == pytest.approx(v @ useful, rel=1e-9)
    C, M = traced.value("coriolis_matrix", q, v), traced.function("mass_matrix")
    springs = traced.value("gravity_force", q) + traced.value("spring_force", q) + traced.value("friction_force", v)
    assert C @ v == pytest.approx(traced.value("bias_force", q, v) - springs, rel=1e-9, abs=1e-9)
    moved = M(step(q, t * v))
    rate = np.array(ca.Function("rate", [t], [ca.jacobian(ca.vec(moved), t)])(0)).reshape(C.shape)
    assert (rate - 2 * C) + (rate - 2 * C).T == pytest.approx(np.zeros_like(C), abs=1e-9)


@pytest.mark.parametrize("robot", [TURNING, ROD])
def test_derivatives_agree_with_differences(robot: torsor.Robot) -> None:
    traced, (q, v, a, w), h = Traced(robot), _state(robot, 4), 1e-6
    names = {name: traced.function(name) for name in ("inverse_dynamics", "inverse_dynamics_derivatives", "integrate")}
    dq, dv, da = (np.array(each) for each in names["inverse_dynamics_derivatives"](q, v, a))
    u, x = np.random.default_rng(7).normal(size=(2, robot.nv))

    def forces(t: float) -> np.ndarray:
        return np.array(names["inverse_dynamics"](names["integrate"](q, t * u), v + t * x, a + t * w)).ravel()

    change = (forces(h) - forces(-h)) / (2 * h)
    assert dq @ u + dv @ x + da @ w == pytest.approx(change, rel=1e-6, abs=1e-6)
    j = np.random.default_rng(8).normal(size=robot.nv)
    rate = traced.values("force_rate", q, v, a, j)[1].ravel()

    def later(t: float) -> np.ndarray:
        x = names["integrate"](q, t * v + t**2 / 2 * a)
        return np.array(names["inverse_dynamics"](x, v + t * a, a + t * j)).ravel()

    assert rate == pytest.approx((later(h) - later(-h)) / (2 * h), rel=1e-6, abs=1e-6)


def test_second_derivatives_agree_with_differences() -> None:
    hub = torsor.library.random_tree(1, 2, ("spherical",), extras=False)
    robot = flexible_links.with_beam(hub, hub.link_names[0], flexible_links.beam(0.5, 0.4, 2.0, modes=(1, 1)))
    traced, (q, v, a, w), h, n = Traced(robot), _state(robot, 4), 1e-6, robot.nv
    H = traced.value("inverse_dynamics_hessian", q, v, a, w)
    derivatives, u = traced.function("inverse_dynamics_derivatives"), np.random.default_rng(1).normal(size=(2, n))

    def gradient(t: float) -> np.ndarray:
        found = derivatives(q, v + t * u[0], a + t * u[1])
        return np.concatenate([np.array(each).T @ w for each in found])

    change = (gradient(h) - gradient(-h)) / (2 * h)
    assert H[:, n:] @ u.ravel() == pytest.approx(change, rel=1e-6, abs=1e-6)


def test_kinetic_energy_is_that_of_the_nodes_to_second_order() -> None:
    """The nodes move with the exact kinematics; the energy of modes leaves out terms of third order in eta and eta'."""
    modes = flexible_links.beam(0.7, 0.8, (3.0, 5.0), modes=(1, 1, 1), torsion=1.0, axial_inertia=1e-9)
    link = torsor.Link("body", 1.0, inertia=np.diag([0.1, 0.2, 0.3]))
    robot = flexible_links.with_beam(torsor.build("free", [link], [], base="floating"), "body", modes)
    traced, rng = Traced(robot), np.random.default_rng(0)
    w, v, eta, rate = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
    errors = []
    for size in (0.02, 0.01):
        e, d = size * eta, size * rate
        second = np.asarray(modes.second)
        r = modes.positions + modes.shapes @ e + np.einsum("ixkl,k,l->ix", second, e, e) / 2
        u = v + np.cross(w, r) + modes.shapes @ d + np.einsum("ixkl,k,l->ix", second, e, d)
        nodes = modes.masses @ (u**2).sum(axis=1) / 2 + (v @ v + w @ np.diag([0.1, 0.2, 0.3]) @ w) / 2
        spin = modes.rotations @ d + w
        nodes += np.einsum("ix,ixy,iy->", spin, np.asarray(modes.inertias), spin) / 2
        q = np.concatenate([robot.neutral()[:7], e])
        errors.append(abs(float(traced.value("kinetic_energy", q, np.concatenate([w, v, d]))[0]) - nodes))
    assert errors[1] < errors[0] / 7  # the third power, or more
    assert errors[0] < 1e-4


@pytest.mark.parametrize("kind", ["beam", "rod"])
def test_a_floating_flexible_link_keeps_momentum_and_energy(kind: str) -> None:
    link = torsor.Link("body", 1.0, inertia=np.diag([0.1, 0.2, 0.3]))
    body = torsor.build("free", [link], [], base="floating", gravity=(0.0, 0.0, 0.0))
    if kind == "beam":
        robot = flexible_links.with_beam(body, "body", flexible_links.beam(0.7, 0.8, (3.0, 5.0), modes=(1, 1)))
    else:
        robot = flexible_links.with_rod(body, "body", 0.7, 0.8, (3.0, 5.0), modes=(1, 1), radius=0.02, sections=3)
    traced, rng = Traced(robot), np.random.default_rng(2)
    functions = {name: traced.function(name) for name in ("forward_dynamics", "chart", "chart_rate", "momentum")}
    functions |= {name: traced.function(name) for name in ("kinetic_energy", "potential_energy")}
    n, h = robot.nv, 2e-3
    q, v = robot.neutral(), rng.normal(size=n) * 0.5

    def rate(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a = functions["forward_dynamics"](functions["chart"](q, u), v, np.zeros(n))
        return np.array(functions["chart_rate"](u, v)).ravel(), np.array(a).ravel()

    def kept(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        energy = float(functions["kinetic_energy"](q, v)) + float(functions["potential_energy"](q))
        return np.array([energy, *np.array(functions["momentum"](q, v)).ravel()])

    start = kept(q, v)
    for _ in range(100):
        k1 = rate(np.zeros(n), v)
        k2 = rate(h / 2 * k1[0], v + h / 2 * k1[1])
        k3 = rate(h / 2 * k2[0], v + h / 2 * k2[1])
        k4 = rate(h * k3[0], v + h * k3[1])
        u, v_change = (h / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        q, v = np.array(functions["chart"](q, u)).ravel(), v + v_change
    assert kept(q, v) == pytest.approx(start, rel=1e-8, abs=1e-8)
