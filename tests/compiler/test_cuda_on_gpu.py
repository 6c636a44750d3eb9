"""Kernels on an NVIDIA GPU: every method, both types, against the machine code of the processor."""

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from methods import TREE_METHODS, request_of, states_of

cupy = pytest.importorskip("cupy", reason="needs CuPy")
try:
    _COUNT = cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError:
    _COUNT = 0
pytestmark = pytest.mark.skipif(not _COUNT, reason="needs an NVIDIA GPU")

LAYOUTS = ("rows", "columns", "slices")
MANY = 1_000_007
# These are computed from a Jacobian of full rank; where a robot has none, the results are rounding alone.
TASK_SPACE = {
    "cartesian_mass_matrix",
    "kinematic_null_space",
    "manipulability",
    "manipulability_gradient",
    "null_space",
}


@pytest.fixture(autouse=True)
def free_memory() -> Iterator[None]:
    yield
    cupy.get_default_memory_pool().free_all_blocks()


def arranged(array: Any, layout: str) -> Any:
    """Return an array on the GPU: row by row, coordinate by coordinate, or as a part of larger rows."""
    if layout == "rows" or array.ndim == 1:
        return cupy.asarray(array)
    if layout == "columns":
        return cupy.moveaxis(cupy.ascontiguousarray(cupy.moveaxis(cupy.asarray(array), 0, -1)), -1, 0)
    wide = cupy.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., 1:-2] = cupy.asarray(array)
    return wide[..., 1:-2]


def results(found: Any) -> list[Any]:
    return [cupy.asnumpy(each) for each in (found if isinstance(found, tuple) else (found,))]


def agree(robot: torsor.Robot, name: str, dtype: str, count: int, layout: str) -> None:
    request = request_of(robot, name)
    inputs = [each.astype(dtype) for each in states_of(robot, request, count)]
    gpu = robot.to(device="cuda", dtype=dtype)
    found = results(gpu.kernels.compiled(request)(*(arranged(each, layout) for each in inputs)))
    exact = robot.kernels.compiled(request)(*(each.astype("float64") for each in inputs))
    exact = exact if isinstance(exact, tuple) else (exact,)
    single = robot.to(dtype=dtype).kernels.compiled(request)(*inputs)
    single = single if isinstance(single, tuple) else (single,)
    for here, there, truth in zip(found, single, exact, strict=True):
        assert here.dtype == dtype and here.shape == truth.shape
        scale = np.abs(truth).max(initial=1e-300)
        rounding = np.finfo(dtype).eps
        # No worse than the processor, but for a few roundings in another order.
        assert np.abs(here - truth).max() <= 4 * np.abs(there - truth).max() + 64 * rounding * scale


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", TREE_METHODS)
def test_every_method_agrees_with_the_processor(name: str, dtype: str) -> None:
    robots = torsor.library.six_axis_arm(), torsor.library.random_tree(6, seed=1)
    if name in TASK_SPACE:
        robots = (torsor.library.free_flying_arm(),)
    for robot in robots:
        for count in (1, 31, 33):
            agree(robot, name, dtype, count, "rows")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "poses"])
def test_a_million_states_agree_in_every_layout(name: str, dtype: str, layout: str) -> None:
    agree(torsor.library.six_axis_arm(), name, dtype, MANY, layout)


def test_inputs_broadcast_as_those_of_numpy() -> None:
    arm = torsor.library.six_axis_arm()
    gpu, rng = arm.to(device="cuda"), np.random.default_rng(2)
    q, v, a = rng.normal(size=(5, 1, 6)), rng.normal(size=(7, 6)), rng.normal(size=6)
    found = gpu.inverse_dynamics(cupy.asarray(q), cupy.asarray(v), a)
    assert found.shape == (5, 7, 6)
    np.testing.assert_allclose(cupy.asnumpy(found), arm.inverse_dynamics(q, v, a), rtol=1e-11, atol=1e-11)


