"""Steps whose lengths, times and shares of the ground's force are free."""

import math

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.human import Step, joint_loads, passive_torques, walking
from torsor.human.body.strength import leg_torques
from torsor.human.contact.contact_forces import SHARED, contact_forces
from torsor.human.terms.problem import sampled
from torsor.motion import MotionResult
from torsor.optimisation.program import Outcome


@pytest.fixture(scope="module")
def problem():
    return walking()


def node_place(node, symbol):
    """Return the index of a symbol among those of a node."""
    return int(np.flatnonzero(ca.DM(ca.jacobian(symbol, node.symbols)).full())[0])


def test_two_feet_carry_the_whole_wrench_at_their_centres_of_pressure(problem):
    node = problem.node
    contact = contact_forces(node)
    outputs = [part for side in ("right", "left") for part in contact.feet[side]]
    outputs += [*(contact.pressures[side] for side in ("right", "left")), contact.fraction, contact.force]
    poses = node.pose("pelvis")
    made = ca.Function("feet", [node.symbols], [ca.densify(each) for each in [*outputs, poses]])
    rng = np.random.default_rng(3)
    values = 0.2 * rng.normal(size=node.symbols.numel())
    given = SHARED.unpack(node.data("shared ground", SHARED.size))
    for name, fixed in (("height", 0.0), ("left_at", [0.0, -1.0])):  # level ground (see test_stairs.py), and one step
        values[[node_place(node, each) for each in ca.vertsplit(given[name])]] = fixed
    f_right, n_right, f_left, n_left, right, left, fraction, f, _ = (np.array(each).squeeze() for each in made(values))
    np.testing.assert_allclose(f_right + f_left, f, atol=1e-12)
    # Each foot's moment about its own centre of pressure has no horizontal part. Pressures are relative to the heel.
    names = node.shared
    half = float(ca.Function("w", [node.symbols], [names["step width"] / 2])(values))
    long = float(ca.Function("l", [node.symbols], [names["speed"] * node.T])(values))
    for force, moment, pressure, heel in (
        (f_right, n_right, right, (-half, 0.0)),
        (f_left, n_left, left, (half, -long)),
    ):
        x, z = pressure / f[1] + np.array(heel)
        rest = moment - np.cross([x, 0.0, z], force)
        assert abs(rest[[0, 2]]).max() < 1e-9 * max(abs(moment).max(), 1.0)
    assert abs(f_left[1] - fraction * f[1]) < 1e-12


def test_after_toe_off_the_nominal_sharing_leaves_nothing_to_the_trailing_foot(problem):
    term = next(each for each in problem.terms if each.title == "balance")
    s = np.array([0.0, 0.1, 0.24, 0.5, 1.0])
    given = SHARED.unpack(term.data(s)["shared ground"])
    assert given["left_fraction"][0] == 1.0
    assert np.all(given["left_fraction"][2:] == 0.0)
    assert np.all(given["left_box"][2:, 0] < -1.0)  # no sole that bounds it


def test_joint_loads_of_free_steps_are_those_of_the_muscles_at_the_times_of_the_clock(problem):
    x, layout, body = problem.guess(), problem.program.layout.phases[0], torsor.library.human()
    x[list(layout.ticks)] += 0.03
    result = MotionResult(problem, Outcome(x, np.zeros(0), np.zeros(0), 0.0, 0, "by hand", False), "none")
    loads = joint_loads(result)
    s = next(each.s for each in problem.program.batches if "torques" in [row.title for row in each.kernels.constraints])
    at, times, even = sampled(result, s), layout.times(x, s), np.linspace(0.0, result.T, len(s))
    muscles = at.torques - passive_torques(body, at.q, at.v)
    wanted = list[float]()
    for side in ("right", "left"):  # from its own heel strike: the step, and its mirror image
        k = body.coordinate_names.index(f"{side}_knee_flexion")
        ends = np.interp(even, times, muscles[:, k] / body.effort_limit[k])
        wanted += ((ends[1:] + ends[:-1]) / 2).tolist()
    np.testing.assert_allclose(loads.fractions["left_knee_flexion"], wanted, atol=1e-12)
    assert abs(times / result.T - s).max() > 0.01


