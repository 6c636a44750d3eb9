"""``torsor predict lift``, ``stand-up`` and ``reach``: tasks of a human on flat feet."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from torsor.checks import positive
from torsor.cli.predictions.prediction import BODY, BOX, Option, Prediction, Report, body_of, chosen
from torsor.human import Box, joint_torques, lifting, plot_task, reaching, standing_up
from torsor.human.body.coordinates import SIDES
from torsor.motion import MotionProblem, MotionResult

SEAT = Option("--seat", type=float, metavar="M", help="height of the seat (default: 0.45)")
TARGET = Option(
    "--target",
    type=float,
    nargs=3,
    metavar=("LEFT", "UP", "AHEAD"),
    help="target of the hand, from the middle between the heels (m; default: -0.2 1.1 0.75)",
)
HAND = Option("--hand", choices=SIDES, help="hand that reaches (default: right)")


def _report(result: MotionResult) -> Report:
    return Report(partial(plot_task, result), figures={"joint_torques": joint_torques(result).tolist()})


def _lift(given: Mapping[str, Any]) -> MotionProblem:
    return lifting(body_of(given), Box(positive(given["box"], "lift", "box")) if "box" in given else None)


def _stand_up(given: Mapping[str, Any]) -> MotionProblem:
    return standing_up(body_of(given), **chosen(given, "seat"))


def _reach(given: Mapping[str, Any]) -> MotionProblem:
    return reaching(body_of(given), **chosen(given, "target", "hand"))


LIFT = Prediction("lift", _lift, (*BODY, BOX), _report)
STAND_UP = Prediction("stand-up", _stand_up, (*BODY, SEAT), _report)
REACH = Prediction("reach", _reach, (*BODY, TARGET, HAND), _report)
