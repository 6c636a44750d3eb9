"""Limits in simulation: drives that saturate, stops at position limits, and rejected input."""

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor import Trajectory, simulate
from torsor.mechanism import Joint, Link
from torsor.robot.load import build
from torsor.simulation import Limits


def slider(**limits: Any) -> Any:
    joint = Joint("rail", "prismatic", "base", "cart", axis=np.array([1.0, 0.0, 0.0]), **limits)
    return build("slider", [Link("base"), Link("cart", 2.0)], [joint])


def test_a_drive_gives_its_effort_limit_at_most_and_is_marked(tmp_path: Path) -> None:
    robot = slider(effort_limit=4.0)
    run = simulate(robot, duration=0.5, controller=[10.0], limits=Limits())
    assert run.v[-1, 0] == pytest.approx(4.0 / 2.0 * 0.5, rel=1e-12)
    assert (run.tau == 4.0).all()
    assert run.saturated.all()
    assert not run.overloads
    run.save(tmp_path / "run.npz")
    assert Trajectory.load(tmp_path / "run.npz").saturated.all()
    weak = simulate(robot, duration=0.1, controller=lambda t, q, v: 100 * (0.05 - t) + 0 * v, limits=Limits())
    assert weak.saturated[0, 0]
    assert not weak.saturated[50, 0]
    assert weak.tau.min() == -4.0


def test_a_stop_returns_the_speed_of_its_law_and_energy_never_grows() -> None:
    robot, d = slider(lower=-0.1, upper=0.1), 0.5
    limits = Limits(stiffness=1e5, dissipation=d)
    run = simulate(robot, [0.05], [1.0], 0.12, limits=limits, step=1e-4)
    e = -run.v[-1, 0]
    assert d * (1 + e) == pytest.approx(np.log((1 + d) / (1 - d * e)), abs=1e-6)
    assert run.q.max() < 0.105
    assert np.abs(2.0 * run.a - run.stops).max() < 1e-9
    assert run.kinetic_energy.max() <= 1.0 + 1e-12
    back = simulate(robot, [-0.05], [-1.0], 0.12, limits=limits, step=1e-4)
    assert back.v[-1, 0] == pytest.approx(e, rel=1e-12)


def test_limits_with_bad_input_are_refused() -> None:
    for name, value in (("stiffness", 0.0), ("stiffness", np.nan), ("dissipation", -1.0), ("stops", 1)):
        with refused(argument=name):
            Limits(**{name: value})  # type: ignore[arg-type]
    with refused(what="no position limits"):
        simulate(slider(), limits=Limits())
    with refused(argument="limits"):
        simulate(slider(upper=1.0), limits=True)  # type: ignore[arg-type]
    with warned(what="exceed position limits: rail by 0.5"):
        simulate(slider(upper=0.1), [0.6], duration=1e-3, limits=Limits())
    with warned(what="too long for the stiffness of the joint stops: the largest stable step is about 3.9e-05 s"):
        simulate(slider(upper=0.1), duration=1e-3, limits=Limits(stiffness=1e10))
    with refused(argument="limits"):
        simulate(slider(upper=0.1), duration=1e-3, limits=Limits(), prescribed={"rail": 0.0})


def test_without_limits_nothing_is_marked() -> None:
    run = simulate(torsor.library.two_link(), duration=0.01)
    assert not run.saturated.any()
    assert not run.stops.any()


def test_a_law_that_gives_no_number_stops_the_simulation() -> None:
    robot, t = torsor.library.two_link(), ca.SX.sym("t")
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    law = ca.Function("law", [t, q, v], [ca.vertcat(ca.sqrt(0.005 - t), 0)])
    with refused(what="joint1 is nan", error=torsor.SimulationError):
        torsor.simulate(robot, duration=0.01, controller=law, limits=Limits())
