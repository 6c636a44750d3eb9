"""Predicted walks: step, energy, forces and similarity to measured people at several speeds, slopes and loads.

Run: python benchmarks/free_steps.py [NAME ...], with names of the rows below, or "grid" for 63 combinations of speeds,
slopes and loads. Each search starts from q = 0.
"""

import math
import sys
import warnings

import numpy as np

from torsor.human import REFERENCES, Backpack, Step, Stride, walking

# Speed (m/s), slope (%), backpack (kg).
WALKS = {
    "0.7": (0.7, 0.0, 0.0),
    "1.0": (1.0, 0.0, 0.0),
    "1.25": (1.25, 0.0, 0.0),
    "1.6": (1.6, 0.0, 0.0),
    "1.8": (1.8, 0.0, 0.0),
    "2.0": (2.0, 0.0, 0.0),
    "up": (1.25, 8.0, 0.0),
    "down": (1.25, -8.0, 0.0),
    "backpack": (1.25, 0.0, 20.0),
}
GRID = {
    f"{speed:.2f} m/s, {slope:g} %, {load:g} kg": (float(speed), slope, load)
    for speed in np.linspace(0.7, 2.0, 7)
    for slope in (-8.0, 0.0, 8.0)
    for load in (0.0, 10.0, 20.0)
}
# Curves that are compared, with the width of the band where the reference has none (% of the weight).
CURVES = {
    "hip_flexion": 0.0,
    "knee_flexion": 0.0,
    "ankle_flexion": 0.0,
    "hip_extension": 0.0,
    "knee_extension": 0.0,
    "ankle_plantarflexion": 0.0,
    "vertical": 6.0,
    "forward": 3.0,
}
TOLERANCE, ITERATIONS = 1e-4, 500


def main() -> None:
    """Print a row for each walk."""
    warnings.simplefilter("ignore")  # the status is printed
    print(
        "walk: length, width (m), double support (%), energy (J/kg/m), peak (weights), rise (mm), iterations, s, status"
    )
    chosen = GRID if sys.argv[1:] == ["grid"] else {name: WALKS[name] for name in sys.argv[1:] or WALKS}
    for name, (speed, slope, load) in chosen.items():
        problem = walking(
            step=Step(speed=speed),
            slope=math.atan(slope / 100),
            load=Backpack(load) if load else None,
        )
        result = problem.solve(check=False, tolerance=TOLERANCE, iterations=ITERATIONS)
        stride = Stride(result)
        step, energy = stride.step, next(part.value for part in result.parts if part.title == "energy")
        rise = 1000 * np.ptp(stride.samples.q[:, stride.body.coordinate_names.index("ty")])
        figures = f"{step.length:.3f}, {step.width:.2f}, {100 * step.toe_off:.0f}, {energy:.2f}"
        figures += f", {stride.force[:, 1].max():.2f}, {rise:.0f}, {result.iterations}, {result.solve_seconds:.0f}"
        print(f"{name}: {figures}, {result.status}")
        print(f"    ground {100 * stride.energy.ground / stride.energy.positive:.1f} % of the work; {likeness(stride)}")


def likeness(stride: Stride) -> str:
    """Return the correlation with measured people, and the RMS difference in standard deviations, per curve."""
    correlations, widths = list[float](), list[float]()
    found = stride.likeness()
    for name, assumed in CURVES.items():
        band = REFERENCES[name].sd
        correlations.append(found[name].correlation)
        widths.append(found[name].rms / (assumed if band is None else float(band.mean())))
    each = ", ".join(f"{name} {r:.2f}" for name, r in zip(CURVES, correlations, strict=True))
    return f"r {np.mean(correlations):.2f}, RMS {np.mean(widths):.2f} SD ({each})"


if __name__ == "__main__":
    main()
