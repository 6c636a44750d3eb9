"""Run the numbered examples and write them as tutorial pages and notebooks, with their output and figures.

    python docs/tools/tutorials.py            # all of them
    python docs/tools/tutorials.py 01 07      # a selection

An example is a Python file with cells: "# %%" starts a code cell, and "# %% [markdown]" starts a text cell. A figure on
the last line of a cell is shown. Jupyter is not needed.
"""

import ast
import contextlib
import io
import json
import re
import sys
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).parent.parent.parent
MAGIC = "%matplotlib inline"  # the first cell of code of a notebook with figures
EXAMPLES, PAGES = ROOT / "examples", ROOT / "docs" / "start" / "tutorials"


class Cell(NamedTuple):
    """A cell: its text or code, its output, and its figure (PNG) if it has one."""

    is_text: bool
    source: str
    printed: str = ""
    figure: bytes = b""


def cells_of(path: Path) -> list[Cell]:
    """Return the cells of an example without running them."""
    parts = re.split(r"^# %%(.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if parts[0].strip():
        raise ValueError(f"{path.name}: text before the first '# %%'")
    cells = []
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        text = body.strip("\n")
        if "[markdown]" in head:
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines())
        cells.append(Cell("[markdown]" in head, text))
    return cells


def run(path: Path) -> list[Cell]:
    """Run an example without arguments in a temporary folder; return its cells with their output and figures."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), patch.object(sys, "argv", [str(path)]):
        return _run(cells_of(path), path.name)


def _run(cells: list[Cell], name: str) -> list[Cell]:
    """Run cells in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    results = []
    for cell in cells:
        if cell.is_text:
            results.append(cell)
            continue
        tree, shown, printed = ast.parse(cell.source, name), None, io.StringIO()
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, name, "exec"), names)
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), name, "eval"), names)
        figure = io.BytesIO()
        if hasattr(shown, "savefig"):
            shown.savefig(figure, format="png", dpi=90)
        elif shown is not None:
            printed.write(f"{shown!r}\n")
        results.append(cell._replace(printed=printed.getvalue(), figure=figure.getvalue()))
    return results


def write_page(cells: list[Cell], name: str) -> None:
    """Write cells as a documentation page, with the figures in the same folder."""
    lines = []
    for k, cell in enumerate(cells):
        lines += [cell.source, ""] if cell.is_text else ["```python", cell.source, "```", ""]
        if cell.printed:
            lines += ["```text", cell.printed.rstrip(), "```", ""]
        if cell.figure:
            (PAGES / f"{name}_{k}.png").write_bytes(cell.figure)
            picture = f"{name}_{k}.png"
            lines += [f"[![Figure]({picture})]({picture})", ""]  # a click shows it in full size
    lines += [f"Source: `examples/{name}.py`, [notebook]({name}.ipynb).", ""]
    (PAGES / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")


def write_notebook(cells: list[Cell], name: str) -> None:
    """Write cells as a notebook with their outputs; the magic makes Jupyter show figures."""
    entries: list[dict[str, Any]] = []
    if any(cell.figure for cell in cells):
        cells = [cells[0], Cell(False, MAGIC), *cells[1:]]
    for k, cell in enumerate(cells):
        entry: dict[str, Any] = {"id": f"cell-{k}", "metadata": {}, "source": cell.source.splitlines(keepends=True)}
        if cell.is_text:
            entries.append(entry | {"cell_type": "markdown"})
            continue
        outputs: list[dict[str, Any]] = []
        if cell.printed:
            text = cell.printed.splitlines(keepends=True)
            outputs.append({"output_type": "stream", "name": "stdout", "text": text})
        if cell.figure:
            image = {"image/png": b64encode(cell.figure).decode()}
            outputs.append({"output_type": "display_data", "data": image, "metadata": {}})
        entries.append(entry | {"cell_type": "code", "execution_count": None, "outputs": outputs})
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": entries, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (PAGES / f"{name}.ipynb").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(numbers: list[str]) -> None:
    """Run the numbered examples, or those with the given numbers, and write their pages."""
    PAGES.mkdir(exist_ok=True)
    for path in sorted(EXAMPLES.glob("[0-9][0-9]_*.py")):
        if not numbers or path.name[:2] in numbers:
            print(path.name)
            cells = run(path)
            for old in PAGES.glob(f"{path.stem}_*.png"):
                old.unlink()
            write_page(cells, path.stem)
            write_notebook(cells, path.stem)


if __name__ == "__main__":
    main(sys.argv[1:])
