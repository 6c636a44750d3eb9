"""``torsor predict run``: one step of running, and its report."""

from collections.abc import Mapping
from typing import Any

from torsor.cli.predictions.prediction import BODY, MOVIES, Option, Prediction, body_of, chosen
from torsor.cli.predictions.walk import (
    FROZEN,
    LENGTH,
    OBJECTIVE,
    PLANAR,
    SPEED,
    WIDTH,
    joints_and_weights,
    stride_report,
)
from torsor.human import running
from torsor.motion import MotionProblem

TENDONS = Option("--tendons", action="store_true", help="muscles of ankle and knee act through tendons")
OPTIONS = (*BODY, SPEED, LENGTH, WIDTH, PLANAR, FROZEN, OBJECTIVE, TENDONS)


def _problem(given: Mapping[str, Any]) -> MotionProblem:
    body, own = body_of(given), chosen(given, "speed", "length", "width", "planar", "tendons")
    return running(body=body, **own, **joints_and_weights(body, given, "run"))


RUN = Prediction("run", _problem, OPTIONS, stride_report, (*MOVIES, ".mot"))
