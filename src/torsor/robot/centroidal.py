"""Centre of mass and centroidal momentum of a robot: the accessor ``robot.centroidal``."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.robot.kernels import Out, RobotKernels
from torsor.robot.method_names import Accessor


@dataclass(frozen=True, eq=False, repr=False)
class Centroidal(Accessor):
    """Centroidal momentum and motion of the centre of mass: ``robot.centroidal``.

    All results are in base axes, at the centre of mass of the moving links. ``robot.center_of_mass`` and
    ``robot.momentum`` return the centre of mass and the momentum themselves.
    """

    _kernels: RobotKernels

    def momentum_matrix(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the centroidal momentum matrix A (..., 6, nv), in base axes: A v = ``robot.momentum``.

        Example:
            >>> (torsor.library.two_link().centroidal.momentum_matrix([0.0, 0.0]).round(9) + 0.0)[[2, 4]].tolist()
            [[0.24, 0.12], [0.4, 0.1]]
        """
        return self._kernels.call("centroidal_momentum_matrix", q, out=out)

    def momentum_matrix_rate(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the time derivative A' (..., 6, nv) of ``momentum_matrix``; the momentum rate is A a + A' v.

        Example:
            >>> robot, q, v = torsor.library.two_link(), [0.3, 0.5], [1.0, 2.0]
            >>> bias = robot.centroidal.momentum_matrix_rate(q, v) @ v
            >>> bool(np.allclose(bias, robot.centroidal.momentum_bias(q, v)))
            True
        """
        return self._kernels.call("centroidal_momentum_matrix_rate", q, v, out=out)

    def momentum_bias(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return A' v (..., 6), the time derivative of ``momentum`` at zero acceleration: moment (N m), then force (N).

        Example:
            >>> (torsor.library.two_link().centroidal.momentum_bias([0.0, 0.0], [1.0, 0.0]).round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, -0.4, 0.0, 0.0]
        """
        return self._kernels.call("centroidal_momentum_bias", q, v, out=out)

    def inertia(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the locked inertia (..., 6, 6) of the moving links about the centre of mass, in base axes.

        It is the inertia of the rigid body that the robot forms with all joints locked. The upper left block is the
        rotational inertia (kg m^2), and the lower right block is the mass (kg) on its diagonal. Rotor inertias are not
        included.

        Example:
            >>> torsor.library.two_link().centroidal.inertia([0.0, 0.0]).diagonal().round(9).tolist()
            [0.2, 0.24, 0.24, 1.0, 1.0, 1.0]
        """
        return self._kernels.call("composite_inertia", q, out=out)

    def jacobian(self, q: ArrayLike, out: Out = None) -> Array:
        """Return J (..., 3, nv), where J v is the velocity of the centre of mass in base axes.

        Example:
            >>> torsor.library.two_link().centroidal.jacobian([0.0, 0.0])[1].round(9).tolist()
            [0.4, 0.1]
        """
        return self._kernels.call("center_of_mass_jacobian", q, out=out)

    def jacobian_rate(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the time derivative (..., 3, nv) of ``jacobian``.

        Example:
            >>> torsor.library.two_link().centroidal.jacobian_rate([0.0, 0.0], [1.0, 0.0])[0].round(9).tolist()
            [-0.4, -0.1]
        """
        return self._kernels.call("center_of_mass_jacobian_rate", q, v, out=out)

    def velocity(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the velocity (..., 3) of the centre of mass, in m/s, in base axes.

        Example:
            >>> torsor.library.two_link().centroidal.velocity([0.0, 0.0], [1.0, 0.0])[1].round(9).tolist()
            0.4
        """
        return self._kernels.call("center_of_mass_velocity", q, v, out=out)

    def acceleration(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return the acceleration (..., 3) of the centre of mass, in m/s^2, in base axes, without gravity.

        Example:
            >>> robot = torsor.library.two_link()
            >>> robot.centroidal.acceleration([0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[0].round(9).tolist()
            -0.4
        """
        return self._kernels.call("center_of_mass_acceleration", q, v, a, out=out)
