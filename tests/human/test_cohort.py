"""Walks of several people, solved together: optima of each problem, with the mean and the spread of their curves."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.human import Cohort, Step, cohort, walking
from torsor.human.body.coordinates import GLOBAL
from torsor.motion import MotionProblem

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*between the nodes")]

MOVING = ("hip_flexion", "knee_flexion", "ankle_flexion", "toe_extension")


def _walks() -> list[MotionProblem]:
    """Return planar walks of two people at two speeds, in which only the legs move."""
    made = []
    for height, mass, speed in ((1.741, 73.0, 1.2), (1.65, 60.0, 1.3)):
        body = torsor.library.human(height, mass)
        still = {name: 0.0 for name in body.coordinate_names if name not in GLOBAL and not name.endswith(MOVING)}
        made.append(walking(body, Step(speed=speed, timing="given"), planar=True, frozen=still))
    return made


@pytest.fixture(scope="module")
def walks() -> Cohort:
    return cohort(_walks(), tolerance=1e-7)


def test_walks_of_a_cohort_are_optima_of_each_problem_alone(walks: Cohort) -> None:
    for problem, result in zip(_walks(), walks.results, strict=True):
        alone = problem.solve(start=result, tolerance=1e-7)
        assert result.is_solved and result.max_violation < 1e-6
        assert result.objective == pytest.approx(alone.objective, rel=1e-6)
        sideways = problem.model.names.index("left of right foot")  # forces that planar motions leave open
        known = np.setdiff1d(np.arange(len(alone.x)), alone.program.layout.phases[0].columns[sideways])
        np.testing.assert_allclose(result.x[known], alone.x[known], atol=1e-4)


def test_curves_are_the_mean_and_standard_deviation_over_the_strides(walks: Cohort) -> None:
    knee, own = walks.curves["knee_flexion"], [stride.curve(walks.curves["knee_flexion"]) for stride in walks.strides]
    np.testing.assert_allclose(knee.mean, np.mean(own, axis=0)[::4], atol=1e-9)
    np.testing.assert_allclose(knee.sd, np.std(own, axis=0)[::4], atol=1e-9)
    np.testing.assert_allclose(walks.quantities["step_length"], [stride.step.length for stride in walks.strides])


def test_the_figure_has_a_band_and_each_walk_in_every_panel(walks: Cohort, tmp_path: Path) -> None:
    figure = walks.plot(tmp_path / "cohort.png")
    assert (tmp_path / "cohort.png").stat().st_size > 10_000
    assert len(figure.axes) == 11
    assert all(len(axes.lines) == 3 and len(axes.collections) == 1 for axes in figure.axes)


def test_other_problems_and_empty_cohorts_are_refused() -> None:
    arm = torsor.library.two_link()
    ends = [torsor.motion.Start(q=0.0, v=0.0), torsor.motion.End(q=1.0, v=0.0)]
    with pytest.raises(torsor.ModelError, match="walk"):
        cohort([torsor.motion.MotionProblem(arm, torsor.motion.Phase(1.0), torsor.motion.Effort(), ends)])
    with pytest.raises(torsor.ModelError, match="there are no walks"):
        cohort([])
    with refused(value="middle", where="cohort"):
        cohort(_walks()[:1], side="middle")
