"""Filters keep phase and lose 3 dB at the cutoff; gaps are filled by splines; other times and rates are exact."""

import numpy as np
import pytest

from human.recordings import walkers
from refusals import refused
from torsor.human.recordings import GroundForces, MotionTable, fill_gaps, lowpass, rates, resample, smooth


@pytest.mark.parametrize("order", [2, 4, 8])
@pytest.mark.parametrize("cutoff", [3.0, 6.0, 20.0])
def test_the_filter_loses_three_decibels_at_its_cutoff_without_a_shift(order: int, cutoff: float) -> None:
    t = np.arange(4000) / 100
    wave = np.sin(2 * np.pi * cutoff * t)
    found = lowpass(wave, 100.0, cutoff, order=order)
    middle = slice(1000, 3000)
    phases = [np.exp(-2j * np.pi * cutoff * t[middle]) @ each[middle] for each in (wave, found)]
    ratio = phases[1] / phases[0]
    assert abs(abs(ratio) - 2**-0.5) < 1e-6 and abs(np.angle(ratio)) < 1e-6


def test_the_filter_leaves_gaps_and_filters_each_run_by_itself() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    x[80:90, 0] = np.nan
    found = lowpass(x, 100.0, 6.0)
    assert (np.isnan(found) == np.isnan(x)).all()
    assert (found[:80, 0] == lowpass(x[:80, 0], 100.0, 6.0)).all()


def test_settings_of_the_filter_are_checked() -> None:
    for words, call in {
        "cutoff (Hz, below half the rate)": lambda: lowpass(np.zeros(99), 100.0, 50.0),
        "order": lambda: lowpass(np.zeros(99), 100.0, 6.0, order=3),
        "frame 51 has a step of 0.11 s among steps of 0.01 s": lambda: smooth(
            MotionTable(["a"], np.arange(99) / 100 + 0.1 * (np.arange(99) >= 50), np.zeros((99, 1))), 6.0
        ),
    }.items():
        with refused(words):
            call()


def test_smooth_forces_keep_wrenches_smooth_where_feet_leave() -> None:
    forces = walkers.forces()
    found = smooth(forces.without_unloaded(), 20.0)
    expected = lowpass(forces.without_unloaded().wrench(), 1000.0, 20.0)
    on = found.vertical > 1.0
    assert np.abs((found.wrench() - expected)[on]).max() < 1e-9


def test_short_gaps_are_filled_and_long_ones_and_ends_stay() -> None:
    markers = walkers.markers()
    positions = np.array(markers.positions)
    positions[40:50, 6], positions[60:100, 7], positions[:5, 8], positions[-3:, 9] = np.nan, np.nan, np.nan, np.nan
    filled = fill_gaps(markers.with_positions(positions), longest=0.2)
    assert np.abs(filled.positions - markers.positions)[:, 6].max() < 1e-5
    assert [gap[:3] for gap in filled.gaps()] == [("L.ASIS", 60, 99), ("R.Shoulder", 0, 4), ("L.Shoulder", 147, 149)]
    assert len(fill_gaps(markers.with_positions(positions), longest=0.0).gaps()) == 4


def test_other_times_within_the_recording_are_interpolated() -> None:
    t = np.arange(50) / 50
    table = MotionTable(["a"], t, np.sin(3 * t)[:, None])
    new = np.linspace(0.0, 0.98, 333)
    assert np.abs(resample(table, new).values[:, 0] - np.sin(3 * new)).max() < 1e-5
    markers = walkers.markers()
    positions = np.array(markers.positions)
    positions[40:50, 6] = np.nan
    found = resample(markers.with_positions(positions), np.arange(0.0, 1.48, 0.002))
    assert round(found.rate) == 500 and np.isnan(found.position("R.ASIS")[200:245]).all()
    assert np.isfinite(found.position("R.ASIS")[:190]).all()
    forces = walkers.forces()
    at_markers = resample(forces, markers.times)
    assert np.abs(at_markers.wrench() - forces.wrench()[::10]).max() < 1e-9
    with refused(argument="times", allowed="within the recording, 0 to 0.98 s"):
        resample(table, [0.0, 2.0])


def test_rates_by_splines_are_those_of_the_function() -> None:
    t = np.arange(300) / 100
    x, v, a = rates(t, np.stack([np.sin(2 * t), np.cos(t)], axis=1))
    assert np.abs(v - np.stack([2 * np.cos(2 * t), -np.sin(t)], axis=1)).max() < 1e-7
    assert np.abs(a + np.stack([4 * np.sin(2 * t), np.cos(t)], axis=1)).max() < 2e-5
    gap = x.copy()
    gap[7, 1] = np.nan
    with refused(where="rates", fix="fill the gaps first"):
        rates(t, gap)
    with refused(argument="values", allowed="one for each of 3 times, and 6 or more"):
        rates(t[:3], np.zeros(3))


def test_wrenches_need_to_know_what_is_vertical() -> None:
    zero = np.zeros((9, 1, 3))
    unknown = GroundForces(["a"], np.arange(9) / 9, zero, zero, zero)
    with refused(fix="pass the axes"):
        resample(unknown, [0.1])
