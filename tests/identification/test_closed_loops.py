"""Robots with closed loops, identified from the positions and forces of their drives alone."""

import numpy as np
import pytest

import torsor
from identification.driven_motions import Swing, swing
from refusals import refused
from robot.closed_loops.mechanisms import closed_chain
from torsor.cli.main import main
from torsor.identification import Measurements, first_look, write_identification_report
from torsor.identification.closed_robot import _at_home, closed_robot
from torsor.identification.measurements import measurements_of
from torsor.library import five_bar, four_bar, palletiser, slider_crank
from torsor.robot.parallel.inertial import start_of


def linkage() -> torsor.Robot:
    """A four-bar linkage with off-axis masses and friction of the crank."""
    robot = four_bar().with_friction("crank_joint", 0.4, 0.2)
    for link, at in (("crank", (0.1, 0.2, 0.0)), ("coupler", (0.5, -0.3, 0.0)), ("rocker", (0.3, 0.25, 0.0))):
        robot = robot.with_payload(link, 0.4, at)
    return robot


LINKAGE = linkage()


@pytest.mark.parametrize("make", [four_bar, slider_crank, five_bar, pytest.param(palletiser, marks=pytest.mark.slow)])
def test_the_regressor_times_the_parameters_is_the_force_of_the_drives(make) -> None:
    robot = make()
    made = swing(robot, count=20)
    q = closed_robot(robot).positions(made.q)
    Y = robot.closed.regressor(q, made.v, made.a)
    assert np.allclose(Y @ robot.inertial.values, made.tau, rtol=1e-10, atol=1e-10 * np.abs(made.tau).max())


def test_a_four_bar_linkage_has_eight_inertial_base_parameters() -> None:
    # Of twelve parameters in the plane, the masses of crank and rocker do no work; a mass at either pin of the coupler
    # is one of crank or rocker. Gravity shows the four first moments that are left, speed the three inertias and m y.
    base = LINKAGE.inertial.base()
    inertial = [name.split(" ")[0] for name in base.names if "_joint" not in name.split(" ")[0]]
    assert inertial == [
        "crank.mx",
        "crank.my",
        "crank.Jzz",
        "coupler.mx",
        "coupler.my",
        "coupler.Jzz",
        "rocker.my",
        "rocker.Jzz",
    ]
    assert [name for name in base.names if "_joint" in name.split(" ")[0]] == [
        "crank_joint.coulomb",
        "crank_joint.viscous",
    ]
    assert not base.by_rule


def test_a_mass_at_a_pin_of_the_coupler_is_one_of_the_crank_or_of_the_rocker() -> None:
    base, names = LINKAGE.inertial.base(), LINKAGE.inertial.names
    for pin, other, far in ((0.0, "crank", 0.4), (0.9, "rocker", 0.8)):
        change = np.zeros(len(names))
        for link, at, mass in (("coupler", pin, 1.0), (other, far, -1.0)):
            for kind, value in (("m", mass), ("mx", mass * at), ("Jzz", mass * at**2), ("Jyy", mass * at**2)):
                change[names.index(f"{link}.{kind}")] += value
        assert np.abs(base.matrix @ change).max() < 1e-9


@pytest.mark.slow
def test_friction_of_passive_joints_is_unknown_where_it_is_named() -> None:
    assert not any("rocker_joint" in name for name in LINKAGE.inertial.base().names)
    named = LINKAGE.inertial.base(among=["*", "rocker_joint.viscous"])
    assert [name for name in named.names if "rocker_joint" in name] == ["rocker_joint.viscous"]
    among = ["*", "rocker_joint.viscous"]
    found = torsor.identify(LINKAGE, swing(LINKAGE.with_friction("rocker_joint", 0.0, 0.3)).data, among=among)
    assert abs(found.values[found.names.index("rocker_joint.viscous")] - 0.3) < 1e-6


@pytest.mark.parametrize(
    "make",
    [
        linkage,
        slider_crank,
        pytest.param(five_bar, marks=pytest.mark.slow),
        pytest.param(palletiser, marks=pytest.mark.slow),
    ],
)
def test_forces_of_drives_alone_predict_those_of_another_motion(make) -> None:
    real = make()
    assumed = real.inertial.replaced(0.7 * real.inertial.values)
    seen, unseen = swing(real, seed=0), swing(real, seed=1)
    found = torsor.identify(assumed, seen.data, noise="white")
    assert np.abs(found.predict(*unseen.motion) - unseen.tau).max() < 1e-9 * np.abs(unseen.tau).max()
    assert found.validate(unseen.data).relative_residuals.max() < 1e-7
    assert np.allclose(found.values, found.base.matrix @ real.inertial.values, rtol=1e-6, atol=1e-6)


