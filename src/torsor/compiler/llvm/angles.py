"""LLVM code of the loop that computes sine and cosine of many angles.

The loop has no branches but its own: from the sum of the squares of the angles, the caller sees whether one may be too
large for the reduction of the range, and then has such angles computed again.
"""

from torsor.compiler.llvm.huge_angles import sin_cos_huge
from torsor.compiler.llvm.rules import Constants, Emitter, Scalar

TOGETHER = 3  # angles: the steps of one wait for each other


def write_angles(scalar: Scalar, width: int, constants: Constants) -> str:
    """Return a module with ``angles``, which computes a list of angles, and ``angles.huge``; it serves all programs.

    They take the memory of the angles and of the results, and the begin and the end of a list of offsets of angles in
    bytes. The results are written one after the other, the sine before the cosine. ``angles`` returns whether one of
    the angles may be huge; then ``angles.huge`` has to be called with the same arguments.
    """
    fast, squares = _together(scalar, width, constants)
    slow = Emitter(scalar, width)
    x = slow.load("%angle")
    # Only lanes with huge angles change: the result of a state must not depend on its neighbours.
    huge = slow.is_huge(x)
    for name, value in zip(("%sin", "%cos"), sin_cos_huge(slow, x), strict=True):
        slow.store(slow.select(huge, value, slow.load(name)), name)
    vector = slow.vector
    definitions = "\n".join([*(each.numbers() for each in fast), *slow.functions.values()])
    lines = [line for each in zip(*(each.lines for each in fast), strict=True) for line in each]
    return f"""
{definitions}
declare i1 @llvm.vector.reduce.or.v{width}i1({slow.bits})
declare {vector} @llvm.fma.{slow.suffix}({vector}, {vector}, {vector})
declare {vector} @llvm.copysign.{slow.suffix}({vector}, {vector})
declare {vector} @llvm.fabs.{slow.suffix}({vector})
define i1 @angles(ptr %from, ptr %to, ptr %start, ptr %last) {{
entry:
  br label %body
body:
  %before = phi {vector} [ zeroinitializer, %entry ], [ {squares}, %body ]
{_loop(lines, TOGETHER, width * scalar.size)}
after:
  ; one of the angles may be huge, or is no number
  %some = fcmp ugt {vector} {squares}, splat ({scalar.name} {scalar.literal(scalar.largest_angle**2)})
  %any = call i1 @llvm.vector.reduce.or.v{width}i1({slow.bits} %some)
  ret i1 %any
}}
define void @angles.huge(ptr %from, ptr %to, ptr %start, ptr %last) {{
entry:
  br label %body
body:
{_loop(slow.lines, 1, width * scalar.size)}
after:
  ret void
}}
"""


def _together(scalar: Scalar, width: int, constants: Constants) -> tuple[list[Emitter], str]:
    """Return the code of each of the angles that are computed together, and the name of the sum of squares after it."""
    found, squares = [], "%before"
    for k in range(TOGETHER):
        e = Emitter(scalar, width, constants, f"@numbers.{k}")
        e.prefix = f"a{k}."
        x = e.load(f"%angle{k or ''}")
        squares = e.call("fma", x, x, squares)
        sin, cos = e.sin_cos(x)
        e.store(sin, f"%sin{k or ''}")
        e.store(cos, f"%cos{k or ''}")
        found.append(e)
    return found, squares


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


def _loop(lines: list[str], count: int, block: int) -> str:
    """Return the body of a loop over angles, ``count`` at a time: given lines, with the addresses before them."""
    addresses = "".join(
        f"""  %place{k} = getelementptr i64, ptr %place, i64 {k}
  %offset{k} = load i64, ptr %place{k}
  %angle{k or ""} = getelementptr i8, ptr %from, i64 %offset{k}
  %sin{k or ""} = getelementptr i8, ptr %result, i64 {2 * k * block}
  %cos{k or ""} = getelementptr i8, ptr %result, i64 {(2 * k + 1) * block}
"""
        for k in range(count)
    )
    text = "\n".join(lines)
    return f"""  %place = phi ptr [ %start, %entry ], [ %place.next, %body ]
  %result = phi ptr [ %to, %entry ], [ %result.next, %body ]
{addresses}{text}
  %place.next = getelementptr i64, ptr %place, i64 {count}
  %result.next = getelementptr i8, ptr %result, i64 {2 * count * block}
  %more = icmp ne ptr %place.next, %last
  br i1 %more, label %body, label %after"""
