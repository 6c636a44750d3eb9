"""Kernels for NVIDIA GPUs, run on the CPU thread by thread: indices, strides, staging and results."""

import pickle
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from gpu_on_cpu import ProcessorDevice
from methods import TREE_METHODS, request_of, states_of
from refusals import refused
from torsor.compiler.cuda import code as cuda_code
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.compiler.cuda.large_functions import Budget


@pytest.fixture(autouse=True)
def processor(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: device)


ROBOT = torsor.library.random_tree(2, seed=1)


def arranged(array: Any, layout: str) -> Any:
    if layout == "columns":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)
    if layout == "rows":
        return np.ascontiguousarray(array)
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., 1:-2] = array
    return wide[..., 1:-2] if layout == "slices" else wide[::-1, ..., 1:-2][::-1]


def tuples(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["rows", "columns", "slices"])
@pytest.mark.parametrize("count", [1, 31, 33, 1025])
def test_every_layout_and_batch_gives_the_numbers_of_the_processor(count: int, layout: str, dtype: str) -> None:
    arm = torsor.library.six_axis_arm().to(dtype=dtype)
    rng = np.random.default_rng(count)
    q, v, a = (arranged(each.astype(dtype), layout) for each in rng.normal(size=(3, count, 6)))
    found, truth = arm.to(device="cuda").inverse_dynamics(q, v, a), arm.inverse_dynamics(q, v, a)
    assert found.dtype == truth.dtype
    np.testing.assert_allclose(found, truth, rtol=0, atol=8 * np.finfo(dtype).eps * np.abs(truth).max())


# These are computed from a Jacobian of full rank: two links have none, and the results are rounding alone.
TASK_SPACE = {"cartesian_mass_matrix", "kinematic_null_space", "null_space"}
FLOATING = torsor.library.free_flying_arm()
QUICK = {"acceleration", "chart_rate", "forward_dynamics", "hybrid_dynamics_derivatives", "jacobian"}
QUICK |= {"joint_wrench_rates", "pose", "spring_force"}
METHODS = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in sorted(TREE_METHODS)]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_the_numbers_of_the_processor(name: str) -> None:
    robot = FLOATING if name in TASK_SPACE else ROBOT
    request = request_of(robot, name)
    inputs = states_of(robot, request, 33)
    kernel = robot.to(device="cuda").kernels.compiled(request)
    found = tuples(kernel(*inputs))
    for here, there in zip(found, tuples(robot.kernels.compiled(request)(*inputs)), strict=True):
        assert here.shape == there.shape
        np.testing.assert_allclose(here, there, rtol=0, atol=1e-12 * np.abs(there).max(initial=1e-300))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_of_manipulability_are_finite_at_singular_states(dtype: str) -> None:
    arm = torsor.library.six_axis_arm().to(dtype=dtype)
    q = np.random.default_rng(6).integers(-1, 2, size=(200, 6)).astype(dtype)
    for each in (arm.to(device="cuda"), arm):
        assert np.isfinite(each.task.manipulability_gradient(q, arm.link_names[-1])).all()


def test_inputs_broadcast_as_those_of_numpy() -> None:
    arm = torsor.library.six_axis_arm()
    rng = np.random.default_rng(2)
    q, v, a = rng.normal(size=(5, 1, 6)), rng.normal(size=(7, 6)), rng.normal(size=6)
    found = arm.to(device="cuda").inverse_dynamics(q, v, a)
    np.testing.assert_allclose(found, arm.inverse_dynamics(q, v, a), rtol=1e-13, atol=1e-13)
    assert arm.to(device="cuda").inverse_dynamics(q[0, 0], v[0], a).shape == (6,)
    assert arm.to(device="cuda").inverse_dynamics(q[:0], v, a).shape == (0, 7, 6)


