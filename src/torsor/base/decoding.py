"""Decoding of TOML, JSON and YAML tables into checked values and dataclasses, with errors that name the place."""

import difflib
import json
import re
import tomllib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from torsor.base.errors import ModelError, missing
from torsor.base.files import read_limited

Table = dict[str, Any]
Kind = TypeVar("Kind")
MAX_TABLE_BYTES = 8_000_000  # largest file size, unless the format needs more
# Largest number of parts in a dotted key. Parsing time is quadratic in this number: 20,000 parts take 14 s and 1.7 GB.
MAX_KEY_PARTS = 100
# A dotted key with more parts: bare or quoted words separated by dots, from the beginning of a word.
_KEY_PART = r"""(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
_LONG_KEY = re.compile(rf"""(?<![\w"'-]){_KEY_PART}{{{MAX_KEY_PARTS}}}""", re.ASCII)
_MISFIT = object()
_WORDS = {bool: "true or false", str: "a string in quotes", int: "a whole number", float: "a number"}
_WORDS |= {dict: "a table", list: "a list"}
_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def error(where: str, what: str, allowed: str = "", fix: str = "") -> ModelError:
    """Return an error for a file: the place, the problem, the allowed values and the fix."""
    return ModelError(what, where=where, allowed=allowed, fix=fix)


def file_table(path: Path, max_bytes: int = MAX_TABLE_BYTES) -> Table:
    """Return the tables in a file: .json, .yaml, .yml, or TOML for any other suffix.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "map.json").write_text('{"rate": 100.0}', encoding="utf-8")
        ...     file_table(Path(folder, "map.json"))
        {'rate': 100.0}
    """
    try:
        content = read_limited(path, max_bytes)
    except ModelError:
        raise
    except (OSError, ValueError) as wrong:
        raise error(str(path), getattr(wrong, "strerror", None) or str(wrong), "a file") from None
    suffix, name = path.suffix.lower(), path.name
    if suffix not in (".json", ".yaml", ".yml"):
        return toml_data(content, name)
    try:
        text = content.decode("utf-8-sig")
        if suffix == ".json":
            data = json.loads(text, object_pairs_hook=_without_repetition)
        else:
            data = parse_yaml(text, name, instead="write the file as .toml")
    except ModelError:
        raise
    except (ValueError, RecursionError) as wrong:
        raise error(name, f"not valid {'JSON' if suffix == '.json' else 'YAML'}: {wrong}") from None
    if not isinstance(data, dict):
        raise error(name, f"found {short(data)}", "a table")
    return data


def toml_data(content: bytes, source: str) -> Table:
    """Return the tables in a TOML file, after checks that limit the cost of parsing.

    Example:
        >>> toml_data(b"units.angle = 'deg'", "arm.toml")
        {'units': {'angle': 'deg'}}
    """
    try:
        text = content.decode("utf-8-sig")  # some editors write a byte order mark at the beginning
        long = _LONG_KEY.search(text)
        if long:
            line, allowed = text.count("\n", 0, long.start()) + 1, f"up to {MAX_KEY_PARTS} parts"
            raise error(f"{source}: line {line}", "a key has too many dots", allowed, "shorten it")
        data = tomllib.loads(text)
        repr(data)  # raises ValueError now for integers that are too long to print in a message
    except ModelError:
        raise
    except (ValueError, RecursionError) as wrong:
        raise error(source, f"not valid TOML: {wrong}", fix="correct it, and save it as UTF-8") from None
    return data


def parse_yaml(text: str, where: str, instead: str = "") -> Any:
    r"""Return the content of YAML text from the file ``where``; ``instead`` is a fix that avoids the extra ``yaml``.

    Example:
        >>> parse_yaml("rate: 100\ncolumns: {q: [0]}", "map.yaml")
        {'rate': 100, 'columns': {'q': [0]}}
        >>> parse_yaml("rate: 100\nrate: 1", "map.yaml")
        Traceback (most recent call last):
        torsor.ModelError: map.yaml: line 2: the key 'rate' already appears in line 1; allowed: each key once
    """
    try:
        import yaml
    except ImportError:
        message = "reading YAML needs PyYAML, which is not installed"
        raise missing(message, "yaml", where=where, instead=instead) from None
    kind = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader  # libyaml is ten times faster
    try:
        loader = kind(text)
        node = loader.get_single_node()
        _check_yaml_keys(node, where)  # before merge keys (<<) add keys that the table's own keys override
        return None if node is None else loader.construct_document(node)
    except ModelError:  # duplicate key
        raise
    except (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError) as error:  # for unusual scalars
        raise ModelError(f"not valid YAML: {' '.join(str(error).split())}", where=where) from None


def _check_yaml_keys(root: Any, where: str) -> None:
    """Raise ModelError for a duplicate key in a table."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        kind = type(node).__name__
        if id(node) in seen or kind not in ("MappingNode", "SequenceNode"):
            continue
        seen.add(id(node))  # an anchor (&) may refer to the table that contains it
        if kind == "SequenceNode":
            waiting += node.value
            continue
        lines: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            waiting.append(value)
            if type(key).__name__ != "ScalarNode":
                continue
            line = key.start_mark.line + 1
            if (key.tag, key.value) in lines:
                message = f"line {line}: the key {key.value!r} already appears in line {lines[key.tag, key.value]}"
                raise ModelError(message, value=key.value, where=where, allowed="each key once")
            lines[key.tag, key.value] = line


def _without_repetition(pairs: list[tuple[str, Any]]) -> Table:
    """Return a JSON table; raise ValueError for a duplicate key."""
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice!r} appears twice")
    return result


def check_version(data: Table, version: int, source: str) -> None:
    """Raise ModelError if the format version of a file is not ``torsor = version``.

    Example:
        >>> check_version({"torsor": 2}, 1, "arm.toml")
        Traceback (most recent call last):
        torsor.ModelError: arm.toml: format version 2; allowed: torsor = 1; ...
    """
    if short(data.get("torsor")) != str(version):  # compared as text, because 1.0 and true are equal to 1
        what = f"format version {short(data['torsor'])}" if "torsor" in data else "no format version"
        raise error(source, what, f"torsor = {version}", "write it at the top, or use another Torsor")


def known_word(known: Iterable[str], word: Any, what: str, where: str) -> str:
    """Return a word if it is known; otherwise raise an error that names the closest known word.

    Example:
        >>> known_word(("mass", "com"), "mas", "key", "arm.toml")
        Traceback (most recent call last):
        torsor.ModelError: arm.toml: unknown key 'mas'; allowed: mass, com; fix: did you mean 'mass'?
    """
    known = tuple(known)
    if word not in known:
        near = difflib.get_close_matches(str(word).lower(), known, n=1)
        fix = f"did you mean {near[0]!r}?" if near else "use one of these"
        raise error(where, f"unknown {what} {short(word)}", ", ".join(known), fix)
    return str(word)


def check_keys(
    table: Mapping[str, Any], known: Iterable[str], where: str, required: Iterable[str] | Mapping[str, str] = ()
) -> None:
    """Raise ModelError for unknown keys in a table, and for missing required keys, which may have descriptions.

    Example:
        >>> check_keys({"stiffness": 1.0}, ("stiffness", "rest"), "spring", required=["rest"])
        Traceback (most recent call last):
        torsor.ModelError: spring: rest is missing; allowed: stiffness, rest; fix: add rest
    """
    known = tuple(known)
    for key in table:
        known_word(known, key, "key", where)
    for key in required:
        if key not in table:
            words = f"{key}, {required[key]}" if isinstance(required, Mapping) else key
            raise error(where, f"{key} is missing", ", ".join(known), fix=f"add {words}")


def filled(
    cls: type[Kind],
    table: Mapping[str, Any],
    where: str,
    *,
    keys: Mapping[str, str] | None = None,
    typed: bool = True,
    **more: Any,
) -> Kind:
    """Return an instance of a dataclass or named tuple from the entries of a table and further fields ``more``.

    ``keys`` {field: key} lists fields whose keys have other names. If ``typed`` is True, values are converted to the
    types of their fields; otherwise the class checks them.

    Example:
        >>> from typing import NamedTuple
        >>> Point = NamedTuple("Point", [("x", float), ("y", float)])
        >>> filled(Point, {"x": 1, "y": 2}, "map.toml")
        Point(x=1.0, y=2.0)
    """
    names = keys or {}
    needed = _needed(cls)
    fields_of = {names.get(name, name): name for name in needed if name not in more}
    check_keys(table, fields_of, where, [key for key, name in fields_of.items() if needed[name]])
    hints = _hints(cls) if typed else {}
    values = {
        fields_of[key]: fitted(value, hints[fields_of[key]], f"{where}: {key}") if typed else value
        for key, value in table.items()
    }
    try:
        return cls(**values, **more)
    except (ValueError, TypeError) as wrong:
        if not typed:
            raise
        raise error(where, str(wrong)) from None


def _needed(cls: Any) -> dict[str, bool]:
    """Return {field: whether it is required} for the constructor of a class."""
    if not is_dataclass(cls):
        return {name: name not in cls._field_defaults for name in cls._fields}
    made = [field for field in fields(cls) if field.init]
    return {part.name: part.default is MISSING and part.default_factory is MISSING for part in made}


def fitted(value: Any, hint: Any, where: str) -> Any:
    """Return a value from a file converted to the type of a field; raise ModelError if it does not fit.

    Example:
        >>> fitted([0, 1], tuple[float, float], "during")
        (0.0, 1.0)
    """
    result = _fit(value, hint)
    if result is _MISFIT:
        raise error(where, f"found {short(value)}", _words(hint))
    return result


def _fit(value: Any, hint: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return value if _is_plain(value) else _MISFIT
    if origin in (Union, types.UnionType):
        fits = [result for item in inner if item is not type(None) and (result := _fit(value, item)) is not _MISFIT]
        return fits[0] if fits else _MISFIT
    if hint in (bool, str, dict, list):
        return value if type(value) is hint else _MISFIT
    if hint is int:
        return value if type(value) is int and abs(value) < 2**53 else _MISFIT
    if hint is float:
        return float(value) if _is_number(value) else _MISFIT
    if origin is Sequence and inner == (str,) and type(value) is str:
        return (value,)
    if origin in (tuple, list, Sequence) and type(value) is list:
        same = origin is not tuple or inner[1:] == (Ellipsis,)
        parts = inner[:1] * len(value) if same else inner
        if len(parts) != len(value):
            return _MISFIT
        row = tuple(_fit(entry, part) for entry, part in zip(value, parts, strict=True))
        return _MISFIT if any(cell is _MISFIT for cell in row) else row
    if origin in (dict, Mapping) and type(value) is dict:
        table = {key: _fit(entry, inner[1]) for key, entry in value.items()}
        return _MISFIT if any(item is _MISFIT for item in table.values()) else table
    return _MISFIT


def _is_number(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < 2**53
    return type(value) is float and value == value


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number, a string, a boolean, or a list or table of these."""
    if type(value) in (list, dict):
        parts = value.values() if type(value) is dict else value
        return all(_is_plain(part) and type(part) is not bool for part in parts)
    return type(value) in (str, bool) or _is_number(value)


def _words(hint: Any) -> str:
    """Describe the allowed values of a type for an error message."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return ", or ".join(dict.fromkeys(_words(item) for item in inner if item is not type(None)))
    if origin in (tuple, list, Sequence):
        same = origin is not tuple or inner[1:] == (Ellipsis,)
        return f"a list of {_words(inner[0])}" if same else f"[{', '.join(map(_words, inner))}]"
    if origin in (dict, Mapping):
        return f"a table of {_words(inner[1])}"
    if origin is Callable:
        return "no value in a file: write the problem in Python"
    return _WORDS.get(hint, "numbers, strings, or lists and tables of them")
