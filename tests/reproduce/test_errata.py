"""Every erratum of the documents: the corrected form agrees with an independent result, the printed form does not."""

import math
import re
from collections import Counter
from pathlib import Path

import pytest

from torsor.base.errors import ModelError
from torsor.reproduce import errata_page
from torsor.reproduce.errata import DECISIONS, ERRATA, Category, Erratum
from torsor.reproduce.errata.erratum import decide
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
    names = re.findall(r"^\| `(.*?)`", page, flags=re.MULTILINE)
    assert names == [each.name for each in ERRATA]
    editorial = re.findall(r"^\| `(.*?)`.*\| editorial \|$", page, flags=re.MULTILINE)
    assert editorial == [each.name for each in ERRATA if each.decide is None]
    assert sorted(set(names) - set(editorial)) == sorted(DECISIONS)
    file, _, test = TEST.partition("::")
    assert (ROOT / file).resolve() == Path(__file__).resolve()
    assert f"def {test}(" in Path(__file__).read_text() and TEST in page


def test_the_page_is_the_one_that_the_command_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == errata_page()


def test_the_page_states_the_class_of_every_erratum_that_is_not_a_misprint() -> None:
    classes = re.findall(r"^\| `(.*?)`[^|]*?\((omission|extraction)\) \|", PAGE.read_text(), flags=re.MULTILINE)
    assert dict(classes) == {each.name: each.category for each in ERRATA if each.category is not Category.MISPRINT}


def test_an_erratum_with_nan_infinite_or_broadcast_values_is_not_clear() -> None:
    assert decide((1.0, 2.0), (1.0, 2.0), (1.0, 3.0)).is_clear
    assert not decide((1.0, 2.0), (1.0, math.nan), (1.0, 3.0)).is_clear  # the NaN comes last
    assert not decide((1.0, 2.0), (1.0, 2.0), (1.0, math.nan)).is_clear
    assert not decide(1.0, 1.0, math.inf).is_clear
    with pytest.raises(ModelError, match=r"the shape is \(1,\); allowed: \(2,\)"):
        decide([1.0, 1.0], [1.0], [2.0, 2.0])


def test_each_document_has_the_errata_that_were_found_in_three_classes() -> None:
    counts = Counter(each.name.partition("/")[0] for each in ERRATA)
    assert counts == {"lie": 10, "barman": 19, "guarino": 9, "khalil": 28, "hua": 11}
    assert Counter(each.category.value for each in ERRATA) == {"misprint": 50, "omission": 8, "extraction": 19}