def test_results_are_written_to_out_of_any_strides() -> None:
    arm, rng = torsor.library.six_axis_arm(), np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, 100, 6))
    truth, given = arm.inverse_dynamics(q, v, a), [cupy.asarray(each) for each in (q, v, a)]
    kernel = torsor.compile(arm.function("inverse_dynamics"), device="cuda")
    wide = cupy.zeros((100, 12))
    for out in (cupy.empty((100, 6)), cupy.empty((6, 100)).T, wide[:, ::2], wide[::-1, :6], given[0]):
        assert kernel(*(each.copy() if each is not out else each for each in given), out=out) is out
        np.testing.assert_allclose(cupy.asnumpy(out), truth, rtol=1e-11, atol=1e-11)


def test_the_current_stream_is_used_and_graphs_are_captured() -> None:
    arm, rng = torsor.library.six_axis_arm(), np.random.default_rng(4)
    given = [cupy.asarray(each) for each in rng.normal(size=(3, 1000, 6))]
    kernel, out = torsor.compile(arm.function("inverse_dynamics"), device="cuda"), cupy.empty((1000, 6))
    kernel(*given, out=out)  # compiles, which a capture may not
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        kernel(*given, out=out)
        graph = stream.end_capture()
    out[...] = 0
    given[0] += 0.1
    cupy.cuda.get_current_stream().synchronize()
    graph.launch(stream)
    stream.synchronize()
    truth = arm.inverse_dynamics(*map(cupy.asnumpy, given))
    np.testing.assert_allclose(cupy.asnumpy(out), truth, rtol=1e-11, atol=1e-11)


def test_tensors_of_pytorch_are_used_where_they_are() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch does not see the GPU")
    arm = torsor.library.six_axis_arm().to(device="cuda", dtype="float32")
    given = torch.randn(3, 1000, 6, device="cuda")
    found = torch.from_dlpack(arm.inverse_dynamics(*given))
    truth = arm.inverse_dynamics(*given.cpu().numpy())
    np.testing.assert_array_equal(found.cpu().numpy(), cupy.asnumpy(truth))


def test_arrays_of_jax_are_used_where_they_are() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX does not see the GPU")
    arm = torsor.library.six_axis_arm().to(device="cuda", dtype="float32")
    given = jax.random.normal(jax.random.key(0), (3, 1000, 6))
    found = jax.dlpack.from_dlpack(arm.inverse_dynamics(*given))
    truth = arm.inverse_dynamics(*np.asarray(given))
    np.testing.assert_array_equal(np.asarray(found), cupy.asnumpy(truth))


def test_huge_and_special_numbers_are_those_of_the_processor() -> None:
    x = ca.SX.sym("x")
    f = ca.Function(
        "f", [x], [ca.sqrt(x), ca.fabs(x), ca.floor(x), 1 / x, ca.sign(x), ca.fmax(x, 1), ca.sin(x), ca.cos(x)]
    )
    values = np.array([0.0, 1.0, 1e9, -3e20, 2.5, -3.7, np.inf, -np.inf, np.nan, 1e300, 1e-300])
    with np.errstate(all="ignore"):
        for here, there in zip(torsor.compile(f, device="cuda")(values), torsor.compile(f)(values), strict=True):
            np.testing.assert_allclose(cupy.asnumpy(here), there, rtol=1e-15, atol=1e-15)


def test_gradients_of_pytorch_stay_on_the_card() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch does not see the GPU")
    arm = torsor.library.six_axis_arm()
    values = np.random.default_rng(5).normal(size=(3, 50, 6))
    found = []
    for robot, place in ((arm.to(device="cuda"), "cuda"), (arm, "cpu")):
        function = torsor.robot.autodiff.to_torch(robot, "inverse_dynamics")
        given = [torch.tensor(each, device=place, requires_grad=True) for each in values]
        result = function(*given)
        assert result.device.type == place and result.dtype == torch.float64
        result.square().sum().backward()
        found.append([each.grad.cpu().numpy() for each in given])
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(here, there, rtol=0, atol=1e-11 * np.abs(there).max())


