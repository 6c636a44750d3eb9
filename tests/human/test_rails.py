"""Hands on rails: the forces of the rails act on the hands, and are within their bounds."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.cli.predictions import NAMED
from torsor.human import Box, Habits, Rails, Standing, Step, Stride, joint_torques, sitting_down, standing_up, walking
from torsor.human.contact.contact_forces import RAILS, railed
from torsor.human.terms.places import RailForces
from torsor.human.terms.problem import hand_forces, sampled
from torsor.motion import MotionProblem, Phase, Time


@pytest.fixture(scope="module")
def problem():
    return standing_up(rails=Rails(height=0.65, ahead=-0.05))


def test_forces_of_rails_act_as_external_wrenches_on_the_hands():
    body, weight, rng = torsor.library.human(), 700.0, np.random.default_rng(2)
    rails = RailForces(body=body, support=Standing(), rails=Rails(), name="rails")
    node = MotionProblem(body, Phase(1.0, points=6), [Time()], [rails]).node
    change = railed(node).tau - node.tau
    data = {"weight on rails": [weight], "knuckles": body.place("left_knuckles").pose[:3, 3]}
    for name, value in data.items():
        change = ca.substitute(change, node.data(name, len(value)), ca.DM(value))
    profiles = ca.vertcat(*(node.profile(name) for name in RAILS))
    made = ca.Function("hands", [node.symbols], [ca.densify(change), node.q, profiles])
    found, q, forces = (np.array(each).ravel() for each in made(0.3 * rng.normal(size=node.symbols.numel())))
    virtual = body.to(device="casadi")
    places = [f"{side}_knuckles" for side in ("right", "left")]
    jacobians = [virtual.pose(q, each)[:3, :3] @ virtual.jacobian(q, each)[3:] for each in places]
    exact = -weight * sum(J.T @ forces[3 * k : 3 * k + 3] for k, J in enumerate(jacobians))
    np.testing.assert_allclose(found, exact, atol=1e-9)
    assert abs(found).max() > 1.0


def test_the_force_of_a_resting_hand_is_within_its_cone(problem):
    term = next(each for each in problem.terms if isinstance(each, RailForces))
    rows = term.rows(problem.node)
    assert rows.labels == tuple(
        f"{word}"
        for side in ("right", "left")
        for word in (f"share of {side} hand", f"{side} hand rests", f"friction of {side} hand")
    )
    grips = RailForces(body=term.body, support=term.support, rails=Rails(friction=None))
    assert len(grips.rows(problem.node).labels) == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Rails(height=0.0), "height"),
        (lambda: Rails(share=1.5), "share"),
        (lambda: Rails(friction=-1.0), "friction"),
        (lambda: standing_up(rails=Rails(height=2.0)), "m from the shoulders"),
        (lambda: sitting_down(rails=3.0), "rails"),
    ],
)
def test_rails_that_cannot_be_held_are_refused(make, words):
    with refused(words):
        make()


def test_the_command_has_armrests():
    made = NAMED["stand-up"].problem({"armrests": 0.62})
    assert next(each for each in made.terms if isinstance(each, RailForces)).rails.height == 0.62


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
@pytest.mark.parametrize("make", [standing_up, sitting_down])
def test_armrests_relieve_the_legs_and_keep_the_laws_of_mechanics(make):
    alone, held = make().solve(), make(rails=Rails(height=0.65, ahead=-0.05)).solve()
    body, names = held.robot, held.robot.coordinate_names
    peaks = []
    for result in (alone, held):
        torques = joint_torques(result)
        peaks.append(sum(-torques[:, names.index(f"right_{joint}_flexion")].min() for joint in ("hip", "knee")))
    assert peaks[1] < 0.95 * peaks[0]
    # Newton-Euler with ground, seat and rails as external wrenches: nothing else holds the body.
    torques, external = held.problem.contact(held)
    exact = body.inverse_dynamics(held.q, held.v, held.a, external)
    np.testing.assert_allclose(exact[:, :6], 0.0, atol=1e-6)
    np.testing.assert_allclose(exact, torques, atol=1e-6)
    s = held.moments.s
    forces = hand_forces(held, s) / (body.mass * 9.81)
    sizes = np.linalg.norm(forces, axis=2)
    assert 0.05 < sizes.max() < 0.25 + 1e-3 and forces[..., 1].min() > -1e-3
    np.testing.assert_allclose(forces[:, 0] * [-1, 1, 1], forces[:, 1], atol=1e-3)  # the task is symmetric
    off = s > 0.6 if make is standing_up else s < 0.4
    np.testing.assert_allclose(forces[off], 0.0, atol=1e-9)


def test_one_hand_of_a_walk_holds_its_rail_while_the_other_moves_on():
    step = Step(length=0.29, rise=0.17, speed=0.5)
    made = walking(step=step, rails=Rails(height=0.9, ahead=0.25, apart=0.8))
    titles = [each.title for each in made.terms]
    assert "left hand on the rail" in titles and "right hand on the rail" not in titles
    assert next(each for each in made.terms if isinstance(each, RailForces)).rows(made.node).labels[0] == (
        "share of left hand"
    )
    for options, words in (
        ({"rails": Rails(), "habits": Habits()}, "rails"),
        ({"rails": Rails(), "load": Box(5.0)}, "rails"),
        ({"rails": Rails(height=0.3)}, "m from the shoulders"),
    ):
        with refused(words):
            walking(**options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
def test_a_rail_on_stairs_carries_with_the_feet():
    step = Step(length=0.29, rise=0.17, speed=0.5)
    rails = Rails(height=0.9, ahead=0.25, apart=0.8, friction=None)
    result = walking(step=step, rails=rails).solve(tolerance=1e-3, check=False)
    stride = Stride(result)
    assert result.is_feasible
    assert stride.energy.change == pytest.approx(73.0 * 9.81 * 0.17, rel=1e-9)
    assert abs(stride.energy.residual) < 1e-9 * stride.energy.positive
    # Over a step, feet and rail carry the weight, and push neither forward nor back.
    times = np.linspace(0.0, 1.0, 2001)
    at = result.program.layout.phases[0].places(result.x, times * result.T)
    feet, hands = sampled(result, at).forces.sum(axis=1), hand_forces(result, at).sum(axis=1)
    mean = np.trapezoid(feet + hands, times, axis=0)[1:] / (73.0 * 9.81)
    np.testing.assert_allclose(mean, [1.0, 0.0], atol=2e-3)
    assert np.abs(hands).max() > 0.02 * 73.0 * 9.81
