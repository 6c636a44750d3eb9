"""Draw the charts of measured speed from docs/facts.toml, and the figures of the examples of four pages.

The files are docs/speed.png, docs/deploy/history.png, docs/compute/drive_size.png, and control.png, lqr.png and
predictive_control.png in docs/simulate:

python docs/tools/charts.py
"""

import re
from contextlib import chdir
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from facts import DOCS, ratio, ratios, read_facts
from matplotlib.patches import Patch

COLORS = {"x86": "#3f51b5", "arm": "#f59e0b"}
UNLIKE: dict[str, Any] = {"hatch": "///", "edgecolor": "white"}
PAGES = "compute/drives.md", *(f"simulate/{name}.md" for name in ("elastic_joints", "lqr", "predictive_control"))
LABELS = {"x86": "x86-64, Intel Xeon with AVX-512", "arm": "AArch64, Neoverse N1"}


def main() -> None:
    """Draw all charts."""
    facts = read_facts()
    plt.rcParams |= {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    _ratios(facts)
    _history(facts["history"])
    plt.rcdefaults()
    for page in PAGES:
        with chdir((DOCS / page).parent):
            _run(page)


def _ratios(facts: dict[str, Any]) -> None:
    rows = facts["speed"]
    figure, axes = plt.subplots(figsize=(8.0, 4.4))
    places = np.arange(len(rows))[::-1]
    for offset, machine, other in ((0.2, "x86", "arm"), (-0.2, "arm", "x86")):
        for place, row in zip(places, rows, strict=True):
            if "ratio" not in row.get(machine, {}):
                continue
            height = place + offset * ("ratio" in row.get(other, {}))  # a lone bar is at its label
            times, label = float(np.median(ratios(facts, row, machine))), ratio(facts, row, machine)
            style = UNLIKE if _is_unlike(row) else {}
            axes.barh(height, times - 1.0, height=0.38, left=1.0, color=COLORS[machine], **style)  # from equal speed
            axes.text(times, height, f" {label} ", va="center_baseline", ha="left" if times > 1 else "right")
    axes.set_xscale("log")
    axes.set_xlim(0.08, 300.0)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xticks([0.1, 1, 10, 100], ["0.1x", "1x", "10x", "100x"])
    axes.set_yticks(places, [f"{row['name']}\nvs {row['peer']}, {row['peer_call']}" for row in rows])
    axes.tick_params(left=False)
    axes.set_xlabel("speed relative to the peer, one core, float64")
    hatched = Patch(facecolor="0.6", label="batch vs single calls or one trajectory", **UNLIKE)
    plain = [Patch(color=COLORS[machine], label=label) for machine, label in LABELS.items()]
    axes.legend(handles=[*plain, hatched], frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
    figure.tight_layout()
    figure.savefig(DOCS / "speed.png", dpi=160)


def _is_unlike(row: dict[str, Any]) -> bool:
    """Return whether Torsor computes a batch and the peer does not."""
    return "batch" in row["name"] and row["peer_call"] != "batch"


def _history(rows: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(figsize=(8.0, 3.0))
    for name, label, color in (("ur5", "UR5", COLORS["x86"]), ("talos", "Talos, 32 dof", COLORS["arm"])):
        axes.plot([peer / torsor for torsor, peer in (row[name] for row in rows)], "o-", color=color, label=label)
    axes.set_xticks(range(len(rows)), [row["commit"] for row in rows])
    axes.set_ylim(0.0)
    axes.set_ylabel("times as fast as Pinocchio 4.1")
    axes.set_xlabel("commit")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(DOCS / "deploy" / "history.png", dpi=160)


def _run(page: str) -> None:
    """Run the code of a page."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL):
        exec(block, names)


if __name__ == "__main__":
    main()
