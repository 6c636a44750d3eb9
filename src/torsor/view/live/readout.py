"""The numbers beside the picture, as HTML: forces of drives against their limits, energies, the error of closure."""

from collections.abc import Sequence

import numpy as np

from torsor.view.live.shots import Drives, Shot
from torsor.view.live.words import words

MOST = 80  # rows of a table
STYLE = "font-size:0.8em;line-height:1.35;padding:0 0.7em 0.4em"
LOUD, CALM, QUIET = "#d9480f", "#1c7ed6", "#868e96"  # above the limit, below it, without one


def readout(shot: Shot) -> str:
    """Return the numbers of a moment as HTML."""
    kinetic, potential = shot.energies
    rows = [("kinetic energy", f"{kinetic:.4g} J"), ("potential energy", f"{potential:.4g} J")]
    rows.append(("energy", f"{kinetic + potential:.4g} J"))
    closing = shot.closing
    if closing is not None:
        rows.append(("error of closure", f"{closing:.2e}"))
    listed = "".join(f"<tr><td>{name}</td><td style='text-align:right'>{value}</td></tr>" for name, value in rows)
    drives = shot.drives
    return (
        f"<div style='{STYLE}'><table style='width:100%'>{listed}</table>{'' if drives is None else bars(drives)}</div>"
    )


def bars(drives: Drives) -> str:
    """Return forces as a table of bars: full at the limit or, without limits, at the largest force of the table.

    Example:
        >>> one = Drives(("<joint>",), ("N m",), np.array([5.0]), np.array([10.0]))
        >>> "&lt;joint&gt;" in bars(one), "5 / 10 N m" in bars(one), "width:50%" in bars(one)
        (True, True, True)
    """
    largest = float(np.abs(drives.forces).max(initial=0.0)) or 1.0
    head = (
        ""
        if drives.residuals is None
        else "<tr><td></td><td></td><td style='text-align:right'>measured - predicted</td></tr>"
    )
    rows = [head]
    for k, (name, unit) in enumerate(zip(drives.names[:MOST], drives.units, strict=False)):
        force, limit = float(drives.forces[k]), float(drives.limits[k])
        bounded = np.isfinite(limit) and limit > 0
        share = abs(force) / (limit if bounded else largest)
        color = QUIET if not bounded else LOUD if share > 1 else CALM
        value = f"{force:.4g}" + (f" / {limit:.4g}" if bounded else "") + f" {unit}"
        rest = "" if drives.residuals is None else f"<td style='text-align:right'>{drives.residuals[k]:.3g}</td>"
        bar = f"<div style='background:{color};height:4px;width:{min(100 * share, 100):.0f}%'></div>"
        rows.append(f"<tr><td>{words(name)}</td><td style='text-align:right'>{value}</td>{rest}</tr>")
        rows.append(f"<tr><td colspan=3 style='background:#8883'>{bar}</td></tr>")
    more = len(drives.names) - MOST
    note = f"<div>and {more} more</div>" if more > 0 else ""
    return f"<b>Forces of drives</b><table style='width:100%;border-spacing:0 1px'>{''.join(rows)}</table>{note}"


def legend(entries: Sequence[tuple[str, tuple[float, ...]]], notes: list[str]) -> str:
    """Return names beside their colours, and notes, as HTML."""
    chips = "".join(
        f"<div><span style='display:inline-block;width:0.8em;height:0.8em;margin-right:0.5em;border-radius:2px;"
        f"background:rgb({','.join(str(round(255 * part)) for part in color[:3])})'></span>{words(name)}</div>"
        for name, color in entries
    )
    said = "".join(f"<div style='color:{LOUD};margin-top:0.3em'>{words(note)}</div>" for note in notes if note)
    return f"<div style='{STYLE}'>{chips}{said}</div>"
