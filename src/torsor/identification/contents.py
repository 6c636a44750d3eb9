"""The tables of the report of an identification."""

import itertools
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.markup import escape
from rich.table import Table

from torsor.base.arrays import Array
from torsor.base.documents import plain
from torsor.base.figures import label, label_of_title, new_figure, saved, styled
from torsor.base.summary import Summary, titled_table
from torsor.base.tables import Column
from torsor.identification.closed_robot import MeasuredRobot, is_excitable, whole
from torsor.identification.drives import Drives
from torsor.identification.excitation.design import sizes_of
from torsor.identification.measurements import Measurements
from torsor.mechanism.mechanism import force_units, robot_facts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MARK = " !"
CLOSEST = 3  # laws that were not chosen, which the report names
_table = partial(titled_table, overflow="fold")


def parameter_table(title: str, rows: Iterable[tuple[str, float, float, float, float]], marked: Sequence[str]) -> Table:
    """Return the table of base parameters: rows of name, value as given, value, deviation, deviation in percent."""
    table = _table(escape(title), "parameter (SI units)", "as given", "identified", "deviation", "%")
    for name, given, value, deviation, percent in rows:
        table.add_row(
            escape(name),
            short(given),
            short(value),
            f"{deviation:.2g}",
            percent_text(percent) + MARK * (name in marked),
        )
    return table


def drive_table(drives: Drives) -> Table:
    """Return the table of the terms of drives; the last column is the rise of the criterion without the law."""
    columns = ("identified", "deviation", "%", "shape", f"rise of {drives.criterion.upper()} without it")
    table = _table("Drives: friction beyond Coulomb and viscous, offsets, coupled motors", "term (SI units)", *columns)
    for term, value, deviation in zip(drives.terms, drives.values, drives.deviations, strict=True):
        worth = drives.changes.get(term.drive, {}).get(term.law)
        percent = percent_text(float(100 * deviation / abs(value)) if value else np.inf)
        shape = f"{term.shape:.3g}" if term.shape else ""
        row = (short(value), f"{deviation:.2g}", percent, shape, "" if worth is None else f"{worth:.3g}")
        table.add_row(escape(term.name), *row)
    return table


def others_note(drives: Drives) -> str:
    """Return how many laws were tried and not chosen, and which of them came closest; "" for none."""
    rises = {
        f"{drive}.{law}": rise
        for drive, laws in drives.changes.items()
        for law, rise in laws.items()
        if law not in drives.chosen(drive)
    }
    if not rises:
        return ""
    first, *more = sorted(rises, key=lambda name: rises[name])[:CLOSEST]
    closest = f"{first} ({drives.criterion.upper()} would rise by {rises[first]:.3g})"
    closest += "".join(f", {name} ({rises[name]:.3g})" for name in more)
    count = f"{len(rises)} laws were" if len(rises) > 1 else "1 law was"
    return f"{count} not chosen; closest: {closest}; all: JSON and HTML report"


def residual_table(
    samples: int, rows: Iterable[tuple[str, float, float, float]], marked: Sequence[str], unseen: Sequence[float] | None
) -> Table:
    """Return the table of residuals: rows of coordinate, RMS, percent of the force, R²; ``unseen`` percents (nv)."""
    extra = () if unseen is None else ("% held out",)
    table = _table(f"Residuals of {samples} samples (N m and N)", "coordinate", "RMS", "% of force", "R²", *extra)
    for k, (name, rms, percent, r_squared) in enumerate(rows):
        last = () if unseen is None else (f"{unseen[k]:.3g}",)
        table.add_row(escape(name), f"{rms:.4g}", f"{percent:.3g}" + MARK * (name in marked), f"{r_squared:.6f}", *last)
    return table


def short(value: float) -> str:
    """Return a number with five digits; "0" for rounding."""
    return "0" if abs(value) < 1e-12 else f"{value:.5g}"


