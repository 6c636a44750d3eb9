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
    printed, ours = f"{erratum.printed} (off by {percent(found.printed)})", f"{erratum.corrected}"
    state = Verdict.DIFFERS if found.is_clear else Verdict.FAILS
    return Outcome([Row(f"compared with: {erratum.truth}", printed, ours, f"{found.corrected:.0e}", state)])


def percent(error: float) -> str:
    """Return a relative error as text, with two digits.

    Example:
        >>> percent(0.4321), percent(1.012), percent(1900.0)
        ('43 %', '100 %', '1900 times')
    """
    return f"{_rounded(100 * error)} %" if error < 10 else f"{_rounded(error)} times"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"


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
