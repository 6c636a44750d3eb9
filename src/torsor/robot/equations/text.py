"""Equations as LaTeX: one line for each result and for each symbol that they use."""

from collections.abc import Mapping
from typing import Any

from sympy.printing.latex import LatexPrinter

from torsor.robot.equations.rules import Expression


class _Printer(LatexPrinter):  # type: ignore[misc]
    """SymPy's printer with numbers of a few digits."""

    def __init__(self, digits: int, symbol_names: Mapping[Any, str]):
        super().__init__({"symbol_names": dict(symbol_names)})
        self.digits = digits

    def _print_Float(self, expr: Any) -> str:
        text = f"{float(expr):.{self.digits}g}"
        mantissa, e, exponent = text.partition("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else mantissa


def latex(expression: Expression, names: Mapping[Any, str], digits: int) -> str:
    """Return an expression as LaTeX."""
    text: str = _Printer(digits, names).doprint(expression)
    return text


def aligned(lines: list[tuple[str, str]]) -> str:
    r"""Return equations below each other, aligned at the sign of equality."""
    body = " \\\\\n".join(f"{left} &= {right}" for left, right in lines)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
