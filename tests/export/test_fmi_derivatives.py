"""Directional and adjoint derivatives, outputs and inverse dynamics of FMUs agree with the robot."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import torsor
from fmus import Unit, coordinates

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="a C compiler is not installed")

ARM = torsor.library.two_link()
MASS = "links.link2.mass"
q, v, tau = [0.4, -0.9], [0.3, 1.1], [1.5, -0.4]
WRENCH = [0.0, 0.0, 0.3, 1.0, -2.0, 0.5]
EXTERNAL = np.array([[0.0] * 6, WRENCH])
SIX = ("mx", "my", "mz", "fx", "fy", "fz")
STATE = coordinates("q", ARM.position_names, q) | coordinates("v", ARM.coordinate_names, v)
FORCES = coordinates("tau", ARM.coordinate_names, tau)
LOAD = {f"external.link2.{name}": value for name, value in zip(SIX, WRENCH, strict=True)}
RATES = [*(f"der({name})" for name in list(STATE)[:2]), *coordinates("a", ARM.coordinate_names, v)]
REACTION = [f"joint_wrenches.link1.{name}" for name in SIX]


@pytest.fixture(scope="module", params=[2, 3])
def unit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unit]:
    names = ["joint_wrenches:link1", "pose:link2", "velocity:link2", "kinetic_energy"]
    path = tmp_path_factory.mktemp("fmi") / "arm.fmu"
    torsor.export.fmi(ARM, path, names, version=request.param, parameters=[MASS], external=["link2"])
    found = Unit(path, STATE | FORCES | LOAD)
    yield found
    found.close()


def test_outputs_are_those_of_the_robot(unit: Unit) -> None:
    a = ARM.forward_dynamics(q, v, tau, external=EXTERNAL)
    np.testing.assert_allclose(unit.get(RATES), [*v, *a], rtol=0, atol=1e-12)
    wrench = ARM.joint_wrenches(q, v, a, external=EXTERNAL)[0]
    np.testing.assert_allclose(unit.get(REACTION), wrench, rtol=0, atol=1e-12)
    T = ARM.pose(q, "link2")
    rotation = [f"pose.link2.R[{i},{j}]" for i in (1, 2, 3) for j in (1, 2, 3)]
    np.testing.assert_allclose(unit.get(rotation), T[:3, :3].ravel(), rtol=0, atol=1e-14)
    np.testing.assert_allclose(unit.get([f"pose.link2.{axis}" for axis in "xyz"]), T[:3, 3], rtol=0, atol=1e-14)
    twist = [f"velocity.link2.{letter}{axis}" for letter in "wv" for axis in "xyz"]
    np.testing.assert_allclose(unit.get(twist), ARM.velocity(q, v, "link2"), rtol=0, atol=1e-14)
    np.testing.assert_allclose(unit.get(["kinetic_energy"])[0], ARM.kinetic_energy(q, v), rtol=1e-14)


def test_directional_derivatives_are_those_of_forward_dynamics(unit: Unit) -> None:
    dq, dv, dtau = ARM.derivatives.forward_dynamics(q, v, tau, external=EXTERNAL)
    found = unit.jacobian(RATES[2:], [*STATE, *FORCES])
    np.testing.assert_allclose(found, np.hstack([dq, dv, dtau]), rtol=1e-12, atol=1e-12)
    model = ARM.parametric([MASS])
    by_mass = model.by_parameters("forward_dynamics", q, v, tau, model.values, external=EXTERNAL)
    np.testing.assert_allclose(unit.jacobian(RATES[2:], [MASS]), by_mass, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(unit.jacobian(RATES[:2], [*STATE]), np.eye(2, 4, k=2))
    np.testing.assert_array_equal(unit.jacobian([*STATE], [*STATE, MASS]), np.eye(4, 5))  # states are outputs


def test_directional_derivatives_of_reactions_are_differences(unit: Unit) -> None:
    seed, h = np.array([0.3, -0.2, 0.5, 0.1, 0.7, -0.4]), 1e-5
    changes = []
    for sign in (1.0, -1.0):
        at = np.array([*q, *v, *tau]) + sign * h * seed
        a = ARM.forward_dynamics(at[:2], at[2:4], at[4:], external=EXTERNAL)
        changes.append(ARM.joint_wrenches(at[:2], at[2:4], a, external=EXTERNAL)[0])
    expected = (changes[0] - changes[1]) / (2 * h)
    np.testing.assert_allclose(unit.derivative(REACTION, [*STATE, *FORCES], seed), expected, rtol=1e-7, atol=1e-8)


def test_adjoint_derivatives_are_the_transpose(unit: Unit) -> None:
    if not unit.three:
        pytest.skip("FMI 2 has no adjoint derivatives")
    unknowns, knowns = [*RATES, *REACTION, "v.joint1"], [MASS, *FORCES, *LOAD, *STATE]
    J = unit.jacobian(unknowns, knowns)
    weights = np.random.default_rng(0).normal(size=len(unknowns))
    np.testing.assert_allclose(unit.adjoint(unknowns, knowns, weights), weights @ J, rtol=1e-11, atol=1e-11)


def test_the_description_has_the_dependencies_of_the_derivatives(unit: Unit) -> None:
    assert {*RATES, *REACTION, *STATE} < {name for name, _ in unit.description.dependencies}
    for unknown, names in unit.description.dependencies:
        others = [name for name in [*STATE, *FORCES, *LOAD] if name not in names]
        assert not np.any(unit.jacobian([unknown], others))
        assert names <= {*STATE, *FORCES, *LOAD}


def test_inverse_dynamics_has_forces_as_outputs(tmp_path: Path) -> None:
    a = [2.0, -3.0]
    (path,) = torsor.export.fmi(
        ARM, tmp_path / "inverse.fmu", ["joint_wrenches:link1"], inverse=True, external=["link2"]
    )
    given = STATE | coordinates("a", ARM.coordinate_names, a) | LOAD
    unit = Unit(path, given)
    found = unit.get(FORCES)
    np.testing.assert_allclose(found, ARM.inverse_dynamics(q, v, a, external=EXTERNAL), rtol=0, atol=1e-13)
    wrench = ARM.joint_wrenches(q, v, a, external=EXTERNAL)[0]
    np.testing.assert_allclose(unit.get(REACTION), wrench, rtol=0, atol=1e-13)
    unit.step(0.0, 0.5)
    np.testing.assert_array_equal(unit.get([*FORCES, "time"]), [*found, 0.5])
    unit.set({"q.joint1": 1.0})
    expected = ARM.inverse_dynamics([1.0, q[1]], v, a, external=EXTERNAL)
    np.testing.assert_allclose(unit.get(FORCES), expected, rtol=0, atol=1e-13)
    mass = unit.jacobian([*FORCES], [*coordinates("a", ARM.coordinate_names, a)])
    np.testing.assert_allclose(mass, ARM.mass_matrix([1.0, q[1]]), rtol=0, atol=1e-13)
    unit.close()
