"""Reproduction of the five documents: comparison of printed and computed values, with reasons for differences.

``torsor reproduce`` is the command. ``equations`` implements the equations of the documents, as printed and corrected.
``errata`` contains the errata and the decisions on them, ``documents`` contains the items of each document, and
``report`` writes pages.

Example:
    >>> from torsor.reproduce import find, run
    >>> result = run(find(["khalil/inverse"])[0])
    >>> result.verdict.value, result.outcome.rows[0].what
    ('agrees', 'Γ, eq. 31')
"""

from torsor.reproduce.item import Basis, Item, Kind, Outcome, Result, Row, Verdict, run
from torsor.reproduce.registry import DOCUMENTS, ITEMS, Document, basis_of, find, is_quick
from torsor.reproduce.report import errata_page, summary, write_report

__all__ = [
    "DOCUMENTS", "ITEMS", "Basis", "Document", "Item", "Kind", "Outcome", "Result", "Row", "Verdict", "basis_of",
    "errata_page", "find", "is_quick", "run", "summary", "write_report",
]  # fmt: skip
