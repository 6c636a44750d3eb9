"""A stride is in equilibrium, its second step is the mirror image of the first, and its energy is balanced."""

import json
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.base.summary import as_text
from torsor.cli.predictions.walk import stride_report
from torsor.human import REFERENCES, Standing, Step, Stride, Walk, animate, draw, likeness
from torsor.human.body.coordinates import FROZEN, mirror
from torsor.human.gait.curves import Energy, Work
from torsor.human.gait.references import SOURCES
from torsor.human.terms.forces import Effort
from torsor.human.terms.problem import REACTION_JOINTS, Samples, sampled
from torsor.motion import MotionProblem, MotionResult, Phase, Positions
from torsor.optimisation.program import Outcome
from torsor.reproduce.documents.printed_walk import habitual_problem
from torsor.spatial import inverse_pose

# These problems have few nodes, so that they are solved fast; what happens between them is not the subject here.
pytestmark = pytest.mark.filterwarnings("ignore:.*between the nodes")

SAME = torsor.library.human().to(device="casadi")  # nothing is compiled
STEP = Step(length=0.6, width=0.1, speed=1.2, timing="given")


def _moved(steps: int, seed: int, like: MotionProblem | None = None) -> MotionResult:
    """Return a random motion of a body with constant numbers and one term, so that its kernels are small.

    A traced problem ``like`` it is used again.
    """
    body, support = torsor.library.human(), Walk(STEP, steps)
    held = {name: 0.0 for name in body.coordinate_names if any(word in name for word in FROZEN)}
    problem = MotionProblem(
        body,
        Phase(support.duration, points=3 * steps + 3, nodes=5),
        Effort(body=body, support=support, moving=tuple(name for name in body.coordinate_names if name not in held)),
        [Positions(lower=-3.0, upper=3.0, hull=True)],
        frozen=held,
    )
    if like is not None:
        problem.__dict__.update(model=like.model, node=like.node)
    x = 0.1 * np.random.default_rng(seed).normal(size=problem.program.n)
    return MotionResult(problem, Outcome(x, np.zeros(0), np.zeros(0), 0.0, 0, "random", False), "none")


@pytest.fixture(scope="module")
def one() -> Stride:
    return Stride(_moved(1, 0))


@pytest.fixture(scope="module")
def left(one: Stride) -> Stride:
    return Stride(_moved(2, 1, one.result.problem), "left")


def _wrenches(stride: Stride, moments: list[int]) -> np.ndarray:
    """Return the reactions (K, L, 6) of ``Robot.joint_wrenches`` with the ground's wrenches on feet or toes."""
    body, at = SAME, stride.samples
    external, links, poses = np.zeros((len(moments), len(body.links), 6)), body.link_names, body.poses(at.q[moments])
    for row, k in enumerate(moments):
        front, s = ("right", k / 200) if k <= 200 else ("left", k / 200 - 1)
        for foot, side in enumerate(("right", "left")):
            # The trailing foot stands on its toes, and the leading foot does from heel-off on.
            on = f"{side}_toes" if side != front or s > stride.step.heel_off else f"{side}_foot"
            pose = inverse_pose(poses[row, links.index(on)])
            R, p = pose[:3, :3], -pose[:3, :3].T @ pose[:3, 3]
            f, n = at.forces[k, foot], at.moments[k, foot]
            external[row, links.index(on)] = [*R @ (n - np.cross(p, f)), *R @ f]
    return body.joint_wrenches(at.q[moments], at.v[moments], at.a[moments], external)


@pytest.mark.parametrize("which", ["one", "left"])
def test_torques_and_reactions_agree_with_newton_euler_and_the_global_forces_vanish(
    which: str, request: pytest.FixtureRequest
) -> None:
    stride: Stride = request.getfixturevalue(which)
    moments = [0, 30, 100, 140, 199, 230, 300, 340, 400]
    found, body, at = _wrenches(stride, moments), stride.body, stride.samples
    size = np.abs(found).max()
    assert np.abs(found[:, 0]).max() < 1e-9 * size  # the reaction of the base
    assert np.abs(found[:, :6]).max() < 1e-9 * size
    for k, joint in enumerate(body.joints[6:], start=6):
        torque = found[:, body.link_names.index(joint.child), :3] @ joint.axis
        np.testing.assert_allclose(at.torques[moments, k], torque, atol=1e-9 * size)
    poses = SAME.poses(at.q[moments])
    for joint, link in zip(REACTION_JOINTS, ("right_thigh", "right_shank", "right_foot"), strict=True):
        k = body.link_names.index(link)
        force = np.einsum("kij,kj->ki", poses[:, k, :3, :3], found[:, k, 3:])
        np.testing.assert_allclose(stride.weight * stride.reaction(joint)[moments], force, atol=1e-9 * size)


