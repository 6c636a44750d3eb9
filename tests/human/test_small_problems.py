"""A small walk and a small task, solved: constraints, impulse and energy balance, and the same optimum by two solvers.

Bodies move in the sagittal plane with stiff trunk and arms, so that little is compiled.
"""

from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor.human import Step, Stride, ground_reaction, joint_torques, standing_up, walking
from torsor.human.body.postures import HIP_HEIGHT_ON_SEAT
from torsor.motion import MotionProblem, MotionResult

from .ground import equilibrium

# These problems have few nodes, so that they are solved fast; what happens between them is not the subject here.
pytestmark = pytest.mark.filterwarnings("ignore:.*between the nodes")

BODY = torsor.library.human()
STIFF = ("spine", "shoulder", "elbow", "pronation", "adduction", "rotation", "inversion")
STEP = Step(length=0.6, width=0.1, speed=1.2, timing="given")
TOLERANCE = 1e-4  # of the solver: constraints hold to this fraction of their scales


def _stiff(*more: str) -> dict[str, float]:
    return {name: 0.0 for name in BODY.coordinate_names if any(part in name for part in (*STIFF, *more))}


def _check_constraints(result: MotionResult) -> None:
    """Check status and constraints, evaluated again by the program, at all nodes."""
    program, x = result.program, result.x
    assert result.is_solved and result.is_feasible
    rows = program.value(x)[1]
    assert (program.lower - TOLERANCE <= x).all() and (x <= program.upper + TOLERANCE).all()
    assert (rows >= program.row_lower - TOLERANCE).all() and (rows <= program.row_upper + TOLERANCE).all()


def _vertical_impulse(result: MotionResult) -> float:
    """Return the integral of the ground's vertical force (N s), by the trapezoidal rule on 401 instants."""
    times = np.linspace(0.0, result.T, 401)
    at = result.at(times)
    force = ground_reaction(BODY, at.q, at.v, at.a).force
    return float(np.trapezoid(force[:, 1], times))


def _small_walk() -> MotionProblem:
    return walking(step=STEP, planar=True, frozen=_stiff())


@pytest.mark.slow
def test_ipopt_finds_the_same_small_walk() -> None:
    problem = _small_walk()
    found, theirs = problem.solve(tolerance=TOLERANCE), problem.solve("ipopt", tolerance=TOLERANCE)
    assert theirs.objective == pytest.approx(found.objective, rel=1e-4)


def test_a_small_walk_is_solved() -> None:
    problem = _small_walk()
    assert len(problem.model.names) == 15  # four of them are profiles of the contact forces
    result = problem.solve(tolerance=TOLERANCE)
    _check_constraints(result)
    # The step repeats: the mean vertical force is the weight, and the energy does not change.
    assert _vertical_impulse(result) == pytest.approx(9.81 * BODY.mass * result.T, rel=1e-5)
    energy = Stride(result).energy
    assert abs(energy.change) < 1e-6 * energy.positive and abs(energy.residual) < 1e-9 * energy.positive
    pelvis = result.q[:, BODY.coordinate_names.index("tz")]
    assert pelvis[-1] - pelvis[0] == pytest.approx(0.6, abs=1e-9)  # the length of the step
    for name in ("hip_flexion", "knee_flexion", "ankle_flexion"):
        right, left = (result.q[:, BODY.coordinate_names.index(f"{side}_{name}")] for side in ("right", "left"))
        assert right[-1] == pytest.approx(left[0], abs=1e-9) and left[-1] == pytest.approx(right[0], abs=1e-9)


@pytest.mark.slow
def test_a_small_task_is_solved() -> None:
    problem = standing_up(frozen=_stiff("toe"), nodes=13)
    assert len(problem.model.names) == 9
    result = problem.solve(tolerance=TOLERANCE)
    _check_constraints(result)
    assert problem.solve("ipopt", tolerance=TOLERANCE).objective == pytest.approx(result.objective, rel=1e-4)
    # From rest to rest the mean vertical force is the weight; ground and seat are in equilibrium with the body.
    assert _vertical_impulse(result) == pytest.approx(9.81 * BODY.mass * result.T, rel=1e-5)
    forces = equilibrium(result)
    assert np.abs(forces[:, :6]).max() < 1e-8 and np.abs(joint_torques(result) - forces).max() < 1e-8
    hips = BODY.pose(result.q[[0, -1]], "pelvis")[:, 1, 3]
    assert hips == pytest.approx([0.45 + HIP_HEIGHT_ON_SEAT, BODY.pose(BODY.neutral(), "pelvis")[1, 3]], abs=1e-9)


@pytest.mark.slow
def test_trajectories_have_the_torques_that_act_with_ground_and_seat(tmp_path: Path) -> None:
    """Newton-Euler with the trajectory's wrenches gives its torques; the six global coordinates have no force."""
    for problem in (
        _small_walk(),
        standing_up(frozen=_stiff("toe"), nodes=13),
    ):
        result = problem.solve(tolerance=TOLERANCE)
        motion = result.trajectory()
        assert motion.external is not None
        tau = result.robot.inverse_dynamics(motion.q, motion.v, motion.a, motion.external)
        np.testing.assert_allclose(motion.tau, tau, atol=1e-8)
        ankle = BODY.coordinate_names.index("right_ankle_flexion")
        assert np.abs(motion.tau[:, ankle]).max() > 20 * np.abs(result.tau[:, ankle]).max()
        np.testing.assert_array_equal(result.to_dict()["trajectory"]["tau"], motion.tau)
        result.to_csv(tmp_path / "motion.csv")
        read = torsor.Trajectory.load(tmp_path / "motion.csv", robot=result.robot)
        np.testing.assert_array_equal(read.tau, motion.tau)
        assert read.external is not None and np.abs(read.a - motion.a).max() == 0.0
