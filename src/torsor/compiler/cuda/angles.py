"""sin and cos on a card: no branch in the usual case, and right for huge angles too.

A call in the midst of a kernel, even one that hardly ever happens, needs registers for all that is alive there, and
branches keep the compiler from mixing independent operations. So sine and cosine of the angles that are inputs, as
nearly all are, are computed at the start, where nothing is alive yet. If one of the angles is huge, they are computed
once more. Those of large functions then wait in shared memory until they are used.
"""

from collections.abc import Callable, Sequence

import casadi as ca

from torsor.compiler.llvm.huge_angles import sin_cos_huge
from torsor.compiler.llvm.rules import Emitter
from torsor.compiler.program import Program


class CudaEmitter(Emitter):
    """Writes instructions for one state: vectors of length 1. There is no C library on the card."""

    def one_huge(self, x: str) -> str:
        """Return the bit that an angle is too large for the usual reduction."""
        return self.put(f"extractelement {self.bits} {self.is_huge(x)}, i64 0")

    def any_sin_cos(self, x: str) -> tuple[str, str]:
        """Return sin and cos of an angle that may be huge."""
        sin, cos = self.sin_cos(x)
        bit, label, before = self.one_huge(x), self._next, self.block
        self.lines += [f"  br i1 {bit}, label %slow.{label}, label %done.{label}, !prof !1", f"slow.{label}:"]
        slow = sin_cos_huge(self, x)
        self.lines += [f"  br label %done.{label}", f"done.{label}:"]
        self.block = f"done.{label}"
        pairs = zip((sin, cos), slow, strict=True)
        either = [f"phi {self.vector} [ {a}, %{before} ], [ {b}, %slow.{label} ]" for a, b in pairs]
        return self.put(either[0]), self.put(either[1])


def angles_of(program: Program, most: int) -> dict[int, tuple[int | None, int | None]]:
    """Return the inputs whose sine or cosine is taken, ``most`` of them, with the values that these are.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x")
        >>> list(angles_of(read_program(ca.Function("f", [x], [ca.cos(x)])), 8).values())
        [(None, 1)]
    """
    found: dict[int, tuple[int | None, int | None]] = {}
    for index, operation in enumerate(program.operations):
        if operation.code in (ca.OP_SIN, ca.OP_COS):
            angle = operation.arguments[0]
            if program.operations[angle].code == ca.OP_INPUT and (angle in found or len(found) < most):
                sin, cos = found.get(angle, (None, None))
                found[angle] = (index, cos) if operation.code == ca.OP_SIN else (sin, index)
    return found


def write_angles(
    e: CudaEmitter, values: Sequence[str], store: Callable[[int, str], None] | None = None
) -> list[tuple[str, str]]:
    """Write sine and cosine of angles, and return their names; ``store`` keeps them in slots 0, 1, ... instead."""

    def put(k: int, pair: tuple[str, str]) -> tuple[str, str]:
        if store is not None:
            for slot, value in enumerate(pair, start=2 * k):
                store(slot, value)
        return pair

    usual, some = list[tuple[str, str]](), "false"
    for k, x in enumerate(values):
        some = e.put(f"or i1 {some}, {e.one_huge(x)}")
        usual.append(put(k, e.sin_cos(x)))
    before = e.block
    e.lines += [f"  br i1 {some}, label %huge.some, label %huge.none, !prof !1", "huge.some:"]
    e.block = "huge.some"
    right = [put(k, e.any_sin_cos(x)) for k, x in enumerate(values)]
    last = e.block
    e.lines += ["  br label %huge.none", "huge.none:"]
    e.block = "huge.none"
    if store is not None:
        return []

    def either(a: str, b: str) -> str:
        return e.put(f"phi {e.vector} [ {a}, %{before} ], [ {b}, %{last} ]")

    pairs = zip(usual, right, strict=True)
    return [(either(sin, right_sin), either(cos, right_cos)) for (sin, cos), (right_sin, right_cos) in pairs]
