"""The motion of an FMU agrees with ``torsor.simulate``, and its rates agree with the robot, for FMI 2 and 3."""

import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from ctypes import c_double
from pathlib import Path

import numpy as np
import pytest

import torsor
from fmus import FMIError, Unit, binary_path, coordinates
from robots import robot_file

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="a C compiler is not installed")

ARM = torsor.library.two_link()
Q0, V0, TAU = [0.4, -0.9], [0.3, 1.1], [1.5, -0.4]
START = coordinates("q", ARM.position_names, Q0) | coordinates("v", ARM.coordinate_names, V0)
FORCES = coordinates("tau", ARM.coordinate_names, TAU)
ROD = torsor.DHLink(a=1.0, mass=1.0, com=(-0.5, 0.1, 0), inertia=np.diag([0.02, 0.09, 0.1]))
AFLOAT = torsor.from_dh([ROD], base="floating").with_payload(
    "base", 5.0, com=(0.1, 0.0, 0.2), inertia=np.diag([0.3, 0.2, 0.4])
)


@pytest.fixture(scope="module", params=[2, 3])
def arm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fmi") / "arm.fmu"
    (found,) = torsor.export.fmi(ARM, path, version=request.param, parameters=["links.link2.mass", "links.link2.com.x"])
    return found


@pytest.fixture
def units() -> Iterator[list[Unit]]:
    opened: list[Unit] = []
    yield opened
    for each in opened:
        each.close()


@pytest.fixture(scope="module")
def afloat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (found,) = torsor.export.fmi(AFLOAT, tmp_path_factory.mktemp("fmi") / "afloat.fmu")
    return found


def sampled(unit: Unit, names: Iterable[str], length: float, count: int) -> np.ndarray:
    """Values at the start and after each of ``count`` equal steps of co-simulation."""
    rows = [unit.get(names)]
    for k in range(count):
        unit.step(k * length, length)
        rows.append(unit.get(names))
    unit.call("Terminate")
    return np.stack(rows)


def test_co_simulation_is_simulate(arm: Path, units: list[Unit]) -> None:
    units.append(unit := Unit(arm, START | FORCES))
    got = sampled(unit, [*START, *coordinates("a", ARM.coordinate_names, TAU)], 0.01, 30)
    expected = torsor.simulate(ARM, Q0, V0, 0.3, controller=TAU)
    motion = np.concatenate([expected.q, expected.v], axis=1)[::10]
    np.testing.assert_allclose(got[:, :4], motion, rtol=0, atol=1e-12)
    a = ARM.forward_dynamics(expected.q[::10], expected.v[::10], TAU)
    np.testing.assert_allclose(got[:, 4:], a, rtol=0, atol=1e-10)


def test_inputs_are_held_during_steps_of_any_length(arm: Path, units: list[Unit]) -> None:
    units.append(unit := Unit(arm, START | {"step": 2e-3}))
    q, v, t = np.array(Q0), np.array(V0), 0.0
    for k, length in enumerate((0.01, 0.0035, 0.02)):
        tau = [np.sin(k + 1.0), 0.2 * k]
        unit.set(coordinates("tau", ARM.coordinate_names, tau))
        unit.step(t, length)
        part = torsor.simulate(ARM, q, v, length, controller=tau, step=2e-3)
        q, v, t = part.q[-1], part.v[-1], t + length
        np.testing.assert_allclose(unit.get(START), [*q, *v], rtol=0, atol=1e-12)


def test_model_exchange_is_simulate(arm: Path, units: list[Unit]) -> None:
    units.append(unit := Unit(arm, START | FORCES, cosimulation=False))
    expected = torsor.simulate(ARM, Q0, V0, 0.2, controller=TAU)
    got = unit.exchange(4, 0.2, 200)  # the steps of simulate
    np.testing.assert_allclose(got, [*expected.q[-1], *expected.v[-1]], rtol=0, atol=1e-11)


def test_parameters_are_those_of_a_changed_robot(arm: Path, units: list[Unit]) -> None:
    changed = ARM.parametric(["links.link2.mass", "links.link2.com.x"]).at([2.5, 0.31])
    units.append(unit := Unit(arm, START | FORCES))
    unit.set({"links.link2.mass": 2.5, "links.link2.com.x": 0.31})
    unit.step(0.0, 0.05)
    motion = torsor.simulate(changed, Q0, V0, 0.05, controller=TAU)
    np.testing.assert_allclose(unit.get(START), [*motion.q[-1], *motion.v[-1]], rtol=0, atol=1e-12)


