"""Batched sines and cosines: the stages of a program, and the loops over angles.

The sine and cosine of an angle take about forty instructions and a rare branch. Inlined, they would be most of the
instructions for a robot with many joints, and the branch would make LLVM save registers around it. A program is
therefore computed in stages: the known angles are collected, and loops compute their sines and cosines. The angles of a
robot are mostly inputs, so this happens once, at the start. A simulation step has additional stages where new angles
occur.

The steps for one angle depend on each other, so several angles are computed together, up to the capacity of the
registers. There is a loop for each number of angles, and a list of angles is divided between two loops, so that no work
is wasted.

The loops are branch-free. The caller detects from the sum of the squared angles whether an angle may be too large for
the range reduction, and recomputes such angles.
"""

import re
from typing import NamedTuple

import casadi as ca

from torsor.compiler.llvm import ir
from torsor.compiler.llvm.coefficients import COEFFICIENTS
from torsor.compiler.llvm.rules import Constants, Emitter, Scalar
from torsor.compiler.llvm.vectors import Number, Whole, each_lane, fma, polynomial, quick_two_sum, two_product, where
from torsor.compiler.program import Program

# Range reduction of huge angles for sin, cos and tan, in integer arithmetic (Payne and Hanek 1983).
#
# An angle x = M 2^e is a 53-bit integer M times a power of two. The bits of 2 / pi that contribute multiples of four
# quarter turns are omitted. In the product of M and the next 192 bits, the first two bits are the quarter turn, and the
# others are the angle within it, to full precision even next to multiples of pi/2.

_NAME = "@reduce.huge"

Pair = tuple[Number, Number]


def _reduction() -> str:
    """Return the LLVM function that reduces a float64 of at least 2^-9 to a sum of two numbers and the quarter."""
    words = [f"i64 {word}" for word in COEFFICIENTS["TWO_OVER_PI"]["words"]]
    high, low = map(Scalar("float64").literal, COEFFICIENTS["HALF_PI"]["float64"])
    return ir("reduce_huge", count=len(words), words=", ".join(words), high=high, low=low)


def reduce_huge(x: Number) -> tuple[Number, Number, Whole]:
    """Return (r, low, quarter) with x = r + low + quarter pi/2, for x beyond the limit of the standard reduction."""
    e = x.emitter
    e.functions.setdefault(_NAME, _reduction())
    doubles = f"<{e.width} x double>"
    high, low, quarter = each_lane(_NAME, ("double", "double", "i64"), x)
    if x.dtype == "float64":
        return Number(e, high), Number(e, low), Whole(e, quarter)
    single = e.put(f"fptrunc {doubles} {high} to {e.vector}")
    again = e.put(f"fpext {e.vector} {single} to {doubles}")
    left = e.put(f"fadd {doubles} {e.put(f'fsub {doubles} {high}, {again}')}, {low}")
    rest = e.put(f"fptrunc {doubles} {left} to {e.vector}")
    short = e.put(f"trunc <{e.width} x i64> {quarter} to {e.integers}")
    return Number(e, single), Number(e, rest), Whole(e, short)


def sine_and_cosine(r: Number, low: Number) -> tuple[Pair, Pair]:
    """Return sin(r + low) and cos(r + low) for |r| <= pi/4, each as a sum of two numbers."""
    s = r.emitter.scalar
    z, error = two_product(r, r)
    half = z * 0.5
    usual = 1.0 - half
    lost = (1.0 - usual) - half
    sine = quick_two_sum(r, fma(z * r, polynomial(z, s.sin_terms), low * usual))
    rest = fma(z * z, polynomial(z, s.cos_terms), lost - fma(error, 0.5, r * low))
    return sine, quick_two_sum(usual, rest)


def in_quarter(even: Number, odd: Number, quarter: Whole) -> Number:
    """Return ``even`` in even quarters, otherwise ``odd``, with the sign changed in quarters 2 and 3 (modulo 4)."""
    sign = (quarter & 2) << (8 * even.emitter.scalar.size - 2)
    return (where(quarter.is_odd(), odd, even).bits() ^ sign).as_bits()


