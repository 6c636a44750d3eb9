"""Modes from files, files of robots with flexible links, and rejected input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from mechanism.flexible_links.tracing import GROUND, HUB, Traced, frequencies
from refusals import refused, warned
from torsor.dynamics.requests import fingerprint
from torsor.mechanism import flexible_links
from torsor.mechanism.flexible import Modes

BEAM = {"length": 1.0, "mass": 1.0, "bending": 1.0}
TOML = """
positions = [[0.5, 0, 0], [1.0, 0, 0]]
masses = [1.0, 0.5]

[[mode]]
frequency = 20.0
damping = 0.01
shape = [[0, 0.3, 0], [0, 1, 0]]
rotation = [[0, 0, 1], [0, 0, 1.4]]

[[mode]]
frequency = 90.0
shape = [[0, -0.8, 0], [0, 0.48, 0]]
"""


def _file(folder: Path, text: str = TOML, name: str = "arm.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_toml_file_gives_modes(tmp_path: Path) -> None:
    modes = flexible_links.read_modes(_file(tmp_path))
    assert modes.frequencies == pytest.approx([20.0, 90.0], rel=1e-9)
    assert modes.damping_matrix[0, 0] == pytest.approx(2 * 0.01 * 20.0 * 0.59)
    assert flexible_links.read_modes(_file(tmp_path), modes=1).count == 1
    robot = flexible_links.with_beam(GROUND, "ground", modes)
    assert frequencies(robot, np.zeros(2)) == pytest.approx([20.0, 90.0], rel=1e-9)


def test_modes_of_finite_elements_stiffen_by_rotation_too() -> None:
    """A beam cut into 60 nodes: the shortening between the nodes stiffens as that of the continuous beam."""
    exact, N = flexible_links.beam(**BEAM, modes=(0, 3)), 60
    s = (np.arange(N + 1) + 0.5) / N
    s[-1] = 1.0
    masses = np.append(np.full(N, 1 / N), 0.0)
    shapes, rotations = np.zeros((2, N + 1, 3, 3))
    for k in range(3):
        fit = np.polynomial.Polynomial.fit(exact.positions[:, 0], exact.shapes[:, 2, k], 13)
        shapes[:, 2, k], rotations[:, 1, k] = fit(s), -fit.deriv()(s)
    nodes = np.column_stack([s, 0 * s, 0 * s])
    modes = flexible_links.node_modes(nodes, masses, shapes, rotations, stiffness=exact.stiffness_matrix)
    found = []
    for each in (exact, modes):
        traced = Traced(flexible_links.with_beam(HUB, "hub", each))
        q, v = np.zeros(4), np.array([5.0, 0.0, 0.0, 0.0])
        q[1] = 1e-3
        found.append(traced.value("inverse_dynamics", q, v, np.zeros(4))[1])
    assert found[1] == pytest.approx(found[0], rel=1e-3)


def test_an_npz_file_keeps_all_digits_and_arrays_of_others_are_read(tmp_path: Path) -> None:
    modes = flexible_links.beam(**BEAM, modes=(2, 1, 1), torsion=1.0, axial_inertia=0.1, damping=0.01)
    flexible_links.write_modes(modes, tmp_path / "arm.npz")
    assert flexible_links.read_modes(tmp_path / "arm.npz") == modes
    assert flexible_links.read_modes(tmp_path / "arm.npz", modes=2).count == 2
    shapes = np.zeros((2, 3, 1))
    shapes[:, 1, 0] = 0.3, 1.0
    np.savez(tmp_path / "fe.npz", positions=[[0.5, 0, 0], [1, 0, 0]], masses=[1, 0.5], shapes=shapes, frequencies=[20])
    assert flexible_links.read_modes(tmp_path / "fe.npz").frequencies == pytest.approx([20.0])


@pytest.mark.parametrize("kind", ["beam", "rod"])
def test_a_robot_with_flexible_links_is_saved_as_toml(tmp_path: Path, kind: str) -> None:
    if kind == "beam":
        robot = flexible_links.with_beam(GROUND, "ground", flexible_links.beam(**BEAM, modes=(1, 1)))
    else:
        robot = flexible_links.with_rod(HUB, "hub", 1.0, 0.5, 2.0, modes=(2, 0), sections=2)
    robot.save(tmp_path / "robot.toml")
    assert torsor.load(tmp_path / "robot.toml") == robot
    for name in ("robot.urdf", "robot.xml"):
        with refused(fix="save as .toml"):
            robot.save(tmp_path / name)


def _changed(old: str, new: str) -> str:
    assert old in TOML
    return TOML.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("positions = [", "not valid TOML"),
        ("", "positions, masses and at least one"),
        (TOML + "colour = 1", "unknown key 'colour'"),
        (_changed("frequency = 20.0", "frequency = -20.0"), "frequencies"),
        (_changed("frequency = 20.0", ""), "it has damping, shape, rotation"),
        (_changed("frequency = 20.0", "stiffness = 2.0"), "some modes have a frequency, others a stiffness"),
        (_changed("[[0, 0.3, 0], [0, 1, 0]]", "[[0, 0.3, 0]]"), "shape"),
        (_changed("[[0, 0.3, 0], [0, 1, 0]]", "[[0, 'a', 0], [0, 1, 0]]"), "shapes"),
        (_changed("masses = [1.0, 0.5]", "masses = [-1.0, 0.5]"), "masses"),
        (_changed("[[0, -0.8, 0], [0, 0.48, 0]]", "[[0, 0.6, 0], [0, 2, 0]]"), "2 modes are not independent"),
    ],
)
def test_files_that_hold_no_modes_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with refused(message):
        flexible_links.read_modes(_file(tmp_path, text))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with refused(where="arm.toml", allowed="1 to 2"):
        flexible_links.read_modes(_file(tmp_path), modes=3)
    with refused(value=".csv", allowed=".toml, .npz"):
        flexible_links.read_modes(tmp_path / "arm.csv")
    with refused(where="arm.npz", what="not modes"):
        flexible_links.read_modes(_file(tmp_path, "x", "arm.npz"))
    with pytest.raises(FileNotFoundError):
        flexible_links.read_modes(tmp_path / "missing.npz")
    np.savez(tmp_path / "other.npz", x=[1.0])
    with refused(what="there is no 'positions'"):
        flexible_links.read_modes(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bending": 0.0}, "bending"),
        ({"bending": (1.0, -1.0)}, "bending"),
        ({"mass": 0.0}, "mass"),
        ({"modes": 0}, "there is no mode"),
        ({"modes": (1, 2, 3, 4)}, "modes"),
        ({"modes": 99}, "modes"),
        ({"modes": (0, 0, 1)}, "torsion modes need torsion"),
        ({"modes": (0, 0, 1), "torsion": 1.0}, "torsion modes need axial_inertia"),
        ({"coordinates": "nodes"}, "coordinates"),
        ({"damping": -0.1}, "damping"),
        ({"carries": 1.0}, "carries"),
        ({"torsion": -1.0}, "torsion"),
        ({"length": 1e200}, "too large or too small to compute its modes"),
        ({"mass": 1e-320}, "too large or too small to compute its modes"),
        ({"modes": "ab"}, "modes"),
        ({"axial_inertia": 1.0}, "axial_inertia"),
    ],
)
def test_numbers_that_are_no_beam_are_refused(changes: dict[str, Any], message: str) -> None:
    with refused(message):
        flexible_links.beam(**(BEAM | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bending": -1.0}, "bending"),
        ({"modes": (0, 0)}, "there is no mode"),
        ({"modes": (4, 0), "sections": 3}, "4 modes at 3 sections"),
        ({"modes": (1, 0, 1)}, "modes"),
        ({"name": "hub"}, "the robot already has 'hub'"),
        ({"sections": 0}, "sections"),
    ],
)
def test_numbers_that_are_no_rod_are_refused(changes: dict[str, Any], message: str) -> None:
    with refused(message):
        flexible_links.with_rod(HUB, "hub", **({**BEAM, "modes": (1, 0)} | changes))


def test_what_rigid_links_alone_have_is_refused() -> None:
    modes = flexible_links.beam(**BEAM, modes=(1, 0))
    robot = flexible_links.with_beam(HUB, "hub", modes)
    for call, message in (
        (lambda: Traced(robot).function("regressor"), "hub"),
        (lambda: robot.fix("beam", [0.1]), "a flexible link cannot be fixed at"),
        (lambda: robot.with_spring("beam", 1.0), "cannot have a spring, motor, ratio or offset"),
        (lambda: robot.parametric(["joints.beam.origin"]), "no field 'origin'"),
        (lambda: flexible_links.with_beam(robot, "hub", modes), "the robot already has 'beam"),
        (lambda: flexible_links.with_beam(HUB, "hub", 3), "modes"),  # type: ignore[arg-type]
        (lambda: flexible_links.with_flexible_link(HUB, "ground", modes), "ground"),
        (lambda: flexible_links.with_flexible_link(HUB, "hub", modes, ["arm"]), "the tip carries 'arm'"),
        (lambda: torsor.Joint("x", "flexible", "a", "b"), "a flexible joint has flexible = None"),
        (
            lambda: Modes(np.eye(3), np.ones(3), np.ones((3, 3, 1)), np.ones((3, 3, 1)), [0.0]),
            "stiffness",
        ),
        (
            lambda: Modes(np.eye(3), np.ones(3), np.eye(9)[:, :2].reshape(3, 3, 2), np.zeros((3, 3, 2)), -np.eye(2)),
            "has the smallest eigenvalue -1",
        ),
    ):
        with refused(message):
            call()


def test_a_link_becomes_flexible_and_rigid_again() -> None:
    rigid = torsor.library.planar_chain(2)
    modes = flexible_links.beam(1.0, 1.0, 100.0, modes=(2, 0))
    bent = flexible_links.with_flexible_link(rigid, "link1", modes)
    assert bent.mass == pytest.approx(rigid.mass)
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    held = bent.fix("link1/modes", [0.0, 0.0])
    expected = Traced(rigid).value("inverse_dynamics", q, v, a)
    assert Traced(held).value("inverse_dynamics", q, v, a) == pytest.approx(expected, abs=1e-12)


def test_a_number_of_a_robot_with_a_beam_is_an_input() -> None:
    robot = flexible_links.with_beam(HUB, "hub", flexible_links.beam(**BEAM, modes=(1, 1))).with_payload(
        "beam/tip", 0.5
    )
    heavier = robot.with_payload("beam/tip", 0.2)
    q, v, a = np.random.default_rng(0).normal(size=(3, 3)) * 0.1
    found = robot.parametric(["links.beam/tip.mass"]).inverse_dynamics(q, v, a, [0.7])
    assert found == pytest.approx(Traced(heavier).value("inverse_dynamics", q, v, a), abs=1e-12)


def test_a_flexible_arm_is_simulated_and_keeps_its_energy() -> None:
    arm = torsor.library.flexible_arm((1, 0), payload=0.2)
    q, v = np.array([0.3, 0.02, -0.5, 0.03]), np.array([1.0, 0.0, -1.0, 0.0])
    run = torsor.simulate(arm, q, v, duration=0.05, step=2e-4)
    energy = arm.kinetic_energy(run.q, run.v) + arm.potential_energy(run.q)
    assert energy == pytest.approx(np.full(len(energy), energy[0]), rel=1e-7)


def test_robots_with_other_modes_have_other_functions() -> None:
    keys = {
        fingerprint(robot)
        for robot in (
            flexible_links.with_beam(HUB, "hub", flexible_links.beam(**BEAM, modes=(1, 0))),
            flexible_links.with_beam(HUB, "hub", flexible_links.beam(**(BEAM | {"bending": 2.0}), modes=(1, 0))),
            flexible_links.with_rod(HUB, "hub", **BEAM, modes=(1, 0), sections=1),
            flexible_links.with_rod(HUB, "hub", **BEAM, modes=(0, 1), sections=1),
        )
    }
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"turns": None}, "there is no 'turns'"),
        ({"damping": None}, "there is no 'damping'"),
        ({"second": np.zeros(3)}, "second"),
        ({"shapes": np.array(3.0)}, "masses"),
        ({"turns": np.array(True)}, "true or false for each mode"),
        ({"turns": np.array(["a", "b"])}, "true or false for each mode"),
        ({"extra": np.zeros(3)}, "unknown key 'extra'"),
    ],
)
def test_damaged_npz_files_of_modes_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    flexible_links.write_modes(flexible_links.beam(**BEAM, modes=(2, 0)), tmp_path / "arm.npz")
    with np.load(tmp_path / "arm.npz") as found:
        arrays = {name: value for name, value in ({**found} | changes).items() if value is not None}
    np.savez(tmp_path / "arm.npz", **arrays)
    with refused(message):
        flexible_links.read_modes(tmp_path / "arm.npz")


def test_nodes_that_no_link_has_are_refused() -> None:
    shapes, second = np.zeros((3, 3, 2)), np.zeros((3, 3, 2, 2))
    positions = np.array([[1.0, 0, 0], [2.0, 0, 0], [3.0, 0, 0]])
    shapes[:, 1, 0], shapes[:, 1, 1] = [0.1, 0.4, 1.0], [-0.5, 0.3, 1.0]
    second[0, 0, 0, 1] = 1.0
    nodes: dict[str, Any] = {"positions": positions, "masses": np.ones(3), "shapes": shapes}
    skewed = np.eye(3) + np.eye(3, k=1)
    for inertia in (-np.eye(3), skewed):
        with refused(allowed="a symmetric matrix"):
            flexible_links.node_modes(**nodes, stiffness=[1.0, 2.0], inertias=[inertia] * 3)
    with refused(argument="second", allowed="equal numbers for the mode pairs"):
        Modes(**nodes, rotations=np.zeros_like(shapes), stiffness=[1.0, 2.0], second=second)
    with warned(what="the shapes are not orthogonal with respect to the node masses"):
        flexible_links.node_modes(**nodes, frequencies=[2.0, 9.0])


def test_arguments_of_another_kind_are_refused() -> None:
    modes, chain = flexible_links.beam(**BEAM, modes=np.array([1, 0])), torsor.library.planar_chain(2)
    bent = flexible_links.with_flexible_link(chain, "link1", modes)
    for call, message in (
        (lambda: flexible_links.with_beam("hub", "hub", modes), "robot"),  # type: ignore[type-var]
        (lambda: flexible_links.with_rod("hub", "hub", 1.0, 1.0, 1.0), "robot"),  # type: ignore[type-var]
        (lambda: flexible_links.write_modes(3, "arm.npz"), "modes"),  # type: ignore[arg-type]
        (lambda: flexible_links.with_flexible_link(chain, "link1", modes, "joint2"), "carried"),
        (lambda: flexible_links.with_flexible_link(bent, "link1", modes), "link"),
    ):
        with refused(message):
            call()
