"""The five documents, reproduced: what they print beside what the library computes, with the reason where they differ.

``torsor reproduce`` is the command. ``equations`` has the documents' equations as code of their own, as printed and
corrected; ``errata`` the misprints and what decides; ``documents`` the items of each document; ``report`` writes pages.

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
