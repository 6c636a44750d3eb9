"""Registry of terms by their names in files."""

import re
from collections.abc import Mapping
from typing import Any

from torsor.base.decoding import error, filled, known_word
from torsor.motion.terms.ends import Ends, EndState
from torsor.motion.terms.frames import OnPath
from torsor.motion.terms.term import Constraint, Cost

KEY = "kind"  # table key of the term class
FORM = "form"  # table key of a term field that is itself named kind


def kind_of(cls: type) -> str:
    """Return the name of a term class in files."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


def term_registry(*bases: type) -> dict[str, type]:
    """Return the public term classes that derive from one of the bases, by their names in files."""
    result, left = dict[str, type](), list(bases)
    while left:
        cls = left.pop()
        left += cls.__subclasses__()
        plain = not cls.__name__.startswith("_") and cls.__module__.startswith("torsor.motion.")
        if plain and cls not in (Cost, Constraint, Ends, EndState, OnPath):
            result[kind_of(cls)] = cls
    return dict(sorted(result.items()))


def made(known: Mapping[str, type], table: Mapping[str, Any], where: str) -> Any:
    """Return the term of a table with a kind and fields."""
    if KEY not in table:
        raise error(where, f"{KEY} is missing", ", ".join(known), f"add {KEY} = ...")
    name = known_word(known, table[KEY], KEY, where)
    rest = {key: value for key, value in table.items() if key != KEY}
    return filled(known[name], rest, f"{where} ({name})", keys={KEY: FORM})
