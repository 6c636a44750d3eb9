"""FMUs of robots with closed loops move as ``torsor.simulate`` does, with the reactions of the robot."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import torsor
from fmus import FMIError, Unit, coordinates
from refusals import refused
from torsor import SimulationError

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="a C compiler is not installed")

BELT = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
SIX = ("mx", "my", "mz", "fx", "fy", "fz")


@pytest.fixture
def units() -> Iterator[list[Unit]]:
    opened: list[Unit] = []
    yield opened
    for each in opened:
        each.close()


def states(robot: torsor.Robot) -> list[str]:
    """Return the names of the states."""
    q, v = np.zeros(robot.nq), np.zeros(robot.nv)
    return [*coordinates("q", robot.position_names, q), *coordinates("v", robot.coordinate_names, v)]


def forces(robot: torsor.Robot, tau: np.ndarray) -> dict[str, float]:
    return coordinates("tau", robot.coordinate_names, tau)


def test_a_belt_moves_as_in_simulate_and_an_open_start_is_refused(tmp_path: Path, units: list[Unit]) -> None:
    (path,) = torsor.export.fmi(BELT, tmp_path / "belt.fmu", q0=[0.4, 0.2], v0=[1.0, 0.5])
    tau, names = np.array([1.5, -0.4]), states(BELT)
    units.append(unit := Unit(path, forces(BELT, tau)))
    unit.step(0.0, 0.07)
    unit.step(0.07, 0.13)
    motion = torsor.simulate(BELT, [0.4, 0.2], [1.0, 0.5], 0.2, controller=tau)
    np.testing.assert_allclose(unit.get(names), [*motion.q[-1], *motion.v[-1]], rtol=0, atol=1e-12)
    for wrong in ({"q.joint2": 0.3}, {"v.joint1": 2.0}):
        with pytest.raises(FMIError, match="ExitInitializationMode"):
            Unit(path, wrong)
    units.append(moved := Unit(path, {"q.joint1": 0.6, "q.joint2": 0.3, "v.joint1": -1.0, "v.joint2": -0.5}))
    np.testing.assert_allclose(moved.get(names), [0.6, 0.3, -1.0, -0.5], rtol=0, atol=1e-15)


def test_start_values_that_open_the_loops_are_refused(tmp_path: Path) -> None:
    for options, words in (
        ({"q0": [0.4, 0.1]}, "q0 does not close the loops"),
        ({"q0": [0.4, 0.2], "v0": [1.0, 1.0]}, "v0 opens the loops"),
    ):
        with refused(words):
            torsor.export.fmi(BELT, tmp_path / "belt.fmu", binary=False, **options)


@pytest.fixture(scope="module", params=[2, 3])
def linkage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[torsor.Robot, Path]:
    robot = torsor.library.four_bar()
    names = ["joint_wrenches", "kinetic_energy", "pose:coupler"]
    path = tmp_path_factory.mktemp("fmi") / "linkage.fmu"
    mass = ["links.coupler.mass"]
    torsor.export.fmi(robot, path, names, version=request.param, parameters=mass, external=["rocker"])
    return robot, path


@pytest.mark.slow
def test_a_linkage_turns_as_in_simulate_with_the_reactions_of_the_robot(
    linkage: tuple[torsor.Robot, Path], units: list[Unit]
) -> None:
    robot, path = linkage
    q0, tau, names = robot.closed.assemble([0.7]), np.array([8.0, 0.0, 0.0]), states(robot)
    v0 = robot.closed.velocities(q0, [4.0])
    start = dict(zip(names, [*q0, *v0], strict=True)) | forces(robot, tau)
    load = np.zeros((3, 6))
    load[robot.link_names.index("rocker")] = [0.0, 0.0, 0.3, 1.0, -2.0, 0.0]
    start["step"] = 1e-4
    start |= {f"external.rocker.{c}": x for c, x in zip(SIX, load[robot.link_names.index("rocker")], strict=True)}
    units.append(unit := Unit(path, start))
    for k in range(10):  # more than a turn of the crank
        unit.step(0.1 * k, 0.1)
    motion = torsor.simulate(robot, q0, v0, 1.0, controller=tau, external=load, step=1e-4)
    q, v = np.split(unit.get(names), [robot.nq])
    assert motion.q[-1, 0] - q0[0] > 2 * np.pi
    np.testing.assert_allclose([*q, *v], [*motion.q[-1], *motion.v[-1]], rtol=0, atol=1e-9)
    a = unit.get(coordinates("a", robot.coordinate_names, tau))
    np.testing.assert_allclose(
        a, robot.closed.forward_dynamics(q, v, tau, external=load, coordinates="all"), rtol=1e-10, atol=1e-10
    )
    found = unit.get([f"joint_wrenches.{link}.{c}" for link in robot.link_names for c in SIX]).reshape(-1, 6)
    wanted = robot.closed.joint_wrenches(q, v[:1], a[:1], external=load)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(unit.get(["kinetic_energy"])[0], robot.kinetic_energy(q, v), rtol=1e-12)
    units.append(exchanged := Unit(path, start, cosimulation=False))
    end = exchanged.exchange(len(names), 1.0, 4000)
    np.testing.assert_allclose(end, [*q, *v], rtol=0, atol=1e-6)
    assert np.abs(robot.closed.error(end[: robot.nq])).max() < 1e-8


@pytest.mark.slow
def test_parameters_and_derivatives_of_a_linkage_are_those_of_the_robot(
    linkage: tuple[torsor.Robot, Path], units: list[Unit]
) -> None:
    robot, path = linkage
    q0, tau, names = robot.closed.assemble([0.7]), np.array([2.0, 0.0, 0.0]), states(robot)
    v0 = robot.closed.velocities(q0, [4.0])
    mass, start = {"links.coupler.mass": 3.1}, dict(zip(names, [*q0, *v0], strict=True)) | forces(robot, tau)
    heavy = robot.parametric(list(mass)).at([3.1])
    units.append(unit := Unit(path, start | mass))
    accelerations = list(coordinates("a", robot.coordinate_names, tau))
    a = unit.get(accelerations)
    np.testing.assert_allclose(a, heavy.closed.forward_dynamics(q0, v0, tau, coordinates="all"), rtol=1e-11, atol=1e-11)
    by_tau = np.stack(
        [heavy.closed.forward_dynamics(q0, v0, tau + e, coordinates="all") - a for e in np.eye(3)], axis=1
    )  # exact: linear
    np.testing.assert_allclose(unit.jacobian(accelerations, list(forces(robot, tau))), by_tau, rtol=1e-9, atol=1e-11)
    h = 1e-4  # along the motion, which stays on closed loops, a changes at the rate of the derivatives
    later, earlier = (torsor.simulate(heavy, q0, v, h, controller=tau) for v in (v0, -v0))
    ends = heavy.closed.forward_dynamics(later.q[-1], later.v[-1], tau, coordinates="all")
    before = heavy.closed.forward_dynamics(
        earlier.q[-1], -earlier.v[-1], tau, coordinates="all"
    )  # without friction, back in time
    found = unit.derivative(accelerations, names, [*v0, *a])
    np.testing.assert_allclose(found, (ends - before) / (2 * h), rtol=1e-5, atol=1e-5)
    by_mass = [
        robot.parametric(list(mass)).at([3.1 + d]).closed.forward_dynamics(q0, v0, tau, coordinates="all")
        for d in (h, -h)
    ]
    found = unit.derivative(accelerations, list(mass), [1.0])
    np.testing.assert_allclose(found, (by_mass[0] - by_mass[1]) / (2 * h), rtol=1e-6, atol=1e-7)
    unit.step(0.0, 0.1)
    motion = torsor.simulate(heavy, q0, v0, 0.1, controller=tau)
    np.testing.assert_allclose(unit.get(names), [*motion.q[-1], *motion.v[-1]], rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_dead_point_ends_the_motion_as_in_simulate(tmp_path: Path, units: list[Unit]) -> None:
    robot = torsor.library.four_bar(ground=1.0, crank=0.5, coupler=1.0, rocker=0.5)  # a parallelogram
    q0 = robot.closed.assemble([1.5], guess=[1.5, -1.5, 1.5])
    v0 = robot.closed.velocities(q0, [3.0])
    with refused(what="lose their rank", error=SimulationError):
        torsor.simulate(robot, q0, v0, 2.0)
    (path,) = torsor.export.fmi(robot, tmp_path / "flat.fmu", q0=q0, v0=v0)
    units.append(unit := Unit(path))
    with pytest.raises(FMIError, match="DoStep"):
        unit.step(0.0, 2.0)
    assert "dependent" in unit.said[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five_bar", "differential_drive"])
def test_other_loops_and_wheels_move_as_in_simulate(name: str, tmp_path: Path, units: list[Unit]) -> None:
    robot = getattr(torsor.library, name)()
    q0 = robot.closed.positions(robot.neutral())
    v0 = robot.closed.velocities(q0, np.linspace(0.5, -0.2, robot.nv), coordinates="all")
    tau = np.linspace(-0.3, 0.4, robot.nv)
    (path,) = torsor.export.fmi(robot, tmp_path / "robot.fmu", q0=q0, v0=v0)
    units.append(unit := Unit(path, forces(robot, tau)))
    unit.step(0.0, 0.2)
    motion = torsor.simulate(robot, q0, v0, 0.2, controller=tau)
    np.testing.assert_allclose(unit.get(states(robot)), [*motion.q[-1], *motion.v[-1]], rtol=0, atol=1e-9)
