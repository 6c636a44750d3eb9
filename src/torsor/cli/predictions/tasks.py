"""``torsor predict lift``, ``push``, ``pull``, ``reach``, ``stand-up``, ``sit-down``: tasks of a human on flat feet."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torsor.base.checks import positive
from torsor.cli.predictions.prediction import (
    BODY,
    BOX,
    ERGONOMICS,
    MOVIES,
    Option,
    Prediction,
    Report,
    body_of,
    chosen,
    movies,
)
from torsor.human import (
    Box,
    Rails,
    joint_torques,
    lifting,
    plot_task,
    pulling,
    pushing,
    reaching,
    sitting_down,
    standing_up,
)
from torsor.human.body.coordinates import SIDES
from torsor.motion import MotionProblem, MotionResult

SEAT = Option("--seat", type=float, metavar="M", help="height of the seat (default: 0.45)")
ARMRESTS = Option(
    "--armrests", type=float, metavar="M", help="height of armrests that the hands push on (default: none)"
)
TARGET = Option(
    "--target",
    type=float,
    nargs=3,
    metavar=("LEFT", "UP", "AHEAD"),
    help="target of the hand, from the middle between the heels (m; default: -0.2 1.1 0.75)",
)
TURN = Option(
    "--turn", type=float, metavar="DEGREES", help="direction of the box at the start, to the left (default: 0)"
)
FORCE = Option("--push-force", type=float, metavar="N", help="force of both hands on the handle (default: 100)")
HANDLE = Option("--handle", type=float, metavar="M", help="height of the handle (default: 1.0)")
HAND = Option("--hand", choices=SIDES, help="hand that reaches (default: right)")


def _report(result: MotionResult, given: Mapping[str, Any]) -> Report:
    torques = {"joint_torques": joint_torques(result).tolist()}
    return Report(partial(plot_task, result), figures=torques, saves=movies(result))


def _lift(given: Mapping[str, Any]) -> MotionProblem:
    box = Box(positive(given["box"], "lift", "box")) if "box" in given else None
    return lifting(body_of(given), box, **chosen(given, "turn"))


def _handle(make: Callable[..., MotionProblem], given: Mapping[str, Any]) -> MotionProblem:
    """Return the problem of pushing or pulling."""
    names = {"push_force": "force", "handle": "height"}
    for option in chosen(given, *names):  # in the words of the options
        positive(given[option], make.__name__.removesuffix("ing"), option)
    return make(body_of(given), **{names[name]: value for name, value in chosen(given, *names).items()})


def _seat(make: Callable[..., MotionProblem], given: Mapping[str, Any]) -> MotionProblem:
    """Return the problem of standing up or sitting down."""
    rails = {"rails": Rails(height=given["armrests"])} if "armrests" in given else {}
    return make(body_of(given), **chosen(given, "seat"), **rails)


def _reach(given: Mapping[str, Any]) -> MotionProblem:
    return reaching(body_of(given), **chosen(given, "target", "hand"))


LIFT = Prediction("lift", _lift, (*BODY, BOX, TURN, ERGONOMICS), _report, MOVIES)
PUSH = Prediction("push", partial(_handle, pushing), (*BODY, FORCE, HANDLE, ERGONOMICS), _report, MOVIES)
PULL = Prediction("pull", partial(_handle, pulling), (*BODY, FORCE, HANDLE, ERGONOMICS), _report, MOVIES)
STAND_UP = Prediction("stand-up", partial(_seat, standing_up), (*BODY, SEAT, ARMRESTS, ERGONOMICS), _report, MOVIES)
SIT_DOWN = Prediction("sit-down", partial(_seat, sitting_down), (*BODY, SEAT, ARMRESTS, ERGONOMICS), _report, MOVIES)
REACH = Prediction("reach", _reach, (*BODY, TARGET, HAND, ERGONOMICS), _report, MOVIES)
