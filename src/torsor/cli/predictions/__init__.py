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
    torques = {"joint_torques": joint_torques(result).tolist()}
    return Report(partial(plot_task, result), figures=torques, saves=movies(result))


NAMED: dict[str, Prediction] = {name: Prediction.of(each) for name, each in PROBLEMS.items()}
NAMED |= {"walk": WALK, "run": RUN}
for _name in TASKS:  # tasks of a human standing on flat feet
    NAMED[_name] = Prediction.of(HUMAN_PROBLEMS[_name], ERGONOMICS, report=_task_report, saves=MOVIES)
