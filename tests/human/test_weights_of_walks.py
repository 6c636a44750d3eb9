"""The objective weights of a walk are recovered from the hip, knee and ankle angles that they produce."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import torsor
from torsor.human import Step, walking
from torsor.motion import Measured, fit_weights

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*between the nodes")]

BODY = torsor.library.human()
STIFF = ("spine", "shoulder", "elbow", "pronation", "adduction", "rotation", "inversion")
FROZEN = {name: 0.0 for name in BODY.coordinate_names if any(part in name for part in STIFF)}
ANGLES = [f"{side}_{joint}_flexion" for side in ("right", "left") for joint in ("hip", "knee", "ankle")]
SMALL: Mapping[str, Any] = {"step": Step(length=0.6, width=0.1, speed=1.2, timing="given")}
FREE: Mapping[str, Any] = {"step": Step(speed=1.25, timing="given")}
GROUPS = {"effort": ["effort", "effort of activation"]}  # the second is a cost of rates


@pytest.mark.parametrize(
    ("settings", "weights"),
    [(SMALL, {"effort": 0.6, "joint loads": 0.1, "heat": 0.3}), (FREE, {"energy": 0.4, "effort": 0.6})],
)
def test_weights_of_a_walk_are_found_again(settings: Mapping[str, Any], weights: dict[str, float]) -> None:
    def problem(own: dict[str, float]) -> Any:
        return walking(planar=True, frozen=FROZEN, objective=own, **settings)

    made = problem(weights).solve(tolerance=1e-7)
    columns = [BODY.coordinate_names.index(name) for name in ANGLES]
    seen = made.at(np.linspace(0.0, made.T, 21)).q[:, columns]
    data = Measured(name="made", values=seen, names=ANGLES, scale=np.radians(1.0))
    groups = {name: GROUPS.get(name, [name]) for name in weights}
    found = fit_weights(problem(dict.fromkeys(weights, 1.0)), data, groups=groups)
    assert found.is_solved
    assert found.weights == pytest.approx(weights, abs=1e-5)  # the data are those of a solver's tolerance