def test_columns_of_all_joints_predict_the_forces_that_those_of_the_drives_predict() -> None:
    seen = swing(LINKAGE)
    found = torsor.identify(LINKAGE, seen.data)
    q, v, a = (x[:50] for x in seen.motion)
    at = LINKAGE.closed.assemble(q)
    every = at, *LINKAGE.closed.accelerations(at, v, a)
    assert every[0].shape == every[1].shape == (50, 3)
    np.testing.assert_allclose(found.predict(*every), found.predict(q, v, a), rtol=1e-10)
    with refused(what="away from its position in the closed loops"):
        found.predict(at + np.array([0.0, 0.5, 0.0]), *every[1:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["revolute", "spherical", "universal", "prismatic"])
def test_a_random_closed_chain_is_identified_from_its_drives(kind: str) -> None:
    robot, q = closed_chain(kind)
    names, _ = robot.closed.active_sets(q)[0]
    real = robot.with_active(names).with_posture("home", q)
    rng, n = np.random.default_rng(0), len(names)
    places = real.closed.closure.active_positions
    drives = q[places] + 0.1 * rng.uniform(-1, 1, size=(400, n))
    at = real.closed.assemble(drives, q, "nan")
    kept = np.isfinite(at).all(axis=1)
    at, (v, a) = at[kept], rng.normal(size=(2, int(kept.sum()), n))
    tau = real.closed.inverse_dynamics(at, v, a)
    half = len(at) // 2
    found = torsor.identify(real, tuple(x[:half] for x in (at[:, places], v, a, tau)), still=0.0)
    rest = found.predict(at[half:, places], v[half:], a[half:])
    assert np.abs(rest - tau[half:]).max() < 1e-7 * np.abs(tau).max()


def test_positions_of_all_joints_choose_the_assembly_mode() -> None:
    other = LINKAGE.closed.assemble([0.5], guess=[0.5, -1.0, -1.5])
    assert np.abs(other - LINKAGE.closed.assemble([0.5])).max() > 0.5
    crank = np.linspace(0.5, 5.0, 200)[:, None]
    q = LINKAGE.closed.assemble(crank, guess=other)
    v, a = np.cos(3 * crank), np.sin(5 * crank)
    tau = LINKAGE.closed.inverse_dynamics(q, v, a)
    found = torsor.identify(LINKAGE, (q, v, a, tau))
    assert found.rms.max() < 1e-9
    named = torsor.identify(LINKAGE.with_posture("home", other), (crank, v, a, tau))
    assert named.rms.max() < 1e-9
    mistaken = torsor.identify(LINKAGE, (crank, v, a, tau))  # the mode that is found without a posture is another
    assert mistaken.relative_residuals[0] > 0.1


OTHER = LINKAGE.closed.assemble([1.0], [1.0, -2.35, -2.4])  # the other mode of the linkage


def other_mode(count: int = 300) -> tuple[Swing, np.ndarray]:
    """A motion of the crank in the other mode, and the positions of all joints."""
    made = swing(LINKAGE.with_posture("home", OTHER), count=count)
    return made, closed_robot(LINKAGE, OTHER).positions(made.q)


def test_the_robot_that_is_found_keeps_the_mode() -> None:
    made, q = other_mode()
    drives = closed_robot(LINKAGE, q[0])
    again = drives.inertial.replaced(LINKAGE.inertial.values).given
    assert np.allclose(closed_robot(again).inverse_dynamics(*made.motion), made.tau)
    own = closed_robot(LINKAGE, LINKAGE.closed.assemble([0.3])).inertial.replaced(LINKAGE.inertial.values).given
    assert "home" not in own.postures  # the mode is that of the robot itself


def test_the_parallel_robot_that_is_found_keeps_the_mode() -> None:
    robot = torsor.library.three_rrr()
    at = robot.as_robot().closed.assemble(np.array([0.1, 0.0, -0.1]) + start_of(robot)[[3, 5, 7]], start_of(robot))
    moved = _at_home(robot, at)
    assert np.allclose(start_of(moved), at)


def test_passive_columns_of_a_log_are_compared_with_the_closed_loops(tmp_path) -> None:
    made, q = other_mode()
    heads = ["time", *(f"q {name} [deg]" for name in LINKAGE.coordinate_names), "tau crank_joint"]
    table = np.column_stack([made.t, np.degrees(q), made.tau])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(heads), comments="")
    with refused(where="sample 0 (t = 0 s)", fix="another mode, use robot.with_posture"):
        Measurements.load(tmp_path / "log.csv", LINKAGE, cutoff=20.0)
    assert first_look(LINKAGE, tmp_path / "log.csv", cutoff=20.0).kinds == ("closure",)
    assert len(Measurements.load(tmp_path / "log.csv", LINKAGE.with_posture("home", OTHER), cutoff=20.0)) > 100