def test_instances_are_independent_and_reset_to_the_start(arm: Path, units: list[Unit]) -> None:
    units.append(first := Unit(arm, START | FORCES))
    units.append(second := Unit(first.folder, START))  # of the same library
    first.step(0.0, 0.02)
    np.testing.assert_array_equal(second.get(START), [*Q0, *V0])
    second.step(0.0, 0.02)
    assert not np.allclose(first.get(START), second.get(START))
    first.call("Reset")
    np.testing.assert_array_equal(first.get([*START, *FORCES]), np.zeros(6))  # the start values of the file


def test_a_saved_state_brings_the_motion_back(arm: Path, units: list[Unit]) -> None:
    units.append(unit := Unit(arm, START | FORCES))
    unit.step(0.0, 0.01)
    saved = unit.save()
    unit.step(0.01, 0.02)
    end = unit.get(START)
    copy, other = unit.deserialise(unit.serialise(saved)), bytearray(unit.serialise(saved))
    other[1] ^= 1  # the token of another FMU
    with pytest.raises(FMIError, match="erializeFMU"):
        unit.deserialise(bytes(other))
    assert "these bytes are not a state of this FMU" in unit.said[-1]
    for state in (saved, copy):
        unit.restore(state)
        unit.step(0.01, 0.02)
        np.testing.assert_array_equal(unit.get(START), end)
        unit.free_state(state)


def test_errors_are_logged(arm: Path, units: list[Unit]) -> None:
    units.append(unit := Unit(arm, START))
    wrong = [
        (lambda: unit.set({"q.joint1": 1.0}), "q.joint1: it may not be set in this mode"),
        (lambda: unit.set({"a.joint1": 1.0}), "a.joint1: it may not be set in this mode"),
        (lambda: unit.set({"links.link2.mass": -1.0}), "links.link2.mass: the value is not finite, or below"),
        (lambda: unit.set({"tau.joint1": np.nan}), "tau.joint1: the value is not finite"),
        (lambda: unit.step(0.7, 0.1), "the communication point is not the end of the last step"),
        (lambda: unit.step(0.0, 0.0), "the communication step is not a positive number"),
        (
            lambda: unit.derivative(["a.joint1"], ["step"], [1.0]),
            "step: derivatives with respect to it are not available",
        ),
        (lambda: unit.enter_initialisation(), "EnterInitializationMode is not allowed in this mode"),
    ]
    for call, words in wrong:
        with pytest.raises(FMIError, match="fmi"):
            call()
        assert words in unit.said[-1], unit.said
    unit.set({"tau.joint1": 1e60})
    with pytest.raises(FMIError, match="DoStep"):
        unit.step(0.0, 0.01)
    assert "the motion diverges" in unit.said[-1]


def test_no_step_goes_past_the_stop_time(arm: Path, units: list[Unit]) -> None:
    units.append(unit := Unit(arm, START, stop=0.05))
    unit.step(0.0, 0.05)
    with pytest.raises(FMIError, match="DoStep"):
        unit.step(0.05, 1e-3)
    assert "past the stop time" in unit.said[-1]
    with pytest.raises(FMIError, match=r"SetupExperiment|EnterInitializationMode"):
        Unit(arm, stop=-1.0)


def test_a_wrong_token_makes_no_instance(arm: Path) -> None:
    with pytest.raises(FMIError, match="nstantiate"):
        Unit(arm, token="{0}")


def test_a_floating_base_keeps_its_quaternion(afloat: Path, units: list[Unit]) -> None:
    q = np.array([0.1, -0.2, 0.3, 0.1, 0.7, -0.2, 0.4, 0.5])  # the quaternion has not length 1
    v, tau = np.array([0.4, -2.0, 1.0, 0.3, 0.2, -0.5, 3.0]), np.array([0, 0, 0, 0, 0, 0, 1.5])
    start = coordinates("q", AFLOAT.position_names, q) | coordinates("v", AFLOAT.coordinate_names, v)
    units.append(unit := Unit(afloat, start | coordinates("tau", AFLOAT.coordinate_names, tau)))
    motion = torsor.simulate(AFLOAT, q, v, 0.5, controller=tau)
    for k in range(5):
        unit.step(0.1 * k, 0.1)
    found = unit.get(start)
    np.testing.assert_allclose(found, [*motion.q[-1], *motion.v[-1]], rtol=0, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(found[3:7]), 1.0, rtol=0, atol=1e-15)