@pytest.mark.parametrize(
    ("angles", "torques"),  # values of the published equations, by an independent evaluation
    [
        ((-20, 0, 0), (25.4, None, None)),
        ((100, 20, 0), (-43.3, None, None)),
        ((0, 60, 0), (None, -4.5, -1.1)),
        ((0, 0, 20), (None, None, -42.4)),
        ((0, 0, -40), (None, None, 2.3)),
    ],
)
def test_passive_torques_are_those_of_riener_and_edrich(angles, torques):
    found = leg_torques(*np.radians(angles))
    for one, wanted in zip(found, torques, strict=True):
        assert wanted is None or abs(one - wanted) < 0.051


@pytest.mark.parametrize(
    "joint", ["hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_flexion", "ankle_inversion"]
)
def test_passive_torques_push_away_from_both_ends_of_the_range(joint):
    body, q = torsor.library.human(), np.zeros((2, 55))
    k = body.coordinate_names.index(f"right_{joint}")
    q[:, k] = body.lower[k], body.upper[k]
    torques = torsor.human.passive_torques(body, q, np.zeros(55))
    assert torques[0, k] > 0 > torques[1, k]
    assert not torques[:, :6].any()


@pytest.mark.parametrize(
    ("angles", "torque"),  # degrees; N m of the ligaments in Falisse et al. (2019), in the direction of the angles
    [
        ({"right_hip_adduction": math.degrees(0.5)}, -0.03),
        ({"left_hip_rotation": math.degrees(-0.92)}, 0.03),
        ({"right_ankle_inversion": math.degrees(0.65)}, -60.21),
        ({"spine1_flexion": math.degrees(-0.2), "spine2_flexion": math.degrees(0.03)}, 0.35),
        ({"spine1_flexion": 20, "spine2_flexion": 10}, -0.25),
        ({"spine1_lateral": 30, "spine3_lateral": -10}, -0.25),
        ({"spine1_axial": -15, "spine2_axial": -5}, 0.25),
    ],
)
def test_passive_torques_of_ligaments_are_those_of_published_simulations(angles, torque):
    body, q = torsor.library.human(), np.zeros(55)
    places = [body.coordinate_names.index(name) for name in angles]
    q[places] = np.radians(list(angles.values()))
    torques = torsor.human.passive_torques(body, q, np.zeros(55))
    np.testing.assert_allclose(torques[places], torque, rtol=1e-2)


def test_a_given_step_has_its_numbers(problem):
    given = walking(step=Step(length=0.6, width=0.12, speed=1.2))
    assert given.phases.bounds == (0.5, 0.5)
    assert given.held["step width"] == 0.12
    assert problem.phases.bounds == (0.2 / 1.25, 1.4 / 1.25)
    assert {"step width", "clock cos 1"} <= set(problem.shared)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Step(length="any"), "length"),
        (lambda: Step(width=(0.2, 0.1)), "width"),
        (lambda: Step(timing="late"), "timing"),
        (lambda: walking(step=Step(length=0.29, rise=0.17), steps=2), "steps=2"),
        (lambda: walking(points=7), "points"),
        (lambda: walking(step=Step(speed="free", length=0.6)), "a free speed and a given length"),
        (lambda: walking(objective={"posture": 1.0}), "objective"),
    ],
)
def test_free_steps_that_cannot_be_are_refused(make, words):
    with refused(words):
        make()


def test_a_free_speed_is_a_variable_that_paces_the_step():
    free = walking(step=Step(speed="free", length="free"))
    assert free.shared["speed"].lower < free.shared["speed"].start < free.shared["speed"].upper
    (row,) = [each for each in free.program.linear.equations if each.label == "q of tz"]
    assert (row.pace, row.paced_by) == (-1.0, "speed")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*between the nodes")
def test_a_free_walk_has_its_own_step_and_balances_its_energy(problem):
    result = problem.solve(tolerance=1e-3, check=False)
    stride = torsor.human.Stride(result)
    assert 0.5 < stride.step.length < 0.9
    assert abs(stride.energy.residual) < 1e-9 * stride.energy.positive
    pressure = stride.pressure[:, 0, 1]
    heel = np.nanmin(pressure)
    assert heel > -1e-3


def test_only_the_times_that_a_step_gives_are_held():
    assert walking().phases.clock and not walking(step=Step(timing="given")).phases.clock
