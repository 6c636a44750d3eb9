"""Flexible joints in TOML files: the table ``[joints.flexible]`` has the fields of their modes (docs/flexible.md)."""

from dataclasses import fields
from typing import Any

import numpy as np

from torsor.formats.toml.schema import Table, error, one_of
from torsor.mechanism.cams import Cam
from torsor.mechanism.flexible import Flexible, Modes, TipTurn
from torsor.mechanism.rods import RodSection

_KINDS: dict[str, type[Any]] = {"modes": Modes, "turn": TipTurn, "section": RodSection, "cam": Cam}
_OPTIONAL: dict[type[Any], set[str]] = {
    Modes: {"damping", "second", "tip_second", "inertias", "turns"},
    Cam: {"powers", "inner_polynomial", "inner_powers"},
}


def flexible_table(flexible: Flexible) -> Table:
    """Return the table of a flexible joint: the kind and the fields of its data.

    Example:
        >>> import torsor
        >>> modes = torsor.mechanism.flexible_links.beam(length=1.0, mass=1.0, bending=1.0, modes=(1, 0))
        >>> list(flexible_table(modes))[:4]
        ['kind', 'positions', 'masses', 'shapes']
    """
    kind = next(name for name, each in _KINDS.items() if type(flexible) is each)
    return {"kind": kind} | {each.name: getattr(flexible, each.name) for each in _fields(type(flexible))}


def read_flexible(table: Table, where: str) -> Flexible:
    """Return the data of a flexible joint; what is wrong in it raises ModelError.

    Example:
        >>> table = {"kind": "turn", "first": [[0], [0], [1]], "second": [[[0]]] * 3, "turns": [False]}
        >>> read_flexible(table, "arm").kind.nv
        1
    """
    kind = one_of(_KINDS, table.get("kind"), "kind", where)
    known = [each.name for each in _fields(_KINDS[kind])]
    for key in table:
        one_of(["kind", *known], key, "key", where)
    values: Table = {key: value for key, value in table.items() if key != "kind"}
    for key, value in values.items():
        if key in ("turns", "counts"):
            allowed, kinds = ("true or false", bool) if key == "turns" else ("whole numbers", int)
            if not isinstance(value, (list, tuple)) or not all(type(each) is kinds for each in value):
                raise error(where, f"{key} is {value!r}"[:100], f"a list: {allowed}")
            values[key] = tuple(value)
        elif not _numbers(value):
            raise error(where, f"{key} is {value!r}"[:100], "numbers, all rows equally long")
    required = [name for name in known if name not in values and name not in _OPTIONAL.get(_KINDS[kind], {"damping"})]
    if required:
        raise error(where, f"no {required[0]}", fix=f"add {required[0]}")
    if "source" in {each.name for each in fields(_KINDS[kind])}:
        values["source"] = where
    made: Flexible = _KINDS[kind](**values)
    return made


def _numbers(value: Any) -> bool:
    cells = np.array(value, dtype=object)
    return all(type(each) in (int, float) for each in cells.flat)


def _fields(kind: type[Any]) -> list[Any]:
    return [each for each in fields(kind) if each.compare]
