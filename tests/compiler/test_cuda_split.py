"""Large functions in parts: together they compute all results, and none has many more live values than registers."""

import casadi as ca
import numpy as np
import pytest

import torsor
from gpu_on_cpu import ProcessorDevice
from robots import robot_file
from torsor.compiler import read_program
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.compiler.cuda import large_functions as splitting
from torsor.compiler.cuda.large_functions import budget, plan_spills
from torsor.compiler.order import alive


@pytest.fixture
def small_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs with few registers."""
    monkeypatch.setattr(splitting, "_MIN_SPLIT_OPERATIONS", 200)
    monkeypatch.setattr(splitting, "_KEPT", {4: 60, 8: 40})
    monkeypatch.setenv("TORSOR_CACHE", "off")
    device = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: device)


@pytest.mark.usefixtures("small_cards")
def test_the_parts_compute_each_result_once() -> None:
    program = read_program(torsor.library.six_axis_arm().function("inverse_dynamics_derivatives"))
    parts = splitting.split(program, 8)
    assert len(parts) > 3
    assert max(alive(part.program) for part in parts) < alive(program)
    seen = [
        (k, entry)
        for part in parts
        for k, result in enumerate(part.program.results)
        for entry, value in enumerate(result)
        if value is not None or (k, entry) in part.zeros
    ]
    assert sorted(seen) == [(k, e) for k, result in enumerate(program.results) for e in range(len(result))]


@pytest.mark.usefixtures("small_cards")
def test_a_function_in_parts_gives_the_numbers_of_the_processor() -> None:
    arm, values = torsor.library.six_axis_arm(), np.random.default_rng(0).normal(size=(3, 70, 6))
    columns = [np.asfortranarray(each) for each in values]
    found = arm.to(device="cuda").derivatives.inverse_dynamics(*columns)
    for here, there in zip(found, arm.derivatives.inverse_dynamics(*values), strict=True):
        np.testing.assert_allclose(here, there, rtol=0, atol=1e-13 * np.abs(there).max())


@pytest.mark.usefixtures("small_cards")
def test_results_that_are_inputs_or_constants_are_written_by_the_first_part() -> None:
    x = ca.SX.sym("x", 30)
    many = ca.vertcat(*(ca.sin(x[k]) * ca.cos(x[j]) for k in range(30) for j in range(20)))
    f = torsor.compile(ca.Function("f", [x], [many, ca.vertcat(x[3], 7.0), ca.SX(2, 2)]), device="cuda")
    values = np.asfortranarray(np.random.default_rng(1).normal(size=(50, 30)))
    products, few, zeros = f(values)
    truth = np.sin(values)[:, :, None] * np.cos(values)[:, None, :20]
    np.testing.assert_allclose(products, truth.reshape(50, 600), rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(few, np.stack([values[:, 3], np.full(50, 7.0)], 1))
    assert not zeros.any()


def test_small_functions_and_those_that_fit_are_one_kernel() -> None:
    program = read_program(torsor.library.six_axis_arm().function("forward_dynamics"))
    assert len(splitting.split(program, 4)) == len(splitting.split(program, 8)) == 1


@pytest.mark.slow
def test_derivatives_of_a_humanoid_fit_into_registers_and_shared_memory() -> None:
    robot = torsor.load(robot_file("talos_reduced.urdf"))
    kernels = robot.kernels
    program = read_program(kernels.traced(kernels.request("inverse_dynamics_derivatives", form="sparse")))
    parts = splitting.split(program, 4)
    assert max(alive(part.program) for part in parts) < alive(program) / 3
    slots = [plan_spills(part.program, budget(part.program, 4), 1 << 30).slots for part in parts]
    assert 0 < max(slots) * 32 * 4 < 28_000  # bytes of a warp: eight of them, of 255 registers a thread, fill an SM
    assert sum(len(part.program.operations) for part in parts) < 2.2 * len(program.operations)
