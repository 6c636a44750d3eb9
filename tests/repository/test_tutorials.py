"""Tutorials are the numbered examples: pages and notebooks have their code, and running them prints what they show."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))


def tool() -> ModuleType:
    """The tool that writes the pages."""
    spec = importlib.util.spec_from_file_location("tutorials", ROOT / "docs" / "tools" / "tutorials.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shape(text: str) -> str:
    """A text without its numbers, whose last digits differ between machines."""
    return re.sub(r"[ \d.e+-]+", "#", text)


def test_there_are_eleven() -> None:
    assert [path.name[:2] for path in EXAMPLES] == [f"{k:02}" for k in range(1, 12)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_page_and_notebook_have_the_code_of_the_example(path: Path) -> None:
    cells = tool().cells_of(path)
    page = (ROOT / "docs" / "start" / "tutorials" / f"{path.stem}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)\n```", page, flags=re.DOTALL)
    assert blocks == [cell.source for cell in cells if not cell.is_text]
    assert all(cell.source in page for cell in cells)
    notebook = json.loads((ROOT / "docs" / "start" / "tutorials" / f"{path.stem}.ipynb").read_text())
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert (tool().MAGIC in sources) == ("![Figure]" in page)  # without it, Jupyter shows no figure
    assert [each for each in sources if each != tool().MAGIC] == [cell.source for cell in cells]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_running_a_tutorial_prints_and_draws_what_its_page_shows(path: Path) -> None:
    cells = tool().run(path)
    page = (ROOT / "docs" / "start" / "tutorials" / f"{path.stem}.md").read_text()
    shown = re.findall(r"```text\n(.*?)\n```", page, flags=re.DOTALL)
    assert [shape(cell.printed.rstrip()) for cell in cells if cell.printed] == [shape(text) for text in shown]
    assert sum(bool(cell.figure) for cell in cells) == page.count("![Figure]")
