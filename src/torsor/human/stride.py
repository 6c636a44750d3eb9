"""A whole stride from one step: what the right side does in it, then what the left did, and what the ground gives."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from torsor.errors import ModelError, describe
from torsor.human.balance import ground_reaction
from torsor.human.references import ANGLES, FORCES, Likeness, likeness
from torsor.human.schedule import Step
from torsor.motion import MotionResult

__all__ = ["Stride"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stride:
    """The stride of the right leg in a walk: it stands in the step that was found, and swings in its mirror image.

    ``result`` is that of a problem of ``walking``, and ``step`` the one of that problem.
    """

    result: MotionResult
    step: Step

    def __post_init__(self) -> None:
        if self.result.problem.name != "walk":
            found = f"the result of {self.result.problem.name!r}"
            raise ModelError(describe(found, where="stride", allowed="one of torsor.human.walking()"))

    def angle(self, name: str) -> Array:
        """Return an angle of the right leg or arm (degrees) over the stride, at 401 moments at equal steps."""
        names, q = self.result.robot.coordinate_names, self.result.q
        both = [np.degrees(q[:, names.index(f"{side}_{name}")]) for side in ("right", "left")]
        return np.concatenate([both[0], both[1][1:]])

    @cached_property
    def force(self) -> Array:
        """The ground's force on the right foot (401, 3), in parts of the weight: left, up, forward."""
        result = self.result
        body, count = result.robot, len(result.times)
        whole = ground_reaction(body, result.q, result.v, result.a).force / (9.81 * body.mass)
        s = ca.SX.sym("s")
        share = np.asarray(ca.Function("share", [s], [self.step.share(s)])(np.linspace(0.0, 1.0, count)).full()).ravel()
        front, behind = (
            share[:, None] * whole,
            (1 - share)[:, None] * whole * [-1.0, 1.0, 1.0],
        )  # the left foot's, mirrored
        return np.concatenate([front, behind[1:]])

    def likeness(self) -> dict[str, Likeness]:
        """Return how like angles and forces are to those of people (``references``)."""
        found = {name: likeness(self.angle(name), curve) for name, curve in ANGLES.items()}
        forces = {"vertical": 100 * self.force[:, 1], "forward": 100 * self.force[:, 2]}
        return found | {name: likeness(forces[name], curve) for name, curve in FORCES.items()}

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a figure (matplotlib, the extra ``plot``) of the curves beside those of people; ``path`` saves it."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("figures need matplotlib; fix: pip install torsor[plot]") from None
        figure = Figure(figsize=(12, 6), layout="constrained")
        panels = figure.subplots(2, 4).ravel()
        alike, share = self.likeness(), np.linspace(0.0, 100.0, len(self.force))
        curves = {name: (self.angle(name), ANGLES[name], "degrees") for name in ANGLES}
        curves |= {
            name: (100 * self.force[:, k], FORCES[name], "% of weight") for k, name in ((1, "vertical"), (2, "forward"))
        }
        for axes, (name, (curve, reference, unit)) in zip(panels, curves.items(), strict=False):
            axes.plot(share, curve, label="predicted")
            axes.plot(np.linspace(0, 100, len(reference)), reference, "--", color="0.4", label="measured")
            axes.set(
                title=f"{name.replace('_', ' ')}: {alike[name].correlation:.2f}", ylabel=unit, xlabel="% of stride"
            )
            axes.grid(alpha=0.3)
        panels[0].legend(frameon=False)
        _figures(panels[7], self.result)
        if path is not None:
            figure.savefig(path, dpi=110)
        return figure


SEGMENTS = [
    *(
        (f"{side}_{a}", f"{side}_{b}")
        for side in ("right", "left")
        for a, b in (
            ("thigh", "shank"),
            ("shank", "foot"),
            ("foot", "heel"),
            ("heel", "ball"),
            ("ball", "toe"),
            ("upper_arm", "forearm"),
            ("forearm", "wrist"),
        )
    ),
    *(("spine4", f"{side}_upper_arm") for side in ("right", "left")),
    *(("pelvis", "spine1"), ("spine1", "spine2"), ("spine2", "spine3"), ("spine3", "spine4"), ("spine4", "vertex")),
]


def _figures(axes: Any, result: MotionResult, count: int = 5) -> None:
    """Draw the body from its left at moments of the step, beside each other."""
    body, moments = result.robot, np.linspace(0, len(result.times) - 1, count).astype(int)
    for index, k in enumerate(moments):
        for a, b in SEGMENTS:
            ends = np.stack([body.pose(result.q[k], each)[:3, 3] for each in (a, b)])
            colour = "C3" if "right" in b else "C0" if "left" in b else "0.2"
            axes.plot(ends[:, 2] + 0.35 * index, ends[:, 1], color=colour, linewidth=1.2)
    axes.set_aspect("equal")
    axes.set_title("one step")
    axes.axis("off")
