"""Events against closed forms."""

import casadi as ca
import mpmath
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.mechanism import Joint, Link

ROD = torsor.library.planar_chain(1, gravity=(0, -9.81, 0))
BALL = torsor.build("ball", [Link("ground"), Link("ball", mass=1.0)], [Joint("slide", "prismatic", "ground", "ball")])


def height(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return q[..., 0]


def quarter_period(start: float) -> float:
    return float(mpmath.ellipk(mpmath.sin(start / 2) ** 2) / mpmath.sqrt(1.5 * 9.81))


def bottom(direction: int = 0, terminal: bool = False) -> ca.Function:
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    event = ca.Function("bottom", [t, q, v], [q + np.pi / 2])
    event.direction, event.terminal = direction, terminal
    return event


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 1e-9), ("adaptive", 1e-6)])
def test_a_pendulum_passes_the_bottom_on_time(method: str, tolerance: float) -> None:
    quarter = quarter_period(1.0)
    swing = torsor.simulate(ROD, [1.0 - np.pi / 2], duration=6 * quarter, method=method, events=[bottom(), bottom(1)])
    both, rising = swing.events
    assert np.abs(both.times - np.array([1, 3, 5]) * quarter).max() < tolerance
    assert np.abs(rising.times - 3 * quarter).max() < tolerance
    assert np.abs(both.q + np.pi / 2).max() < 10 * tolerance
    assert both.rollouts.shape == (3, 0)
    assert swing.status == "done"


@pytest.mark.parametrize(("method", "tolerance"), [("rk4", 2e-10), ("adaptive", 1e-7)])
def test_a_ball_falls_to_the_ground_and_the_simulation_ends(method: str, tolerance: float) -> None:
    def ground(t: float, q: np.ndarray, v: np.ndarray) -> float:
        return float(q[0])

    ground.terminal = True
    exact = np.sqrt(2 * 1.7 / 9.81)
    fall = torsor.simulate(BALL, [1.7], duration=2.0, method=method, events=ground)
    assert fall.status == "event"
    assert abs(fall.times[-1] - exact) < tolerance
    assert abs(fall.q[-1, 0]) < 10 * tolerance
    assert abs(fall.v[-1, 0] + 9.81 * exact) < 10 * tolerance
    assert len(fall) == int(exact * 1000) + 2
    assert np.all(np.diff(fall.times) > 0)


@pytest.mark.parametrize("method", ["rk4", "adaptive"])
def test_each_rollout_of_a_batch_has_its_own_events(method: str) -> None:
    starts = np.array([[1.0], [0.5], [50.0], [2.0]])
    fall = torsor.simulate(BALL, starts, duration=0.7, method=method, events=[height])
    event = fall.events[0]
    order = np.argsort(event.rollouts[:, 0])
    assert event.rollouts[order, 0].tolist() == [0, 1, 3]
    exact = np.sqrt(2 * starts[[0, 1, 3], 0] / 9.81)
    assert np.abs(event.times[order] - exact).max() < 1e-7
    assert fall[1].events[0].times.tolist() == [event.times[order][1]]
    assert fall[1:].events[0].rollouts[:, 0].tolist() in ([0, 2], [2, 0])
    assert fall[2].events[0].times.size == 0


def test_a_zero_at_the_start_is_not_an_event() -> None:
    assert torsor.simulate(BALL, [0.0], [1.0], 0.1, events=[height]).events[0].times.size == 0
    thrown = torsor.simulate(BALL, [0.0], [1.0], 0.3, events=[height])
    assert abs(thrown.events[0].times[0] - 2 / 9.81) < 1e-9


def test_a_single_event_needs_no_list() -> None:
    swing = torsor.simulate(ROD, [0.0], duration=1.0, events=bottom(terminal=True))
    assert swing.status == "event"


def test_invalid_events_raise_an_error() -> None:
    with refused(value=3):
        torsor.simulate(BALL, events=[3])
    with refused(what="event returned an array of shape (2,)"):
        torsor.simulate(BALL, events=[lambda t, q, v: np.zeros(2)])
    with refused(what="a terminal event does not support a batch of shape (2,)"):
        torsor.simulate(ROD, [[0.0], [1.0]], events=[bottom(terminal=True)])


def test_a_terminal_event_may_end_at_its_nth_sign_change() -> None:
    """As in SciPy, a number is how often it has to be seen."""
    robot = torsor.library.planar_chain(1)

    def bottom(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return q[..., 0] + np.pi / 2

    bottom.terminal = 3  # type: ignore[attr-defined]
    motion = torsor.simulate(robot, duration=10.0, events=bottom)
    assert motion.status == "event"
    assert len(motion.events[0].times) == 3


@pytest.mark.parametrize("value", [np.nan, None, "late"])
def test_events_that_return_no_number_raise_an_error(value: object) -> None:
    with refused(what="an event returned"):
        torsor.simulate(torsor.library.planar_chain(1), events=lambda t, q, v: value)
