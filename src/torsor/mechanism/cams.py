"""Joints that a curve guides: a turn or a slide x = f(q) by a function of a coordinate, as of a cam.

With f' and f'' the derivatives of the function, x' = f' q' and x'' = f' q'' + f'' q'^2. Several of them may have one
coordinate: the knee of a skeleton turns and slides by functions of one angle (Rajagopal et al. 2016).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.checks import LARGEST, frozen_array, real_array
from torsor.base.errors import ModelError, describe
from torsor.mechanism.curves import IDENTITY, Curve
from torsor.mechanism.flexible import Flexible
from torsor.mechanism.joints import JointKind
from torsor.spatial import Matrix, Vector, about_z, matrix, stack
from torsor.spatial.vectors import is_symbolic


@dataclass(frozen=True, eq=False)
class _Guided(JointKind):
    """A motion along or about z by ``outer`` (``inner`` (q))."""

    inner: Curve = IDENTITY
    outer: Curve = IDENTITY

    def _motion(self, q: Vector) -> tuple[Any, Any, Any]:
        """Return x, its slope and its second derivative."""
        inner: Any = self.inner.traced if is_symbolic(q) else self.inner
        outer: Any = self.outer.traced if is_symbolic(q) else self.outer
        u, first, second = inner(q[0])
        x, slope, bend = outer(u)
        return x, slope * first, bend * first * first + slope * second

    def subspace(self, q: Vector, pitch: float) -> Matrix:
        return self._column(self._motion(q)[1])

    def subspace_rate(self, q: Vector, v: Vector, pitch: float) -> Matrix:
        return self._column(self._motion(q)[2] * v[0])

    def _column(self, slope: Any) -> Matrix:
        """Return the motion subspace (6 x 1) of a slope."""
        raise NotImplementedError


class _GuidedTurn(_Guided):
    _invisible = (3, 3), (2, 3), (2, 2)  # as for a revolute joint

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return about_z(self._motion(q)[0]), np.zeros(3)

    def _column(self, slope: Any) -> Matrix:
        return matrix([[0], [0], [slope], [0], [0], [0]])


class _GuidedSlide(_Guided):
    _invisible = (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)  # as for a prismatic joint

    def transform(self, q: Vector, pitch: float) -> tuple[Matrix, Vector]:
        return np.eye(3), stack(0.0, 0.0, self._motion(q)[0])

    def _column(self, slope: Any) -> Matrix:
        return matrix([[0], [0], [0], [0], [0], [slope]])


@dataclass(frozen=True, eq=False)
class Cam(Flexible):
    """What a joint of type "flexible" needs that turns, or slides, by a function f of its coordinate.

    ``turns`` is (True,) for a turn about the joint axis and (False,) for a slide along it. The function (rad or m) is
    a polynomial, highest power first, and a sum of truncated ``powers`` (x, factor, n), each factor max(q - x, 0)^n
    (``Curve``). Where ``inner_polynomial`` is given, q is replaced by that function of the coordinate.

    Example:
        >>> from torsor.mechanism import Joint
        >>> cam = Cam((False,), [0.02, 0.0, 0.1])
        >>> slide = Joint("slide", "flexible", "thigh", "shank", axis=(1, 0, 0), flexible=cam)
        >>> slide.kind.transform(np.array([2.0]), 0.0)[1].round(12).tolist()
        [0.0, 0.0, 0.18]
    """

    turns: tuple[bool, ...]
    polynomial: ArrayLike
    powers: ArrayLike = ()
    inner_polynomial: ArrayLike = IDENTITY.polynomial
    inner_powers: ArrayLike = ()
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        where = self.source or "cam"
        for name in ("polynomial", "inner_polynomial"):
            given = np.atleast_1d(real_array(getattr(self, name), where, name))
            self._set(**{name: frozen_array(given, (given.size,), where, name, most=LARGEST)})
        for name in ("powers", "inner_powers"):
            given = real_array(getattr(self, name), where, name)
            if given.size and (given.ndim != 2 or given.shape[1] != 3 or not np.isin(given[:, 2], (1, 2, 3)).all()):
                found = f"{name} of shape {given.shape}"
                raise ModelError(describe(found, where=where, allowed="rows (x, factor, exponent 1, 2 or 3)"))
            rows = given.reshape(-1, 3)
            self._set(**{name: frozen_array(rows, rows.shape, where, name, most=LARGEST)})
        if len(self.turns) != 1 or not np.size(self.polynomial) or not np.size(self.inner_polynomial):
            allowed = "one entry of turns, polynomials of at least one number"
            raise ModelError(describe(f"turns is {self.turns}", where=where, allowed=allowed))

    @classmethod
    def of(cls, turns: bool, function: Curve, inner: Curve = IDENTITY, source: str = "") -> "Cam":
        """Return the cam of a curve, or of a curve of another one."""
        return cls((turns,), function.polynomial, function.powers, inner.polynomial, inner.powers, source)

    @cached_property
    def kind(self) -> JointKind:
        """A turn about the z axis of the joint, or a slide along it."""
        inner, outer = (
            _curve(getattr(self, f"{name}polynomial"), getattr(self, f"{name}powers")) for name in ("inner_", "")
        )
        made = _GuidedTurn if self.turns[0] else _GuidedSlide
        return made("flexible", ("",), self.turns, inner=inner, outer=outer)

    @property
    def stiffness_matrix(self) -> Array:
        """Zero: a cam is rigid."""
        return np.zeros((1, 1))

    @property
    def damping_matrix(self) -> Array:
        """Zero: a cam is rigid."""
        return np.zeros((1, 1))


def _curve(polynomial: Array, powers: Array) -> Curve:
    return Curve(tuple(polynomial.tolist()), tuple((x, factor, int(n)) for x, factor, n in powers.tolist()))
