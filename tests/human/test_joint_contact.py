"""Muscle forces satisfy the optimality conditions, and moment arms agree with the published set."""

import numpy as np
import pytest

import torsor
from torsor.human import Person
from torsor.human.ergonomics import muscle_forces
from torsor.human.ergonomics.joint_contact import GROUPS, IN_VIVO, NAMES, crosses, largest_forces, moment_arms

MAN = Person(1.80, 80.0, "male")


def _problem(seed: int, count: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng, strongest = np.random.default_rng(seed), largest_forces(MAN)
    arms = moment_arms(MAN, rng.uniform([-0.3, -0.2, 0.0, -0.4], [1.5, 0.2, 1.8, 0.3], (count, 4)))
    return arms, np.einsum("kij,kj->ki", arms, rng.uniform(0, 0.6, (count, 11)) * strongest), strongest


def test_forces_exert_the_moments_and_satisfy_the_conditions_of_the_optimum() -> None:
    arms, moments, strongest = _problem(0)
    forces, missing = muscle_forces(arms, moments, strongest)
    assert np.abs(missing).max() < 1e-3 and (forces >= 0).all() and (forces <= strongest).all()
    u = forces / strongest
    for k in range(len(u)):  # u = A^T y where muscles are between their bounds: y by least squares from these alone
        A = arms[k] * strongest
        inside = (u[k] > 1e-9) & (u[k] < 1 - 1e-9)
        y = np.linalg.lstsq(A[:, inside].T, u[k, inside], rcond=None)[0]
        assert np.abs(A[:, inside].T @ y - u[k, inside]).max() < 1e-6
        if np.linalg.matrix_rank(A[:, inside]) == 4:
            assert (A.T @ y)[u[k] <= 1e-9].max(initial=0.0) < 1e-6


def test_moments_that_are_too_large_are_reported_as_missing() -> None:
    arms, _, strongest = _problem(1, 3)
    moments = np.tile([0.0, 0.0, 0.0, -2000.0], (3, 1))
    forces, missing = muscle_forces(arms, moments, strongest)
    assert (missing[:, 3] < -1000).all() and np.isfinite(forces).all()
    assert forces[:, NAMES.index("soleus")] == pytest.approx(strongest[NAMES.index("soleus")])


def test_no_moment_needs_no_force() -> None:
    arms, moments, strongest = _problem(2, 4)
    assert np.abs(muscle_forces(arms, 0 * moments, strongest)[0]).max() == 0.0


def test_moment_arms_are_largest_and_least_where_published() -> None:
    knee, ankle = (np.zeros((2, 4)) for _ in range(2))
    knee[:, 2], ankle[:, 3] = np.radians([15.0, 135.0]), np.radians([-10.0, -90.0])
    vasti, soleus = (
        moment_arms(MAN, knee)[:, 2, NAMES.index("vasti")],
        moment_arms(MAN, ankle)[:, 3, NAMES.index("soleus")],
    )
    assert vasti == pytest.approx([-0.06, -0.04], abs=1e-12) and soleus == pytest.approx([-0.06, -0.02], abs=1e-12)
    taller = moment_arms(Person(0.9 * 1.80, 80.0, "male"), knee)
    assert taller == pytest.approx(0.9 * moment_arms(MAN, knee), rel=1e-12)


def test_every_group_crosses_the_joints_that_it_moves() -> None:
    assert sum(crosses("hip")) == 6 and sum(crosses("knee")) == 5 and sum(crosses("ankle")) == 3
    assert {arm.coordinate for group in GROUPS for arm in group.arms} == {
        "hip_flexion", "hip_adduction", "knee_flexion", "ankle_flexion"
    }  # fmt: skip


@pytest.mark.slow
def test_contact_forces_of_the_default_walk_are_within_a_quarter_of_those_of_instrumented_joints() -> None:
    stride = torsor.human.Stride(torsor.human.walking().solve())
    found = torsor.human.ergonomics.joint_contact(stride)
    missing = np.abs(found.missing).max(axis=0)  # the set is too weak for a stiff heel that strikes
    assert missing[:3].max() < 1e-2 and missing[3] < 15.0
    for joint, (least, most) in IN_VIVO.items():
        assert 0.75 * least < found.peak(joint) < 1.25 * most
    assert 3.0 < found.peak("ankle") < 5.5
    for joint in ("hip", "knee", "ankle"):
        assert found.peak(joint) > np.linalg.norm(stride.reaction(joint), axis=1).max()
