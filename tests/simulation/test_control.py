"""Controllers and the environment agree with loops written by hand."""

import warnings

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.motion import End, Phase, Start, Time, Torques

ARM = torsor.library.two_link()
DRIVEN = torsor.library.planar_chain(2)


def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return 30 * (np.sin(t) - q) - 2 * v


def traced_law() -> ca.Function:
    t, q, v = ca.MX.sym("t"), ca.MX.sym("q", 2), ca.MX.sym("v", 2)
    return ca.Function("law", [t, q, v], [30 * (ca.sin(t) - q) - 2 * v])


def rk4(robot: torsor.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """One step with plain coordinates and a force that holds."""

    def rate(y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[2:], robot.forward_dynamics(y[:2], y[2:], tau)])

    y = np.concatenate([q, v])
    k1 = rate(y)
    k2 = rate(y + h / 2 * k1)
    k3 = rate(y + h / 2 * k2)
    k4 = rate(y + h * k3)
    y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y[:2], y[2:]


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("controller", [law, traced_law()], ids=["python", "casadi"])
@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_a_sampled_and_delayed_controller(method: str, controller: object, delay: int) -> None:
    period, h, count = 0.01, 0.002, 12
    found = torsor.simulate(
        DRIVEN, [0.1, 0.2], duration=count * period, step=h, method=method, record=h,
        controller=controller, control_period=period, delay=delay * period,
    )  # fmt: skip
    q, v, sent, rows, forces = np.array([0.1, 0.2]), np.zeros(2), [np.zeros(2)] * delay, [], []
    for k in range(count):
        sent = [*sent, law(k * period, q, v)]
        for _ in range(5):
            rows.append(q)
            forces.append(sent[k])
            q, v = rk4(DRIVEN, q, v, sent[k], h)
    tolerance = 1e-12 if method == "rk4" else 1e-7
    assert np.abs(found.q[:-1] - rows).max() < tolerance
    assert np.abs(found.q[-1] - q).max() < tolerance
    assert np.abs(found.tau[:-1] - forces).max() < 100 * tolerance


