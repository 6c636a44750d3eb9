"""Running at several speeds: step, forces and energy, and errors of the equations of motion between nodes.

Run: python benchmarks/running.py [NAME ...], with names of the rows below. Each search starts from q = 0.
"""

import sys
import warnings

import numpy as np

from torsor.human import Stride, running
from torsor.human.gait.stride import free_fall
from torsor.motion import MotionResult

# Speed (m/s), and whether muscles of ankle and knee act through tendons.
RUNS = {f"{speed}{name}": (speed, bool(name)) for name in ("", " tendons") for speed in (2.5, 3.0, 3.5, 4.0)}
TOLERANCE, ITERATIONS = 1e-4, 500


def main() -> None:
    """Print a row for each run."""
    warnings.simplefilter("ignore")  # all of them are optimal at the nodes only
    print("run: length (m), steps/s, duty factor, peak (weights), energy (J/kg/m), rise (mm), iterations, s, status")
    for name in sys.argv[1:] or RUNS:
        speed, tendons = RUNS[name]
        result = running(speed, tendons=tendons).solve(check=False, tolerance=TOLERANCE, iterations=ITERATIONS)
        print(f"{name}: {described(result)}", flush=True)


def described(result: MotionResult) -> str:
    """Return the results of a run as text."""
    stride = Stride(result)
    step, energy = stride.step, next(part.value for part in result.parts if part.title == "energy")
    rise = 1000 * np.ptp(stride.samples.q[:, stride.body.coordinate_names.index("ty")])
    found = f"{step.length:.3f}, {1 / step.duration:.2f}, {step.duty_factor:.3f}, {stride.force[:, 1].max():.2f}"
    found += f", {energy:.2f}, {rise:.0f}, {result.iterations}, {result.solve_seconds:.0f}, {result.status}"
    left, mean, work = free_fall(stride), stride.forces.sum(axis=1)[:-1].mean(axis=0), stride.energy
    laws = f"left in flight: {left.force:.4f} weights, {left.moment:.4f} weights m, {1e6 * left.away:.0f} um off"
    laws += f"; mean force - weight {mean[1] - 1:.1e}, forward {mean[2]:.1e}"
    laws += f"; of the work: residual {100 * work.residual / work.positive:.2f} %"
    laws += f", ground {100 * work.ground / work.positive:.2f} %"
    at_bound = sorted({row.label for row in result.active if row.title == "torques"})
    return f"{found}\n    {laws}; width {step.width:.3f} m; at the strength: {', '.join(at_bound) or 'none'}"


if __name__ == "__main__":
    main()