def test_columns_of_all_coordinates() -> None:
    made = swing(LINKAGE, count=30)
    drives = closed_robot(LINKAGE)
    q, v, a = drives.whole(*made.motion)
    with refused(argument="q", fix="select the drives, q[..., [0]]"):
        drives.inertial.regressor(q, v, a)
    data = Measurements(q, v, a, drives.spread(made.tau), temperature=np.tile([20.0, 30.0, 40.0], (30, 1)))
    assert measurements_of(drives, data).temperature.ravel().tolist() == [20.0] * 30
    q[[7, 9], 1] += [0.3, 0.6]
    with refused(where="sample 7 (t = 0.07 s)", what="'coupler_joint' is 0.3 rad"):
        drives.check_closure(made.q, q, made.t)
    q[:, 1] += 2 * np.pi
    with refused(what="is 0.3 rad"):
        drives.check_closure(made.q, q, None)


@pytest.mark.parametrize("q", [np.full((5, 3), "a"), np.full((5, 3), None), [[1], [2, 3]]])
def test_positions_that_are_no_numbers_are_refused(q) -> None:
    with refused(argument="q", allowed="real numbers"):
        torsor.identify(LINKAGE, (q, *np.zeros((3, 5, 1))))


def test_a_simulated_motion_has_forces_of_all_coordinates() -> None:
    free = LINKAGE.with_friction("crank_joint", smooth=0.1)
    run = torsor.simulate(
        free,
        free.closed.assemble([0.5]),
        duration=2.0,
        controller=lambda t, q, v: np.array([6 * np.sin(3 * t) + 3 * np.sin(7 * t), 0.0, 0.0]),
    )
    assert torsor.identify(free, run).relative_residuals.max() < 1e-6
    forced = Measurements(run.q, run.v, run.a, run.tau + np.array([0.0, 1.0, 0.0]))
    with refused(value="coupler_joint"):
        torsor.identify(free, forced)


def test_a_full_turn_of_the_crank_keeps_the_mode() -> None:
    made = swing(LINKAGE, turns=6.0)
    q = closed_robot(LINKAGE).positions(made.q)
    assert np.abs(np.diff(q, axis=0)).max() < 0.2
    assert np.abs(LINKAGE.closed.error(q)).max() < 1e-9


@pytest.mark.slow
def test_a_physical_linkage_has_the_forces_of_the_real_one(tmp_path) -> None:
    assumed = LINKAGE.inertial.replaced(0.8 * LINKAGE.inertial.values)
    found = torsor.identify(assumed, swing(LINKAGE).data, physical=True, friction=["offset"], held_out=0.2)
    unseen = swing(LINKAGE, seed=4)
    q = closed_robot(LINKAGE).positions(unseen.q)
    tau = found.robot.closed.inverse_dynamics(q, unseen.v, unseen.a)
    assert np.abs(tau - unseen.tau).max() < 1e-3 * np.abs(unseen.tau).max()
    assert found.robot.loops and found.held_out.shape == (1,)
    found.save(tmp_path / "linkage.npz")
    again = torsor.load_result(tmp_path / "linkage.npz")
    assert np.array_equal(again.predict(*unseen.motion), found.predict(*unseen.motion))
    assert again.report() == found.report() and "crank_joint" in found.report()
    assert found.plot(tmp_path / "forces.png") is not None
    page = write_identification_report(tmp_path / "linkage.html", found).read_text()
    assert all(f"<td>{name}</td>" in page for name in LINKAGE.link_names)


def noisy_log(made: Swing, path, delay: int = 0) -> None:
    """Write a log of the drives: an encoder of 20000 steps, noise of 2 %, forces that are late by some samples."""
    rng, step = np.random.default_rng(5), 2 * np.pi / 20000
    q = step * np.round(made.q / step)
    tau = np.roll(made.tau, delay, axis=0) + 0.02 * made.tau.std(axis=0) * rng.normal(size=made.tau.shape)
    heads = ["time", *(f"q {name}" for name in made.names), *(f"tau {name}" for name in made.names)]
    np.savetxt(path, np.column_stack([made.t, q, tau]), delimiter=",", header=",".join(heads), comments="")


