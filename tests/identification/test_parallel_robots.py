"""Parallel robots, identified from the positions and forces of their drives alone."""

import numpy as np
import pytest

import torsor
from identification.driven_motions import swing
from refusals import refused
from torsor.identification import first_look
from torsor.identification.closed_robot import closed_robot
from torsor.library import delta, gough_stewart, three_rrr


@pytest.mark.slow
@pytest.mark.parametrize("make", [three_rrr, delta, gough_stewart])
def test_forces_of_drives_are_those_of_the_method_leg_by_leg(make) -> None:
    robot = make()
    made = swing(robot, count=5, size=0.1)
    pose = robot.forward_kinematics(made.q)
    q, v, a = closed_robot(robot).whole(*made.motion)
    n = robot.carriage.nq
    assert np.abs(q[:, :n] - pose).max() < 1e-9
    dof = robot.dof
    tau = robot.inverse_dynamics(pose, v[:, :dof], a[:, :dof], q=q[:, n:])
    assert np.allclose(tau, made.tau, rtol=1e-9, atol=1e-9 * np.abs(tau).max())


@pytest.mark.parametrize(
    "make", [three_rrr, *(pytest.param(each, marks=pytest.mark.slow) for each in (delta, gough_stewart))]
)
def test_forces_of_drives_alone_predict_those_of_another_motion(make, tmp_path) -> None:
    real, size = make(), 0.1 if make is gough_stewart else 0.2
    seen, unseen = swing(real, count=600, size=size), swing(real, seed=1, count=100, size=size)
    free = torsor.identify(real, seen.data, noise="white")
    assert np.abs(free.predict(*unseen.motion) - unseen.tau).max() < 1e-9 * np.abs(unseen.tau).max()
    free.save(tmp_path / "robot.npz")
    again = torsor.load_result(tmp_path / "robot.npz")
    assert np.array_equal(again.predict(*unseen.motion), free.predict(*unseen.motion))
    assert again.prior.given == real


@pytest.mark.slow
@pytest.mark.parametrize("make", [three_rrr, delta])
def test_a_physical_estimate_is_a_parallel_robot(make) -> None:
    real = make()
    seen, unseen = swing(real, count=600, size=0.25), swing(real, seed=1, count=100, size=0.2)
    found = torsor.identify(real, seen.data, physical=True)
    assert isinstance(found.robot, torsor.ParallelRobot)
    pose = real.forward_kinematics(unseen.q[:3])
    still = np.zeros((3, real.dof))
    want = real.inverse_dynamics(pose, still, still + 1.0)
    assert np.allclose(found.robot.inverse_dynamics(pose, still, still + 1.0), want, atol=2e-2 * np.abs(want).max())


@pytest.mark.parametrize(
    ("make", "platform"), [(three_rrr, 4), (delta, 1), pytest.param(gough_stewart, 10, marks=pytest.mark.slow)]
)
def test_a_mass_at_the_tip_of_a_leg_is_one_of_the_platform(make, platform: int) -> None:
    # So each leg has one base parameter less than it has alone; a platform has as many as its motion shows.
    robot = make()
    leg = robot.legs[0].robot.with_gravity(robot.gravity)
    alone = leg.inertial.base(among=[f"{link.name}.*" for link in leg.links])
    bodies = [f"{name}.*" for name in ("platform", *(f"leg?/{link.name}" for link in leg.links))]
    assert len(closed_robot(robot).inertial.base(among=bodies)) == platform + len(robot.legs) * (len(alone) - 1)


MISTAKES = {
    "swapped": lambda q, tau: (q, tau[:, [1, 0, 2]]),
    "sign": lambda q, tau: (q * [1, -1, 1], tau),
    "degrees": lambda q, tau: (np.degrees(q), tau),
    "scale": lambda q, tau: (q, 1000 * tau),
}


@pytest.mark.slow
def test_a_first_look_at_the_drives_names_each_mistake_and_only_it() -> None:
    robot = delta()
    made = swing(robot, count=2000, rate=250.0, size=0.4)
    assert first_look(robot, (made.t, made.q, made.tau), cutoff=20.0).kinds == ()
    for kind, change in MISTAKES.items():
        found = set(first_look(robot, (made.t, *change(made.q, made.tau)), cutoff=20.0).kinds)
        assert found - {"limit"} == {kind}


def test_legs_that_can_spin_are_refused() -> None:
    with refused(what="leg 'leg1' can spin"):
        torsor.identify(gough_stewart(legs="SPS"), np.zeros((4, 9, 6)))
