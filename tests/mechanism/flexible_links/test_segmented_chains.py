"""Flexible links agree with chains of many rigid links with springs, in Torsor and in MuJoCo."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import torsor
from bench.twins import mujoco_mass_matrix
from mechanism.flexible_links.tracing import Small, Traced
from torsor import library

HINGES = ("joint1", "joint2")


def _bent(arm: torsor.Robot, elbow: float) -> np.ndarray:
    q = np.zeros(arm.nq)
    q[arm.coordinate_names.index("joint2")] = elbow
    return q


@cache
def _arm(modes: int = 0, segments: int = 0) -> tuple[torsor.Robot, Small]:
    arm = library.flexible_arm((modes, 0)) if modes else library.segmented_arm(segments)
    return arm, Small(arm.with_gravity((0.0, 0.0, 0.0)), HINGES)


def _frequencies(elbow: float = 0.7, **kind: int) -> np.ndarray:
    arm, small = _arm(**kind)
    return small.frequencies(_bent(arm, elbow))[:2]


def _reference(elbow: float = 0.7) -> np.ndarray:
    return _frequencies(elbow, modes=5)


def test_chains_approach_the_flexible_arm_with_the_square_of_their_links() -> None:
    errors = [_frequencies(segments=n) - _reference() for n in (4, 7)]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize("elbow", [0.0, 0.7, 1.5])
def test_two_modes_have_the_first_frequencies_more_exactly_than_ten_segments(elbow: float) -> None:
    errors = [np.abs(_frequencies(elbow, **kind) / _reference(elbow) - 1) for kind in ({"modes": 2}, {"segments": 10})]
    assert (errors[0] < errors[1]).all()
    assert (errors[0] < [5e-5, 2e-3]).all()


def test_both_arms_have_the_same_mass_and_weight() -> None:
    modes, chain = library.flexible_arm(), library.segmented_arm()
    assert modes.mass == pytest.approx(chain.mass)
    q = [_bent(arm, 0.7) for arm in (modes, chain)]
    found, expected = (Traced(arm).value("center_of_mass", x) for arm, x in zip((modes, chain), q, strict=True))
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*MJCF cannot express mass or inertia of 0")
def test_a_chain_in_mujoco_has_the_frequencies_of_the_flexible_arm(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    chain = library.segmented_arm(40).with_gravity((0.0, 0.0, 0.0))
    chain.save(tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)
    data.qpos[:] = _bent(chain, 0.7)
    mujoco.mj_forward(model, data)
    M = mujoco_mass_matrix(model, data)
    free = [k for k, name in enumerate(chain.coordinate_names) if name not in HINGES]
    K = np.diag(model.jnt_stiffness[free])
    squares = np.linalg.eigvals(np.linalg.solve(M[np.ix_(free, free)], K)).real
    assert np.sqrt(np.sort(squares))[:2] == pytest.approx(_reference(), rel=2e-4)


@pytest.mark.slow
def test_the_flexible_arm_moves_as_a_fine_chain_does() -> None:
    modes = library.flexible_arm((4, 0)).with_gravity((0.0, 0.0, 0.0))
    chain = library.segmented_arm(12).with_gravity((0.0, 0.0, 0.0))
    tips = []
    for arm, tip in ((modes, "beam2/tip"), (chain, "tip")):
        tau = np.zeros(arm.nv)
        tau[[arm.coordinate_names.index(name) for name in HINGES]] = 2.0, -1.0
        run = torsor.simulate(arm, duration=0.5, step=2e-4, controller=tau, method="implicit")
        tips.append(arm.pose(run.q[::250], tip)[:, :2, 3])
    assert np.abs(tips[0] - tips[1]).max() < 2e-3 * np.abs(tips[1][:, 1]).max()
