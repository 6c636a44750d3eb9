"""The registry of terms by their names in files, and the conversion of plain values to their fields."""

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from reprlib import repr as short
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from torsor.formats.toml.reading import error, one_of
from torsor.motion.terms.ends import Ends, EndState
from torsor.motion.terms.frames import OnPath
from torsor.motion.terms.term import Constraint, Cost

KEY = "kind"  # key of a table: the class of the term
FORM = "form"  # key of a table for a field of a term that is itself called kind


def kind_of(cls: type) -> str:
    """Return the name of a class of terms in files."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


def term_registry(*bases: type) -> dict[str, type]:
    """Return the public classes of terms that derive from one of the bases, by their names in files."""
    found, left = dict[str, type](), list(bases)
    while left:
        cls = left.pop()
        left += cls.__subclasses__()
        plain = not cls.__name__.startswith("_") and cls.__module__.startswith("torsor.motion.")
        if plain and cls not in (Cost, Constraint, Ends, EndState, OnPath):
            found[kind_of(cls)] = cls
    return dict(sorted(found.items()))


_hints = cache(get_type_hints)


def made(known: Mapping[str, type], table: Mapping[str, Any], where: str) -> Any:
    """Return the term of a table: its kind, and its fields by name."""
    if KEY not in table:
        raise error(where, f"no {KEY}", ", ".join(known), f"add {KEY} = ...")
    name = one_of(known, table[KEY], KEY, where)
    rest = {key: value for key, value in table.items() if key != KEY}
    return filled(known[name], rest, f"{where} ({name})")


def filled(cls: type, table: Mapping[str, Any], where: str, **more: Any) -> Any:
    """Return an object of a dataclass from the entries of a table and further fields ``more``."""
    own = [each for each in fields(cls) if each.init and each.name not in more]
    for key in table:
        one_of([FORM if each.name == KEY else each.name for each in own], key, "key", where)
    table = {KEY if key == FORM else key: value for key, value in table.items()}
    for each in own:
        if each.default is MISSING and each.default_factory is MISSING and each.name not in table:
            raise error(where, f"no {each.name}", fix=f"add {each.name} = ...")
    values = {key: fitted(value, _hints(cls)[key], f"{where}: {key}") for key, value in table.items()}
    try:
        return cls(**values, **more)
    except (ValueError, TypeError) as wrong:
        raise error(where, str(wrong)) from None


def fitted(value: Any, hint: Any, where: str) -> Any:
    """Return a value of a file converted to the type of a field, or raise ModelError."""
    found = _fit(value, hint)
    if found is _WRONG:
        raise error(where, f"found {short(value)}", _words(hint))
    return found


_WRONG = object()


def _fit(value: Any, hint: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return value if _is_plain(value) else _WRONG
    if origin in (Union, types.UnionType):
        fits = [found for each in inner if each is not type(None) and (found := _fit(value, each)) is not _WRONG]
        return fits[0] if fits else _WRONG
    if hint is bool or hint is str:
        return value if type(value) is hint else _WRONG
    if hint is int:
        return value if type(value) is int and abs(value) < 2**53 else _WRONG
    if hint is float:
        return float(value) if _is_number(value) else _WRONG
    if origin is Sequence and inner == (str,) and type(value) is str:
        return (value,)
    if origin in (tuple, list, Sequence) and type(value) is list:
        same = origin is not tuple or inner[1:] == (Ellipsis,)
        parts = inner[:1] * len(value) if same else inner
        if len(parts) != len(value):
            return _WRONG
        row = tuple(_fit(each, part) for each, part in zip(value, parts, strict=True))
        return _WRONG if any(each is _WRONG for each in row) else row
    if origin in (dict, Mapping) and type(value) is dict:
        table = {key: _fit(each, inner[1]) for key, each in value.items()}
        return _WRONG if any(each is _WRONG for each in table.values()) else table
    return _WRONG


def _is_number(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < 2**53
    return type(value) is float and not np.isnan(value)


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a string, or lists and tables of these, or one truth value."""
    if type(value) in (list, dict):
        parts = value.values() if type(value) is dict else value
        return all(_is_plain(each) and type(each) is not bool for each in parts)
    return type(value) in (str, bool) or _is_number(value)


def _words(hint: Any) -> str:
    """Return the allowed values of a type in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return ", or ".join(dict.fromkeys(_words(each) for each in inner if each is not type(None)))
    if origin in (tuple, list, Sequence):
        same = origin is not tuple or inner[1:] == (Ellipsis,)
        return f"a list of {_words(inner[0])}" if same else f"[{', '.join(map(_words, inner))}]"
    if origin in (dict, Mapping):
        return f"a table of {_words(inner[1])}"
    if origin is Callable:
        return "nothing in a file: write the problem in Python"
    plain = {bool: "true or false", str: "a string in quotes", int: "a whole number", float: "a number"}
    return plain.get(hint, "numbers, strings, or lists and tables of them")
