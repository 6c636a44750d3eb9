"""``torsor predict lift``, ``push``, ``pull``, ``reach``, ``stand-up``, ``sit-down``: tasks of a human on flat feet."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from torsor.cli.predictions.prediction import ERGONOMICS, MOVIES, Prediction, Report, movies
from torsor.human import TASKS, joint_torques, plot_task
from torsor.human.problems import PROBLEMS
from torsor.motion import MotionResult


def _report(result: MotionResult, given: Mapping[str, Any]) -> Report:
    torques = {"joint_torques": joint_torques(result).tolist()}
    return Report(partial(plot_task, result), figures=torques, saves=movies(result))


ON_FLAT_FEET = {name: Prediction.of(PROBLEMS[name], ERGONOMICS, report=_report, saves=MOVIES) for name in TASKS}
