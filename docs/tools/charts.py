"""Draw the charts of measured speed from docs/facts.toml: docs/speed.png and docs/deploy/history.png.

python docs/tools/charts.py
"""

import tomllib
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

DOCS = Path(__file__).parents[1]
COLORS = {"x86": "#3f51b5", "arm": "#f59e0b"}
UNLIKE: dict[str, Any] = {"hatch": "///", "edgecolor": "white"}
LABELS = {"x86": "x86-64, Intel Xeon with AVX-512", "arm": "AArch64, Neoverse N1"}


def main() -> None:
    """Draw both charts."""
    facts = tomllib.loads((DOCS / "facts.toml").read_text("utf-8"))
    plt.rcParams |= {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    _ratios(facts["speed"])
    _history(facts["history"])


def _ratios(rows: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(figsize=(8.0, 4.4))
    places = np.arange(len(rows))[::-1]
    for offset, machine, other in ((0.2, "x86", "arm"), (-0.2, "arm", "x86")):
        for place, row in zip(places, rows, strict=True):
            if "ratio" not in row.get(machine, {}):
                continue
            height = place + offset * ("ratio" in row.get(other, {}))  # a lone bar is at its label
            ratio = row[machine]["ratio"]
            style = UNLIKE if _is_unlike(row) else {}
            axes.barh(height, ratio - 1.0, height=0.38, left=1.0, color=COLORS[machine], **style)  # from equal speed
            axes.text(ratio, height, f" {ratio:.3g}x ", va="center_baseline", ha="left" if ratio > 1 else "right")
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
    axes.set_xlabel("commit whose figures of make bench were recorded")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(DOCS / "deploy" / "history.png", dpi=160)


if __name__ == "__main__":
    main()
