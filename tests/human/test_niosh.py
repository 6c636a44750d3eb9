"""The lifting equation of NIOSH: the printed example, its table, its ends, and its range."""

import math

import numpy as np
import pytest

from refusals import refused
from torsor.human.ergonomics import LiftEnd, frequency_multiplier, lifting_index
from torsor.human.ergonomics.niosh import DURATIONS

INCH, POUND = 0.0254, 0.45359237


def test_the_printed_example_of_the_applications_manual_is_reproduced() -> None:
    """Loading punch press stock: 44 lb reels. The manual is in inches: its 10 inches are 25.4 and not 25 cm."""
    ends = LiftEnd(23 * INCH, 15 * INCH), LiftEnd(23 * INCH, 63 * INCH)
    found = lifting_index(44 * POUND, *ends, frequency=0.2, duration="short", coupling="fair")
    assert found.origin == pytest.approx((0.44, 0.89, 0.86, 1.0, 1.0, 0.95), abs=0.0125)
    assert found.destination == pytest.approx((0.44, 0.75, 0.86, 1.0, 1.0, 1.0), abs=0.0125)
    assert found.index == pytest.approx(3.0, abs=0.2) and found.limit == found.destination_limit


def test_the_best_lift_has_the_load_constant() -> None:
    best = lifting_index(23.0, LiftEnd(0.25, 0.75), LiftEnd(0.2, 0.75), coupling="good")
    assert best.index == pytest.approx(1.0, abs=1e-12) and best.limit == pytest.approx(23.0, rel=1e-12)


def test_each_multiplier_is_that_of_its_formula() -> None:
    end = lifting_index(10.0, LiftEnd(0.5, 0.25, 45.0), LiftEnd(0.3, 1.25), coupling="poor", frequency=4.0).origin
    assert end == pytest.approx((0.5, 0.85, 0.865, 0.856, 0.84, 0.90), abs=1e-12)


@pytest.mark.parametrize("duration", DURATIONS)
def test_more_lifts_a_minute_never_allow_more(duration: str) -> None:
    for vertical in (0.3, 1.0):
        values = [frequency_multiplier(each, duration, vertical) for each in np.linspace(0.1, 16.0, 320)]
        assert all(np.diff(values) <= 0) and values[-1] == 0.0


@pytest.mark.parametrize(
    ("frequency", "duration", "vertical", "expected"),
    [(0.1, "long", 0.3, 0.85), (9, "long", 0.3, 0.0), (9, "long", 0.75, 0.15), (12, "moderate", 0.75, 0.21),
     (13, "short", 0.3, 0.0), (15, "short", 0.75, 0.28), (15.5, "short", 0.75, 0.0), (5, "moderate", 0.3, 0.60)],
)  # fmt: skip
def test_the_table_of_frequencies(frequency: float, duration: str, vertical: float, expected: float) -> None:
    assert frequency_multiplier(frequency, duration, vertical) == pytest.approx(expected, abs=1e-12)


def test_a_load_that_is_only_dropped_counts_at_the_origin_alone() -> None:
    ends = LiftEnd(0.3, 0.75), LiftEnd(0.6, 1.7)
    both, one = lifting_index(5.0, *ends), lifting_index(5.0, *ends, controlled=False)
    assert one.destination is None and one.limit == both.origin_limit > both.limit


def test_a_lift_that_is_never_allowed_has_an_infinite_index() -> None:
    assert lifting_index(1.0, LiftEnd(0.3, 0.5), LiftEnd(0.3, 1.0), frequency=14.0).index == math.inf


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0.70, 0.5), "horizontal"),
        ((0.30, 1.80), "vertical"),
        ((0.30, -0.1), "vertical"),
        ((0.30, 0.5, 140.0), "asymmetry"),
    ],
)
def test_ends_outside_of_the_range_raise(values: tuple[float, ...], message: str) -> None:
    with refused(message):
        LiftEnd(*values)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"duration": "weekly"}, "duration"),
        ({"coupling": "glue"}, "coupling"),
        ({"frequency": 0.0}, "frequency"),
        ({"load": -1.0}, "load"),
    ],
)
def test_invalid_arguments_raise(settings: dict[str, object], message: str) -> None:
    ends = {"origin": LiftEnd(0.3, 0.5), "destination": LiftEnd(0.3, 1.0)}
    with refused(message):
        lifting_index(**({"load": 10.0} | ends | settings))
