"""Predicted walks obey the laws of mechanics."""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import torsor
from counting import calls_made
from refusals import refused
from torsor.human import Backpack, Box, Foot, Habits, Standing, Step, Stride, Walk, bent_start, ground_reaction, walking
from torsor.human.body.coordinates import mirror
from torsor.human.body.kernels import shared_model
from torsor.human.contact.contact_forces import FORWARD_OFFSET, FRACTION, LEFT_STEP, PROFILES, SPEED, WIDTH
from torsor.library import human
from torsor.motion import MotionError, MotionProblem, MotionResult
from torsor.motion.starts import fit

# These problems have few nodes, so that they are solved fast; what happens between them is not the subject here.
pytestmark = pytest.mark.filterwarnings("ignore:.*between the nodes")


STEP = Step(length=0.6, width=0.1, speed=1.2, timing="given")
WEAK = {f"{side}_{joint}_flexion": 0.02 for side in ("right", "left") for joint in ("hip", "knee", "ankle")}


@cache
def walk(**options: object) -> MotionResult:
    return walking(**options).solve()  # type: ignore[arg-type]


def test_the_force_moves_smoothly_from_foot_to_foot() -> None:
    s, foot = np.linspace(0.0, 1.0, 201), Foot.of(human())
    one, two = (Walk(STEP, steps).carried(s, foot) for steps in (1, 2))
    assert one.right_fraction[0] == 0.0 and one.right_fraction[-1] == 1.0
    assert np.abs(np.diff(one.right_fraction)).max() < 0.04
    late = Walk(STEP, 2).carried((1 + s) / 2, foot)  # the second step is the mirror image of the first
    mirrored = one.mirrored(STEP.length)
    for a, b in zip(late[1:5], mirrored[1:5], strict=True):
        np.testing.assert_allclose(np.asarray(a)[1:], np.asarray(b)[1:], atol=1e-12)
    np.testing.assert_allclose(two.right_fraction[[0, 100, 200]], [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("support", [Walk(STEP), Walk(STEP, 2), Standing()])
def test_every_point_of_a_foot_is_in_stance_or_free(support: Walk | Standing) -> None:
    for side in ("right", "left"):
        for point in ("heel", "ball", "toe"):
            held = [
                (each.first, each.last)
                for each in support.stances
                if each.side == side and any(name == point for name, _ in each.points)
            ]
            spans = sorted([*held, *support.free(side, point)])
            assert spans[0][0] == 0.0 and max(last for _, last in spans) == pytest.approx(1.0)
            assert all(b[0] <= a[1] + 1e-9 for a, b in pairwise(spans))


@pytest.mark.parametrize("steps", [1, 2])
def test_the_centre_of_pressure_can_move_without_a_jump(steps: int) -> None:
    """Boxes at successive times overlap: a continuous centre of pressure is possible, also into the next step."""
    walk, foot = Walk(STEP, steps), Foot.of(human())
    box = walk.carried(np.linspace(0.0, 1.0, 4001), foot).box
    start = walk.carried(np.zeros(1), foot)
    ahead = start.mirrored(STEP.length).box if steps == 1 else start.box + np.array([0.0, 0.0, 1.2, 1.2])
    box = np.vstack([box, ahead])
    for low, high in ((0, 1), (2, 3)):
        assert (np.maximum(box[1:, low], box[:-1, low]) <= np.minimum(box[1:, high], box[:-1, high]) + 1e-9).all()


def test_bodies_loads_and_slopes_share_kernels() -> None:
    problems = [
        walking(),
        walking(human(1.6, 55.0, "female"), Step(length=0.5, speed=1.0)),
        walking(load=Backpack(15.0), slope=0.1, strength={"right_knee_flexion": 0.5, "left_knee_flexion": 0.5}),
    ]
    keys = [[batch.kernels.identity for batch in each.program.batches] for each in problems]
    assert keys[0] == keys[1] == keys[2]


def test_a_free_walk_is_stated_with_few_calls() -> None:
    assert walking(human(1.6, 55.0, "female")).program.n  # robots are traced once in a process
    body, problems = human(1.8, 75.0), list[MotionProblem]()
    assert calls_made(lambda: problems.append(walking(body))) < 20_000
    assert calls_made(lambda: problems[0].program) < 40_000


def test_the_shared_model_with_its_numbers_is_the_body() -> None:
    for body in (human(1.9, 95.0), Backpack(12.0, height=0.1).on(human()), Box(8.0).on(human(1.6, 50.0, "female"))):
        model, numbers = shared_model(body)
        same = model.at([numbers[name].start for name in model.names])
        assert all(
            a.mass == b.mass and (a.inertia == b.inertia).all() for a, b in zip(same.links, body.links, strict=True)
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slope": 2.0}, "slope"),
        ({"load": 15.0}, "load"),
        ({"steps": 3}, "steps"),
        ({"slack": -1.0}, "slack"),
        ({"frozen": {"knee": 0.0}}, "knee"),
        ({"frozen": {"right_knee_flexion": 0.0}}, "right_knee_flexion differs from left_knee_flexion"),
        ({"frozen": {"right_knee_flexion": "bent"}}, "frozen right_knee_flexion"),
        ({"strength": {"right_knee_flexion": 0.5}}, "strength: right_knee_flexion differs from left"),
        (
            {"strength": {"right_knee_flexion": 0.0}},
            "strength of right_knee_flexion",
        ),
        ({"objective": {"comfort": 1.0}}, "objective"),
        ({"objective": {"effort": 0.0}}, "no weight is above 0"),
        ({"step": 0.6}, "step"),
        ({"body": torsor.library.six_axis_arm()}, "six_axis_arm"),
        ({"friction": 0.0}, "friction"),
    ],
)
def test_invalid_arguments_raise(options: dict[str, object], message: str) -> None:
    with refused(message):
        walking(**options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_direct_and_two_phase_searches_and_other_starts_end_alike() -> None:
    problem = walking()
    direct, after = problem.solve(), problem.solve(feasible_first=True)
    assert after.objective == pytest.approx(direct.objective, rel=5e-3)
    other = problem.solve(start=bent_start(problem, 0))
    assert other.objective == pytest.approx(direct.objective, rel=5e-3)


@pytest.mark.slow
def test_a_walk_is_like_that_of_people() -> None:
    stride = Stride(walk())
    knee, vertical = stride.angle("knee_flexion"), stride.force[:, 1]
    assert 50 < knee.max() < 75 and 0.6 < knee.argmax() / len(knee) < 0.85
    early, late = vertical[:100].max(), vertical[100:260].max()
    assert 1.0 < early < 1.35 and 1.0 < late < 1.35 and vertical[100:160].min() < 0.9
    alike = stride.likeness()
    for name, least in (("hip_flexion", 0.95), ("knee_flexion", 0.95), ("vertical", 0.85)):
        assert alike[name].correlation > least


@pytest.mark.slow
@pytest.mark.parametrize("load", [None, Backpack(10.0), Backpack(20.0), Box(8.0)])
def test_the_mean_vertical_force_is_the_weight_with_the_load(load: Backpack | Box | None) -> None:
    result = walk(load=load)
    body = result.robot
    times = np.linspace(0.0, result.T, 2001)
    at = result.at(times)
    mean = np.trapezoid(ground_reaction(body, at.q, at.v, at.a).force[:, 1], times) / result.T
    carried = 73.0 + (0.0 if load is None else load.mass)
    assert body.mass == pytest.approx(carried, rel=1e-12) and mean == pytest.approx(9.81 * carried, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"slope": 0.08}, {"load": Backpack(20.0)}])
