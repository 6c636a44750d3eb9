"""Draw people of several ages and sizes to scale, and predict the walking of a cohort.

The program prints body sizes and strengths. With --cohort N, it runs a sweep over N 70-year-old women who walk at 1.1
m/s (a few seconds each).

    python examples/people.py people.png [--cohort 20]
"""

import argparse
from pathlib import Path

import numpy as np

import torsor
from torsor.base.figures import new_figure, saved
from torsor.human import Person, walking_limit
from torsor.human.body.drawing import landmarks, skeleton
from torsor.motion import sweeps

PEOPLE = {
    "boy, 6 years": Person.of_percentile(age=6),
    "girl, 12 years": Person.of_percentile(sex="female", age=12),
    "woman, 5th percentile": Person.of_percentile(5, 5, "female"),
    "woman, 75 years": Person.of_percentile(sex="female", age=75),
    "man, 50th percentile": Person.of_percentile(),
    "tall man, 95th percentile": Person.of_percentile(stature=95),
}
SPACING = 0.75  # m between two people


def main(path: Path, cohort: int = 0) -> None:
    """Draw the people, print their sizes, and run the cohort."""
    figure = new_figure(11.0, 5.2)
    axes, labels = figure.subplots(), []
    for k, (name, person) in enumerate(PEOPLE.items()):
        body = person.body()
        skeleton(axes, landmarks(body, np.zeros(body.nq)), "front", shift=SPACING * k, scale=0.8)
        knee = body.effort_limit[body.coordinate_names.index("right_knee_flexion")]
        print(
            f"{name:25s} {person.height:.2f} m {person.mass:5.1f} kg  knee {knee:3.0f} N m  "
            f"walks up to {walking_limit(body):.1f} m/s"
        )
        labels.append("\n".join([*name.split(", "), f"{person.height:.2f} m, {person.mass:.0f} kg"]))
    axes.set_xticks(SPACING * np.arange(len(labels)), labels)
    axes.set(aspect="equal", ylabel="m", xlim=(-0.45, SPACING * len(labels) - 0.3))
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    saved(figure, path, dpi=110)
    if cohort:
        cases = sweeps.samples(cohort, stature_percentile=(5, 95), mass_percentile=(5, 95), seed=1)
        walks = torsor.sweep("walk", cases, fixed={"sex": "female", "age": 70.0, "speed": 1.1})
        cost = walks["mechanical_work"]
        print(f"{walks.done} of {cohort} walks solved; work {np.nanmean(cost):.2f} +- {np.nanstd(cost):.2f} J/(kg m)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", type=Path, nargs="?", default=Path("people.png"))
    parser.add_argument("--cohort", type=int, default=0)
    arguments = parser.parse_args()
    main(arguments.figure, arguments.cohort)
