"""Reference motions, curves that a frame follows, and manipulability."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from torsor.base.checks import by_name, frozen_array, indices_of, one_of, positive
from torsor.base.errors import ModelError, describe
from torsor.motion.terms.frames import AXES, point_of
from torsor.motion.terms.term import Constraint, Cost, Rows
from torsor.motion.transcription.motion_model import MotionModel
from torsor.motion.transcription.node import Node
from torsor.motion.transcription.paths import Path


@dataclass(frozen=True, eq=False, kw_only=True)
class Reference(Cost):
    """The integral of the squared distance of positions from a reference motion.

    ``values`` (K, n), 4 or more rows, are positions at the fractions ``shares`` (K,) of the phase, from 0 to 1
    (equidistant by default), interpolated by a cubic spline. A ``Path`` may be given instead. ``names`` are the n
    coordinates (all by default), and distances are divided by ``scale``: a number, one for each, or {name: number}.

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
        fractions = np.linspace(0.0, 1.0, count) if self.shares is None else self.shares
        return Path.of(self.values, 3, fractions, f"{self.title}: values")

    def fewest(self, model: MotionModel) -> int:
        """Return the least number of points of the integral."""
        return max(super().fewest(model), 8 * self._path.spline.count)

    def integrand(self, node: Node) -> ca.SX:
        """Return the sum of squares."""
        kept, path = indices_of(self.names, node.robot.position_names, self.title), self._path
        if path.points.shape[1] != len(kept):
            found = f"values of {path.points.shape[1]} coordinates"
            raise ModelError(describe(found, where=self.title, allowed=f"{len(kept)}"))
        scale = by_name(self.scale, [node.robot.position_names[k] for k in kept], np.inf, f"{self.title}: scale")
        if not (scale > 0).all():
            raise ModelError(describe(f"scale is {self.scale!r}", where=self.title, allowed="above 0"))
        return ca.sumsqr((node.q[kept] - path.over(node.time_fraction)[0]) / ca.SX(scale))


@dataclass(frozen=True, eq=False, kw_only=True)
class OnPath(Constraint):
    """The progress of a robot along a joint path stays between 0 and 1."""

    name: str = "Path"

    @property
    def has_rows(self) -> bool:
        """Whether the term is evaluated at moments."""
        return False

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return bounds of the progress, the first profile."""
        return {0: (0.0, 1.0)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Follow(Constraint):
    """A ``point`` (3,) of a ``frame`` or link follows a curve in space, at a free speed.

    ``curve`` is a ``Path`` of points (3) in base axes, or points (K, 3) on it. The progress along the curve, from 0 at
    the start of the term's phases to 1 at their end, is a profile of its own with the name ``progress``, which never
    decreases; ``Phase.own`` may give it another spline, and several frames may use the same one. With ``during`` only
    the part of the curve that is passed then is followed. Each component stays within ``tolerance`` (m) of the curve;
    it has to be above 0, since splines of joints cannot follow a curve exactly.

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

    def point_bounds(self, model: MotionModel) -> Mapping[int, tuple[float, float]]:
        """Return bounds of the progress, which keep it on the curve."""
        return {model.names.index(self.progress): (0.0, 1.0)}

    def rows(self, node: Node) -> Rows:
        """Return the components of the deviation, and the rate of the progress."""
        near = positive(self.tolerance, self.title, "tolerance")
        node.robot.place(self.frame)
        path = Path.of(self.curve, where=f"{self.title}: curve")
        if path.points.shape[1] != 3:
            found = f"a curve of {path.points.shape[1]} coordinates"
            raise ModelError(describe(found, where=self.title, allowed="points (3) in base axes"))
        p = point_of(node, self.frame, frozen_array(self.point, (3,), self.title, "point"))
        away = p - path.over(node.profile(self.progress))[0]
        labels = (*(f"{axis} of {self.frame} from the curve" for axis in AXES), f"pace of {self.progress}")
        rows = ca.vertcat(away, node.profile(self.progress, 1))
        return Rows(rows, np.array([-near] * 3 + [0.0]), np.array([near] * 3 + [np.inf]), labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class Manipulability(Cost):
    """The distance of a frame or link from singular configurations, by det(J J^T) of its Jacobian J (m or rad).

    ``kind`` is "log", the integral of -log det(J J^T), or "reciprocal", that of 1/sqrt(det(J J^T)), the reciprocal of
    Yoshikawa's measure. J has rows for the base ``axes`` of "translation", "rotation" or "all", and a column for each
    profile. The value depends on units if J has both kinds of rows.

    Example:
        >>> Manipulability(frame="hand", axes="xy").part
        'translation'
    """

    frame: str
    part: str = "translation"
    axes: str = "xyz"
    kind: str = "log"

    def integrand(self, node: Node) -> ca.SX:
        """Return the integrand."""
        one_of(self.part, ("translation", "rotation", "all"), self.title, "part")
        one_of(self.kind, ("log", "reciprocal"), self.title, "kind")
        if not self.axes or any(self.axes.count(axis) > 1 or axis not in AXES for axis in self.axes):
            found = f"axes is {self.axes!r}"
            raise ModelError(describe(found, where=self.title, allowed="some of 'xyz'"))
        node.robot.place(self.frame)
        which = [AXES.index(axis) for axis in self.axes]
        rows = [k + 3 for k in which] if self.part != "rotation" else []
        rows += which if self.part != "translation" else []
        J = node.jacobian(self.frame)[rows, :]
        free = np.linalg.matrix_rank(self._at_random(J, node))
        if free < len(rows):
            found = f"{self.frame} can move along at most {free} of the {len(rows)} axes"
            raise ModelError(describe(found, where=self.title, fix="name fewer axes, in which it can move"))
        logarithm = _log_det(J @ J.T)
        return -logarithm if self.kind == "log" else ca.exp(-logarithm / 2)

    @staticmethod
    def _at_random(J: ca.SX, node: Node) -> Any:
        """Return the Jacobian at a random configuration, whose rank is the structural one."""
        given = ca.symvar(J)
        made = ca.Function("J", given, [J])
        values = np.random.default_rng(0).uniform(0.3, 1.2, len(given))
        return made.call([ca.DM(each) for each in values])[0].full()


def _log_det(A: ca.SX) -> ca.SX:
    """Return the logarithm of the determinant of a positive definite matrix, by its factors L D L^T."""
    n, total = A.shape[0], ca.SX(0)
    for k in range(n):
        total += ca.log(A[k, k])
        column = A[k + 1 :, k]
        A[k + 1 :, k + 1 :] -= column @ column.T / A[k, k]
    return total