def sin_cos_huge(e: Emitter, x: str) -> tuple[str, str]:
    """Return sin and cos of vectors of huge numbers by a call to a function, which is emitted once per emitter.

    Lanes with numbers below 2^-9 have arbitrary results; infinities and NaN yield NaN.
    """
    name, pair = "@vectors.sin_cos_huge", f"{{ {e.vector}, {e.vector} }}"
    if name not in e.functions:
        body = Emitter(e.scalar, e.width)
        r, low, quarter = reduce_huge(Number(body, "%x"))
        sine, cosine = (high + rest for high, rest in sine_and_cosine(r, low))
        results = in_quarter(sine, cosine, quarter), in_quarter(sine, cosine, quarter + 1)
        first = body.put(f"insertvalue {pair} poison, {e.vector} {results[0].name}, 0")
        both = body.put(f"insertvalue {pair} {first}, {e.vector} {results[1].name}, 1")
        e.functions |= body.functions
        head = f"define internal {pair} {name}({e.vector} %x) noinline {{\nentry:"
        e.functions[name] = "\n".join([head, *body.lines, f"  ret {pair} {both}", "}"])
    result = e.put(f"call {pair} {name}({e.vector} {x})")
    return e.put(f"extractvalue {pair} {result}, 0"), e.put(f"extractvalue {pair} {result}, 1")


TRIGONOMETRIC = (ca.OP_SIN, ca.OP_COS)


class Stage(NamedTuple):
    """Operations that are computed together, as program indices: either sines and cosines, or other operations."""

    trigonometric: bool
    indices: list[int]


def has_angles(program: Program) -> bool:
    """Return whether a program has sines or cosines."""
    return any(operation.code in TRIGONOMETRIC for operation in program.operations)


def stages(program: Program) -> list[Stage]:
    """Return the operations of a program in stages, which use only values of the same or earlier stages.

    Each operation is computed in the first stage that uses its value, so few values are live. Within a stage, the order
    of the program is kept. Inputs and constants belong to no stage, except constants that are angles.
    """
    operations = program.operations
    depth = [0] * len(operations)  # number of sines or cosines that precede a value
    for index, (code, arguments, _) in enumerate(operations):
        if code != ca.OP_INPUT:
            most = 0
            for argument in arguments:
                if depth[argument] > most:
                    most = depth[argument]
            depth[index] = most + 1 if code in TRIGONOMETRIC else most
    never = max(depth, default=0) + 1
    first_use = [never] * len(operations)  # the first stage that uses a value
    groups: list[tuple[list[int], list[int]]] = [([], []) for _ in range(never)]
    for index in range(len(operations) - 1, -1, -1):
        code, arguments, _ = operations[index]
        if code == ca.OP_INPUT or (code == ca.OP_CONST and first_use[index] == never):
            continue
        trigonometric = code in TRIGONOMETRIC
        place = depth[index] if trigonometric or first_use[index] == never else first_use[index]
        groups[place][not trigonometric].append(index)
        needed = place - 1 if trigonometric else place
        for argument in arguments:
            if needed < first_use[argument] and (trigonometric or operations[argument].code != ca.OP_CONST):
                first_use[argument] = needed
    return [Stage(kind == 0, indices[::-1]) for group in groups for kind, indices in enumerate(group) if indices]


class Passes(NamedTuple):
    """``times`` passes of a loop that computes ``together`` angles at a time."""

    together: int
    times: int


