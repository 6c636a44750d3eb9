"""sin and cos on a card: no branch in the usual case, and right for huge angles too.

A call in the midst of a kernel, even one that hardly ever happens, needs registers for all that is alive there, and
branches keep the compiler from mixing independent operations. So angles that are inputs, as nearly all are, are tested
together at the start, where nothing is alive yet. If one is huge, each huge one is replaced by the angle between -pi
and pi with the same sine and cosine.
"""

from collections.abc import Callable, Sequence

from torsor.compiler.llvm.huge_angles import reduce_huge, sin_cos_huge
from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.llvm.vectors import Number, where

_NAME = "@angles.reduced"


class CudaEmitter(Emitter):
    """Writes instructions for one state: vectors of length 1. There is no C library on the card.

    ``huge``: sin and cos are right for huge angles too.
    """

    def __init__(self, scalar: Scalar, huge: bool):
        super().__init__(scalar, 1)
        self.huge = huge

    def one_huge(self, x: str) -> str:
        """Return the bit that an angle is too large for the usual reduction."""
        return self.put(f"extractelement {self.bits} {self.is_huge(x)}, i64 0")

    def any_sin_cos(self, x: str) -> tuple[str, str]:
        """Return sin and cos of an angle that may be huge."""
        sin, cos = self.sin_cos(x)
        if not self.huge:
            return sin, cos
        bit, label, before = self.one_huge(x), self._next, self.block
        self.lines += [f"  br i1 {bit}, label %slow.{label}, label %done.{label}, !prof !1", f"slow.{label}:"]
        slow = sin_cos_huge(self, x)
        self.lines += [f"  br label %done.{label}", f"done.{label}:"]
        self.block = f"done.{label}"
        pairs = zip((sin, cos), slow, strict=True)
        either = [f"phi {self.vector} [ {a}, %{before} ], [ {b}, %slow.{label} ]" for a, b in pairs]
        return self.put(either[0]), self.put(either[1])


def write_test(e: CudaEmitter, angles: Sequence[int], load: Callable[[int], str]) -> dict[int, str]:
    """Write the test of angles that ``load`` gives; return each as an angle with the same sine, which is not huge."""
    if not angles:
        return {}
    values, some = [load(angle) for angle in angles], "false"
    for value in values:
        some = e.put(f"or i1 {some}, {e.one_huge(value)}")
    before = e.block
    e.lines += [f"  br i1 {some}, label %huge.some, label %huge.none, !prof !1", "huge.some:"]
    e.functions.setdefault(_NAME, _reduced(e))
    reduced = [e.put(f"call {e.vector} {_NAME}({e.vector} {value})") for value in values]
    e.lines += ["  br label %huge.none", "huge.none:"]
    e.block = "huge.none"
    either = zip(angles, values, reduced, strict=True)
    return {k: e.put(f"phi {e.vector} [ {a}, %{before} ], [ {b}, %huge.some ]") for k, a, b in either}


def _reduced(e: CudaEmitter) -> str:
    """Return the function of the angle between -pi and pi with the sine and cosine of a huge one."""
    body = Emitter(e.scalar, 1)
    x = Number(body, "%x")
    r, _, quarter = reduce_huge(x)
    half_pi = e.scalar.half_pi[0]
    for bit, turn in ((1, half_pi), (2, -2 * half_pi)):  # the quarters 0, 1, 2, 3 are 0, pi/2, -pi, -pi/2
        r = where((quarter >> (bit - 1)).is_odd(), r + turn, r)
    found = where(abs(x) > e.scalar.largest_angle, r, x)
    e.functions |= body.functions
    head = f"define internal {e.vector} {_NAME}({e.vector} %x) noinline {{\nentry:"
    return "\n".join([head, *body.lines, f"  ret {e.vector} {found.name}", "}"])
