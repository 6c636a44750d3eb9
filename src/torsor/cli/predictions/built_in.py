"""``torsor predict`` of the built-in problems: their control points, variants, weights, ends and bounds as options."""

from collections.abc import Mapping
from typing import Any

from torsor.base.checks import number
from torsor.cli.predictions.prediction import Option, Prediction
from torsor.motion import PROBLEMS, MotionProblem
from torsor.motion.problems import VARIANTS

POINTS = Option("--points", type=int, metavar="N", help="control points of each profile")
_NODES = Option("--nodes", type=int, metavar="N", help="moments at which bounds hold (default: ten a control point)")
_VARIANT = Option("--variant", choices=tuple(VARIANTS), help="reading of the printed data (default: printed)")
_WEIGHT = Option("--weight", type=float, metavar="U", help="weight of the effort, from 0 to 1 (default: 0.01)")
_ENDS = tuple(
    Option(f"--{name}", type=float, nargs="+", metavar="NUMBER", help=f"positions at the {name} (rad), one for a joint")
    for name in ("start", "end")
)
_RATES = Option(
    "--torque-rates", type=float, nargs="+", metavar="N m/s", help="bounds of torque rates: one, or one for each joint"
)
_FORCE = Option("--force", type=float, metavar="N m", help="bound of all forces (default: 200)")
_RATE = Option("--rate", type=float, metavar="N m/s", help="bound of all force rates (default: 1000)")
_TORQUE = Option("--torque", type=float, metavar="N m", help="bound of the motor torques (default: 30)")

_OPTIONS: dict[str, tuple[Option, ...]] = {
    "two-link-time": (POINTS, _NODES),
    "slide-link": (POINTS, _VARIANT, _WEIGHT),
    "stanford-rates": (POINTS, _FORCE, _RATE),
    "ur5-time": (POINTS, *_ENDS, _RATES),
    "panda-time": (POINTS, *_ENDS, _RATES),
    "path-time": (POINTS, _RATES),
    "elastic-arm": (POINTS, *_ENDS, _TORQUE),
}
_ARGUMENTS = {"weight": "u"}  # of the functions, where the option has another name


def _prediction(name: str) -> Prediction:
    def problem(given: Mapping[str, Any]) -> MotionProblem:
        if "weight" in given:  # in the words of the option
            number(given["weight"], name, "weight", least=0, most=1)
        arguments = {_ARGUMENTS.get(option, option): value for option, value in given.items()}
        if len(arguments.get("torque_rates", ())) == 1:
            arguments["torque_rates"] = arguments["torque_rates"][0]
        return PROBLEMS[name](**arguments)

    return Prediction(name, problem, _OPTIONS.get(name, ()))


BUILT_IN: dict[str, Prediction] = {name: _prediction(name) for name in PROBLEMS}
