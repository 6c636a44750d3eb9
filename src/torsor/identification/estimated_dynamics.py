"""The equations of motion of an estimate: a robot with other base parameters, which need not be those of bodies.

tau = M(q) a + h(q, v) = inverse dynamics of the given robot + Y(q, v, a) d        d: change of the base parameters
"""

from collections.abc import Sequence

import casadi as ca

from torsor.base.arrays import Array
from torsor.compiler import compile
from torsor.robot.robot import Robot


def symbolic_forces(robot: Robot, columns: Sequence[int]) -> tuple[list[ca.SX], ca.SX]:
    """Return symbols q, v, a (n,) and d (b,), and the forces (n,) of parameters that are d larger in these columns.

    Example:
        >>> inputs, tau = symbolic_forces(torsor.library.two_link(), [0, 3])
        >>> [each.numel() for each in inputs], tau.numel()
        ([2, 2, 2, 2], 2)
    """
    q, v, a = (ca.SX.sym(name, robot.nv) for name in ("q", "v", "a"))
    d = ca.SX.sym("d", len(columns))
    tau = robot.function("inverse_dynamics")(q, v, a)
    return [q, v, a, d], ca.cse(tau + robot.function("regressor")(q, v, a)[:, list(columns)] @ d)


class EstimatedDynamics:
    """Bias forces and mass matrices of a robot whose parameters in some ``columns`` (b) of its regressor are changed.

    Example:
        >>> arm = torsor.library.two_link()
        >>> h, M = EstimatedDynamics(arm, [0]).terms(np.ones((1, 2)), np.ones((1, 2)), np.zeros(1))
        >>> bool(np.allclose(M[0], arm.mass_matrix([1, 1])))
        True
    """

    def __init__(self, robot: Robot, columns: Sequence[int]) -> None:
        n, b = robot.nv, len(columns)
        inputs, tau = symbolic_forces(robot, columns)
        a = inputs[2]
        found = ca.cse([ca.substitute(tau, a, ca.SX.zeros(n)), ca.jacobian(tau, a)])
        inputs = [inputs[0], inputs[1], inputs[3]]
        function = ca.Function("estimated_dynamics", inputs, [ca.densify(each) for each in found])
        self._kernel = compile(function, inputs=[(n,), (n,), (b,)], outputs=[(n,), (n, n)])

    def terms(self, q: Array, v: Array, d: Array) -> tuple[Array, Array]:
        """Return h (W, n) and M (W, n, n) for states q, v (W, n) and the change d (b,) of the parameters."""
        h, M = self._kernel(q, v, d)
        return h, M
