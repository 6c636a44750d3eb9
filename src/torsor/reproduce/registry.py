"""The registry of documents and items, and lookup by name."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torsor.base.errors import ModelError
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
        seconds=0.2,
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
_LISTS = (
    lie.ITEMS, barman.ITEMS, work.ITEMS, barman.ARM_ITEMS, gait.ITEMS, ground.ITEMS, guarino.ITEMS, khalil.ITEMS,
    khalil.PARALLEL_ITEMS, khalil.BASE_ITEMS, systems.ITEMS, structures.ITEMS, hua.ITEMS, ERRATUM_ITEMS,
)  # fmt: skip
ITEMS = tuple(item for items in _LISTS for item in items)
# What items of a kind compare, and the items that compare something else.
USUAL = {
    Kind.ALGORITHM: Basis.EQUATION, Kind.TABLE: Basis.NUMBER, Kind.NUMBER: Basis.NUMBER, Kind.FIGURE: Basis.PROPERTY,
    Kind.ERRATUM: Basis.EQUATION,
}  # fmt: skip
UNUSUAL = {
    Basis.NUMBER: (
        "barman/fig-4.2", "barman/fig-4.5", "barman/fig-4.6", "barman/fig-4.7", "barman/fig-5.1",
        "hua/fig-2", "hua/fig-3", "hua/fig-6",
    ),
    Basis.EQUATION: ("barman/fig-2.1", "barman/fig-4.4", "guarino/table-3", "khalil/fig-3"),
    Basis.PROPERTY: (
        "barman/work", "guarino/cpu-times", "khalil/eel",
        *(each.name for each in ERRATA if each.decide is None),
    ),
    Basis.NONE: (
        "barman/fig-2.2", "barman/fig-4.1", "guarino/fig-1", "khalil/fig-1", "khalil/fig-2", "khalil/fig-4",
        "hua/fig-1",
    ),
}  # fmt: skip


def basis_of(item: Item) -> Basis:
    """Return the kind of comparison that an item makes.

    Example:
        >>> basis_of(find(["khalil/inverse"])[0]).value
        'equations'
    """
    return next((basis for basis, names in UNUSUAL.items() if item.name in names), USUAL[item.kind])


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
