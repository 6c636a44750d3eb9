"""Wrong objects and contradictory columns of recordings are named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refusals import refused, warned
from torsor.human import recordings
from torsor.human.measured import measured_gait
from torsor.human.recordings import GroundForces, Markers

MARKERS = Markers(["toe"], np.arange(100) / 100, np.zeros((100, 1, 3)), axes="forward up right")
UNSEEN = MARKERS.with_positions(np.full((100, 1, 3), np.nan))
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "gaps of a number": (lambda: recordings.fill_gaps(3), "markers"),  # type: ignore[arg-type]
    "standing of nobody": (lambda: recordings.standing(UNSEEN), "no marker is ever seen"),
    "a belt in mm/s": (lambda: recordings.overground(MARKERS, 1200.0), "speed (m/s)"),
    "a belt under a number": (lambda: recordings.overground(3, 1.0), "data"),  # type: ignore[type-var]
    "forces that are markers": (lambda: measured_gait(MARKERS, MARKERS, mass=70.0), "forces"),  # type: ignore[arg-type]
    "a filter of NaN": (lambda: measured_gait(MARKERS, mass=70.0, cutoff=np.nan), "cutoff (Hz)"),
    "a filter above half the rate": (lambda: measured_gait(MARKERS, mass=70.0, cutoff=80.0), "cutoff (Hz)"),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_recordings_are_named(name: str) -> None:
    call, words = CASES[name]
    with refused(words):
        call()


def test_a_row_of_a_csv_file_that_was_cut_is_named(tmp_path: Path) -> None:
    path = tmp_path / "walk.csv"
    path.write_text("time,a,b\n0,1,2\n1,2\n")
    with refused(where="walk.csv", what="line 3 has 2 columns", allowed="3"):
        recordings.load(path)


def test_columns_of_a_csv_file_have_one_name_each(tmp_path: Path) -> None:
    path = tmp_path / "walk.csv"
    path.write_text("time,a,a\n0,1,2\n1,2,3\n")
    with warned(what="two columns are named 'a'"):
        recordings.load(path)
    path.write_text("time,a,b\n0,1,2\n1,2,3\n")
    with refused(value="time"):
        recordings.load(path, columns={"time": "time", "a": "time"})
    with refused(argument="columns"):
        recordings.load(path, columns=["a"])  # type: ignore[arg-type]


def test_too_large_forces_are_to_be_divided() -> None:
    zero = np.zeros((10, 1, 3))
    forces = GroundForces(
        ["right"], np.arange(10) / 10, zero + np.array([0, 7e5, 0]), zero, zero, axes="forward up right"
    )
    assert "divide those in mN" in str(recordings.inspect(forces)[0])
