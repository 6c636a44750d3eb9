"""A hook of MkDocs: the table of src/torsor/human/constants.toml, in pages with the line ``<!-- constants -->``."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[2] / "src" / "torsor" / "human" / "constants.toml"
MARK = "<!-- constants -->"
EFFECTS = """Sources are entries of the [bibliography](../theory/bibliography.md), or: *definition* (a convention or an
interface choice), *numerical* (a size or tolerance of computations), *measured here* (obtained in this project),
**none** (chosen). Unless an effect names another result, its figures are for the walk with free step length, width and
timing at 1.25 m/s and the default mesh: relative changes in step length, metabolic cost of transport, largest vertical
force and double support, and absolute changes in the mean squared correlation r2 of the eleven sagittal curves with
those of people. Walks whose objectives differ by less than 0.1 % differ by up to 1.6 % in the force and 0.006 in
r2."""
KINDS = ("definition", "numerical", "measured here", "none")


def tables() -> str:
    """Return a count of the constants by source, and one Markdown table per folder."""
    counts, rows = Counter[str](), dict[str, list[str]]()
    for file, entries in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        folder, _, name = file.rpartition("/")
        for names, entry in entries.items():
            each, source = names.split(", "), entry["source"]
            counts[source if source in KINDS else "publications"] += len(each)
            shown = f"{name}: {', '.join(f'`{one}`' for one in each)}"
            cells = shown, entry["unit"], entry["meaning"], f"**{source}**" if source == "none" else source
            rows.setdefault(folder, []).append(" | ".join((*cells, entry.get("effect", ""))))
    head = "| constants | unit | meaning | source | effect |\n|---|---|---|---|---|\n"
    listed = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
    parts = [f"There are {counts.total()} constants, by source: {listed}.", EFFECTS]
    parts += [f"## {folder}\n\n{head}" + "\n".join(f"| {row} |" for row in group) for folder, group in rows.items()]
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page with the table; MkDocs calls this for every page."""
    return markdown.replace(MARK, tables()) if MARK in markdown else markdown
