"""JAX and PyTorch use the derivatives of Torsor. Skipped where a framework is not installed."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.robot.autodiff import to_jax, to_torch

# PyTorch's own forward mode loads what PyTorch itself says is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")

ROBOT = torsor.library.random_tree(4, seed=2)
FLOATING = torsor.library.quadruped()
RNG = np.random.default_rng(6)


def state(robot: torsor.Robot, batch: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    q = robot.integrate(robot.neutral(), RNG.normal(size=(*batch, robot.nv)))
    return q, RNG.normal(size=(*batch, robot.nv)), RNG.normal(size=(*batch, robot.nv))


def close(found, expected, tolerance: float = 1e-11) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0)))


@pytest.fixture
def jax():
    module = pytest.importorskip("jax", reason="JAX is not installed (extra: jax)")
    before = module.config.jax_enable_x64
    module.config.update("jax_enable_x64", True)
    yield module
    module.config.update("jax_enable_x64", before)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")


def test_without_the_framework_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name, convert in (("jax", to_jax), ("torch", to_torch)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=rf'needs (JAX|PyTorch); fix: pip install "torsor\[{name}\]"'):
            convert(ROBOT, "mass_matrix")


@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_the_blocks_of_the_how_to_page_run(request: pytest.FixtureRequest, framework: str) -> None:
    request.getfixturevalue(framework)
    page = (Path(__file__).parents[3] / "docs" / "deploy" / "jax_pytorch.md").read_text()
    (block,) = (each for each in re.findall(r"```py\n(.*?)```", page, re.DOTALL) if f"import {framework}\n" in each)
    reader: dict[str, Any] = {}
    exec(compile(block, "jax_pytorch.md", "exec"), reader)
    mass = reader["arm"].mass_matrix([0.0, 0.0])
    if framework == "jax":
        close(reader["momentum"], mass[:, 0])
        close(reader["mass"], mass)
    else:  # the loss is |M⁻¹ (τ - g)|², a sum over states
        close(reader["tau"].grad[7], 2 * np.linalg.solve(mass, reader["arm"].forward_dynamics(*np.zeros((3, 2)))))


def test_jax_values_and_forward_and_reverse_derivatives(jax) -> None:
    tau = to_jax(ROBOT, "inverse_dynamics")
    q, v, a = state(ROBOT)
    close(tau(q, v, a), ROBOT.inverse_dynamics(q, v, a))
    close(jax.jit(tau)(q, v, a), ROBOT.inverse_dynamics(q, v, a))
    tangents = RNG.normal(size=ROBOT.nq), *RNG.normal(size=(2, ROBOT.nv))
    _, change = jax.jvp(tau, (q, v, a), tangents)
    close(change, ROBOT.derivatives.jvp("inverse_dynamics", (q, v, a), tangents, components=True)[1])
    weights = RNG.normal(size=ROBOT.nv)
    _, pull = jax.vjp(tau, q, v, a)
    _, gradients = ROBOT.derivatives.vjp("inverse_dynamics", (q, v, a), weights, components=True)
    for found, expected in zip(pull(weights), gradients, strict=True):
        close(found, expected)


def test_jax_maps_batches_and_broadcasts(jax) -> None:
    tau = to_jax(ROBOT, "inverse_dynamics", external=True)
    q, v, a = state(ROBOT, (5,))
    external = RNG.normal(size=(len(ROBOT.links), 6))
    expected = ROBOT.inverse_dynamics(q, v, a[0], external=external)
    close(tau(q, v, a[0], external), expected)
    close(jax.vmap(tau, (0, 0, None, None))(q, v, a[0], external), expected)
    close(jax.jit(jax.vmap(tau, (0, 0, None, None)))(q, v, a[0], external), expected)
    gradient = jax.grad(lambda e: tau(q, v, a, e).sum())(external)
    _, (*_, each) = ROBOT.derivatives.vjp("inverse_dynamics", (q, v, a, external), np.ones(ROBOT.nv), external=True)
    close(gradient, each.sum(axis=0))


def test_jax_second_derivatives(jax) -> None:
    energy = to_jax(ROBOT, "kinetic_energy")
    q, v, _ = state(ROBOT)
    close(jax.hessian(energy, argnums=1)(q, v), ROBOT.mass_matrix(q))
    close(jax.jacrev(jax.grad(energy, argnums=1), argnums=1)(q, v), ROBOT.mass_matrix(q))


def test_jax_with_floating_bases_places_and_several_results(jax) -> None:
    q, v, a = state(FLOATING)
    close(to_jax(FLOATING, "pose", place=FLOATING.link_names[-1])(q), FLOATING.pose(q, FLOATING.link_names[-1]))
    for found, expected in zip(
        to_jax(FLOATING, "force_rate")(q, v, a, a), FLOATING.force_rate(q, v, a, a), strict=True
    ):
        close(found, expected)


def test_jax_keeps_single_precision() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed (extra: jax)")
    q, v, a = (each.astype(np.float32) for each in state(ROBOT))
    found = to_jax(ROBOT, "inverse_dynamics")(q, v, a)
    assert found.dtype == np.float32 and isinstance(found, jax.Array)
    close(found, ROBOT.inverse_dynamics(q, v, a), 1e-6)


def test_torch_values_and_gradients(torch) -> None:
    tau = to_torch(ROBOT, "inverse_dynamics")
    tensors = [torch.tensor(each, requires_grad=True) for each in state(ROBOT, (3,))]
    q, v, a = (each.detach().numpy() for each in tensors)
    found = tau(*tensors)
    close(found.detach(), ROBOT.inverse_dynamics(q, v, a))
    weights = RNG.normal(size=(3, ROBOT.nv))
    found.backward(torch.tensor(weights))
    _, gradients = ROBOT.derivatives.vjp("inverse_dynamics", (q, v, a), weights, components=True)
    for tensor, expected in zip(tensors, gradients, strict=True):
        close(tensor.grad, expected)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # PyTorch calls it
def test_torch_gradcheck(torch) -> None:
    for name in ("inverse_dynamics", "forward_dynamics"):
        function = to_torch(torsor.library.two_link(), name)
        tensors = [torch.tensor(RNG.normal(size=2), requires_grad=True) for _ in range(3)]
        assert torch.autograd.gradcheck(function, tensors, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, tensors)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # PyTorch calls it
def test_torch_gradients_of_broadcast_inputs_and_vmap(torch) -> None:
    tau = to_torch(ROBOT, "inverse_dynamics")
    q, v, a = (torch.tensor(each) for each in state(ROBOT, (4,)))
    a = a[0].requires_grad_(True)
    tau(q, v, a).sum().backward()
    close(a.grad, ROBOT.mass_matrix(q.numpy()).sum(axis=(0, 1)))
    mapped = torch.func.vmap(tau, in_dims=(0, 0, None))(q, v, a.detach())
    close(mapped, ROBOT.inverse_dynamics(q.numpy(), v.numpy(), a.detach().numpy()))
    energy = to_torch(ROBOT, "kinetic_energy")
    close(torch.func.hessian(energy, argnums=1)(q[0], v[0]), ROBOT.mass_matrix(q[0].numpy()))


def test_torch_promotes_to_the_widest_type(torch) -> None:
    robot = torsor.library.two_link()
    energy, v = to_torch(robot, "kinetic_energy"), torch.tensor([0.1, 0.2], dtype=torch.float64)
    for q in (torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.float32)):
        found = energy(q, v)
        assert found.dtype == torch.float64
        close(found, robot.kinetic_energy(np.zeros(2), v.numpy()))
    short = energy(torch.zeros(2, dtype=torch.bfloat16), v.bfloat16())
    assert short.dtype == torch.bfloat16
    close(short.double(), robot.kinetic_energy(np.zeros(2), v.numpy()), 1e-2)


@pytest.mark.parametrize("convert", ["jax", "torch"])
def test_wrong_shapes_and_names_raise_errors(convert: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(convert)
    make = {"jax": to_jax, "torch": to_torch}[convert]
    with refused(allowed="(..., 2)"):
        make(torsor.library.two_link(), "mass_matrix")(np.zeros(3))
    with refused(allowed="2, one for each of q, v"):
        make(torsor.library.two_link(), "bias_force")(np.zeros(2))
    with refused(what="q (4,), v (3,)"):
        make(torsor.library.two_link(), "bias_force")(np.zeros((4, 2)), np.zeros((3, 2)))
    with refused(value="walk"):
        make(ROBOT, "walk")
    with refused(allowed="a Robot"):
        make("robot", "walk")
