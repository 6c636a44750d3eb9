"""The report of a first look at a log: one HTML file that opens offline."""

from collections.abc import Iterable
from pathlib import Path

from torsor.base.checks import instance_of
from torsor.base.html_report import html_list, html_table, html_text, image, write_html
from torsor.identification.logs.first_look import HEADS, FirstLook, identifiable, length_of, signal_rows


def write_look_report(path: str | Path, look: FirstLook) -> Path:
    """Write the report of a first look at a log: one page (HTML) that opens offline, with all signals and findings."""
    instance_of(look, FirstLook, "report", "look", allowed="a result of torsor.identification.first_look")
    name = f"First look: {', '.join(log.source for log in look.logs)}"
    parts = [
        f"<h1>{html_text(name)}</h1>",
        f"<p>{html_text(look.robot.name)}: {length_of(look)}</p>",
        html_list(look.notes),
    ]
    parts += [f"<h2>{len(look.findings)} suspicious</h2>" if look.findings else "<p>Nothing suspicious.</p>"]
    if look.findings:
        rows = [[html_text(x) for x in (each.kind, each.place, each.found, each.fix)] for each in look.findings]
        parts.append(html_table(["kind", "where", "found", "fix"], rows, words=True))
    if look.signals:
        rows = [[html_text(cell) for cell in row] for row in signal_rows(look)]
        parts += ["<h2>Signals (SI units)</h2>", html_table(HEADS, rows)]
    parts += ["<h2>What can be identified</h2>", html_list(_joined(identifiable(look)))]
    return write_html(Path(path), name, [*parts, image(look.plot())])


def _joined(lines: Iterable[str]) -> list[str]:
    """Return lines without dashes, and those that are indented, names of parameters, after the line before."""
    found: list[str] = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] += f". {line.strip()}"
        else:
            found.append(line.removeprefix("- "))
    return found
