"""Values that a mechanism may hold: checked, converted and frozen once; and equality of parts by value."""

import reprlib
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe

__all__ = ["ROTATION_TOLERANCE", "Part", "checked_name", "frozen_array", "frozen_pose"]

Array = NDArray[np.float64]

# How far the rows of a rotation may be from orthonormal before it is taken for a mistake rather than for rounding.
ROTATION_TOLERANCE = 1e-6
LONGEST = 16  # numbers that a message shows in full: those of a pose


def frozen_array(value: ArrayLike, shape: tuple[int, ...], where: str, what: str, *, finite: bool = True) -> Array:
    """Return ``value`` as a read-only float array of the given shape, or raise an error that says what is wrong."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        given = np.asarray(None)
    if given.dtype.kind not in "biuf":  # complex numbers would lose a part, and text is no number
        raise ModelError(describe(f"{what} is {reprlib.repr(value)}", where=where, allowed="real numbers"))
    array = np.array(given, dtype=float)
    if array.shape != shape:
        allowed = f"an array of shape {shape}" if shape else "one number"
        raise ModelError(describe(f"{what} has shape {array.shape}", where=where, allowed=allowed))
    if np.isnan(array).any() or (finite and not np.isfinite(array).all()):
        found = f"{what} is {array.tolist() if array.size <= LONGEST else reprlib.repr(array.tolist())}"
        raise ModelError(describe(found, where=where, allowed="finite numbers"))
    array += 0.0  # -0.0 becomes 0.0
    array.setflags(write=False)
    return array


def frozen_pose(value: ArrayLike, where: str, what: str) -> Array:
    """Return ``value`` as a read-only pose (4 x 4), or raise an error that says what is wrong."""
    T = frozen_array(value, (4, 4), where, what)
    R = T[:3, :3]
    error = max(np.abs(R @ R.T - np.eye(3)).max(), np.abs(T[3] - [0, 0, 0, 1]).max())
    if error > ROTATION_TOLERANCE or np.linalg.det(R) < 0:
        raise ModelError(
            describe(
                f"{what} is not a pose (its axes are off by {error:.1e}, determinant {np.linalg.det(R):.3g})",
                where=where,
                allowed="[[R, p], [0, 0, 0, 1]] with R a rotation matrix",
            )
        )
    return T


def checked_name(name: object, what: str, where: str = "") -> str:
    """Return a name, or raise an error if it is none: other things could be mistaken for indices."""
    if not isinstance(name, str) or not name:
        found = f"the name of a {what} is {name!r}"
        raise ModelError(describe(found, where=where, allowed="a string that is not empty"))
    return name


class Part:
    """Equality by value, arrays included: dataclasses compare arrays in a way that has no truth value."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.compare)  # type: ignore[arg-type]
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash((type(self).__name__, getattr(self, "name", None)))

    def __getstate__(self) -> dict[str, Any]:
        # What was computed and kept stays behind when a part is copied or sent to another process.
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)  # copies come back writable
        self.__dict__.update(state)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)
