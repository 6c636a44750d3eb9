"""An arm with elastic joints moves as MuJoCo moves it, where rotors are bodies and springs are tendons."""

import numpy as np
import pytest

import torsor
from bench.peers import mujoco_steps, with_rotors


def test_an_elastic_arm_moves_as_in_mujoco() -> None:
    pytest.importorskip("mujoco")
    bare = torsor.library.elastic_seven_axis_arm()
    rng = np.random.default_rng(0)
    q, v = np.tile(rng.uniform(-1, 1, 7), 2), np.tile(rng.normal(size=7), 2)
    q[7:] += 0.01 * rng.normal(size=7)  # the springs are wound up
    theirs = mujoco_steps(bare, 1e-4, 2000, q, v)()
    ours = torsor.simulate(with_rotors(bare), q, v, duration=0.2, step=1e-4).q[-1]
    assert np.abs(ours - q).max() > 0.1
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7)
