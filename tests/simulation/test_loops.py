"""Motions of mechanisms with loops: closed to rounding, and compared with mechanics and other coordinates."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import torsor
from refusals import refused
from torsor import library
from torsor.dynamics.loops.constrained import ClosureChoice
from torsor.mechanism import Joint, Link
from torsor.spatial import make_pose

LENGTHS = (1.0, 0.4, 0.9, 0.8)


@pytest.fixture(scope="module")
def four_bar() -> tuple[torsor.Robot, np.ndarray]:
    robot = library.four_bar(*LENGTHS)
    return robot, robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])


@pytest.fixture(scope="module")
def parallelogram() -> tuple[torsor.Robot, np.ndarray]:
    """Two cranks side by side: with all bars in one line, it may go on as a parallelogram or crossed."""
    return library.four_bar(1.0, 0.4, 1.0, 0.4), np.array([1.5, -1.5, 1.5])


def placed(angle: float) -> np.ndarray:
    """Positions of the four-bar at the angle of its crank, by geometry."""
    ground, crank, coupler, rocker = LENGTHS
    tip = crank * np.array([np.cos(angle), np.sin(angle)])
    away = np.array([ground, 0.0]) - tip
    length = np.hypot(*away)
    along = (coupler**2 - rocker**2 + length**2) / (2 * length)
    pin = tip + (along * away + np.sqrt(coupler**2 - along**2) * np.array([-away[1], away[0]])) / length
    turn = np.arctan2(*(pin - tip)[::-1])
    return np.array([angle, turn - angle, np.arctan2(pin[1], pin[0] - ground)])


def test_loops_stay_closed_and_energy_is_conserved(four_bar) -> None:
    robot, q = four_bar
    swing = torsor.simulate(robot, q, duration=2.0)
    assert len(swing) == 2001 and np.abs(swing.closure_error).max() < 1e-12
    assert np.abs(robot.closed.jacobian(swing.q) @ swing.v[..., None]).max() < 1e-12
    assert np.ptp(swing.energy) < 1e-8 < np.ptp(swing.kinetic_energy)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "palletiser", "closed_leg"])
def test_loops_stay_closed_for_a_hundred_thousand_steps(name: str) -> None:
    robot = getattr(library, name)()
    q = robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5]) if name == "four_bar" else robot.neutral()
    hold = ca.SX.sym("q", robot.nq)
    t, v = ca.SX.sym("t"), ca.SX.sym("v", robot.nv)
    stiff = {"four_bar": 0.0, "palletiser": 2e5, "closed_leg": 30.0}[name]
    at = [(robot.coordinate_names.index(each), robot.position_names.index(each)) for each in robot.active]
    tau = ca.vertcat(*(-stiff * (hold[k] - 0.2 * ca.sin(t)) - 0.02 * stiff * v[j] for j, k in at))
    law = ca.Function("law", [t, hold, v], [tau])
    long = torsor.simulate(robot, q, duration=100.0, record=0.1, controller=law)
    assert np.abs(long.closure_error).max() < 1e-10
    assert np.abs(robot.closed.jacobian(long.q) @ long.v[..., None]).max() < 1e-10
    if name == "four_bar":
        assert np.ptp(long.energy) < 1e-6


def test_the_motion_agrees_with_a_minimal_coordinate(four_bar) -> None:
    robot, q = four_bar

    def rate(t: float, y: np.ndarray) -> list[float]:
        return [y[1], robot.closed.forward_dynamics(placed(y[0]), y[1:], [2.0])[0]]

    swing = torsor.simulate(robot, q, duration=1.0, step=2.5e-4, record=0.1, controller=[2.0])
    exact = solve_ivp(rate, (0, 1), [q[0], 0.0], "DOP853", swing.times, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(swing.q, [placed(angle) for angle in exact.y[0]], atol=1e-8)
    np.testing.assert_allclose(swing.v[:, 0], exact.y[1], atol=1e-8)


def test_the_period_of_a_slider_crank_agrees_with_its_energy_integral() -> None:
    crank, rod, (m1, m2, m3) = 0.045, 0.145, (1.8, 0.6, 0.45)
    robot = library.slider_crank(crank, rod)
    J1, J2 = (m * (3 * (0.05 * length) ** 2 + length**2) / 12 for m, length in ((m1, crank), (m2, rod)))

    def inertia(angle: float) -> float:
        """Twice the kinetic energy at a unit rate of the crank."""
        c, s = np.cos(angle), np.sin(angle)
        lean = np.arcsin(-crank * s / rod)
        turn = -crank * c / (rod * np.cos(lean))
        middle = [-crank * s - rod / 2 * np.sin(lean) * turn, crank * c + rod / 2 * np.cos(lean) * turn]
        piston = -crank * s - rod * np.sin(lean) * turn
        return J1 + m1 * crank**2 / 4 + J2 * turn**2 + m2 * np.dot(middle, middle) + m3 * piston**2

    def height(angle: float) -> float:
        return 9.81 * np.sin(angle) * crank * (m1 + m2) / 2

    speed = 60.0
    energy = inertia(0.0) * speed**2 / 2 + height(0.0)
    time, _ = quad(
        lambda angle: np.sqrt(inertia(angle) / (2 * (energy - height(angle)))), 0, 2 * np.pi, epsabs=1e-13, epsrel=1e-13
    )

    def round_once(t, q, v):
        return q[..., 0] - 2 * np.pi

    q = robot.closed.assemble([0.0], guess=[0.0, 0.0, 0.19])
    v = robot.closed.velocities(q, [speed])
    turn = torsor.simulate(robot, q, v, 0.15, step=5e-5, events=round_once)
    assert turn.events[0].times[0] == pytest.approx(time, abs=1e-9)
    assert np.abs(robot.closed.error(turn.events[0].q)).max() < 1e-13
    expected = crank * np.cos(turn.q[:, 0]) + np.sqrt(rod**2 - (crank * np.sin(turn.q[:, 0])) ** 2)
    np.testing.assert_allclose(turn.q[:, 2], expected, atol=1e-13)


def test_a_free_body_on_a_hinge_moves_as_a_pendulum() -> None:
    body = Link("rod", 1.3, (0.4, 0.02, 0.1), np.diag([0.02, 0.08, 0.09]))
    swing = torsor.build(
        "swing", [Link("ground"), body], [Joint("pin", "revolute", "ground", "rod")], gravity=(0, -9.81, 0)
    )
    free = torsor.build("free", [Link("ground"), body], [Joint("free", "free", "ground", "rod")], gravity=(0, -9.81, 0))
    free = free.with_loop("pin", "ground", "rod")
    tree = torsor.simulate(swing, [0.4], [1.0], 2.0, step=5e-4, record=0.1)
    start = free.integrate(free.neutral(), [0, 0, 0.4, 0, 0, 0])
    loop = torsor.simulate(free, start, [0, 0, 1.0, 0, 0, 0], 2.0, step=5e-4, record=0.1)
    np.testing.assert_allclose(free.poses(loop.q), swing.poses(tree.q), atol=1e-9)
    np.testing.assert_allclose(loop.v[:, 2], tree.v[:, 0], atol=1e-9)
    np.testing.assert_allclose(loop.a[:, 2], tree.a[:, 0], atol=1e-8)


@pytest.mark.parametrize("method, order", [("rk4", 4), ("implicit", 2)])
def test_methods_keep_their_order_with_loops(four_bar, method: str, order: int) -> None:
    robot, q = four_bar
    v = robot.closed.velocities(q, [3.0])
    exact = torsor.simulate(robot, q, v, 0.32, step=2.5e-4, record=0.32)
    ends = [torsor.simulate(robot, q, v, 0.32, step=0.32 / n, record=0.32, method=method) for n in (20, 40, 80)]
    errors = [np.linalg.norm([*(each.q[-1] - exact.q[-1]), *(each.v[-1] - exact.v[-1])]) for each in ends]
    assert np.all(np.abs(np.log2(np.divide(errors[:-1], errors[1:])) - order) < 0.4)
    assert max(np.abs(each.closure_error).max() for each in ends) < 1e-12


def test_energy_does_not_drift_in_implicit_steps(four_bar) -> None:
    robot, q = four_bar
    swing = torsor.simulate(robot, q, duration=40.0, step=4e-3, method="implicit")
    away = np.abs(swing.energy - swing.energy[0])
    assert away[-2000:].max() == pytest.approx(away[:2000].max(), rel=0.01)


def test_implicit_is_stable_with_stiff_springs(four_bar) -> None:
    robot, q = four_bar
    still = robot.with_spring("rocker_joint", 1e8, damping=1e3, rest=float(q[2]))
    with refused(fix="implicit", error=torsor.SimulationError):
        torsor.simulate(still, q, duration=0.5)
    held = torsor.simulate(still, q, duration=0.5, method="implicit", step=5e-3)
    assert np.abs(held.closure_error).max() < 1e-12
    # It hangs on the spring and swings to and fro about where that carries its weight.
    force = robot.with_active(["rocker_joint"]).closed.inverse_dynamics(q, [0.0], [0.0])[0]
    assert np.mean(held.q[1:, 2] - q[2]) == pytest.approx(-force / 1e8, rel=0.02)


def test_adaptive_agrees_and_closes_the_loops(four_bar) -> None:
    robot, q = four_bar
    settings = {"duration": 1.0, "record": 0.05, "controller": [1.0]}
    fixed = torsor.simulate(robot, q, step=2.5e-4, **settings)
    adaptive = torsor.simulate(robot, q, method="adaptive", rtol=1e-11, atol=1e-13, **settings)
    np.testing.assert_allclose(adaptive.q, fixed.q, atol=1e-8)
    assert np.abs(adaptive.closure_error).max() < 1e-13


def test_dead_points_of_the_drive_are_passed() -> None:
    robot = library.slider_crank()
    q = robot.closed.assemble([0.3], guess=[0.3, -0.1, 0.19])
    v = robot.closed.velocities(q, [60.0])
    by_crank = torsor.simulate(robot, q, v, 0.4, step=2.5e-4)
    assert by_crank.q[-1, 0] > 4 * np.pi  # stretched and folded, several times
    by_slide = torsor.simulate(robot.with_active(["slide"]), q, v, 0.4, step=2.5e-4)
    by_none = torsor.simulate(robot.with_active([]), q, v, 0.4, step=2.5e-4)
    for other in (by_slide, by_none):
        np.testing.assert_allclose(other.q, by_crank.q, atol=1e-8)
    assert np.isfinite(by_slide.a).all() and np.ptp(by_slide.energy) < 1e-6 * by_slide.energy[0]


@pytest.mark.parametrize("method", ["rk4", "implicit", "adaptive"])
def test_loss_of_rank_raises_an_error_with_the_time(parallelogram, method: str) -> None:
    robot, q = parallelogram
    with refused(fix="avoid this configuration", error=torsor.SimulationError) as caught:
        torsor.simulate(robot, q, method=method)
    until = caught.value.trajectory
    assert until.status == "failed" and abs(until.q[-1, 0]) < 0.1
    np.testing.assert_allclose(until.q[:, 0], until.q[:, 2], atol=1e-9)
    with refused(what="at t = 0 s", error=torsor.SimulationError):
        torsor.simulate(robot, [0.0, 0.0, 0.0], method=method)


def test_the_error_has_the_trajectory_until_the_failure(parallelogram) -> None:
    robot, q = parallelogram
    v = np.array([[0.0, 0.0, 0.0], [30.0, -30.0, 30.0]])
    with refused(where="rollout [1]:", what="lose their rank at t = 0.0", error=torsor.SimulationError) as caught:
        torsor.simulate(robot, q, v, 0.1, method="adaptive", record=0.01)
    until = caught.value.trajectory
    assert np.isfinite(until.a[0]).all() and np.isnan(until.a[1, -1]).all() and np.isfinite(until.a[1, 0]).all()
    assert np.isfinite(until.reactions[0]).all()
    with refused(where="rollout [1]", what="the loops lose their rank at t = 0.0", error=torsor.SimulationError):
        torsor.simulate(robot, q, v, 0.1)


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_other_closure_equations_are_chosen_where_the_present_ones_become_dependent(parallelogram, method: str) -> None:
    robot, q = parallelogram
    geared = robot.with_coupling("gear", {"crank_joint": 1.0, "rocker_joint": -1.0})
    settings = {"duration": 1.5, "method": method, "rtol": 1e-10, "atol": 1e-12, "record": 0.1}
    fall = torsor.simulate(geared, q, **settings)
    assert fall.q[-1, 0] < -1.0  # it went through
    poor = robot.with_coupling("gear", {"crank_joint": 1.0, "rocker_joint": -1.0})
    choice = ClosureChoice((0, 1), scales=tuple(poor.closed.closure._equation_scales[:2]))
    poor.closed.closure.__dict__["independent_equations"] = poor.closed.closure._with_scales(choice)
    np.testing.assert_allclose(torsor.simulate(poor, q, **settings).q, fall.q, atol=1e-8)
    many = torsor.simulate(poor, np.stack([q, q * 0.8]), **settings)  # each rollout has its own choice
    np.testing.assert_allclose(many.q[0], fall.q, atol=1e-8)
    np.testing.assert_allclose(many.q[1], torsor.simulate(geared, 0.8 * q, **settings).q, atol=1e-8)
    np.testing.assert_allclose(many.a[0], fall.a, atol=1e-6)


def test_forces_are_given_for_all_coordinates_or_for_the_active_ones(four_bar) -> None:
    robot, q = four_bar
    t, x, v = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    ways = [
        [2.0, 0.0, 0.0],
        [2.0],
        lambda t, q, v: np.array([2.0]),
        lambda t, q, v: np.array([2.0, 0.0, 0.0]),
        ca.Function("few", [t, x, v], [ca.SX(2.0)]),
        ca.Function("all", [t, x, v], [ca.SX([2.0, 0.0, 0.0])]),
    ]
    found = [torsor.simulate(robot, q, duration=0.05, controller=way) for way in ways]
    for each in found:
        assert each.tau.shape == (51, 3) and np.array_equal(each.tau[0], [2.0, 0.0, 0.0])
        np.testing.assert_allclose(each.q, found[0].q, rtol=0, atol=1e-14)  # sums may be in another order
    passive = torsor.simulate(robot, q, duration=0.05, controller=[0.0, 0.0, 2.0])  # the rocker's, which is no drive
    assert np.abs(passive.q - found[0].q).max() > 1e-4
    with refused(argument="controller"):
        torsor.simulate(robot, q, controller=[1.0, 2.0])
    with refused(what="controller returned an array of shape"):
        torsor.simulate(robot, q, controller=lambda t, q, v: np.zeros(2))


def test_power_equals_the_rate_of_energy(four_bar) -> None:
    robot, q = four_bar
    wind = np.zeros((3, 6))
    wind[1, 3:] = 3.0, -2.0, 5.0
    push = torsor.simulate(robot, q, duration=0.5, step=5e-4, controller=[4.0], external=wind)
    power = (push.tau * push.v).sum(-1) + (wind * robot.velocities(push.q, push.v)).sum((-2, -1))
    h = push.times[1]
    work = h / 3 * (power[0] + power[-1] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum())
    assert push.energy[-1] - push.energy[0] == pytest.approx(work, rel=1e-8)


def test_a_batch_equals_its_rollouts_bit_for_bit(four_bar) -> None:
    robot, q = four_bar
    starts = robot.closed.assemble([[0.5], [1.0], [-0.7]], guess=q)
    v = robot.closed.velocities(starts, [[0.0], [2.0], [-1.0]])
    together = torsor.simulate(robot, starts, v, 0.05)
    for i in range(3):
        alone = torsor.simulate(robot, starts[i], v[i], 0.05)
        for name in ("q", "v", "a", "tau"):
            assert np.array_equal(getattr(together[i], name), getattr(alone, name)), name


def test_reactions_balance_weight_and_momentum(four_bar) -> None:
    robot, q = four_bar
    swing = torsor.simulate(robot, q, duration=0.3, controller=[1.0])
    poses = robot.poses(swing.q)[:, [0, 2], :3, :3]  # what stands on the ground: crank and rocker
    force = np.einsum("tlij,tlj->ti", poses, swing.reactions[:, [0, 2], 3:])
    _, rate = robot.derivatives.jvp("momentum", (swing.q, swing.v), (swing.v, swing.a))
    np.testing.assert_allclose(force + robot.mass * robot.gravity, rate[:, 3:], atol=1e-9)
    axial = swing.reactions[:, 1, 2]  # about the coupler's own pin there is nothing
    np.testing.assert_allclose(axial, 0, atol=1e-10)


def test_between_samples_and_in_files_loops_are_closed(four_bar, tmp_path: Path) -> None:
    robot, q = four_bar
    swing = torsor.simulate(robot, q, duration=0.3, record=0.02)
    now = swing.at(np.linspace(0.0, 0.3, 17))
    assert np.abs(robot.closed.jacobian(now.q) @ now.v[..., None]).max() < 1e-12
    assert np.abs(robot.closed.error(now.q)).max() < 1e-13
    swing.save(tmp_path / "swing.npz")
    back = torsor.Trajectory.load(tmp_path / "swing.npz")
    assert back.robot == robot and np.array_equal(back.closure_error, swing.closure_error)
    assert len(swing.plot(what=("q", "closure")).axes) == 2
    assert torsor.simulate(library.two_link(), duration=0.01).closure_error.shape == (11, 0)


def test_sampled_controllers_and_events(four_bar) -> None:
    robot, q = four_bar

    def upright(t, q, v):
        return q[..., 0] - np.pi / 2

    upright.terminal = True
    turn = torsor.simulate(
        robot, q, duration=2.0, controller=lambda t, q, v: np.array([40.0 - v[0]]), control_period=0.01, events=upright
    )
    assert turn.status == "event" and turn.q[-1, 0] == pytest.approx(np.pi / 2, abs=1e-8)
    assert np.abs(turn.closure_error).max() < 1e-13


def test_mujoco_converges_to_the_motion_as_its_constraints_stiffen(four_bar) -> None:
    mujoco = pytest.importorskip("mujoco")
    robot, q = four_bar
    exact = torsor.simulate(robot, q, duration=0.3, step=1e-4).q[-1]
    ground, crank, coupler, rocker = LENGTHS
    bars = []
    for link, end in zip(robot.links, (crank, coupler, rocker), strict=True):
        moments = " ".join(map(repr, np.diag(link.inertia).tolist()))
        mass = f'<inertial pos="{link.com[0]} 0 0" mass="{link.mass}" diaginertia="{moments}"/>'
        bars.append(f'<joint/>{mass}<site name="{link.name}" pos="{end} 0 0"/>')
    off = []
    for constant in (0.02, 0.01, 0.005):
        model = mujoco.MjModel.from_xml_string(f"""<mujoco><option gravity="0 -9.81 0" timestep="1e-4" integrator="RK4"
          tolerance="1e-14" iterations="200"/><default><joint type="hinge" axis="0 0 1"/></default><worldbody>
          <body>{bars[0]}<body pos="{crank} 0 0">{bars[1]}</body></body><body pos="{ground} 0 0">{bars[2]}</body>
          </worldbody><equality><connect site1="coupler" site2="rocker" solref="{constant} 1"
          solimp="0.9999 0.99999 0.001"/></equality></mujoco>""")
        data = mujoco.MjData(model)
        data.qpos[:] = q
        while data.time < 0.3 - 1e-9:
            mujoco.mj_step(model, data)
        off.append(np.abs(data.qpos - exact).max())
    assert off[0] > 2 * off[1] > 4 * off[2] and off[2] < 1e-3


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, "q0 = robot.closed.assemble(q_active, guess), or robot.closed.positions(q0)"),
        ({"q0": [0.5, 0.3, 1.5]}, "q0 does not close the loops"),
        ({"v0": [1.0, 0.0, 0.0]}, "v0 = robot.closed.velocities"),
    ],
)
def test_an_open_initial_state_raises_an_error(four_bar, settings: dict, message: str) -> None:
    robot, q = four_bar
    start = {"q0": q} if "v0" in settings else {}
    with refused(message):
        torsor.simulate(robot, **start, **settings)


@pytest.mark.parametrize("method", ["rk4", "implicit"])
def test_a_step_too_long_to_close_the_loops_raises_an_error(four_bar, method: str) -> None:
    robot, q = four_bar
    v = robot.closed.velocities(q, [30.0])
    with refused(fix="a step below 0.05 s", error=torsor.SimulationError):
        torsor.simulate(robot, q, v, step=0.05, method=method)


def test_loops_are_simulated_in_double_precision(four_bar) -> None:
    robot, q = four_bar
    swing = torsor.simulate(robot.to(dtype="float32"), q, duration=0.05)
    assert swing.q.dtype == np.float64 and np.abs(swing.closure_error).max() < 1e-13


def test_links_without_inertia_raise_an_error(four_bar) -> None:
    robot, q = four_bar
    with pytest.warns(torsor.ModelWarning):
        light = torsor.build(
            "light",
            [robot.base, robot.links[0], Link("coupler"), robot.links[2]],
            robot.joints,
            robot.frames,
            robot.gravity,
        )
    light = light.with_loop("pin", "coupler_end", "rocker_end")
    with refused(fix="give inertia to the links that it moves"):
        torsor.simulate(light, q)


def test_a_coupling_stays_satisfied() -> None:
    chain = library.planar_chain(2).with_frame("tip", "link2", make_pose(p=[1, 0, 0]))
    geared = chain.with_coupling("gear", {"joint1": 1.0, "joint2": 2.0}, 0.3)
    fall = torsor.simulate(geared, [0.1, 0.1], duration=1.0)
    np.testing.assert_allclose(fall.q[:, 0] + 2 * fall.q[:, 1], 0.3, atol=1e-13)
    assert np.ptp(fall.energy) < 1e-8 < np.ptp(fall.kinetic_energy)


def test_elastic_drives_move_loops() -> None:
    plain = library.slider_crank()
    robot = plain.with_motor("crank_joint", 1e-4, 5.0, carrier="ground", stiffness=50.0)
    robot = robot.with_active(["crank_joint/motor"])
    q = np.append(plain.closed.assemble([0.5], guess=[0.5, -0.6, 0.18]), 0.55)  # the spring is wound up
    ways = [
        torsor.simulate(robot, q, duration=0.2, step=1e-4, record=0.02, method=each) for each in ("rk4", "adaptive")
    ]
    np.testing.assert_allclose(ways[0].q, ways[1].q, atol=1e-6)
    assert np.ptp(ways[0].energy) < 1e-7 < np.ptp(ways[0].kinetic_energy)
    assert np.abs(ways[0].closure_error).max() < 1e-14
