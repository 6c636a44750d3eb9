"""Renamed public names still work, with a DeprecationWarning that names the new one."""

from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor import motion

ENDS = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0), motion.Torques(upper=10.0, name="weak")]
PHASE = motion.Phase((0.1, 2.0), points=6)


def test_expression_rows_are_expression_constraints() -> None:
    with pytest.warns(DeprecationWarning, match=r"use motion\.ExpressionConstraint"):
        assert motion.ExpressionRows is motion.ExpressionConstraint
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = motion.Nothing


def test_yielding_is_the_relaxation_order() -> None:
    with pytest.warns(DeprecationWarning, match="yielding= is deprecated; use relaxation_order="):
        problem = motion.MotionProblem(torsor.library.two_link(), PHASE, motion.Time(), ENDS, yielding=[["weak"]])
    assert problem.relaxation_order == [["weak"]]
    assert problem.with_phases(motion.Phase(1.0)).relaxation_order == [["weak"]]  # and no second warning


def test_files_with_yielding_are_read(tmp_path: Path) -> None:
    path = tmp_path / "reach.toml"
    motion.MotionProblem(torsor.library.two_link(), PHASE, motion.Time(), ENDS, relaxation_order=[["weak"]]).save(path)
    path.write_text(path.read_text().replace("relaxation_order", "yielding"))
    with pytest.warns(DeprecationWarning, match="yielding= is deprecated"):
        assert motion.load_problem(path).relaxation_order == (("weak",),)


def test_old_names_of_attributes_and_arguments_work() -> None:
    problem = motion.MotionProblem(torsor.library.two_link(), PHASE, [motion.Time(), motion.Effort()], ENDS)
    with pytest.warns(DeprecationWarning, match="use model"):
        assert problem.subject is problem.model
    with pytest.warns(DeprecationWarning, match="use of_fractions"):
        moments = motion.Moments.of_shares(problem, problem.guess(), [np.linspace(0.0, 1.0, 3)])
    assert moments.s.tolist() == [0.0, 0.5, 1.0]
    with pytest.warns(DeprecationWarning, match="use weights="):
        (old,) = motion.pareto(problem, shares=[0.9])
    assert old.T == motion.pareto(problem, [0.9])[0].T


def test_warnings_point_at_the_line_that_uses_the_old_name() -> None:
    """Python shows a DeprecationWarning by default only where the line is in the user's script."""
    robot = torsor.library.two_link()
    with pytest.warns(DeprecationWarning) as caught:
        robot.with_coupling("belt", shares={"joint1": 1.0, "joint2": 1.0})
        _ = torsor.Coupling("belt", {"joint1": 1.0}).shares
        motion.MotionProblem(robot, PHASE, motion.Time(), ENDS, yielding=[["weak"]])
    assert [each.filename for each in caught] == [__file__] * 3
    with pytest.raises(torsor.ModelError, match="give coefficients only"):
        robot.with_coupling("belt", {"joint1": 1.0}, shares={"joint1": 2.0})
