"""Vectors that consist of named parts."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array


class VectorLayout:
    """Ordered names with their numbers of entries, for packing and unpacking a vector."""

    def __init__(self, sizes: Mapping[str, int] | None = None, **more: int):
        self.sizes = {**(sizes or {}), **more}

    @property
    def size(self) -> int:
        """Total number of entries."""
        return sum(self.sizes.values())

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Slices of the entries of each part."""
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        return {name: slice(first, last) for name, first, last in zip(self.sizes, ends[:-1], ends[1:], strict=True)}

    def pack(self, count: int, **parts: ArrayLike) -> Array:
        """Return rows (count, size) from parts (count, part size), (count,) for size 1, or one row for all."""
        packed = np.empty((count, self.size))
        for name, size in self.sizes.items():
            part = np.asarray(parts[name], dtype=float)
            packed[:, self.slices[name]] = part.reshape(count, size) if part.size == count * size else part
        return packed

    def unpack(self, vector: Any) -> dict[str, Any]:
        """Return the parts of rows (..., size), or of a symbolic column (size x 1)."""
        if isinstance(vector, ca.SX):
            return {name: vector[part] for name, part in self.slices.items()}
        return {name: vector[..., part] for name, part in self.slices.items()}
