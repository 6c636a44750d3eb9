"""Tables and figures of identification reports, and the reasons why parameters are not identified."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.markup import escape
from rich.table import Table

from torsor.base.arrays import Array, Flags
from torsor.base.figures import label, label_of_title, new_figure, saved, styled
from torsor.base.summary import titled_table
from torsor.identification.closed_robot import MeasuredRobot, is_excitable, whole
from torsor.identification.drives import Drives
from torsor.identification.excitation.design import sizes_of
from torsor.mechanism.mechanism import force_units

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MARK = " !"
MAX_MODELS_SHOWN = 3  # largest number of rejected friction models in the report
_table = partial(titled_table, overflow="fold")


def parameter_table(found: Any) -> Table:
    """Return the table of base parameters with their standard deviations."""
    words = {"physically consistent": "physical", "weighted least squares": "least squares"}
    how = words.get(found.method, found.method)
    title = f"{found.prior.name}: {len(found)} base parameters ({how}), condition number {found.condition:.4g}"
    table = _table(escape(title), "parameter (SI units)", "as given", "identified", "deviation", "%")
    columns = (found.names, found.base.values, found.values, found.deviations, found.relative_deviations)
    for name, given, value, deviation, percent in zip(*columns, strict=True):
        shown = percent_text(percent) + MARK * (name in found.undetermined)
        table.add_row(escape(name), short(given), short(value), f"{deviation:.2g}", shown)
    return table


def drive_table(drives: Drives) -> Table:
    """Return the table of drive terms; the last column is the increase in the criterion without the model."""
    columns = ("identified", "deviation", "%", "shape", f"{drives.criterion.upper()} increase if absent")
    table = _table("Drives: friction beyond Coulomb and viscous, offsets, coupled motors", "term (SI units)", *columns)
    for term, value, deviation in zip(drives.terms, drives.values, drives.deviations, strict=True):
        worth = drives.changes.get(term.drive, {}).get(term.law)
        percent = percent_text(float(100 * deviation / abs(value)) if value else np.inf)
        shape = f"{term.shape:.3g}" if term.shape else ""
        row = (short(value), f"{deviation:.2g}", percent, shape, "" if worth is None else f"{worth:.3g}")
        table.add_row(escape(term.name), *row)
    return table


def others_note(drives: Drives) -> str:
    """Return the number of rejected friction models and the closest ones as text; "" if there are none."""
    rises = {f"{drive}.{law}": rise for drive, law, rise in drives.others}
    if not rises:
        return ""
    first, *more = sorted(rises, key=lambda name: rises[name])[:MAX_MODELS_SHOWN]
    closest = f"{first} ({drives.criterion.upper()} would rise by {rises[first]:.3g})"
    closest += "".join(f", {name} ({rises[name]:.3g})" for name in more)
    count = f"{len(rises)} friction models were" if len(rises) > 1 else "1 friction model was"
    return f"{count} not selected; closest: {closest}; all: JSON and HTML report"


def residual_table(found: Any, measured: Flags) -> Table:
    """Return the table of residuals; ``measured`` (nv,) marks the coordinates with measured forces."""
    heads = ["coordinate", "RMS", "% of force", "R²", *["% held out"] * (found.held_out is not None)]
    table = _table(f"Residuals of {len(found.measurements)} samples (N m and N)", *heads)
    for k in np.flatnonzero(measured):
        name, percent = found.prior.coordinate_names[k], f"{found.relative_residuals[k]:.3g}".replace("inf", "no force")
        last = () if found.held_out is None else (f"{found.held_out[k]:.3g}",)
        percent += MARK * (name in found.unexplained)
        table.add_row(escape(name), f"{found.rms[k]:.4g}", percent, f"{found.r_squared[k]:.6f}", *last)
    return table


def short(value: float) -> str:
    """Return a number as text with five digits; rounding errors become "0"."""
    return "0" if abs(value) < 1e-12 else f"{value:.5g}"


def percent_text(value: float) -> str:
    """Return a percentage as text with three digits."""
    return f"{value:.3g}" if value < 1e4 else "> 10000"


MEASURED, PREDICTED, RESIDUAL, HELD_OUT = "0.65", "C0", "C3", "0.93"


def plot(found: Any, path: str | Path | None) -> "Figure":
    """Return a figure with measured and predicted forces, one panel per coordinate.

    Residuals are shown with a band of ± 2 RMS. Held-out measurements have a grey background.
    """
    robot, data, unseen = found.prior, found.measurements, found.unseen
    names, units = robot.coordinate_names, force_units(robot)
    columns = 1 if len(names) < 4 else 2 if len(names) < 13 else 4
    rows = -(-len(names) // columns)
    figure = new_figure((6.5 if columns < 4 else 5.0) * columns, 2.1 * rows + 0.9)
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).T.ravel()
    shown = [found] if unseen is None else [found, unseen]
    tau = np.concatenate([each.measurements.tau for each in shown])
    predicted = np.concatenate([each.predicted for each in shown])
    times = [each.measurements.times for each in shown]
    timed = all(time is not None for time in times) and bool((np.diff(np.concatenate(times)) > 0).all())
    along = np.concatenate(times) if timed else np.arange(float(len(tau)))
    for j, (axes, name) in enumerate(zip(panels, names, strict=False)):
        measured, forces, size = tau[:, j], predicted[:, j], found.rms[j]
        axes.plot(along, measured, color=MEASURED, linewidth=2.2, label="measured")
        axes.plot(along, forces, color=PREDICTED, linewidth=1.2, label="predicted")
        # Residuals are drawn first, so that they do not hide the forces.
        axes.plot(along, measured - forces, color=RESIDUAL, linewidth=0.6, alpha=0.5, zorder=1, label="residual")
        band = {"color": RESIDUAL, "alpha": 0.12, "linewidth": 0, "label": "± 2 RMS of the residual"}
        axes.axhspan(-2 * size, 2 * size, **band)
        title = f"{label(name)}: residual {size:.2g} {units[name]}, {found.relative_residuals[j]:.2g} % of the force"
        if unseen is not None:
            axes.axvspan(along[len(data)], along[-1], color=HELD_OUT, linewidth=0, zorder=0, label="held out")
            title += f"; held out {unseen.relative_residuals[j]:.2g} %"
        styled(axes, unit=units[name])
        axes.set_title(title, fontsize="medium")
    for axes in panels[len(names) :]:
        figure.delaxes(axes)
    for k in range(-(-len(names) // rows)):
        lowest = panels[min(k * rows + rows, len(names)) - 1]
        lowest.set_xlabel("time (s)" if timed else "sample")
        lowest.tick_params(labelbottom=True)
    what = f"{len(data)} samples, parameters: {found.method}"
    what += "" if unseen is None else f"; {len(unseen.measurements)} held out"
    figure.suptitle(label_of_title(f"{robot.name}: measured and predicted forces\n{what}"))
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 3 if columns == 1 else 5, "frameon": False}
    figure.legend(*panels[0].get_legend_handles_labels(), **place)
    return saved(figure, path)


# Parameters that an identification does not determine, with the reasons.
#
# Base parameters are combinations of robot parameters (``robot.inertial.base``). Any other parameter has no effect on
# the forces, or acts only in combination with others. A base parameter may be below the noise, or the motion may not
# excite it. ``found`` is an ``Identified``; its module imports this one.

KINDS = {
    "not shown": "Not excited by the motion",
    "below noise": "Below the noise",
    "regrouped": "Effective only in combination with others",
    "no effect": "No effect in any motion",
    "given": "Taken as known",
}
FACTOR_TOLERANCE = 1e-9  # fraction of the largest factor of a combination below which factors count as zero
# Number of standard deviations from zero beyond which a value indicates the typical size of its kind.
SIGNIFICANT_DEVIATIONS = 3.0
HALF_INTERVAL = 1.96  # standard deviations to each end of a 95 % confidence interval
_UNITS = {"m": "kg", "mx": "kg m", "my": "kg m", "mz": "kg m"}
_TURNING = {"rotor_inertia": "kg m²", "coulomb": "N m", "viscous": "N m s"}
_SLIDING = {"rotor_inertia": "kg", "coulomb": "N", "viscous": "N s/m"}


class Unidentified(NamedTuple):
    """A ``parameter`` that was not identified individually, with the ``kind`` of reason and an explanation ``why``.

    Kinds are "not shown" (not excited by this motion), "below noise", "regrouped", "no effect" and "given".

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
    """Return the parameters that are not identified individually, ordered by kind of reason."""
    base, names = found.base, found.prior.inertial.names
    representative = {int(column): k for k, column in enumerate(base.columns)}
    own_names = tuple(names[k] for k in base.columns)
    certain = np.where(np.abs(found.values) > SIGNIFICANT_DEVIATIONS * found.deviations, np.abs(found.values), 0.0)
    sizes = sizes_of(own_names, np.maximum(np.abs(base.values), certain))
    rows = []
    for p, name in enumerate(names):
        parts = np.abs(base.matrix[:, p])
        within = [own_names[k] for k in np.flatnonzero(parts > FACTOR_TOLERANCE * max(float(parts.max()), 1e-300))]
        if not base.unknown[p]:
            rows.append(Unidentified(name, "given", "the value of the given robot was kept"))
        elif p in representative:
            weak = _weak(found, representative[p], sizes, unit_of(whole(found.prior), name))
            rows += [] if weak is None else [weak]
        elif within:
            text = f"no motion separates it from others; it is part of the combinations of {', '.join(within)}"
            rows.append(Unidentified(name, "regrouped", text))
        else:
            rows.append(Unidentified(name, "no effect", "no measured force depends on it in any motion"))
    if found.drives is not None:
        terms = zip(found.drives.names, found.drives.values, found.drives.deviations, strict=True)
        rows += [_below_noise(*term) for term in terms if term[2] > abs(term[1]) > 0]
    order = list(KINDS)
    return tuple(sorted(rows, key=lambda row: order.index(row.kind)))


