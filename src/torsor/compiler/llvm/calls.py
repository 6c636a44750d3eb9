"""Functions of vectors that are written once in a module and called wherever they are used.

A program with thirty tanh is compiled as fast as one with one.
"""

from collections.abc import Callable

from torsor.compiler.llvm.rules import Emitter, Scalar
from torsor.compiler.llvm.vectors import FORMATS, Number

_TABLE_BYTES = 16  # of a vector register of AArch64
_SMALL = 4096  # integers below it take one instruction


def call(function: Callable[..., Number], *arguments: Number) -> Number:
    """Return the result of a function of vectors, which is written where an emitter needs it for the first time."""
    e, name = arguments[0].emitter, f"@vectors.{function.__name__}"
    if name not in e.functions:
        e.functions[name] = _definition(e, name, function, len(arguments))
    typed = ", ".join(f"{e.vector} {argument.name}" for argument in arguments)
    return Number(e, e.put(f"call {e.vector} {name}({typed})"))


class _Body(Emitter):
    """Writes a function. In vectors of 16 bytes its constants are loaded from a table.

    Those are the vectors of AArch64, where a constant of eight bytes takes five instructions, and a load one. Other
    processors take constants from memory anyway, or have them in their instructions.
    """

    def __init__(self, scalar: Scalar, width: int, table: str):
        super().__init__(scalar, width)
        self._table, self._rows = table, dict[int, int]()

    def constant(self, number: float) -> str:
        """Return a vector with the same number in all lanes."""
        bits = FORMATS[self.scalar.dtype].bits(number)
        return self._loaded(self.vector, bits) if self._has_table and bits else super().constant(number)

    def integer(self, number: int) -> str:
        """Return a vector with the same integer in all lanes; small ones, such as shifts, are part of instructions."""
        long = abs(number) >= _SMALL
        return self._loaded(self.integers, number) if self._has_table and long else super().integer(number)

    @property
    def _has_table(self) -> bool:
        return self.width * self.scalar.size == _TABLE_BYTES

    def _loaded(self, kind: str, bits: int) -> str:
        row = self._rows.setdefault(bits, len(self._rows))
        pointer = self.put(f"getelementptr {self.integers}, ptr {self._table}, i64 {row}")
        return self.put(f"load {kind}, ptr {pointer}, align {_TABLE_BYTES}")

    def table(self) -> list[str]:
        """Return the definition of the table, if there is one."""
        rows = ", ".join(f"{self.integers} splat ({self.scalar.integer} {bits})" for bits in self._rows)
        size = f"[{len(self._rows)} x {self.integers}]"
        return [f"{self._table} = internal constant {size} [{rows}], align {_TABLE_BYTES}"] if rows else []


def _definition(e: Emitter, name: str, function: Callable[..., Number], count: int) -> str:
    body = _Body(e.scalar, e.width, f"{name}.numbers")
    names = [f"%x{k}" for k in range(count)]
    result = function(*(Number(body, each) for each in names))
    arguments = ", ".join(f"{e.vector} {each}" for each in names)
    head = f"define internal {e.vector} {name}({arguments}) {{\nentry:"
    e.functions |= body.functions
    return "\n".join([*body.table(), head, *body.lines, f"  ret {e.vector} {result.name}", "}"])
