"""A first look finds each kind of error in a log, states the number and the fix, and finds nothing in clean logs."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import torsor
from identification.made_logs import noisy, truth
from refusals import refused
from torsor.cli.main import main
from torsor.identification import LogMap, Measurements, first_look
from torsor.identification.logs.first_look import write_look_report

ARM = torsor.library.planar_chain(3)


@cache
def log_of(name="planar_chain", seed=0, links=2, rate=125.0):
    robot = torsor.library.planar_chain(links) if name == "planar_chain" else getattr(torsor.library, name)()
    made = truth(robot, rate=rate, seed=seed)
    return robot, made, noisy(made, seed + 10)


def changed(x, rows, column, value):
    y = x.copy()
    y[rows, column] = value(y[rows, column]) if callable(value) else value
    return y


def later(t, tau, delay):
    return np.stack([np.interp(t - delay, t, x) for x in tau.T], axis=1)


def swapped(x):
    """The last two columns in the other order."""
    return np.concatenate([x[:, :-2], x[:, :-3:-1]], axis=1)


def reversed_second(x):
    return changed(x, ALL, 1, lambda y: -y)


@pytest.mark.parametrize("angle", [1.0, -0.4])
def test_a_zero_that_is_wrong_by_any_angle_is_the_only_finding(angle: float) -> None:
    made, rng = truth(ARM, rate=125.0), np.random.default_rng(0)
    tau = made.tau + 1e-3 * made.tau.std(axis=0) * rng.normal(size=made.tau.shape)
    look = first_look(ARM, (made.t, made.q + np.array([0.0, angle, 0.0]), tau), cutoff=20.0)
    assert look.kinds == ("offset",) and "'joint2'" in look.findings[0].place
    assert float(look.findings[0].fix.split()[1]) == pytest.approx(-angle, abs=0.02)
    assert max(each.left for each in look.signals) < 0.2


ALL = slice(None)
MISTAKES = {
    "degrees": (lambda t, q, tau: (t, np.degrees(q), tau), "log", None),
    "swapped": (lambda t, q, tau: (t, q, swapped(tau)), "forces of {last}", None),
    "swapped positions": (lambda t, q, tau: (t, swapped(q), tau), "q of {last}", None),
    "sign": (lambda t, q, tau: (t, q, reversed_second(tau)), "force of 'joint2'", None),
    "sign of positions": (lambda t, q, tau: (t, reversed_second(q), tau), "q of 'joint2'", None),
    "offset": (lambda t, q, tau: (t, changed(q, ALL, 1, lambda x: x - np.pi / 2), tau), "q of 'joint2'", None),
    "delay": (lambda t, q, tau: (t, q, later(t, tau, 0.01)), "log", 0.01),
    "delay the other way": (lambda t, q, tau: (t, q, later(t, tau, -0.006)), "log", -0.006),
    "scale": (lambda t, q, tau: (t, q, changed(tau, ALL, 1, lambda x: x / 100)), "force of 'joint2'", 0.01),
    "saturation": (
        lambda t, q, tau: (t, q, changed(tau, ALL, 1, lambda x: np.minimum(x, 3.0))),
        "force of 'joint2'",
        3.0,
    ),
    "constant": (lambda t, q, tau: (t, q, changed(tau, ALL, 1, 2.5)), "force of 'joint2'", 2.5),
    "still": (lambda t, q, tau: (t, changed(q, ALL, 1, 0.4), tau), "q of 'joint2'", 0.0),
    "stuck": (lambda t, q, tau: (t, changed(q, slice(300, 400), 1, lambda x: x[0]), tau), "q of 'joint2'", 99),
    "stuck force": (lambda t, q, tau: (t, q, changed(tau, slice(250, 310), 1, lambda x: x[0])), "'joint2'", None),
    "spike": (lambda t, q, tau: (t, changed(q, slice(350, 351), 1, lambda x: x + 0.2), tau), "q of 'joint2'", 0.2),
    "missing": (lambda t, q, tau: (t, changed(q, slice(350, 355), 1, np.nan), tau), "log", 5),
    "gap": (lambda t, q, tau: tuple(x[(t < 3.0) | (t > 3.4)] for x in (t, q, tau)), "log", 0.412),
    "time": (lambda t, q, tau: (np.where(t > 4, t - 1, t), q, tau), "log", 1),
    "time in ms": (lambda t, q, tau: (1e3 * t, q, tau), "log", None),
    "time in us": (lambda t, q, tau: (1e6 * t, q, tau), "log", None),
    "time in ns": (lambda t, q, tau: (1e9 * t, q, tau), "log", None),
    "quantisation": (lambda t, q, tau: (t, np.round(q / 0.05) * 0.05, tau), "q of 'joint1'", 0.05),
    "short": (lambda t, q, tau: (t[:12], q[:12], tau[:12]), "log", None),
}


# The zero of the last joint of two is not seen: parameters of its link take its place.
SMALL = [(mistake, 3 if mistake == "offset" else 2, 125.0) for mistake in MISTAKES]
LARGE = [pytest.param(mistake, 3, 250.0, marks=pytest.mark.slow) for mistake in MISTAKES]


@pytest.mark.parametrize(("mistake", "links", "rate"), SMALL + LARGE)
def test_each_mistake_is_found_with_its_place_number_and_fix(mistake, links, rate):
    robot, _, log = log_of(links=links, rate=rate)
    kind = mistake.split(" ")[0]
    change, place, value = MISTAKES[mistake]
    settings = {"cutoff": 30.0} if kind == "quantisation" else {}
    look = first_look(robot, change(*log), **settings)
    found = [each for each in look.findings if each.kind == kind]
    assert found, look.report()
    place = place.format(last=f"'joint{links - 1}' and 'joint{links}'")
    assert place in found[0].place and found[0].fix and any(digit in found[0].found for digit in "0123456789")
    if value is not None:
        assert found[0].value == pytest.approx(value, abs=5e-4 + 0.02 * abs(value))
    if " in " in mistake:
        assert f'units = {{time = "{mistake[-2:]}"}}' in found[0].fix


def test_positions_and_forces_beyond_the_limits_of_the_robot_are_named():
    robot, _, (t, q, tau) = log_of("scara")
    look = first_look(robot, (t, q + np.array([7.0, 0, 0, 0]), tau))
    first = look.findings[0]
    assert first.kind == "limit" and first.place.endswith(f"q of {robot.coordinate_names[0]!r}")
    assert first.value == pytest.approx((q[:, 0] + 7.0).max() - robot.upper[0])


def test_degrees_of_several_joints_are_one_finding():
    arm, t = torsor.library.ur5(), np.arange(1000) * 4e-3
    q = np.degrees(np.sin(2 * np.pi * np.outer(t, 0.5 + 0.1 * np.arange(6))))
    assert first_look(arm, (t, q, 0.1 * q), cutoff=10.0).kinds == ("degrees",)


def test_a_clean_log_raises_nothing_and_says_what_can_be_identified():
    robot, _, log = log_of()
    look = first_look(robot, log)
    assert look.kinds == () and "Nothing suspicious." in look.report()
    assert [each.name for each in look.signals] == list(robot.coordinate_names)
    assert all(1.5 < each.left < 3.0 for each in look.signals)  # the noise is 2 %
    assert look.excited is not None and len(look.excited.names) == len(robot.inertial.base())
    data = Measurements.from_positions(*log, look.prepared.cutoff)
    truth_there = torsor.identify(robot, data)
    good = look.excited.percents < 20
    ratio = look.excited.deviations[good] / truth_there.deviations[good]
    assert good.sum() > 5 and ratio.min() > 0.7 and ratio.max() < 1.4  # as identify finds them
    assert look.excited.condition == pytest.approx(truth_there.condition, rel=0.3)


def test_a_clean_log_with_steps_of_200_ms_raises_nothing():
    robot, made = torsor.library.planar_chain(2), truth(torsor.library.planar_chain(2), duration=100.0, rate=5.0)
    look = first_look(robot, noisy(made))
    assert look.kinds == () and look.delay is not None and abs(look.delay.value) < 5 * look.delay.deviation


SLOW = [pytest.param(each, marks=pytest.mark.slow) for each in ("two_link", "scara", "ur5", "stanford", "panda")]


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("seed", [0, 1])
def test_clean_logs_of_other_robots_raise_no_false_alarm(name, seed):
    robot, _, log = log_of(name, seed, rate=250.0)
    assert first_look(robot, log).kinds == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur5", "stanford"])
def test_swapped_and_reversed_columns_of_arms_are_found(name):
    robot, _, (t, q, tau) = log_of(name, rate=250.0)
    for j in range(robot.nv - 1):
        order = [*range(j), j + 1, j, *range(j + 2, robot.nv)]
        assert first_look(robot, (t, q, tau[:, order])).kinds == ("swapped",)
        assert first_look(robot, (t, q[:, order], tau)).kinds == ("swapped",)
        sign = np.where(np.arange(robot.nv) == j, -1.0, 1.0)
        assert first_look(robot, (t, q, tau * sign)).kinds == ("sign",)
        assert first_look(robot, (t, q * sign, tau)).kinds == ("sign",)


RATES = {
    "rate": (np.degrees, 180 / np.pi, "in degrees"),
    "sign": (lambda v: -v, -1.0, "correlation"),
    "swapped": (swapped, 1.0, "correct the order"),
    "delay": (lambda v: np.roll(v, 3, axis=0), 0.024, "derived from positions"),
}


@pytest.mark.parametrize("kind", RATES)
def test_measured_velocities_are_compared_with_the_positions(kind):
    robot, made, (t, q, tau) = log_of()
    change, value, words = RATES[kind]
    wrong = Measurements(q, change(made.v), made.a, tau, times=t).check(robot)
    found = [each for each in wrong.findings if each.kind == kind and "v of" in each.place]
    assert found and found[0].value == pytest.approx(value, rel=0.05) and words in str(found[0])
    assert Measurements(q, made.v, made.a, tau, times=t).check(robot).kinds == ()


def test_joints_that_do_not_move_show_no_parameters_of_their_own():
    robot, _, (t, q, tau) = log_of()
    still = changed(q, slice(None), 1, 0.0)
    look = first_look(robot, (t, still, tau))
    hidden = [name for name, each in zip(look.excited.names, look.excited.percents, strict=True) if np.isinf(each)]
    assert "joint2.viscous" in hidden and "joint2.rotor_inertia" in hidden and "joint1.viscous" not in hidden


def test_the_command_checks_a_log(tmp_path, capsys):
    robot, _, (t, q, tau) = log_of()
    robot.save(tmp_path / "chain.toml")
    table = np.column_stack([1e3 * t, np.degrees(q), 10 * tau])
    np.savetxt(tmp_path / "log.csv", table, delimiter=";", header="ms;p1;p2;i1;i2", comments="")
    (tmp_path / "map.toml").write_text(
        '[columns]\ntime = "ms"\nq = ["p1", "p2"]\ncurrent = ["i1", "i2"]\n'
        '[units]\ntime = "ms"\nq = "deg"\n[drives]\ntorque_constants = [0.1, 0.1]\n'
    )
    names = [str(tmp_path / name) for name in ("chain.toml", "log.csv", "map.toml", "look.json")]
    call = ["identify", names[0], names[1], "--map", names[2], "--check", "--json", names[3]]
    assert main(call) == 0
    assert "Nothing suspicious." in capsys.readouterr().out
    shown = json.loads((tmp_path / "look.json").read_text())
    assert shown["findings"] == [] and len(shown["signals"]) == 2 and shown["cutoff"] > 1
    (tmp_path / "map.toml").write_text((tmp_path / "map.toml").read_text().replace('"i1", "i2"', '"i2", "i1"'))
    assert main([*call[:6]]) == 3
    assert "! swapped: log.csv: forces of 'joint1' and 'joint2'" in capsys.readouterr().out.replace("\n", " ")


def test_the_command_names_the_unit_of_times_in_milliseconds(tmp_path, capsys):
    robot, _, (t, q, tau) = log_of()
    robot.save(tmp_path / "chain.toml")
    head = ",".join(["time", *(f"{letter} {name}" for letter in ("q", "tau") for name in robot.coordinate_names)])
    np.savetxt(tmp_path / "log.csv", np.column_stack([1e3 * t, q, tau]), delimiter=",", header=head, comments="")
    assert main(["identify", str(tmp_path / "chain.toml"), str(tmp_path / "log.csv"), "--check"]) == 3
    assert "! time: log.csv: the usual step is 8 s: is the time in ms?" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.slow
def test_the_command_draws_what_it_checks(tmp_path):
    robot, _, (t, q, tau) = log_of()
    robot.save(tmp_path / "chain.toml")
    head = ",".join(["time", *(f"{letter} {name}" for letter in ("q", "tau") for name in robot.coordinate_names)])
    table = np.column_stack([t, q, changed(tau, slice(None), 1, 2.5)])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=head, comments="")
    names = [str(tmp_path / name) for name in ("chain.toml", "log.csv", "look.html", "look.png")]
    assert main(["identify", *names[:2], "--check", "--report", names[2], "--plot", names[3]]) == 3
    text = (tmp_path / "look.html").read_text()
    assert "data:image/png" in text and "<td>constant</td>" in text and "<td>-</td></tr>" in text
    assert (tmp_path / "look.png").stat().st_size > 20_000


def test_the_report_of_a_look_has_tables_of_html_and_escapes_names(tmp_path):
    robot, t = torsor.library.planar_chain(1), np.arange(2000) * 1e-3
    q = np.sin(2 * np.pi * t)[:, None]
    look = first_look(replace(robot, name="<b>arm"), (t, q, 0 * q), cutoff=20.0)
    text = write_look_report(tmp_path / "look.html", look).read_text()
    assert "<th>unexplained %</th>" in text and "<td>joint1</td>" in text and "<td>constant</td>" in text
    assert "<pre" not in text and "<b>arm" not in text and "&lt;b&gt;arm" in text


def test_samples_that_the_filter_leaves_out_are_counted():
    t = np.arange(1000) * 2e-3
    q = np.sin(2 * np.pi * t)[:, None]
    look = first_look(torsor.library.planar_chain(1), (t, q, q), cutoff=20.0)
    assert look.prepared is not None and len(look.prepared.samples.q) == 950
    assert "50 of 1000 samples are within 1 / cutoff = 0.05 s of an end" in " ".join(look.notes)


def test_the_command_identifies_with_a_map(tmp_path, capsys):
    robot, _, (_, q, tau) = log_of()
    robot.save(tmp_path / "chain.toml")
    np.savetxt(tmp_path / "log.csv", np.column_stack([q, tau]), delimiter=",")
    (tmp_path / "map.toml").write_text("rate = 125.0\n[columns]\nq = [0, 1]\ntau = [2, 3]\n")
    names = [str(tmp_path / name) for name in ("chain.toml", "log.csv", "map.toml")]
    assert main(["identify", names[0], names[1], "--map", names[2]]) == 0
    said = capsys.readouterr().out
    assert "- cutoff" in said and "link1.mx" in said


def test_what_leaves_nothing_to_look_at_is_an_error(tmp_path):
    (tmp_path / "log.csv").write_text("a,b\n1,2\n3\n")
    with refused(what="line 3 has 1 columns"):
        first_look(torsor.library.planar_chain(1), tmp_path / "log.csv", LogMap({"q": [0], "tau": [1]}, rate=1.0))
    with refused(what="have the shapes"):
        first_look(ARM, (np.zeros(5), np.zeros((5, 2)), np.zeros((5, 3))))


def test_the_command_takes_laws_of_friction_and_holds_samples_out(tmp_path, capsys):
    robot, _, (t, q, tau) = log_of()
    robot.save(tmp_path / "chain.toml")
    heads = [
        "time",
        *(f"q {name}" for name in robot.coordinate_names),
        *(f"tau {name}" for name in robot.coordinate_names),
    ]
    np.savetxt(tmp_path / "log.csv", np.column_stack([t, q, tau]), delimiter=",", header=",".join(heads), comments="")
    options = [
        "--friction-models",
        "offset",
        "--force-cutoff",
        "20",
        "--robust",
        "huber",
        "--held-out",
        "0.25",
        "--json",
        "-",
    ]
    options += ["--instruments", "simulation"]
    assert main(["identify", str(tmp_path / "chain.toml"), str(tmp_path / "log.csv"), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (
        found["settings"]["held_out"] == 0.25
        and found["settings"]["instruments"] == "simulation"
        and found["settings"]["bandwidth"] == 20.0
    )
    assert (
        main(["identify", str(tmp_path / "chain.toml"), str(tmp_path / "log.csv"), "--friction-models", "sticky"]) == 1
    )
    assert "sticky" in capsys.readouterr().err
