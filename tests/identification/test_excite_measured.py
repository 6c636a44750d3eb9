"""Excitations that know earlier measurements lower the uncertainty more; shapes stay apart; points for controllers."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.base.documents import schema_of
from torsor.cli.main import main
from torsor.identification import Excitation, Measurements, excite
from torsor.identification.excitation.design import CRITERIA, Clearance, criterion_of
from torsor.identification.logs.first_look import identifiable
from torsor.robot.state_tables import read_states

CHAIN = torsor.library.planar_chain(2)
LIMITS = {"lower": [-1.5, -1.0], "upper": [1.5, 2.0], "velocity": [3.0, 4.0], "acceleration": 15.0}
NOISE, RATE, PERIOD = np.array([0.2, 0.05]), 200.0, 3.0
T = np.arange(int(RATE * PERIOD)) / RATE


def information(motion: Excitation) -> np.ndarray:
    """The inverse covariance of the base parameters from one period, by its definition."""
    base = CHAIN.inertial.base()
    rows = (CHAIN.inertial.regressor(*motion(T))[..., base.columns] / NOISE[:, None]).reshape(-1, len(base))
    return np.asarray(rows.T @ rows)


def task() -> Excitation:
    """A first motion that hardly moves the second joint."""
    C = np.zeros((5, 2))
    C[1:, 0], C[1:, 1] = [0.5, 0.2, 0.3, 0.4], [0.01, 0.03, 0.02, 0.01]
    return Excitation(CHAIN, PERIOD, C, 1.0, 1.0)


def measured(motion: Excitation, seed: int = 0) -> Measurements:
    noise = NOISE * np.random.default_rng(seed).normal(size=(len(T), 2))
    return Measurements(*motion(T), CHAIN.inverse_dynamics(*motion(T)) + noise, times=T)


def test_the_second_motion_lowers_the_covariance_more_than_the_first_again_or_a_fresh_one() -> None:
    first = task()
    given = {"criterion": "determinant", "iterations": 40, **LIMITS}
    second = excite(CHAIN, PERIOD, 4, measured=measured(first), **given)
    fresh = [excite(CHAIN, PERIOD, 4, noise=NOISE, seed=seed, **given) for seed in (0, 1)]
    volume = [-float(np.linalg.slogdet(information(first) + information(each))[1]) for each in (second, first, *fresh)]
    assert volume[0] < volume[1] - 5.0
    assert volume[0] < min(volume[2:]) - 0.05


@pytest.mark.parametrize("kind", ["identified", "measurements"])
def test_expected_deviations_are_those_of_the_information(kind: str) -> None:
    data = measured(task())
    known = torsor.identify(CHAIN, data) if kind == "identified" else data
    second = excite(CHAIN, PERIOD, 4, measured=[known], iterations=5, **LIMITS)
    expected = second.settings["expected"]
    assert second.settings["rate"] == pytest.approx(RATE)
    np.testing.assert_allclose(second.settings["noise"], NOISE, rtol=0.1)
    total = information(task()) + information(second)
    np.testing.assert_allclose(expected["after"], np.sqrt(np.diagonal(np.linalg.inv(total))), rtol=0.15)
    assert expected["parameters"] == list(CHAIN.inertial.base().names)


def test_measurements_that_do_not_show_a_parameter_know_nothing_of_it() -> None:
    q, v, a = task()(T)
    still = (q * [1, 0], v * [1, 0], a * [1, 0])
    noise = NOISE * np.random.default_rng(1).normal(size=(len(T), 2))
    data = Measurements(*still, CHAIN.inverse_dynamics(*still) + noise, times=T)
    expected = excite(CHAIN, PERIOD, 4, measured=data, iterations=5, **LIMITS).settings["expected"]
    before = dict(zip(expected["parameters"], expected["before"], strict=True))
    assert before["joint2.viscous"] is None and before["joint1.viscous"] is not None
    assert None not in expected["after"]


def test_the_uncertainty_criterion_lowers_the_largest_relative_deviation() -> None:
    def largest(motion: Excitation) -> float:
        return float(np.max(np.array(motion.settings["expected"]["after"]) / sizes))

    robot = CHAIN.with_friction("joint1", 1.0, 1.0).with_friction("joint2", 1.0, 1.0)
    sizes = np.abs(robot.inertial.base().values)
    sizes = np.maximum(sizes, 0.1 * sizes.max())
    given = {"measured": measured(task()), "iterations": 30, **LIMITS}
    found = [excite(robot, PERIOD, 4, criterion=each, **given) for each in ("uncertainty", "condition")]
    assert largest(found[0]) < largest(found[1])


@pytest.mark.parametrize("name", CRITERIA)
def test_gradients_of_criteria_are_those_of_finite_differences(name: str) -> None:
    rng = np.random.default_rng(0)
    A, sizes, h = rng.normal(size=(9, 4)), np.array([1.0, 0.1, 2.0, 0.5]), 1e-6
    G = A.T @ A
    _, gradient = criterion_of(name, G, sizes)
    for _ in range(3):
        D = rng.normal(size=(4, 4))
        D = D + D.T
        rise = criterion_of(name, G + h * D, sizes)[0] - criterion_of(name, G - h * D, sizes)[0]
        assert rise / (2 * h) == pytest.approx(float(np.sum(gradient * D)), rel=1e-6)


def folded() -> torsor.Robot:
    """A chain of three links with capsules, whose last link can hit the first one and the base."""
    arm = torsor.library.planar_chain(3)
    along = torsor.spatial.make_pose(R=np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]), p=[0.5, 0, 0])
    for name in arm.link_names:
        arm = arm.with_shapes(name, [torsor.Shape("capsule", (0.08, 0.8), along)])
    return arm.with_shapes(arm.base.name, [torsor.Shape("sphere", (0.2,))])


def test_shapes_stay_apart_by_the_clearance() -> None:
    arm = folded()
    limits = {"lower": [-1.0, 1.0, 1.0], "upper": [1.0, 2.9, 2.9], "velocity": 6.0, "iterations": 10}
    free = excite(arm, 4.0, 3, **limits)
    apart = excite(arm, 4.0, 3, clearance=0.05, **limits)
    t = np.linspace(0.0, 4.0, 4001)
    assert arm.shapes.distances(free.at(t).q).distance.min() < 0.05
    assert arm.shapes.distances(apart.at(t).q).distance.min() > 0.05 - 1e-4
    assert apart.settings["distance"] == pytest.approx(arm.shapes.distances(apart.at(t).q).distance.min(), abs=1e-3)
    assert apart.condition < apart.start_condition


def test_the_barrier_of_a_clearance_has_the_gradient_of_finite_differences() -> None:
    arm, h = folded(), 1e-6
    clearance = Clearance.of(arm, 0.05, [("link1", "link3")], "test")
    q = np.array([[0.1, 2.0, 1.0]])
    q[0, 2] = next(
        x for x in np.linspace(1.0, 3.0, 400) if 0.06 < clearance.distances(np.array([[0.1, 2.0, x]]))[0] < 0.12
    )
    value, gradient = clearance.barrier(q)
    assert 0 < value < np.inf
    for j in range(3):
        step = h * np.eye(3)[j]
        rise = clearance.barrier(q + step)[0] - clearance.barrier(q - step)[0]
        assert rise / (2 * h) == pytest.approx(gradient[0, j], rel=1e-5, abs=1e-8)


def test_tables_and_points_have_the_motion_at_a_rate(tmp_path: Path) -> None:
    motion = excite(CHAIN, PERIOD, 3, iterations=2, **LIMITS)
    motion.save(tmp_path / "motion.csv", rate=50.0)
    found = read_states(tmp_path / "motion.csv", CHAIN)
    np.testing.assert_array_equal(found["time"], np.arange(151) / 50.0)
    for letter, expected in zip("qva", motion(found["time"]), strict=True):
        np.testing.assert_array_equal(found[letter], expected)
    for name in ("points.json", "points.yaml"):
        motion.save_points(tmp_path / name, rate=50.0)
        text = (tmp_path / name).read_text(encoding="utf-8")
        shown = json.loads(text) if name.endswith("json") else pytest.importorskip("yaml").safe_load(text)
        assert shown["joint_names"] == ["joint1", "joint2"] and len(shown["points"]) == 151
        point = shown["points"][77]
        assert point["time_from_start"] == {"sec": 1, "nanosec": 540_000_000}
        keys = ("positions", "velocities", "accelerations")
        np.testing.assert_allclose([point[key] for key in keys], motion(1.54), atol=1e-9)
        assert all(isinstance(x, float) for key in keys for point in shown["points"] for x in point[key])


def test_the_command_aims_at_what_a_log_leaves_uncertain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    CHAIN.save("chain.toml")
    data = measured(task())
    torsor.simulation.Trajectory(CHAIN, T, data.q, data.v, data.a, data.tau).save("log.csv")
    limits = ["--lower", "-1.5", "-1", "--upper", "1.5", "2", "--velocity", "3", "--acceleration", "15"]
    call = ["excite", "chain.toml", "--measured", "log.csv", "--period", "3", "--harmonics", "3", *limits]
    call += ["--iterations", "4", "--rate", "50", "-o", "motion.csv", "--joint-trajectory", "points.yaml"]
    assert main([*call, "--json", "motion.json"]) == 0
    said = capsys.readouterr().out
    assert "Expected standard deviations" in said and "condition number" in said and "points.yaml" in said
    shown = json.loads(Path("motion.json").read_text())
    assert set(schema_of("excitation")["required"]) <= set(shown)
    assert shown["settings"]["criterion"] == "determinant"
    assert len(read_states(Path("motion.csv"), CHAIN)["q"]) == 151
    step = sys.modules["torsor.identification.excitation.excite"].Descent
    monkeypatch.setattr(step, "step", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    Path("motion.csv").unlink()
    assert main([*call, "--force"]) == 130
    assert Path("motion.csv").exists(), "the best motion so far is kept"


@pytest.mark.slow
def test_the_command_draws_the_motion(tmp_path: Path) -> None:
    CHAIN.save(tmp_path / "chain.toml")
    call = ["excite", str(tmp_path / "chain.toml"), "--lower", "-1", "--upper", "1", "--iterations", "2"]
    assert main([*call, "--plot", str(tmp_path / "motion.png")]) == 0
    assert (tmp_path / "motion.png").stat().st_size > 10_000


def expected(data: Measurements | list[Measurements], **given: object) -> dict[str, list[float | None]]:
    motion = excite(CHAIN, PERIOD, 3, measured=data, iterations=0, **LIMITS, **given)
    return motion.settings["expected"] | {"noise": motion.settings["noise"]}


def test_wrenches_of_the_environment_are_no_noise() -> None:
    data, rng = measured(task()), np.random.default_rng(2)
    push = 50 * rng.normal(size=(len(T), 1, 6)) * [[[0.0], [1.0]]]
    tau = CHAIN.inverse_dynamics(data.q, data.v, data.a, push) + NOISE * rng.normal(size=(len(T), 2))
    pushed = Measurements(data.q, data.v, data.a, tau, times=T, external=push)
    np.testing.assert_allclose(expected(pushed)["noise"], NOISE, rtol=0.1)


@pytest.mark.parametrize("kind", ["identified", "measurements"])
def test_a_force_that_was_not_measured_is_left_out(kind: str) -> None:
    q, v, a = task()(T)
    tau = CHAIN.inverse_dynamics(q, v, a) + NOISE * np.random.default_rng(3).normal(size=(len(T), 2))
    data = Measurements.of(CHAIN, q, v, a, tau, measured=["joint1"], times=T)
    known = torsor.identify(CHAIN, data) if kind == "identified" else data
    motion = excite(CHAIN, PERIOD, 3, measured=known, iterations=3, **LIMITS)
    base, found = CHAIN.inertial.base(measured=["joint1"]), json.loads(json.dumps(motion.settings))
    rows = [CHAIN.inertial.regressor(*each(T))[:, 0, base.columns] / NOISE[0] for each in (task(), motion)]
    after = np.sqrt(np.diagonal(np.linalg.inv(sum(each.T @ each for each in rows))))
    assert found["noise"] == [pytest.approx(NOISE[0], rel=0.1), None]
    assert found["expected"]["parameters"] == list(base.names)
    np.testing.assert_allclose(found["expected"]["after"], after, rtol=0.15)
    both = expected([data, measured(task())])
    np.testing.assert_allclose(both["noise"], NOISE, rtol=0.1)


def test_weights_are_relative() -> None:
    data, rng = measured(task()), np.random.default_rng(4)
    spread = rng.choice([1.0, 10.0], size=(len(T), 2))
    tau = CHAIN.inverse_dynamics(data.q, data.v, data.a) + NOISE * spread * rng.normal(size=(len(T), 2))
    found = [
        expected(Measurements(data.q, data.v, data.a, tau, weights=factor / spread, times=T))["before"]
        for factor in (1.0, 1e3)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    alike = torsor.identify(CHAIN, Measurements(data.q, data.v, data.a, tau, weights=1 / spread, times=T), still=0.0)
    np.testing.assert_allclose(found[0], alike.deviations, rtol=0.4)


def test_the_report_starts_with_the_criterion_that_was_optimised() -> None:
    motion = excite(CHAIN, PERIOD, 3, criterion="determinant", iterations=10, **LIMITS)
    reached, start = motion.settings["reached"]
    assert reached < start
    line = next(each for each in motion.report().splitlines() if "criterion" in each)
    assert f"determinant: {reached:.4g} (initial guess: {start:.4g}; lower is better)" in line
    assert motion.report().index("criterion") < motion.report().index("condition number")


def test_a_first_look_names_the_command() -> None:
    q, v, a = task()(T)
    still = (q * [1, 0], v * [1, 0], a * [1, 0])
    said = Measurements(*still, CHAIN.inverse_dynamics(*still), times=T).check(CHAIN).report()
    assert "torsor excite ROBOT --measured LOG (in Python: torsor.identification.excite) designs a motion" in said
    shown = SimpleNamespace(names=["m"], condition=1.0, forces=9, percents=[200.0], graded=lambda: ([], [], [0]))
    for robot, named in ((CHAIN, True), (torsor.library.quadruped(), False)):
        assert ("torsor excite" in identifiable(SimpleNamespace(robot=robot, excited=shown))[-1]) == named


def of_another(change: str) -> object:
    if change == "result":
        other = torsor.library.two_link()
        q, v, a = np.random.default_rng(0).normal(size=(3, 200, 2))
        return torsor.identify(other, (q, v, a, other.inverse_dynamics(q, v, a)))
    return torsor.simulate(torsor.library.planar_chain(2, length=0.7), duration=0.1)


CLOSED = "choose drive motions manually"
REFUSED = [
    (lambda: excite(CHAIN, measured=of_another("result"), **LIMITS), "measured"),
    (lambda: excite(CHAIN, measured=of_another("length"), **LIMITS), "measured"),
    (lambda: task().save("motion.csv", rate=1e12), "lower the rate to"),
    (lambda: task().save_points("motion.json", rate=1e12), "10000000 samples or fewer"),
    *((lambda noise=noise: excite(CHAIN, noise=noise, **LIMITS), "noise") for noise in (1e-300, np.inf, [1.0, 1e300])),
    (lambda: excite(CHAIN, 1e-300, **LIMITS), "period"),
    (lambda: excite(CHAIN, measured=measured(task()), rate=1e300, **LIMITS), "rate"),
    (lambda: excite(CHAIN, 1e6, **LIMITS), "none of 30 random motions excites all parameters"),
    (lambda: excite(torsor.library.four_bar()), CLOSED),
    (lambda: excite(torsor.library.delta()), CLOSED),
    (lambda: excite(CHAIN), "pass its range as `lower` and `upper`"),
    (lambda: excite(CHAIN, measured=[3], **LIMITS), "measured"),
    (lambda: excite(CHAIN, pairs=[("link1", "link2")], **LIMITS), "pairs"),
    (lambda: excite(CHAIN, clearance=0.1, **LIMITS), "no link has a collision shape"),
    (lambda: excite(folded(), 2.0, 2, lower=-2, upper=2, clearance=5.0), "reduce the clearance"),
    (lambda: excite(CHAIN, measured=measured(task()), rate=0.0, **LIMITS), "rate"),
    (lambda: task().save("motion.npz", rate=10.0), "use save_points for controller setpoints"),
    (lambda: task().save_points("motion.txt"), ".json, .yaml, .yml"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_errors_name_the_mistake_and_the_fix(k: int) -> None:
    call, message = REFUSED[k]
    with refused(message):
        call()
