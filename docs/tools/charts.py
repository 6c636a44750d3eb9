"""Draw the charts of measured speed from docs/facts.toml, and the figures of the examples of four pages.

The files are docs/speed.png, docs/deploy/history.png, docs/compute/drive_size.png, and control.png, lqr.png,
lqr_elastic.png, elastic_feed_forward.png and predictive_control.png in docs/simulate:

python docs/tools/charts.py
"""

import re
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from facts import DOCS, ratio, ratios, read_facts
from matplotlib.patches import Patch

COLORS = {"x86": "#3f51b5", "arm": "#f59e0b", "gpu": "#2e7d32"}
UNLIKE: dict[str, Any] = {"hatch": "///", "edgecolor": "white"}
LABELS = {"x86": "Intel Xeon, AVX-512", "arm": "Neoverse N1", "gpu": "NVIDIA H200, float32"}


def main() -> None:
    """Draw all charts."""
    facts = read_facts()
    plt.rcParams |= {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    _ratios(facts)
    _history(facts["history"])
    plt.rcdefaults()
    for page, draw in PAGES.items():
        with TemporaryDirectory() as folder, chdir(folder):
            draw(SimpleNamespace(**_run(page)))
            for figure in Path().glob("*.png"):
                copy(figure, (DOCS / page).parent)


def _ratios(facts: dict[str, Any]) -> None:
    rows = facts["speed"]
    figure, axes = plt.subplots(figsize=(8.0, 5.2))
    places = np.arange(len(rows))[::-1]
    for place, row in zip(places, rows, strict=True):
        measured = [machine for machine in COLORS if "ratio" in row.get(machine, {})]
        for k, machine in enumerate(measured):
            height = place + 0.2 * (len(measured) - 1 - 2 * k)  # a lone bar is at its label
            times, label = float(np.median(ratios(facts, row, machine))), ratio(facts, row, machine)
            style = UNLIKE if _is_unlike(row) else {}
            axes.barh(height, times - 1.0, height=0.38, left=1.0, color=COLORS[machine], **style)  # from equal speed
            axes.text(times, height, f" {label} ", va="center_baseline", ha="left" if times > 1 else "right")
    axes.set_xscale("log")
    axes.set_xlim(0.08, 300.0)
    axes.set_ylim(-0.6, len(rows) + 0.1)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xticks([0.1, 1, 10, 100], ["0.1x", "1x", "10x", "100x"])
    axes.set_yticks(places, [f"{row['name']}\nvs {row['peer']}, {row['peer_call']}" for row in rows])
    axes.tick_params(left=False)
    axes.text(1.08, len(rows) - 0.4, "Torsor is faster →", color="0.3")
    axes.text(0.93, len(rows) - 0.4, "← slower", color="0.3", ha="right")
    axes.set_xlabel("relative speed (processors: one core, float64)\npublished builds, unless flags are stated")
    hatched = Patch(facecolor="0.6", label="batch vs single calls", **UNLIKE)
    plain = [Patch(color=COLORS[machine], label=label) for machine, label in LABELS.items()]
    axes.legend(handles=[*plain, hatched], frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4)
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


def _run(page: str) -> dict[str, Any]:
    """Run the code of a page and return its names."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL):
        exec(block, names)
    return names


def _drive(page: Any) -> None:
    """Draw the torque and the speed of a motor over time, and within the limits of its data sheet."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    axes[0].plot(page.times, page.torque, label="torque (N m)")
    axes[0].plot(page.times, page.speed / 1000, label="speed (1000/min)")
    axes[0].set(xlabel="time (s)", ylabel="shoulder lift motor", ylim=(-2, 2.6))
    axes[0].legend(fontsize="small", ncols=2, loc="upper center")
    axes[1].plot(abs(page.speed), abs(page.torque), label="cycle")
    axes[1].plot(np.mean(abs(page.speed)), page.rms, "ko", label="mean speed, RMS torque")
    limits = [0, 3000, 6000]  # 1/min
    axes[1].plot(limits, [0.64, 0.64, 0.3], "k--", label="rated")
    axes[1].plot(limits, [1.91, 1.91, 0.6], "r--", label="peak")
    axes[1].set(xlabel="speed (1/min)", ylabel="torque (N m)", ylim=(0, 2.6))
    axes[1].legend(fontsize="small", ncols=2, loc="upper center")
    figure.savefig("drive_size.png", dpi=130)


def _lqr(page: Any) -> None:
    """Draw the step response of the nonlinear robot and of the linear model, and the torques."""
    linear = [np.concatenate([page.start - page.goal, np.zeros(6)])]
    for _ in page.run.times[1:]:
        linear.append((page.A - page.B @ page.K) @ linear[-1])
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    loads = 100 * (page.run.tau / page.arm.effort_limit).T
    deviations = np.degrees(page.run.q - page.goal).T, np.degrees(linear).T
    for name, q, model, load in zip(page.arm.joint_names, *deviations, loads, strict=False):
        (line,) = axes[0].plot(page.run.times, q, label=name.removesuffix("_joint"))
        axes[0].plot(page.run.times, model, "--", color=line.get_color(), alpha=0.6)
        axes[1].plot(page.run.times, load)
    axes[0].set(xlabel="time (s)", ylabel="deviation (°)")
    axes[0].set_title("nonlinear (solid) and linear model (dashed)")
    axes[1].set(xlabel="time (s)", ylabel="torque (% of the limit)")
    axes[0].legend(fontsize="small")
    figure.savefig("lqr.png", dpi=120)
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    for n, label in ((0, "without integral action"), (6, "with integral action")):
        axes.semilogy(page.moved.times, page.errors[n], label=label)
    axes.set(xlabel="time (s)", ylabel="largest link error (°)")
    axes.legend(fontsize="small")
    figure.savefig("lqr_elastic.png", dpi=120)


def _elastic_joints(page: Any) -> None:
    """Draw the reference of the elbow, the tracking errors and the motor torques."""
    figure, axes = plt.subplots(3, sharex=True, figsize=(8, 5.5), height_ratios=[1, 2, 1], layout="tight")
    colors = {"rigid computed torque": "C1", "rigid, sag-corrected": "C2", "elastic tracking": "C0"}
    for label, (times, error, torque) in page.runs.items():
        style = {"color": colors[label.removesuffix(", +1 kg")], "ls": "--" if label.endswith("kg") else "-"}
        axes[1].plot(times, error, label=label, **style)
        axes[2].plot(times, torque, lw=0.8, **style)
    axes[0].plot(times, np.degrees(page.desired), "k")
    axes[0].set(ylabel="elbow\nreference (°)")
    axes[1].set(ylabel="tracking error (°)", ylim=(-0.25, 0.05))
    axes[2].set(xlabel="time (s)", ylabel="torque (N m)")
    axes[1].legend(ncols=2, fontsize="small")
    figure.savefig("control.png", dpi=120)
    figure, axes = plt.subplots(2, sharex=True, figsize=(7, 4.8), height_ratios=[3, 2], layout="constrained")
    for (label, (times, error, twist)), color in zip(page.flange.items(), ("C1", "C2", "C0"), strict=True):
        axes[0].plot(times, error, color, label=label)
        axes[1].plot(times, twist, color)
    axes[0].set(ylabel="error of the flange (mm)", ylim=(0, 8.5))
    axes[0].legend(ncols=3, loc="upper center", title="feed-forward")
    axes[1].set(xlabel="time (s)", ylabel="shoulder lift:\nmotor − link (°)")
    figure.savefig("elastic_feed_forward.png", dpi=130)


def _predictive_control(page: Any) -> None:
    """Draw the angle and the torque of a joint with MPC and with saturated computed torque."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for run, name in zip(page.runs, ("MPC", "saturated computed torque"), strict=True):
        axes[0].plot(run.times, np.degrees(run.q[:, 1]), label=name)
        axes[1].plot(run.times, run.tau[:, 1])
    desired = page.law.reference(page.run.times)[0][:, 1]
    axes[0].plot(page.run.times, np.degrees(desired), "k:", label="reference")
    axes[1].hlines([-page.limit[1], page.limit[1]], 0, 2, "k", "dashed", lw=0.8)
    axes[0].set(xlabel="time (s)", ylabel="shoulder lift angle (°)")
    axes[1].set(xlabel="time (s)", ylabel="shoulder lift torque (N m)")
    labels = axes[0].get_legend_handles_labels()
    figure.legend(*labels, ncols=3, loc="outside upper center")
    figure.savefig("predictive_control.png", dpi=130)


PAGES: dict[str, Callable[[Any], None]] = {
    "compute/drives.md": _drive,
    "simulate/elastic_joints.md": _elastic_joints,
    "simulate/lqr.md": _lqr,
    "simulate/predictive_control.md": _predictive_control,
}


if __name__ == "__main__":
    main()
