"""sin and cos on a card: no branch in the usual case, and right for huge angles too.

A call in the midst of a kernel, even one that hardly ever happens, needs registers for all that is alive there. So
angles that are inputs, as nearly all are, are tested together at the start, where nothing is alive yet. If one is huge,
the sines and cosines of all of them go to a table in local memory, which replaces what is computed later.
"""

from collections.abc import Callable, Sequence

from torsor.compiler.llvm.huge_angles import sin_cos_huge
from torsor.compiler.llvm.rules import Emitter, Scalar

_NAME = "@angles.sin_cos"


class CudaEmitter(Emitter):
    """Writes instructions for one state: vectors of length 1. There is no C library on the card.

    ``huge``: sin and cos are right for huge angles too. ``slot`` is the place of the next angle in the table of huge
    ones, None for an angle that is no input.
    """

    def __init__(self, scalar: Scalar, huge: bool):
        super().__init__(scalar, 1)
        self.huge = huge
        self.slot: int | None = None
        self.any_huge = "false"

    def one_huge(self, x: str) -> str:
        """Return the bit that an angle is too large for the usual reduction."""
        return self.put(f"extractelement {self.bits} {self.is_huge(x)}, i64 0")

    def place(self, slot: int, cosine: bool) -> str:
        """Return the pointer to a sine or cosine in the table."""
        return self.put(f"getelementptr i8, ptr %table, i64 {(2 * slot + cosine) * self.scalar.size}")

    def sin_cos(self, x: str) -> tuple[str, str]:
        """Return sin and cos of any angle."""
        sin, cos = super().sin_cos(x)
        return self._or_slow(x, sin, cos) if self.huge else (sin, cos)

    def _or_slow(self, x: str, sin: str, cos: str) -> tuple[str, str]:
        """Return sin and cos, or those of the table or of the slow function if the angle is huge."""
        bit = self.one_huge(x) if self.slot is None else self.any_huge
        label, before = self._next, self.block
        self.lines += [f"  br i1 {bit}, label %slow.{label}, label %done.{label}, !prof !1", f"slow.{label}:"]
        if self.slot is None:
            slow = sin_cos_huge(self, x)
        else:
            places = [self.place(self.slot, cosine) for cosine in (False, True)]
            first, second = (self.put(f"load {self.vector}, ptr {p}, align {self.scalar.size}") for p in places)
            slow = first, second
        self.lines += [f"  br label %done.{label}", f"done.{label}:"]
        self.block = f"done.{label}"
        pairs = zip((sin, cos), slow, strict=True)
        either = [f"phi {self.vector} [ {a}, %{before} ], [ {b}, %slow.{label} ]" for a, b in pairs]
        return self.put(either[0]), self.put(either[1])


def write_test(e: CudaEmitter, angles: Sequence[int], load: Callable[[int], str]) -> None:
    """Write the test of angles that ``load`` gives, and the table of their sines and cosines, made if one is huge."""
    if not angles:
        return
    e.lines.insert(0, f"  %angles = alloca i8, i64 {2 * len(angles) * e.scalar.size + 8}, align 8")
    # An index that is always 0, which the compiler cannot know: it would keep the whole table in registers.
    e.lines += ["  %zero = lshr i64 %states, 63", "  %table = getelementptr i64, ptr %angles, i64 %zero"]
    some = "false"
    for angle in angles:
        some = e.put(f"or i1 {some}, {e.one_huge(load(angle))}")
    e.any_huge = some
    e.lines += [f"  br i1 {some}, label %huge.some, label %huge.none, !prof !1", "huge.some:"]
    pair = f"{{ {e.vector}, {e.vector} }}"
    e.functions.setdefault(_NAME, _function(e, pair))
    for slot, angle in enumerate(angles):
        both = e.put(f"call {pair} {_NAME}({e.vector} {load(angle)})")
        for k in range(2):
            value = e.put(f"extractvalue {pair} {both}, {k}")
            e.lines.append(f"  store {e.vector} {value}, ptr {e.place(slot, bool(k))}, align {e.scalar.size}")
    e.lines += ["  br label %huge.none", "huge.none:"]
    e.block = "huge.none"


def _function(e: CudaEmitter, pair: str) -> str:
    """Return the function of sine and cosine of any angle."""
    body = CudaEmitter(e.scalar, huge=False)
    usual, slow = body.sin_cos("%x"), sin_cos_huge(body, "%x")
    bit = body.one_huge("%x")
    found = [body.put(f"select i1 {bit}, {e.vector} {b}, {e.vector} {a}") for a, b in zip(usual, slow, strict=True)]
    first = body.put(f"insertvalue {pair} poison, {e.vector} {found[0]}, 0")
    both = body.put(f"insertvalue {pair} {first}, {e.vector} {found[1]}, 1")
    e.functions |= body.functions
    head = f"define internal {pair} {_NAME}({e.vector} %x) noinline {{\nentry:"
    return "\n".join([head, *body.lines, f"  ret {pair} {both}", "}"])
