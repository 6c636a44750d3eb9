"""The table of constants has exactly one entry for every constant in the source, with a source in the bibliography."""

import ast
import re
import runpy
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torsor

ROOT = Path(torsor.__file__).parent
TABLE = tomllib.loads((ROOT / "human" / "constants.toml").read_text(encoding="utf-8"))
BODY = [ROOT / "library" / name for name in ("human.py", "anthropometry.py", "anthropometry.toml")]
DOCS = Path(__file__).parents[2] / "docs"
KINDS = ("definition", "numerical", "measured here", "none")
MAX_ROUNDING = 1e-5  # smaller numbers within functions protect against rounding
HALF = 0.5


def numbers(node: ast.AST) -> list[float]:
    """Return the numbers in an expression."""
    values = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def assigned(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield the names of a module, and the fields of its classes, whose value has numbers.

    Layouts of vectors are sizes, and a field that is 0 by default means that something is absent.
    """
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from assigned(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            values, is_layout = numbers(node.value), ast.unparse(node.value).startswith("VectorLayout(")
            if values and not is_layout and (any(values) or not prefix):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    yield from (prefix + ast.unparse(e) for e in getattr(target, "elts", [target]))


def hidden(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield the functions that have fractions other than 0.5 in their defaults or body, except those that draw."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from hidden(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            values = [abs(value) for value in numbers(node)]
            if not names & {"axes", "figure"} and any(x % 1 and x != HALF and x > MAX_ROUNDING for x in values):
                yield f"{prefix}{node.name}()"


def constants() -> Iterator[tuple[str, str]]:
    """Yield the file and the name of every constant."""
    for path in (*sorted((ROOT / "human").rglob("*.py")), *sorted((ROOT / "human").rglob("*.toml")), *BODY):
        file, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            body = ast.parse(text).body
            yield from ((file, name) for name in (*assigned(body), *hidden(body)))
        elif file != "human/constants.toml":
            yield from ((file, name) for name in tomllib.loads(text))


def entries() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the file, the names and the columns of each entry."""
    for file, rows in TABLE.items():
        yield from ((file, names, row) for names, row in rows.items())


def test_every_constant_has_exactly_one_entry_and_every_entry_exists() -> None:
    listed = Counter((file, name) for file, names, _ in entries() for name in names.split(", "))
    assert [name for name, count in listed.items() if count > 1] == []
    assert set(constants()) - listed.keys() == set(), "constants without an entry in constants.toml"
    assert listed.keys() - set(constants()) == set(), "entries of constants.toml that are not in the source"


def test_entries_have_unit_meaning_and_source_and_constants_without_a_source_an_effect() -> None:
    for file, names, row in entries():
        assert {"unit", "meaning", "source"} <= row.keys() <= {"unit", "meaning", "source", "effect"}, (file, names)
        assert all(row.values()), (file, names)
        assert ("effect" in row) >= (row["source"] == "none"), (file, names)


def test_sources_are_in_the_bibliography() -> None:
    text = (DOCS / "theory" / "bibliography.md").read_text(encoding="utf-8")
    known = {*KINDS, *re.findall(r"^(?:\*\*|\| )(.+?)(?:\*\*| \|)", text, re.MULTILINE)}
    assert {source for _, _, row in entries() for source in row["source"].split("; ")} - known == set()


def test_the_page_shows_every_constant() -> None:
    hook = runpy.run_path(str(DOCS / "tools" / "constants.py"))
    page = hook["on_page_markdown"]((DOCS / "people" / "constants.md").read_text(encoding="utf-8"))
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert {row.count("|") for row in rows} == {6}  # a bar within a cell would shift the columns
    assert len(rows) == sum(1 for _ in entries())
    assert all(
        f"`{name}`" in row for row, (_, names, _) in zip(rows, entries(), strict=True) for name in names.split(", ")
    )
