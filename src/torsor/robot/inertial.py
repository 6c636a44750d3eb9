"""Inertial and friction parameters of a robot, on which its forces depend linearly: ``robot.inertial``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import indices_of
from torsor.dynamics import parameter_names, parameters
from torsor.robot.base_parameters import BaseParameters, base_parameters
from torsor.robot.closed_loops.closure import LoopClosure
from torsor.robot.closed_loops.regressor import closed_base_parameters
from torsor.robot.kernels import Out
from torsor.robot.method_names import Accessor

R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class Inertial(Accessor, Generic[R]):
    """Inertial and friction parameters, regressors and base parameters: ``robot.inertial``.

    ``values`` (p,) contains m, m c and J (xx, xy, xz, yy, yz, zz) of each link about its origin, then rotor inertia,
    Coulomb friction and viscous friction for each velocity of each joint. ``names`` (p,) are the parameter names.

    Example:
        >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
        >>> dict(zip(robot.inertial.names, robot.inertial.values.round(9).tolist()))["link1.Jzz"]
        4.0
    """

    _closure: LoopClosure
    _replaced: Callable[[ArrayLike], R]
    _known: Sequence[str] = ()  # patterns of the parameters of auxiliary links, which are not bodies
    _start: Array | None = None  # positions (nq,) that select the assembly mode of a robot with loops

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return Y(q, v, a) (..., nv, p) with inverse_dynamics(q, v, a) = Y @ values.

        Spring and motor forces are not included, because they do not depend on these parameters.

        Example:
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> tau = robot.inertial.regressor(q, v, a) @ robot.inertial.values
            >>> bool(np.allclose(tau, robot.inverse_dynamics(q, v, a)))
            True
        """
        return self._closure.kernels.call("regressor", q, v, a, out=out)

    def energy_regressor(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return h(q, v) (..., p), where h @ values is the sum of kinetic and gravitational energy, in J.

        Friction columns are zero. The energies of springs and of rotor spin are not included. The gravitational energy
        has the same zero as in ``potential_energy``. See Gautier and Khalil 1988.

        Example:
            >>> robot = torsor.library.stanford()
            >>> energy = robot.kinetic_energy(np.ones(6), np.ones(6)) + robot.potential_energy(np.ones(6))
            >>> h = robot.inertial.energy_regressor(np.ones(6), np.ones(6))
            >>> bool(np.allclose(h @ robot.inertial.values, energy))
            True
        """
        return self._closure.kernels.call("energy_regressor", q, v, out=out)

    def power_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return y(q, v, a) (..., p), where y @ values = v . inverse_dynamics(q, v, a), in W.

        It is the time derivative of ``energy_regressor`` plus the friction power. Springs and motors are treated
        as in ``regressor``.

        Example:
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> bool(np.allclose(robot.inertial.power_regressor(q, v, a), v @ robot.inertial.regressor(q, v, a)))
            True
        """
        return self._closure.kernels.call("power_regressor", q, v, a, out=out)

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names: "link2.mx" and so on, then "joint3.rotor_inertia", "...coulomb", "...viscous"."""
        return parameter_names(self._closure.mechanism)

    @property
    def values(self) -> Array:
        """Parameters (p,), in the order of ``names``."""
        return parameters(self._closure.mechanism)

    def base(
        self, seed: int = 0, among: Sequence[str] = ("*",), measured: Sequence[str] | None = None
    ) -> BaseParameters:
        """Return the base parameters: the smallest identifiable set that determines all forces.

        Parameters that no motion can distinguish are regrouped with parameters of parent links by rules (Gautier and
        Khalil 1990). A QR decomposition of the regressor over random motions (from ``seed``) checks the result.
        ``among`` names the unknown parameters, with * as a wildcard; others are not regrouped. ``measured`` names the
        coordinates whose forces are known; the default is all. The forces of a free base alone determine all base
        parameters of the links (Ayusawa, Venture and Nakamura 2014), but no joint friction.

        If the robot has loops, the forces are those of the active coordinates (``robot.closed.regressor``). The
        pattern "*" alone then treats rotor inertias and friction of passive joints as known. Name them too if they are
        unknown, for example "elbow.viscous".

        Example:
            >>> found = torsor.library.planar_chain(2).without_friction().inertial.base()
            >>> [name for name in found.names if name.startswith("link2")], found.by_rule
            (['link2.mx', 'link2.my', 'link2.Jzz'], True)
        """
        mechanism = self._closure.mechanism
        if mechanism.loops:
            return closed_base_parameters(self._closure, seed, among, measured, self._known, self._start)
        rows = indices_of(measured, mechanism.coordinate_names, f"{mechanism.name}: measured")
        return base_parameters(self._closure.kernels, seed, among, rows)

    def replaced(self, values: ArrayLike) -> R:
        """Return a copy with other parameters (p,), in the order of ``names`` and in their units.

        Mass, centre of mass and inertia of each link follow from m, m c and J about its origin. Springs and motors are
        kept. ModelError is raised for inconsistent inertias, unless the link already allows them (``Link.strict``).

        Example:
            >>> robot = torsor.library.two_link()
            >>> heavy = robot.inertial.replaced(2 * robot.inertial.values)
            >>> heavy.links[1].mass, heavy.links[1].com.round(9).tolist()
            (1.0, [-0.2, 0.0, 0.0])
        """
        return self._replaced(values)
