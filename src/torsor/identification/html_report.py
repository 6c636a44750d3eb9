"""The identification report, a self-contained HTML file with escaped names."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from torsor.base.checks import instance_of
from torsor.base.errors import ModelError
from torsor.base.html_report import html_list, html_table, html_text, image, in_motion, write_html
from torsor.identification.closed_robot import rubbing_joints, whole
from torsor.identification.contents import HALF_INTERVAL, KINDS, MARK, percent_text, short, unit_of
from torsor.identification.drives import LAWS
from torsor.identification.result import UNDETERMINED_PERCENT, UNEXPLAINED_PERCENT, Identified
from torsor.mechanism.mechanism import force_units


def write_identification_report(path: str | Path, found: Identified, validated: Identified | None = None) -> Path:
    """Write an identification report as a self-contained HTML file, and return its path.

    The report contains measured, held-out and predicted forces for each coordinate, parameters with 95 % confidence
    intervals, friction models, unidentified parameters with reasons, masses, settings, and the motion in 3D.
    ``validated`` is a result of ``validate`` on another motion. The report requires matplotlib (``torsor[plot]``).

    Example:
        >>> import tempfile
        >>> robot = torsor.library.planar_chain(1)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 1))
        >>> found = torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = write_identification_report(folder + "/arm.html", found).read_text()
        >>> "could not be identified" in text
        True
    """
    instance_of(found, Identified, "report", "found", allowed="a result of torsor.identify")
    if validated is not None:
        instance_of(validated, Identified, "report", "validated", allowed="a result of found.validate")
        other = validated.prior.name
        if validated.prior.inertial.names != found.prior.inertial.names:
            allowed = f"a result of {found.prior.name!r}"
            message = f"belongs to {other!r}"
            raise ModelError(message, value=other, argument="validated", where="report", allowed=allowed)
    if Path(path).suffix.lower() != ".html":
        raise ModelError(f"the file name is {str(path)!r}", where="report", allowed="a name that ends with .html")
    name = f"{found.prior.name}: identified parameters"
    parts = [f"<h1>{html_text(name)}</h1>", _lead(found, validated), *_remarks(found, validated)]
    parts += ["<h2>Force prediction</h2>", _prediction(found, validated), image(found.plot())]
    if validated is not None:
        parts += ["<p>The validation motion:</p>", image(validated.plot())]
    parts += ["<h2>Parameters</h2>", _parameters(found)]
    if found.drives is not None:
        parts += ["<h2>Friction and drives</h2>", _drives(found)]
    parts += ["<h2>Parameters that could not be identified</h2>", *_unidentified(found)]
    if found.parameters is not None:
        parts += ["<h2>The identified robot</h2>", _masses(found)]
    notes = found.measurements.notes
    parts += ["<h2>Log and settings</h2>", html_list(notes) if notes else "", _settings(found)]
    times = found.measurements.times
    ends = np.empty(0) if times is None else np.flatnonzero(np.diff(times) <= 0)
    if ends.size:  # only the first run, because times of several logs may decrease
        first = slice(0, int(ends[0]) + 1)
        found = replace(found, measurements=found.measurements.part(first), predicted=found.predicted[first])
    return write_html(Path(path), name, [*parts, *in_motion(found, name)])


def _lead(found: Identified, validated: Identified | None) -> str:
    """Return a summary of the result in two sentences."""
    best = validated if validated is not None else found.unseen
    shown = found if best is None else best
    percents = ", ".join(f"{residual:.3g}" for residual in shown.relative_residuals)
    what = "forces of the motion that was used" if best is None else "forces of the motion that was not used"
    times = found.measurements.times
    steps = np.empty(0) if times is None else np.diff(times)
    duration = f" over {float(steps[steps > 0].sum()):.3g} s" if steps.size else ""
    text = f"{len(found)} base parameters from {len(found.measurements)} samples{duration}, {found.method}. "
    text += f"Residuals in the {what}, by coordinate: {percents} %."
    return f"<p>{html_text(text)}</p>"


def _remarks(found: Identified, validated: Identified | None) -> Iterable[str]:
    """Yield remarks to read before using the numbers."""
    for shown, what in ((found, "used"), (found.unseen, "held-out"), (validated, "other")):
        if shown is not None and shown.unexplained:
            text = f"Residuals of {', '.join(shown.unexplained)} exceed {UNEXPLAINED_PERCENT:g} % of the {what} "
            text += "forces: "
            yield _remark(f"{text}the model does not explain them. Check units, signs, column order and delays.")
    if found.undetermined:
        count = f"{len(found.undetermined)} of {len(found)} base parameters"
        yield _remark(f"{count} have a deviation above {UNDETERMINED_PERCENT:g} % of their value (marked !).")
    if found.drives is not None and found.parameters is not None:
        left_out = found.drives.left_out(rubbing_joints(found.prior))
        yield from [_remark(f"{left_out[:1].upper()}{left_out[1:]}.")] if left_out else []
    if found.unseen is None and validated is None:
        yield _remark("No motion was held out, so the prediction error on unseen motion is unknown.")


def _remark(text: str) -> str:
    return f'<p class="remark">{html_text(text)}</p>'


def _prediction(found: Identified, validated: Identified | None) -> str:
    units = force_units(found.prior)
    groups = [("used", found), ("held out", found.unseen), ("other motion", validated)]
    present = [(what, shown) for what, shown in groups if shown is not None]
    head = ["coordinate", *(f"{size}, {what}" for size in ("RMS", "% of force") for what, _ in present), "R²"]
    percents = np.concatenate([shown.relative_residuals for _, shown in present])
    worst = float(percents[np.isfinite(percents)].max(initial=1e-9))
    rows = []
    for j, name in enumerate(found.prior.coordinate_names):
        cells = [html_text(name), *(f"{shown.rms[j]:.4g} {units[name]}" for _, shown in present)]
        cells += [_bar(float(shown.relative_residuals[j]), worst) for _, shown in present]
        rows.append([*cells, f"{found.r_squared[j]:.5f}"])
    note = "Values are root mean squares of measured minus predicted forces. R² refers to the samples used."
    return html_table(head, rows) + f'<p class="note">{note}</p>'


def _bar(percent: float, worst: float) -> str:
    """Return HTML of a percentage with a bar."""
    if not np.isfinite(percent):
        return "not measured" if np.isnan(percent) else "no force"
    return f'<span class="bar" style="width:{5 * min(percent / worst, 1.0):.2f}em"></span>{percent:.3g} %'


def _parameters(found: Identified) -> str:
    names, rows = found.prior.inertial.names, []
    columns = (found.names, found.base.columns, found.base.values, found.values, found.deviations, found.intervals)
    for name, column, given, value, deviation, (low, high) in zip(*columns, strict=True):
        percent = f"{percent_text(100 * deviation / abs(value))} %" if value else ""
        cells = [html_text(name), unit_of(whole(found.prior), names[column]), short(given), short(value)]
        cells += [f"{low:.4g} to {high:.4g}", f"{deviation:.2g}", percent + MARK * (name in found.undetermined)]
        rows.append(cells)
    head = ["parameter", "unit", "as given", "identified", "95 % confidence interval", "deviation", "of the value"]
    marked = [row[-1].endswith("!") for row in rows]
    note = f"Intervals are ± {HALF_INTERVAL:g} standard deviations of least squares, without model errors."
    if found.lag:
        note += f" Residuals are correlated over {found.lag} samples; the deviations account for this."
    return html_table(head, rows, marked) + f'<p class="note">{note}</p>'


def _drives(found: Identified) -> str:
    drives = found.drives
    assert drives is not None
    rows = []
    for term, value, deviation in zip(drives.terms, drives.values, drives.deviations, strict=True):
        half, worth = HALF_INTERVAL * deviation, drives.changes.get(term.drive, {}).get(term.law)
        cells = [html_text(term.drive), html_text(term.law), LAWS[term.law].formula, short(value)]
        cells += [f"{value - half:.4g} to {value + half:.4g}", f"{term.shape:.3g}" if term.shape else ""]
        rows.append([*cells, "" if worth is None else f"{worth:.3g}"])
    others = [[html_text(drive), html_text(law), LAWS[law].formula, f"{x:.3g}"] for drive, law, x in drives.others]
    name = drives.criterion.upper()
    head = ["drive", "law", "force", "x (SI)", "95 % confidence interval", "n or s₀", f"{name} increase if absent"]
    none = "<p>No friction model beyond Coulomb and viscous friction was selected.</p>"
    text = html_table(head, rows) if rows else none
    text += '<p class="note">s is the drive rate, f the transmitted force, T the temperature.</p>'
    if others:
        table = html_table(["drive", "law", "force", f"{name} increase if added"], others)
        text += f"<details><summary>{len(others)} rejected friction models</summary>{table}</details>"
    return text


def _unidentified(found: Identified) -> Iterable[str]:
    """Yield the unidentified parameters, grouped by reason."""
    for kind, title in KINDS.items():
        parameters = [parameter for parameter in found.unidentified if parameter.kind == kind]
        if not parameters:
            continue
        whys = {each.why for each in parameters}
        if len(whys) == 1:
            names = ", ".join(each.parameter for each in parameters)
            body = f"<p>{html_text(names)}: {html_text(whys.pop())}.</p>"
        else:
            rows = [[html_text(each.parameter), html_text(each.why)] for each in parameters]
            body = html_table(["parameter", "why"], rows, words=True)
        yield f"<h3>{title} ({len(parameters)})</h3>{body}"
    if not found.unidentified:
        yield "<p>All parameters were identified.</p>"
    elif found.parameters is not None:
        text = "In the identified robot, these have the physically consistent values nearest to the given robot."
        yield f'<p class="note">{text}</p>'


def _masses(found: Identified) -> str:
    assert found.parameters is not None
    rows, before, after = [], whole(found.prior), whole(found.prior.inertial.replaced(found.parameters))
    for given, own in zip(before.links, after.links, strict=True):
        change = f"{100 * (own.mass / given.mass - 1):+.1f} %" if given.mass > 0 else ""
        centres = [", ".join(f"{x:.4f}" for x in np.asarray(each.com) + 0.0) for each in (given, own)]
        rows.append([html_text(own.name), f"{given.mass:.4g}", f"{own.mass:.4g}", change, *centres])
    total = [f"{sum(link.mass for link in robot.links):.4g}" for robot in (before, after)]
    rows.append(["all moving links", *total, "", "", ""])
    head = ["link", "given mass, kg", "identified, kg", "change", "given centre of mass, m", "identified, m"]
    note = "Masses and centres that the measurements do not determine are as close as possible to the given robot."
    return html_table(head, rows) + f'<p class="note">{note}</p>'


def _settings(found: Identified) -> str:
    rows = []
    for name, value in found.settings.items():
        none = value is None or value == [] or value == {}
        words = "none" if none else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        rows.append([html_text(name), html_text(words)])
    rows.append(["condition number of the weighted regressor", f"{found.condition:.4g}"])
    return html_table(["setting", "value"], rows, words=True)