def test_results_lie_as_the_inputs_lie() -> None:
    gpu = torsor.library.six_axis_arm().to(device="cuda")
    rows = np.random.default_rng(3).normal(size=(3, 40, 6))
    columns = [np.asfortranarray(each) for each in rows]
    assert gpu.inverse_dynamics(*rows).strides == (48, 8)
    assert gpu.inverse_dynamics(*columns).strides == (8, 320)
    assert gpu.mass_matrix(columns[0]).strides == (8, 6 * 320, 320)


def test_a_result_too_large_for_shared_memory_lies_coordinate_by_coordinate() -> None:
    x = ca.SX.sym("x", 20)
    kernel = torsor.compile(ca.Function("f", [x], [x @ x.T, 2 * x]), device="cuda")
    values = np.random.default_rng(4).normal(size=(70, 20))
    square, twice = kernel(values)
    np.testing.assert_array_equal(square, values[:, :, None] * values[:, None])
    np.testing.assert_array_equal(twice, 2 * values)
    assert square.strides == (8, 20 * 70 * 8, 70 * 8) and twice.strides == (160, 8)


def test_results_are_written_to_out_of_any_strides() -> None:
    arm, rng = torsor.library.six_axis_arm(), np.random.default_rng(5)
    given = rng.normal(size=(3, 100, 6))
    truth = arm.inverse_dynamics(*given)
    kernel, wide = torsor.compile(arm.function("inverse_dynamics"), device="cuda"), np.zeros((100, 12))
    for out in (np.empty((100, 6)), np.empty((6, 100)).T, wide[:, ::2], wide[::-1, :6], given[0]):
        assert kernel(*given, out=out) is out
        np.testing.assert_allclose(out, truth, rtol=1e-13, atol=1e-13)
        assert not wide[:, 7::2].any()


def test_wrong_inputs_are_refused_in_the_words_of_the_processor() -> None:
    f = torsor.library.six_axis_arm().function("inverse_dynamics")
    kernels = torsor.compile(f, device="cuda"), torsor.compile(f)
    for values in ((np.zeros(6),), (np.zeros(5),) * 3, ("q",) * 3, (np.zeros((2, 6)), np.zeros((3, 6)), np.zeros(6))):
        messages = []
        for kernel in kernels:
            with pytest.raises((TypeError, ValueError)) as caught:
                kernel(*values)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
    with refused(argument="out", allowed="a GPU array, float64 (2, 6)"):
        kernels[0](*np.zeros((3, 2, 6)), out=np.zeros((2, 6), "float32"))


