"""How far several walks are apart: least and most of each curve at every per cent of the stride, and of the step."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from torsor.base.arrays import Array
from torsor.base.summary import titled_table
from torsor.base.tables import Column
from torsor.human.comparison.table import DIGITS
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
    curves = [stride.as_reference() for stride in strides]
    return {own[0].curve: _curve_spread(own[0].curve, own[0].kind, own) for own in zip(*curves, strict=True)}


def _curve_spread(name: str, kind: str, own: Sequence[Any]) -> CurveSpread:
    at = np.linspace(0.0, 1.0, PERCENTS)
    values = np.array([each.at(at) for each in own])
    return CurveSpread(name, kind, values[0], values.min(axis=0), values.max(axis=0))


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


def quantity_table(spreads: Mapping[str, QuantitySpread], title: str) -> Table:
    """Return a table of numbers: the best, the least and the most."""
    table = titled_table(title, "quantity", "best", "least", "most", "unit")
    for name, each in spreads.items():
        cells = (f"{value:.1f}" if "%" in each.unit else f"{value:.3f}" for value in (each.best, each.least, each.most))
        table.add_row(name.replace("_", " "), *cells, each.unit)
    return table


def curve_table(spreads: Mapping[str, CurveSpread], title: str) -> Table:
    """Return a table of curves: the largest and the mean distance from least to most, and the range of the best."""
    table = titled_table(title, "curve", "largest", "at %", "mean", "range", "unit")
    table.columns[0].no_wrap = True
    for each in spreads.values():
        digits, at = DIGITS[each.kind], int(np.argmax(each.width))
        sizes = (each.widest, float(each.width.mean()), float(np.ptp(each.best)))
        largest, mean, whole = (f"{size:.{digits}f}" for size in sizes)
        table.add_row(each.title, largest, str(at), mean, whole, each.unit)
    return table


def curve_columns(spreads: Mapping[str, CurveSpread]) -> list[Column]:
    """Return the columns of a .csv file: best, least and most of each curve at every per cent of the stride."""
    columns = [
        Column(f"{each.title} {part}", each.unit, getattr(each, part)) for each in spreads.values() for part in PARTS
    ]
    return [Column("share of the stride", "1", np.linspace(0.0, 1.0, PERCENTS)), *columns]


def plain_spreads(curves: Mapping[str, CurveSpread], numbers: Mapping[str, QuantitySpread]) -> dict[str, Any]:
    """Return spreads as plain values, for JSON."""
    return {
        "quantities": {
            name: {part: getattr(each, part) for part in PARTS} | {"unit": each.unit} for name, each in numbers.items()
        },
        "curves": {
            name: {part: getattr(each, part).tolist() for part in PARTS} | {"unit": each.unit}
            for name, each in curves.items()
        },
    }
