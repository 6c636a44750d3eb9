"""The imports of a file, wherever they are, without a walk through its expressions."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

Import = ast.Import | ast.ImportFrom


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Return the import statements of a file: at its top, inside of functions, and for type checkers only."""
    return tuple(_imports(ast.parse(path.read_text()).body))


def _imports(statements: list[ast.stmt]) -> Iterator[Import]:
    for statement in statements:
        if isinstance(statement, Import):
            yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _imports(getattr(statement, name, []))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _imports(part.body)
