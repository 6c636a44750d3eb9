"""Loops in Denavit-Hartenberg tables: Khalil's loop (2010), standard and modified tables, and invalid tables."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused

from .closing import closed_near
from .mechanisms import EQUATIONS, KINDS, four_bar

TARGETS = json.loads((Path(__file__).parents[2] / "data" / "targets.json").read_text())


def test_the_table_of_khalils_five_bar_gives_its_numbers() -> None:
    data = TARGETS["003_fivebar"]
    table, rows = data["robot"], []
    for k in range(4):
        mass, J = table["M"][k], np.array(table["J"][k])
        c = np.array(table["MS"][k]) / mass
        inertia = J - mass * (c @ c * np.eye(3) - np.outer(c, c))
        link = {"mass": mass, "com": c, "inertia": inertia, "rotor_inertia": table["Ia"][k]}
        mu = int(k + 1 in data["active"])
        rows.append(torsor.MDHLink(table["ant"][k], d=table["d"][k], joint=table["sigma"][k], active=mu, **link))
    rows.append(torsor.MDHLink(1, d=data["L"][1], joint=0, closes=5))  # frame 5 = k, its antecedent is link 2
    rows.append(torsor.MDHLink(3, d=data["L"][3], joint=2))  # frame 6 = k + B, fixed on link 4
    robot = torsor.from_mdh(rows, gravity=table["g"]).to(device="casadi")
    assert robot.active == ("joint1", "joint3") and [loop.kind for loop in robot.loops] == ["revolute"]
    q, v, a = (np.array(data[name]) for name in ("q", "qd", "qdd"))
    active = [0, 2]
    np.testing.assert_allclose(robot.closed.assemble(q[active], guess=q + 0.1), q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a, loops="open"), data["Gamma_tree"], rtol=1e-12)
    np.testing.assert_allclose(robot.closed.velocities(q, np.eye(2)).T, data["G"], rtol=0, atol=1e-12)
    tau = robot.closed.inverse_dynamics(q, v[active], a[active])
    np.testing.assert_allclose(tau, data["Gamma_c"], rtol=1e-12)
    bias = robot.closed.inverse_dynamics(q, v[active], np.zeros(2))
    np.testing.assert_allclose(bias, data["H_c"], rtol=1e-12)
    np.testing.assert_allclose(tau - bias, np.array(data["A_c"]) @ a[active], rtol=0, atol=1e-13)


def test_a_table_makes_the_mechanism_that_frames_and_a_loop_make() -> None:
    by_hand = four_bar()
    rows = [
        torsor.MDHLink(parent, d=d, mass=link.mass, com=link.com, inertia=link.inertia, active=k == 0)
        for k, (parent, d, link) in enumerate(zip((-1, 0, -1), (0, 0.4, 1.0), by_hand.links, strict=True))
    ]
    pin = [torsor.MDHLink(1, d=0.9, closes=4, name="pin"), torsor.MDHLink(2, d=0.8, joint="fixed", name="rocker_end")]
    robot = torsor.from_mdh(rows + pin, gravity=(0, -9.81, 0)).to(device="casadi")
    assert robot.loops[0].name == "pin_joint" and robot.active == by_hand.active
    q = by_hand.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    np.testing.assert_array_equal(robot.closed.error(q + 0.1), by_hand.closed.error(q + 0.1))
    np.testing.assert_array_equal(robot.closed.jacobian(q), by_hand.closed.jacobian(q))


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_the_product_of_the_matrices_of_a_standard_table_is_the_identity(kind: str) -> None:
    rng = np.random.default_rng(12)
    rows = [torsor.DHLink(*rng.normal(size=4), mass=1.0) for _ in range(6)]
    last = rng.normal(size=4)
    table = [*rows, torsor.DHLink(*last, joint=kind, closes=-1)], [*rows, torsor.DHLink(*last, joint=kind, mass=1.0)]
    robot, whole = (torsor.from_dh(each).to(device="casadi") for each in table)
    assert (robot.nv, robot.loops[0].count) == (6, 5)
    q = closed_near(robot, rng.normal(size=6))
    *_, before, end = whole.poses(np.r_[q, 0.0])
    # The joint that was cut moves by X what is behind it: before X before^-1 end is the base.
    X = np.linalg.inv(before) @ np.linalg.inv(end) @ before
    variable = np.arctan2(X[1, 0], X[0, 0]) if kind == "revolute" else X[2, 3]
    np.testing.assert_allclose(whole.poses(np.r_[q, variable])[-1], np.eye(4), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "rod"])
def test_a_cut_joint_of_a_table_is_of_any_kind(kind: str) -> None:
    rng = np.random.default_rng(9)
    rows = [torsor.MDHLink(k - 1, *rng.normal(size=6), mass=1.0, active=k < 2) for k in range(4)]
    closing = [torsor.MDHLink(3, *rng.normal(size=6), joint=kind, closes=5)]
    robot = torsor.from_mdh([*rows, *closing, torsor.MDHLink(-1, *rng.normal(size=6), joint="fixed")])
    robot = robot.to(device="casadi")
    assert robot.loops == (torsor.Loop("joint5", "joint5/a", "joint5/b", kind),)
    assert robot.loops[0].count == EQUATIONS[kind] and robot.active == ("joint1", "joint2")
    whole = torsor.from_mdh([*rows, replace(closing[0], joint="fixed", closes=None)]).to(device="casadi")
    q = rng.normal(size=4)
    np.testing.assert_allclose(robot.pose(q, "joint5/a"), whole.pose(q, "link5"), rtol=0, atol=1e-12)
    np.testing.assert_allclose(robot.pose(q, "joint5/b"), robot.pose(q, "link6"), rtol=0, atol=0)


def test_a_file_keeps_the_loops_of_a_table(tmp_path: Path) -> None:
    rows = [torsor.MDHLink(k - 1, alpha=0.3, d=0.5, mass=1.0, active=k == 1) for k in range(7)]
    robot = torsor.from_mdh([*rows, torsor.MDHLink(6, d=0.1, theta=0.4, closes=-1)])
    robot.save(tmp_path / "seven.toml")
    again = torsor.load(tmp_path / "seven.toml")
    assert again == robot and again.active == ("joint2",)
    q = np.linspace(0, 1, 7)
    np.testing.assert_array_equal(again.closed.error(q), robot.closed.error(q))


def mdh(**settings: object) -> torsor.Robot:
    link = torsor.MDHLink(-1, mass=1.0)
    return torsor.from_mdh([link, torsor.MDHLink(0, d=0.4, mass=1.0), torsor.MDHLink(1, **settings)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: mdh(closes=2),
            "-1 for the base, or a row without a cut joint: 0, 1",
        ),
        (lambda: mdh(closes=7), "closes"),
        (lambda: mdh(closes=1.0), "closes"),
        (lambda: mdh(closes=True), "closes"),
        (lambda: mdh(closes=-1, joint="rod"), "rod"),
        (lambda: mdh(closes=-1, joint=2), "joint"),
        (lambda: mdh(closes=-1, mass=1.0), "a cut joint cannot have mass"),
        (lambda: mdh(closes=-1, com=(1, 0, 0)), "a cut joint cannot have com"),
        (lambda: mdh(closes=-1, viscous=1.0), "a cut joint cannot have viscous"),
        (lambda: mdh(closes=-1, spring=torsor.Spring(1.0)), "a cut joint cannot have spring"),
        (lambda: mdh(closes=-1, active=1), "an active joint cannot be cut"),
        (lambda: mdh(joint="fixed", active=1), "a fixed joint cannot be active"),
        (lambda: mdh(mass=1.0, active=2), "active"),
        (
            lambda: torsor.from_mdh([torsor.MDHLink(-1, closes=-1), torsor.MDHLink(0)]),
            "must not be a cut joint",
        ),
        (
            lambda: torsor.from_dh([torsor.DHLink(closes=-1), torsor.DHLink()]),
            "a cut joint is not in the last",
        ),
    ],
)
def test_mistakes_in_tables_are_named(make: Callable[[], object], message: str) -> None:
    with refused(message):
        make()
