"""Protocols that identification, control and the viewer require of robots, parallel robots and drives."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.robot.base_parameters import BaseParameters
from torsor.robot.kernels import Out

R_co = TypeVar("R_co", covariant=True)


class LinearInParameters(Protocol[R_co]):
    """A model whose forces are linear in inertial and friction parameters, such as ``robot.inertial``."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters (p,)."""

    @property
    def values(self) -> Array:
        """Parameters (p,)."""

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Out = None) -> Array:
        """Return Y (..., n, p), where the forces are Y @ values."""

    def base(
        self, seed: int = 0, among: Sequence[str] = ("*",), measured: Sequence[str] | None = None
    ) -> BaseParameters:
        """Return the smallest set of parameters that determines the forces."""

    def replaced(self, values: ArrayLike) -> R_co:
        """Return a copy with other parameters (p,)."""


class Dynamics(Protocol):
    """Inverse dynamics in the coordinates of a tree, or in those of the drives of a closed mechanism."""

    @property
    def name(self) -> str:
        """Name of the robot."""

    @property
    def nq(self) -> int:
        """Number of positions."""

    @property
    def nv(self) -> int:
        """Number of velocities."""

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the velocities."""

    @property
    def inertial(self) -> LinearInParameters["Dynamics"]:
        """Parameters on which the forces depend linearly."""

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: Maybe = None, /) -> Array:
        """Return the forces of a motion; for a parallel robot, q, v and a describe its platform."""
