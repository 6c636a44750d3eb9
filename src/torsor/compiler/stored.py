"""Kernels on disk: the signature of a function, its object code, and the CasADi function itself.

Calling a kernel needs only the signature and the object code. A CasADi function of 100,000 operations takes longer to
read than the code takes to run, so it is read on first access. Code compiled with ``quick`` (see ``Kernel``) is stored
without its function.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import casadi as ca

from torsor.compiler import cache


class Signature(NamedTuple):
    """The name of a function, and the names and sizes (rows, columns) of its inputs and outputs."""

    name: str
    names_in: tuple[str, ...]
    names_out: tuple[str, ...]
    sizes_in: tuple[tuple[int, int], ...]
    sizes_out: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, function: "ca.Function | StoredKernel") -> "Signature":
        """Return the signature of a CasADi function or of a stored kernel.

        Example:
            >>> x = ca.SX.sym("x", 2)
            >>> Signature.of(ca.Function("double", [x], [2 * x], ["x"], ["y"])).sizes_in
            ((2, 1),)
        """
        if isinstance(function, StoredKernel):
            return function.signature
        sizes_in = tuple(function.size_in(k) for k in range(function.n_in()))
        sizes_out = tuple(function.size_out(k) for k in range(function.n_out()))
        return cls(function.name(), tuple(function.name_in()), tuple(function.name_out()), sizes_in, sizes_out)


class StoredKernel:
    """A kernel as it is stored on disk: its ``signature`` and its object ``code``."""

    def __init__(self, signature: Signature, code: list[bytes], text: bytes):
        self.signature, self.code, self._text = signature, code, text

    @cached_property
    def function(self) -> ca.Function:
        """The CasADi function that the code was compiled from."""
        if not self._text:
            raise LookupError(f"{self.signature.name}: the code was stored without its CasADi function")
        return ca.Function.deserialize(self._text.decode())


def recall(key: str) -> StoredKernel | None:
    """Return the kernel that is stored under a key, or None."""
    parts = cache.load(key)
    if parts is None:
        return None
    name, names_in, names_out, *sizes = json.loads(parts[0])
    sizes_in, sizes_out = (tuple((rows, columns) for rows, columns in each) for each in sizes)
    return StoredKernel(Signature(name, tuple(names_in), tuple(names_out), sizes_in, sizes_out), parts[2:], parts[1])


def keep(key: str, function: ca.Function, code: Sequence[bytes], whole: bool = True) -> None:
    """Store the object code of a function under a key, with the CasADi function itself if ``whole``."""
    text = function.serialize().encode() if whole else b""
    cache.store(key, [json.dumps(Signature.of(function)).encode(), text, *code])
