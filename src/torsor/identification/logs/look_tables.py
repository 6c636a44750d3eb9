"""The first look at a log as text, and as plain values for JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from torsor.base.documents import header, plain, robot_facts
from torsor.base.summary import as_text
from torsor.identification.closed_robot import is_excitable
from torsor.identification.logs.look import Look

LONGEST = 8  # names of parameters in a line
HEADS = ("coordinate", "q from", "to", "|v|", "|a|", "|force|", "encoder step", "noise of q", "left by the model %")


def text_of(look: Look) -> str:
    """Return findings, signals and what can be identified as text."""
    parts = [f"{', '.join(log.source for log in look.logs)} for {look.robot.name}: {length_of(look)}"]
    parts += [f"- {note}" for note in look.notes]
    parts += ["", f"{len(look.findings)} suspicious:" if look.findings else "Nothing suspicious."]
    parts += [f"! {each.kind}: {each}" for each in look.findings]
    tables = (
        "\n".join(line.rstrip() for line in as_text(_signal_table(look), width=118).splitlines())
        if look.signals
        else ""
    )
    return "\n".join([*parts, "", *([tables, ""] if tables else []), *identifiable(look)])


def document(look: Look) -> dict[str, Any]:
    """Return the look as plain values."""
    prepared, shown = look.prepared, look.excited
    parameters = []
    if shown is not None:
        columns = zip(shown.names, shown.values, shown.deviations, shown.percents, strict=True)
        parameters = [dict(zip(("name", "value", "deviation", "percent"), each, strict=True)) for each in columns]
    return {
        "torsor": header("first_look"),
        "units": {"signals": "SI: rad, m, s, N m, N", "percent": "%", "delay": "s", "cutoff": "Hz"},
        "robot": robot_facts(look.robot),
        "logs": [log.source for log in look.logs],
        "samples": None if prepared is None else len(prepared.samples.q),
        "cutoff": None if prepared is None else prepared.cutoff,
        "delay": None if look.delay is None else plain(look.delay.value),
        "notes": list(look.notes),
        "findings": plain([each._asdict() for each in look.findings]),
        "signals": plain([each._asdict() for each in look.signals]),
        "condition": None if shown is None else plain(shown.condition),
        "base_parameters": plain(parameters),
    }


def length_of(look: Look) -> str:
    """Return the samples and seconds of all logs, in words."""
    count = sum(len(log) for log in look.logs)
    times = [log.times[np.isfinite(log.times)] for log in look.logs]
    seconds = sum(float(t[-1] - t[0]) for t in times if t.size)
    return f"{count} samples, {seconds:.4g} s"


def _signal_table(look: Look) -> Table:
    table = Table(title="Signals (SI units)", title_justify="left", title_style="bold", header_style="bold")
    for head in HEADS:
        table.add_column(head, justify="left" if head == "coordinate" else "right")
    for name, *cells in signal_rows(look):
        table.add_row(escape(name), *cells)
    return table


def signal_rows(look: Look) -> list[list[str]]:
    """Return the signals as rows of text, with the columns ``HEADS``."""
    found = []
    for each in look.signals:
        numbers = ["-" if math.isnan(value) else f"{value:.4g}" for value in each[1:6]]
        step = f"{each.step:.3g}" if each.step else "-"
        left = "-" if math.isnan(each.left) else f"{each.left:.3g}"
        noise = "-" if math.isnan(each.noise) else f"{each.noise:.2g}"
        found.append([each.name, *numbers, step, noise, left])
    return found


def identifiable(look: Look) -> list[str]:
    """Return lines of text: what can be identified from the logs, and what not."""
    shown = look.excited
    if shown is None and not look.findings:
        return ["What can be identified is not computed here: some forces were not measured. torsor identify says it."]
    if shown is None:
        return ["What can be identified is computed when the mistakes above are corrected."]
    good, weak, none = shown.graded()
    lines = [
        f"{len(shown.names)} base parameters, condition number {shown.condition:.4g}. With all {shown.forces} forces:"
    ]
    for words, own in (
        ("to 10 % or better", good),
        ("to 10 to 100 %", weak),
        ("not shown, or zero (deviation above the value)", none),
    ):
        lines.append(f"- {words}: {len(own)}")
        if words != "to 10 % or better" and own:
            order = sorted(own, key=lambda k: -shown.percents[k])
            names = [f"{shown.names[k].split(' ')[0]} ({_percent(float(shown.percents[k]))})" for k in order[:LONGEST]]
            lines.append("    " + ", ".join(names) + (f", and {len(own) - LONGEST} more" if len(own) > LONGEST else ""))
    if none and is_excitable(look.robot):
        how = "torsor excite ROBOT --measured LOG (in Python: torsor.identification.excite)"
        lines.append(f"{how} finds a motion that shows more.")
    return lines


def _percent(value: float) -> str:
    return f"{value:.3g} %" if value < 1e4 else "not excited" if math.isinf(value) else "> 10000 %"
