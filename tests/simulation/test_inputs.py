"""Errors for invalid input of a simulation."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned

ARM = torsor.library.two_link()
BODY = torsor.library.random_tree(1, 0, types=("free",))


def wrong_function() -> ca.Function:
    t, q = ca.SX.sym("t"), ca.SX.sym("q", 2)
    return ca.Function("wrong", [t, q], [q])


def implicit_function() -> ca.Function:
    t, q, v, x = ca.MX.sym("t"), ca.MX.sym("q", 2), ca.MX.sym("v", 2), ca.MX.sym("x", 2)
    solve = ca.rootfinder("solve", "newton", {"x": x, "p": q, "g": x**3 - q})
    return ca.Function("implicit", [t, q, v], [solve(q, q)])


def table_function() -> ca.Function:
    t, q, v = ca.MX.sym("t"), ca.MX.sym("q", 2), ca.MX.sym("v", 2)
    table = ca.interpolant("table", "bspline", [[0, 1, 2, 3, 4]], [0, 1, 4, 9, 16])
    return ca.Function("table", [t, q, v], [ca.vertcat(table(q[0]), v[0])])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"q0": [0.0]}, "q0"),
        ({"q0": 0.0}, "q0"),
        ({"q0": [0.0, np.nan]}, "q0"),
        ({"v0": [[0.0, 0.0], [0.0, np.inf]]}, "v0"),
        ({"v0": "fast"}, "v0"),
        ({"q0": [[1], [1, 2]]}, "q0"),
        ({"q0": np.zeros((3, 2)), "v0": np.zeros((2, 2))}, "do not broadcast: q0 (3,), v0 (2,)"),
        ({"q0": np.zeros((0, 2))}, "the batch is empty"),
        ({"duration": 0}, "duration"),
        ({"duration": np.inf}, "duration"),
        ({"duration": None}, "duration"),
        ({"step": -1e-3}, "step"),
        ({"step": True}, "step"),
        ({"record": 1e-4}, "record"),
        ({"rtol": 0.0}, "rtol"),
        ({"method": "euler"}, "method"),
        ({"control_period": 0.01}, "`control_period` needs a controller"),
        ({"controller": [0, 0], "delay": 0.01}, "delay"),
        ({"controller": [0, 0], "control_period": 0.01, "delay": 0.015}, "delay"),
        ({"controller": [0, 0], "control_period": 0.01, "delay": -0.01}, "delay"),
        ({"controller": [0.0]}, "controller"),
        ({"controller": lambda t, q, v: [0.0]}, "controller returned an array of shape (1,) at t = 0 s"),
        ({"controller": wrong_function()}, "controller wrong takes [(1, 1), (2, 1)]"),
        ({"controller": implicit_function()}, "cannot be expanded into scalar operations"),
        ({"controller": table_function()}, "pass a Python function that calls it"),
        ({"external": np.zeros((3, 6))}, "external"),
        ({"external": lambda t, q, v: np.zeros(6)}, "external returned an array of shape"),
    ],
)
def test_errors_name_the_wrong_argument(settings: dict[str, object], message: str) -> None:
    with refused(message):
        torsor.simulate(ARM, **settings)


def test_the_robot_must_be_a_robot() -> None:
    with refused(value="arm.urdf", allowed="a torsor.Robot"):
        torsor.simulate("arm.urdf")


def test_quaternions_of_length_zero_raise_an_error_and_others_are_normalised() -> None:
    with refused(fix="begin with robot.neutral"):
        torsor.simulate(BODY, np.zeros(7))
    q = BODY.integrate(BODY.neutral(), np.arange(6) / 5)
    longer = q * [1, 1, 1, 3, 3, 3, 3]
    assert np.allclose(torsor.simulate(BODY, longer, duration=0.01).q, torsor.simulate(BODY, q, duration=0.01).q)


def test_steps_fit_the_duration_and_samples_the_steps() -> None:
    odd = torsor.simulate(ARM, duration=0.0105)
    assert len(odd) == 12
    assert odd.times[-1] == 0.0105
    assert np.allclose(np.diff(odd.times), 0.0105 / 11)
    thin = torsor.simulate(ARM, duration=0.01, record=0.004)
    assert np.allclose(thin.times, [0, 0.004, 0.008, 0.01])
    sampled = torsor.simulate(ARM, duration=0.01, controller=[1, 0], control_period=0.004, step=0.003)
    assert np.allclose(sampled.times, [0, 0.002, 0.004, 0.006, 0.008, 0.01])
    assert np.allclose(torsor.simulate(ARM, duration=0.01, method="adaptive", record=0.004).times, thin.times)


def test_samples_are_as_far_apart_as_record_says() -> None:
    for record, duration in ((0.0333, 0.5), (0.1, 1.0005), (0.7, 0.5)):
        found = torsor.simulate(ARM, duration=duration, record=record)
        expected = [*np.arange(0.0, duration, record), duration]
        np.testing.assert_allclose(found.times, expected, rtol=0, atol=1e-12)
    fine = torsor.simulate(ARM, v0=[1.0, 0.5], duration=0.5, record=0.0333)
    np.testing.assert_allclose(
        fine.q, torsor.simulate(ARM, v0=[1.0, 0.5], duration=0.5).at(fine.times).q, rtol=0, atol=1e-9
    )
    with warned(argument="record", fix="0.002"):
        odd = torsor.simulate(ARM, duration=0.02, controller=[1, 0], control_period=0.004, step=0.003, record=0.0033)
    assert np.allclose(np.diff(odd.times), 0.004)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torsor.simulation.integration.LARGEST", 8 * 8 * 10)  # ten samples of one rollout
    few = torsor.simulate(ARM, duration=0.1)
    assert len(few) == 11
    assert few.times[-1] == 0.1
    assert len(torsor.simulate(ARM, duration=0.1, method="adaptive")) <= 12
    assert len(torsor.simulate(ARM, duration=0.1, record=1e-3)) == 101


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    torsor.simulate(ARM, duration=0.05, progress=True)
    assert "simulating" in capsys.readouterr().err
    torsor.simulate(ARM, duration=0.05)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"controller": lambda t, q, v: "much"}, "controller returned 'much' at t = 0 s"),
        ({"step": 1e-300}, "1 s with a step of 1e-300 s"),
        ({"record": 1e-15, "method": "adaptive"}, "with a record of 1e-15 s"),
    ],
)
def test_more_errors_name_the_wrong_argument(settings: dict[str, object], message: str) -> None:
    with refused(message):
        torsor.simulate(torsor.library.two_link(), **settings)


@pytest.mark.filterwarnings("ignore::torsor.ModelWarning")
@pytest.mark.parametrize("method", ["rk4", "implicit", "adaptive"])
def test_a_singular_mass_matrix_names_the_coordinate(method: str) -> None:
    links = [torsor.Link("ground"), torsor.Link("arm", 1.0, (0.1, 0, 0)), torsor.Link("ghost")]
    joints = [torsor.Joint("hinge", "revolute", "ground", "arm"), torsor.Joint("spin", "revolute", "arm", "ghost")]
    with refused(what="mass matrix is singular at the start: spin moves no inertia", error=torsor.SimulationError):
        torsor.simulate(torsor.build("haunted", links, joints), method=method)