def passes(angles: int, registers: int) -> list[Passes]:
    """Return the division of a list of angles into the fewest passes of similar length that fit the registers."""
    most = 5 if registers >= 32 else 3
    count = -(-angles // most)
    least, more = divmod(angles, count)
    return [item for item in (Passes(least + 1, more), Passes(least, count - more)) if item.times]


def loops_called(module: str) -> tuple[int, ...]:
    """Return the loops that a module calls, identified by the number of angles that they compute together."""
    return tuple(sorted({int(number) for number in re.findall(r"call i1 @angles\.(\d+)\(", module)}))


def write_angles(scalar: Scalar, width: int, constants: Constants, loops: tuple[int, ...]) -> str:
    """Return a module with ``angles.k`` for each k in ``loops``, and ``angles.huge``, for use by many programs.

    ``angles.k`` computes sines and cosines of a list of angles, k at a time; the length of the list is a multiple of k.
    The functions take pointers to the angles and the results, and to the start and end of a list of angle offsets in
    bytes. The results are written in sequence, sine before cosine. ``angles.k`` returns whether one of the angles may
    be huge; ``angles.huge`` must then be called with the same arguments.
    """
    slow = Emitter(scalar, width)
    x = slow.load("%angle")
    # Only lanes with huge angles change, because the result of a state must not depend on its neighbours.
    huge = slow.is_huge(x)
    for name, value in zip(("%sin", "%cos"), sin_cos_huge(slow, x), strict=True):
        slow.store(slow.select(huge, value, slow.load(name)), name)
    vector = slow.vector
    fast = "".join(_write_loop(scalar, width, constants, together) for together in loops)
    return f"""
{chr(10).join(slow.functions.values())}
declare i1 @llvm.vector.reduce.or.v{width}i1({slow.bits})
declare {vector} @llvm.fma.{slow.suffix}({vector}, {vector}, {vector})
declare {vector} @llvm.copysign.{slow.suffix}({vector}, {vector})
declare {vector} @llvm.fabs.{slow.suffix}({vector})
{fast}define void @angles.huge(ptr %from, ptr %to, ptr %start, ptr %last) {{
entry:
  br label %body
body:
{_loop(slow.lines, 1, width * scalar.size)}
after:
  ret void
}}
"""


def _write_loop(scalar: Scalar, width: int, constants: Constants, together: int) -> str:
    """Return the function that computes ``together`` angles at a time."""
    fast, squares = list[Emitter](), "%before"
    for k in range(together):
        e = Emitter(scalar, width, constants, f"@numbers.{together}.{k}")
        e.prefix = f"a{k}."
        x = e.load(f"%angle{k or ''}")
        squares = e.call("fma", x, x, squares)
        for name, value in zip(("sin", "cos"), e.sin_cos(x), strict=True):
            e.store(value, f"%{name}{k or ''}")
        fast.append(e)
    lines = [line for item in zip(*(item.lines for item in fast), strict=True) for line in item]
    return f"""{"".join(item.numbers() for item in fast)}
define i1 @angles.{together}(ptr %from, ptr %to, ptr %start, ptr %last) {{
entry:
  br label %body
body:
  %before = phi {e.vector} [ zeroinitializer, %entry ], [ {squares}, %body ]
{_loop(lines, together, width * scalar.size)}
after:
  ; one of the angles may be huge, or is no number
  %some = fcmp ugt {e.vector} {squares}, splat ({scalar.name} {scalar.literal(scalar.largest_angle**2)})
  %any = call i1 @llvm.vector.reduce.or.v{width}i1({e.bits} %some)
  ret i1 %any
}}
"""


def call_angles(memory: str, offset: int, first: int, loop: Passes) -> str:
    """Return the code that computes the angles in ``@places`` from index ``first`` on, with results at ``offset``."""
    end = first + loop.together * loop.times
    arguments = f"ptr {memory}, ptr %to.{first}, ptr %start.{first}, ptr %last.{first}"
    return f"""  %to.{first} = getelementptr i8, ptr %scratch, i64 {offset}
  %start.{first} = getelementptr i64, ptr @places, i64 {first}
  %last.{first} = getelementptr i64, ptr @places, i64 {end}
  %some.{first} = call i1 @angles.{loop.together}({arguments})
  br i1 %some.{first}, label %huge.{first}, label %small.{first}, !prof !0
huge.{first}:
  call void @angles.huge({arguments})
  br label %small.{first}
small.{first}:"""


def write_places(places: list[int], scalar: Scalar, width: int, loops: tuple[int, ...]) -> str:
    """Return the table of angle offsets for the module that calls ``loops``; ``places`` are block numbers."""
    if not places:
        return ""
    declarations = "\n".join(f"declare i1 @angles.{together}(ptr, ptr, ptr, ptr)" for together in loops)
    table = ", ".join(f"i64 {place * width * scalar.size}" for place in places)
    return f"""
{declarations}
declare void @angles.huge(ptr, ptr, ptr, ptr)
@places = internal constant [{len(places)} x i64] [{table}]
"""


def _loop(lines: list[str], count: int, block: int) -> str:
    """Return the body of a loop over angles, ``count`` at a time: the addresses, followed by ``lines``."""
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
