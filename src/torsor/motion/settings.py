"""Settings of ``MotionProblem.solve``: their defaults and their validation."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from torsor.base.checks import number, one_of, whole_number
from torsor.base.errors import ModelError, describe
from torsor.optimisation import SOLVERS

LARGEST = float(np.finfo(float).max)  # whole numbers beyond it are not floats
REFINED = 1e-4  # scaled violation at which refinement ends by default


@dataclass(frozen=True)
class SolveSettings:
    """The settings of a solve; ``MotionProblem.solve`` describes them."""

    solver: str = "ipopt"
    tolerance: float = 1e-6
    iterations: int = 500
    seconds: float = np.inf
    refine: bool | float = False
    progress: bool | None = None
    check: bool = True
    feasible_first: bool = False
    tie_break: bool = False

    @classmethod
    def of(cls, where: str, **given: Any) -> "SolveSettings":
        """Return validated settings; those that are None or not given have their defaults.

        Example:
            >>> SolveSettings.of("reach", tolerance=1e-8).solver
            'ipopt'
        """
        for key in given:
            if key not in DEFAULTS:
                raise ModelError(describe(f"unknown setting {key!r}", where=where, allowed=", ".join(DEFAULTS)))
        values = DEFAULTS | {key: value for key, value in given.items() if value is not None}
        one_of(values["solver"], list(SOLVERS), where, "solver")
        number(values["tolerance"], where, "tolerance", least=1e-12, most=0.1)
        whole_number(values["iterations"], where, "iterations", most=10**9)
        number(values["seconds"], where, "seconds", least=1e-9, finite=False)
        for key in ("progress", "check", "feasible_first", "tie_break"):
            if not isinstance(values[key], bool) and not (key == "progress" and values[key] is None):
                raise ModelError(describe(f"{key} is {values[key]!r}", where=where, allowed="True or False"))
        refine = values["refine"]
        if not isinstance(refine, bool) and not (isinstance(refine, (int, float)) and 0 < refine <= LARGEST):
            allowed = "True, False, or a tolerance above 0 of the scaled rows"
            raise ModelError(describe(f"refine is {refine!r}", where=where, allowed=allowed))
        return cls(**values)

    @property
    def refine_tolerance(self) -> float | None:
        """The scaled violation at which refinement ends; None without refinement."""
        if self.refine is False:
            return None
        return REFINED if self.refine is True else float(self.refine)


DEFAULTS: dict[str, Any] = asdict(SolveSettings())
