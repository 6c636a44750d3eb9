"""The inverse-kinematics result: postures, their errors for each target, and the causes of failure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import is_whole, several
from torsor.base.errors import ModelError
from torsor.base.summary import Summary
from torsor.robot.robot import Robot

Mask = NDArray[np.bool_]
MAX_PAIRS = 3  # maximum number of shape pairs named in a cause


class Miss(NamedTuple):
    """The errors of a target: distances (...) in m and angles (...) in rad, or None if they do not apply."""

    position: Array | None
    angle: Array | None

    @property
    def largest(self) -> Array:
        """The larger of the two errors (...)."""
        if self.position is None or self.angle is None:
            return np.asarray(self.angle if self.position is None else self.position)
        return np.asarray(np.maximum(self.position, self.angle))

    def said(self, index: tuple[int, ...]) -> str:
        """Return the errors at one index of the batch as text."""
        units = zip(self, ("m", "rad"), strict=True)
        return " and ".join(f"{item[index]:.3g} {unit}" for item, unit in units if item is not None)


@dataclass(frozen=True, eq=False)
class Shapes:
    """The distances between the collision shapes of ``pairs``, for the requested ``clearance`` (m).

    ``least`` (...) is the smallest distance in m. ``holding`` (..., P) is True if a pair violates the clearance, or is
    at the clearance and blocks an unsolved posture. ``moving`` (P,) marks the pairs that the free coordinates move.
    """

    clearance: float
    pairs: tuple[tuple[str, str], ...]
    moving: Mask
    least: Array
    holding: Mask

    def said(self, robot: Robot, q: Array, at: tuple[int, ...]) -> str:
        """Describe how the blocking pairs prevent a solution at index ``at``, whose posture is q (nq)."""
        distance, parts = robot.shapes.distances(q, self.pairs).distance, []
        for k in sorted(np.flatnonzero(self.holding[at]), key=lambda k: float(distance[k]))[:MAX_PAIRS]:
            a, b = self.pairs[k]
            apart = f"overlap by {-distance[k]:.3g} m" if distance[k] < 0 else f"are {distance[k]:.4g} m apart"
            still = "" if self.moving[k] else ", and no joint that moves a target moves one of them"
            parts.append(f"the shapes {a!r} and {b!r} {apart}{still}")
        return f"{' and '.join(parts)}, with a clearance of {self.clearance:g} m" if parts else ""


@dataclass(frozen=True, eq=False, repr=False)
class InverseKinematicsResult:
    """Postures ``q`` (..., nq), their ``error`` (...), and a mask ``solved`` (...).

    ``error`` is the largest error of any target and of loop closure, in m or rad. A posture is solved if its error is
    within the ``tolerance``; otherwise it is the closest one that the search reached. ``misses`` maps target labels to
    errors (``Miss``), and ``closure`` (...) is the closure error of loops, 0 without loops. ``limits`` (..., nq) is
    True where a joint limit blocks an unsolved posture. ``starts`` (...) counts the starting postures of the search.
    ``cause(index)`` explains why a posture is unsolved.

    If a clearance was requested, solved postures keep it. ``clearance`` (...) is then the smallest distance between
    shapes in m, and ``blocking(index)`` returns the pairs of shapes that block an unsolved posture.

    Example:
        >>> arm = torsor.library.two_link()
        >>> far = torsor.inverse_kinematics(arm, {"link2": [5.0, 0, 0]})
        >>> bool(far.solved), round(float(far.error), 3)
        (False, 4.2)
        >>> print(far.cause())
        the position of 'link2' is missed by 4.2 m: it is out of reach
    """

    robot: Robot
    q: Array
    error: Array
    solved: Mask
    misses: Mapping[str, Miss]
    closure: Array
    limits: Mask
    starts: NDArray[np.intp]
    tolerance: float
    alone: Callable[[tuple[int, ...]], Mapping[str, bool]] = field(repr=False)
    shapes: Shapes | None = field(default=None, repr=False)

    @property
    def clearance(self) -> Array | None:
        """Smallest distance (...) in m between pairs of shapes, or a lower bound above the requested clearance."""
        return None if self.shapes is None else self.shapes.least

    @property
    def status(self) -> NDArray[np.str_]:
        """Status (...) of each posture: "solved", "clearance", "limits" or "unreached".

        "clearance" means that a pair of shapes blocks the posture, "limits" that a joint limit does.
        """
        held = np.where(self.limits.any(axis=-1), "limits", "unreached")
        if self.shapes is not None:
            held = np.where(self.shapes.holding.any(axis=-1), "clearance", held)
        return np.asarray(np.where(self.solved, "solved", held))

    def cause(self, index: int | tuple[int, ...] = ()) -> str:
        """Describe the targets that posture ``index`` of the batch misses, and the reason; "" if it is solved.

        If several targets are missed, each is tried alone: targets that can be met alone contradict the others.
        """
        at = self._at(index)
        if self.solved[at]:
            return ""
        missed = {label: miss for label, miss in self.misses.items() if miss.largest[at] > self.tolerance}
        parts = [f"the {label} is missed by {item.said(at)}" for label, item in missed.items()]
        if self.closure[at] > self.tolerance:
            parts.append(f"the loops stay open by {self.closure[at]:.3g}")
        shapes = "" if self.shapes is None else self.shapes.said(self.robot, self.q[at], at)
        reason = shapes or self._reason(at)
        return f"{'; '.join(parts)}: {reason}" if parts else reason

    def blocking(self, index: int | tuple[int, ...] = ()) -> list[tuple[str, str]]:
        """Return the names of the shape pairs that block posture ``index`` of the batch, or [] if none does."""
        at = self._at(index)
        if self.shapes is None:
            return []
        return [self.shapes.pairs[k] for k in np.flatnonzero(self.shapes.holding[at])]

    def _at(self, index: int | tuple[int, ...]) -> tuple[int, ...]:
        """Return a checked index into the batch."""
        at = tuple(int(k) for k in several(index)) if all(map(is_whole, several(index))) else None
        shape = self.solved.shape
        if at is None or len(at) != len(shape) or not all(-n <= k < n for k, n in zip(at, shape, strict=True)):
            allowed = f"an index of the batch {shape}"
            raise ModelError(argument="index", value=index, where=self.robot.name, allowed=allowed)
        return at

    def _reason(self, at: tuple[int, ...]) -> str:
        names, q = self.robot.position_names, self.q[at]
        held = [f"{names[k]} at {q[k]:.4g}" for k in np.flatnonzero(self.limits[at])]
        if len(self.misses) > 1:
            met = self.alone(at)
            far = [label for label, well in met.items() if not well]
            if not far:
                reason = "each target can be met alone, so they contradict each other"
            else:
                reason = f"even alone, the {' and the '.join(far)} cannot be met"
            return f"{reason} (joint limits reached: {', '.join(held)})" if held else reason
        if held:
            return f"joint limits block it: {', '.join(held)}"
        if self.starts[at] == 1:
            return "the search from its only start got no closer; try restarts"
        return "the loops do not allow a closer posture" if self.robot.loops else "it is out of reach"

    def __repr__(self) -> str:
        count, well = self.solved.size, int(np.count_nonzero(self.solved))
        return f"<InverseKinematicsResult of {self.robot.name!r}: {well} of {count} solved to {self.tolerance:g}>"

    def __str__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        rows = []
        for at in list(np.ndindex(self.solved.shape))[:1000]:
            said = ", ".join(f"{label}: {miss.said(at)}" for label, miss in self.misses.items())
            rows.append((str(list(at)), str(self.status[at]), said))
        return Summary(repr(self).strip("<>"), {}, ("index", "status", "missed by"), rows)
