"""Different terms never share compiled code."""

from dataclasses import dataclass

import casadi as ca

import torsor
from torsor import motion
from torsor.motion.terms.term import Cost
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node_kernels import NodeKernels


@dataclass(frozen=True, eq=False)
class InIntegrand(Cost):
    """The square of each velocity, in the integrand."""

    def integrand(self, node: motion.Node) -> ca.SX:
        return ca.sumsqr(node.v)


@dataclass(frozen=True, eq=False)
class InSquares(Cost):
    """The same cost as squares, of which the compiled Hessian leaves out products of first derivatives."""

    def integrand(self, node: motion.Node) -> ca.SX:
        return ca.SX(0)

    def squares(self, node: motion.Node) -> ca.SX:
        return node.v


def test_equal_costs_in_other_forms_have_other_keys() -> None:
    model = MotionModel(torsor.library.two_link())
    costs = InIntegrand(at=[0.5]), InSquares(at=[0.5]), InIntegrand(at=[0.5])
    first, second, third = (NodeKernels(motion.Node(model), [], [cost]).identity for cost in costs)
    assert first != second
    assert first == third