def test_rates_of_a_quaternion_are_those_of_integrate(afloat: Path, units: list[Unit]) -> None:
    rng = np.random.default_rng(0)
    q, v = np.concatenate([rng.normal(size=8)]), rng.normal(size=7)
    q[3:7] /= np.linalg.norm(q[3:7])
    units.append(unit := Unit(afloat, cosimulation=False))
    unit.enter_continuous_time()
    with pytest.raises(FMIError, match="SetTime"):
        unit.call("SetTime", c_double(np.nan))
    h = 1e-5
    slope = (AFLOAT.integrate(q, h * v) - AFLOAT.integrate(q, -h * v)) / (2 * h)
    rates = unit.rates([*q, *v])
    np.testing.assert_allclose(rates[:8], slope, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rates[8:], AFLOAT.forward_dynamics(q, v, np.zeros(7)), rtol=1e-10, atol=1e-10)
    longer = q.copy()
    longer[3:7] *= 1.3  # an integrator does not keep the length; the motion is the same
    scaled = unit.rates([*longer, *v])
    np.testing.assert_allclose(scaled[[0, 1, 2, 7, *range(8, 15)]], rates[[0, 1, 2, 7, *range(8, 15)]], atol=1e-10)
    np.testing.assert_allclose(scaled[3:7], 1.3 * rates[3:7], rtol=0, atol=1e-12)


def test_a_quaternion_of_length_zero_is_an_error(afloat: Path) -> None:
    with pytest.raises(FMIError, match="ExitInitializationMode"):
        Unit(afloat, {"q.root.qw": 0.0})


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_a_second_of_a_real_arm_is_simulate(version: int, tmp_path: Path, units: list[Unit]) -> None:
    robot = torsor.load(robot_file("ur5_robot.urdf"))
    q0, tau = [0.1, -1.0, 1.0, 0.2, 0.3, 0.4], [5.0, -20.0, 3.0, 1.0, 0.2, 0.1]
    (path,) = torsor.export.fmi(robot, tmp_path / "ur5.fmu", version=version, q0=q0)
    units.append(unit := Unit(path, coordinates("tau", robot.coordinate_names, tau)))
    got = sampled(unit, coordinates("q", robot.position_names, q0), 0.01, 100)
    expected = torsor.simulate(robot, q0, duration=1.0, controller=tau)
    np.testing.assert_allclose(got, expected.q[::10], rtol=0, atol=1e-9)


@pytest.mark.parametrize("version", [2, 3])
def test_importers_compile_the_sources(version: int, tmp_path: Path, units: list[Unit]) -> None:
    (path,) = torsor.export.fmi(ARM, tmp_path / "arm.fmu", version=version, binary=False)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder := tmp_path / "extracted")
    library = folder / binary_path("two_link", version)
    library.parent.mkdir(parents=True)
    listing = folder / ("modelDescription.xml" if version == 2 else "sources/buildDescription.xml")
    names = dict.fromkeys(re.findall(r'File name="(.*?)"', listing.read_text()))
    sources = [str(folder / "sources" / name) for name in names]
    subprocess.run(["cc", "-shared", "-fPIC", *sources, "-o", str(library), "-lm"], check=True, timeout=300)
    units.append(unit := Unit(folder, START | FORCES))
    expected = torsor.simulate(ARM, Q0, V0, 0.1, controller=TAU)
    got = sampled(unit, ["q.joint1", "q.joint2"], 0.01, 10)
    np.testing.assert_allclose(got, expected.q[::10], rtol=0, atol=1e-12)


KINDS = {
    "elastic": torsor.library.elastic_arm(),
    "flexible": torsor.library.flexible_arm(),
    "flying": torsor.library.free_flying_arm(),
    "dry friction": torsor.library.two_link().with_friction("joint2", coulomb=0.05),
    "sliding with friction and a spring": torsor.library.stanford()
    .with_friction("joint2", coulomb=1.0, viscous=0.5, smooth=0.1)
    .with_spring("joint3", 100.0, damping=2.0, rest=0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_joints_and_drives_move_as_in_simulate(kind: str, tmp_path: Path, units: list[Unit]) -> None:
    robot, rng = KINDS[kind], np.random.default_rng(0)
    q0 = robot.integrate(robot.neutral(), 0.1 * rng.normal(size=robot.nv))
    v0, tau = 0.1 * rng.normal(size=(2, robot.nv))
    (path,) = torsor.export.fmi(robot, tmp_path / "robot.fmu", q0=q0, v0=v0, step=1e-4)
    units.append(unit := Unit(path, coordinates("tau", robot.coordinate_names, tau)))
    unit.step(0.0, 0.02)
    unit.step(0.02, 0.03)
    motion = torsor.simulate(robot, q0, v0, 0.05, controller=tau, step=1e-4)
    q = unit.get(coordinates("q", robot.position_names, q0))
    np.testing.assert_allclose(q, motion.q[-1], rtol=0, atol=1e-11)
    v = unit.get(coordinates("v", robot.coordinate_names, v0))
    np.testing.assert_allclose(v, motion.v[-1], rtol=0, atol=1e-9)
