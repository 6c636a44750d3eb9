"""All misprints of the documents that were found, each with the computation that decides.

The file ``errata.tsv`` has their text, the module of a document the decisions by name.

Example:
    >>> by_name["khalil/eq-57"].decide().is_clear
    True
"""

from csv import QUOTE_NONE, DictReader
from pathlib import Path

from torsor.reproduce.errata import barman, guarino, hua, khalil, lie
from torsor.reproduce.errata.erratum import Decision, Erratum

__all__ = ["ERRATA", "Decision", "Erratum", "by_name"]

_DECISIONS = {
    f"{document.__name__.rpartition('.')[2]}/{name}": decision
    for document in (lie, barman, guarino, khalil, hua)
    for name, decision in document.DECISIONS.items()
}
with Path(__file__).with_name("errata.tsv").open(encoding="utf-8", newline="") as _file:
    _rows = DictReader(_file, delimiter="\t", quoting=QUOTE_NONE)
    ERRATA = tuple(Erratum(**row, compare=_DECISIONS[row["name"]]) for row in _rows)
by_name = {each.name: each for each in ERRATA}