def test_gradients_of_jax_stay_on_the_card() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX does not see the GPU")
    arm = torsor.library.six_axis_arm()
    values = np.random.default_rng(6).normal(size=(3, 50, 6)).astype("float32")
    found = []
    for robot in (arm.to(device="cuda", dtype="float32"), arm):
        function = torsor.robot.autodiff.to_jax(robot, "inverse_dynamics")

        def cost(q: Any, v: Any, a: Any, function: Any = function) -> Any:
            return (function(q, v, a) ** 2).sum()

        found.append(jax.jit(jax.grad(cost, argnums=(0, 1, 2)))(*values))
        one = jax.vmap(function)(*values)
        np.testing.assert_allclose(np.asarray(one), arm.inverse_dynamics(*values.astype(float)), rtol=0, atol=1e-3)
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(np.asarray(here), np.asarray(there), rtol=0, atol=1e-4 * np.abs(there).max())


def test_rollouts_and_their_gradients_stay_on_the_card() -> None:
    from torsor.simulation import rollout

    arm, start = torsor.library.two_link(), np.random.default_rng(7).normal(size=(2, 100, 2))
    masses, paths = np.linspace(0.5, 2.0, 100)[:, None], ["links.link2.mass"]
    run = rollout(arm.to(device="cuda").parametric(paths), *start, 0.1, cupy.asarray(masses))
    truth = rollout(arm.parametric(paths), *start, 0.1, masses)
    assert isinstance(run.q, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(run.q), truth.q, rtol=0, atol=1e-11)
    weights = np.random.default_rng(8).normal(size=run.q.shape)
    for here, there in zip(run.vjp(cupy.asarray(weights)), truth.vjp(weights), strict=True):
        np.testing.assert_allclose(cupy.asnumpy(here), there, rtol=0, atol=1e-10 * np.abs(there).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["hard", "compliant"])
def test_motions_on_height_fields_agree_with_the_processor(kind: str, dtype: str) -> None:
    from torsor.mechanism import Link, Shape
    from torsor.robot.load import build
    from torsor.simulation import Contact, height_field, rollout

    rng = np.random.default_rng(10)
    field = height_field(rng.uniform(0, 0.05, size=(1000, 1001)), (100.0, 80.0))
    at = rng.uniform(-60, 60, size=(2, 100_000))
    z = torsor.compile(field, dtype=dtype, device="cuda")(*at.astype(dtype))
    truth = torsor.compile(field)(*at)
    np.testing.assert_allclose(cupy.asnumpy(z), truth, rtol=0, atol=1e-13 if dtype == "float64" else 1e-5)
    ball = Link("ball", 1.0, np.zeros(3), 4e-3 * np.eye(3), shapes=(Shape("sphere", (0.1,)),))
    robot = build("ball", [ball], [], base="floating")
    q0 = np.column_stack([*at[:, :300] / 2, np.full(300, 0.155), np.zeros((300, 3)), np.ones(300)])
    method = "rk4" if kind == "hard" else "linearly_implicit"
    settings: dict[str, Any] = {"contact": Contact(field, kind=kind, stiffness=1e5), "method": method, "step": 2e-3}
    run, truth = (
        rollout(each, q0, np.zeros(6), 0.1, **settings) for each in (robot.to(device="cuda", dtype=dtype), robot)
    )
    assert np.abs(truth.v[:, -1, :2]).max() > 1e-3  # slopes deflect the balls
    close = np.abs(cupy.asnumpy(run.q) - truth.q).max(axis=(1, 2)) <= (1e-9 if dtype == "float64" else 1e-3)
    assert close.mean() >= (1.0 if dtype == "float64" else 0.98)  # rounding may choose a neighbouring cell


def test_a_batch_is_shared_among_cards() -> None:
    from torsor.compiler.cuda.shards import on_gpus

    arm, values = torsor.library.six_axis_arm(), np.random.default_rng(9).normal(size=(3, 101, 6))
    parts = on_gpus(arm.to(device="cuda").inverse_dynamics, values, (1, 1, 1), gpus=(0, _COUNT - 1, 0))
    assert [len(each) for each in parts] == [33, 34, 34]
    whole = np.concatenate([cupy.asnumpy(each) for each in parts])
    np.testing.assert_allclose(whole, arm.inverse_dynamics(*values), rtol=1e-11, atol=1e-11)