def test_the_default_walk_neither_slips_nor_jumps(options: dict[str, object]) -> None:
    result = walk(**options)
    stride, whole = Stride(result), ground_reaction(result.robot, result.q, result.v, result.a).force
    weight = 9.81 * result.robot.mass
    np.testing.assert_allclose(whole[-1] / weight, whole[0] / weight * [-1, 1, 1], atol=1e-5)
    hip = stride.moment("hip_extension") * stride.body.mass
    assert abs(hip[-1] - hip[0]) < 1e-6  # N m
    assert abs(stride.energy.ground) < 0.005 * stride.energy.positive
    back, front = np.nanmin(stride.pressure[:, 0, 1]), np.nanmax(stride.pressure[:, 0, 1])
    assert back > -0.001 and front < Foot.of(stride.body).length + 0.001
    held = [each for name, each in result.constraints.items() if " stands" in name]
    assert held and all(each.violation <= 1e-4 for each in held)


SAMPLES = (np.arange(2000) + 0.5) / 2000  # times s of a step, without its ends: there profiles of force sharing jump


def repeated(one: MotionResult, stride: MotionProblem) -> np.ndarray:
    """Return the variables (n,) of a problem of two steps for one step and its mirror image."""
    first, second = (program.layout.phases[0] for program in (one.program, stride.program))
    names, distance = one.problem.model.names, one.numbers[SPEED] * one.T
    order, signs = mirror(tuple(name for name in names if name not in PROFILES))
    at, start = (first.profiles(one.x, s, 1)[0] for s in (SAMPLES, np.zeros(1)))
    mirrored = np.hstack([at[:, order] * signs, at[:, len(order) :]])
    mirrored[:, names.index("tz")] += distance
    for name in (FRACTION, FORWARD_OFFSET):  # they are counted from the right to the left foot
        mirrored[:, names.index(name)] *= -1.0
    # While a foot is unloaded, its centre of pressure moves to the place at which the second step needs it.
    swing, sides = np.clip((SAMPLES - Step.toe_off) / (1 - Step.toe_off), 0.0, 1.0), {FORWARD_OFFSET: -1.0}
    for k, name in enumerate(names):
        if name in PROFILES and name != FRACTION:
            at[:, k] += sides.get(name, 1.0) * start[0, k] * swing**3
    x = stride.guess()
    fit(second, x, np.concatenate([SAMPLES, 1 + SAMPLES]) / 2, np.vstack([at, mirrored]))
    numbers = {WIDTH: one.numbers[WIDTH], LEFT_STEP: distance}
    x[[stride.program.layout.numbers[name] for name in numbers]] = list(numbers.values())
    # The clock of a stride that repeats a step has only even harmonics, which are those of the step.
    x[second.duration], x[list(second.ticks)] = 2 * one.T, 0.0
    x[np.reshape(second.ticks, (-1, 2))[1::2].ravel()] = one.x[list(first.ticks)]
    return x


