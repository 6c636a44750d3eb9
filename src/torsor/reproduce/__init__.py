"""Reproduction of the five documents: printed values beside computed values, with reasons for differences.

``torsor reproduce`` is the command. ``equations`` implements the equations of the documents, as printed and corrected.
``errata`` contains the misprints and the decisions on them, ``documents`` contains the items of each document, and
``report`` writes pages.

Example:
    >>> from torsor.reproduce import find, run
    >>> result = run(find(["khalil/inverse"])[0])
    >>> result.verdict.value, result.outcome.rows[0].what
    ('agrees', 'Γ, eq. 31')
"""

from torsor.reproduce.item import Item, Kind, Outcome, Result, Row, Verdict, run
from torsor.reproduce.registry import DOCUMENTS, ITEMS, Document, find, is_quick
from torsor.reproduce.report import errata_page, summary, write_report

__all__ = [
    "DOCUMENTS", "ITEMS", "Document", "Item", "Kind", "Outcome", "Result", "Row", "Verdict", "errata_page", "find",
    "is_quick", "run", "summary", "write_report",
]  # fmt: skip
