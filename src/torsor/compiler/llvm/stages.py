"""The order in which LLVM code computes: stages of arithmetic, and between them sines and cosines, many at a time.

Sine and cosine of an angle are some forty instructions and a rare branch. Written in place, they would be most of the
instructions of a robot with many joints, and the branch would make LLVM save registers around it. So the angles that
are known are collected, and one loop computes all of them. The angles of a robot are mostly inputs, so that this is one
loop before everything else; a step of a simulation has another one wherever new angles appear.
"""

from typing import NamedTuple

import casadi as ca

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