@pytest.mark.parametrize("which", ["one", "left"])
def test_work_of_joints_and_ground_is_the_change_of_energy(which: str, request: pytest.FixtureRequest) -> None:
    energy = request.getfixturevalue(which).energy
    assert energy.positive > 0 > energy.negative
    assert abs(energy.residual) < 1e-9 * energy.positive
    assert energy.joints + energy.ground == pytest.approx(energy.change, rel=1e-9)


def test_metabolic_energy_is_that_of_margarias_efficiencies_and_rest(left: Stride) -> None:
    """A trapezoidal sum of |P| / 0.25 and |P| / 1.2 (Margaria 1968) over each axis, and 1.2 W/kg at rest."""
    at, energy = sampled(left.result, np.linspace(0.0, 1.0, 40001)), left.energy
    powers = at.torques * at.v
    metabolic = np.where(powers > 0, powers / 0.25, -powers / 1.2)[:, 6:].sum(axis=1) + 1.2 * left.body.mass
    assert energy.metabolic == pytest.approx(np.trapezoid(metabolic, dx=left.result.T / 40000), rel=1e-4)
    assert energy.cost_of_transport == pytest.approx(energy.metabolic / (left.body.mass * energy.distance), rel=1e-12)
    assert energy.cost_of_transport > 4.0 * energy.mechanical_work


def test_power_is_the_rate_of_energy(one: Stride) -> None:
    at, k, h = one.samples, 50, one.duration / 400
    energy = at.kinetic + at.potential
    rate = (energy[k - 2] - 8 * energy[k - 1] + 8 * energy[k + 1] - energy[k + 2]) / (12 * h)
    power = (at.torques[k] * at.v[k]).sum() + at.ground[k].sum()
    assert power == pytest.approx(rate, rel=1e-6)
    assert one.body.mass * sum(one.power(name)[k] for name in ("hip_flexion", "hip_adduction", "hip_rotation")) == (
        pytest.approx(one.body.mass * one.power("hip")[k], rel=1e-12)
    )


def test_the_second_step_is_the_mirror_image_of_the_first(one: Stride) -> None:
    at, half, names = one.samples, 200, one.body.coordinate_names
    for first, second in (("right_knee_flexion", "left_knee_flexion"), ("left_hip_rotation", "right_hip_rotation")):
        a, b = names.index(first), names.index(second)
        np.testing.assert_array_equal(at.q[1 : half + 1, a], at.q[half + 1 :, b])
        np.testing.assert_array_equal(at.torques[1 : half + 1, a], at.torques[half + 1 :, b])
    np.testing.assert_array_equal(one.angle("list")[1 : half + 1], -one.angle("list")[half + 1 :])
    ahead = one.pressure[half + 1 :, 0] - one.pressure[1 : half + 1, 1] * [-1.0, 1.0]
    carried = ~np.isnan(ahead).any(axis=1)
    assert carried.any()
    np.testing.assert_allclose(ahead[carried] - [0.0, one.step.length], 0.0, atol=1e-9)
    assert one.moment("hip_extension") == pytest.approx(-one.moment("hip_flexion"), rel=1e-15)


def test_the_left_stride_of_two_steps_is_that_of_the_left_side(left: Stride) -> None:
    right = Stride(left.result)
    names, q = right.body.coordinate_names, np.degrees(right.samples.q)
    knee, pelvis = q[:, names.index("left_knee_flexion")], q[:, names.index("list")]
    for mine, whole in ((left.angle("knee_flexion"), knee), (left.angle("list"), -pelvis)):
        np.testing.assert_allclose(mine, np.concatenate([whole[200:], whole[1:201]]), atol=1e-12)
    forces = right.forces[:, 1] * [-1.0, 1.0, 1.0]
    np.testing.assert_allclose(left.force, np.concatenate([forces[200:], forces[1:201]]), atol=1e-12)
    assert left.energy.joints == pytest.approx(right.energy.joints, rel=1e-12)


def test_a_walk_of_two_steps_is_reported_with_both_sides(left: Stride, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MotionResult, "is_feasible", True)
    report = stride_report(left.result, {})
    tables = [as_text(each, width=100) for each in report.tables]
    assert len(tables) == 2 and "Right stride" in tables[0] and "Left stride" in tables[1]
    assert report.figures["left_stride"]["side"] == "left"


def test_mirroring_twice_is_the_identity(one: Stride) -> None:
    names, at = one.body.coordinate_names, one.samples
    again = at.mirrored(one.body, 0.3).mirrored(one.body, -0.3)
    for field in Samples._fields:
        np.testing.assert_allclose(getattr(again, field), getattr(at, field), atol=1e-11)
    order, signs = mirror(names)
    assert order != sorted(order) and (signs[order] == signs).all()