def percent_text(value: float) -> str:
    """Return a percentage with three digits."""
    return f"{value:.3g}" if value < 1e4 else "> 10000"


# An identification as a table, as a document for other programs, and as the short table of notebooks.
#
# ``found`` is an ``Identified``, whose file imports this one.


def columns(found: Any) -> list[Column]:
    """Return the table of the .csv file: parameters, as given and identified, with deviations."""
    values = (found.base.values, found.values, found.deviations)
    rows = zip(("as given", "identified", "deviation"), values, strict=True)
    return [Column("parameter", "", list(found.names)), *(Column(name, "SI", each) for name, each in rows)]


def document(found: Any) -> dict[str, Any]:
    """Return the plain values of the document, without its header."""
    rows = zip(found.names, found.base.values, found.values, found.deviations, strict=True)
    residuals = zip(found.prior.coordinate_names, found.rms, found.relative_residuals, found.r_squared, strict=True)
    keys = ("coordinate", "rms", "percent", "r_squared")
    return {
        "units": {"parameters": "SI: kg, kg m, kg m^2, N m, N m s, N, N s/m", "rms": "N m, N", "percent": "%"},
        "robot": robot_facts(found.prior),
        "settings": plain(found.settings),
        "method": found.method,
        "condition": plain(found.condition),
        "samples": len(found.measurements),
        "base_parameters": plain(
            [dict(zip(("name", "given", "value", "deviation"), row, strict=True)) for row in rows]
        ),
        "parameters": None if found.parameters is None else plain(found.parameters),
        "parameter_names": list(found.prior.inertial.names),
        "residuals": plain([dict(zip(keys, row, strict=True)) for row in residuals]),
        "drives": None if found.drives is None else found.drives.content(),
        "lag": found.lag,
        "held_out": None if found.held_out is None else plain(found.held_out),
        "unidentified": [each._asdict() for each in found.unidentified],
        "notes": list(found.measurements.notes),
    }


def summary(found: Any) -> Summary:
    """Return the short table of notebooks."""
    percents = [
        (name, each)
        for name, each in zip(found.prior.coordinate_names, found.relative_residuals, strict=True)
        if each == each  # NaN: it was not measured
    ]
    facts = {
        "method": found.method,
        "samples": str(len(found.measurements)),
        "condition number": f"{found.condition:.4g}",
        "residuals": ", ".join(f"{name} {each:.3g} %" for name, each in percents),
    }
    rows = [
        (name, short(value), f"{deviation:.2g}")
        for name, value, deviation in zip(found.names, found.values, found.deviations, strict=True)
    ]
    return Summary(f"Identified {found.prior.name}", facts, ("parameter (SI)", "value", "deviation"), rows)


MEASURED, PREDICTED, RESIDUAL, HELD_OUT = "0.65", "C0", "C3", "0.93"


