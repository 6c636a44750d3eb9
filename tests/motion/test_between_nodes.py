"""Rows that hold at the nodes may be violated between them: equations are refined too, or the status states it."""

import numpy as np

import torsor
from refusals import warned
from torsor import motion

MOTOR = "joint1/motor"


def elastic(**phase: object) -> motion.MotionProblem:
    """Return the minimum-time motion of an arm whose one joint is elastic."""
    arm = torsor.library.planar_chain(1).with_motor("joint1", 2e-3, 10.0, stiffness=300.0)
    ends = motion.Start(q={"joint1": 0.0}, v=0.0), motion.End(q={"joint1": 1.0}, v=0.0)
    made = motion.Phase((0.2, 3.0), points=10, **phase)
    drive = motion.Torques(upper={MOTOR: 20.0})
    return motion.MotionProblem(arm, made, motion.Time(), [*ends, motion.Unactuated(), drive], name="elastic")


def smooth() -> motion.MotionProblem:
    shape = motion.Spline.uniform(10, 5)
    return elastic(degree=5, own={MOTOR: motion.Spline(3, shape.inner)})


def undriven(result: motion.MotionResult) -> float:
    """Return the largest force of the link, which has no drive, by inverse dynamics of the robot."""
    at = result.at(np.linspace(0.0, result.T, 2001))
    return float(np.abs(result.robot.inverse_dynamics(at.q, at.v, at.a)[:, 0]).max())


def test_a_motion_that_is_none_between_the_nodes_is_not_called_optimal() -> None:
    with warned(where="elastic", what="Unactuated is violated"):
        result = elastic().solve()
    assert result.status == "optimal at the nodes only" and result.is_only_at_nodes
    assert undriven(result) > 1.0 and result.max_violation < 1e-6


def test_equations_are_refined_by_control_points() -> None:
    result = smooth().solve(refine=0.05)
    first, last = result.passes[0], result.passes[-1]
    assert first.violation > 0.4 and last.violation <= 0.05 and result.status == "optimal"
    assert undriven(result) < 0.06
    (phase,) = result.problem.stages
    assert phase.spline.count == 15 and (phase.own or {})[MOTOR].count == 13  # ten and eight, and five knots more


def test_what_refinement_cannot_mend_is_said() -> None:
    with warned(fix="a degree two lower (Phase.own)"):
        result = elastic().solve(refine=True)
    assert result.status.startswith("optimal at the nodes only; rows hold to ")
    assert "control points would follow 101 and 10" in result.status


def test_rows_that_are_no_number_between_the_nodes_are_violated() -> None:
    robot = torsor.library.planar_chain(1)

    def root(node: motion.Node) -> object:
        return (node.q[0] - 0.02) * (node.q[0] - 0.03)

    ends = motion.Start(q=0.0, v=0.0), motion.End(q=1.0, v=0.0)
    row = motion.ExpressionConstraint(function=lambda node: root(node) ** 0.5, upper=10.0, name="root")
    phase = motion.Phase(1.0, points=5, nodes=5)
    with warned(what="between the nodes, root is violated by inf of its scale"):
        result = motion.MotionProblem(robot, phase, motion.Effort(), [*ends, row]).solve()
    assert result.max_violation_fine == np.inf and result.to_dict()["max_violation_fine"] is None
