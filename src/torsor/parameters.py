"""The parameters of a robot in which its forces are linear, and those of them that a motion can show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics import parameter_names, parameters
from torsor.sensitivities import Sensitivities

__all__ = ["BaseParameters", "Parametrised"]

Array = NDArray[np.float64]

# A column that the others give to this share of its length is one of them; rounding is far below, geometry far above.
DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The parameters that forces depend on: each one of the robot's own, with others that always come with it.

    ``names`` say what each is made of, ``columns`` (b,) where it has its column in the regressor, ``matrix`` (b, p)
    makes their ``values`` (b,) from all parameters: tau = Y[:, columns] @ values.
    """

    names: tuple[str, ...]
    columns: NDArray[np.intp]
    matrix: Array
    values: Array

    def __len__(self) -> int:
        return len(self.names)


class Parametrised(Sensitivities):
    """A robot with its parameters, and the matrix of the motion that they are multiplied with."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters: "link2.mx" and so on, then "joint3.rotor_inertia", "...coulomb", "...viscous"."""
        return parameter_names(self)

    def parameters(self) -> Array:
        """Return the parameters (p,): m, m c, J (xx, xy, xz, yy, yz, zz) of each link about its origin, then drives.

        Behind those of the links come rotor inertia, Coulomb and viscous friction of each velocity of each joint.

        Example:
            >>> import torsor
            >>> robot = torsor.library.planar_chain(1, length=2.0, mass=3.0)
            >>> dict(zip(robot.parameter_names, robot.parameters().round(9).tolist()))["link1.Jzz"]
            4.0
        """
        return parameters(self)

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Return Y(q, v, a) (..., nv, p) with inverse_dynamics(q, v, a) = Y @ parameters().

        What springs and motors take comes on top: they are not among the parameters.

        Example:
            >>> import torsor
            >>> robot = torsor.library.stanford()
            >>> q, v, a = np.ones(6), np.ones(6), np.ones(6)
            >>> bool(np.allclose(robot.regressor(q, v, a) @ robot.parameters(), robot.inverse_dynamics(q, v, a)))
            True
        """
        return self._call("regressor", q, v, a)

    def base_parameters(self, seed: int = 0) -> BaseParameters:
        """Return the smallest set of parameters that gives all forces: what identification can find, and no more.

        Columns of the regressor that no motion tells apart from others are found numerically, over many random motions,
        and regrouped with those of the links before: Khalil's regrouping (document 003, section 3), for any joints.

        Example:
            >>> import torsor
            >>> found = torsor.library.planar_chain(2).without_friction().base_parameters()
            >>> [name for name in found.names if name.startswith("link2")]
            ['link2.mx', 'link2.my', 'link2.Jzz']
        """
        rng, p = np.random.default_rng(seed), len(self.parameter_names)
        count = 4 * p // max(self.nv, 1) + 10
        q = self._call("integrate", self.neutral(), rng.normal(size=(count, self.nv)))
        v, a = rng.normal(size=(2, count, self.nv))
        Y = self.to(dtype="float64").regressor(q, v, a).reshape(-1, p)
        # Masses last: of what cannot be told apart, moments are kept, and masses go with them.
        preferred = [10 * link + k for link in range(len(self.links)) for k in (9, 7, 4, 5, 6, 8, 1, 2, 3, 0)]
        kept, matrix = _independent(Y, [*preferred, *range(len(preferred), p)])
        names = tuple(_name(row, self.parameter_names, column) for row, column in zip(matrix, kept, strict=True))
        return BaseParameters(names, np.array(kept, dtype=np.intp), matrix, matrix @ self.parameters())


def _independent(Y: Array, order: list[int]) -> tuple[list[int], Array]:
    """Return columns that span all others, the first in that order, and how much of each column each stands for."""
    scale = np.linalg.norm(Y, axis=0)
    largest = scale.max(initial=0.0)
    basis: list[Array] = []
    kept: list[int] = []
    for k in order:
        if scale[k] <= DEPENDENT * largest:
            continue
        rest = Y[:, k] / scale[k]
        for _ in range(2):  # twice is enough to be orthogonal to rounding
            for b in basis:
                rest = rest - (b @ rest) * b
        length = float(np.linalg.norm(rest))
        if length > DEPENDENT:
            basis.append(rest / length)
            kept.append(k)
    kept.sort()
    shares = np.linalg.lstsq(Y[:, kept], Y, rcond=None)[0] if kept else np.zeros((0, Y.shape[1]))
    return kept, np.where(np.abs(shares) < 1e-9 * max(1.0, np.abs(shares).max(initial=0.0)), 0.0, shares)


def _name(row: Array, names: tuple[str, ...], column: int) -> str:
    """Return what a base parameter is made of: its own name first."""
    parts = [names[column]]
    for k in np.flatnonzero(row):
        if k != column:
            share = row[k]
            size = "" if abs(abs(share) - 1) < 1e-9 else f"{abs(share):.6g} "
            parts.append(f"{'+' if share > 0 else '-'} {size}{names[k]}")
    return " ".join(parts)
