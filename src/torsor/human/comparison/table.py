"""Similarity table of gait curves and measured curves, with one row per curve, and means."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rich.markup import escape
from rich.table import Table

from torsor.base.errors import printable
from torsor.base.summary import Summary, as_text
from torsor.human.gait.references import SOURCES, UNITS, Reference, in_words, likeness

# The eleven curves by which predicted walks are usually compared, over which means are computed.
SAGITTAL = (
    *("hip_flexion", "knee_flexion", "ankle_flexion", "hip_extension", "knee_extension", "ankle_plantarflexion"),
    *("hip_power", "knee_power", "ankle_power", "vertical", "forward"),
)
DIGITS = {"angle": 1, "moment": 2, "power": 2, "force": 1}
HEAD = ("curve", "r", "RMSE", "in SD", "source")


class CurveLikeness(NamedTuple):
    """Similarity of a curve to the reference ``label`` (author and year, or a file).

    It contains the ``correlation``, the root mean square difference ``rms`` in ``unit``, and the mean ``width`` of the
    reference band (standard deviation in the same unit; None if there is no band).
    """

    curve: str
    kind: str
    source: str
    label: str
    correlation: float
    rms: float
    width: float | None

    @property
    def r2(self) -> float:
        """The squared correlation."""
        return self.correlation**2

    @property
    def rms_sd(self) -> float | None:
        """The root mean square difference in standard deviations of the reference, or None if there is no band."""
        return None if self.width is None else self.rms / self.width

    @property
    def unit(self) -> str:
        """The unit of ``rms``."""
        return UNITS[self.kind]

    @property
    def title(self) -> str:
        """The curve name for display."""
        return in_words(self.curve, self.kind)


class MeanLikeness(NamedTuple):
    """Means of ``correlation`` and ``rms_sd`` over ``curves`` curves; ``rms_sd`` is None if no curve has a band."""

    correlation: float
    rms_sd: float | None
    curves: int


class LikenessTable(Mapping[str, CurveLikeness]):
    """The similarity of curves by name ("knee_flexion"; for further references, "knee_flexion, adult").

    ``mean`` is the mean over the eleven sagittal curves (angles, moments and powers of hip, knee and ankle, vertical
    and fore-aft force), each compared with its first reference. ``means`` contains the means for each reference. The
    object is displayed as a table, including in notebooks; ``to_dict`` returns plain values.

    Example:
        >>> from torsor.human.gait.references import REFERENCES
        >>> knee = REFERENCES["knee_flexion"]
        >>> found = LikenessTable([(knee, knee.mean + 3.0)])
        >>> round(found["knee_flexion"].r2, 9), round(found["knee_flexion"].rms_sd, 9), found.mean.curves
        (1.0, 0.5, 1)
    """

    def __init__(self, pairs: Sequence[tuple[Reference, ArrayLike]], notes: Sequence[str] = ()) -> None:
        self._rows: dict[str, CurveLikeness] = {}
        self.notes = tuple(notes)
        for reference, curve in pairs:
            key = reference.curve if reference.curve not in self._rows else f"{reference.curve}, {reference.source}"
            compared = likeness(curve, reference.mean)
            width = None if reference.sd is None else float(np.mean(reference.sd))
            names = (reference.curve, reference.kind, reference.source, reference.label)
            self._rows[key] = CurveLikeness(*names, compared.correlation, compared.rms, width or None)

    def __getitem__(self, name: str) -> CurveLikeness:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def mean(self) -> MeanLikeness:
        """The mean over the eleven sagittal curves, each compared with its first reference."""
        return _mean([self[name] for name in SAGITTAL if name in self])

    @property
    def means(self) -> dict[str, MeanLikeness]:
        """The means over the sagittal curves of each reference, by label."""
        labels = dict.fromkeys(row.label for row in self.values())
        sets = {label: [row for row in self.values() if row.label == label] for label in labels}
        return {label: _mean([row for row in rows if row.curve in SAGITTAL]) for label, rows in sets.items()}

    @property
    def title(self) -> str:
        """The labels of the references if there are one or two, otherwise "people"."""
        labels = list(self.means)
        return f"Compared with {' and '.join(labels) if 0 < len(labels) < 3 else 'people'}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: ``curves``, ``mean``, ``means`` and ``notes``."""
        kept = ("correlation", "r2", "rms", "rms_sd", "unit")
        curves = {
            name: {field: getattr(row, field) for field in kept} | {"source": SOURCES.get(row.source, row.source)}
            for name, row in self.items()
        }
        means = {label: mean._asdict() for label, mean in self.means.items()}
        return {"curves": curves, "mean": self.mean._asdict(), "means": means, "notes": list(self.notes)}

    def __rich__(self) -> Table:
        caption = _shown("\n".join(self.notes)) or None
        table = Table(title=_shown(self.title), title_justify="left", title_style="bold", header_style="bold")
        table.caption, table.caption_justify = caption, "left"
        for head in HEAD:
            table.add_column(head, justify="right" if head in HEAD[1:4] else "left", no_wrap=head != HEAD[-1])
        for cells in self._cells():
            table.add_row(*map(_shown, cells))
        table.add_section()
        for cells in self._mean_cells():
            table.add_row(*map(_shown, cells))
        return table

    def __str__(self) -> str:
        return as_text(self.__rich__(), width=110).rstrip()

    def __repr__(self) -> str:
        return f"<LikenessTable: {len(self)} curves, mean r {self.mean.correlation:.3f} of {self.mean.curves}>"

    def _repr_html_(self) -> str:
        facts = {f"note {k}": note for k, note in enumerate(self.notes, start=1)}
        return Summary(self.title, facts, HEAD, [*self._cells(), *self._mean_cells()]).html()

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.title,
                f"{row.correlation:.3f}",
                f"{row.rms:.{DIGITS[row.kind]}f} {row.unit}",
                _text(row.rms_sd),
                row.label,
            )
            for row in self.values()
        ]

    def _mean_cells(self) -> list[tuple[str, ...]]:
        """Return a row of means for each reference, and a row for the first references if none has all curves."""
        means = self.means
        if len(means) > 1 and max(mean.curves for mean in means.values()) < len(SAGITTAL):
            means |= {"the first of each": self.mean}
        return [
            (f"mean of {mean.curves} sagittal", f"{mean.correlation:.3f}", "", _text(mean.rms_sd), label)
            for label, mean in means.items()
            if mean.curves
        ]


def _mean(rows: Sequence[CurveLikeness]) -> MeanLikeness:
    wide = [row.rms_sd for row in rows if row.rms_sd is not None]
    correlation = float(np.mean([row.correlation for row in rows])) if rows else 0.0
    return MeanLikeness(correlation, float(np.mean(wide)) if wide else None, len(rows))


def _shown(text: str) -> str:
    """Return text without control characters and markup, because file names are untrusted."""
    return escape(printable(text))


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
