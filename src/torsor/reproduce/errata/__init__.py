"""All misprints of the documents that were found, each with the computation that decides.

Example:
    >>> by_name["khalil/eq-57"].decide().is_clear
    True
"""

from torsor.reproduce.errata import barman, guarino, hua, khalil, lie
from torsor.reproduce.errata.erratum import Decision, Erratum

__all__ = ["ERRATA", "Decision", "Erratum", "by_name"]

ERRATA: tuple[Erratum, ...] = (
    *lie.ERRATA,
    *barman.ERRATA,
    *guarino.ERRATA,
    *khalil.ERRATA,
    *khalil.MODEL_ERRATA,
    *hua.ERRATA,
)
by_name = {each.name: each for each in ERRATA}
