"""Functions of vectors that are written once in a module and called wherever they are used.

A program with thirty tanh is compiled as fast as one with one.
"""

from collections.abc import Callable

from torsor.compiler.llvm.rules import Emitter
from torsor.compiler.llvm.vectors import Number


def call(function: Callable[..., Number], *arguments: Number) -> Number:
    """Return the result of a function of vectors, which is written where an emitter needs it for the first time."""
    e, name = arguments[0].emitter, f"@vectors.{function.__name__}"
    if name not in e.functions:
        e.functions[name] = _definition(e, name, function, len(arguments))
    typed = ", ".join(f"{e.vector} {argument.name}" for argument in arguments)
    return Number(e, e.put(f"call {e.vector} {name}({typed})"))


def _definition(e: Emitter, name: str, function: Callable[..., Number], count: int) -> str:
    body = Emitter(e.scalar, e.width, e.constants, f"{name}.numbers")
    names = [f"%x{k}" for k in range(count)]
    result = function(*(Number(body, each) for each in names))
    arguments = ", ".join(f"{e.vector} {each}" for each in names)
    head = f"define internal {e.vector} {name}({arguments}) {{\nentry:"
    e.functions |= body.functions
    return "\n".join([body.numbers(), head, *body.lines, f"  ret {e.vector} {result.name}", "}"])
