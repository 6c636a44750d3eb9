"""LLVM code of the loop that computes sine and cosine of many angles.

The loop has no branches but its own: from the sum of the squares of the angles, the caller sees whether one may be too
large for the reduction of the range, and then has such angles computed again by the C library.
"""

from typing import NamedTuple

from torsor.compiler.llvm.rules import Emitter, Scalar, lanes


class Angle(NamedTuple):
    """Where an angle is, and where its sine and cosine go: blocks of W numbers, counted from two base addresses."""

    source: int
    sin: int
    cos: int


def write_angles(angles: list[Angle], scalar: Scalar, width: int, tabled: bool) -> str:
    """Return a module with ``angles``, which computes a range of a list of angles, and ``angles.huge``.

    ``angles`` returns whether one of them may be huge; then ``angles.huge`` has to be called with the same arguments.
    """
    block = width * scalar.size
    table = ", ".join(f"i64 {place * block}" for angle in angles for place in angle)
    fast, slow = Emitter(scalar, width, tabled), Emitter(scalar, width)
    x = _load(fast, "source")
    sin, cos = fast.sin_cos(x)
    _store(fast, sin, "sin")
    _store(fast, cos, "cos")
    noted = fast.call("fma", x, x, "%before")
    x = _load(slow, "source")
    # Only lanes with huge angles change: the result of a state must not depend on its neighbours.
    huge = slow.is_huge(x)
    for name in ("sin", "cos"):
        _store(slow, slow.select(huge, slow.library(name, x), _load(slow, name)), name)
    note = fast.vector
    return f"""
@table = internal constant [{3 * len(angles)} x i64] [{table}]
{fast.numbers()}
declare i1 @llvm.vector.reduce.or.v{width}i1({fast.bits})
declare {note} @llvm.fma.{fast.suffix}({note}, {note}, {note})
declare {note} @llvm.copysign.{fast.suffix}({note}, {note})
declare {note} @llvm.fabs.{fast.suffix}({note})
{chr(10).join(line for name in ("sin", "cos") for line in lanes(slow, name, 1))}
define i1 @angles(ptr %from, ptr %to, i64 %first, i64 %end) {{
entry:
  br label %body
body:
  %before = phi {note} [ zeroinitializer, %entry ], [ {noted}, %body ]
{_each(fast)}
after:
  ; one of the angles may be huge, or is no number
  %some = fcmp ugt {note} {noted}, splat ({scalar.name} {scalar.literal(scalar.largest_angle**2)})
  %any = call i1 @llvm.vector.reduce.or.v{width}i1({fast.bits} %some)
  ret i1 %any
}}
define void @angles.huge(ptr %from, ptr %to, i64 %first, i64 %end) {{
entry:
  br label %body
body:
{_each(slow)}
after:
  ret void
}}
"""


def call_angles(source: str, first: int, end: int) -> str:
    """Return the code that computes a range of angles, which are in the memory ``source``, %in or %scratch."""
    arguments = f"ptr {source}, ptr %scratch, i64 {first}, i64 {end}"
    return f"""  %some.{first} = call i1 @angles({arguments})
  br i1 %some.{first}, label %huge.{first}, label %small.{first}, !prof !0
huge.{first}:
  call void @angles.huge({arguments})
  br label %small.{first}
small.{first}:"""


def _each(emitter: Emitter) -> str:
    """Return the body of a loop over angles: what the emitter has written, with the addresses before it."""
    addresses = "".join(
        f"  %{name}.k = getelementptr i64, ptr %entry.k, i64 {k}\n  %{name}.offset = load i64, ptr %{name}.k\n"
        f"  %{name} = getelementptr i8, ptr %{base}, i64 %{name}.offset\n"
        for k, (name, base) in enumerate((("source", "from"), ("sin", "to"), ("cos", "to")))
    )
    text = "\n".join(emitter.lines)
    return f"""  %k = phi i64 [ %first, %entry ], [ %next, %body ]
  %entry.k = getelementptr [3 x i64], ptr @table, i64 %k
{addresses}{text}
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %body, label %after"""


def _load(e: Emitter, name: str) -> str:
    return e.put(f"load {e.vector}, ptr %{name}, align {e.width * e.scalar.size}")


def _store(e: Emitter, value: str, name: str) -> None:
    e.lines.append(f"  store {e.vector} {value}, ptr %{name}, align {e.width * e.scalar.size}")
