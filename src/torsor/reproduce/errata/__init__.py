"""All known misprints in the documents, each with the computation that decides it.

``errata.tsv`` contains their text, and the module for each document contains the decisions by name.

Example:
    >>> by_name["khalil/eq-57"].decide().is_clear
    True
"""

from functools import cache
from pathlib import Path

from torsor.reproduce.errata import barman, guarino, hua, khalil, lie
from torsor.reproduce.errata.erratum import Decision, Erratum, read_rows

__all__ = ["ERRATA", "Decision", "Erratum", "by_name"]

_DECISIONS = {
    f"{document.__name__.rpartition('.')[2]}/{name}": decision
    for document in (lie, barman, guarino, khalil, hua)
    for name, decision in document.DECISIONS.items()
}
_rows = read_rows(Path(__file__).with_name("errata.tsv"))
ERRATA = tuple(Erratum(**row, decide=cache(_DECISIONS[row["name"]])) for row in _rows)
by_name = {each.name: each for each in ERRATA}
