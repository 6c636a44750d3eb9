"""Misprints as items, and the page of errata."""

from functools import partial

from torsor.reproduce.errata import ERRATA, Erratum
from torsor.reproduce.item import Item, Kind, Outcome, Row, Verdict

TEST = "tests/reproduce/test_errata.py::test_the_corrected_form_holds_and_the_printed_form_does_not"


def deciding_test(erratum: Erratum) -> str:
    """Return the id of the test that decides.

    Example:
        >>> deciding_test(ERRATA[0]).rpartition("[")[2]
        'lie/section-4]'
    """
    return f"{TEST}[{erratum.name}]"


def _compute(erratum: Erratum) -> Outcome:
    found = erratum.decide()
    printed, ours = f"{erratum.printed} (off by {_percent(found.printed)})", f"{erratum.corrected}"
    state = Verdict.DIFFERS if found.is_clear else Verdict.FAILS
    return Outcome([Row(f"compared with: {erratum.truth}", printed, ours, f"{found.corrected:.0e}", state)])


def _percent(error: float) -> str:
    return f"{100 * error:.2g} %" if error < 9.995 else f"{error:.2g} times"


MISPRINTS = [
    Item(
        each.name,
        "a misprint",
        Kind.MISPRINT,
        each.place,
        partial(_compute, each),
        "the printed form is wrong, the corrected form holds",
        seconds=0.2,
    )
    for each in ERRATA
]
