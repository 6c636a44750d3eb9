"""Centre of mass and centroidal momentum of a robot: the accessor ``robot.centroidal``."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.robot.kernels import Out, RobotKernels


@dataclass(frozen=True, eq=False, repr=False)
class Centroidal:
    """Rates of the centre of mass and of the momentum about it: ``robot.centroidal``.

    All results are in base axes, at the centre of mass of the moving links. ``robot.center_of_mass`` and
    ``robot.momentum`` are the quantities themselves.
    """

    _kernels: RobotKernels

    def momentum_matrix(self, q: ArrayLike, out: Out = None) -> Array:
        """Return A (..., 6, nv), A v = ``robot.momentum``: angular about the centre of mass, then linear, in base axes.

        Example:
            >>> (torsor.library.two_link().centroidal.momentum_matrix([0.0, 0.0]).round(9) + 0.0)[[2, 4]].tolist()
            [[0.24, 0.12], [0.4, 0.1]]
        """
        return self._kernels.call("centroidal_momentum_matrix", q, out=out)

    def momentum_matrix_rate(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the rate (..., 6, nv) of ``momentum_matrix``: momentum changes at A a + A' v.

        Example:
            >>> robot, q, v = torsor.library.two_link(), [0.3, 0.5], [1.0, 2.0]
            >>> bias = robot.centroidal.momentum_matrix_rate(q, v) @ v
            >>> bool(np.allclose(bias, robot.centroidal.momentum_bias(q, v)))
            True
        """
        return self._kernels.call("centroidal_momentum_matrix_rate", q, v, out=out)

    def momentum_bias(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return A' v (..., 6), the rate of ``momentum`` at zero acceleration: moment (N m), then force (N).

        Example:
            >>> (torsor.library.two_link().centroidal.momentum_bias([0.0, 0.0], [1.0, 0.0]).round(9) + 0.0).tolist()
            [0.0, 0.0, 0.0, -0.4, 0.0, 0.0]
        """
        return self._kernels.call("centroidal_momentum_bias", q, v, out=out)

    def inertia(self, q: ArrayLike, out: Out = None) -> Array:
        """Return the locked inertia (..., 6, 6) of the moving links about the centre of mass, in base axes.

        All joints locked, the robot is one rigid body: rotational inertia (kg m^2) in the first block, mass (kg) in the
        second; rotors that spin are not in it.

        Example:
            >>> torsor.library.two_link().centroidal.inertia([0.0, 0.0]).diagonal().round(9).tolist()
            [0.2, 0.24, 0.24, 1.0, 1.0, 1.0]
        """
        return self._kernels.call("composite_inertia", q, out=out)

    def jacobian(self, q: ArrayLike, out: Out = None) -> Array:
        """Return J (..., 3, nv): J v is the velocity of the centre of mass, in base axes.

        Example:
            >>> torsor.library.two_link().centroidal.jacobian([0.0, 0.0])[1].round(9).tolist()
            [0.4, 0.1]
        """
        return self._kernels.call("center_of_mass_jacobian", q, out=out)

    def jacobian_rate(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the rate (..., 3, nv) of ``jacobian``.

        Example:
            >>> torsor.library.two_link().centroidal.jacobian_rate([0.0, 0.0], [1.0, 0.0])[0].round(9).tolist()
            [-0.4, -0.1]
        """
        return self._kernels.call("center_of_mass_jacobian_rate", q, v, out=out)

    def velocity(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return the velocity (..., 3) of the centre of mass, m/s in base axes.

        Example:
            >>> torsor.library.two_link().centroidal.velocity([0.0, 0.0], [1.0, 0.0])[1].round(9).tolist()
            0.4
        """
        return self._kernels.call("center_of_mass_velocity", q, v, out=out)

    def acceleration(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return the acceleration (..., 3) of the centre of mass, m/s^2 in base axes, without gravity.

        Example:
            >>> robot = torsor.library.two_link()
            >>> robot.centroidal.acceleration([0.0, 0.0], [1.0, 0.0], [0.0, 0.0])[0].round(9).tolist()
            -0.4
        """
        return self._kernels.call("center_of_mass_acceleration", q, v, a, out=out)
