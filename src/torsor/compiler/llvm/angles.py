"""LLVM code of the loop that computes sine and cosine of many angles.

The loop has no branches but its own: from the sum of the squares of the angles, the caller sees whether one may be too
large for the reduction of the range, and then has such angles computed again.
"""

from torsor.compiler.llvm.huge_angles import sin_cos_huge
from torsor.compiler.llvm.rules import Constants, Emitter, Scalar


def write_angles(scalar: Scalar, width: int, constants: Constants) -> str:
    """Return a module with ``angles``, which computes a list of angles, and ``angles.huge``; it serves all programs.

    They take the memory of the angles and of the results, and the begin and the end of a list of offsets of angles in
    bytes. The results are written one after the other, the sine before the cosine. ``angles`` returns whether one of
    the angles may be huge; then ``angles.huge`` has to be called with the same arguments.
    """
    block = width * scalar.size
    fast, slow = Emitter(scalar, width, constants), Emitter(scalar, width)
    x = fast.load("%angle")
    sin, cos = fast.sin_cos(x)
    fast.store(sin, "%sin")
    fast.store(cos, "%cos")
    squares = fast.call("fma", x, x, "%before")
    x = slow.load("%angle")
    # Only lanes with huge angles change: the result of a state must not depend on its neighbours.
    huge = slow.is_huge(x)
    for name, value in zip(("%sin", "%cos"), sin_cos_huge(slow, x), strict=True):
        slow.store(slow.select(huge, value, slow.load(name)), name)
    vector = fast.vector
    functions = "\n".join(slow.functions.values())
    return f"""
{fast.numbers()}
declare i1 @llvm.vector.reduce.or.v{width}i1({fast.bits})
declare {vector} @llvm.fma.{fast.suffix}({vector}, {vector}, {vector})
declare {vector} @llvm.copysign.{fast.suffix}({vector}, {vector})
declare {vector} @llvm.fabs.{fast.suffix}({vector})
{functions}
define i1 @angles(ptr %from, ptr %to, ptr %start, ptr %last) {{
entry:
  br label %body
body:
  %before = phi {vector} [ zeroinitializer, %entry ], [ {squares}, %body ]
{_each(fast, block)}
after:
  ; one of the angles may be huge, or is no number
  %some = fcmp ugt {vector} {squares}, splat ({scalar.name} {scalar.literal(scalar.largest_angle**2)})
  %any = call i1 @llvm.vector.reduce.or.v{width}i1({fast.bits} %some)
  ret i1 %any
}}
define void @angles.huge(ptr %from, ptr %to, ptr %start, ptr %last) {{
entry:
  br label %body
body:
{_each(slow, block)}
after:
  ret void
}}
"""


def call_angles(memory: str, offset: int, first: int, end: int) -> str:
    """Return the code that computes a range of ``@places`` in ``memory``, with the results at an offset of scratch."""
    arguments = f"ptr {memory}, ptr %to.{first}, ptr %start.{first}, ptr %last.{first}"
    return f"""  %to.{first} = getelementptr i8, ptr %scratch, i64 {offset}
  %start.{first} = getelementptr i64, ptr @places, i64 {first}
  %last.{first} = getelementptr i64, ptr @places, i64 {end}
  %some.{first} = call i1 @angles({arguments})
  br i1 %some.{first}, label %huge.{first}, label %small.{first}, !prof !0
huge.{first}:
  call void @angles.huge({arguments})
  br label %small.{first}
small.{first}:"""


def write_places(places: list[int], scalar: Scalar, width: int) -> str:
    """Return the table of the offsets of angles, for the module that calls ``angles``; places count blocks."""
    if not places:
        return ""
    table = ", ".join(f"i64 {place * width * scalar.size}" for place in places)
    return f"""
declare i1 @angles(ptr, ptr, ptr, ptr)
declare void @angles.huge(ptr, ptr, ptr, ptr)
@places = internal constant [{len(places)} x i64] [{table}]
"""


def _each(emitter: Emitter, block: int) -> str:
    """Return the body of a loop over angles: what the emitter has written, with the addresses before it."""
    text = "\n".join(emitter.lines)
    return f"""  %place = phi ptr [ %start, %entry ], [ %place.next, %body ]
  %sin = phi ptr [ %to, %entry ], [ %sin.next, %body ]
  %offset = load i64, ptr %place
  %angle = getelementptr i8, ptr %from, i64 %offset
  %cos = getelementptr i8, ptr %sin, i64 {block}
{text}
  %place.next = getelementptr i64, ptr %place, i64 1
  %sin.next = getelementptr i8, ptr %sin, i64 {2 * block}
  %more = icmp ne ptr %place.next, %last
  br i1 %more, label %body, label %after"""
