"""A griffe extension for the reference: "Example" sections as Python code, and type aliases as the types they are."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import griffe

SOURCE = Path(__file__).parents[2] / "src" / "torsor"
ALIASES = ("Maybe", "Out", "Loops", "Place", "Two", "Three")  # their names say little; Array and ArrayLike are readable


@cache
def aliases(path: Path) -> dict[str, str]:
    """Return the types of the aliases that a file defines or imports from a file of Torsor."""
    types: dict[str, str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in ALIASES:
            types[node.targets[0].id] = ast.unparse(node.value)
        elif isinstance(node, ast.ImportFrom) and (names := [each.name for each in node.names if each.name in ALIASES]):
            module = SOURCE.parent.joinpath(*str(node.module).split(".")).with_suffix(".py")
            known = aliases(module) if module.exists() else {}  # a class may have such a name too
            types |= {name: known[name] for name in names if name in known}
    return types


def spelled_out(annotation: Any, types: dict[str, str]) -> Any:
    """Return an annotation with its aliases replaced; without aliases, the annotation itself."""
    text = re.sub(r"\b[A-Z]\w*\b", lambda name: types.get(name[0], name[0]), str(annotation))
    return annotation if annotation is None or text == str(annotation) else text


class Examples(griffe.Extension):
    """Change docstrings and signatures when griffe has read them."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section "Example", because griffe supports only the plural form."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace the type aliases in a signature."""
        if isinstance(func.filepath, Path) and (types := aliases(func.filepath)):
            for parameter in func.parameters:
                parameter.annotation = spelled_out(parameter.annotation, types)
            func.returns = spelled_out(func.returns, types)
