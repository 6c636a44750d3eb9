"""Being near to something: a reference motion, or a curve that a frame follows; and being far from singular places."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.errors import ModelError, describe
from torsor.motion.terms.frames import AXES, numbers, point_of
from torsor.motion.terms.term import Constraint, Cost, Rows, chosen, one_of, positive, spread
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.paths import Path

__all__ = ["Follow", "Manipulability", "Reference"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Reference(Cost):
    """The integral of the squared distance of positions from a reference motion.

    ``values`` (K, n), 4 or more rows, are positions at the ``shares`` (K,) of the phase, from 0 to 1 (at equal
    distances by default); between them runs a cubic spline. A ``Path`` may be given instead. ``names`` are the n
    coordinates (all by default), and distances are divided by ``scale``, a number or one for each.

    Example:
        >>> Reference(values=np.linspace([0.0, 1.0], [1.0, 0.0], 5), names=["joint1", "joint2"]).title
        'Reference'
    """

    values: Any
    shares: Any = None
    names: Sequence[str] | None = None
    scale: Any = 1.0

    @cached_property
    def _path(self) -> Path:
        count = len(self.values) if isinstance(self.values, (Sequence, np.ndarray)) else 0
        shares = np.linspace(0.0, 1.0, count) if self.shares is None else self.shares
        return Path.of(self.values, 3, shares, f"{self.title}: values")

    def fewest(self, subject: MotionModel) -> int:
        """Return how many points its integral has at least."""
        return max(super().fewest(subject), 8 * self._path.spline.count)

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of squares."""
        kept, path = chosen(self.names, node.robot.position_names, self.title), self._path
        if path.points.shape[1] != len(kept):
            found = f"values of {path.points.shape[1]} coordinates"
            raise ModelError(describe(found, where=self.title, allowed=f"{len(kept)}"))
        scale = spread(self.scale, len(kept), f"{self.title}: scale")
        if not (scale > 0).all():
            raise ModelError(describe(f"scale is {self.scale!r}", where=self.title, allowed="above 0"))
        return ca.sumsqr((node.q[kept] - path.over(node.s)[0]) / ca.SX(scale))


@dataclass(frozen=True, eq=False, kw_only=True)
class _OnPath(Constraint):
    """The progress of a robot that follows a joint path stays between the ends of it: beyond them is no path."""

    name: str = "Path"

    @property
    def has_rows(self) -> bool:
        """Whether it is looked at in moments."""
        return False

    def point_bounds(self, subject: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return bounds of the progress, the first profile."""
        return {0: (0.0, 1.0)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Follow(Constraint):
    """A ``point`` (3,) of a ``frame`` or link follows a curve in space, at a pace that is free.

    ``curve`` is a ``Path`` of points (3) in base axes, or points (K, 3) that one passes. How far it is along the curve,
    from 0 at the start of its phases to 1 at their end, is a profile of its own, called ``progress``, that does not go
    back; ``Phase.own`` may shape it by that name, and several frames may share it. ``during`` a part of a phase only
    the part of the curve is followed that is passed then. Each component stays within ``tolerance`` (m) of the curve:
    it is above 0, as splines of joints meet no curve exactly.

    Example:
        >>> Follow(frame="hand", curve=np.linspace([0.5, 0, 0], [0.5, 0, 0.3], 6), tolerance=1e-3).profiles()
        {'progress': (0.0, 1.0)}
    """

    frame: str
    curve: Any
    tolerance: float = 1e-3
    point: Any = (0.0, 0.0, 0.0)
    progress: str = "progress"

    def profiles(self) -> Mapping[str, tuple[float, float]]:
        """Return the progress along the curve."""
        return {self.progress: (0.0, 1.0)}

    def point_bounds(self, subject: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return bounds of the progress: it stays on the curve."""
        return {subject.names.index(self.progress): (0.0, 1.0)}

    def rows(self, node: Node) -> Rows:
        """Return the components of the deviation, and the rate of the progress."""
        near = positive(self.tolerance, "tolerance", self.title)
        node.robot.place(self.frame)
        path = Path.of(self.curve, where=f"{self.title}: curve")
        if path.points.shape[1] != 3:
            found = f"a curve of {path.points.shape[1]} coordinates"
            raise ModelError(describe(found, where=self.title, allowed="points (3) in base axes"))
        p = point_of(node, self.frame, numbers(self.point, (3,), "point", self.title))
        away = p - path.over(node.profile(self.progress))[0]
        labels = (*(f"{axis} of {self.frame} from the curve" for axis in AXES), f"pace of {self.progress}")
        rows = ca.vertcat(away, node.profile(self.progress, 1))
        return Rows(rows, np.array([-near] * 3 + [0.0]), np.array([near] * 3 + [np.inf]), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class Manipulability(Cost):
    """How near a frame or link is to where it cannot be moved at will: from det(J J^T), J its Jacobian (m or rad).

    ``kind`` is "log", the integral of -log det(J J^T), or "reciprocal", that of 1/sqrt(det(J J^T)), the reciprocal of
    Yoshikawa's measure. J has the base's ``axes`` of its "translation", "rotation", or "all", and a column for each
    profile. The value depends on units where both kinds of axes are in it.

    Example:
        >>> Manipulability(frame="hand", axes="xy").part
        'translation'
    """

    frame: str
    part: str = "translation"
    axes: str = "xyz"
    kind: str = "log"

    def integrand(self, node: Node) -> ca.SX:
        """Return what is integrated."""
        one_of(self.part, ("translation", "rotation", "all"), "part", self.title)
        one_of(self.kind, ("log", "reciprocal"), "kind", self.title)
        if not self.axes or any(self.axes.count(axis) > 1 or axis not in AXES for axis in self.axes):
            found = f"axes is {self.axes!r}"
            raise ModelError(describe(found, where=self.title, allowed="some of 'xyz'"))
        node.robot.place(self.frame)
        which = [AXES.index(axis) for axis in self.axes]
        rows = [k + 3 for k in which] if self.part != "rotation" else []
        rows += which if self.part != "translation" else []
        J = node.jacobian(self.frame)[rows, :]
        free = np.linalg.matrix_rank(self._somewhere(J, node))
        if free < len(rows):
            found = f"{self.frame} moves along {free} of the {len(rows)} axes at most"
            raise ModelError(describe(found, where=self.title, fix="name fewer axes, in which it can move"))
        logarithm = _log_det(J @ J.T)
        return -logarithm if self.kind == "log" else ca.exp(-logarithm / 2)

    @staticmethod
    def _somewhere(J: ca.SX, node: Node) -> Any:
        """Return the Jacobian at a place that is not special: structure, not singular places, is asked for."""
        given = ca.symvar(J)
        made = ca.Function("J", given, [J])
        values = np.random.default_rng(0).uniform(0.3, 1.2, len(given))
        return made.call([ca.DM(each) for each in values])[0].full()


def _log_det(A: ca.SX) -> ca.SX:
    """Return the logarithm of the determinant of a positive matrix, by its factors L D L^T."""
    n, total = A.shape[0], ca.SX(0)
    for k in range(n):
        total += ca.log(A[k, k])
        column = A[k + 1 :, k]
        A[k + 1 :, k + 1 :] -= column @ column.T / A[k, k]
    return total
