"""Include the facts of docs/facts.toml in README.md and in the pages of the documentation.

Run ``python docs/tools/facts.py`` after changing the data or a page. A page names what it includes: the lines between
``<!-- facts: limits -->`` and ``<!-- end of facts -->`` are replaced. Kinds are the keys of ``TABLES``. Links in the
data are relative to the folder docs.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(<!-- facts: ([\w ]+) -->\n).*?(<!-- end of facts -->)", re.DOTALL)
Facts = dict[str, Any]
NOT_MEASURED = "–"


def table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    rule = re.sub(r"[^|]+", "---", head)
    return "\n".join([head, rule, *("| " + " | ".join(row) + " |" for row in rows)])


def limits(facts: Facts, _: str) -> str:
    """Return all limits, by subject, each with the page that explains it."""
    groups: dict[str, list[str]] = {}
    for limit in facts["limits"]:
        links = ", ".join(f"[{Path(page).stem.replace('_', ' ')}]({page})" for page in limit["pages"])
        groups.setdefault(limit["group"], []).append(f"- {limit['text']} ({links})")
    return "\n\n".join(f"## {group}\n\n" + "\n".join(items) for group, items in groups.items())


def short_limits(facts: Facts, _: str) -> str:
    """Return the limits that most users meet, in a few words each."""
    return "\n".join(f"- {limit['short']}" for limit in facts["limits"] if "short" in limit)


def limits_here(facts: Facts, page: str) -> str:
    """Return the limits of the subject of a page."""
    return "\n".join(f"- {limit['text']}" for limit in facts["limits"] if page in limit["pages"])


def extras(facts: Facts, _: str) -> str:
    """Return the extras, the packages that they install, and their purpose."""
    rows = ((", ".join(f"`{name}`" for name in row["names"]), row["brings"], row["use"]) for row in facts["extras"])
    return table("| extra | installs | needed for |", rows)


def formats(facts: Facts, _: str) -> str:
    """Return the formats of robot files."""

    def row(entry: Facts) -> tuple[str, ...]:
        extra = f"`{entry['extra']}`" if "extra" in entry else ""
        link = f"[{entry['name']}]({entry['page']})"
        return link, " ".join(entry["suffixes"]), " ".join(entry["written"]) or "no", extra

    return table("| format | read | written | extra |", map(row, facts["formats"]))


def platforms(facts: Facts, _: str) -> str:
    """Return the platforms."""
    about = facts["platforms"]
    return (
        f"Torsor needs Python {about['python']} or newer. It is tested on {about['run']} "
        f"and should run on {about['prepared']}."
    )


def speed(facts: Facts, _: str) -> str:
    """Return measured times next to those of other libraries."""
    rows = (
        (row["name"], f"{row['peer']}, {row['peer_call']}", *cells(facts, row, "x86"), *cells(facts, row, "arm"))
        for row in facts["speed"]
        if "gpu" not in row
    )
    head = "| one core, float64 | compared with | x86-64 | speed ratio | AArch64 | speed ratio |"
    machines = facts["machines"]
    return f"{table(head, rows)}\n\nx86-64: {machines['x86']}. AArch64: {machines['arm']}."


def cells(facts: Facts, row: Facts, machine: str) -> tuple[str, str]:
    """Return the time of a row and its ratio, as text."""
    if machine not in row:
        return NOT_MEASURED, NOT_MEASURED
    ns = row[machine]["ns"]
    return f"{ns:g} ns" if ns < 1000 else f"{ns / 1000:g} µs", ratio(facts, row, machine)


def ratios(facts: Facts, row: Facts, machine: str) -> list[float]:
    """Return the speed of a row relative to the peer, in all measurements."""
    if "history" in row and machine == "x86":
        return [peer / own for own, peer in (entry[row["history"]] for entry in facts["history"])]
    return [row[machine]["ratio"]] if "ratio" in row.get(machine, {}) else []


def ratio(facts: Facts, row: Facts, machine: str) -> str:
    """Return the ratio as text: a range if there are several measurements, else two or more digits."""
    values = ratios(facts, row, machine)
    if len(values) > 1:
        return f"{min(values):.0f} to {max(values):.0f}x"
    return f"{values[0]:.{3 if values[0] >= 100 else 2}g}x" if values else NOT_MEASURED


TABLES: dict[str, Callable[[Facts, str], str]] = {
    "limits": limits,
    "short limits": short_limits,
    "limits here": limits_here,
    "extras": extras,
    "formats": formats,
    "platforms": platforms,
    "speed": speed,
}


def relinked(text: str, page: Path) -> str:
    """Return text with links relative to a page instead of the folder docs."""

    def link(match: re.Match[str]) -> str:
        return f"]({os.path.relpath(DOCS / match[1], page.parent)})"

    return re.sub(r"\]\(([\w/]+\.md)\)", link, text)


def included(page: Path, facts: Facts) -> str:
    """Return the text of a page with its facts."""
    name = os.path.relpath(page, DOCS)
    return BLOCK.sub(lambda m: f"{m[1]}{relinked(TABLES[m[2]](facts, name), page)}\n{m[3]}", page.read_text("utf-8"))


def pages() -> list[Path]:
    """Return the pages that may include facts."""
    return [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]


def read_facts() -> Facts:
    """Return the content of the data file."""
    return tomllib.loads((DOCS / "facts.toml").read_text("utf-8"))


if __name__ == "__main__":
    everything = read_facts()
    for path in pages():
        path.write_text(included(path, everything), "utf-8")
