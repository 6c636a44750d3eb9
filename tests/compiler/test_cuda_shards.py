"""A batch is split into parts for several GPUs, which are simulated here."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import torsor
from torsor.compiler.cuda import device
from torsor.compiler.cuda.shards import on_gpus

ARM = torsor.library.two_link()


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Simulate three GPUs with NumPy arrays, and return the list of GPU numbers that are used."""
    numbers: list[int] = []

    def gpu(number: int) -> Any:
        numbers.append(number)
        return nullcontext()

    runtime = SimpleNamespace(getDeviceCount=lambda: 3)
    cuda = SimpleNamespace(runtime=runtime, Device=gpu)
    fake = SimpleNamespace(xp=SimpleNamespace(cuda=cuda, ndarray=type("Other", (), {}), asarray=np.asarray))
    monkeypatch.setattr(device, "current", lambda: fake)
    return numbers


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_the_parts_are_the_whole(used: list[int], count: int) -> None:
    q, v, a = np.random.default_rng(0).normal(size=(3, count, 2))
    parts = on_gpus(ARM.inverse_dynamics, (q, v, a), (1, 1, 1))
    assert len(parts) == len(used) == min(count, 3)
    np.testing.assert_array_equal(np.concatenate(parts), ARM.inverse_dynamics(q, v, a))


def test_inputs_without_a_batch_axis_go_to_all_cards(used: list[int]) -> None:
    q, v, a = np.ones((10, 4, 2)), np.ones((1, 4, 2)), np.ones(2)
    parts = on_gpus(ARM.inverse_dynamics, (q, v, a), (1, 1, 1), gpus=(2, 0))
    assert used == [2, 0] and [each.shape for each in parts] == [(5, 4, 2), (5, 4, 2)]
    assert len(on_gpus(ARM.inverse_dynamics, (q[0, 0], a, a), (1, 1, 1), gpus=(1,))) == 1
