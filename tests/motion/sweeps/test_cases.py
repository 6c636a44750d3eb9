"""Cases of a study: grids, samples, checked values."""

from typing import Any

import numpy as np
import pytest

from refusals import refused
from torsor.motion import sweeps
from torsor.motion.sweeps.cases import numbered


def test_a_grid_has_all_combinations_and_makes_them_one_by_one() -> None:
    found = sweeps.grid({"torques.upper": [1, 2]}, points=[6, 8, 10])
    assert len(found) == 6 and len(list(found)) == 6 and list(found) == list(found)
    assert next(iter(sweeps.grid(a=range(10**5), b=range(10**5)))) == {"a": 0, "b": 0}


def test_more_samples_begin_with_the_same_ones() -> None:
    some, more = (list(sweeps.samples(n, height=(1.5, 1.9), mass=(50, 100), seed=3)) for n in (4, 9))
    assert more[:4] == some and more[4] not in some
    assert all(1.5 <= each["height"] <= 1.9 and 50 <= each["mass"] <= 100 for each in more)


def test_values_are_plain_and_equal_cases_have_equal_digests() -> None:
    one, other = numbered([{"a": np.float64(0.5), "b": (1, 2)}, {"b": np.array([1, 2]), "a": 0.5}])
    assert one.values == {"a": 0.5, "b": [1, 2]} and one.digest == other.digest
    assert next(numbered([{"a": 1}], {"b": 2, "a": 3})).values == {"b": 2, "a": 1}


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ([{"a": object()}], "a"),
        ([{"a": 1.0}, {"a": np.nan}], "a"),
        ([{"a": 2**60}], "a"),
        ([{"error": 1}], "error"),
        ([3], "the case is 3"),
        ({"a": [1]}, "cases"),
    ],
)
def test_other_values_are_refused(cases: Any, words: str) -> None:
    with refused(words):
        list(numbered(cases))


@pytest.mark.parametrize("wrong", [lambda: sweeps.grid(), lambda: sweeps.grid(a=[]), lambda: sweeps.samples(3)])
def test_no_values_are_an_error(wrong: Any) -> None:
    with refused(what="there are no"):
        wrong()
