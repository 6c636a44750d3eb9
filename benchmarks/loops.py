"""Count operations with closed loops, and measure the assembly speed on one core; print Markdown tables.

For robot files on the command line, ``mobility`` is measured too, including the search for a closed configuration.
"""

import sys
from time import perf_counter

import numpy as np

import torsor
from bench.measure import best

STATES = 100_000
COUNTED = (
    "constrained_accelerations",
    "constrained_inverse_dynamics",
    "constrained_forward_dynamics",
    "constrained_inverse_dynamics_derivatives",
    "constrained_forward_dynamics_derivatives",
    "closed_forward_dynamics",
)


def mechanisms() -> dict[str, torsor.Robot]:
    """Return the mechanisms that are counted, by their names in the table."""
    library = torsor.library
    return {
        "four-bar": library.four_bar(),
        "slider-crank": library.slider_crank(),
        "five-bar": library.five_bar(),
        "palletiser": library.palletiser(),
    }


def assembled(robot: torsor.Robot, middle: list[float], guess: list[float], spread: float) -> float:
    """Return the number of configurations assembled per second, within ``spread`` (rad) of ``middle``."""
    start = robot.closed.assemble(middle, guess=guess)
    wanted = np.array(middle) + np.random.default_rng(0).uniform(-spread, spread, size=(STATES, len(middle)))
    return STATES / best(lambda: robot.closed.assemble(wanted, guess=start))


def analysed(path: str) -> tuple[float, str]:
    """Return the time (s) of ``mobility`` for a robot file, including compilation, and its result."""
    robot = torsor.load(path)
    start = perf_counter()
    try:
        result = f"{robot.closed.mobility().dof} degrees of freedom"
    except torsor.ModelError as error:
        result = error.what
    return perf_counter() - start, result


def main() -> None:
    """Print the tables."""
    print("| additions and multiplications |" + "".join(f" {name} |" for name in mechanisms()))
    print("|---|" + "---|" * len(mechanisms()))
    for name in COUNTED:
        counts = "".join(f" {robot.operation_count(name).arithmetic} |" for robot in mechanisms().values())
        print(f"| `{name}` |{counts}")
    print("\n| five-bar, one core | assembled a second |\n|---|---|")
    robot = torsor.library.five_bar()
    for spread in (0.05, 0.4):
        rate = assembled(robot, [1.9, 1.2], [1.9, -1.2, 1.2, 1.2], spread)
        print(f"| drives within {spread} rad of the guess | {rate / 1e6:.1f} million |")
    print("\n| robot file | mobility (s) | result |\n|---|---|---|" if sys.argv[1:] else "")
    for path in sys.argv[1:]:
        seconds, result = analysed(path)
        print(f"| {path} | {seconds:.1f} | {result} |")


if __name__ == "__main__":
    main()
