"""Every erratum of the documents: the corrected form agrees with an independent result, the printed form does not."""

import re
from collections import Counter
from pathlib import Path

import pytest

from torsor.reproduce import errata_page
from torsor.reproduce.errata import DECISIONS, ERRATA, Erratum
from torsor.reproduce.registry import TEST

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "errata.md"


@pytest.mark.parametrize("erratum", [each for each in ERRATA if each.decide], ids=lambda each: each.name)
def test_the_corrected_form_holds_and_the_printed_form_does_not(erratum: Erratum) -> None:
    assert erratum.decide is not None
    found = erratum.decide()
    assert found.corrected < 1e-9
    assert found.printed > 1e-6


def test_the_page_has_every_erratum_with_a_test_that_exists_or_as_editorial() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"`F\[(.*?)\]`", page)
    assert sorted(names) == sorted(DECISIONS) and len(set(names)) == len(names)
    editorial = [each.name for each in ERRATA if each.decide is None]
    assert re.findall(r"\| editorial \|  \| `(.*?)` \|", page) == editorial
    assert len(names) + len(editorial) == len(ERRATA)
    file, _, test = TEST.partition("::")
    assert (ROOT / file).resolve() == Path(__file__).resolve()
    assert f"def {test}(" in Path(__file__).read_text() and TEST in page


def test_the_page_is_the_one_that_the_command_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == errata_page()


def test_each_document_has_the_errata_that_were_found_in_three_classes() -> None:
    counts = Counter(each.name.partition("/")[0] for each in ERRATA)
    assert counts == {"lie": 10, "barman": 19, "guarino": 9, "khalil": 28, "hua": 11}
    assert Counter(each.category.value for each in ERRATA) == {"misprint": 50, "omission": 8, "extraction": 19}
