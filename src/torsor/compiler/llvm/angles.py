"""Sines and cosines, many at a time: where they stand among the operations, and the loops that compute them.

Sine and cosine of an angle are some forty instructions and a rare branch. Written in place, they would be most of the
instructions of a robot with many joints, and the branch would make LLVM save registers around it. So a program is
computed in stages: the angles that are known are collected, and loops compute all of them. The angles of a robot are
mostly inputs, so that this comes once, before everything else; a step of a simulation has other stages wherever new
angles appear.

The steps of one angle wait for each other, so that several are computed together, as many as the registers hold. There
is a loop for each number of angles, and a list of angles is divided among two of them: none is computed in vain.

A loop has no branches but its own: from the sum of the squares of the angles, the caller sees whether one may be too
large for the reduction of the range, and then has such angles computed again.
"""

import re
from typing import NamedTuple

import casadi as ca

from torsor.compiler.llvm.huge_angles import sin_cos_huge
from torsor.compiler.llvm.rules import Constants, Emitter, Scalar
from torsor.compiler.program import Program

TRIGONOMETRIC = (ca.OP_SIN, ca.OP_COS)


class Stage(NamedTuple):
    """Operations that are computed together, as indices into the program: sines and cosines, or anything else."""

    trigonometric: bool
    indices: list[int]


def has_angles(program: Program) -> bool:
    """Whether a program has sines or cosines."""
    return any(operation.code in TRIGONOMETRIC for operation in program.operations)


def stages(program: Program) -> list[Stage]:
    """Return the operations of a program in stages, each of which uses values of earlier stages only, or its own.

    An operation is computed in the first stage in which its value is used, so that few values wait. Within a stage the
    order of the program remains. Inputs and constants belong to no stage, except for constants that are angles.

    Example:
        >>> from torsor.compiler.program import read_program
        >>> x = ca.SX.sym("x", 2)
        >>> found = stages(read_program(ca.Function("f", [x], [x[0] * ca.sin(x[1]) + ca.cos(2 * x[0])])))
        >>> [(stage.trigonometric, len(stage.indices)) for stage in found]
        [(False, 1), (True, 2), (False, 2)]
    """
    operations = program.operations
    depth = [0] * len(operations)  # how many sines or cosines lie before a value
    for index, (code, arguments, _) in enumerate(operations):
        if code != ca.OP_INPUT:
            most = 0
            for argument in arguments:
                if depth[argument] > most:
                    most = depth[argument]
            depth[index] = most + 1 if code in TRIGONOMETRIC else most
    never = max(depth, default=0) + 1
    wanted = [never] * len(operations)  # the first stage in which a value is used
    groups: list[tuple[list[int], list[int]]] = [([], []) for _ in range(never)]
    for index in range(len(operations) - 1, -1, -1):
        code, arguments, _ = operations[index]
        if code == ca.OP_INPUT or (code == ca.OP_CONST and wanted[index] == never):
            continue
        trigonometric = code in TRIGONOMETRIC
        place = depth[index] if trigonometric or wanted[index] == never else wanted[index]
        groups[place][not trigonometric].append(index)
        needed = place - 1 if trigonometric else place
        for argument in arguments:
            if needed < wanted[argument] and (trigonometric or operations[argument].code != ca.OP_CONST):
                wanted[argument] = needed
    return [Stage(kind == 0, indices[::-1]) for group in groups for kind, indices in enumerate(group) if indices]


class Passes(NamedTuple):
    """``times`` passes of a loop that computes ``together`` angles at a time."""

    together: int
    times: int


def passes(angles: int, registers: int) -> list[Passes]:
    """Return how a list of angles is divided: as few passes as the registers allow, with about as many angles each.

    Example:
        >>> [tuple(each) for each in passes(29, 32)], [tuple(each) for each in passes(5, 16)]
        ([(5, 5), (4, 1)], [(3, 1), (2, 1)])
    """
    most = 5 if registers >= 32 else 3
    count = -(-angles // most)
    least, more = divmod(angles, count)
    return [each for each in (Passes(least + 1, more), Passes(least, count - more)) if each.times]


def loops_called(module: str) -> tuple[int, ...]:
    """Return which loops a module calls, by the number of angles that they compute at a time.

    Example:
        >>> loops_called(call_angles("%in", 0, 0, Passes(5, 2)))
        (5,)
    """
    return tuple(sorted({int(number) for number in re.findall(r"call i1 @angles\.(\d+)\(", module)}))


def write_angles(scalar: Scalar, width: int, constants: Constants, loops: tuple[int, ...]) -> str:
    """Return a module with ``angles.k`` for each k of ``loops``, and ``angles.huge``; it serves many programs.

    ``angles.k`` computes a list of angles, k at a time, whose length is a multiple of k. The functions take the memory
    of the angles and of the results, and the begin and the end of a list of offsets of angles in bytes. The results are
    written one after the other, the sine before the cosine. ``angles.k`` returns whether one of the angles may be huge;
    then ``angles.huge`` has to be called with the same arguments.
    """
    slow = Emitter(scalar, width)
    x = slow.load("%angle")
    # Only lanes with huge angles change: the result of a state must not depend on its neighbours.
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
    """Return the function that computes several angles at a time."""
    fast, squares = _together(scalar, width, constants, together)
    lines = [line for each in zip(*(each.lines for each in fast), strict=True) for line in each]
    e = fast[0]
    return f"""{"".join(each.numbers() for each in fast)}
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


def _together(scalar: Scalar, width: int, constants: Constants, together: int) -> tuple[list[Emitter], str]:
    """Return the code of each of the angles that are computed together, and the name of the sum of squares after it."""
    found, squares = [], "%before"
    for k in range(together):
        e = Emitter(scalar, width, constants, f"@numbers.{together}.{k}")
        e.prefix = f"a{k}."
        x = e.load(f"%angle{k or ''}")
        squares = e.call("fma", x, x, squares)
        sin, cos = e.sin_cos(x)
        e.store(sin, f"%sin{k or ''}")
        e.store(cos, f"%cos{k or ''}")
        found.append(e)
    return found, squares


def call_angles(memory: str, offset: int, first: int, loop: Passes) -> str:
    """Return the code that computes the places of ``@places`` from ``first`` on, with the results at an offset."""
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
    """Return the table of the offsets of angles, for the module that calls ``loops``; places count blocks."""
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
