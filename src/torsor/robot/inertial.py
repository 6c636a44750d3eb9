"""Inertial and friction parameters of a robot, in which its forces are linear: the accessor ``robot.inertial``."""

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

R = TypeVar("R")


@dataclass(frozen=True, eq=False, repr=False)
class Inertial(Generic[R]):
    """Inertial and friction parameters, regressors, and base parameters: ``robot.inertial``.

    ``values`` (p,) are m, m c and J (xx, xy, xz, yy, yz, zz) of each link about its origin, then rotor inertia, Coulomb
    and viscous friction of each velocity of each joint; ``names`` are their names.

    Example:
        >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
        >>> dict(zip(robot.inertial.names, robot.inertial.values.round(9).tolist()))["link1.Jzz"]
        4.0
    """

    _closure: LoopClosure
    _replaced: Callable[[ArrayLike], R]
    _known: Sequence[str] = ()  # patterns of parameters of stand-ins, which are no bodies
    _start: Array | None = None  # positions (nq,) whose assembly mode is meant, where the robot has loops

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return Y(q, v, a) (..., nv, p) with inverse_dynamics(q, v, a) = Y @ values.

        Forces of springs and motors are not included: they are not among the parameters.

        Example:
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> tau = robot.inertial.regressor(q, v, a) @ robot.inertial.values
            >>> bool(np.allclose(tau, robot.inverse_dynamics(q, v, a)))
            True
        """
        return self._closure.kernels.call("regressor", q, v, a, out=out)

    def energy_regressor(self, q: ArrayLike, v: ArrayLike, out: Out = None) -> Array:
        """Return h(q, v) (..., p), in J: kinetic energy and energy in gravity = h @ values.

        Columns of friction are zero; the energy of springs and rotor spin is not included. Zero of the potential as in
        ``potential_energy``. Gautier and Khalil 1988.

        Example:
            >>> robot = torsor.library.stanford()
            >>> energy = robot.kinetic_energy(np.ones(6), np.ones(6)) + robot.potential_energy(np.ones(6))
            >>> h = robot.inertial.energy_regressor(np.ones(6), np.ones(6))
            >>> bool(np.allclose(h @ robot.inertial.values, energy))
            True
        """
        return self._closure.kernels.call("energy_regressor", q, v, out=out)

    def power_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return y(q, v, a) (..., p), in W: v . inverse_dynamics(q, v, a) = y @ values.

        It is the rate of ``energy_regressor`` plus the power of friction. Springs and motors as in ``regressor``.

        Example:
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> bool(np.allclose(robot.inertial.power_regressor(q, v, a), v @ robot.inertial.regressor(q, v, a)))
            True
        """
        return self._closure.kernels.call("power_regressor", q, v, a, out=out)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters: "link2.mx" and so on, then "joint3.rotor_inertia", "...coulomb", "...viscous"."""
        return parameter_names(self._closure.mechanism)

    @property
    def values(self) -> Array:
        """The parameters (p,), in the order of ``names``."""
        return parameters(self._closure.mechanism)

    def base(
        self, seed: int = 0, among: Sequence[str] = ("*",), measured: Sequence[str] | None = None
    ) -> BaseParameters:
        """Return the base parameters: the smallest set that determines all forces, which identification can find.

        Parameters that no motion can distinguish are regrouped with those of parent links by rules (Gautier and Khalil
        1990), checked by a QR decomposition of the regressor over random motions. ``among`` names the unknown
        parameters, with * for any letters; others are not regrouped. ``measured`` names the coordinates whose forces
        are known (all by default): those of a free base alone show all parameters of the links (Ayusawa, Venture and
        Nakamura 2014), but no friction of joints. With loops, the forces are those of the active coordinates
        (``robot.closed.regressor``), and "*" alone leaves rotor inertias and friction of passive joints known: name
        them too, "elbow.viscous".

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
        """Return the robot with other parameters (p,), in the order of ``names`` and in their units.

        Mass, centre of mass and inertia of each link follow from m, m c and J about its origin. Springs and motors
        stay. Inconsistent inertias raise an error, unless the link already allows them (``Link.strict``).

        Example:
            >>> robot = torsor.library.two_link()
            >>> heavy = robot.inertial.replaced(2 * robot.inertial.values)
            >>> heavy.links[1].mass, heavy.links[1].com.round(9).tolist()
            (1.0, [-0.2, 0.0, 0.0])
        """
        return self._replaced(values)