def test_a_stride_is_reported_drawn_and_animated(one: Stride, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = one.report()
    assert "Right stride: 1.2 m/s, steps of 0.6 m, 73.0 kg" in text and "residual of the energy balance" in text
    plain = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert plain["likeness"].keys() == REFERENCES.keys() and len(plain["curves"]["pressure"]) == 401
    figure = one.plot()
    assert len(figure.axes) == 24 and figure.axes[1].get_title().startswith("knee flexion: r ")
    few = [axes.get_title() for axes in one.plot(sagittal=True).axes if axes.get_title()]
    assert len(few) == 11 and few[3].startswith("vertical force") and not any("adduction" in title for title in few)
    draw(one.body, one.samples.q[0], tmp_path / "body.png")
    assert (tmp_path / "body.png").read_bytes().startswith(b"\x89PNG")
    assert animate(one.result, tmp_path / "walk.gif", rate=2).read_bytes().startswith(b"GIF89a")


def test_the_second_step_up_a_slope_is_higher(one: Stride) -> None:
    body = SAME.with_gravity([0.0, -9.76, -1.03])
    at = one.samples._replace(potential=np.asarray(body.potential_energy(one.samples.q)))
    after = at.mirrored(body, 0.6)
    np.testing.assert_allclose(after.potential, body.potential_energy(after.q), rtol=1e-12)


def test_references_are_whole_strides_of_known_sources() -> None:
    for name, each in REFERENCES.items():
        assert each.source in SOURCES and name.startswith(each.name)
        assert each.mean.shape == (11,) or each.kind in ("force", "power")
        assert each.sd is None or each.sd.shape == each.mean.shape
        assert likeness(each.mean, each.mean).rms == 0
        assert abs(each.mean[0] - each.mean[-1]) < max(4.0, 0.05 * np.ptp(each.mean))
    assert likeness(np.ones(5), REFERENCES["list"].mean).correlation == 0


def test_energies_are_sums_over_joints() -> None:
    energy = Energy(0.6, 50.0, {"right_hip": Work(20.0, -5.0), "left_knee": Work(10.0, -15.0)}, -8.0, 2.0, 120.0)
    assert (energy.positive, energy.negative, energy.joints, energy.residual) == (30.0, -20.0, 10.0, 0.0)
    assert (energy.mechanical_work, energy.cost_of_transport) == pytest.approx((1.0, 4.0))


def test_unknown_names_raise(one: Stride, tmp_path: Path) -> None:
    for call, message in (
        (lambda: Stride(one.result, "middle"), "side"),
        (lambda: one.angle("tail"), "tail"),
        (lambda: one.reaction("elbow"), "joint"),
        (lambda: animate(one.result, tmp_path / "walk.avi"), "walk.avi"),
        (lambda: animate(one.result, tmp_path / "walk.gif", rate=0), "rate"),
        (lambda: draw(one.body, np.zeros((2, 55))), "q"),
    ):
        with refused(message):
            call()
    body = torsor.library.human()
    still = MotionProblem(body, Phase(1.0), Effort(body=body, support=Standing(), moving=()), name="standing")
    with refused(value="standing", allowed="a result of torsor.human.walking"):
        Stride(MotionResult(still, one.result.outcome, "none"))


@pytest.mark.slow
def test_a_solved_step_is_like_that_of_people() -> None:
    stride = Stride(habitual_problem().solve())
    alike = stride.likeness()
    for name, least in (
        ("hip_flexion", 0.95),
        ("knee_flexion", 0.95),
        ("ankle_plantarflexion", 0.9),
        ("vertical", 0.95),
        ("forward", 0.8),
    ):
        assert alike[name].correlation > least
    peaks = stride.to_dict()["peaks"]
    assert 50 < peaks["knee_in_swing"] < 70
    assert all(0.8 < peaks["vertical"][name] < 1.25 for name in ("first", "second"))
    assert abs(stride.energy.residual) < 1e-9 and abs(stride.energy.change) < 1e-3


def test_a_stride_is_known_at_any_time(one: Stride) -> None:
    now = one.at(one.s * one.duration)
    for name, field in (("q", "q"), ("v", "v"), ("a", "a"), ("tau", "torques")):
        assert np.array_equal(getattr(now, name), getattr(one.samples, field))
    walk, t = one.result.at(0.123), [[0.123, 0.2]]
    assert np.abs(one.at(t).q[0, 0] - walk.q).max() < 1e-6 and one.at(t).tau.shape == (1, 2, one.body.nv)
    with refused(argument="t", allowed="times from 0 to"):
        one.at(one.duration + 0.1)