def test_a_python_controller_is_called_once_per_step_and_held() -> None:
    calls = []

    def spy(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        calls.append(t)
        return law(t, q, v)

    found = torsor.simulate(DRIVEN, duration=0.02, controller=spy)
    assert np.allclose(calls, np.arange(20) * 1e-3, atol=1e-15)
    q, v = np.zeros(2), np.zeros(2)
    for t in calls:
        q, v = rk4(DRIVEN, q, v, law(t, q, v), 1e-3)
    assert np.abs(found.q[-1] - q).max() < 1e-13


def test_a_traced_controller_keeps_the_order_of_the_method() -> None:
    ends = [torsor.simulate(DRIVEN, duration=0.4, step=0.4 / n, controller=traced_law()).q[-1] for n in (20, 40, 640)]
    assert 3.6 < np.log2(np.linalg.norm(ends[0] - ends[2]) / np.linalg.norm(ends[1] - ends[2])) < 4.4
    smooth = torsor.simulate(DRIVEN, duration=0.4, method="adaptive", controller=law, rtol=1e-10, atol=1e-12)
    assert np.abs(smooth.q[-1] - ends[2]).max() < 1e-8
    motion = torsor.simulate(DRIVEN, duration=0.05, controller=traced_law())
    assert np.abs(motion.tau - law(motion.times[:, None], motion.q, motion.v)).max() < 1e-12


def test_an_object_with_a_function_is_a_controller() -> None:
    class Controller:
        function = traced_law()

    given = torsor.simulate(DRIVEN, duration=0.05, controller=Controller())
    assert np.array_equal(given.q, torsor.simulate(DRIVEN, duration=0.05, controller=traced_law()).q)


@pytest.mark.parametrize("method", ["rk4", "implicit", "sdirk", "adaptive"])
def test_samples_over_time_are_a_signal_that_is_linear_between_them(method: str) -> None:
    mass = torsor.library.planar_chain(1, length=2.0, mass=3.0, gravity=(0, 0, 0))  # inertia 4 kg m^2
    times, tau = np.array([0.0, 0.2, 0.5]), np.array([[0.0], [8.0], [-4.0]])
    motion = torsor.simulate(mass, duration=0.5, controller=(times, tau), method=method, step=1e-3)
    assert motion.q.shape == (501, 1)
    np.testing.assert_allclose(motion.tau, np.interp(motion.times, times, tau[:, 0])[:, None], rtol=0, atol=1e-12)
    # v = integral of tau / 4, and q its integral: polynomials of the time within each interval
    t = motion.times[motion.times > 0.2] - 0.2
    v, q = 0.2 + 2 * t - 5 * t**2, 0.04 / 3 + 0.2 * t + t**2 - 5 / 3 * t**3
    tolerance = {"rk4": 1e-13, "adaptive": 1e-8}.get(method, 1e-6)
    np.testing.assert_allclose(motion.v[motion.times > 0.2, 0], v, rtol=0, atol=tolerance)
    np.testing.assert_allclose(motion.q[motion.times > 0.2, 0], q, rtol=0, atol=tolerance)
    assert motion.settings["controller"] == "sampled force"


def test_sampled_forces_with_loops_batches_wrenches_and_events() -> None:
    robot = torsor.library.four_bar()
    q0 = robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    times = np.linspace(0.0, 0.1, 11)

    def ramp(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([20 * t])

    samples = times, 20 * times[:, None]
    found, called = (
        torsor.simulate(robot, q0, duration=0.1, method="adaptive", controller=each) for each in (samples, ramp)
    )
    np.testing.assert_allclose(found.q, called.q, rtol=0, atol=1e-8)
    fixed = torsor.simulate(robot, np.stack([q0, q0]), duration=0.1, controller=samples)
    np.testing.assert_allclose(fixed.q[1], found.q, rtol=0, atol=1e-8)
    wind = times, np.zeros((11, 2, 6))
    wind[1][:, 1, 3] = np.sin(20 * times)
    together = torsor.simulate(ARM, duration=0.1, external=wind, events=lambda t, q, v: q[..., 0] - 1e-4)
    np.testing.assert_allclose(
        together.external[:, 1, 3], np.interp(together.times, times, wind[1][:, 1, 3]), atol=1e-14
    )
    crossing = together.events[0]
    np.testing.assert_allclose(together.at(crossing.times).q[:, 0], 1e-4, rtol=0, atol=1e-10)


def test_a_step_that_skips_samples_is_named() -> None:
    times = np.linspace(0.0, 0.1, 1001)
    pulse, wind = np.zeros((1001, 2)), np.zeros((1001, 2, 6))
    pulse[503:508, 0] = 5.0  # within one step
    fields = {"what": "0.0001 s apart", "fix": "`step=0.0001`"}
    with warned(where="controller", **fields):
        still = torsor.simulate(DRIVEN.with_gravity((0, 0, 0)), duration=0.1, controller=(times, pulse))
    assert not still.v.any()  # the pulse is lost
    with warned(where="external", **fields):
        torsor.simulation.rollout(DRIVEN, np.zeros(2), np.zeros(2), 0.1, external=(times, wind))
    jump = [0.0, 0.05, 0.05 + 1e-9, 0.1], pulse[:4]
    with warnings.catch_warnings():
        warnings.simplefilter("error", torsor.ModelWarning)
        torsor.simulate(DRIVEN, duration=0.1, controller=(times, pulse), step=1e-4)
        torsor.simulate(DRIVEN, duration=0.1, controller=(times, pulse), method="adaptive")
        torsor.simulate(DRIVEN, duration=0.1, controller=(times, pulse), control_period=0.002)
        torsor.simulate(DRIVEN, duration=0.1, controller=jump)


def test_the_torques_of_a_planned_motion_replay_it() -> None:
    phase, ends = Phase(duration=(0.1, 2.0)), [Start(q=[0.0, -2.0], v=0.0), End(q=[1.0, -1.0], v=0.0)]
    best = torsor.MotionProblem(ARM, phase, Time(), [*ends, Torques(upper=10.0)]).solve()
    with refused(argument="controller", where="two_link", what=f"{best.tau.shape}", fix="`controller=(times, values)`"):
        torsor.simulate(ARM, best.q[0], duration=best.T, controller=best.tau)
    replay = torsor.simulate(ARM, best.q[0], duration=best.T, controller=(best.times, best.tau))
    assert np.abs(replay.q - best.at(replay.times).q).max() < 1e-3
    again = torsor.simulate(ARM, best.q[0], duration=best.T, controller=[best.times, best.tau])
    assert np.array_equal(again.q, replay.q)


@pytest.mark.parametrize(
    ("signal", "fields"),
    [
        (([0.0, 0.5], np.zeros((2, 2))), {"allowed": "from 0 to the duration, 1 s"}),
        (([0.0, 1.0], np.zeros((3, 2))), {"allowed": "(2, 2), a row for each time"}),
        (([1.0, 0.0], np.zeros((2, 2))), {"allowed": "increasing times"}),
        (([0.0, 1.0], np.full((2, 2), np.nan)), {"allowed": "finite"}),
        (([0.0, 1e-320, 1.0], np.arange(6.0).reshape(3, 2)), {"what": "too steep"}),
        (([[0.0], [1.0]], np.ones((2, 2))), {"allowed": "samples (times, values) of shapes (T,) and (T, 2)"}),
        (np.zeros((3, 2)), {"argument": "controller", "allowed": "(2,)"}),
    ],
)
def test_samples_that_do_not_fit_are_refused(signal: object, fields: dict[str, str]) -> None:
    with refused(**fields):
        torsor.simulate(ARM, controller=signal)


def test_constant_forces_have_the_leading_axes_of_the_start() -> None:
    with refused(argument="controller", what="(3, 2)", allowed="(2,) or (4, 2)"):
        torsor.simulate(ARM, np.zeros((4, 2)), controller=np.zeros((3, 2)))
    with refused(argument="external", what="one state", fix="`external=(times, values)`"):
        torsor.simulate(ARM, external=np.zeros((5, 2, 6)))


def test_batches_of_held_forces() -> None:
    forces = np.random.default_rng(1).normal(size=(3, 1, 2))
    together = torsor.simulate(ARM, np.zeros((3, 4, 2)), duration=0.02, controller=forces)
    assert together.q.shape == (3, 4, 21, 2)
    assert np.array_equal(together.q[1, 3], torsor.simulate(ARM, duration=0.02, controller=forces[1, 0]).q)
    batched = torsor.simulate(ARM, np.zeros((4, 2)), duration=0.02, controller=lambda t, q, v: -v)
    assert batched.tau.shape == (4, 21, 2)


def drag(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    twists = DRIVEN.velocities(q, v)
    return -0.8 * twists


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_the_environment_as_array_function_and_casadi_function(method: str) -> None:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    traced = ca.Function("drag", [t, q, v], [-0.8 * DRIVEN.function("velocities")(q, v)])
    exact = torsor.simulate(DRIVEN, v0=[1, 0], duration=0.2, external=traced, method=method)
    called = torsor.simulate(DRIVEN, v0=[1, 0], duration=0.2, external=drag, method=method, step=2e-4)
    assert np.abs(exact.q[-1] - called.q[-1]).max() < (1e-4 if method == "rk4" else 1e-7)
    assert np.abs(exact.external - drag(0, exact.q, exact.v)).max() < 1e-12
    power = np.einsum("tli,tli->t", exact.external, DRIVEN.velocities(exact.q, exact.v))
    lost = np.sum((power[1:] + power[:-1]) / 2 * np.diff(exact.times))
    assert abs(exact.energy[-1] - exact.energy[0] - lost) < 1e-4 * abs(lost)
    weight = np.zeros((2, 6))
    weight[:, 4] = 9.81  # holds each rod at its hinge along its own y axis: not balance, but a constant wrench
    assert torsor.simulate(DRIVEN, duration=0.01, external=weight, method=method).external.shape == (11, 2, 6)


def test_ctrl_c_returns_the_samples_so_far() -> None:
    def impatient(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if t > 0.0505:
            raise KeyboardInterrupt
        return np.zeros(2)

    for method in ("rk4", "adaptive"):
        motion = torsor.simulate(ARM, duration=1.0, controller=impatient, method=method)
        assert motion.status == "interrupted"
        assert len(motion) == len(motion.q) == len(motion.a) <= 51
        assert np.isfinite(motion.q).all()
    assert torsor.simulate(ARM, duration=1.0, controller=impatient).times[-1] == pytest.approx(0.05)


def test_divergence_raises_an_error_with_the_trajectory_until_then() -> None:
    with refused(where="rollout [1]", fix="a step below", error=torsor.SimulationError) as caught:
        torsor.simulate(
            ARM, v0=[[0, 0], [1, 1], [2, 2]], controller=lambda t, q, v: 1e3 * v * np.abs(v), control_period=1e-3
        )
    kept = caught.value.trajectory
    assert kept is not None
    assert kept.status == "failed"
    assert kept.q.shape[0] == 3
    assert np.isfinite(kept.q).all()
    with refused(
        what="controller returned numbers that are not finite at t = 0", error=torsor.SimulationError
    ) as caught:
        torsor.simulate(ARM, controller=lambda t, q, v: np.full(2, np.nan if t > 0.0095 else 0.0))
    assert len(caught.value.trajectory) == 10


def test_an_environment_that_is_not_finite_does_not_hang_the_solver() -> None:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    broken = ca.Function("broken", [t, q, v], [ca.sqrt(0.05 - t) + 0 * v])
    for method in ("rk4", "adaptive"):
        with pytest.raises(torsor.SimulationError) as caught:
            torsor.simulate(ARM, controller=broken, method=method)
        assert 40 < len(caught.value.trajectory) <= 52


def test_a_controller_cannot_write_to_the_state() -> None:
    def careless(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        q += 1
        return v

    with pytest.raises(ValueError, match="read-only"):
        torsor.simulate(ARM, controller=careless)


def test_drives_that_are_asked_for_more_than_they_give_are_named() -> None:
    arm = torsor.library.two_link()  # drives of 10 N m
    law = torsor.control.gravity_pd(arm, [1.0, 0.5], kp=50.0, kd=5.0)
    with warned(what="N m at t = 0 s, which exceeds its limit of 10 N m"):
        motion = torsor.simulate(arm, [[0.0, 0.0], [0.9, 0.5]], duration=0.05, controller=law)
    worst, other = motion.overloads
    assert (worst.coordinate, worst.time, worst.limit, other.coordinate) == ("joint1", 0.0, 10.0, "joint2")
    assert worst.force == motion.tau[0, 0, 0] > other.force > 10.0
    assert not torsor.simulate(arm, duration=0.05, controller=[10.0, -10.0]).overloads  # the limit itself
    assert not motion[1].overloads  # the second rollout starts close to the target
