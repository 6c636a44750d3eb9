"""The registry of documents and items, and lookup by name."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torsor.base.errors import ModelError
from torsor.base.files import data_of
from torsor.reproduce.documents import barman, gait, ground, guarino, hua, khalil, lie, structures, systems, work
from torsor.reproduce.errata import ERRATA, Erratum
from torsor.reproduce.errata.erratum import Category, read_rows
from torsor.reproduce.item import Basis, Item, Kind, Row, Verdict

EDITORIAL = "editorial"  # the difference of an erratum that has no two forms to evaluate
TEST = "tests/reproduce/test_errata.py::test_the_corrected_form_holds_and_the_printed_form_does_not"


def _compute(erratum: Erratum) -> list[Row]:
    texts = erratum.printed, erratum.corrected
    if erratum.decide is None:
        return [Row("the text contradicts itself", *texts, EDITORIAL, Verdict.DIFFERS, Basis.PROPERTY)]
    decision = erratum.decide()
    state = Verdict.DIFFERS if decision.is_clear else Verdict.FAILS
    error = f"{percent(decision.printed)} as printed"
    return [Row(f"compared with: {erratum.truth}", *texts, error, state, Basis.EQUATION)]


def percent(error: float) -> str:
    """Return a relative error as text with two digits: in percent below 10, otherwise as a multiple ("times")."""
    value, unit = (100 * error, "%") if error < 10 else (error, "times")
    return f"{float(f'{value:.2g}'):g} {unit}"


REASONS = {
    Category.MISPRINT: "the printed form is wrong, and the corrected form holds",
    Category.OMISSION: "the corrected form adds what the document omits",
    Category.EXTRACTION: "marks are missing from the copy used, probably lost when its text was extracted",
}
ERRATUM_ITEMS = [
    Item(
        each.name, each.category.value, Kind.ERRATUM, each.place, partial(_compute, each), REASONS[each.category],
        seconds=0.2, basis=Basis.PROPERTY if each.decide is None else Basis.EQUATION,
    )
    for each in ERRATA
]  # fmt: skip


class Document(NamedTuple):
    """One of the five documents: its short name, citation, authors and title."""

    name: str
    cited: str
    authors: str
    title: str


DOCUMENTS = tuple(Document(**row) for row in read_rows(Path(__file__).with_name("documents.tsv")))
ALIASES = {
    "lie-notes": "lie", "barman-2020": "barman", "khalil-2010": "khalil", "hua-2022": "hua",
    **dict.fromkeys(("guarino-2009", "guarino-lo-bianco", "guarino-lo-bianco-2009"), "guarino"),
}  # fmt: skip
_MODULES = (lie, barman, work, gait, ground, guarino, khalil, systems, structures, hua)
_COMPUTE = {name: compute for module in _MODULES for name, compute in module.ITEMS.items()}
_DATA = data_of(__name__)


def _item(name: str, kind: str, basis: str, reason: str = "", missing: str = "", **more: Any) -> Item:
    """Return an item from its row; ``reason`` and ``missing`` are names of explanations."""
    words = {"": ""} | _DATA["explanations"]
    texts = {"reason": words[reason], "missing": words[missing]}
    return Item(name, kind=Kind(kind), compute=_COMPUTE[name], basis=Basis(basis), **texts, **more)


ITEMS = (*(_item(name, **row) for name, row in _DATA["items"].items()), *ERRATUM_ITEMS)


def basis_of(item: Item) -> Basis:
    """Return the kind of comparison that an item makes.

    Example:
        >>> basis_of(find(["khalil/inverse"])[0]).value
        'equations'
    """
    return item.basis


QUICK_SECONDS = 5.0  # s, maximum time of an item of ``--quick``


def is_quick(item: Item) -> bool:
    """Return whether an item takes at most a few seconds, including compilation.

    Example:
        >>> [is_quick(each) for each in find(["barman/fig-4.7", "barman/fig-5.4"])]
        [True, False]
    """
    return max(item.seconds, item.first) <= QUICK_SECONDS


def find(names: Sequence[str], kind: str | None = None) -> list[Item]:
    """Return items by name, all items of a document by its name, or all items if there are no names.

    Example:
        >>> [each.title for each in find(["khalil-2010/five-bar"])]
        ['closed loops: a five-bar']
        >>> len(find(["guarino"], "table"))
        3
    """
    if isinstance(names, str):
        raise ModelError(f"the names are the string {names!r}", where="find", allowed="a list", fix=f"[{names!r}]")
    if kind is not None and kind not in set(Kind):
        raise ModelError(f"there is no kind {kind!r}", value=kind, where="find", allowed=", ".join(Kind))
    chosen = [each for each in ITEMS if kind is None or each.kind == kind]
    if not names:
        return chosen
    found = list[Item]()
    for name in names:
        document, slash, rest = name.lower().partition("/")
        full = f"{ALIASES.get(document, document)}{slash}{rest}"
        matches = [each for each in chosen if each.name == full or (not slash and each.document == full)]
        if not matches and kind is not None and (kinds := sorted({each.kind for each in find([name])})):
            raise ModelError(f"{name!r} has no {kind}", value=name, where="reproduce", allowed=", ".join(kinds))
        if not matches:
            near = [each.name for each in ITEMS if each.name.startswith(full[: full.rfind("-") + 1] or full[:3])]
            examples = ", ".join((near or [each.name for each in ITEMS if each.kind is Kind.FIGURE])[:3])
            allowed = f"names listed by torsor reproduce, for example {examples}, or a document: "
            allowed += ", ".join(each.name for each in DOCUMENTS)
            raise ModelError(f"there is no item {name!r}", value=name, where="reproduce", allowed=allowed)
        found += [each for each in matches if each not in found]
    return found