@pytest.mark.slow
def test_symmetric_bodies_take_symmetric_steps() -> None:
    """One step and its mirror image are a stride of two steps at the same cost per metre; better ones differ little.

    Arms that move differently on both sides reduce the cost slightly, and many motions of arms are local optima. The
    search for two steps therefore starts from one step: otherwise, both costs would be those of different optima.
    """
    one, stride = walk(), walking(steps=2)
    x, program = repeated(one, stride), stride.program
    cost, rows = program.value(x)
    assert cost == pytest.approx(one.objective, rel=1e-7)
    assert np.maximum(program.row_lower - rows, rows - program.row_upper).max() < one.max_violation + 1e-9
    # At heel strike, the control points of two steps are somewhat farther from their curve than those of one.
    assert np.maximum(program.lower - x, x - program.upper).max() < 0.01
    both = stride.solve(start=x)
    assert both.objective < one.objective * (1 + 1e-6)
    assert both.objective == pytest.approx(one.objective, rel=1e-3)
    half, whole = Stride(one), Stride(both)
    assert [each.length for each in whole.steps] == pytest.approx([half.step.length] * 2, abs=5e-3)
    for name in ("hip_flexion", "knee_flexion", "ankle_flexion"):
        np.testing.assert_allclose(whole.angle(name), half.angle(name), atol=3.0)  # degrees


@pytest.mark.slow
def test_a_locked_ankle_makes_a_stride_of_two_unequal_steps() -> None:
    """The foot of the locked ankle does no work at the ankle; the steps differ, and energy is balanced."""
    locked = {"right_ankle_flexion": 0.0, "right_ankle_inversion": 0.0}
    result = walking(step=Step(speed=1.1), steps=2, frozen=locked).solve()
    right, left = Stride(result, "right"), Stride(result, "left")
    lengths = [each.length for each in right.steps]
    assert abs(lengths[0] - lengths[1]) > 0.02
    assert not right.power("ankle").any() and left.power("ankle").max() > 1.0  # W/kg
    assert right.duration == pytest.approx(left.duration, rel=1e-12) and right.duration == pytest.approx(result.T)
    for stride in (right, left):
        assert abs(stride.energy.residual) < 1e-9 * stride.energy.positive


@pytest.mark.slow
def test_up_a_slope_work_is_done_against_gravity() -> None:
    """The centre of mass rises by the step's length times the sine of the slope."""
    for slope in (math.radians(6), math.radians(-6)):
        stride = Stride(walk(slope=slope))
        rise = stride.potential[-1] - stride.potential[0]
        weight = 9.81 * stride.body.mass
        assert rise == pytest.approx(2 * weight * stride.step.length * math.sin(slope), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "names"),
    [({"step": Step(length=1.7, speed=1.2)}, "balance"), ({"strength": WEAK}, "torques")],
)
def test_an_infeasible_walk_names_the_constraint(options: dict[str, object], names: str) -> None:
    with pytest.raises(MotionError, match=names) as caught:
        walking(**options).solve()  # type: ignore[arg-type]
    error = caught.value
    assert error.violation > 0.1 and error.result is not None and np.isfinite(error.result.q).all()


@pytest.mark.slow
def test_habits_add_to_the_cost_of_a_walk() -> None:
    assert walking(habits=Habits()).solve().objective > walk().objective