def test_a_log_of_the_drives_is_enough(tmp_path, capsys) -> None:
    LINKAGE.inertial.replaced(0.8 * LINKAGE.inertial.values).save(tmp_path / "linkage.toml")
    noisy_log(swing(LINKAGE, count=4000, rate=500.0), tmp_path / "log.csv")
    noisy_log(swing(LINKAGE, count=4000, rate=500.0, seed=1), tmp_path / "other.csv")
    data = Measurements.load(tmp_path / "log.csv", LINKAGE)
    assert data.q.shape[1] == 1 and "2 passive coordinates" in data.notes[-1]
    words = ["identify", *(str(tmp_path / name) for name in ("linkage.toml", "log.csv"))]
    words += ["--physical", "--validate", str(tmp_path / "other.csv"), "-o", str(tmp_path / "real.toml")]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "coupler_joint" in shown and "crank_joint: residual" in shown
    real, unseen = torsor.load(tmp_path / "real.toml"), swing(LINKAGE, seed=2)
    q = closed_robot(real).positions(unseen.q)
    error = real.closed.inverse_dynamics(q, unseen.v, unseen.a) - unseen.tau
    assert np.sqrt(np.mean(error**2)) < 0.03 * np.sqrt(np.mean(unseen.tau**2))


def test_a_first_look_compares_the_model_with_the_drives(tmp_path) -> None:
    made = swing(LINKAGE, count=1500, rate=250.0)
    clean = first_look(LINKAGE, (made.t, made.q, made.tau), cutoff=20.0)
    assert clean.kinds == () and clean.excited is not None and "passive" in clean.report()
    assert "sign" in first_look(LINKAGE, (made.t, -made.q, made.tau), cutoff=20.0).kinds
    late = first_look(LINKAGE, (made.t, made.q, np.roll(made.tau, 3, axis=0)), cutoff=20.0)
    assert late.kinds == ("delay",) and abs(late.delay.value - 0.012) < 1e-3


def rocker() -> torsor.Robot:
    """The linkage driven at its rocker, which turns by part of a circle only."""
    return LINKAGE.with_active(["rocker_joint"])


def test_a_first_look_names_loops_that_do_not_close() -> None:
    t = np.arange(2000) * 2e-3
    q = 1.5 + 1.2 * np.sin(2 * np.pi * 0.5 * t)[:, None]
    for settings in ({}, {"cutoff": 20.0}):
        assert "closure" in first_look(rocker(), (t, q, np.cos(t)[:, None]), **settings).kinds


def _still(q: np.ndarray, **more) -> Measurements:
    return Measurements(q, np.zeros((len(q), 1)), np.zeros((len(q), 1)), np.ones((len(q), 1)), **more)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: torsor.identify(rocker(), _still(np.array([[1.6], [1.7], [3.5]]), times=[0.0, 0.1, 0.2])),
            "closed configuration",
        ),
        (lambda: torsor.identify(LINKAGE, (np.zeros((9, 2)), *np.zeros((3, 9, 1)))), "q"),
        (
            lambda: torsor.identify(LINKAGE, (*np.zeros((3, 9, 1)), np.zeros((9, 2)))),
            "tau",
        ),
        (
            lambda: torsor.identify(
                LINKAGE, (LINKAGE.closed.assemble([[0.5], [0.6]]) + np.array([0, 0, 0.5]), *np.zeros((3, 2, 1)))
            ),
            "rad or mechanism sizes away from its position in the closed loops",
        ),
        (
            lambda: torsor.identify(LINKAGE.with_active(["crank_joint", "rocker_joint"]), np.zeros((4, 9, 2))),
            "there are 2 drives for 1 degrees of freedom",
        ),
        (lambda: torsor.identify(LINKAGE.with_active([]), np.zeros((4, 9, 1))), "no coordinate is active"),
        (lambda: LINKAGE.inertial.regressor(np.zeros(3), np.zeros(3), np.zeros(3)), "robot.closed.regressor"),
    ],
)
def test_errors_name_the_sample_and_the_fix(call, text: str) -> None:
    with refused(text):
        call()


def test_a_singular_posture_is_named_with_its_time() -> None:
    # Driven at the rocker, crank and coupler in line are a dead point: 1.3 = sqrt(1 + 0.64 - 1.6 cos(angle)).
    dead = float(np.arccos((1 + 0.64 - 1.69) / 1.6))
    angle = np.pi - dead
    q = np.linspace(angle + 0.3, angle, 31)[:, None]
    with refused(where="sample 30 (t = 3 s)", fix="singular"):
        torsor.identify(rocker(), _still(q, times=0.1 * np.arange(31)))


def test_measured_forces_are_those_of_the_drives():
    bars, one = torsor.library.four_bar(), np.zeros((9, 1))
    for data in (Measurements(one, one, one, one), Measurements(one, one, one, one, weights=np.ones((9, 1)))):
        assert data.measured(bars) == ["crank_joint"]
        with refused(argument="tau", where="ur5", allowed="6"):
            data.measured(torsor.library.ur5())
