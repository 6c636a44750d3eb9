"""How far several walks are apart: least and most of each curve at every per cent of the stride, and of the step."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from torsor.base.arrays import Array
from torsor.human.gait.curves import StrideCurves
from torsor.human.gait.references import UNITS, in_words

PERCENTS = 101  # instants of a spread: every per cent of the stride, both ends included
PARTS = ("best", "least", "most")
WORK, ENERGY = "positive_work", "metabolic_energy"
QUANTITIES = {
    "step_length": "m", "step_width": "m", "double_support": "% of the stride", WORK: "J/(kg m)", ENERGY: "J/(kg m)",
}  # fmt: skip


class CurveSpread(NamedTuple):
    """A curve of the ``best`` of several walks, with the ``least`` and the ``most`` of all of them: each (101,).

    They are at every per cent of the stride, in the ``unit`` of the ``kind`` (angle, moment, power, force).

    Example:
        >>> knee = CurveSpread("knee_flexion", "angle", np.zeros(101), np.full(101, -2.0), np.full(101, 1.0))
        >>> knee.widest, knee.unit, knee.title
        (3.0, 'degrees', 'knee flexion')
    """

    curve: str
    kind: str
    best: Array
    least: Array
    most: Array

    @property
    def unit(self) -> str:
        """The unit of the curve."""
        return UNITS[self.kind]

    @property
    def title(self) -> str:
        """The curve in words."""
        return in_words(self.curve, self.kind)

    @property
    def width(self) -> Array:
        """The distance (101,) from the least to the most."""
        return self.most - self.least

    @property
    def widest(self) -> float:
        """The largest distance from the least to the most."""
        return float(self.width.max())


class QuantitySpread(NamedTuple):
    """A number of the ``best`` of several walks, with the ``least`` and the ``most`` of all of them."""

    name: str
    best: float
    least: float
    most: float

    @property
    def unit(self) -> str:
        """The unit of the number."""
        return QUANTITIES[self.name]


def curve_spreads(strides: Sequence[StrideCurves]) -> dict[str, CurveSpread]:
    """Return the spread of each curve that ``Stride.likeness`` knows, by name; the first stride is the best."""
    found, at = dict[str, CurveSpread](), np.linspace(0.0, 1.0, PERCENTS)
    for own in zip(*(stride.as_reference() for stride in strides), strict=True):
        values, name = np.array([each.at(at) for each in own]), own[0].curve
        found[name] = CurveSpread(name, own[0].kind, values[0], values.min(axis=0), values.max(axis=0))
    return found


def quantities(stride: StrideCurves) -> dict[str, float]:
    """Return length and width of the step (m), double support (% of a walking stride), and energies (J/(kg m)).

    The positive work of the joints is mechanical; the metabolic energy is that of the objective of free steps.
    """
    step = stride.step
    found = {
        "step_length": float(step.nominal.length),
        "step_width": float(step.nominal.width),
        **({} if stride.is_run else {"double_support": 100 * step.toe_off}),
        WORK: stride.energy.cost_of_transport,
    }
    energy = [part.value for part in stride.result.parts if part.title == "energy"]
    return found | ({ENERGY: energy[0]} if energy else {})


def quantity_spreads(strides: Sequence[StrideCurves]) -> dict[str, QuantitySpread]:
    """Return the spread of each number of ``quantities``, by name; the first stride is the best."""
    found = [quantities(stride) for stride in strides]
    every = {name: [each[name] for each in found] for name in found[0]}
    return {name: QuantitySpread(name, own[0], min(own), max(own)) for name, own in every.items()}
