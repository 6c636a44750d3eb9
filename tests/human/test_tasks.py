"""Tasks: contact wrenches sum to the whole exactly, postures are on flat feet, and motions are in equilibrium."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.human import TASKS, Box, Foot, Sitting, Standing, joint_torques, lifting, plot_task, reaching, standing_up
from torsor.human.body.postures import HIP_HEIGHT_ON_SEAT, crouching, sitting, standing
from torsor.human.body.trunk_strength import SPINE
from torsor.human.contact.support import Support

from .ground import equilibrium, wrenches

# These problems have few nodes, so that they are solved fast; what happens between them is not the subject here.
pytestmark = pytest.mark.filterwarnings("ignore:.*between the nodes")

BODIES = [(1.60, 55.0, "female"), pytest.param(1.95, 110.0, "male", marks=pytest.mark.slow)]


def _whole(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return 700 * rng.normal(size=(count, 3)), 300 * rng.normal(size=(count, 3))


@pytest.mark.parametrize(
    "support", [Standing(), Sitting(), Sitting(height=0.6, share=0.5, off=0.3), torsor.human.Walk()]
)
def test_wrenches_of_feet_and_seat_sum_to_the_whole(support: Support) -> None:
    s, (force, moment) = np.linspace(0, 1, 9), _whole(9)
    found = wrenches(support, Foot(0.255, 0.045), s, force, moment)
    np.testing.assert_allclose(sum(each.force for each in found), force, atol=1e-10)
    np.testing.assert_allclose(sum(each.moment for each in found), moment, atol=1e-10)


def test_a_seat_carries_its_fraction_until_the_body_leaves_it() -> None:
    seat = Sitting(share=0.7, off=0.4)
    s, (force, moment) = np.array([0.0, 0.2, 0.4, 1.0]), _whole(4)
    pelvis = wrenches(seat, Foot(0.255, 0.045), s, force, moment)[0]
    assert pelvis.link == "pelvis"
    np.testing.assert_allclose(pelvis.force, np.array([0.7, 0.35, 0.0, 0.0])[:, None] * force, atol=1e-10)


def test_a_force_through_the_common_point_has_no_moments_about_the_single_points() -> None:
    seat, foot, s = Sitting(), Foot(0.255, 0.045), np.array([0.1])
    force, (fraction, at) = np.array([[0.0, 700.0, 50.0]]), seat.seated(s)
    feet = np.array([[0.0, 0.0, foot.length / 2]])
    middle = fraction * at + (1 - fraction) * feet
    for each in wrenches(seat, foot, s, force, np.cross(middle, force))[:2]:
        place = at if each.link == "pelvis" else feet - [seat.width / 2, 0.0, 0.0]
        np.testing.assert_allclose(each.moment, np.cross(place, each.force), atol=1e-10)


def test_the_box_of_pressure_moves_from_the_seat_to_that_of_standing() -> None:
    seat, foot = Sitting(), Foot(0.255, 0.045)
    box, still = seat.carried(np.array([0.0, 1.0]), foot).box, Standing(seat.width).carried(np.zeros(1), foot).box
    np.testing.assert_allclose(box[1], still[0], rtol=1e-12)
    middle = seat.share * -seat.back + (1 - seat.share) * foot.length / 2
    assert box[0, 2:].mean() == pytest.approx(middle, abs=1e-12)


@pytest.mark.parametrize(("height", "mass", "sex"), BODIES)
def test_postures_are_on_flat_feet_with_hips_and_hands_at_their_places(height: float, mass: float, sex: str) -> None:
    body = torsor.library.human(height, mass, sex)
    high = 0.6 * height
    for posture in (standing(body), sitting(body, 0.45, "chair"), crouching(body, high, 0.4, 0.8)):
        q = np.zeros(55)
        q[[body.coordinate_names.index(name) for name in posture]] = list(posture.values())
        for name in ("heel", "toe"):
            assert body.pose(q, f"right_{name}")[1, 3] == pytest.approx(0.0, abs=1e-12)
        assert body.pose(q, "left_heel")[2, 3] == pytest.approx(0.0, abs=1e-12)
        if posture.get("left_hip_flexion", 0.0) > 1.0:
            assert body.pose(q, "pelvis")[1, 3] == pytest.approx(0.45 + HIP_HEIGHT_ON_SEAT, abs=1e-12)
    np.testing.assert_allclose(body.pose(q, "left_knuckles")[1:3, 3], [high, 0.4], atol=1e-10)


@pytest.mark.slow
def test_the_initial_guess_connects_the_postures() -> None:
    problem = lifting()
    phase_layout = problem.program.layout.phases[0]
    y, names = phase_layout.profiles(problem.guess(), np.array([0.0, 1.0]), 1)[0], problem.model.names
    for k, posture in enumerate((problem.first, problem.last)):
        assert y[k, names.index("left_knee_flexion")] == pytest.approx(posture["left_knee_flexion"], abs=1e-9)


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        ("lift", {"box": 10.0}, "box"),
        ("lift", {"from_": 0.3}, "from_"),
        ("lift", {"lean": 120.0}, "lean"),
        ("lift", {"depth": 0.0}, "depth"),
        ("lift", {"turn": 120.0}, "turn"),
        ("lift", {"box": Box(400.0)}, "mass of the box"),
        ("push", {"force": -5.0}, "force"),
        ("pull", {"height": 0.0}, "height"),
        (
            "push",
            {"force": torsor.human.HandForces([0.0], [[0.0, 0.0, -9.0]], [[0.0, 0.0, 0.0]])},
            "the forces on both hands differ",
        ),
        ("sit-down", {"on": 1.0}, "on"),
        ("stand-up", {"peak": -1.0}, "peak"),
        ("reach", {"hands": 30.0}, "hands"),
        ("stand-up", {"seat": 1.2}, "seat"),
        ("stand-up", {"off": 1.5}, "off"),
        ("reach", {"hand": "third"}, "hand"),
        ("reach", {"target": (0.0, np.nan, 0.0)}, "target"),
        ("reach", {"duration": -1.0}, "duration"),
    ],
)
def test_invalid_arguments_of_tasks_raise(make: str, settings: dict[str, object], message: str) -> None:
    with refused(message):
        TASKS[make](**settings)


def _mirrored(result: torsor.motion.MotionResult, word: str) -> float:
    names = result.robot.coordinate_names
    right, left = (
        result.q[:, [k for k, name in enumerate(names) if name.startswith(f"{side}_{word}")]]
        for side in ("right", "left")
    )
    return float(np.abs(right - left).max())


@pytest.mark.slow
def test_a_heavier_box_adds_its_weight_and_the_motion_is_symmetric() -> None:
    light, heavy = (lifting(box=Box(mass)).solve() for mass in (5.0, 12.0))
    mean = []
    for result in (light, heavy):
        assert result.is_solved and result.is_feasible
        torques, truth = joint_torques(result), equilibrium(result)
        assert np.abs(truth[:, :6]).max() < 1e-8 and np.abs(torques - truth).max() < 1e-8
        limits = np.tile(result.robot.effort_limit, (len(torques), 1))
        spine = [result.robot.coordinate_names.index(name) for name in SPINE]
        trunk = torsor.human.TrunkStrength(torsor.human.person_of(torsor.library.human()))
        limits[:, spine] = trunk.extend(result.q[:, spine].sum(axis=1))[:, None]  # by the flexion of the spine
        assert np.abs(torques[:, 6:] / limits[:, 6:]).max() < 1.02
        assert (
            _mirrored(result, "knee") < 1e-3 and _mirrored(result, "elbow") < 0.03
        )  # the box may be off level by 5 mm
        force = torsor.human.ground_reaction(result.robot, result.q, result.v, result.a).force
        mean.append(np.trapezoid(force[:, 1], result.times) / result.T)
        # From rest to rest, the mean is the weight.
        assert mean[-1] == pytest.approx(9.81 * result.robot.mass, rel=1e-3)
    assert mean[1] - mean[0] == pytest.approx(7.0 * 9.81, rel=0.02)
    spine = light.robot.coordinate_names.index("spine1_flexion")
    assert np.abs(heavy.tau[:, spine]).max() > np.abs(light.tau[:, spine]).max()


@pytest.mark.slow
def test_a_body_stands_up_in_equilibrium_with_seat_and_ground() -> None:
    result = standing_up().solve()
    assert result.is_solved and result.is_feasible
    assert np.abs(equilibrium(result)[:, :6]).max() < 1e-8
    assert np.abs(joint_torques(result) - equilibrium(result)).max() < 1e-8
    body, names = result.robot, result.robot.coordinate_names
    assert body.pose(result.q[0], "pelvis")[1, 3] == pytest.approx(0.45 + HIP_HEIGHT_ON_SEAT, abs=1e-9)
    assert np.degrees(result.q[:, names.index("tilt")].max()) > 20  # the trunk leans forward first
    assert _mirrored(result, "knee") < 1e-3


@pytest.mark.slow
def test_a_target_is_reached_and_one_out_of_reach_is_named(tmp_path: Path) -> None:
    target = (-0.2, 1.1, 0.75)
    result = reaching(target=target).solve()
    assert result.is_solved
    np.testing.assert_allclose(result.robot.pose(result.q[-1], "right_knuckles")[:3, 3], target, atol=1e-4)
    assert np.abs(equilibrium(result)[:, :6]).max() < 1e-8
    assert np.abs(joint_torques(result) - equilibrium(result)).max() < 1e-8
    plot_task(result, tmp_path / "reach.png")
    assert (tmp_path / "reach.png").stat().st_size > 10_000
    with pytest.raises(torsor.motion.MotionError, match="right hand at the target") as error:
        reaching(target=(-0.2, 1.2, 1.5)).solve()
    assert error.value.result is not None and error.value.violation > 0.01
    nearest = error.value.result.robot.pose(error.value.result.q[-1], "right_knuckles")[:3, 3]
    assert nearest[2] > 1.0  # within reach


@pytest.mark.slow
def test_too_heavy_a_box_violates_torques_or_balance() -> None:
    with pytest.raises(torsor.motion.MotionError) as error:
        lifting(box=Box(200.0)).solve()
    assert {"torques", "trunk strength", "balance"} & set(error.value.conflict)


@pytest.mark.slow
def test_the_example_draws_all_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "human.py"
    spec = importlib.util.spec_from_file_location("human_example", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(str(tmp_path / "human.png"))
    assert "lift: optimal" in capsys.readouterr().out
    assert (tmp_path / "human.png").stat().st_size > 10_000
