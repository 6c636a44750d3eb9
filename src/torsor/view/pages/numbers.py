"""The numbers of a page: arrays in one block of bytes, to which its JSON refers."""

import base64
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ALIGNED = 4  # bytes; typed arrays of JavaScript begin at multiples of the size of their numbers


class Numbers:
    """A block of bytes that grows; an array that it has already is not stored again.

    Example:
        >>> numbers = Numbers()
        >>> numbers.add([1.0, 2.0]), numbers.add([1.0, 2.0])["at"], len(numbers.base64())
        ({'type': 'f4', 'at': 0, 'shape': [2]}, 0, 12)
    """

    def __init__(self) -> None:
        self._block = bytearray()
        self._known: dict[tuple[str, bytes], int] = {}

    def add(self, values: ArrayLike, type_: str = "f4") -> dict[str, Any]:
        """Store an array as float32 ("f4") or unsigned integers ("u2", "u4"), and return the reference to it."""
        array = np.ascontiguousarray(np.asarray(values), dtype=f"<{type_}")
        key = type_, array.tobytes()
        if key not in self._known:
            self._block += bytes(-len(self._block) % ALIGNED)
            self._known[key] = len(self._block)
            self._block += key[1]
        return {"type": type_, "at": self._known[key], "shape": list(array.shape)}

    def base64(self) -> str:
        """Return the block as text."""
        return base64.b64encode(self._block).decode()

    def read(self, reference: dict[str, Any]) -> NDArray[Any]:
        """Return an array that was stored.

        Example:
            >>> numbers = Numbers()
            >>> numbers.read(numbers.add([[1.0, 2.0]])).tolist()
            [[1.0, 2.0]]
        """
        shape = reference["shape"]
        count = int(np.prod(shape))
        return np.frombuffer(self._block, f"<{reference['type']}", count, reference["at"]).reshape(shape).copy()
