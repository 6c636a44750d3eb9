"""Walks of many people or at many speeds, solved together, with mean and standard deviation of their curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import instance_of, one_of, several, whole_number
from torsor.base.errors import ModelError
from torsor.human.body.coordinates import SIDES
from torsor.human.gait.curves import PERCENTS, quantities
from torsor.human.gait.figures import plot_bands
from torsor.human.gait.references import Reference
from torsor.human.gait.stride import Stride
from torsor.human.terms.problem import walk_of
from torsor.motion import MotionProblem, MotionResult
from torsor.motion.problem import solve_similar, warn_between_nodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHERE = "cohort"


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """The ``results`` of ``cohort`` in the order of the problems; ``side`` is the side of the strides."""

    results: tuple[MotionResult, ...]
    side: str = "right"

    def __post_init__(self) -> None:
        one_of(self.side, SIDES, WHERE, "side")
        if not any(result.is_feasible for result in self.results):
            what = "all walks violate their constraints" if self.results else "there are no walks"
            raise ModelError(what, where=WHERE, allowed="at least one feasible walk")

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return f"<Cohort: {len(self)} walks, {len(self.strides)} feasible>"

    @cached_property
    def strides(self) -> tuple[Stride, ...]:
        """The strides of the feasible walks."""
        return tuple(Stride(result, self.side) for result in self.results if result.is_feasible)

    @cached_property
    def curves(self) -> dict[str, Reference]:
        """The mean and population standard deviation (101,) of each curve, by name as in ``Stride.likeness``."""
        at, label = np.linspace(0.0, 1.0, PERCENTS), f"{len(self.strides)} walks"
        spreads = dict[str, Reference]()
        for curves in zip(*(stride.as_reference() for stride in self.strides), strict=True):
            values = np.array([curve.at(at) for curve in curves])
            mean, sd = values.mean(axis=0), values.std(axis=0)
            spreads[curves[0].curve] = curves[0]._replace(source=label, mean=mean, sd=sd)
        return spreads

    @cached_property
    def quantities(self) -> dict[str, Array]:
        """The step length and width, double support and energies of the strides, by name (see ``QuantitySpread``)."""
        rows = [quantities(stride) for stride in self.strides]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot the sagittal curves of all walks, and the mean with a band of one standard deviation; return the figure.

        With ``path``, the figure is also saved.
        """
        return plot_bands(self.curves, self.strides, path)


def cohort(problems: Sequence[MotionProblem], side: str = "right", workers: int = 1, **settings: Any) -> Cohort:
    """Solve ``torsor.human.walking`` problems together and return the walks.

    The problems may have different bodies, speeds, weights and bounds. Problems with the same terms and control points
    are solved in batches, in ``workers`` processes. Each walk starts from the most similar one of an earlier batch,
    which reduces the number of iterations, but may lead to a different local optimum than ``solve``. ``settings`` are
    those of ``solve``. ``side`` is the side of the strides. After Ctrl-C, the cohort contains the walks found so far.

    Example:
        >>> from torsor.human import Step, walking
        >>> speeds = [1.0, 1.2, 1.4]
        >>> walks = cohort([walking(step=Step(speed=v, length="free")) for v in speeds])  # doctest: +SKIP
        >>> walks.quantities["step_length"], walks.curves["knee_flexion"].sd  # doctest: +SKIP
        >>> walks.plot("cohort.png")  # doctest: +SKIP
    """
    one_of(side, SIDES, WHERE, "side")
    problems = several(problems)
    for problem in problems:
        instance_of(problem, MotionProblem, WHERE, "problems", allowed="walks (torsor.human.walking)")
        walk_of(problem)  # raises ModelError if the problem is not a walk
        problems[0].share_with(problem)
    whole_number(workers, WHERE, "workers")
    results = [result for result in solve_similar(problems, settings, workers, "solving walks") if result is not None]
    for result in results:
        warn_between_nodes(result)
    return Cohort(tuple(results), side)
