"""The result of inverse kinematics: postures, how far they miss each target, and why."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.arrays import Array
from torsor.checks import is_whole, several
from torsor.errors import ModelError, describe
from torsor.robot.robot import Robot
from torsor.summary import Summary

Mask = NDArray[np.bool_]


class Miss(NamedTuple):
    """How far a target is missed: distances (...) in m and angles (...) in rad, None where it has no such part."""

    position: Array | None
    angle: Array | None

    @property
    def largest(self) -> Array:
        """The larger one of both (...)."""
        return np.asarray(np.max([each for each in self if each is not None], axis=0))

    def said(self, index: tuple[int, ...]) -> str:
        """Return one of the misses in words."""
        units = zip(self, ("m", "rad"), strict=True)
        return " and ".join(f"{each[index]:.3g} {unit}" for each, unit in units if each is not None)


@dataclass(frozen=True, eq=False, repr=False)
class InverseKinematicsResult:
    """Postures ``q`` (..., nq), the ``error`` (...) of each, and which are ``solved`` (...).

    ``error`` is the largest miss of any target, in m or rad, and of the closure of loops; a posture is solved if it is
    not above the tolerance. One that is not solved is the nearest posture that was found. ``misses`` has the
    misses of each target by its label, ``limits`` (..., nq) is True where a joint limit holds an unsolved posture back,
    ``starts`` (...) counts the postures that the search began with. ``cause(index)`` says what an unsolved one misses.

    Example:
        >>> arm = torsor.library.two_link()
        >>> far = arm.inverse_kinematics({"link2": [5.0, 0, 0]})
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

    @property
    def status(self) -> NDArray[np.str_]:
        """One word (...) for each posture: "solved", "limits" (joint limits hold it back) or "unreached"."""
        held = np.where(self.limits.any(axis=-1), "limits", "unreached")
        return np.asarray(np.where(self.solved, "solved", held))

    def cause(self, index: int | tuple[int, ...] = ()) -> str:
        """Return what posture ``index`` of the batch misses, and why, in words; an empty text if it is solved.

        Where several targets are missed, each is tried alone: those that can be met contradict the others.
        """
        at = tuple(int(k) for k in several(index)) if all(map(is_whole, several(index))) else None
        shape = self.solved.shape
        if at is None or len(at) != len(shape) or not all(-n <= k < n for k, n in zip(at, shape, strict=True)):
            allowed = f"an index of the batch {shape}"
            raise ModelError(describe(f"index is {index!r}", where=self.robot.name, allowed=allowed))
        if self.solved[at]:
            return ""
        missed = {label: each for label, each in self.misses.items() if each.largest[at] > self.tolerance}
        parts = [f"the {label} is missed by {each.said(at)}" for label, each in missed.items()]
        if self.closure[at] > self.tolerance:
            parts.append(f"the loops stay open by {self.closure[at]:.3g}")
        return "; ".join(parts) + ": " + self._reason(at)

    def _reason(self, at: tuple[int, ...]) -> str:
        names, q = self.robot.position_names, self.q[at]
        held = [f"{names[k]} at {q[k]:.4g}" for k in np.flatnonzero(self.limits[at])]
        if len(self.misses) > 1:
            met = self.alone(at)
            far = [label for label, well in met.items() if not well]
            if not far:
                text = "each target can be met alone, so they contradict each other"
            else:
                text = f"also alone, the {' and the '.join(far)} cannot be met"
            return f"{text} (joint limits reached: {', '.join(held)})" if held else text
        if held:
            return f"joint limits hold it back: {', '.join(held)}"
        if self.starts[at] == 1:
            return "the search got no nearer from its one start; others may, with restarts"
        return "the loops do not let it get nearer" if self.robot.loops else "it is out of reach"

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
            said = ", ".join(f"{label}: {each.said(at)}" for label, each in self.misses.items())
            rows.append((str(list(at)), str(self.status[at]), said))
        return Summary(repr(self).strip("<>"), {}, ("index", "status", "missed by"), rows)
