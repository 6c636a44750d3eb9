"""Typical laboratory errors are found in a recording that was damaged on purpose; clean recordings have no findings."""

import numpy as np
import pytest

from human.recordings.damage import DAMAGE, Trial, clean, on_plates, turned
from refusals import refused
from torsor.human.recordings import by_foot, inspect, overground, standing

CLEAN = clean()


@pytest.mark.parametrize("name", DAMAGE)
def test_a_defect_is_named_with_its_place_and_the_fix(name: str) -> None:
    kind, words, damaged = DAMAGE[name]
    found = inspect(*damaged(CLEAN))
    own = [each.message for each in found if each.kind == kind]
    assert own and words in own[0] and "; fix: " in own[0], [each.message for each in found]
    # A frozen marker jumps where it goes on; nothing else has more than one finding.
    assert len(found) == (2 if name in ("a frozen marker", "a file with z up") else 1)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_clean_recordings_raise_no_alarm(seed: int) -> None:
    markers, feet = clean(seed)
    assert inspect(markers, feet) == [] and inspect(*on_plates((markers, feet))) == []
    for axes in ("forward left up", "left up forward", "back right up"):
        assert inspect(*turned((markers, feet), axes)) == []
    part: Trial = markers.only([name for name in markers.names if name[1:] not in ("ELB", "WRA")]), feet
    assert inspect(*part) == []


def test_a_treadmill_becomes_a_floor_with_the_speed_of_its_belt() -> None:
    markers, forces = DAMAGE["a treadmill"][2](CLEAN)
    floor = overground(markers, 1.2), overground(forces, 1.2)
    assert inspect(*floor) == []
    assert np.abs(floor[0].positions - CLEAN[0].positions).max() < 1e-12
    assert np.abs(by_foot(*floor[::-1]).centers[100, 0] - by_foot(*CLEAN[::-1]).centers[100, 0]).max() < 1e-9
    with refused(argument="speed (m/s)", where="walk.trc"):
        overground(markers, -1.0)


def test_a_walk_holds_no_standing_trial() -> None:
    with refused(fix="load the standing trial"):
        standing(CLEAN[0])
