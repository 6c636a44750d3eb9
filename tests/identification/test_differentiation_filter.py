"""The filter of ``differentiate`` is a Butterworth filter, applied forward and backward."""

import numpy as np
import pytest
from scipy import signal

from refusals import refused
from torsor.identification.differentiation import differentiate


@pytest.mark.parametrize("order", [1, 3, 6])
def test_a_sine_is_damped_by_the_gain_of_the_order(order: int) -> None:
    t, f, cutoff = np.arange(400) / 100, 2.0, 3.0
    x = np.sin(2 * np.pi * f * t)[:, None]
    gain = 1 / (1 + (f / cutoff) ** (2 * order))
    found, rate, _ = differentiate(t, x, cutoff, periodic=True, order=order)
    assert found == pytest.approx(gain * x, abs=1e-12)
    assert rate == pytest.approx(2 * np.pi * f * gain * np.cos(2 * np.pi * f * t)[:, None], abs=1e-10)


def test_straight_ends_are_those_of_a_filter_after_point_reflection() -> None:
    """SciPy's filter, forward and backward over samples that are reflected at both ends, is independent of ours."""
    t = np.arange(1000) / 1000
    x = np.stack([np.sin(7 * t) + 0.3 * np.sin(40 * t), t**2], axis=1)
    numerator, denominator = signal.butter(3, 6.0 / 500.0)
    expected = signal.filtfilt(numerator, denominator, x, axis=0, padtype="odd", padlen=990)
    found, _, _ = differentiate(t, x, 6.0, order=3, ends="straight")
    assert np.abs(found - expected)[50:-50].max() < 2e-4
    with refused(argument="ends"):
        differentiate(t, x, 6.0, ends="round")
