"""Options that several predictions of a human have: the size of the body, and a box in the hands."""

from collections.abc import Mapping
from typing import Any

from torsor import library
from torsor.cli.predictions.prediction import Option
from torsor.library.anthropometry import SEXES
from torsor.robot.robot import Robot

BODY = (
    Option("--height", type=float, metavar="M", help="height of the body (default: 1.741)"),
    Option("--mass", type=float, metavar="KG", help="mass of the body (default: 73)"),
    Option("--sex", choices=tuple(SEXES), help="table of segments (default: male)"),
)
BOX = Option("--box", type=float, metavar="KG", help="mass of a box in the hands (default of lift: 10)")


def chosen(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the given options that have one of the names.

    Example:
        >>> chosen({"speed": 1.0, "slope": 6.0}, "speed", "length")
        {'speed': 1.0}
    """
    return {name: given[name] for name in names if name in given}


def body_of(given: Mapping[str, Any]) -> Robot:
    """Return the body that the options describe.

    Example:
        >>> round(body_of({"mass": 80.0}).mass, 9)
        80.0
    """
    return library.human(**chosen(given, "height", "mass", "sex"))
