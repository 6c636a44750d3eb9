"""The built-in problems of ``torsor predict``, each with its options and its report."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from torsor.cli.predictions.prediction import ERGONOMICS, MOVIES, Prediction, Report, movies
from torsor.cli.predictions.walk import RUN, WALK
from torsor.human import TASKS, joint_torques, plot_task
from torsor.human.problems import PROBLEMS as HUMAN_PROBLEMS
from torsor.motion import PROBLEMS, MotionResult

__all__ = ["NAMED"]


def _task_report(result: MotionResult, given: Mapping[str, Any]) -> Report:
    figures: dict[str, Any] = {"joint_torques": joint_torques(result).tolist()}
    is_assessed = result.problem.name == "lift" or "ergonomics" in given  # it takes a further search
    if not result.is_feasible or not is_assessed:
        return Report(partial(plot_task, result), figures=figures, saves=movies(result))
    from torsor.human.ergonomics import assess

    assessment = assess(result, age=given.get("age", "young"))
    figures["ergonomics"] = assessment.to_dict()
    plot = partial(plot_task, result)
    return Report(plot, tuple(assessment.tables()), figures, saves=movies(result), assessment=assessment)


NAMED: dict[str, Prediction] = {name: Prediction.of(each) for name, each in PROBLEMS.items()}
NAMED |= {"walk": WALK, "run": RUN}
for _name in TASKS:  # tasks of a human standing on flat feet
    NAMED[_name] = Prediction.of(HUMAN_PROBLEMS[_name], ERGONOMICS, report=_task_report, saves=MOVIES)
