"""Percent capable: monotonic in the load, and its symbolic strengths are those of the assessed motion."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest

from refusals import refused
from torsor.human import Box, Person, hand_wrenches, lifting, pushing, walking
from torsor.human.ergonomics import LumbarModel, capabilities, lumbar_loads, percent_capable
from torsor.human.ergonomics.population import WEAKEST, _weakest
from torsor.human.tasks.task import Task
from torsor.human.terms.problem import hand_forces, sampled
from torsor.motion import MotionResult
from torsor.optimisation import Outcome

pytestmark = pytest.mark.filterwarnings("ignore:.*between the nodes")
MAN = Person(1.741, 73.0, "male")


def test_other_things_than_tasks_raise() -> None:
    with refused(argument="task"):
        percent_capable(3)
    with refused(argument="task"):
        percent_capable(walking())
    with refused("starts"):
        percent_capable(lifting(), starts=0)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: lifting(box=Box(15.0)), lambda: pushing(force=150.0)])
def test_the_margins_are_those_of_the_assessed_motion(make: Callable[[], Task]) -> None:
    """The margins 1 + z D/M - T/M of the problem are those of ``capabilities`` and ``lumbar_loads``."""
    problem, z = _weakest(make(), MAN, "young", LumbarModel()), 0.7
    program, x = problem.program, problem.guess()
    x[program.layout.numbers[WEAKEST]] = z
    result = MotionResult(problem, Outcome(x, np.zeros(0), np.zeros(0), 0.0, 0, "guess", False), "none")
    margins = defaultdict(list)
    for row, value in zip(program.rows, program.value(x)[1] * program.scales, strict=True):
        if row.title == WEAKEST:
            margins[row.label.split(" at ")[0]].append(value)
    samples = sampled(result, problem.stages[0].nodes)
    external = hand_wrenches(result.robot, samples.q, hand_forces(result, problem.stages[0].nodes))
    carried = 0.0 if problem.load is None else problem.load.mass
    motion = (samples.q, samples.v, samples.a)
    back = lumbar_loads(result.robot, *motion, external=external, carried=carried).extension
    rows = capabilities(result.robot, MAN, samples.q, samples.torques, back)
    assert len(rows) > 8
    for row in rows:
        if row.name.startswith("trunk"):
            name = "trunk extends" if row.name.endswith("extension") else "trunk flexes"
        else:
            side, joint, motion_name = row.name.split()
            known = {"abduction": "shoulder_adduction extends", "plantarflexion": "ankle_flexion extends"}
            way = f"{joint}_flexion {'flexes' if motion_name == 'flexion' else 'extends'}"
            name = f"{side}_{known.get(motion_name, way)}"
        if not row.extrapolated and name in margins:  # the corner at the largest measured angle is rounded
            expected = 1 + (z * row.deviation - row.moment) / row.mean
            tolerance = 0.02 if "trunk" in name else 1e-6  # the slice between navel and L5/S1 is at rest
            assert margins[name][row.instant] == pytest.approx(expected, abs=tolerance), name


@pytest.mark.slow
def test_percent_capable_decreases_with_the_load_and_is_the_same_from_one_start() -> None:
    light, heavy, weak = (
        percent_capable(lifting(box=Box(15.0)), starts=2),
        percent_capable(lifting(box=Box(30.0)), starts=1),
        percent_capable(lifting(box=Box(15.0)), "old", starts=1),
    )
    assert light.of_starts[0] - light.of_starts[-1] < 0.03 and light.result.is_feasible
    assert light.capable > heavy.capable + 0.1 and light.capable > weak.capable
    assert 0.9 < light.capable < 1.0 and 0.6 < heavy.capable < 0.9
