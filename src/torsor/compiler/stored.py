"""What the cache keeps of a kernel: the names and sizes of its arrays, its machine code, and its CasADi function.

Names and sizes are all that calling the code takes. A function of 100,000 operations takes longer to read than to run,
so it is read when somebody asks for it; of code that is quick to make (``Kernel``) it is not kept at all.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import casadi as ca

from torsor.compiler import cache

__all__ = ["Kept", "Signature", "keep", "recall"]


class Signature(NamedTuple):
    """The name of a function, and of its inputs and outputs the names and sizes (rows, columns)."""

    name: str
    names_in: tuple[str, ...]
    names_out: tuple[str, ...]
    sizes_in: tuple[tuple[int, int], ...]
    sizes_out: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, function: "ca.Function | Kept") -> "Signature":
        """Return that of a function, or of what is kept of one.

        Example:
            >>> x = ca.SX.sym("x", 2)
            >>> Signature.of(ca.Function("double", [x], [2 * x], ["x"], ["y"])).sizes_in
            ((2, 1),)
        """
        if isinstance(function, Kept):
            return function.signature
        sizes_in = tuple(function.size_in(k) for k in range(function.n_in()))
        sizes_out = tuple(function.size_out(k) for k in range(function.n_out()))
        return cls(function.name(), tuple(function.name_in()), tuple(function.name_out()), sizes_in, sizes_out)


class Kept:
    """What is kept of a kernel: its ``signature``, and the object ``code``."""

    def __init__(self, signature: Signature, code: list[bytes], text: bytes):
        self.signature, self.code, self._text = signature, code, text

    @cached_property
    def function(self) -> ca.Function:
        """The CasADi function that the code was made of."""
        if not self._text:
            raise LookupError(f"{self.signature.name}: the code was kept without its function")
        return ca.Function.deserialize(self._text.decode())


def recall(key: str) -> Kept | None:
    """Return what is kept under a key, if there is something."""
    parts = cache.load(key)
    if parts is None:
        return None
    name, names_in, names_out, *sizes = json.loads(parts[0])
    sizes_in, sizes_out = (tuple((rows, columns) for rows, columns in each) for each in sizes)
    return Kept(Signature(name, tuple(names_in), tuple(names_out), sizes_in, sizes_out), parts[2:], parts[1])


def keep(key: str, function: ca.Function, code: Sequence[bytes], whole: bool = True) -> None:
    """Keep the object code of a function under a key, and the function with it, if ``whole``."""
    text = function.serialize().encode() if whole else b""
    cache.store(key, [json.dumps(Signature.of(function)).encode(), text, *code])
