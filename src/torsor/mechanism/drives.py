"""Springs on joints, and motors with rotor inertia, gear and, in elastic joints, a spring after the gear."""

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.base.checks import LARGEST, direction, name_of, number
from torsor.base.errors import ModelError, describe, warn
from torsor.mechanism.laws import checked_stiffness
from torsor.mechanism.part import Part


@dataclass(frozen=True, eq=False)
class Spring(Part):
    """A spring on a joint: its force is -(K(x) x + D x'), where x is the deflection of the joint from ``rest``.

    ``stiffness`` K (N m/rad or N/m) is a number or a function of x: a CasADi expression of one symbol, or text in x.
    ``damping`` D is in N m s/rad or N s/m, ``rest`` in rad or m.

    Example:
        >>> Spring(stiffness="100 + 500 * x**2", rest=0.5).rest
        0.5
    """

    stiffness: float | str
    damping: float = 0.0
    rest: float = 0.0
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        where = self.source or "spring"
        self._set(
            stiffness=checked_stiffness(self.stiffness, where),
            damping=number(self.damping, where, "damping", least=0, most=LARGEST),
            rest=number(self.rest, where, "rest", least=-LARGEST, most=LARGEST),
        )


@dataclass(frozen=True, eq=False)
class Motor(Part):
    """A motor that drives a joint: its rotor spins ``ratio`` times as fast as the joint, on the link ``carrier``.

    ``inertia`` (kg m^2) is that of the rotor about its spin axis; its mass, and its inertia when it does not spin, are
    part of the carrier. ``axis`` is in the carrier's axes. With a ``stiffness`` (as in ``Spring``) the joint is
    elastic: the rotor has its own coordinate, the motor angle theta after the gear, and the spring drives the joint
    with K(x) x + D x' where x = theta - q. ``coulomb``, ``viscous`` and ``smooth`` are the friction of the motor,
    measured after the gear.

    Example:
        >>> Motor("upper_arm", inertia=4e-4, ratio=100.0, stiffness=1e4).is_elastic
        True
    """

    carrier: str
    inertia: float
    ratio: float = 1.0
    axis: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    stiffness: float | str | None = None
    damping: float = 0.0
    coulomb: float = 0.0
    viscous: float = 0.0
    smooth: float = 0.0
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        name_of(self.carrier, "carrier of a motor", self.source)
        where = self.source or f"motor on {self.carrier!r}"
        names = ("inertia", "damping", "coulomb", "viscous", "smooth")
        values: dict[str, Any] = {n: number(getattr(self, n), where, n, least=0, most=LARGEST) for n in names}
        ratio = number(self.ratio, where, "ratio", least=-LARGEST, most=LARGEST)
        self._set(axis=direction(self.axis, where, "axis"), ratio=ratio, **values)
        if abs(self.ratio) < 1 / LARGEST:
            found = f"ratio is {self.ratio:g}: the motor would not drive its joint"
            allowed, fix = f"other numbers, from {1 / LARGEST:g} in size", "turns of the rotor for one of the joint"
            raise ModelError(describe(found, where=where, allowed=allowed, fix=fix))
        if self.stiffness is None:
            if self.damping:
                fix = "give a stiffness, or use viscous"
                raise ModelError(describe("damping of a transmission without a spring", where=where, fix=fix))
            return
        self._set(stiffness=checked_stiffness(self.stiffness, where))
        if not (self.stiffness and self.inertia):
            found = f"an elastic joint with stiffness {self.stiffness}, inertia {self.inertia}"
            raise ModelError(describe(found, where=where, allowed="none of them 0"))

    @property
    def is_elastic(self) -> bool:
        """Whether a spring is between the motor and the joint."""
        return self.stiffness is not None

    def warn_if_too_heavy(self, joint: str, inertia: NDArray[np.float64]) -> None:
        """Warn if the rotor's inertia is larger than the carrier's ``inertia`` (3 x 3, about its centre of mass)."""
        whole = float(self.axis @ inertia @ self.axis)
        if self.inertia > whole * (1 + 1e-9):
            found = (
                f"the rotor of {joint!r} has {self.inertia:.3g} kg m^2 about its axis, its carrier {whole:.3g} in all"
            )
            fix = f"add the motor to {self.carrier!r}: with_motor(..., mass=, place=, moments=), or robot.with_payload"
            warn(describe(found, allowed="no more than the carrier", fix=fix))


def saturated_force(tau: ca.SX, limit: NDArray[np.float64]) -> ca.SX:
    """Return forces (n x 1) of drives within -limit and limit (n,), where inf stands for none; NaN stays NaN.

    The minimum and maximum of CasADi, as those of C, would turn NaN into a full force.

    Example:
        >>> tau = ca.SX([3.0, -3.0, np.nan, 9.0])
        >>> saturated_force(tau, np.array([2.0, 2.0, 2.0, np.inf]))
        SX([2, -2, nan, 9])
    """
    found = [tau[k] for k in range(tau.numel())]
    for k, most in enumerate(limit):
        if np.isfinite(most):
            found[k] = ca.if_else(tau[k] > most, most, ca.if_else(tau[k] < -most, -most, tau[k]))
    return ca.vertcat(ca.SX.zeros(0, 1), *found)
