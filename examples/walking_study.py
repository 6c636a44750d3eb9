"""Predict the walking of 60 bodies with different heights, masses and backpacks, and draw the results.

Every body walks at 1.25 m/s. The sweep takes about ten minutes on two idle cores. Results are stored in a file next to
the figure. An interrupted sweep resumes when it is started again.

    python examples/walking_study.py walking_study.png [--cases 60] [--workers 2]
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import torsor


def bodies(count: int) -> list[dict[str, Any]]:
    """Return random bodies: height (m), mass (kg) from a body mass index of 18 to 32, and a backpack of 0 to 25 kg."""
    cases = []
    for case in torsor.motion.sweeps.samples(count, height=(1.5, 1.95), bmi=(18.0, 32.0), load=(0.0, 25.0), seed=2020):
        height = round(case["height"], 3)
        mass, backpack = round(case["bmi"] * height**2, 1), round(case["load"], 1)
        cases.append({"height": height, "mass": mass, "backpack": backpack})
    return cases


def draw(results: torsor.motion.sweeps.Results, path: Path) -> None:
    """Draw work, torques and forces over height, mass and load."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    table = results.table()
    good = table["state"] == "done"
    height, mass, load = (table[name][good] for name in ("height", "mass", "backpack"))
    panels = (
        ("Positive work of all joints", table["mechanical_work"][good] * (mass + load), "J/m", mass + load),
        ("Largest ankle moment", table["ankle_plantarflexion"][good] * (mass + load), "N m", mass + load),
        ("Largest knee moment", table["knee_extension"][good] * (mass + load), "N m", mass + load),
        ("Effort (torques relative to strength, squared)", table["objective.effort"][good], "", load / mass),
    )
    figure, axes = plt.subplots(2, 2, figsize=(11.0, 8.0), constrained_layout=True)
    for place, (title, values, unit, over) in zip(axes.ravel(), panels, strict=True):
        dots = place.scatter(over, values, c=height, s=9 + 1.6 * load, cmap="viridis", alpha=0.75, linewidths=0)
        place.set_title(title, fontsize=11)
        place.set_ylabel(unit)
        is_share = over.max() < 2
        place.set_xlabel("backpack / body mass" if is_share else "mass of body and backpack (kg)")
        place.grid(alpha=0.3)
    figure.colorbar(dots, ax=axes, label="height (m)", shrink=0.6)
    text = f"Predicted walking at 1.25 m/s of {good.sum()} bodies; large dots carry heavy backpacks (0 to 25 kg)"
    figure.suptitle(text + (f"; {(~good).sum()} not solved" if not good.all() else ""))
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run the sweep and draw its results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", type=Path, nargs="?", default=Path("walking_study.png"))
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    output = options.figure.with_suffix(".sqlite")
    results = torsor.sweep("walk", bodies(options.cases), workers=options.workers, output=output, resume=True)
    print(results)
    for number, error in results.errors().items():
        print(f"case {number}: {error}")
    solved = results["state"] == "done"
    for name in ("cost_of_transport", "vertical_peak", "ankle_plantarflexion"):
        values = results[name][solved]
        quartiles = ", ".join(f"{value:.3g}" for value in np.percentile(values, [5, 50, 95]))
        print(f"{name} ({results.units[name]}), 5 %, median, 95 %: {quartiles}")
    draw(results, options.figure)


if __name__ == "__main__":
    main()