def test_every_operation_gives_the_numbers_of_the_processor() -> None:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    one = [ca.sqrt(x), ca.fabs(x), ca.floor(x), ca.ceil(x), 1 / x, x / y, ca.sign(x), ca.fmin(x, y), ca.fmax(x, y)]
    two = [ca.if_else(x > y, x, -y), ca.copysign(x, y), ca.logic_and(x, y), ca.sin(x), ca.cos(x), x - y, x * y + 1]
    f = ca.Function("f", [x, y], [*one, *two])
    special = np.array([0.0, -0.0, 1.0, 2.5, -3.7, 1e5, np.inf, -np.inf, np.nan, 1e300, 1e-300])
    a, b = special[:, None], special[None]
    with np.errstate(all="ignore"):
        pairs = zip(torsor.compile(f, device="cuda")(a, b), torsor.compile(f)(a, b), strict=True)
        for k, (here, there) in enumerate(pairs):
            np.testing.assert_array_equal(here, there, err_msg=str(k))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_huge_angles_and_elementary_functions_are_those_of_the_processor(dtype: str) -> None:
    x = ca.SX.sym("x")
    one = [ca.sin(x), ca.cos(x), ca.tan(x), ca.exp(x), ca.log(x), ca.tanh(x), ca.atan(x), ca.asin(x), ca.erf(x)]
    f = ca.Function("f", [x], [*one, x**2.5, ca.atan2(x, 2), ca.fmod(x, 3), ca.sin(2 * x), ca.cos(x + 1)])
    values = np.array([0.3, 1e5, 1e9, 3e20, 1e38, -7e22, 0.0, -0.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        pairs = zip(torsor.compile(f, dtype, "cuda")(values), torsor.compile(f, dtype)(values), strict=True)
        for k, (here, there) in enumerate(pairs):
            usual = np.isfinite(there)
            np.testing.assert_array_almost_equal_nulp(here[usual], there[usual], 2)
            np.testing.assert_array_equal(here[~np.isfinite(there)], there[~np.isfinite(there)], err_msg=str(k))


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("slots", [400, 20])
def test_values_that_wait_in_shared_memory_are_those_of_the_processor(
    layout: str, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_code, "budget", lambda program, size: Budget(None, 12, 30))
    monkeypatch.setattr(cuda_code, "_WARP_SHARED", slots * 32 * 8 + (12 * 32 * 8 * 4 if layout == "rows" else 0))
    monkeypatch.setenv("TORSOR_CACHE", "off")
    arm = torsor.library.six_axis_arm()
    values = np.random.default_rng(3).normal(size=(3, 40, 6))
    values[0, 3, 2] = 1e15  # a huge angle
    given = [arranged(each, layout) for each in values]
    found, truth = arm.to(device="cuda").forward_dynamics(*given), arm.forward_dynamics(*values)
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-13 * np.abs(truth).max())


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_number_that_divides_several_is_inverted_once_and_infinities_stay(device: str) -> None:
    x, d = ca.SX.sym("x", 3), ca.SX.sym("d")
    f = torsor.compile(ca.Function("f", [x, d], [x / d]), device=device)
    numbers = np.array([1.0, -3.0, 0.1, 1e300, 0.0, np.inf, np.nan, 1e-300])
    xs, ds = np.stack([numbers, 7 * numbers, numbers / 3], -1)[:, None], numbers[None]
    with np.errstate(all="ignore"):
        here, there = f(xs, ds), xs / ds[..., None]
    usual = np.isfinite(there)
    np.testing.assert_array_almost_equal_nulp(here[usual], there[usual], 2)
    np.testing.assert_array_equal(here[~usual], there[~usual])


def test_closed_loops_are_computed_on_the_host_and_are_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = torsor.library.four_bar(gravity=(0, -9.81, 0))
    gpu = robot.to(device="cuda")
    q = robot.closed.assemble([[1.0], [1.2]])
    with monkeypatch.context() as patch:
        patch.setattr(cuda_kernel, "current", lambda: pytest.fail("robot.closed runs on the GPU"))
        for closed in (robot.closed, gpu.closed):
            np.testing.assert_array_equal(closed.assemble([[1.0], [1.2]]), q)
        found, truth = (each.closed.forward_dynamics(q, [[0.5], [0.1]], [2.0]) for each in (gpu, robot))
        np.testing.assert_array_equal(found, truth)
    with refused(what="has the loop 'pin', and inverse_dynamics would cut it open"):
        gpu.inverse_dynamics(q, 0 * q, 0 * q)
    with refused(what="simulate does not run on a GPU", allowed="device cpu or"):
        torsor.simulate(gpu, q[0], duration=0.01)


def test_the_code_of_a_layout_is_stored_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path))
    q = np.ones((3, 2))
    first = torsor.library.two_link().to(device="cuda").gravity_force(q)
    files = {path.name for path in tmp_path.iterdir()}
    monkeypatch.setattr(cuda_kernel, "write_kernel", None)  # it is not written again
    again = torsor.library.two_link().to(device="cuda").gravity_force(q)
    np.testing.assert_array_equal(first, again)
    assert {path.name for path in tmp_path.iterdir()} == files and len(files) == 2


def test_a_kernel_of_a_card_is_pickled_as_its_function() -> None:
    kernel = torsor.compile(torsor.library.two_link().function("mass_matrix"), "float32", "cuda")
    copy = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(copy(np.ones(2)), kernel(np.ones(2)))
