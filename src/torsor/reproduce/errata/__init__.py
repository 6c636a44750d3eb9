"""All known errata of the documents, each with the computation that decides it.

``errata.tsv`` contains their classes and texts, and the module of each document contains the decisions by name. An
erratum without an independent result is editorial.

Example:
    >>> by_name["khalil/eq-57"].decide().is_clear
    True
"""

from functools import cache
from pathlib import Path

from torsor.reproduce.errata import barman, guarino, hua, khalil, lie
from torsor.reproduce.errata.erratum import Category, Decision, Erratum, read_rows

__all__ = ["DECISIONS", "ERRATA", "Category", "Decision", "Erratum", "by_name"]

DECISIONS = {
    f"{document.__name__.rpartition('.')[2]}/{name}": decision
    for document in (lie, barman, guarino, khalil, hua)
    for name, decision in document.DECISIONS.items()
}


def _erratum(row: dict[str, str]) -> Erratum:
    category, decide = Category(row.pop("class")), cache(DECISIONS[row["name"]]) if row["truth"] else None
    return Erratum(**row, category=category, decide=decide)


ERRATA = tuple(map(_erratum, read_rows(Path(__file__).with_name("errata.tsv"))))
by_name = {each.name: each for each in ERRATA}
