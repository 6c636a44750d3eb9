"""The options of contact and limits of ``torsor simulate``."""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from torsor.base.checks import number
from torsor.base.errors import ModelError
from torsor.mechanism import Shape
from torsor.simulation import Contact, Limits
from torsor.simulation.contact import KINDS, OWN
from torsor.spatial import from_rpy, make_pose

_PLACES = ("slope", "no_ground", "shapes", "pair")
_BOTH = ("stiffness", "friction")  # the numbers of ``Contact`` that are options of both kinds
_TEXTS = {
    "stiffness": "of a point of contact, N/m^exponent, hard: N/m (default: 1e6)",
    "friction": "Coulomb's coefficient (default: 0.8)",
    "dissipation": "compliant: s/m (default: 1)",
    "exponent": "compliant: of the depth, 1 to 3 (default: 1.5)",
    "slip": "compliant: speed below which friction is smooth, m/s (default: 0.01)",
    "relaxation": "hard: time in which penetration vanishes, s (default: 0.02)",
    "sweeps": "hard: sweeps of projected Gauss-Seidel (default: 10)",
}


def add_contact(parser: ArgumentParser) -> None:
    """Add the options of contact and of limits."""
    group = parser.add_argument_group("options of contact")
    text = "let collision shapes touch the ground, with friction: by smooth forces, or by impulses"
    group.add_argument("--contact", choices=KINDS, help=text)
    group.add_argument("--slope", type=float, metavar="RAD", help="angle at which the ground descends along x")
    group.add_argument("--no-ground", action="store_true", help="no plane z = 0: shapes of the base are the ground")
    group.add_argument("--shapes", nargs="+", metavar="NAME", help="shapes, links or frames that touch the ground")
    text = "two shapes, links or frames that touch each other; may be repeated"
    group.add_argument("--pair", nargs=2, action="append", metavar="NAME", help=text)
    for name, text in _TEXTS.items():
        group.add_argument(f"--{name}", type=int if name == "sweeps" else float, metavar="NUMBER", help=text)
    text = "enforce limits: drives saturate at their effort, and joints have stops at their position limits"
    parser.add_argument("--limits", action="store_true", help=text)


def given_contact(arguments: Namespace) -> dict[str, Any]:
    """Return the arguments ``contact`` and ``limits`` of ``simulate`` that a command line has."""
    found: dict[str, Any] = {"limits": Limits()} if arguments.limits else {}
    given = {name: value for name in _TEXTS if (value := getattr(arguments, name)) is not None}
    places = [name for name in _PLACES if getattr(arguments, name) not in (None, False)]
    kind: str | None = arguments.contact
    if kind is None:
        if places or given:
            text = f"--{next(iter([*places, *given])).replace('_', '-')} without contact"
            raise ModelError(text, fix=f"add --contact, one of {', '.join(KINDS)}")
        return found
    for name in given:
        if name not in (*_BOTH, *OWN[kind]):
            allowed = ", ".join(f"--{each}" for each in (*_BOTH, *OWN[kind]))
            raise ModelError(f"--{name} for {kind} contact", allowed=allowed)
    ground: bool | Shape = not arguments.no_ground
    if arguments.slope is not None:
        if arguments.no_ground:
            raise ModelError("--slope and --no-ground are both given", allowed="one of them")
        angle = number(arguments.slope, "contact", "slope", least=-np.pi / 2, most=np.pi / 2)
        ground = Shape("plane", pose=make_pose(from_rpy([0.0, angle, 0.0])))
    pairs = [(a, b) for a, b in arguments.pair or ()]
    found["contact"] = Contact(ground, arguments.shapes, pairs, kind=kind, **given)
    return found