def plot(
    robot: MeasuredRobot,
    data: Measurements,
    predicted: Array,
    rms: Array,
    percents: Array,
    how: str,
    path: str | Path | None,
    unseen: tuple[Measurements, Array, Array] | None = None,
) -> "Figure":
    """Return a figure with a panel for each coordinate: measured and ``predicted`` (N, nv) forces, and residuals.

    ``rms`` (nv,) are the root mean squares of the residuals, a band about zero, and ``percents`` (nv,) these in percent
    of the forces; ``how`` says how the parameters were identified. ``unseen`` are measurements that were held out,
    their predicted forces and the percents of these, which follow on a grey ground.
    """
    names, units = robot.coordinate_names, force_units(robot)
    columns = 1 if len(names) < 4 else 2 if len(names) < 13 else 4
    rows = -(-len(names) // columns)
    figure = new_figure((6.5 if columns < 4 else 5.0) * columns, 2.1 * rows + 0.9)
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).T.ravel()
    timed = _increasing(data, None if unseen is None else unseen[0])
    along, later = _axis(data, unseen, timed)
    tau, own_forces = data.tau, predicted
    if unseen is not None:
        along = np.concatenate([along, later])
        tau, own_forces = np.concatenate([tau, unseen[0].tau]), np.concatenate([own_forces, unseen[1]])
    sizes = zip(rms, percents, strict=True)
    later_percents = itertools.repeat(None) if unseen is None else unseen[2]
    for axes, name, measured, own, (size, percent), later_percent in zip(
        panels, names, tau.T, own_forces.T, sizes, later_percents, strict=False
    ):
        axes.plot(along, measured, color=MEASURED, linewidth=2.2, label="measured")
        axes.plot(along, own, color=PREDICTED, linewidth=1.2, label="predicted")
        # The residual is drawn behind the forces, which it would hide.
        axes.plot(along, measured - own, color=RESIDUAL, linewidth=0.6, alpha=0.5, zorder=1, label="residual")
        band = {"color": RESIDUAL, "alpha": 0.12, "linewidth": 0, "label": "± 2 RMS of the residual"}
        axes.axhspan(-2 * size, 2 * size, **band)
        if unseen is not None:
            axes.axvspan(later[0], later[-1], color=HELD_OUT, linewidth=0, zorder=0, label="held out")
        styled(axes, unit=units[name])
        held_out = "" if later_percent is None else f"; held out {later_percent:.2g} %"
        title = f"{label(name)}: residual {size:.2g} {units[name]}, {percent:.2g} % of the force{held_out}"
        axes.set_title(title, fontsize="medium")
    for axes in panels[len(names) :]:
        figure.delaxes(axes)
    lowest = [panels[min(k * rows + rows, len(names)) - 1] for k in range(-(-len(names) // rows))]
    for axes in lowest:
        axes.set_xlabel("time (s)" if timed else "sample")
        axes.tick_params(labelbottom=True)
    what = f"{len(data)} samples, parameters: {how}" + ("" if unseen is None else f"; {len(unseen[0])} held out")
    figure.suptitle(label_of_title(f"{robot.name}: measured and predicted forces\n{what}"))
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3 if columns == 1 else 5,
        frameon=False,
    )
    return saved(figure, path)


def _increasing(data: Measurements, unseen: Measurements | None) -> bool:
    """Whether times go on through all samples, so that they are the axis of the figure."""
    parts = [each.times for each in (data, unseen) if each is not None]
    return all(part is not None for part in parts) and bool(
        (np.diff(np.concatenate([part for part in parts if part is not None])) > 0).all()
    )


def _axis(data: Measurements, unseen: tuple[Measurements, Array, Array] | None, timed: bool) -> tuple[Array, Array]:
    """Return where the samples, and those that were held out, are along the axis: times, or numbers of samples."""
    count, more = len(data), 0 if unseen is None else len(unseen[0])
    if not timed:
        return np.arange(float(count)), count + np.arange(float(more))
    assert data.times is not None
    later = np.empty(0) if unseen is None or unseen[0].times is None else unseen[0].times
    return data.times, later


# What an identification does not determine, and why: each parameter with a reason in words.
#
# Base parameters are combinations of the parameters of a robot (``robot.inertial.base``). A parameter that is none of
# them either acts on no force, or only together with others; a base parameter may be too small for the noise, or the
# motion may not show it. ``found`` is an ``Identified``, whose file imports this one.

KINDS = {
    "not shown": "The motion does not show them",
    "below noise": "They are below their noise",
    "regrouped": "They act only together with others",
    "no effect": "No motion shows them",
    "given": "They were taken as known",
}
ROUNDING = 1e-9  # of the largest factor of a combination
CERTAIN = 3.0  # deviations from zero, from which on a value tells the likely size of others of its kind
HALF_INTERVAL = 1.96  # standard deviations to each end of a 95 % interval
_UNITS = {"m": "kg", "mx": "kg m", "my": "kg m", "mz": "kg m"}
_TURNING = {"rotor_inertia": "kg m²", "coulomb": "N m", "viscous": "N m s"}
_SLIDING = {"rotor_inertia": "kg", "coulomb": "N", "viscous": "N s/m"}


class Unidentified(NamedTuple):
    """A ``parameter`` that was not identified on its own: the ``kind`` of reason, and ``why`` in words.

    Kinds are "not shown" (by this motion), "below noise", "regrouped" (with others), "no effect" and "given".

    Example:
        >>> robot = torsor.library.planar_chain(1)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 1))
        >>> found = torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)))
        >>> {each.parameter: each.kind for each in found.unidentified}["link1.Jxx"]
        'no effect'
    """

    parameter: str
    kind: str
    why: str


def unidentified(found: Any) -> tuple[Unidentified, ...]:
    """Return the parameters that an identification does not determine on their own, by kind of reason."""
    base, names = found.base, found.prior.inertial.names
    representative = {int(column): k for k, column in enumerate(base.columns)}
    own_names = tuple(names[k] for k in base.columns)
    certain = np.where(np.abs(found.values) > CERTAIN * found.deviations, np.abs(found.values), 0.0)
    sizes = sizes_of(own_names, np.maximum(np.abs(base.values), certain))
    rows = []
    for p, name in enumerate(names):
        parts = np.abs(base.matrix[:, p])
        within = [own_names[k] for k in np.flatnonzero(parts > ROUNDING * max(float(parts.max()), 1e-300))]
        if not base.unknown[p]:
            rows.append(Unidentified(name, "given", "it is the value of the given robot, which was not to be changed"))
        elif p in representative:
            weak = _weak(found, representative[p], sizes, unit_of(whole(found.prior), name))
            rows += [] if weak is None else [weak]
        elif within:
            text = f"no motion tells it from others: it is part of the combinations of {', '.join(within)}"
            rows.append(Unidentified(name, "regrouped", text))
        else:
            rows.append(Unidentified(name, "no effect", "no measured force depends on it, whatever the motion"))
    rows += _weak_terms(found)
    order = list(KINDS)
    return tuple(sorted(rows, key=lambda row: order.index(row.kind)))


def _weak(found: Any, k: int, sizes: Array, unit: str) -> Unidentified | None:
    """Return why a base parameter is not determined, or None if it is."""
    name, value, deviation = found.names[k], float(found.values[k]), float(found.deviations[k])
    if name not in found.undetermined:
        return None
    ends = f"95 % interval {_interval(value, deviation)} {unit}"
    if deviation > sizes[k]:
        text = f"its deviation, {deviation:.2g} {unit}, exceeds its likely size, {sizes[k]:.2g} {unit} ({ends}): "
        hint = "torsor excite finds a motion" if is_excitable(found.prior) else "another motion may show it"
        return Unidentified(name, "not shown", text + hint)
    return Unidentified(name, "below noise", f"zero, or too small for the noise of the forces ({ends})")


def _weak_terms(found: Any) -> list[Unidentified]:
    """Return the terms of drives whose deviations exceed their values."""
    if found.drives is None:
        return []
    rows = zip(found.drives.names, found.drives.values, found.drives.deviations, strict=True)
    weak = [(name, float(value), float(deviation)) for name, value, deviation in rows if deviation > abs(value) > 0]
    text = "zero, or too small for the noise of the forces (95 % interval {})"
    return [Unidentified(name, "below noise", text.format(_interval(*own))) for name, *own in weak]


def _interval(value: float, deviation: float) -> str:
    half = HALF_INTERVAL * deviation
    return f"{value - half:.3g} to {value + half:.3g}"


def unit_of(robot: MeasuredRobot, name: str) -> str:
    """Return the unit of a parameter of a robot."""
    part, _, kind = name.rpartition(".")
    if kind in _TURNING:
        return (_SLIDING if force_units(robot).get(part) == "N" else _TURNING)[kind]
    return _UNITS.get(kind, "kg m²")
