"""xacro: macros that become URDF or SDF, expanded by the package ``xacro`` (of the extra ``xacro``).

Expressions in such a file are Python. The package keeps Python's built-in functions from them; here, names with two
underscores and those of frames are refused too, by which an expression could reach them. That is a fence, not a wall: a
.xacro file can take any time and memory, and should come from a source that you trust.
"""

import ast
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torsor.base.errors import ModelError, describe, listing, missing, warn
from torsor.formats.search_path import SEARCH_FIX, Finder
from torsor.formats.xml import Element, parse_xml, parse_xml_text

_ONE_AT_A_TIME = threading.Lock()  # the package has its state in global variables
_ARGUMENTS = (str, bool, int, float)
# Names without underscores by which an expression reaches those with them, or the functions that called it.
_LEADING_OUT = ("vars", "mro", "gi_frame", "cr_frame", "ag_frame", "tb_frame", "f_back", "f_builtins", "f_globals")


def expanded(path: Path, arguments: Mapping[str, object]) -> Element:
    """Return the root element of an expanded .xacro file.

    ``arguments`` are those of <xacro:arg>, as on the command line of xacro: text, numbers, True and False. $(find PKG)
    is the folder of a package on the search path.
    """
    try:
        import xacro
        from xacro import substitution_args
    except ImportError:
        raise missing("macros are expanded by the package xacro", "xacro", where=path.name) from None
    wrong = {key: value for key, value in arguments.items() if not isinstance(value, _ARGUMENTS)}
    if wrong:
        allowed = "{name: text, number, True or False}"
        raise ModelError(describe(f"arguments of xacro {wrong!r}", where=path.name, allowed=allowed))
    parse_xml(path)  # refuses document types and entities, and names the line of what is no XML
    given = _Arguments(
        (key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in arguments.items()
    )
    with _ONE_AT_A_TIME, _fenced(xacro, substitution_args, Finder(path)):
        try:
            document = xacro.process_file(str(path), mappings=given, verbosity=0)
            content = document.documentElement.toxml(encoding="utf-8")
        except Exception as error:  # expressions raise errors of any kind
            own = _own(error)
            text = " ".join(str(error).split())[:300] or type(error).__name__
            raise own or ModelError(describe(f"xacro refuses it: {text}", where=path.name)) from None
    unknown = sorted(arguments.keys() - given.asked)
    if unknown:
        found = f"no argument {', '.join(map(repr, unknown))} of xacro is used"
        warn(describe(found, where=path.name, allowed=listing(sorted(given.asked), like=unknown[0])))
    return parse_xml_text(content, path.name)


class _Arguments(dict[str, str]):
    """The arguments that are given, and with defaults; ``asked`` are the names that the file asks for."""

    def __init__(self, given: Iterable[tuple[str, str]]) -> None:
        super().__init__(given)
        self.asked = set[str]()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


def _own(error: BaseException | None) -> ModelError | None:
    """Return our own error, which the package wraps in others of its kind, if there is one."""
    while error is not None and not isinstance(error, ModelError):
        error = getattr(error, "exc", None) or error.__context__
    return error


@contextmanager
def _fenced(xacro: Any, substitution_args: Any, finder: Finder) -> Iterator[None]:
    """Let $(find PKG) search our path, and refuse expressions with names that lead out of the fence."""

    def find(package: str) -> str:
        folder = finder.package(package)
        if folder is None:
            found = f"$(find {package}), which is not found"
            raise ModelError(describe(found, where=finder.path.name, fix=SEARCH_FIX))
        return str(folder)

    before = xacro.safe_eval, substitution_args._eval, substitution_args._eval_find

    def safe_eval(expression: str, symbols: Any, local: Any = None) -> Any:
        _check(expression)
        return before[0](expression, symbols, local)

    def no_eval(expression: str, context: Any) -> str:
        found = f"$(eval {expression[:80]}), which can call any function of Python"
        raise ModelError(describe(found, where=finder.path.name, fix="write ${...}, or expand it first: xacro FILE"))

    xacro.safe_eval, substitution_args._eval, substitution_args._eval_find = safe_eval, no_eval, find
    try:
        yield
    finally:
        xacro.safe_eval, substitution_args._eval, substitution_args._eval_find = before


def _check(expression: str) -> None:
    """Raise ModelError for an expression with a name that leads out of the fence, wherever it is."""
    try:
        nodes = ast.walk(ast.parse(expression.strip(), mode="eval"))
    except (SyntaxError, ValueError):
        return  # the package has its own words for it
    for node in nodes:
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name.startswith("__") or name in _LEADING_OUT:
            allowed = f"names without __, and not {', '.join(_LEADING_OUT)}"
            raise ModelError(describe(f"the expression {expression[:80]!r} uses {name!r}", allowed=allowed))
