"""Every misprint of the documents: the corrected form agrees with an independent result, the printed form does not."""

import re
from pathlib import Path

import pytest

from torsor.reproduce import errata_page
from torsor.reproduce.errata import ERRATA, Erratum
from torsor.reproduce.registry import TEST, deciding_test

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "errata.md"


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda each: each.name)
def test_the_corrected_form_holds_and_the_printed_form_does_not(erratum: Erratum) -> None:
    found = erratum.decide()
    assert found.corrected < 1e-9
    assert found.printed > 1e-6


def test_the_page_has_every_misprint_with_a_test_that_exists() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"`F\[(.*?)\]`", page)
    assert sorted(names) == sorted(each.name for each in ERRATA) and len(set(names)) == len(names)
    file, _, test = TEST.partition("::")
    assert (ROOT / file).resolve() == Path(__file__).resolve()
    assert f"def {test}(" in Path(__file__).read_text()
    assert TEST in page and all(deciding_test(each).startswith(TEST) for each in ERRATA)


def test_the_page_is_the_one_that_the_command_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == errata_page()


def test_each_document_has_as_many_misprints_as_were_found() -> None:
    counts = {
        name: sum(each.name.startswith(f"{name}/") for each in ERRATA)
        for name in ("lie", "barman", "guarino", "khalil", "hua")
    }
    assert counts == {"lie": 10, "barman": 18, "guarino": 9, "khalil": 25, "hua": 12}
