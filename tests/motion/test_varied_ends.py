"""Cases with other positions at the ends of a motion: arrays for all cases are those of each problem."""

import numpy as np
import pytest

from torsor import library, motion
from torsor.base.errors import ModelError
from torsor.motion.many import with_case
from torsor.motion.varied_ends import varied_ends

LIMITS = motion.Torques(upper=10.0), motion.Positions(lower=-2.5, upper=2.5, hull=True)


def _reach(**end: object) -> motion.MotionProblem:
    ends = motion.Start(q=[0, -2], v=0.0), motion.End(q=[1, -1], **end)
    phase = motion.Phase((0.1, 2.0), points=8)
    return motion.MotionProblem(library.two_link(), phase, motion.Time(), [*ends, *LIMITS])


@pytest.mark.parametrize("end", [{"v": 0.0}, {"v": [0.1, -0.2]}, {}], ids=["at rest", "moving", "free velocity"])
def test_known_points_guesses_and_programs_are_those_of_each_problem(end):
    problem, rng = _reach(**end), np.random.default_rng(0)
    cases = [{"End.q": rng.uniform(-2, 2, 2), "Start.q": rng.uniform(-2, 2, 2).tolist()} for _ in range(5)]
    varied = varied_ends(problem, cases, {}, True)
    assert varied is not None
    for index, case in enumerate(cases):
        alone = with_case(problem, case, index)
        np.testing.assert_allclose(varied.starts[index], alone.guess(), rtol=0, atol=1e-15)
        x = rng.uniform(0.2, 0.4, alone.program.n)
        for one, other in zip(varied.problems[index].program.value(x), alone.program.value(x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(varied.problems[index].conditions[1].q, case["End.q"])


@pytest.mark.parametrize(
    "case", [{"End.v": [0.0, 0.0]}, {"End.q": {"joint1": 1.0}}, {"End.q": 1.0}, {"Torques.upper": 5.0}, {}]
)
def test_other_data_are_left_to_the_problems(case):
    assert varied_ends(_reach(v=0.0), [case], {}, True) is None


def test_positions_beyond_limits_raise_the_error_of_the_problem():
    cases = [{"End.q": [1.0, -1.0]}, {"End.q": [3.0, -1.0]}]
    with pytest.raises(ModelError) as error:
        _reach(v=0.0).solve_many(cases)
    assert "case 1" in str(error.value) and error.value.allowed == "-2.5 to 2.5"