def _weak(found: Any, k: int, sizes: Array, unit: str) -> Unidentified | None:
    """Return the reason why a base parameter is not determined, or None if it is determined."""
    name, value, deviation = found.names[k], float(found.values[k]), float(found.deviations[k])
    if name not in found.undetermined:
        return None
    if deviation <= sizes[k]:
        return _below_noise(name, value, deviation, f" {unit}")
    text = f"its standard deviation, {deviation:.2g} {unit}, exceeds its likely size, {sizes[k]:.2g} {unit} "
    text += f"(95 % interval {_interval(value, deviation)} {unit}): "
    hint = "torsor excite finds a motion" if is_excitable(found.prior) else "another motion may excite it"
    return Unidentified(name, "not shown", text + hint)


def _below_noise(name: str, value: float, deviation: float, unit: str = "") -> Unidentified:
    text = f"zero, or too small for the noise of the forces (95 % interval {_interval(value, deviation)}{unit})"
    return Unidentified(name, "below noise", text)


def _interval(value: float, deviation: float) -> str:
    half = HALF_INTERVAL * deviation
    return f"{value - half:.3g} to {value + half:.3g}"


def unit_of(robot: MeasuredRobot, name: str) -> str:
    """Return the unit of a robot parameter."""
    part, _, kind = name.rpartition(".")
    if kind in _TURNING:
        return (_SLIDING if force_units(robot).get(part) == "N" else _TURNING)[kind]
    return _UNITS.get(kind, "kg m²")
