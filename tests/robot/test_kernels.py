"""The kernel cache: one hash of the robot, one look on disk, one trace; the same kernels for equal robots."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.robot import kernels


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Counts of hashes of a robot, of looks on disk and of traces, with an empty cache."""
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path))
    counts = dict.fromkeys(("fingerprint", "recall", "trace"), 0)
    for name in counts:
        original = getattr(kernels, name)

        def counting(*arguments: object, name: str = name, original=original) -> object:
            counts[name] += 1
            return original(*arguments)

        monkeypatch.setattr(kernels, name, counting)
    return counts


def test_a_cold_call_hashes_the_robot_once_looks_on_disk_once_and_traces_once(counted: dict[str, int]) -> None:
    state, robot = np.zeros((3, 2)), torsor.library.two_link()
    robot.inverse_dynamics(*state)
    assert counted == {"fingerprint": 1, "recall": 1, "trace": 1}
    robot.inverse_dynamics(*state)
    assert counted == {"fingerprint": 1, "recall": 1, "trace": 1}
    robot.mass_matrix(state[0])
    assert counted == {"fingerprint": 1, "recall": 2, "trace": 2}


def test_an_equal_robot_finds_the_code_on_disk_and_traces_nothing(counted: dict[str, int]) -> None:
    state = np.full((3, 2), 0.3)
    first = torsor.library.two_link().inverse_dynamics(*state)
    again = torsor.library.two_link()
    assert (again.inverse_dynamics(*state) == first).all()
    assert counted == {"fingerprint": 2, "recall": 2, "trace": 1}
    assert again.function("inverse_dynamics").n_in() == 3  # the function came from disk with the code
    assert counted["trace"] == 1


def test_another_robot_with_the_same_names_has_its_own_code(counted: dict[str, int]) -> None:
    state, robot = np.full((3, 2), 0.3), torsor.library.two_link()
    heavy = robot.with_payload("link2", 1.0)
    assert (heavy.inverse_dynamics(*state) != robot.inverse_dynamics(*state)).any()
    assert counted == {"fingerprint": 2, "recall": 2, "trace": 2}


def test_simulations_are_found_in_memory_and_by_equal_robots_on_disk(counted: dict[str, int]) -> None:
    robot = torsor.library.two_link()
    first = torsor.simulate(robot, [0.1, 0.2], duration=0.01)
    before = dict(counted)
    torsor.simulate(robot, [0.1, 0.2], duration=0.01)
    assert counted == before
    again = torsor.simulate(torsor.library.two_link(), [0.1, 0.2], duration=0.01)
    assert counted["trace"] == before["trace"] and (again.q == first.q).all()


def test_parallel_robots_are_found_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path))
    first = torsor.library.three_rrr()
    forces = first.inverse_dynamics(first.home, np.zeros(3), np.zeros(3))
    again = torsor.library.three_rrr()

    def traced(*_: object) -> None:
        raise AssertionError("an equal robot was traced again")

    monkeypatch.setattr(type(again), "_trace", traced)
    assert (again.inverse_dynamics(again.home, np.zeros(3), np.zeros(3)) == forces).all()


def test_a_robot_keeps_a_bounded_number_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MAX_KEPT", 2)
    robot = torsor.library.two_link().to(device="casadi")
    for name in ("link1", "link2", "base", "link1"):
        robot.pose([0.1, 0.2], name)
    assert len(robot.kernels._kernels) == 2


def test_controllers_made_in_a_loop_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MAX_KEPT", 3)
    x = ca.SX.sym("x")
    cache = kernels.Kernels(kernels.Target(device="casadi"), lambda: "test")
    for k in range(10):
        assert cache.kernel(k, lambda k=k: ca.Function("f", [x], [k * x]))(2.0) == 2.0 * k
    assert len(cache._kernels) == len(cache._functions) == 3
