"""Batches of motion problems on a GPU: the arrays stay there, and the solutions are those of a CPU."""

import numpy as np
import pytest

from gpu_on_cpu import StrictDevice
from torsor import library, motion
from torsor.compiler.cuda import device as cuda_device
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.motion import batched


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a real GPU if there is one, else its emulation."""
    try:
        cuda_device.current()
    except (ImportError, RuntimeError):
        device = StrictDevice()
        for module in (cuda_device, cuda_kernel):
            monkeypatch.setattr(module, "current", lambda: device)


def _problem() -> motion.MotionProblem:
    terms = [motion.Start(q=[0, -2], v=0), motion.End(q=[1, -1], v=0), motion.Torques(upper=10.0)]
    phase = motion.Phase((0.1, 2.0), points=6, nodes=16)
    return motion.MotionProblem(library.two_link(), phase, motion.Time(), terms)


@pytest.mark.parametrize("last", [0, 2])
def test_solutions_on_a_gpu_are_those_of_a_cpu(gpu: None, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    monkeypatch.setattr(batched, "LAST", last)  # cases that the CPU finishes
    ends = np.random.default_rng(0).uniform([0.5, -1.5], [1.5, -0.5], (3, 2))
    cases = [{"End.q": end} for end in ends]
    for one, other in zip(_problem().solve_many(cases, device="cuda"), _problem().solve_many(cases), strict=True):
        assert one.status == other.status == "optimal"
        assert one.iterations == other.iterations
        np.testing.assert_allclose(one.outcome.x, other.outcome.x, rtol=0, atol=1e-9)
        np.testing.assert_allclose(one.outcome.multipliers, other.outcome.multipliers, rtol=0, atol=1e-7)
